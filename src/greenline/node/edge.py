"""The edge: what stands between a node's clients and its engine. Here are the seam and the limits.

Clients come in two ways, by the wire (`clients`) and by HTTP (`web`); both hand what they are asked to one `Desk`, on
the loop's thread, and are told there what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from greenline.access import wire
from greenline.kernel.actions import OutcomeOf
from greenline.kernel.statements import Reply, Value
from greenline.replication import port
from greenline.replication.port import Accepted, Answer, Change, Forced, Level, Reads, Replied, Unanswered, Where
from greenline.replication.queries import NO_PRIMARY

Told = Accepted | Replied | Answer | port.Refused | Unanswered | Forced
"""What a desk says, with the ticket that it gave."""
Listener = Callable[[Told], None]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What clients may take of a node."""

    connections: int = 2000
    """At once; the next one is told that the node is busy."""
    hello_s: float = 10.0
    """Until somebody has said who they are."""
    frame_bytes: int = 4 << 20
    """Of a request; it is opened and looked at in one go, and the ring waits meanwhile."""
    action_bytes: int = 1_000_000
    """Of an action's body."""
    outstanding: int = 1024
    """Requests of one connection that are not answered: whoever has more is not read from meanwhile."""
    outstanding_bytes: int = 64 << 20
    """The same, of what they hold."""
    unsent_bytes: int = 8 << 20
    """Answers that wait to be sent to one connection: whoever has more is not read from meanwhile."""
    most_unsent_bytes: int = 256 << 20
    """Whoever lets so many wait is cut off."""
    stuck_s: float = 60.0
    """Whoever takes nothing for so long, with that many answers waiting, is cut off."""
    password_checks: int = 256
    """Waiting at once; the next one is told that the node is busy."""
    recheck_s: float = 1.0
    """How often the roles of who is connected are looked up again."""
    log_bytes: int = 256 << 10
    """Of the order, in one answer."""
    http_connections: int = 256
    """At once; one more is closed."""
    http_bytes: int = 16 << 20
    """Of a body."""
    http_wait_s: float = 30.0
    """Until an answer is given up; what was asked for is not."""


class Discarded(Exception):
    """The order below this position is not kept here any more."""

    def __init__(self, low: int) -> None:
        super().__init__(f"the order is kept from position {low} on; begin there, or with a snapshot")
        self.low = low


class Declined(Exception):
    """Not what this client may ask for: its kind, as the wire names it, and what to do."""

    def __init__(self, kind: str, reason: str, *, is_retriable: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.is_retriable = is_retriable


class Desk(Protocol):
    """Where a node takes what its clients ask for. All of it on the loop's thread; `told` may be called at once."""

    @property
    def clients(self) -> dict[str, str]:
        """Where the members that the node's file names listen for clients."""
        ...

    @property
    def where(self) -> Where: ...
    @property
    def durable_green(self) -> int:
        """The green line that is on this node's disk."""
        ...

    @property
    def is_open(self) -> bool: ...
    @property
    def why_closed(self) -> str: ...
    @property
    def ending_before(self) -> int | None:
        """Sessions that were named before this position are about to end."""
        ...

    def submit(self, actions: bytes, count: int, level: Level, told: Listener, *, tell_taken: bool) -> int: ...
    def ask(self, request: bytes | OutcomeOf, reads: Reads, after: int, is_patient: bool, told: Listener) -> int: ...
    def reconfigure(self, change: Change, told: Listener) -> int: ...
    def force(self, survivors: tuple[str, ...], dead: tuple[str, ...], reason: str, told: Listener) -> int: ...
    def forget(self, ticket: int) -> None:
        """Nobody waits for this answer any more."""
        ...

    def look_up(self, sql: str, parameters: tuple[Value, ...], told: Callable[[Reply], None]) -> None:
        """A weak query of the node's own."""
        ...

    def ordered(self, first: int, most_bytes: int) -> list[wire.Bundle]:
        """The order from here on, as far as it is green and fits, at least one; none if it is not there yet.

        Raises `Discarded`.
        """
        ...

    def order_digest(self, position: int) -> bytes:
        """What the order comes to at a position that is kept."""
        ...

    def when_green(self, callback: Callable[[], None]) -> None:
        """Call this whenever the order has grown."""
        ...

    def digests(self, told: Callable[[int, bytes, bytes], None]) -> None:
        """The position, and what the order and the state come to there."""
        ...


def kind_of(refused: port.Refused) -> str:
    """What the wire calls it."""
    if refused.reason == NO_PRIMARY:
        return "no primary"
    return "unavailable" if refused.is_retriable else "refused"
