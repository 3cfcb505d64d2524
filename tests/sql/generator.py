"""Ten thousand statements from a seed: each is tried on plain SQLite at once, so that the next can build on it.

Most make sense and some are wrong on purpose. An action is one statement as a rule, sometimes several; a run is the
same statement many times with other parameters, as a client that loads rows would send.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from greenline.kernel.statements import Failure, Statement
from tests.sql.changes import Changes
from tests.sql.definitions import Definitions
from tests.sql.model import ORDINARY, Schema, schema_of
from tests.sql.pen import Pen, Style, quoted
from tests.sql.plain import Plain, Said, rows
from tests.sql.queries import Queries
from tests.sql.wrong import Wrong, unlike

LARGE = 30
"""So many rows are enough for a table."""
FEWEST_TABLES = 3
BROKEN = re.compile(r"error in (?P<type>view|trigger) (?P<name>.+?)(?: after \w+)?: ")
DANGLING = re.compile(r"no such table: main\.(.+)|foreign key mismatch - .* referencing \"(.+)\"")
"""A view, a trigger or a foreign key that refers to what is gone: whatever touches it fails."""
REFERRING = (
    "SELECT type, name FROM sqlite_schema WHERE sql LIKE ? AND type IN ('trigger', 'table') ORDER BY type DESC, name"
)
LITERAL_ONLY = ("CREATE", "ALTER", "DROP", "PRAGMA")
AROUND = ("{};", "  {} ; ", "-- why\n{}", "/* why */ {} /* really */", "{} -- why", "\n\t{};;")


@dataclass(frozen=True, slots=True)
class Tried:
    """An action, and what SQLite said to it."""

    kind: str
    action: tuple[Statement, ...]
    said: Said

    @property
    def is_done(self) -> bool:
        return not isinstance(self.said, Failure)


class Generator:
    def __init__(self, seed: int) -> None:
        self._pen = Pen(seed)
        self.plain = Plain()
        self._complaint = ""
        """The last error."""
        self._version = self.plain.db.execute("PRAGMA schema_version").get
        self._learn(Schema())

    def _learn(self, schema: Schema) -> None:
        self._schema = schema
        queries = Queries(self._pen, schema)
        self._changes = changes = Changes(self._pen, schema, queries)
        self._definitions = definitions = Definitions(self._pen, schema, queries, changes)
        self._wrong = Wrong(self._pen, schema)
        self._kinds: dict[Callable[[], str], float] = {
            **{definitions.table: 2, definitions.table_selected: 1, definitions.virtual: 1, definitions.alter: 2},
            **{definitions.view: 1.5, definitions.index: 2, definitions.trigger: 2.5, definitions.upkeep: 1},
            **{definitions.drop_table: 0.5},
            **{changes.insert: 14, changes.insert_otherwise: 4, changes.replace: 2, changes.insert_default: 1},
            **{changes.insert_selected: 4, changes.upsert: 5, changes.update: 7, changes.update_from: 2},
            **{changes.update_pair: 1, changes.delete: 3, changes.returning: 4, changes.with_common: 2},
            **{changes.view: 2, changes.virtual: 4},
            **{queries.simple: 8, queries.star: 2, queries.alone: 4, queries.aggregates: 4, queries.compound: 3},
            **{queries.windows: 3, queries.common: 3, queries.recursive: 2, queries.documents: 1, queries.search: 2},
            **{queries.values: 1, queries.about: 1.5},
        }

    def script(self, statements: int) -> Iterator[Tried]:
        """Actions with at least so many statements."""
        written = 0
        while written < statements:
            for tried in self._next():
                written += len(tried.action)
                yield tried

    def _next(self) -> Iterator[Tried]:
        if len(self._schema.of_kind(ORDINARY)) < FEWEST_TABLES:
            yield self._tried("table", (self._pen.statement(self._definitions.table(), Style.LITERAL),))
        elif large := self._large():
            yield self._tried("delete_most", (Statement(large),))
        elif mending := self._mending():
            yield self._tried("mend", (Statement(mending),))
        elif self._pen.is_lucky(16):
            yield self._tried("wrong", (self._wrong.statement(),))
        elif self._pen.is_lucky(40):
            yield from self._run()
        elif self._pen.is_lucky(60):
            yield self._tried("child_first", tuple(map(self._pen.statement, self._changes.child_first())))
        elif self._pen.is_lucky(14):
            several = tuple(self._one()[1] for _ in range(self._pen.between(2, 5)))
            yield self._tried("several", several)
        else:
            kind, statement = self._one()
            yield self._tried(kind, (statement,))

    def _one(self) -> tuple[str, Statement]:
        write = self._pen.weighted(self._kinds)
        sql = write()
        is_literal = sql.startswith(LITERAL_ONLY)
        kind = f"{type(write.__self__).__name__.lower()}.{write.__name__}"  # type: ignore[attr-defined]
        around = self._pen.pick(AROUND) if self._pen.is_lucky(20) else "{}"
        return kind, self._pen.statement(around.replace("{}", sql), Style.LITERAL if is_literal else None)

    def _run(self) -> Iterator[Tried]:
        """The same statement over and over; now and then its parameters do not fit."""
        changes = self._changes
        write = self._pen.pick((changes.insert, changes.insert, changes.upsert, changes.update, changes.returning))
        first = self._pen.statement(write(), Style.POSITIONAL)
        assert isinstance(first.parameters, tuple)
        for _ in range(self._pen.between(3, 40)):
            parameters = self._pen.likes_of(first.parameters)
            if self._pen.is_lucky(60):
                parameters = unlike(self._pen, parameters)
            yield self._tried("run", (Statement(first.sql, parameters),))

    def _tried(self, kind: str, action: tuple[Statement, ...]) -> Tried:
        tried = Tried(kind, action, self.plain.run(action))
        self._complaint = tried.said.message if isinstance(tried.said, Failure) else ""
        if self._version != (version := self.plain.db.execute("PRAGMA schema_version").get):
            self._version = version
            self._learn(schema_of(self.plain.db))
        return tried

    def _large(self) -> str | None:
        """A table that has grown too large, if the one that is looked at has."""
        table = self._pen.pick(self._schema.of_kind(ORDINARY))
        ((count,),) = rows(self.plain.db, f"SELECT count(*) FROM {table.sql}")
        return self._changes.delete_most(table) if count > LARGE else None

    def _mending(self) -> str | None:
        """Drop what refers to nothing, if that was complained of last."""
        if broken := BROKEN.match(self._complaint):
            return f"DROP {broken['type']} {quoted(broken['name'])}"
        if dangling := DANGLING.match(self._complaint):
            gone = f"%{dangling[1] or dangling[2]}%"
            return next(
                (f"DROP {type_} {quoted(name)}" for type_, name in rows(self.plain.db, REFERRING, (gone,))), None
            )
        return None
