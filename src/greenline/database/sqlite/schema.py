"""What the schema says that is asked for again and again, found out once after each change of it."""

from __future__ import annotations

import apsw

from greenline.database.sqlite.rows import Plan, Text, plan_of
from greenline.database.sqlite.tables import NAMES, OURS, PREFIX

_SPECIAL = """
SELECT EXISTS (
    SELECT 1 FROM sqlite_schema WHERE sql LIKE '%deferred%' OR sql LIKE '%changes%' OR sql LIKE '%virtual%'
)
"""
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
        if not self._is_known:
            ((is_special,),) = self._connection.execute(_SPECIAL, prepare_flags=OURS)
            self._is_plain = not is_special
            self._is_known = True
        return self._is_plain

    def why_not(self) -> str | None:
        """What a client has made of it that would be in our way: the authorizer is not told everything."""
        execute = self._connection.execute
        for (name,) in execute(_NAMES, prepare_flags=OURS).fetchall():
            if name not in NAMES:
                return f"names that begin with {PREFIX} are Greenline's own"
        if execute(_REFERENCES, prepare_flags=OURS).fetchall():
            return f"a key that refers to a table of Greenline's own ({PREFIX}...) would be in its way"
        return None
