"""The processor: what all phases know. A ring is one configuration with what we have of it.

The processor keeps the ring of the configuration that was installed last through any number of attempts to form the
next one; of a failed attempt only recovered messages, what is known to be safe, and obligations survive (5.2.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from greenline.kernel.effects import Append, Barrier, CancelTimer, Effect
from greenline.kernel.identities import ConfId, Configuration, ProcId, in_order
from greenline.ring.flow import Flow
from greenline.ring.messages import Ceiling, Regular, RegularToken
from greenline.ring.pace import Pace
from greenline.ring.packing import Queue, Unpacking
from greenline.ring.settings import Reach, Settings

COUNTERS_AT_ONCE = 64
"""By how many the ceiling rises: so many configurations cost one forced write."""


class Timer(StrEnum):
    TOKEN_LOSS = "token loss"
    TOKEN_RETRANSMIT = "token retransmit"
    IDLE_HOLD = "idle hold"
    PROBE = "probe"
    GATHER = "gather"
    COMMIT = "commit"
    JOIN_RETRANSMIT = "join retransmit"
    FORM_LOSS = "form loss"
    FORM_RETRANSMIT = "form retransmit"


class Holdoff(NamedTuple):
    """For how long somebody is not tried again, and until when."""

    length: float
    until: float


@dataclass(slots=True)
class Ring:
    """A configuration, in ring order, and what we have of its messages (5.2.1)."""

    conf_id: ConfId
    order: tuple[ProcId, ...]
    incarnations: dict[ProcId, int]
    me: ProcId
    flow: Flow

    store: dict[int, Regular] = field(default_factory=dict)
    """Packets that we hold and that somebody may still lack, or that we have not delivered."""
    my_aru: int = 0
    high_seq: int = 0
    """The highest number that we know was given away."""
    safe_line: int = 0
    """Every member has all up to here, and we know it."""
    delivered: int = 0
    """All up to here was delivered, in the regular configuration."""
    discarded: int = 0
    """All up to here has left the store."""
    unpacking: Unpacking = field(default_factory=Unpacking)

    is_alive: bool = True
    """Does its token still go round, as far as we know?"""
    last_token: RegularToken | None = None
    """The token as we released it, to be sent again."""
    last_token_seq: int = 0
    released_at: float | None = None
    heard_at: float = 0.0
    """When the token was last at work, as far as we know: it was here, or somebody said something new."""
    loss_after: float = 0.0
    """How long it may be out of our hearing before it counts as lost."""
    resent: int = 0
    is_passed: bool = False
    """Is there a sign that it arrived?"""
    asked: set[int] = field(default_factory=set)
    """What we asked for on the last visit."""
    attempt: int = 0
    """How often we asked in vain: who should answer next."""
    held_back_at: tuple[int, ProcId | None] | None = None
    held_back: int = 0
    """For how many visits the same member holds `aru` back at the same place."""
    quiet: int = 0
    """The representative: for how many rotations nothing was said."""
    held: RegularToken | None = None
    """The representative of an idle ring: the token, while we hold it."""
    is_hurried: bool = False

    @property
    def representative(self) -> ProcId:
        return self.conf_id.rep

    @property
    def is_alone(self) -> bool:
        return len(self.order) == 1

    @property
    def successor(self) -> ProcId:
        return self.order[(self.order.index(self.me) + 1) % len(self.order)]

    @property
    def conf(self) -> Configuration:
        return Configuration(self.conf_id, in_order(self.order))

    def keep(self, packet: Regular) -> None:
        """Hold a packet, and see how far we have all of them."""
        self.store[packet.seq] = packet
        self.high_seq = max(self.high_seq, packet.seq)
        while self.my_aru + 1 in self.store:
            self.my_aru += 1

    def lacks(self, up_to: int) -> list[int]:
        return [seq for seq in range(self.my_aru + 1, up_to + 1) if seq not in self.store]


@dataclass(slots=True)
class Processor:
    me: ProcId
    incarnation: int
    settings: Settings
    queue: Queue
    pace: Pace
    ring: Ring
    my_counter: int
    """The highest counter of a configuration that we have installed or agreed to."""
    ceiling: int
    """No counter up to here is used in a later life..."""
    ceiling_ticket: int = 0
    """...once this barrier is durable."""
    durable_ticket: int = 0
    my_obligation: frozenset[ProcId] = frozenset()
    join_seq: int = 0
    unheard: dict[ProcId, Holdoff] = field(default_factory=dict)
    """Strangers that did not answer. Who shows that it hears us is tried again at once."""
    unmatched: dict[ProcId, Holdoff] = field(default_factory=dict)
    """Strangers with whom a ring was agreed upon and could not be formed: somebody cannot hear somebody."""
    attempted: set[ProcId] = field(default_factory=set)
    """With whom we tried to form a ring in vain since the last configuration."""
    met: dict[ProcId, int] = field(default_factory=dict)
    """The last life of everybody whom we heard."""
    told_of: dict[ProcId, float] = field(default_factory=dict)
    """Strangers that our representative was told of, and when."""
    failures: int = 0
    """Attempts at a new ring that have failed since the last configuration."""

    @property
    def represents(self) -> tuple[ProcId, ...]:
        """For whom we negotiate: our ring while it is alive and we are its representative; or for ourselves alone."""
        if self.ring.is_alive and self.ring.representative == self.me:
            return self.ring.order
        return (self.me,)

    @property
    def is_representative(self) -> bool:
        return self.ring.representative == self.me or not self.ring.is_alive

    def reach(self, members: tuple[ProcId, ...]) -> tuple[ProcId, ...] | None:
        return None if self.settings.reach is Reach.MULTICAST else members

    def new_ring(self, conf_id: ConfId, order: tuple[ProcId, ...], incarnations: dict[ProcId, int]) -> Ring:
        personal = self.ring.flow.personal
        return Ring(conf_id, order, incarnations, self.me, Flow(self.settings, personal))

    def secure(self, counter: int, out: list[Effect]) -> int | None:
        """The gate for what uses this counter: a later life must know that it was used."""
        if counter > self.ceiling:
            self.ceiling = counter + COUNTERS_AT_ONCE
            self.ceiling_ticket += 1
            out.append(Append(Ceiling(self.ceiling)))
            out.append(Barrier(self.ceiling_ticket))
        return self.ceiling_ticket if self.ceiling_ticket > self.durable_ticket else None

    def lose_ring(self, out: list[Effect]) -> None:
        """The token is lost: from now on we represent ourselves, and consume it should it come."""
        ring = self.ring
        if ring.is_alive:
            ring.is_alive = ring.is_alone
            if not ring.is_alone:
                ring.held = None
                out += map(CancelTimer, (Timer.TOKEN_LOSS, Timer.TOKEN_RETRANSMIT, Timer.IDLE_HOLD))
