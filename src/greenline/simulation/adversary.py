"""The adversary: a medium behind the group communication port that plays any execution the specification allows.

It is no protocol: it sees everything, and from its chance it decides when messages are sent, who delivers them when,
when configurations change and who goes with whom, which messages make it into the regular configuration, into the
transitional one, or only to some components, and who crashes where. What rests on it rests on the specification.

How it stays legal, in the words of thesis 4.1. A regular configuration has one order of messages, and each member
delivers a prefix of it there (6.1 to 6.3). A safe message is delivered there only once every member has installed
the configuration (7.2), and from then on every member owes it (7.1): it is delivered wherever that member goes. Who
leaves together delivers the same (4): the same prefix, then in the transitional configuration what its members sent
(3), what any of them owes, and of the rest whatever the adversary likes, as long as causes come with effects (5).
Members of a transitional configuration that never install it owe what was delivered in it (7.1, reading S-c).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from greenline.kernel.effects import Call, Effect
from greenline.kernel.events import Answered, Downcall, Event, Start, Upcall
from greenline.kernel.identities import ConfId, Configuration, MessageId, ProcId, TransId, in_order
from greenline.kernel.orders import Ask
from greenline.kernel.ports import Busy, Deliver, Multicast, Ready, RegularConf, Sent, Service, TransitionalConf
from greenline.simulation.faults import Crash
from greenline.simulation.world import World

MEDIUM = "medium"


@dataclass(frozen=True)
class Temper:
    """How an adversary is minded: what it decides how often."""

    step_s: float = 0.004
    """Mean time between two decisions."""
    change: float = 0.03
    """How many decisions in one change the configuration."""
    crash: float = 0.015
    busy: float = 0.015
    spares_disks: bool = True
    """A crash leaves on the disk what was not forced."""
    gathering: float = 0.0
    """How many of the changes bring everybody together."""
    repairing: float = 0.0
    """How many decisions bring those together whose configuration has lost a member: nothing becomes safe there."""
    targets: frozenset[str] = frozenset()
    spite: float = 0.0
    """While there is somebody in each of these phases, it changes the configuration so often, and gathers nobody."""


class Stub:
    """The core that stands where a protocol would: it passes everything on, and knows only whether it is busy."""

    phase = None

    def __init__(self) -> None:
        self.is_busy = False

    def handle(self, _: float, event: Event) -> list[Effect]:
        match event:
            case Start(_, incarnation):
                return [Call(0, MEDIUM, incarnation)]
            case Downcall(Multicast(message)) if self.is_busy:
                return [Upcall(Busy(message))]
            case Downcall(Multicast() as call):
                return [Call(0, MEDIUM, call)]
            case Answered(_, bool() as is_busy):
                was_busy, self.is_busy = self.is_busy, is_busy
                return [Upcall(Ready())] if was_busy and not is_busy else []
            case Answered(_, upcall):
                return [Upcall(upcall)]
            case _:
                raise AssertionError(f"nobody tells a stub {event!r}")


@dataclass(frozen=True)
class Placed:
    """A message in the order of its configuration."""

    message: MessageId
    service: Service
    payload: bytes
    known: frozenset[int]
    """The places that its sender had delivered: what it is causally after."""

    @property
    def is_agreed(self) -> bool:
        return self.service in (Service.AGREED, Service.SAFE)


@dataclass(eq=False)
class Ring:
    """A regular configuration, as only the adversary knows it."""

    conf: Configuration
    order: list[Placed] = field(default_factory=list)
    installed: set[ProcId] = field(default_factory=set)
    present: set[ProcId] = field(default_factory=set)
    """Who is in it now and has not begun to leave."""
    had: dict[ProcId, set[int]] = field(default_factory=dict)
    """Of those who left it: the places that they deliver, wherever they do."""
    owed: dict[ProcId, set[int]] = field(default_factory=dict)
    """Places that a member must deliver, since somebody relies on it."""

    @property
    def is_complete(self) -> bool:
        return self.installed == set(self.conf.members)


@dataclass(eq=False)
class Seat:
    """A process, as the adversary knows it, in one life."""

    name: ProcId
    incarnation: int
    layer: int
    ring: Ring
    delivered: int = 0
    """How long a prefix of its ring's order it has delivered."""
    early: set[int] = field(default_factory=set)
    """Causal and basic messages beyond it that it has delivered: those are not bound to the order."""
    generated: deque[tuple[Multicast, Ring]] = field(default_factory=deque)
    """What it asked to multicast, and where it was then."""
    script: deque[Any] = field(default_factory=deque)
    """What it is told on its way to another configuration."""
    next_ring: Ring | None = None
    is_busy: bool = False


class Adversary:
    """Sits in a world as the port `medium` of all its processes."""

    def __init__(self, world: World, chance: Random, temper: Temper | None = None) -> None:
        self.temper = temper or Temper()
        self.is_at_rest = False
        """Everybody has everything; it wakes when somebody has something to say, or dies."""
        self.world = world
        self.chance = chance
        self.seats: dict[ProcId, Seat] = {}
        self.counters: dict[ProcId, int] = {}
        self.counts = world.counts
        world.ports[MEDIUM] = self.asked
        world.at_death.append(lambda *_: self._wake())
        world.agenda.after(self.temper.step_s, self.decide)

    # What processes say.

    def asked(self, name: ProcId, ask: Ask) -> None:
        """A stub has started, or its user has generated a message."""
        self._wake()
        if isinstance(ask.request, Multicast):
            self.seats[name].generated.append((ask.request, self.seats[name].ring))
            return
        self._forget(name)
        counter = self._next_counter((name,))
        ring = Ring(Configuration(ConfId(counter, name), (name,)))
        seat = Seat(name, ask.request, ask.layer, ring)
        self.seats[name] = seat
        self.world.agenda.after(0.0, self._begin, seat)

    def _wake(self) -> None:
        if self.is_at_rest:
            self.is_at_rest = False
            self.world.agenda.after(self.temper.step_s, self.decide)

    def _begin(self, seat: Seat) -> None:
        """Its first configuration, as soon as it can be told."""
        if seat.name in seat.ring.installed or self.seats.get(seat.name) is not seat:
            return
        if self._tell(seat, RegularConf(seat.ring.conf)):
            self._install(seat, seat.ring)

    def _forget(self, name: ProcId) -> None:
        """A life is over: it crashed in the ring that it was in, and owes nothing more."""
        if name in self.seats:
            self.seats.pop(name).ring.present.discard(name)

    def _next_counter(self, members: tuple[ProcId, ...]) -> int:
        counter = 1 + max(self.counters.get(name, 0) for name in members)
        self.counters.update(dict.fromkeys(members, counter))
        return counter

    # What it decides.

    def decide(self) -> None:
        """One decision, and the next one later; after healing only until everybody has everything."""
        self._bury()
        for _, seat in sorted(self.seats.items()):
            self._begin(seat)
        if self.world.is_healed:
            if not self._settle():
                self.is_at_rest = True
                return
        else:
            seats = [seat for _, seat in sorted(self.seats.items()) if self._is_reachable(seat)]
            choice = self.chance.random()
            temper = self.temper
            change = temper.spite if self._is_spiteful() else temper.change
            if choice < change:
                self._change(seats)
            elif choice < change + temper.crash:
                self._ambush(seats)
            elif choice < change + temper.crash + temper.busy and seats:
                self._toggle_busy(self.chance.choice(seats))
            elif choice > 1 - temper.repairing:
                self._repair(seats)
            elif seats:
                self._move(self.chance.choice(seats))
        self.world.agenda.after(self.chance.expovariate(1 / self.temper.step_s), self.decide)

    def _is_spiteful(self) -> bool:
        targets = self.temper.targets
        return bool(targets) and targets <= self.world.phases

    def _move(self, seat: Seat) -> bool:
        """Something small happens to one process; False if nothing could."""
        moves: list[Callable[[Seat], bool]] = [self._say_next, self._deliver_next, self._send_next, self._deliver_early]
        if not self.world.is_healed:
            self.chance.shuffle(moves)
        return any(move(seat) for move in moves)

    def _say_next(self, seat: Seat) -> bool:
        """The next step on its way to another configuration."""
        if not seat.script:
            return False
        upcall = seat.script.popleft()
        ring = seat.next_ring
        assert ring is not None
        if self._tell(seat, upcall) and isinstance(upcall, RegularConf):
            seat.next_ring = None
            seat.delivered = 0
            seat.early = set()
            self._install(seat, ring)
        return True

    def _install(self, seat: Seat, ring: Ring) -> None:
        seat.ring = ring
        ring.installed.add(seat.name)
        ring.present.add(seat.name)
        ring.owed.setdefault(seat.name, set())

    def _deliver_next(self, seat: Seat) -> bool:
        """The next message of the order, in the regular configuration, if it may be delivered there."""
        ring = seat.ring
        if seat.next_ring is not None or seat.name not in ring.present or seat.delivered == len(ring.order):
            return False
        place = seat.delivered
        if place in seat.early:
            seat.early.discard(place)
            seat.delivered += 1
            return True
        if not self._may_deliver(ring, place):
            return False
        placed = ring.order[place]
        if placed.service is Service.SAFE:
            for name in ring.present:
                ring.owed[name] |= set(range(place + 1))
        if self._tell(seat, _delivery(ring, place)):
            seat.delivered += 1
        return True

    def _deliver_early(self, seat: Seat) -> bool:
        """A causal or basic message out of turn, as only its causes bind it (5, reading S-e)."""
        ring = seat.ring
        if seat.next_ring is not None or seat.name not in ring.present:
            return False
        had = set(range(seat.delivered)) | seat.early
        for place in range(seat.delivered, len(ring.order)):
            placed = ring.order[place]
            if place not in had and not placed.is_agreed and self._has_causes(ring, place, had):
                self.counts["deliveries out of turn"] += 1
                if self._tell(seat, _delivery(ring, place)):
                    seat.early.add(place)
                return True
        return False

    def _may_deliver(self, ring: Ring, place: int) -> bool:
        """In the regular configuration: a safe message only if it is sure of every member (7.1, 7.2)."""
        if ring.order[place].service is not Service.SAFE:
            return True
        return ring.is_complete and all(place in had for had in ring.had.values())

    def _send_next(self, seat: Seat) -> bool:
        """The oldest generated message gets its place in the configuration that its sender is in."""
        ring = seat.ring
        if not seat.generated or seat.next_ring is not None or seat.name not in ring.present:
            return False
        call, generated_in = seat.generated.popleft()
        if generated_in is not ring:
            self.counts["generated in one configuration, sent in another"] += 1
        known = frozenset(range(seat.delivered)) | seat.early
        ring.order.append(Placed(call.message, call.service, call.payload, known))
        self._tell(seat, Sent(call.message))
        return True

    def _toggle_busy(self, seat: Seat) -> None:
        if self._tell(seat, not seat.is_busy):
            seat.is_busy = not seat.is_busy

    def _ambush(self, seats: list[Seat]) -> None:
        """A crash, wherever it hurts: often in the middle of a change."""
        changing = [seat for seat in seats if seat.next_ring is not None]
        if not seats:
            return
        seat = self.chance.choice(changing or seats)
        at = self.world.agenda.now
        orders = self.chance.choice((0, 0, 1, 2, 3))
        lasts = self.chance.uniform(0.05, 0.5)
        keep, tear = 1.0, False
        if not self.temper.spares_disks:
            keep, tear = self.chance.choice((0.0, 0.0, self.chance.random(), 1.0)), self.chance.random() < 0.5
        crash = Crash(at=at, until=at + lasts, process=seat.name, orders=orders, keep=keep, tear=tear)
        self.world.schedule((crash,))

    # Changes of configuration.

    def _change(self, seats: list[Seat]) -> None:
        """Some processes form the next configuration; not all that agree to it install it."""
        free = [seat for seat in seats if seat.next_ring is None and seat.name in seat.ring.present]
        if not free:
            return
        if self.temper.gathering and not self._is_spiteful() and self.chance.random() < self.temper.gathering:
            chosen = free
        else:
            chosen = self.chance.sample(free, self.chance.randint(1, len(free)))
        failing = set[ProcId]()
        if len(chosen) > 1 and self.chance.random() < 0.2:
            failing = {seat.name for seat in self.chance.sample(chosen, self.chance.randint(1, len(chosen) - 1))}
            self.counts["configurations that not all members install"] += 1
        self._form(chosen, failing)

    def _repair(self, seats: list[Seat]) -> None:
        """Who waits in a configuration for somebody who is gone goes on without, or with all who are free."""
        free = [seat for seat in seats if seat.next_ring is None and seat.name in seat.ring.present]
        waiting = [seat for seat in free if any(self._has_left(seat.ring, name) for name in seat.ring.conf.members)]
        if waiting:
            self._form(self.chance.choice((waiting, free)), set())

    def _has_left(self, ring: Ring, name: ProcId) -> bool:
        is_coming = name in self.seats and self.seats[name].next_ring is ring
        return name not in ring.present and not is_coming

    def _form(self, chosen: list[Seat], failing: set[ProcId]) -> None:
        members = in_order(seat.name for seat in chosen)
        counter = self._next_counter(members)
        new = Ring(Configuration(ConfId(counter, members[0]), members))
        groups: dict[Ring, list[Seat]] = {}
        for seat in sorted(chosen, key=lambda seat: seat.name):
            groups.setdefault(seat.ring, []).append(seat)
        if len(groups) > 1:
            self.counts["merges"] += 1
        for old, together in groups.items():
            self._leave(old, together, new, failing)

    def _leave(self, old: Ring, together: list[Seat], new: Ring, failing: set[ProcId]) -> None:
        """A group goes from one configuration to the next, or agrees to and fails."""
        names = {seat.name for seat in together}
        is_everybody = names == set(old.conf.members)
        if not is_everybody and len(old.present - names) > 0:
            self.counts["partitions"] += 1
        cut = len(old.order) if is_everybody else self._cut(old, together)
        regular = set(range(cut)).union(*(seat.early for seat in together))
        rest = set() if is_everybody else self._rest(old, together, regular)
        trans = Configuration(self._trans_id(old, new), in_order(names))
        for seat in together:
            if seat.name in failing:
                # It agreed, and others will rely on it: whatever it does now, it delivers what they do.
                old.owed[seat.name] |= regular | rest
                continue
            places = regular - set(range(seat.delivered)) - seat.early
            seat.script.extend(_delivery(old, place) for place in self._in_some_order(old, places))
            seat.script.append(TransitionalConf(trans))
            seat.script.extend(_delivery(old, place) for place in self._in_some_order(old, rest))
            seat.script.append(RegularConf(new.conf))
            seat.next_ring = new
            old.present.discard(seat.name)
            old.had[seat.name] = regular | rest
        if any(old.order[place].service is Service.SAFE for place in range(cut)):
            # Delivered in the regular configuration, so everybody who is still in it owes it.
            last = max(place for place in range(cut) if old.order[place].service is Service.SAFE)
            for name in old.present:
                old.owed[name] |= set(range(last + 1))

    def _in_some_order(self, ring: Ring, places: set[int]) -> Iterator[int]:
        """The agreed ones in their order, the others anywhere after their causes: each process in its own way."""
        left = sorted(places)
        while left:
            first_agreed = next((place for place in left if ring.order[place].is_agreed), None)
            had = set(range(len(ring.order))) - set(left)
            free = [
                place
                for place in left
                if (place == first_agreed or not ring.order[place].is_agreed) and self._has_causes(ring, place, had)
            ]
            chosen = left[0] if self.chance.random() < 0.5 else self.chance.choice(free)
            left.remove(chosen)
            yield chosen

    def _trans_id(self, old: Ring, new: Ring) -> TransId:
        assert isinstance(old.conf.conf_id, ConfId)
        assert isinstance(new.conf.conf_id, ConfId)
        return TransId(old.conf.conf_id, new.conf.conf_id)

    def _cut(self, old: Ring, together: list[Seat]) -> int:
        """How long a prefix the group delivers in the regular configuration: what one has, all have (4)."""
        cut = max(seat.delivered for seat in together)
        while cut < len(old.order) and self._may_deliver(old, cut) and self.chance.random() < 0.6:
            cut += 1
        return cut

    def _rest(self, old: Ring, together: list[Seat], regular: set[int]) -> set[int]:
        """What the group delivers in the transitional configuration: what it must, and what it may."""
        names = {seat.name for seat in together}
        places = set(range(len(old.order))) - regular
        must = {place for place in places if old.order[place].message.sender in names}
        for seat in together:
            must |= places & old.owed[seat.name]
        generosity = self.chance.choice((0.0, 0.3, 0.7, 1.0))
        rest = must | {place for place in sorted(places) if self.chance.random() < generosity}
        for place in sorted(rest):
            if not self._has_causes(old, place, regular | rest):
                rest.discard(place)
        assert must <= rest, "what a group must deliver comes with its causes"
        return rest

    def _has_causes(self, ring: Ring, place: int, had: set[int]) -> bool:
        """Is all that it is causally after among these? A basic message neither needs nor carries causality."""
        placed = ring.order[place]
        if placed.service is Service.BASIC:
            return True
        sender = placed.message.sender
        needed = placed.known | {p for p in range(place) if ring.order[p].message.sender == sender}
        return all(p in had for p in needed if ring.order[p].service is not Service.BASIC)

    # After healing.

    def _settle(self) -> bool:
        """Bring everybody into one configuration and give everybody everything; False when that is done."""
        seats = [seat for _, seat in sorted(self.seats.items())]
        if len(seats) < len(self.world.living) or not all(map(self._is_reachable, seats)):
            return True
        for seat in seats:
            if seat.is_busy:
                self._toggle_busy(seat)
                return True
        if any(self._move(seat) for seat in seats):
            return True
        final = seats[0].ring
        if len(final.conf.members) == len(seats) and all(seat.ring is final for seat in seats):
            return False
        self._form(seats, set())
        return True

    # Reaching processes.

    def _is_reachable(self, seat: Seat) -> bool:
        process = self.world[seat.name]
        return process.is_running and self.seats.get(seat.name) is seat and seat.name in seat.ring.installed

    def _bury(self) -> None:
        for name in sorted(self.seats):
            if not self.world[name].is_up:
                self._forget(name)

    def _tell(self, seat: Seat, what: Any) -> bool:
        """Hand it one upcall, now; False if it crashed on the way."""
        process = self.world[seat.name]
        if not process.is_running or process.router is None or process.router.incarnation != seat.incarnation:
            return False
        process.answer(seat.layer, 0, what)
        return process.router is not None


def _delivery(ring: Ring, place: int) -> Deliver:
    placed = ring.order[place]
    return Deliver(placed.message, placed.service, placed.payload)
