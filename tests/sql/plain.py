"""SQLite as everybody has it: one connection, each action a transaction. What Greenline does is measured against it."""

from __future__ import annotations

from pathlib import Path

import apsw

from greenline.kernel.statements import Failure, Result, Statement, Value
from tests.sql.pen import quoted

Said = tuple[Result, ...] | Failure
"""What an action came to."""
NOT_OF_SQLITE = 0
"""The code of a failure that is found before SQLite is asked: parameters that fit no `?`, text that is no text."""


class Plain:
    def __init__(self, path: Path | None = None) -> None:
        self.db = apsw.Connection(str(path or ":memory:"))
        self.db.execute("PRAGMA foreign_keys = ON")

    def run(self, action: tuple[Statement, ...]) -> Said:
        """All or nothing. Deferred foreign keys are looked at behind the last statement."""
        self.db.execute("SAVEPOINT action")
        self.db.set_last_insert_rowid(0)
        results: list[Result] = []
        try:
            results.extend(map(self._result, action))
            self.db.execute("RELEASE action")
        except apsw.BindingsError as error:
            return self._undone(NOT_OF_SQLITE, error, len(results))
        except apsw.Error as error:
            code = getattr(error, "extendedresult", NOT_OF_SQLITE)
            return self._undone(code, error, len(results))
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            return self._undone(NOT_OF_SQLITE, error, len(results))
        return tuple(results)

    def _undone(self, code: int, error: Exception, statement: int) -> Failure:
        if self.db.in_transaction:
            self.db.execute("ROLLBACK TO action; RELEASE action")
        return Failure(code, type(error).__name__, str(error), statement)

    def _result(self, statement: Statement) -> Result:
        columns: tuple[str, ...] = ()

        def described(cursor: apsw.Cursor, _sql: str, _parameters: object) -> bool:
            nonlocal columns
            columns = columns or tuple(name for name, *_ in cursor.get_description())
            return True

        before = self.db.total_changes()
        cursor = self.db.cursor()
        cursor.exec_trace = described
        rows = tuple(cursor.execute(statement.sql, statement.parameters))
        changes = self.db.changes() if self.db.total_changes() != before else 0
        return Result(changes, self.db.last_insert_rowid(), columns, rows)


def rows(db: apsw.Connection, sql: str, parameters: tuple[Value, ...] = ()) -> list[tuple[Value, ...]]:
    return db.execute(sql, parameters).fetchall()


def content_of(db: apsw.Connection) -> dict[str, list[tuple[Value, ...]]]:
    """All that a database says of itself: its schema, and the rows of each table, ours left out."""
    found = {"schema": rows(db, _SCHEMA), "damage": rows(db, "PRAGMA integrity_check")}
    found["user_version"] = rows(db, "PRAGMA user_version")
    for name, without_rowid in rows(db, _TABLES):
        columns = rows(db, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden != 1", (name,))
        # As bytes: not everything that is stored as text is text.
        told = [part for (column,) in columns for part in _told(quoted(column))]
        order = "rowid" if not without_rowid else ", ".join(str(number + 1) for number in range(len(told)))
        rowid = [] if without_rowid else ["rowid"]
        found[name] = rows(db, f"SELECT {', '.join(rowid + told)} FROM {quoted(name)} ORDER BY {order}")
    return found


def _told(column: str) -> tuple[str, str]:
    return f"typeof({column})", f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"


_OURS = "name LIKE 'greenline!_%' ESCAPE '!' OR tbl_name LIKE 'greenline!_%' ESCAPE '!'"
_SCHEMA = f"SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE NOT ({_OURS}) ORDER BY type, name"
_TABLES = (
    "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')"
    " AND name != 'sqlite_schema' AND name NOT LIKE 'greenline!_%' ESCAPE '!' ORDER BY name"
)
