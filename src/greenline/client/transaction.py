"""Interactive transactions: statements one after the other, each with its result, decided together at the end.

Nothing is locked. Every statement is tried on the state of the client's node, after those before it, and undone; what
it came to is kept. At the end all of them are one action, which says what each had come to: at its place in the order
they are run again, and if any comes to something else nothing happens, and `SerializationFailure` is raised. Whoever
then begins anew (`Client.run` does) sees the newer state. What is read again is the question: so phantoms are found.

Ids of inserted rows are provisional: nobody relies on one unless the statement returns it (`RETURNING id`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol

from greenline.access import wire
from greenline.client import work
from greenline.client.answers import Written, failure_of, result_of
from greenline.client.errors import Error, InterfaceError, NotSupportedError, OperationalError, SerializationFailure
from greenline.client.work import Given
from greenline.kernel.statements import Result, Statement

MOST_TRIED = 100
"""Each statement has all before it tried again."""
_READS_ONLY = re.compile(r"\s*(SELECT|VALUES|EXPLAIN)\b", re.IGNORECASE)
_FOREIGN_KEY = 787
"""A deferred foreign key is looked at when the action ends: no trial comes so far."""


class Database(Protocol):
    async def ask(self, request: bytes, *, consistency: str = ..., timeout: float | None = ...) -> wire.Rows: ...
    async def write(
        self, body: bytes, *, level: str = ..., wait: str = ..., timeout: float | None = ...
    ) -> Written: ...


class Transaction:
    def __init__(self, db: Database, level: str, timeout: float | None) -> None:
        self._db = db
        self._level = level
        self._timeout = timeout
        self._at = work.moment()
        self._statements: list[Statement] = []
        self._tried = 0
        self._over = ""
        """Why nothing more can be done in it."""
        self._one_at_a_time = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        return not self._over

    async def execute(self, sql: str, parameters: Given = ()) -> Result:
        """What this comes to, after all before it. One that fails changes nothing, and the transaction goes on."""
        async with self._one_at_a_time:
            asked = work.statement(sql, parameters)
            result = await self._try((asked,))
            self._statements.append(Statement(asked.sql, asked.parameters, result.seen))
            return result

    async def executemany(self, sql: str, rows: Iterable[Given]) -> None:
        """The same statement for each of these. What each comes to is not told, and not relied on."""
        async with self._one_at_a_time:
            asked = tuple(work.statement(sql, row) for row in rows)
            if asked:
                await self._try(asked)
                self._statements.extend(asked)

    async def commit(self) -> Written | None:
        """All of it, at one place of the order; None if there was nothing but reading, which needs no place.

        What was only read was seen at one position: the last trial has asked all of it again.
        """
        async with self._one_at_a_time:
            self._check()
            self._over = "it was committed"
            if all(_READS_ONLY.match(each.sql) for each in self._statements):
                return None
            body = work.body(tuple(self._statements), self._at)
            try:
                return await self._db.write(body, level=self._level, timeout=self._timeout)
            except OperationalError:
                raise
            except Error as error:
                if error.code == _FOREIGN_KEY or not error.position:
                    raise
                # Each of them was tried, and did not fail then.
                what = f"what the transaction did is not possible any more ({error}); begin it anew"
                failure = SerializationFailure(what, position=error.position)
                failure.identity = error.identity
                raise failure from error

    def rollback(self) -> None:
        """Nothing of it has happened anywhere."""
        self._over = self._over or "it was rolled back"

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self.is_open:
            await self.commit()
        else:
            self.rollback()

    async def _try(self, asked: tuple[Statement, ...]) -> Result:
        self._check()
        if self._tried == MOST_TRIED:
            raise NotSupportedError(
                f"a transaction has at most {MOST_TRIED} statements: do with fewer, or write with batch or together"
            )
        request = work.trial((*self._statements, *asked), self._at)
        answer = await self._db.ask(request, consistency="session", timeout=self._timeout)
        failure = failure_of(answer)
        try:
            if failure is not None and failure.statement < len(self._statements):
                what = f"statement {failure.statement + 1} of the transaction fails by now ({failure.message})"
                raise SerializationFailure(f"{what}; begin it anew", position=answer.position)
            result = result_of(answer)
        except SerializationFailure as error:
            self._over = str(error)
            raise
        self._tried += 1
        return result

    def _check(self) -> None:
        if self._over:
            raise InterfaceError(f"the transaction is over: {self._over}")
