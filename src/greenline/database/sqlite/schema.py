"""What the schema says that is asked for again and again, found out once after each change of it."""

from __future__ import annotations

import apsw

from greenline.database.sqlite.rows import Plan, Text, plan_of
from greenline.database.sqlite.tables import NAMES, OURS, PREFIX, SEQUENCES

_SPECIAL = f"""
SELECT
    EXISTS (SELECT 1 FROM sqlite_schema WHERE sql LIKE '%deferred%' OR sql LIKE '%changes%' OR sql LIKE '%virtual%'),
    EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND sql LIKE '%{SEQUENCES}%')
"""
_HIGHEST = f"SELECT max(rowid) FROM {SEQUENCES}"
_HIGH = 1 << 62
"""SQLite numbers rows from the highest on, and by chance when there is no higher number."""
_NAMES = f"SELECT name FROM sqlite_schema WHERE lower(name) LIKE '{PREFIX.replace('_', '@_')}%' ESCAPE '@'"
_REFERENCES = f"""
SELECT s.name FROM sqlite_schema s, pragma_foreign_key_list(s.name) f
WHERE s.type = 'table' AND lower(f."table") LIKE '{PREFIX.replace("_", "@_")}%' ESCAPE '@'
"""


MOST_PLANS = 2_000
"""That are kept."""


class Schema:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._is_known = False
        self._is_plain = False
        self._may_number_tables = False
        self._plans: dict[Text, Plan | None] = {}

    def has_changed(self) -> None:
        self._is_known = False
        self._plans.clear()

    def plan_of(self, text: Text) -> Plan | None:
        """How rows are inserted together."""
        if text not in self._plans:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            self._plans[text] = plan_of(text, self._connection)
        return self._plans[text]

    @property
    def is_plain(self) -> bool:
        """Actions may be executed together: nothing in it tells whether they were.

        Deferred keys, triggers that count changes, and virtual tables, which write what they have gathered when a
        savepoint ends, do.
        """
        self._know()
        return self._is_plain

    @property
    def may_number_tables(self) -> bool:
        """Some trigger names the table of AUTOINCREMENT's numbers."""
        self._know()
        return self._may_number_tables

    def are_tables_numbered_low(self) -> bool:
        """Of that table, no row has a rowid after which SQLite might draw one by chance; no hook tells of it."""
        try:
            highest = self._connection.execute(_HIGHEST, prepare_flags=OURS).get
        except apsw.SQLError:
            return True  # there is no such table
        return highest is None or highest < _HIGH

    def _know(self) -> None:
        if not self._is_known:
            ((is_special, may_number),) = self._connection.execute(_SPECIAL, prepare_flags=OURS)
            self._is_plain = not is_special and not may_number
            self._may_number_tables = bool(may_number)
            self._is_known = True

    def why_not(self) -> str | None:
        """What a client has made of it that would be in our way: the authorizer is not told everything."""
        execute = self._connection.execute
        for (name,) in execute(_NAMES, prepare_flags=OURS).fetchall():
            if name not in NAMES:
                return f"names that begin with {PREFIX} are Greenline's own"
        if execute(_REFERENCES, prepare_flags=OURS).fetchall():
            return f"a key that refers to a table of Greenline's own ({PREFIX}...) would be in its way"
        return None
