"""Measuring the Ring in virtual time: what it costs in datagrams and rotations, whatever machine this runs on.

Next to the thesis's own figures (5.3): throughput flat in the number of members, agreed delivery after about half a
rotation, safe delivery after about two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from greenline.kernel import evidence
from greenline.kernel.codec import HEADER_SIZE
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.ring.messages import Regular
from greenline.ring.settings import Reach, Settings
from greenline.simulation.cluster import Cluster
from greenline.simulation.faults import Weather
from greenline.simulation.network import Latency
from greenline.simulation.plan import names_for
from greenline.simulation.scenarios.stage import configurations, processor
from greenline.simulation.subjects import ring_with
from greenline.simulation.tampering import ALWAYS
from greenline.simulation.world import World

HOP_S = 0.001
MEMBERS = (2, 4, 8, 16)
SMALL_DATAGRAM = 200
"""Bytes: tokens are smaller, packets with messages of a kilobyte larger."""
KILOBYTE = 1024
WARM_UP = 10
"""Messages that wake an idle ring up; their datagrams are not counted."""


@dataclass(frozen=True)
class Measure:
    what: str
    value: float
    unit: str
    thesis: str = ""


def measures() -> Iterator[Measure]:
    """All of them; each is the same on every machine."""
    for members in MEMBERS:
        for load in (0.5, 4.0):
            yield from delivery(members, load)
    rates = []
    for members in MEMBERS:
        found = throughput(members)
        rates.append(found.value)
        yield found
    yield Measure("throughput, spread over 2 to 16 members", max(rates) / min(rates) - 1, "", "0.02")
    yield from acceleration()
    yield from reconfiguration()
    yield deaf_receiver()
    yield false_changes()


def delivery(members: int, load: float) -> Iterator[Measure]:
    """Datagrams a message, and how long delivery takes; `load` is messages a rotation and member."""
    about = f"{members:2} members, {load:g} messages a rotation each"
    for service, thesis in ((Service.AGREED, "about 0.5"), (Service.SAFE, "about 2")):
        ring = _ring(members, Settings(reach=Reach.MULTICAST))
        chance = Random(f"measure/{members}/{load}")
        datagrams = [0]

        def count(_: ProcId, __: tuple[ProcId, ...], ___: bytes, datagrams: list[int] = datagrams) -> None:
            datagrams[0] += 1

        rotation = members * HOP_S
        begun = ring.world.agenda.now
        said = 0
        while ring.world.agenda.now < begun + 60 * rotation:
            ring[chance.choice(ring.names)].multicast("x", service)
            said += 1
            if said == WARM_UP:
                ring.world.watch_packets = count
            ring.wait(chance.expovariate(load * members / rotation))
        ring.world.watch_packets = None
        ring.settle()
        generated = {row.message: row.time for row in ring.rows if row.kind == evidence.GENERATE}
        taken = [(row.time - generated[row.message]) / rotation for row in ring.rows if row.kind == evidence.DELIVER]
        if service is Service.AGREED:
            yield Measure(f"{about}: datagrams a message", datagrams[0] / (said - WARM_UP), "")
        yield Measure(f"{about}: rotations to {service.value} delivery", sum(taken) / len(taken), "", thesis)


def throughput(members: int) -> Measure:
    rate = rate_on_bus(members, KILOBYTE)
    return Measure(f"{members:2} members: 1 KB messages a second on a shared bus", rate, "1/s", "852 to 872")


def rate_on_bus(members: int, size: int) -> float:
    """Messages a second on a shared 10 Mbit Ethernet, as the thesis measured it: 0.428 ms each and 0.76 us a byte.

    Of messages that are larger than a token: by its size the bus tells them apart.
    """
    ring = _on_bus(members, size)
    return _saturated(ring, size, seconds=4.0, waiting=60)


def safe_latencies_on_bus(members: int, per_second: float, seconds: float = 4.0) -> list[float]:
    """How long 1 KB messages take to safe delivery there, of each message and member, in seconds."""
    ring = _on_bus(members, KILOBYTE)
    chance = Random(f"latency/{members}/{per_second}")
    begun = ring.world.agenda.now
    while ring.world.agenda.now < begun + 1.25 * seconds:
        ring[chance.choice(ring.names)].multicast("x" * KILOBYTE, Service.SAFE)
        ring.wait(chance.expovariate(per_second))
    ring.wait(2.0)
    since = begun + 0.25 * seconds
    generated = {row.message: row.time for row in ring.rows if row.kind == evidence.GENERATE and row.time >= since}
    delivered = [row for row in ring.rows if row.kind == evidence.DELIVER and row.message in generated]
    return [row.time - generated[row.message] for row in delivered]


def _on_bus(members: int, size: int) -> Cluster:
    settings = Settings(
        reach=Reach.MULTICAST, packet_bytes=size + 5, personal=20, window=20 * members, outstanding=1000
    )
    ring = _ring(members, settings)
    _SharedBus(ring.world)
    return ring


class _SharedBus:
    """One datagram at a time, whoever sends it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._free_at: dict[ProcId, float] = {}
        self._last: bytes | None = None
        world.network.tamper = self._transmit

    def wire_of(self, _: ProcId) -> ProcId:
        return "the bus"

    def cost(self, size: int) -> float:
        return 0.000428 + 0.76e-6 * size if size > SMALL_DATAGRAM else 0.0002

    def _transmit(self, sender: ProcId, _: ProcId, frame: bytes) -> tuple[float, ...]:
        now = self._world.agenda.now
        wire = self.wire_of(sender)
        if frame is not self._last:  # a multicast is one transmission, however many hear it
            self._last = frame
            self._free_at[wire] = max(now, self._free_at.get(wire, 0.0)) + self.cost(len(frame) - HEADER_SIZE)
        return (max(1e-9, self._free_at[wire] - now),)


class _Switched(_SharedBus):
    """A gigabit link for each sender: what one says does not hold up another."""

    def wire_of(self, sender: ProcId) -> ProcId:
        return sender

    def cost(self, size: int) -> float:
        return 0.000005 + 0.008e-6 * size


def acceleration() -> Iterator[Measure]:
    """What it is worth to pass the token before the last packets are said, on switched links 50 us long."""
    rates = []
    for accelerated in (0, 15):
        settings = Settings(
            reach=Reach.MULTICAST, packet_bytes=1300, accelerated=accelerated, window=200, outstanding=2000
        )
        ring = Cluster("p q r s t", 0, ring_with(settings), Latency("constant", 0.00005)).settle()
        _Switched(ring.world)
        rates.append(_saturated(ring, 1290, seconds=0.15, waiting=120))
    yield Measure("switched links: packets a second, token last", rates[0], "1/s")
    yield Measure("switched links: packets a second, token before the last 15 of a visit", rates[1], "1/s")


def _saturated(ring: Cluster, size: int, seconds: float, waiting: int) -> float:
    """Messages a second that p delivers while everybody always has something to say."""
    payload = "x" * size
    begun = ring.world.agenda.now
    while ring.world.agenda.now < begun + 1.5 * seconds:
        for name in ring.names:
            for _ in range(waiting - len(processor(ring, name).queue.waiting)):
                ring[name].multicast(payload, Service.AGREED)
        ring.wait(seconds / 300)
    since = begun + 0.5 * seconds
    delivered = sum(row.kind == evidence.DELIVER and row.process == "p" and row.time >= since for row in ring.rows)
    return delivered / (ring.world.agenda.now - since)


def reconfiguration() -> Iterator[Measure]:
    """Time to a new configuration of five, in the timeouts that it waits for."""
    ring = _ring(5, Settings())
    loss = processor(ring, "q").pace.token_loss(is_held=True)
    yield Measure("an idle token counts as lost after", loss, "s")
    yield Measure(
        "crash of one of five: new configuration after", _until(ring, lambda: ring.crash("t"), 4) / loss, "x that"
    )
    ring = _ring(5, Settings())
    took = _until(ring, lambda: ring.partition("p q r | s t"), 3)
    yield Measure("partition 3 | 2: new configurations after", took / loss, "x that")
    ring.wait(1.0)
    probe = Settings().probe
    yield Measure(
        "merge 3 + 2: new configuration after", _until(ring, ring.heal, 5) / probe, f"x probes of {probe:g} s"
    )


def _until(ring: Cluster, do: Callable[[], object], members: int) -> float:
    """How long until all that are up are in a configuration of so many, or of the rest."""
    begun = ring.world.agenda.now
    before = {name: len(configurations(ring, name)) for name in ring.names}
    do()
    ring.wait_until(
        lambda: (
            all(
                len(configurations(ring, name)) > before[name] and ring[name].phase == "Operational"
                for name in ring.names
                if ring.world[name].is_up
            )
            and any(len(configurations(ring, name)[-1].split()) == members for name in ring.names)
        ),
        at_most=20.0,
    )
    return ring.world.agenda.now - begun


def deaf_receiver() -> Measure:
    """What everybody keeps while one of three hears no message, before it is left behind."""
    settings = Settings()
    ring = _ring(3, settings)

    ring.lose(Regular, to="r", times=ALWAYS)
    for number in range(4000):
        ring["p"].multicast(f"{number}" + "x" * 600, Service.AGREED)
    most = 0
    for _ in range(400):
        ring.wait(0.002)
        most = max(most, *(len(processor(ring, name).ring.store) for name in "pq"))
    return Measure("packets kept with one deaf receiver, at most", most, f"of {settings.outstanding + settings.window}")


def false_changes(hours: float = 1.0) -> Measure:
    """Sites 100 ms apart and back, one packet in a hundred lost, 20 ms of jitter: nobody is taken for dead."""
    ring = Cluster("p q r", 0, ring_with(Settings()), Latency("uniform", 0.040, 0.020)).settle()
    loss = Weather(at=ring.world.agenda.now, until=float("inf"), what="loss", rate=0.01)
    ring.world.begin(loss)
    before = len(configurations(ring, "p"))
    for minute in range(int(60 * hours)):
        for name in ring.names:
            ring[name].multicast(f"{minute}", Service.SAFE)
        ring.wait(60.0)
    changes = len(configurations(ring, "p")) - before
    return Measure("configuration changes in an hour at 100 ms, 1 % loss, 20 ms jitter", changes, "")


def _ring(members: int, settings: Settings) -> Cluster:
    names = " ".join(sorted(names_for(members)))
    return Cluster(names, 0, ring_with(settings), Latency("constant", HOP_S)).settle()
