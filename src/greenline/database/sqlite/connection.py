"""A connection to the database, with everything in place that makes SQL the same at every replica.

Settings, equal everywhere: foreign keys are kept, triggers are not recursive, the schema is not trusted, nobody writes
to the schema's own tables. All else is as SQLite has it. Lengths, which decide outcomes, are limited here as well.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from greenline.database.sqlite.determinism import Clock, Moment, take_over_functions, watch_rowids
from greenline.database.sqlite.permissions import MODULES, Permissions, Role
from greenline.database.sqlite.tables import FOREIGN, OURS

STATEMENTS = 500
"""Prepared ones that are kept."""
LENGTHS = {
    apsw.SQLITE_LIMIT_LENGTH: 16 * 1024 * 1024,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 1024 * 1024,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""Of a value, of a statement, of a pattern: to match one is one step of SQLite's machine, however long that takes."""

__all__ = ["FOREIGN", "OURS", "Role", "because", "opened", "unhooked"]


def opened(
    path: Path | str, role: Role, moment: Moment, vfs: str | None = None, *, base: str = "", cache_bytes: int = 0
) -> apsw.Connection:
    """`vfs`: the name of a file system that tells `moment`; if none is given, one on top of `base` is made."""
    name = vfs if vfs is not None else (clock := Clock(moment, base)).name  # noqa: F841  # it lives until it is used
    connection = unhooked(path, role is Role.READER, name, cache_bytes)
    for setting in (
        "foreign_keys = ON",
        "recursive_triggers = OFF",
        "trusted_schema = OFF",
        *(("query_only = ON",) if role is Role.READER else ()),
    ):
        connection.execute(f"PRAGMA {setting}")
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    for which, limit in LENGTHS.items():
        connection.limit(which, limit)
    connection.drop_modules(MODULES)
    take_over_functions(connection, moment)
    watch_rowids(connection, moment)
    connection.authorizer = Permissions(role, moment)
    return connection


def unhooked(path: Path | str, is_reader: bool = True, vfs: str | None = None, cache_bytes: int = 0) -> apsw.Connection:
    """A plain one, for checkpoints, copies and digests: no client's statement runs on it."""
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if is_reader else apsw.SQLITE_OPEN_CREATE)
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs, statementcachesize=STATEMENTS)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    if cache_bytes:
        connection.execute(f"PRAGMA cache_size = {-cache_bytes // 1024}")
    return connection


def because(connection: apsw.Connection) -> str:
    """Why its authorizer refused last."""
    permissions = connection.authorizer
    assert isinstance(permissions, Permissions), "a connection without permissions"
    return permissions.because
