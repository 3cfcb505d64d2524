"""Packets that nobody should have sent: of another version, cut off, garbled, old, from strangers, with absurd fields.

They are fed to nodes in every phase. Each is dropped and counted, or served as what it seems to be; no node stops, and
none grows. `FUZZ_INPUTS` says how many there are: a few thousand here, a million and more on a build machine.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest

from greenline.kernel.codec import MAGIC, VERSION, seal
from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Order, Stop
from greenline.kernel.ports import Service
from greenline.kernel.router import Router, Running
from greenline.ring.settings import Settings
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.stage import processor
from greenline.simulation.subjects import RING, ring_with

INPUTS = int(os.environ.get("FUZZ_INPUTS", "20000"))
BURST = 100
PHASES = ("Operational", "Gather", "Commit", "Form", "EVS")
ABSURD = (0, 1, -1, 2, 7, 255, 2**31, 2**32, 2**48, 2**62, 2**63 - 1, -(2**40))
NAMES = ("p", "q", "r", "s", "nobody", "", "a b", "x" * 40)


Caught = tuple[Router, list[bytes]]
"""A node, and the packets that were sent around the time when it was caught: those of its own attempts."""


def recorded() -> tuple[dict[str, list[Caught]], list[bytes]]:
    """Nodes caught in every phase of splits and merges under load, and every packet that was sent meanwhile."""
    places: dict[str, list[tuple[Router, int]]] = {phase: [] for phase in PHASES}
    packets: list[bytes] = []
    ring = Cluster("p q r s", 7, ring_with(Settings(packet_bytes=40))).wait(0.02)
    ring.world.watch_packets = lambda _, __, frame: packets.append(frame)
    chance = Random("fuzz")
    for sides in ("p q r s", "p q | r s", "p q r s", "p | q r s", "p q r s"):
        ring.partition(sides)
        for step in range(500):
            if step % 25 == 0:
                name = chance.choice(ring.names)
                ring[name].multicast("m" * chance.choice((1, 10, 100)), chance.choice(list(Service)))
            ring.wait(0.001)
            for name in ring.names:
                phase, router = ring[name].phase, ring.world[name].router
                if router is not None and phase in places and len(places[phase]) < 8 and chance.random() < 0.3:
                    places[phase].append((clone(router), len(packets)))
    around = {
        phase: [(router, packets[max(0, place - 30) : place + 40]) for router, place in caught]
        for phase, caught in places.items()
    }
    return around, packets


def clone(router: Router) -> Router:
    """Its own state, and the codecs that have none."""
    codecs = [codec for layer in router.layers for codec in (layer.wire, layer.disk)]
    return copy.deepcopy(router, {id(codec): codec for codec in codecs})


def spoilt(chance: Random, packet: bytes) -> bytes:
    """Something is wrong with it; or nothing, and it is merely old."""
    match chance.randrange(9):
        case 0:
            return packet[: chance.randrange(len(packet))]
        case 1:
            place = chance.randrange(len(packet))
            return packet[:place] + bytes([packet[place] ^ (1 << chance.randrange(8))]) + packet[place + 1 :]
        case 2:
            return bytes([MAGIC, VERSION + 1]) + packet[2:]
        case 3:
            return seal(chance.choice((1, 1, 2, 255)), chance.randbytes(chance.randrange(60)))
        case 4:
            return packet
        case _:
            body = msgspec.msgpack.decode(packet[13:])
            for _ in range(chance.choice((1, 1, 2, 4))):
                body = absurd(chance, body)
            return seal(1, msgspec.msgpack.encode(body))


def absurd(chance: Random, value: Any, depth: int = 0) -> Any:
    """The same with one field changed: well-formed, and impossible."""
    if isinstance(value, list) and value and (depth == 0 or chance.random() < 0.8):
        place = chance.randrange(len(value))
        match chance.randrange(8):
            case 0 if depth:
                return value[:place] + value[place + 1 :]
            case 1 if depth:
                return value + value[: chance.randrange(1, 4)]
            case _:
                return [*value[:place], absurd(chance, value[place], depth + 1), *value[place + 1 :]]
    if isinstance(value, str):
        return chance.choice(NAMES)
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return chance.choice((0.0, -1.0, 1e300, float("inf"), float("nan"), value * 2))
    if isinstance(value, int):
        return chance.choice((*ABSURD, value + 1, max(0, value - 1), value + 50))
    if isinstance(value, bytes):
        return chance.randbytes(chance.randrange(40))
    return chance.choice((None, 0, "p", []))


def size(router: Router) -> int:
    """What a node keeps that could grow."""
    core: Any = router.layers[0].core
    held = core.phase.processor
    rings = [held.ring, *([core.phase.new] if hasattr(core.phase, "new") else [])]
    by_name = [held.unheard, held.unmatched, held.met, held.told_of, held.attempted]
    by_name += [held.pace.heard, held.pace.round_trips, held.pace.last_stamp]
    others = [getattr(core.phase, name, ()) for name in ("reps", "failed", "joins", "tried")]
    in_rings = sum(len(ring.store) + len(ring.asked) + len(ring.unpacking.parts) for ring in rings)
    return in_rings + sum(map(len, (*by_name, *others))) + len(held.queue.waiting) + len(router.ignored)


def feed(router: Router, chance: Random, packets: list[bytes]) -> Counter[str]:
    """A burst of packets to one node, with some of its timers in between."""
    served: Counter[str] = Counter()
    now = 100.0
    for _ in range(BURST):
        now += chance.choice((0.0, 0.0001, 0.01))
        sender: ProcId = chance.choice(("p", "q", "r", "s", "nobody"))
        before = sum(router.ignored.values())
        orders: list[Order] = router.received(now, sender, spoilt(chance, chance.choice(packets)))
        served["dropped" if sum(router.ignored.values()) > before else "served"] += 1
        timers = router.layers[0].generations
        if timers and chance.random() < 0.05:
            timer = chance.choice(sorted(timers, key=str))
            orders += router.fire(now, 0, timer, timers[timer])
        stop = [order.reason for order in orders if isinstance(order, Stop)]
        assert isinstance(router.life, Running), stop
        assert len(orders) < 5000
    return served


@pytest.mark.slow
def test_no_packet_stops_a_node_or_makes_it_grow() -> None:
    nodes, packets = recorded()
    assert all(nodes[phase] for phase in PHASES), "somebody was caught in every phase"
    chance = Random("inputs")
    served: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for round_ in range(INPUTS // BURST):
        phase = PHASES[round_ % len(PHASES)]
        caught, around = chance.choice(nodes[phase])
        router = clone(caught)
        router.ignored.clear()
        served += feed(router, chance, packets if chance.random() < 0.3 else around)
        assert size(router) < 3000, "it grew"
        reasons += router.ignored
    assert served["dropped"] > INPUTS // 2
    assert {"Garbled", "Truncated", "from somebody who uses my name"} <= set(reasons)
    assert len(reasons) > 25, "counted by reason"


def test_what_everybody_has_is_kept_nowhere() -> None:
    """What was said, delivered and had by all is kept nowhere."""
    ring = Cluster("p q r", 0, RING).settle()
    for number in range(300):
        ring["p"].multicast(str(number), Service.SAFE)
    ring.settle()
    assert all(not processor(ring, name).ring.store for name in ring.names)
