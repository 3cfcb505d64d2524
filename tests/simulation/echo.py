"""A core as small as can be, to watch the simulator with: it repeats what it is told."""

from __future__ import annotations

import msgspec

from greenline.kernel.core import Chance
from greenline.kernel.effects import Append, Barrier, Broadcast, Call, Effect, SetTimer
from greenline.kernel.events import Answered, Downcall, Durable, Event, Received, Start, TimerFired, Upcall
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Multicast
from greenline.kernel.router import Layer
from greenline.simulation.network import Latency
from greenline.simulation.world import Port, World

TICK_S = 0.1


class Word(msgspec.Struct, frozen=True, tag=True):
    text: bytes


class Echo:
    """Broadcasts what it is asked to, tells up what it receives, writes it down, and ticks."""

    phase = None

    def __init__(self) -> None:
        self.tickets = 0

    def handle(self, now: float, event: Event) -> list[Effect]:
        match event:
            case Start(_, _, records):
                return [Upcall(("had", tuple(record.text for record in records))), SetTimer("tick", TICK_S)]
            case Downcall(Multicast() as call):
                return [Broadcast(Word(call.payload))]
            case Received(Word(text), sender):
                self.tickets += 1
                return [Append(Word(text)), Barrier(self.tickets), Upcall(("heard", sender, text, now))]
            case TimerFired():
                return [SetTimer("tick", TICK_S), Upcall(("tick", now)), Call(1, "clock", "what time is it?")]
            case Durable(ticket):
                return [Upcall(("durable", ticket))]
            case Answered(_, result):
                return [Upcall(("answered", result))]
        return []


def echoes(names: str, seed: str = "0", latency: Latency | None = None) -> World:
    """A world of echoes, all of them up."""

    def build(me: ProcId, everybody: tuple[ProcId, ...], chance: Chance) -> list[Layer]:
        return [Layer("echo", 1, Echo(), Word, Word)]

    clock: Port = lambda name, ask: (f"{name} asked {ask.request}", 0.01)  # noqa: E731
    world = World(
        tuple(names.split()), seed, build, latency=latency or Latency("constant", 0.001), ports={"clock": clock}
    )
    for process in world.processes.values():
        process.start()
    world.run_until(0.05)
    return world


def told(world: World, name: ProcId, kind: str) -> list[tuple[object, ...]]:
    """What the application of this process was told of this kind, without the kind."""
    return [each[1:] for each in world[name].app.told if isinstance(each, tuple) and each[0] == kind]
