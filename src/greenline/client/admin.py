"""What administrators ask: who may use the cluster, who its replicas are, and how much each counts.

These have no identity of their own: one whose connection is lost is not asked again, but raises `OutcomeUnknown`. Only
`leave` and `remove` are, because to leave twice is to leave.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable

from greenline.access import passwords, wire
from greenline.client.answers import outcome_error
from greenline.client.errors import InterfaceError, InternalError
from greenline.client.questions import Questions
from greenline.kernel.database import Activate, Expire
from greenline.kernel.statements import Member, Role
from greenline.replication.port import Leave, Weigh

ROLES = ("read", "write", "admin")


class Admin:
    def __init__(self, questions: Questions, check: Callable[[], None]) -> None:
        self._questions = questions
        self._check = check

    async def create_user(self, name: str, password: str, role: str = "write") -> wire.Done:
        """Or give an old one a new password or role."""
        if role not in ROLES:
            raise InterfaceError(f"role={role!r}: write one of {', '.join(ROLES)}")
        if not name or not 0 < len(password.encode()) <= passwords.MOST_BYTES:
            raise InterfaceError(f"a user needs a name, and a password of 1 to {passwords.MOST_BYTES} bytes")
        salt = secrets.token_bytes(passwords.SALT_BYTES)
        verifier = await asyncio.to_thread(passwords.verifier, password, salt)  # slow, on purpose
        return await self._appoint(Role(name, role, verifier))

    async def drop_user(self, name: str) -> wire.Done:
        return await self._appoint(Role(name, "read", ""))

    async def place(self, name: str, *, address: str, admin: str, clients: str) -> wire.Done:
        """Say where a replica is reached: by its peers, by administrators, by clients."""
        return await self._appoint(Member(name, address, admin, clients))

    async def leave(self, server: str) -> wire.Done:
        """This replica goes for good; all that it has accepted is ordered."""
        return await self._administer(Leave(server))

    async def remove(self, server: str) -> wire.Done:
        """This replica is dead; what it has accepted, and nobody else knows of, has no effect any more."""
        return await self._administer(Leave(server, is_void=True))

    async def weigh(self, server: str, weight: int) -> wire.Done:
        return await self._administer(Weigh(server, weight))

    async def expire(self, before: int) -> wire.Done:
        """End all sessions that were not used since this position."""
        return await self._administer(Expire(before))

    async def activate(self, name: str, version: int, digest: bytes) -> wire.Done:
        return await self._administer(Activate(name, version, digest))

    async def survive(self, survivors: Iterable[str], dead: Iterable[str], reason: str) -> wire.Done:
        """The majority is lost for good. What only the dead have is lost, and none of them may come back."""
        everybody = tuple(survivors), tuple(dead)
        return _done(await self._ask(lambda ticket: wire.Survive(ticket, *everybody, reason)))

    async def _appoint(self, change: Role | Member) -> wire.Done:
        return _done(await self._ask(lambda ticket: wire.Appoint(ticket, change)))

    async def _administer(self, change: Leave | Weigh | Activate | Expire) -> wire.Done:
        return _done(await self._ask(lambda ticket: wire.Administer(ticket, change)))

    async def _ask(self, message_of: Callable[[int], wire.Administer | wire.Appoint | wire.Survive]) -> wire.Answer:
        self._check()
        return await self._questions.ask(message_of)


def _done(answer: wire.Answer) -> wire.Done:
    if not isinstance(answer, wire.Done):
        raise InternalError(f"a node answered a change of the cluster with {type(answer).__name__}")
    for outcome in answer.outcomes:
        if (error := outcome_error(outcome)) is not None:
            raise error
    return answer
