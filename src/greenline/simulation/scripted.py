"""A scripted medium: replicas over a group communication port that does what a scenario says.

By itself it is kind: what is generated is sent, and delivered to every member of the configuration, a step later. A
scenario says who forms a configuration with whom, who does not deliver what yet, and what is lost to those who leave.
That is exact control over 1, ? and 0: delivered in the regular configuration, in the transitional one, or nowhere.

servers = stage.script("p q r").form("p q r").settle()
servers.hold("q r", Bundle)                                # p delivers it, in the regular configuration: 1
servers["p"].submit("append l1 7")
servers.settle().form("q r").settle()                      # they go without p, and deliver it in transition: ?

What would break Extended Virtual Synchrony is refused, as the adversary would not do it (`simulation.adversary`); the
rest is judged by its rules when the scenario is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Self

from greenline.kernel import evidence
from greenline.kernel.identities import ConfId, Configuration, ProcId, TransId, in_order
from greenline.kernel.orders import Ask
from greenline.kernel.ports import Deliver, Multicast, RegularConf, Sent, Service, TransitionalConf
from greenline.kernel.router import Layer
from greenline.replication.core import Engine
from greenline.replication.messages import Record, Spoken, decode
from greenline.replication.settings import Settings
from greenline.simulation.adversary import MEDIUM, Placed, Ring, Seat, Stub
from greenline.simulation.agenda import Agenda
from greenline.simulation.cluster import Cluster
from greenline.simulation.disk import Disk
from greenline.simulation.process import Process
from greenline.simulation.subjects import BIRTH_BYTES, ENGINE_OVER_ADVERSARY, OVER, Subject
from greenline.simulation.world import Build

TICK_S = 0.0005
"""In one step everybody sends what it has, and is told one thing."""

Where = Callable[[Any], bool]


def over_script(of: Callable[[ProcId, tuple[ProcId, ...]], Settings]) -> Subject:
    """The engine over this medium, with these settings for each server."""

    def build(me: ProcId, names: tuple[ProcId, ...], chance: Random) -> list[Layer]:
        engine = Engine(of(me, names), chance.randbytes(BIRTH_BYTES))
        return [Layer("engine", 2, engine, None, Record), Layer("script", 1, Stub(), None, None)]

    exact: Build = build
    return replace(
        ENGINE_OVER_ADVERSARY,
        name=f"engine{OVER}script",
        summary="the replication engine, over a medium that does what a scenario says",
        build=exact,
        restless=frozenset(),  # who waits for something in a story waits until it is told
        medium=None,
    )


@dataclass(frozen=True)
class Hold:
    """These do not deliver such a thing yet, nor what comes after it."""

    names: frozenset[ProcId]
    kinds: tuple[type[Any], ...]
    where: Where

    def applies(self, name: ProcId, upcall: Any) -> bool:
        what = decode(upcall.payload) if isinstance(upcall, Deliver) else upcall
        return name in self.names and isinstance(what, self.kinds) and self.where(what)


class ScriptedDisk(Disk):
    """A disk that can hang: no forced write comes to an end, until it goes on or the power fails."""

    def __init__(self, agenda: Agenda, chance: Random) -> None:
        super().__init__(agenda, chance)
        self.hangs = False
        self._waiting: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def force(self, done: Callable[[], None], failed: Callable[[], None]) -> None:
        if self.hangs:
            self._waiting.append((done, failed))
        else:
            super().force(done, failed)

    def go_on(self) -> None:
        self.hangs = False
        waiting, self._waiting = self._waiting, []
        for done, failed in waiting:
            self.force(done, failed)

    def crash(self, keep: float, tear: bool) -> None:
        self.hangs = False
        self._waiting.clear()
        super().crash(keep, tear)

    def restore(self, image: bytes) -> None:
        """Back to what it once had; its process is down."""
        self._frames = [image]
        self._durable = 1


class Scripted(Cluster):
    def __init__(
        self, names: str, subject: Subject, mutant: str | None = None, down: str = "", newcomers: str = ""
    ) -> None:
        super().__init__(names, 0, subject, None, mutant, down=names, newcomers=newcomers)
        self._disks = {name: ScriptedDisk(self.world.agenda, Random(name)) for name in self.names}
        self.said: list[Spoken] = []
        """Every message that was sent, in the order of sending."""
        self._seats: dict[ProcId, Seat] = {}
        self._counters: dict[ProcId, int] = {}
        self._holds: list[Hold] = []
        self._muted: set[ProcId] = set()
        self._is_awake = False
        self.world.ports[MEDIUM] = self._asked
        self.world.at_death.append(self._bury)
        for name, process in self.world.processes.items():
            process.disk = self._disks[name]
            if name in self.world.founders and name not in down.split():
                process.start()

    # What a scenario says.

    def form(self, sides: str, lost: Where | None = None) -> Self:
        """Those of each side form the next configuration: "p q | r"; whoever is not named stays where it is.

        What they have not delivered yet they deliver in transition, but for what is `lost` to them, and its effects.
        They are not held any more.
        """
        for side in sides.split("|"):
            names = self._known(side)
            self._holds = [replace(hold, names=hold.names.difference(names)) for hold in self._holds]
            self._form([self._seat(name) for name in in_order(names)], lost or (lambda _: False))
            is_whole = set(names) == set(self.living) and not self.world.active
            self.world.note(evidence.HEALED if is_whole else evidence.FAULT, f"{' '.join(names)} form a configuration")
        self._wake()
        return self

    def hold(self, names: str, *kinds: type[Any], where: Where = lambda _: True) -> Self:
        """From the next of these kinds on, they deliver nothing: messages of the engine, or configurations."""
        self._holds.append(Hold(frozenset(self._known(names)), kinds, where))
        return self

    def mute(self, names: str) -> Self:
        """What they generate is not sent yet: perhaps in the next configuration."""
        self._muted |= set(self._known(names))
        return self

    def release(self) -> Self:
        """Nobody is held any more."""
        self._holds.clear()
        self._wake()
        return self

    def hang(self, names: str) -> Self:
        """No forced write of theirs comes to an end. Their databases go on."""
        for name in self._known(names):
            self._disks[name].hangs = True
        return self

    def go_on(self, names: str) -> Self:
        """Their disks hang no more."""
        for name in self._known(names):
            self._disks[name].go_on()
        return self

    def image(self, name: ProcId) -> bytes:
        """What its disk has now, for a backup."""
        return self._disks[name].contents()

    def restore(self, name: ProcId, image: bytes) -> Self:
        """Its disk has what it had then. It must be down."""
        self._disks[name].restore(image)
        return self

    def let_be(self) -> Self:
        """Nobody is held or muted any more, and no disk hangs."""
        self._muted.clear()
        self.go_on(" ".join(self.names)).release()
        return super().let_be()

    def arrive(self) -> Self:
        """Until nobody is on its way to another configuration."""
        return self.wait_until(lambda: all(map(self._is_free, self._seats.values())))

    def heal(self) -> Self:
        """Everybody who is up forms one configuration."""
        self.let_be().arrive()
        return self.form(" ".join(self._seats)) if self._seats else super().heal()

    def said_of(self, *kinds: type[Any]) -> list[Any]:
        return [each for each in self.said if isinstance(each, kinds)]

    # The steps.

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self.world.agenda.after(TICK_S, self._step)

    def _step(self) -> None:
        self._is_awake = False
        moved = [self._move(self._seats[name]) for name in sorted(self._seats) if name in self._seats]
        if any(moved):
            self._wake()

    def _move(self, seat: Seat) -> bool:
        if not self.world[seat.name].is_running:
            return False
        if seat.next_ring is not None:
            return self._say_next(seat, seat.next_ring)
        return self._send(seat) + self._deliver_next(seat) > 0

    def _say_next(self, seat: Seat, ring: Ring) -> bool:
        """The next step on its way to another configuration."""
        if self._is_held(seat, seat.script[0]):
            return False
        upcall = seat.script.popleft()
        if isinstance(upcall, RegularConf):
            seat.ring, seat.next_ring, seat.delivered = ring, None, 0
            ring.installed.add(seat.name)
            ring.present.add(seat.name)
            ring.owed.setdefault(seat.name, set())
        self._tell(seat, upcall)
        return True

    def _send(self, seat: Seat) -> bool:
        if seat.name in self._muted or not seat.generated:
            return False
        while seat.generated:
            call, _ = seat.generated.popleft()
            known = frozenset(range(seat.delivered))
            seat.ring.order.append(Placed(call.message, call.service, call.payload, known))
            spoken = decode(call.payload)
            assert spoken is not None, "the engine speaks its own protocol"
            self.said.append(spoken)
            self._tell(seat, Sent(call.message))
        return True

    def _deliver_next(self, seat: Seat) -> bool:
        """In the regular configuration: a safe message only if it is sure of every member (7.1, 7.2)."""
        ring, place = seat.ring, seat.delivered
        if place == len(ring.order) or self._is_held(seat, delivery := _delivery(ring, place)):
            return False
        if ring.order[place].service is Service.SAFE:
            if ring.installed != set(ring.conf.members) or any(place not in had for had in ring.had.values()):
                return False
            for name in ring.present:
                ring.owed[name] |= set(range(place + 1))
        seat.delivered += 1
        self._tell(seat, delivery)
        return True

    def _is_held(self, seat: Seat, upcall: Any) -> bool:
        return any(hold.applies(seat.name, upcall) for hold in self._holds)

    # Changes of configuration.

    def _form(self, chosen: list[Seat], lost: Where) -> None:
        members = in_order(seat.name for seat in chosen)
        counter = 1 + max(self._counters[name] for name in members)
        self._counters.update(dict.fromkeys(members, counter))
        new = Ring(Configuration(ConfId(counter, members[0]), members))
        groups: dict[Ring, list[Seat]] = {}
        for seat in chosen:
            groups.setdefault(seat.ring, []).append(seat)
        for old, together in groups.items():
            self._leave(old, together, new, lost)

    def _leave(self, old: Ring, together: list[Seat], new: Ring, lost: Where) -> None:
        names = {seat.name for seat in together}
        is_everybody = names == set(old.conf.members)
        cut = len(old.order) if is_everybody else max(seat.delivered for seat in together)
        rest = self._rest(old, together, cut, lost)
        assert isinstance(old.conf.conf_id, ConfId)
        assert isinstance(new.conf.conf_id, ConfId)
        trans = Configuration(TransId(old.conf.conf_id, new.conf.conf_id), in_order(names))
        for seat in together:
            seat.script.extend(_delivery(old, place) for place in range(seat.delivered, cut))
            seat.script.append(TransitionalConf(trans))
            seat.script.extend(_delivery(old, place) for place in rest)
            seat.script.append(RegularConf(new.conf))
            seat.next_ring = new
            old.present.discard(seat.name)
            old.had[seat.name] = set(range(cut)).union(rest)

    def _rest(self, old: Ring, together: list[Seat], cut: int, lost: Where) -> list[int]:
        """What a group delivers in transition; what somebody relies on cannot be lost to it."""
        names = {seat.name for seat in together}
        owed = set[int]().union(*(old.owed[name] for name in names))
        had = set(range(cut))
        for place in range(cut, len(old.order)):
            placed = old.order[place]
            sender = placed.message.sender
            causes = placed.known | {p for p in range(place) if old.order[p].message.sender == sender}
            if causes <= had and not lost(decode(placed.payload)):
                had.add(place)
            elif sender in names or place in owed:
                raise ValueError(f"{' '.join(in_order(names))} cannot lose {decode(placed.payload)}: others rely on it")
        return sorted(had - set(range(cut)))

    # Processes.

    def _asked(self, name: ProcId, ask: Ask) -> None:
        """A stub has started, or its user has generated a message."""
        if isinstance(ask.request, Multicast):
            seat = self._seats[name]
            seat.generated.append((ask.request, seat.ring))
        else:
            self._counters[name] = 1 + self._counters.get(name, 0)
            alone = Ring(Configuration(ConfId(self._counters[name], name), (name,)))
            self._seats[name] = seat = Seat(name, ask.request, ask.layer, alone)
            seat.next_ring = alone
            seat.script.append(RegularConf(alone.conf))
        self._wake()

    def _bury(self, process: Process, _: bool) -> None:
        """It crashed in the configuration that it was in, and owes nothing more."""
        if process.name in self._seats:
            self._seats.pop(process.name).ring.present.discard(process.name)

    def _seat(self, name: ProcId) -> Seat:
        if name not in self._seats or not self._is_free(self._seats[name]):
            raise ValueError(f"{name} is down, or on its way to another configuration already")
        return self._seats[name]

    def _is_free(self, seat: Seat) -> bool:
        return seat.next_ring is None

    def _tell(self, seat: Seat, what: Any) -> None:
        self.world[seat.name].answer(seat.layer, 0, what)


def _delivery(ring: Ring, place: int) -> Deliver:
    placed = ring.order[place]
    return Deliver(placed.message, placed.service, placed.payload)
