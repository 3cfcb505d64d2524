"""Permissions: what a client's statement may do, decided when it is prepared.

Refused is what would reach beyond the replicated state (other files, extensions, temporary tables), what would end or
split the transaction, what shows where it runs (versions, pages, statistics), and what is ours. Our own statements
pass: `Moment.is_foreign` tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import apsw

from greenline.database.sqlite import tables
from greenline.database.sqlite.determinism import Moment


class Role(Enum):
    WRITER = "writer"
    READER = "reader"
    OVERLAY = "overlay"


MODULES = ("fts5", "fts5vocab", "rtree", "rtree_i32", "geopoly", "json_each", "json_tree", "jsonb_each", "jsonb_tree")
"""Virtual tables that keep all they know in the same file, or know nothing."""

_READS = frozenset({apsw.SQLITE_READ, apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE})
_WRITES = frozenset({apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE})
_SCHEMA = {
    apsw.SQLITE_CREATE_TABLE: (0,),
    apsw.SQLITE_CREATE_VIEW: (0,),
    apsw.SQLITE_CREATE_INDEX: (0, 1),
    apsw.SQLITE_CREATE_TRIGGER: (0, 1),
    apsw.SQLITE_CREATE_VTABLE: (0,),
    apsw.SQLITE_DROP_TABLE: (0,),
    apsw.SQLITE_DROP_VIEW: (0,),
    apsw.SQLITE_DROP_INDEX: (0, 1),
    apsw.SQLITE_DROP_TRIGGER: (0, 1),
    apsw.SQLITE_DROP_VTABLE: (0,),
    apsw.SQLITE_ALTER_TABLE: (1,),
    apsw.SQLITE_REINDEX: (),
}
"""What changes the schema; and which of its arguments are names that may be ours."""
_PRAGMAS = frozenset(
    {
        "collation_list", "encoding", "foreign_key_check", "foreign_key_list", "index_info", "index_list",
        "index_xinfo", "page_size", "quick_check", "table_info", "table_list", "table_xinfo",
    }
)  # fmt: skip
OF_FTS5 = "data_version"
"""FTS5 asks for this one by itself, in the middle of a client's statement."""
_SETTINGS = frozenset({"user_version", "application_id"})
"""Of the file, for its users: they may be set."""
_FUNCTIONS = frozenset(
    {
        "fts3_tokenizer", "fts5_source_id", "load_extension", "sqlite_compileoption_get", "sqlite_compileoption_used",
        "sqlite_log", "sqlite_offset", "sqlite_source_id", "sqlite_version",
    }
)  # fmt: skip
"""What shows, or changes, where it runs."""
_BECAUSE = {
    apsw.SQLITE_ANALYZE: "statistics would let replicas choose different plans",
    apsw.SQLITE_ATTACH: "an action reaches one database, which is the replicated one",
    apsw.SQLITE_DETACH: "an action reaches one database, which is the replicated one",
    apsw.SQLITE_SAVEPOINT: "the statements of an action are a transaction already",
    apsw.SQLITE_TRANSACTION: "the statements of an action are a transaction already",
}
CHANGES_NOTHING = "a query changes nothing; send it as an action"
_TEMPORARY = "what is temporary is known to one replica only"

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


class Permissions:
    """The authorizer of one connection. `because` says why it refused last."""

    def __init__(self, role: Role, moment: Moment) -> None:
        self._role = role
        self._moment = moment
        self.because = ""

    def __call__(
        self, operation: int, first: str | None, second: str | None, database: str | None, within: str | None
    ) -> int:
        if not self._moment.is_foreign:
            return apsw.SQLITE_OK
        because = self._refused(operation, (first or "").lower(), (second or "").lower(), database, within)
        if because:
            self.because = because
            return apsw.SQLITE_DENY
        return apsw.SQLITE_OK

    def _refused(self, operation: int, first: str, second: str, database: str | None, within: str | None) -> str:
        if operation in _READS:
            # Not by column: SQLite does not ask for those that a join has in common.
            is_secret = first == tables.SECRET and within != tables.ROLES
            return f"what passwords are checked against is for nodes to read; see {tables.ROLES}" if is_secret else ""
        if operation == apsw.SQLITE_FUNCTION:
            return f"{second}() shows where it runs" if second in _FUNCTIONS else ""
        if operation == apsw.SQLITE_PRAGMA:
            return _refused_pragma(first, second, self._role, is_direct=within is None)
        if self._role is Role.READER and operation in _WRITES:
            return ""  # a virtual table prepares what it may need; a client's own is refused by its form
        if self._role is Role.READER:
            return CHANGES_NOTHING
        if operation in _WRITES:
            return _ours(first)
        if operation == apsw.SQLITE_CREATE_VTABLE and second not in MODULES:
            return f"there are no virtual tables of {second} here"
        if operation in _SCHEMA:
            names = _SCHEMA[operation]
            return _TEMPORARY if database == "temp" else _ours(*((first, second)[each] for each in names))
        return _BECAUSE.get(operation, _TEMPORARY)


def _refused_pragma(name: str, value: str, role: Role, *, is_direct: bool) -> str:
    if (name in _PRAGMAS and (name != "page_size" or not value)) or (name == OF_FTS5 and is_direct):
        return ""
    if name in _SETTINGS:
        return CHANGES_NOTHING if value and role is Role.READER else ""
    return f"the pragma {name} is about one replica, not about what all have in common"


def _ours(*names: str) -> str:
    ours = next((name for name in names if name.startswith(tables.PREFIX)), None)
    return f"{ours} is Greenline's own" if ours else ""
