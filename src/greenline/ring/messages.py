"""Messages: what processors say to each other (5.2.1 and 5.2.2), and what the disk keeps.

Fields that the thesis does not have say why they are there. What does not fit these types is no message: it is
dropped and counted before any phase sees it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from greenline.kernel.identities import NAME, ConfId, ProcId
from greenline.kernel.ports import Service

Name = Annotated[ProcId, msgspec.Meta(pattern=NAME)]
ShortName = Annotated[ProcId, msgspec.Meta(min_length=1, max_length=32)]
"""A name as the hot path reads it: whose it is not is found out when it is looked up among the members."""
Count = Annotated[int, msgspec.Meta(ge=1, le=2**62)]
Seq = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]

MOST_NAMES = 256
"""A ring has at most so many members."""
MOST_RANGES = 64
"""How many ranges of missing messages a token carries; who lacks more asks again."""
Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_NAMES)]
Ranges = Annotated[tuple[tuple[Count, Count], ...], msgspec.Meta(max_length=8192)]
"""Numbers as ranges, first and last, sorted and apart from each other."""


_SAFE = Service.SAFE


class Message(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    pass


class Regular(Message, frozen=True):
    """A packet: whole messages of one sender and one service, or a part of a large one. It never changes."""

    conf_id: ConfId
    sender: ShortName
    incarnation: Count
    seq: Count
    service: Service
    first: Count
    """The number that its first message has among its sender's; the others follow."""
    part: Count
    parts: Count
    """Part 1 of 1: whole messages. Otherwise a part of the message `first`."""
    body: bytes
    """Opened only where it is delivered."""

    @property
    def is_safe(self) -> bool:
        """A message has its place where its last part is; the parts before it bind nobody."""
        return self.part == self.parts and self.service is _SAFE


class Request(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Messages that somebody lacks: an entry of `rtr`."""

    conf_id: ConfId
    first: Count
    last: Count
    server: Name | None = None
    """Who should answer, as the one who did last time may be one that the requester cannot hear; None: any holder."""


class RegularToken(Message, frozen=True):
    conf_id: ConfId
    token_seq: Count
    """Counts hops, so that a token that was sent again is not served twice."""
    seq: Seq = 0
    aru: Seq = 0
    aru_id: Name | None = None
    """Who lowered `aru`, and so may raise it; None while everybody has everything."""
    rtr: Annotated[tuple[Request, ...], msgspec.Meta(max_length=4 * MOST_RANGES)] = ()
    fcc: Seq = 0
    fcc_bytes: Seq = 0
    """`fcc` in bytes: the buffers of receivers are counted in them."""
    backlog: Seq = 0
    """How many packets wait at all members: who has much to say leaves room for who has little."""
    is_idle: bool = False
    """Nothing was said for two rotations: the representative holds the token for a while each time."""
    rotation: Seconds = 0.0
    """How long a rotation takes, as the representative has measured it."""
    unclean: Seq = 0
    """The `token_seq` with which it was last sent again: a rotation since then measures nothing."""
    evs_aru: Seq = 0
    evs_aru_id: Name | None = None
    """The same rule as `aru`, for the recovery of old configurations; apart, as their numbers are others."""


class Echo(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """When we heard somebody last: its own stamp, and how long ago. It learns the round trip, and that we hear it."""

    name: Name
    stamp: float
    age: Seconds


Echoes = Annotated[tuple[Echo, ...], msgspec.Meta(max_length=MOST_NAMES)]


class AttemptJoin(Message, frozen=True):
    incarnation: Count
    counter: Seq
    """The highest counter of a configuration that its sender has installed or agreed to."""
    conf_id: ConfId
    """The configuration that its sender has installed last."""
    is_alive: bool
    """Is the sender's ring intact? If not, its members have lost it as well."""
    stamp: float
    """The sender's own clock."""
    rtt: Seconds
    """The longest round trip that the sender has measured."""
    echoes: Echoes


class Join(Message, frozen=True):
    incarnation: Count
    counter: Seq
    conf_id: ConfId
    is_alive: bool
    join_seq: Count
    """Only the latest Join of a representative counts."""
    reps: Annotated[tuple[tuple[Name, Count], ...], msgspec.Meta(max_length=MOST_NAMES)]
    """The representatives, each with its incarnation, sorted."""
    failed: Names


class Probe(Message, frozen=True):
    """Rings that have nothing to say hear of each other."""

    incarnation: Count
    counter: Seq
    stamp: float
    rtt: Seconds
    echoes: Echoes


class Foreign(Message, frozen=True):
    """To our representative: a stranger that it may not hear."""

    conf_id: ConfId
    stranger: Name


class Hurry(Message, frozen=True):
    """To the representative, which may hold the token: we have something to say."""

    conf_id: ConfId


class Seat(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A member of the new ring, and where it comes from."""

    name: Name
    incarnation: Count
    conf_id: ConfId


class ConfRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the participants from one old configuration have of it: an entry of `confs_list` (5.2.3)."""

    conf_id: ConfId
    obligation_set: Names
    highest_seq: Seq
    aru: Seq
    """The highest number of which a participant knows that every old member has all up to it."""
    holes: Ranges
    """Numbers up to `highest_seq` that no participant has."""
    trans_set: Names
    """The participants: the members of the transitional configuration."""


class FormToken(Message, frozen=True):
    form_id: ConfId
    rotation: Annotated[int, msgspec.Meta(ge=1, le=2)]
    join_list: Annotated[tuple[tuple[Name, Count], ...], msgspec.Meta(max_length=MOST_NAMES)]
    memb_list: Annotated[tuple[Seat, ...], msgspec.Meta(max_length=MOST_NAMES)]
    visited: Seq
    """How many of `memb_list`, from its beginning, this rotation has reached."""
    confs_list: Annotated[tuple[ConfRecord, ...], msgspec.Meta(max_length=MOST_NAMES)]


class Ceiling(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """On disk: no counter up to here is used in a later life."""

    counter: Seq


AnyMessage = Regular | RegularToken | AttemptJoin | Join | Probe | Foreign | Hurry | FormToken
"""What travels between processors."""
