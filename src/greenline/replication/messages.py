"""Messages: what servers tell each other through the group communication port, and what the disk keeps.

The papers have three messages: Action (here `Bundle`), State and CPC. `Retrans` carries what an exchange gives to those
who lack it, the others serve those who are far behind and the white line. Every control message names the meeting
(configuration and round) that it belongs to: one that was generated in another meeting is ignored (GAP 6).
"""

from __future__ import annotations

import msgspec

from greenline.kernel.identities import ConfId
from greenline.replication.port import BundleId, Change, Count, MadeIn, Name, Natural, Procedure
from greenline.replication.roster import Roster

Cut = tuple[tuple[Name, Natural], ...]
"""How far, for each of some servers; sorted by name."""


class Meeting(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A regular configuration, or the part of it after somebody who was far behind came near: one exchange each."""

    conf_id: ConfId
    round: Natural = 0

    def __str__(self) -> str:
        return f"{self.conf_id}" if not self.round else f"{self.conf_id}/{self.round}"


class Prim(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A primary component (`Prim_component`); `weights` are those that the next quorum counts, one for each server."""

    prim_index: Natural
    attempt_index: Natural
    servers: tuple[Name, ...]
    weights: tuple[Natural, ...]
    epoch: Natural = 0
    """How often an operator had overruled the protocol (GAP 28): it comes before all else in a comparison."""

    @property
    def rank(self) -> tuple[int, int, int]:
        return self.epoch, self.prim_index, self.attempt_index

    def weight_of(self, server: str) -> int:
        return dict(zip(self.servers, self.weights, strict=True)).get(server, 0)


class Era(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How often an operator has overruled the protocol, as far as we have heard, and who was to go on the last time.

    Who has heard of it and knows no component of this epoch makes none of an earlier one.
    """

    epoch: Natural = 0
    survivors: tuple[Name, ...] = ()


class Vulnerable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """I agreed to an attempt, and do not know how it ended."""

    is_valid: bool = False
    prim_index: Natural = 0
    attempt_index: Natural = 0
    set: tuple[Name, ...] = ()
    bits: tuple[Name, ...] = ()
    """Of `set`: with whom knowledge was merged since; sorted."""
    epoch: Natural = 0

    @property
    def key(self) -> tuple[int, int, int, tuple[str, ...]]:
        """Which attempt: the set belongs to it, so that a number that was used twice is no witness (GAP 15)."""
        return self.epoch, self.prim_index, self.attempt_index, self.set


class Yellow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bundles that a transitional configuration of a primary component delivered; valid: the list is complete."""

    is_valid: bool = False
    ids: tuple[BundleId, ...] = ()


class Bundle(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """What the clients of one server asked for together; on the wire and, as it is, in the log."""

    creator: Name
    index: Count
    lamport: Natural
    durable_green: Natural
    """The creator's green line on disk when it made this: announced, so never more than is durable (GAP 23)."""
    actions: tuple[bytes, ...]
    """One chunk a submission, packed at the edge."""
    wants_lines: bool = False
    """Somebody waits for a quorum of disks: say your green line once this is durable."""
    change: Change | None = None
    """Of the cluster itself; then it has no actions."""
    made_in: MadeIn | None = None
    """For whoever reads the log: nothing is decided by it."""

    @property
    def id(self) -> BundleId:
        return BundleId(self.creator, self.index)


class State(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """What a server knows at the beginning of a meeting; all of it is durable before this leaves."""

    meeting: Meeting
    server: Name
    cluster: bytes
    green: Natural
    digest: bytes
    low: Natural
    """Bundles up to this position are discarded here."""
    far: Count
    """How much this server would wait for; the least counts."""
    red_cut: Cut
    green_cut: Cut
    green_lines: Cut
    promised: tuple[tuple[Name, Natural, Natural], ...]
    """The last attempt (prim_index, attempt_index) that we have seen each server agree to."""
    attempt_index: Natural
    prim: Prim
    vulnerable: Vulnerable
    yellow: Yellow
    era: Era
    roster: Roster
    birth: bytes
    is_new: bool
    """A newcomer: it has nothing, and takes no part yet."""


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A bundle in a retransmission: its body only where somebody lacks it."""

    creator: Name
    index: Count
    content: int
    """Its checksum: two bundles of one name would be two orders."""
    body: Bundle | None = None

    @property
    def id(self) -> BundleId:
        return BundleId(self.creator, self.index)


class Greens(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A piece of the global order: who stands at `first` and after, and what the order came to before."""

    first: Count
    before: bytes
    entries: tuple[Entry, ...]


class Retrans(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """A share of an exchange: greens in phase 1, reds in phase 2; `is_last` of its sender's in this phase."""

    meeting: Meeting
    server: Name
    greens: Greens | None
    reds: tuple[Bundle, ...]
    is_last: bool


class CPC(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Create Primary Component: I am ready to install this attempt. The only message whose 1, ?, 0 matters."""

    meeting: Meeting
    server: Name
    prim_index: Natural
    attempt_index: Natural
    queue: bytes
    """What the sender's queue comes to: all who install must have the same."""


class Line(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """The sender's durable green line, where no bundle tells it soon enough."""

    server: Name
    durable_green: Natural


class Fetch(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """I am far behind, and have the order up to `green`: give me more of it, beside the exchange."""

    meeting: Meeting
    server: Name
    source: Name
    green: Natural


class Segment(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """A piece of a server's log for who is far behind; or reds that others lack, from who has too many of them."""

    meeting: Meeting
    server: Name
    to: Name
    durable_green: Natural
    greens: Greens | None
    reds: tuple[Bundle, ...]
    is_last: bool
    """Of those that were asked for at once."""


class Near(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Let us meet again: I was far behind and am not any more, or our component is not what it should be.

    It ends this meeting at one place of the order.
    """

    meeting: Meeting
    server: Name


class Barrier(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Safe in its meeting: so no other primary component had ordered anything when the sender made this (GAP 36)."""

    meeting: Meeting
    server: Name
    number: Count


class Want(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """I need a snapshot: I am new, or was left behind. If I am new, order my Join first."""

    meeting: Meeting
    server: Name
    source: Name
    birth: bytes
    procedures: tuple[Procedure, ...]


class Basis(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a replica is at a position, beside its database: where the log of who takes the snapshot over begins."""

    position: Natural
    digest: bytes
    cut: Cut
    """The green cut: the next bundle of each creator is the one after it (GAP 30)."""
    green_lines: Cut
    lamport: Natural
    roster: Roster
    era: Era


class Manifest(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """A snapshot is held for you: what its chunks come to, from number `first` on, of `count`."""

    meeting: Meeting
    server: Name
    to: Name
    basis: Basis
    first: Natural
    digests: tuple[bytes, ...]
    count: Natural


class Declined(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """You cannot join, and why."""

    meeting: Meeting
    server: Name
    to: Name
    why: str


class Pick(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Give me these chunks of the snapshot at this position."""

    meeting: Meeting
    server: Name
    source: Name
    position: Natural
    numbers: tuple[Natural, ...]


class Piece(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    meeting: Meeting
    server: Name
    to: Name
    position: Natural
    number: Natural
    data: bytes


class Override(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """An operator has decided that these survive and those are dead, for good (GAP 28)."""

    meeting: Meeting
    server: Name
    epoch: Count
    survivors: tuple[Name, ...]
    dead: tuple[Name, ...]
    reason: str


Transferring = Want | Manifest | Declined | Pick | Piece
Control = State | Retrans | CPC | Fetch | Segment | Near | Barrier | Transferring | Override
"""What is void in any meeting but its own."""
Spoken = Bundle | Line | Control

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Spoken] = msgspec.msgpack.Decoder(Spoken)

encode = _ENCODER.encode


_BASIS: msgspec.msgpack.Decoder[Basis] = msgspec.msgpack.Decoder(Basis)

encode_basis = _ENCODER.encode
decode_basis = _BASIS.decode
"""What a database keeps for us, of the snapshot that it was made from."""


def decode(payload: bytes) -> Spoken | None:
    """None for what is no message of ours."""
    try:
        return _DECODER.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


# What the disk keeps, beside bundles. A bundle in the log is red, until it is green.


class Ordered(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """These are green, from position `first` on."""

    first: Count
    ids: tuple[BundleId, ...]


class Knowledge(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Prim_component, attempt_index, vulnerable and yellow: one record, so that no crash comes between them."""

    prim: Prim
    attempt_index: Natural
    vulnerable: Vulnerable
    yellow: Yellow
    promised: tuple[tuple[Name, Natural, Natural], ...]
    era: Era


class Base(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Where a log begins: the order up to `position` is in the database, and its bundles are gone."""

    cluster: bytes
    server: Name
    """Whose log it is."""
    position: Natural
    digest: bytes
    cut: Cut
    """The green cut at that position."""
    green_lines: Cut
    lamport: Natural
    roster: Roster
    """The servers at that position."""
    birth: bytes
    is_new: bool


Record = Bundle | Ordered | Knowledge | Base
