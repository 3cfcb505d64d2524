"""What the schema says that is asked for again and again, found out once after each change of it."""

from __future__ import annotations

import apsw

from greenline.database.sqlite.tables import OURS, PREFIX

LAST_ROWID = 2**63 - 1
"""Of a table that holds it, SQLite draws the next rowid by chance, which nothing of ours can take over."""
TOGETHER = 100
"""Tables that are looked at with one statement."""

_SPECIAL = """
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE sql LIKE '%deferred%' OR sql LIKE '%changes%')
"""
_TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow') AND NOT wr"
_COLUMNS = "SELECT lower(name) FROM pragma_table_xinfo(?)"


class Schema:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._is_known = False
        self._is_plain = False
        self._looks: list[str] = []

    def has_changed(self) -> None:
        self._is_known = False

    @property
    def is_plain(self) -> bool:
        """No deferred keys, and no triggers that count changes: actions may be executed together."""
        self._look()
        return self._is_plain

    def holds_last_rowid(self) -> bool:
        self._look()
        execute = self._connection.execute
        return any(value == LAST_ROWID for look in self._looks for (value,) in execute(look, prepare_flags=OURS))

    def _look(self) -> None:
        if self._is_known:
            return
        execute = self._connection.execute
        ((is_special,),) = execute(_SPECIAL, prepare_flags=OURS)
        tables = [name for (name,) in execute(_TABLES, prepare_flags=OURS) if not name.startswith(PREFIX)]
        lasts = [last for name in tables if (last := self._last_rowid(name))]
        self._looks = [
            f"SELECT max(last) FROM ({' UNION ALL '.join(lasts[first : first + TOGETHER])})"
            for first in range(0, len(lasts), TOGETHER)
        ]
        self._is_plain = not is_special
        self._is_known = True

    def _last_rowid(self, table: str) -> str:
        columns = {name for (name,) in self._connection.execute(_COLUMNS, (table,), prepare_flags=OURS)}
        name = next((name for name in ("rowid", "_rowid_", "oid") if name not in columns), None)
        quoted = table.replace('"', '""')
        return f'SELECT max({name}) AS last FROM "{quoted}"' if name else ""
