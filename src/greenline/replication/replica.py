"""A replica: the queue of bundles with their colours, what is known of components, and what the disk has of it.

The queue is `white* green* yellow* red*`. A red bundle is one whose index lies above `green_cut`; yellow is
a list of red ones; green ones have a position; white ones are discarded in time. Marking is in one place for each
colour, here, and nothing else gives a position (OR-1 to OR-3). What is appended to the log is in an order in which
every prefix is a state that could have been: a body before its green mark, green marks before the knowledge that
rests on them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec
from crc32c import crc32c

from greenline.kernel.effects import Append, Barrier, Effect, Halt, Trace
from greenline.kernel.identities import ProcId
from greenline.replication.messages import (
    Bundle,
    Cut,
    Entry,
    Era,
    Greens,
    Knowledge,
    Ordered,
    Prim,
    Record,
    Vulnerable,
    Yellow,
)
from greenline.replication.port import BundleId
from greenline.replication.roster import Changed, Roster, changed, founders, in_words
from greenline.replication.settings import Settings

KNOWLEDGE_BYTES = 256
"""About so many has a record of it."""
NO_ORDER = bytes(16)
"""What the empty order comes to."""


@dataclass(slots=True)
class Replica:
    me: ProcId
    settings: Settings
    prim: Prim
    # The servers that exist.
    roster: Roster = field(init=False)
    """At our green line."""
    low_roster: Roster = field(init=False)
    """At `low`."""
    changes: dict[int, Changed] = field(default_factory=dict)
    """What the changes of the cluster came to, by position, down to `low`."""
    voided: set[int] = field(default_factory=set)
    """Positions of bundles without effect, down to `low`: their creators had left for nothing more to come of them."""
    birth: bytes = b""
    is_new: bool = False
    """A newcomer that has no snapshot yet: there is no queue here."""
    removed_at: int | None = None
    """Others have told us that we left at this position, and it is one that we shall never see ourselves."""
    # The queue.
    bodies: dict[BundleId, Bundle] = field(default_factory=dict)
    """Red and green bundles, down to `low`."""
    red_cut: dict[ProcId, int] = field(default_factory=dict)
    green_cut: dict[ProcId, int] = field(default_factory=dict)
    low: int = 0
    """Bundles up to this position are discarded."""
    low_cut: dict[ProcId, int] = field(default_factory=dict)
    """The green cut at that position."""
    order: list[BundleId] = field(default_factory=list)
    """The green ones after `low`, in order."""
    digests: list[bytes] = field(default_factory=lambda: [NO_ORDER])
    """What the order comes to at `low`, and after each of them."""
    index: int = 0
    """Our own last one."""
    ongoing: dict[int, Bundle] = field(default_factory=dict)
    """Our own that are not delivered to ourselves yet."""
    lamport: int = 0
    # Components.
    attempt_index: int = 0
    vulnerable: Vulnerable = field(default_factory=Vulnerable)
    yellow: Yellow = field(default_factory=Yellow)
    promised: dict[ProcId, tuple[int, int]] = field(default_factory=dict)
    era: Era = field(default_factory=Era)
    # Green lines: how much of the order each server has on disk, as far as we know.
    green_lines: dict[ProcId, int] = field(default_factory=dict)
    is_line_raised: bool = False
    """Some line has risen, and what follows from that is still to be done."""
    announced: int = 0
    """The line of our own that others were told last."""
    line_wanted: int = 0
    """Somebody waits for ours to reach this position."""
    # The disk.
    tickets: int = 0
    durable_ticket: int = 0
    is_clean: bool = True
    """Nothing was appended since the last barrier."""
    unwritten: list[BundleId] = field(default_factory=list)
    """Marked green, and not in the log yet."""
    forced_green: int = 0
    """The green line that the last barrier covers, once it is done."""
    barriers: deque[tuple[int, int]] = field(default_factory=deque)
    """Barriers that are not done: ticket, and the green line that it covers."""
    red_bytes: int = 0
    """Of the red bodies that we have."""
    live_bytes: int = 0
    """Of all bodies that we have."""
    void_bytes: int = 0
    """Of records in the log that count no more."""

    def __post_init__(self) -> None:
        self.roster = self.low_roster = founders(self.settings)

    @property
    def green(self) -> int:
        """Our green line: how many bundles are green."""
        return self.low + len(self.order)

    @property
    def has_left(self) -> bool:
        """Our own leave is green: we linger until nobody can need us (GAP 25)."""
        return self.removed_at is not None or bool(self.roster.gone and self.roster.is_gone(self.me))

    @property
    def durable_green(self) -> int:
        return self.green_lines.get(self.me, 0)

    @property
    def digest(self) -> bytes:
        return self.digests[-1]

    def weights_of(self, members: tuple[ProcId, ...]) -> tuple[int, ...]:
        """How much they count once they are a component: what the roster says, if that is anything at all.

        A component of which all have left, or weigh nothing, still holds the only right to make the next one: they keep
        what they had until somebody comes who takes over.
        """
        weights = tuple(map(self.roster.weight_of, members))
        return weights if any(weights) else tuple(map(self.prim.weight_of, members))

    def digest_at(self, position: int) -> bytes:
        assert position >= self.low, f"what the order came to at {position} is discarded"
        return self.digests[position - self.low]

    def is_green(self, bundle: BundleId) -> bool:
        return bundle.index <= self.green_cut.get(bundle.creator, 0)

    def has(self, bundle: BundleId) -> bool:
        return bundle.index <= self.red_cut.get(bundle.creator, 0)

    def at(self, position: int) -> BundleId:
        assert position > self.low, f"position {position} is discarded"
        return self.order[position - self.low - 1]

    def reds(self) -> list[BundleId]:
        """Every red bundle, by creator and index."""
        return [
            BundleId(creator, index)
            for creator in sorted(self.red_cut)
            for index in range(self.green_cut.get(creator, 0) + 1, self.red_cut[creator] + 1)
        ]

    def queue_digest(self) -> bytes:
        """What the whole queue comes to: order, reds and yellows. Those who install together must agree on it."""
        reds = " ".join(f"{each}/{content_of(self.bodies[each])}" for each in self.reds())
        yellows = " ".join(map(str, self.yellow.ids)) if self.yellow.is_valid else "-"
        return blake2b(b"%s/%s/%s" % (self.digest, reds.encode(), yellows.encode()), digest_size=16).digest()


def cut_of(cut: dict[ProcId, int]) -> Cut:
    return tuple(sorted(cut.items()))


def chained(digest: bytes, bundle: BundleId, content: int) -> bytes:
    return blake2b(b"%s%s#%d/%d" % (digest, bundle.creator.encode(), bundle.index, content), digest_size=16).digest()


def content_of(bundle: Bundle) -> int:
    """A checksum of what its clients asked for."""
    checksum = bundle.lamport & 0xFFFFFFFF
    for chunk in bundle.actions:
        checksum = crc32c(chunk, checksum)
    if bundle.change is not None:
        checksum = crc32c(msgspec.msgpack.encode(bundle.change), checksum)
    return checksum


# Colours (A.14). Each mark says the state that it was made in, for whoever judges.


def mark_red(replica: Replica, bundle: Bundle, state: str, out: list[Effect]) -> bool:
    """Take the next bundle of its creator; False for one that we have, or that would leave a hole.

    To a newcomer any would: it does not know yet where creators stand.
    """
    creator, index = bundle.creator, bundle.index
    if index != replica.red_cut.get(creator, 0) + 1 or replica.is_new:
        return False
    replica.red_cut[creator] = index
    replica.lamport = max(replica.lamport, bundle.lamport)
    bundle_id = bundle.id
    if creator == replica.me:
        del replica.ongoing[index]  # its body is in the log since it was made (GAP 20)
    else:
        keep_body(replica, bundle, out)
        raise_line(replica, creator, bundle.durable_green, out)
    replica.bodies[bundle_id] = bundle
    replica.red_bytes += size_of(bundle)
    out.append(_mark(replica, bundle_id, "red", state))
    return True


def mark_yellow(replica: Replica, bundle: Bundle, state: str, out: list[Effect]) -> None:
    """Delivered in a transitional configuration of a primary component: it may be green elsewhere."""
    mark_red(replica, bundle, state, out)
    replica.yellow = Yellow(replica.yellow.is_valid, (*replica.yellow.ids, bundle.id))
    out.append(_mark(replica, bundle.id, "yellow", state))


def mark_green(replica: Replica, bundle: BundleId, rule: str, state: str, out: list[Effect]) -> None:
    """Give a bundle that we have its place in the global order; `rule` is the one of the four that allows it."""
    assert replica.green_cut.get(bundle.creator, 0) == bundle.index - 1, f"{bundle} would be green over a hole"
    assert replica.has(bundle), f"{bundle} would be green without its body"
    replica.green_cut[bundle.creator] = bundle.index
    replica.order.append(bundle)
    body = replica.bodies[bundle]
    replica.digests.append(chained(replica.digests[-1], bundle, content_of(body)))
    replica.red_bytes -= size_of(body)
    replica.unwritten.append(bundle)
    if bundle.creator != replica.me and body.wants_lines:
        replica.line_wanted = replica.green
    out.append(_mark(replica, bundle, "green", f"{rule} {state}", replica.green, replica.digest.hex()))
    if (told := take_effect(replica, replica.green, body)) is not None:
        out.append(told)


def take_effect(replica: Replica, position: int, bundle: Bundle) -> Trace | None:
    """What a bundle, now at its position, means for the servers that exist; what is to be told of it."""
    roster = replica.roster
    if roster.gone and roster.is_void(bundle.creator):
        replica.voided.add(position)
        return Trace("void", message=bundle.id, position=position)
    if bundle.change is None:
        return None
    effect = changed(roster, bundle.change, position, replica.settings.voting.lower_bound)
    replica.changes[position] = effect
    replica.roster = effect.roster
    replica.is_line_raised = True  # who has left holds nothing back any more
    words = f"{in_words(bundle.change)} {effect.outcome.verdict} {effect.outcome.value.decode()}".rstrip()
    return Trace("roster", words, members=effect.roster.servers, position=position, digest=effect.roster.digest)


def _mark(
    replica: Replica,
    bundle: BundleId,
    colour: str,
    detail: str,
    position: int | None = None,
    digest: str | None = None,
) -> Trace:
    return Trace(
        "mark",
        detail,
        message=bundle,
        colour=colour,
        position=position,
        sub=replica.prim.prim_index,
        digest=digest,
    )


def red_order(replica: Replica, bundle: BundleId) -> tuple[int, BundleId]:
    """By Lamport time, so that what was made after a bundle was seen is ordered after it (GAP 11)."""
    return replica.bodies[bundle].lamport, bundle


def vulnerability(replica: Replica, detail: str) -> Trace:
    which = replica.vulnerable
    return Trace("vulnerable", detail, members=which.set, position=which.prim_index, sub=which.attempt_index)


def raise_line(replica: Replica, server: ProcId, position: int, out: list[Effect]) -> None:
    """A server has the order up to here on disk. What was once true stays true, so it never falls (GAP 23)."""
    if position > replica.green_lines.get(server, 0):
        replica.green_lines[server] = position
        replica.is_line_raised = True
        out.append(Trace("line", members=(server,), position=position))


# The disk.


def keep_body(replica: Replica, bundle: Bundle, out: list[Effect]) -> None:
    replica.live_bytes += size_of(bundle)
    append(replica, bundle, out)


def append(replica: Replica, record: Record, out: list[Effect]) -> None:
    replica.is_clean = False
    out.append(Append(record))


def write_greens(replica: Replica, out: list[Effect]) -> None:
    """Put the fresh green marks into the log, in one record."""
    if replica.unwritten:
        first = replica.green - len(replica.unwritten) + 1
        append(replica, Ordered(first, tuple(replica.unwritten)), out)
        replica.unwritten.clear()


def write_knowledge(replica: Replica, out: list[Effect]) -> None:
    """After the green marks: an installed component whose order was lost would have forgotten its yellow bundles."""
    write_greens(replica, out)
    replica.void_bytes += KNOWLEDGE_BYTES  # the one before it
    append(replica, knowledge_of(replica), out)


def knowledge_of(replica: Replica) -> Knowledge:
    promises = promises_of(replica)
    return Knowledge(replica.prim, replica.attempt_index, replica.vulnerable, replica.yellow, promises, replica.era)


def promises_of(replica: Replica) -> tuple[tuple[ProcId, int, int], ...]:
    return tuple((server, *attempt) for server, attempt in sorted(replica.promised.items()))


def force(replica: Replica, out: list[Effect]) -> int:
    """A barrier over all that was appended; a clean log needs none. Returns the gate for what depends on it."""
    write_greens(replica, out)
    if not replica.is_clean:
        replica.is_clean = True
        replica.tickets += 1
        replica.barriers.append((replica.tickets, replica.green))
        replica.forced_green = replica.green
        out.append(Barrier(replica.tickets))
    return replica.tickets


def on_durable(replica: Replica, ticket: int, out: list[Effect]) -> None:
    """A barrier is done: what it covers is what we may tell others that we have."""
    replica.durable_ticket = ticket
    while replica.barriers and replica.barriers[0][0] <= ticket:
        _, green = replica.barriers.popleft()
        if green > replica.durable_green:
            replica.green_lines[replica.me] = green
            replica.is_line_raised = True
            out.append(Trace("durable", position=green))


# Retransmissions: bundles that were ordered elsewhere.


def greens_from(replica: Replica, first: int, last: int, at_most: int) -> Greens:
    """The order from `first` on, up to `last` or as many bytes, each with its body."""
    entries: list[Entry] = []
    size = 0
    for position in range(first, last + 1):
        body = replica.bodies[replica.at(position)]
        entries.append(Entry(body.creator, body.index, content_of(body), body))
        size += size_of(body)
        if size >= at_most:
            break
    return Greens(first, replica.digest_at(first - 1), tuple(entries))


def size_of(bundle: Bundle) -> int:
    return 64 + sum(map(len, bundle.actions))


def cut_at(replica: Replica, position: int) -> Cut:
    """The green cut at a position from `low` on; what was ordered since is few."""
    cut = dict(replica.green_cut)
    for bundle in reversed(replica.order[position - replica.low :]):
        cut[bundle.creator] = bundle.index - 1
    return cut_of({creator: index for creator, index in cut.items() if index})


def roster_at(replica: Replica, position: int) -> Roster:
    """The servers at a position from `low` on."""
    before = [each for each in replica.changes if each <= position]
    return replica.changes[max(before)].roster if before else replica.low_roster


def take_greens(replica: Replica, sender: ProcId, greens: Greens, state: str, out: list[Effect]) -> None:
    """OR-3: mark what somebody already has green and we lack; stop, if its order is not ours."""
    if (place := _mark_greens(replica, greens, state, out)) is not None:
        what = f"the order up to position {place} differs from ours"
        out.append(Halt(f"{sender} says otherwise: {what}; compare the databases before you go on"))


def _mark_greens(replica: Replica, greens: Greens, state: str, out: list[Effect]) -> int | None:
    """Where their order and ours differ, if they do."""
    digest = greens.before
    for place, entry in enumerate(greens.entries):
        position = greens.first + place
        if replica.low <= position - 1 <= replica.green and digest != replica.digest_at(position - 1):
            return position - 1
        digest = chained(digest, entry.id, entry.content)
        if position == replica.green + 1:
            if entry.body is not None:
                mark_red(replica, entry.body, state, out)
            if not replica.has(entry.id):
                return None  # its body went to others, in a message that we do not have
            mark_green(replica, entry.id, "OR-3", state, out)
    if greens.first + len(greens.entries) - 1 == replica.green and digest != replica.digest:
        return replica.green
    return None
