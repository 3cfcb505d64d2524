"""The log feed: the order as it stands and as it grows, told to whoever follows it, no faster than they take it.

Who is no administrator is not shown what others' passwords are checked against: actions that appoint users are told
without. Everything else is told byte for byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from greenline.access import wire
from greenline.kernel.actions import Action, pack, unpack
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import Body, Role, body_of, encode
from greenline.node.edge import Desk, Discarded, Limits

HIDDEN = "hidden"
"""Instead of a verifier; none at all would say that the user is dropped."""
_A_VERIFIER = b"scrypt$"


class Feed:
    """One who follows: each turn of the loop tells one piece, while the client takes what it is sent."""

    def __init__(self, desk: Desk, limits: Limits, asked: wire.Log, *, is_admin: Callable[[], bool]) -> None:
        self.ticket = asked.ticket
        self._next = max(1, asked.first)
        self._last = asked.last
        self._desk = desk
        self._limits = limits
        self._is_admin = is_admin

    def turn(self) -> wire.Ordered | wire.No | None:
        """The next piece, if the order has grown so far."""
        if self._last is not None and self._next > self._last:
            return wire.Ordered(self.ticket, (), is_end=True, digest=self._digest(self._next - 1))
        try:
            found = self._desk.ordered(self._next, self._limits.log_bytes)
        except Discarded as error:
            return wire.No(self.ticket, "discarded", str(error))
        if not found:
            return None
        wanted = [each for each in found if self._last is None or each.position <= self._last]
        before = self._digest(self._next - 1)
        self._next = wanted[-1].position + 1
        bundles = tuple(wanted) if self._is_admin() else tuple(map(without_verifiers, wanted))
        is_end = self._last is not None and self._next > self._last
        return wire.Ordered(self.ticket, bundles, is_end, self._digest(self._next - 1), before)

    def _digest(self, position: int) -> bytes:
        return self._desk.order_digest(position) if position <= self._desk.durable_green else b""


class Feeds:
    """All that are followed on one connection, in turn."""

    def __init__(self, send: Callable[[wire.Answer], None], is_clogged: Callable[[], bool]) -> None:
        self._send = send
        self._is_clogged = is_clogged
        self._feeds: dict[int, Feed] = {}
        self._turn: asyncio.Handle | None = None

    def __contains__(self, ticket: int) -> bool:
        return ticket in self._feeds

    def __len__(self) -> int:
        return len(self._feeds)

    def follow(self, feed: Feed) -> None:
        self._feeds[feed.ticket] = feed
        self.go_on()

    def stop(self, ticket: int) -> None:
        self._feeds.pop(ticket, None)

    def close(self) -> None:
        self._feeds.clear()
        if self._turn is not None:
            self._turn.cancel()

    def go_on(self) -> None:
        """The order has grown, or the client has taken what it was sent."""
        if self._feeds and self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn = None
        if self._is_clogged():
            return
        has_told = False
        for ticket, feed in list(self._feeds.items()):
            told = feed.turn()
            if told is None:
                continue
            if isinstance(told, wire.No) or told.is_end:
                del self._feeds[ticket]
            self._send(told)
            has_told = True
        if has_told:
            self.go_on()


def without_verifiers(bundle: wire.Bundle) -> wire.Bundle:
    if not any(_A_VERIFIER in chunk for chunk in bundle.actions):
        return bundle
    return msgspec.structs.replace(bundle, actions=tuple(_without(chunk) for chunk in bundle.actions))


def _without(chunk: bytes) -> bytes:
    try:
        return pack(tuple(_stripped(action) for action in unpack(chunk)))
    except Garbled:
        return chunk


def _stripped(action: Action) -> Action:
    """The same, unless it appoints somebody."""
    try:
        body: Body | None = body_of(action.body)
    except Garbled:
        body = None
    if not isinstance(body, Role):
        return action
    return msgspec.structs.replace(action, body=encode(msgspec.structs.replace(body, verifier=HIDDEN)))
