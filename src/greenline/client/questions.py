"""Questions: what is asked of a node and answered once. Those that change nothing are asked again, of whoever is there,
until they are answered. A change of the cluster itself has no identity, and is asked once; but for a replica's leave,
which happens once however often it is asked for, since names are never used again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from greenline.access import wire
from greenline.client.connection import Connection
from greenline.client.errors import InterfaceError, OutcomeUnknown, refusal_of
from greenline.client.patience import TRIES, is_about_the_node, pause_s
from greenline.replication.port import Leave

Asked = wire.Read | wire.Digests | wire.Administer | wire.Appoint | wire.Survive


class Question:
    __slots__ = ("answer", "is_sent", "message", "refusals")

    def __init__(self, message: Asked) -> None:
        self.message = message
        self.answer: asyncio.Future[wire.Answer] = asyncio.get_running_loop().create_future()
        self.is_sent = False
        self.refusals = 0

    @property
    def may_be_repeated(self) -> bool:
        match self.message:
            case wire.Read() | wire.Digests() | wire.Administer(change=Leave()):
                return True
            case _:
                return False

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Questions:
    def __init__(self, tickets: Iterator[int]) -> None:
        self._tickets = tickets
        self._open: dict[int, Question] = {}
        self._connection: Connection | None = None

    @property
    def is_waiting(self) -> bool:
        return bool(self._open)

    async def ask(self, message_of: Callable[[int], Asked]) -> wire.Answer:
        """Raises `Refused`; or `OutcomeUnknown`, of what may not be repeated. Cancelled, it is withdrawn."""
        ticket = next(self._tickets)
        question = self._open[ticket] = Question(message_of(ticket))
        self._send(question)
        try:
            return await question.answer
        finally:
            if self._open.pop(ticket, None) is not None and self._connection is not None:
                self._connection.send(wire.Enough(ticket))

    def attach(self, connection: Connection) -> None:
        self._connection = connection
        for question in self._open.values():
            self._send(question)

    def detach(self) -> None:
        self._connection = None
        for ticket, question in list(self._open.items()):
            if question.is_sent and not question.may_be_repeated:
                del self._open[ticket]
                what = type(question.message).__name__
                question.fail(
                    OutcomeUnknown(f"{what}: the connection was lost before the answer; look what has become")
                )

    def close(self, reason: str) -> None:
        self.detach()
        for question in self._open.values():
            question.fail(InterfaceError(reason))
        self._open.clear()

    def on_answer(self, answer: wire.Answer) -> None:
        """What nobody waits for any more is dropped."""
        ticket = answer.ticket if not isinstance(answer, wire.Welcome) else 0
        question = self._open.get(ticket)
        if question is None:
            return
        match answer:
            case wire.No() if answer.is_retriable and question.may_be_repeated and _is_patient(question.message):
                self._ask_again(question, answer)
            case wire.No():
                del self._open[ticket]
                question.fail(refusal_of(answer.kind, answer.reason))
            case wire.Lost() if question.may_be_repeated:
                self._leave(answer.reason)
            case wire.Lost():
                del self._open[ticket]
                question.fail(OutcomeUnknown(answer.reason))
            case wire.Taken():
                pass  # the change is accepted; its outcome follows
            case _:
                del self._open[ticket]
                if not question.answer.done():
                    question.answer.set_result(answer)

    def _send(self, question: Question) -> None:
        if self._connection is not None:
            question.is_sent = True
            self._connection.send(question.message)

    def _ask_again(self, question: Question, no: wire.No) -> None:
        question.refusals += 1
        if is_about_the_node(no) or question.refusals > TRIES:
            question.refusals = 0
            self._leave(no.reason)
            return
        pause = pause_s(question.refusals)
        asyncio.get_running_loop().call_later(pause, self._send_to, self._connection, question)

    def _send_to(self, connection: Connection | None, question: Question) -> None:
        if connection is self._connection and question.message.ticket in self._open:
            self._send(question)

    def _leave(self, reason: str) -> None:
        """Ask elsewhere."""
        if self._connection is not None:
            self._connection.abandon(reason)


def _is_patient(message: Asked) -> bool:
    return not isinstance(message, wire.Read) or message.is_patient
