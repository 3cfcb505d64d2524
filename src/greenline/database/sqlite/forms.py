"""Forms: what is known of a statement from its text, found out once, when it is prepared for the first time.

None of it changes with the schema: whether it gives rows, whether it only reads, whether it is one statement.
"""

from __future__ import annotations

import re
from typing import Any

import apsw
import msgspec

from greenline.database.sqlite.failures import Fails, misuse
from greenline.database.sqlite.permissions import OF_FTS5
from greenline.database.sqlite.rows import Text, text_of
from greenline.database.sqlite.tables import FOREIGN, SEQUENCES
from greenline.kernel.statements import Parameters

MOST = 2_000
"""Forms that are kept."""
_CHANGES_ROWS = re.compile(r"\s*(insert|replace|update|delete)\b", re.IGNORECASE)
_COUNTERS = re.compile(r"changes\s*\(", re.IGNORECASE)


class Form(msgspec.Struct, frozen=True, gc=False):
    is_readonly: bool
    has_rows: bool
    is_explain: bool
    changes_rows: bool
    """It inserts, updates or deletes, and does not change the schema."""
    may_run: bool
    """It may be executed together with others (`runs`)."""
    rows: Text | None
    """It is a plain insert: perhaps many are one statement."""
    may_number_tables: bool
    """It names the table in which SQLite keeps the last number of each AUTOINCREMENT."""


class Forms:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, Form] = {}
        self.get = self._known.get

    def of(self, sql: str, parameters: Parameters, *, is_afresh: bool = False) -> Form:
        """Prepares it, if it was not seen before or is to be seen afresh, and raises what is wrong with it."""
        known = self._known.get(sql)
        if known is not None and not is_afresh:
            return known
        text, form = self._looked_at(sql, parameters, can_cache=not is_afresh)
        if self._has_more(sql[len(text) :]):
            raise Fails(misuse("OneStatement", "there is more after the first statement: send each as one of its own"))
        if OF_FTS5 in sql.lower():
            raise Fails(misuse("NotHere", f"{OF_FTS5} is about one replica, not about what all have in common"))
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[sql] = form
        return form

    def columns(self, sql: str, parameters: Parameters) -> tuple[str, ...]:
        """Of a statement that gave no rows, which therefore does not say."""
        columns: list[tuple[str, ...]] = []

        def look(cursor: apsw.Cursor, _: str, __: Any) -> bool:
            columns.append(names(cursor))
            return False

        self._prepare(sql, parameters, look, can_cache=False)
        return columns[0]

    def _looked_at(self, sql: str, parameters: Parameters, *, can_cache: bool) -> tuple[str, Form]:
        seen: list[tuple[str, Form]] = []

        def look(cursor: apsw.Cursor, text: str, _: Any) -> bool:
            changes_rows = _CHANGES_ROWS.match(sql) is not None and not cursor.is_explain
            has_rows = bool(cursor.get_description())
            numbers = SEQUENCES in sql.lower()
            may_run = changes_rows and not has_rows and not numbers and _COUNTERS.search(sql) is None
            rows = text_of(sql) if may_run else None
            form = Form(cursor.is_readonly, has_rows, bool(cursor.is_explain), changes_rows, may_run, rows, numbers)
            seen.append((text, form))
            return False

        self._prepare(sql, parameters, look, can_cache=can_cache)
        return seen[0]

    def _has_more(self, rest: str) -> bool:
        if not rest.strip():
            return False
        is_statement: list[bool] = []

        def look(cursor: apsw.Cursor, _: str, __: Any) -> bool:
            is_statement.append(cursor.has_vdbe)
            return False

        try:
            self._prepare(rest, None, look, can_cache=False)
        except apsw.Error:
            return True
        return any(is_statement)

    def _prepare(self, sql: str, parameters: Parameters | None, look: apsw.ExecTracer, can_cache: bool) -> None:
        cursor = self._connection.cursor()
        cursor.exec_trace = look
        try:
            cursor.execute(sql, parameters, can_cache=can_cache, prepare_flags=FOREIGN)
        except apsw.ExecTraceAbort:
            return
        finally:
            cursor.close()


def names(cursor: apsw.Cursor) -> tuple[str, ...]:
    return tuple(column[0] for column in cursor.get_description())
