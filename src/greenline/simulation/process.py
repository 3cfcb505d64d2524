"""A process: the driver of a router in virtual time, with an application on top (`simulation.applications`).

It decides nothing. It can be crashed before any order that it carries out, paused so that the world goes on
without it, or made a slow receiver with a small buffer; its clock may be off and may run fast or slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crc32c import crc32c

from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Arm, Ask, Cut, Disarm, Discard, Force, Order, Record, Stop, Tell, Transmit, Write
from greenline.kernel.ports import Service
from greenline.kernel.router import Router, Running
from greenline.simulation.applications import Speaker
from greenline.simulation.disk import Disk, DiskError

if TYPE_CHECKING:
    from greenline.simulation.world import World

BUFFER = 256
"""How many packets a process that does not keep up is sent before the next is dropped."""


class Process:
    def __init__(self, world: World, name: ProcId, disk: Disk) -> None:
        self.name = name
        self.disk = disk
        self.router: Router | None = None
        self.app = world.application(self)
        self.lives = 0
        self.clock_offset = 0.0
        self.clock_rate = 1.0
        self.fuses: dict[int, tuple[int, Callable[[], None]]] = {}
        """Crashes that are planned: how many orders each lets pass, and what it does then."""
        self.working = 0
        """What it waits for outside: forced writes and answers."""
        self.wanted_down = 0
        """How many faults want it down at the moment."""
        self.is_gone = False
        """It is never started again."""
        self._world = world
        self._pauses = 0
        self._service_s = 0.0
        self._buffer = BUFFER
        self._inbox: deque[tuple[ProcId, bytes]] = deque()
        self._deferred: list[Callable[[], None]] = []
        self._is_serving = False

    @property
    def is_up(self) -> bool:
        return self.router is not None

    @property
    def is_running(self) -> bool:
        """Up, booted and not paused: it would answer a call."""
        return self.router is not None and isinstance(self.router.life, Running) and not self._pauses

    def clock(self) -> float:
        return self.clock_offset + self._world.agenda.now * self.clock_rate

    # Life and death.

    def start(self) -> None:
        """Begin a life from what the disk has."""
        assert self.router is None, f"{self.name} is up already"
        self.lives += 1
        self.app = self._world.application(self)
        self.router = self._world.build(self.name, self.lives)
        self.perform(self.router.boot(self.clock(), self.disk.contents()))

    def start_if_wanted(self) -> None:
        if self.router is None and not (self.wanted_down or self.is_gone or self._world.is_healing):
            self.start()

    def crash(self, keep: float = 0.0, tear: bool = False) -> None:
        """Die here. Memory is lost, and of the disk what was not forced, as told."""
        if self.router is None:
            return
        self._world.note_crash(self)
        self._go_down(keep, tear)

    def _go_down(self, keep: float, tear: bool) -> None:
        self.disk.crash(keep, tear)
        for mourn in self._world.at_death:
            mourn(self, keep < 1)
        self.router = None
        self.fuses.clear()
        self.working = 0
        self._inbox.clear()
        self._deferred.clear()
        self._is_serving = False

    def pause(self) -> None:
        self._pauses += 1

    def resume(self) -> None:
        """Go on where we were: packets that were kept, then what came due meanwhile, as an event loop would."""
        self._pauses -= 1
        if not self._pauses:
            self._serve()
            deferred, self._deferred = self._deferred, []
            for do in deferred:
                do()

    def receive_at(self, service_s: float, buffer: int) -> None:
        """Be a slow receiver: so long for each packet, and so many kept."""
        self._service_s = service_s
        self._buffer = buffer

    def receive_at_full_speed(self) -> None:
        self.receive_at(0.0, BUFFER)
        self._serve()

    def set_clock(self, offset: float, rate: float) -> None:
        self.clock_offset = offset
        self.clock_rate = rate

    # What befalls it.

    def arrive(self, sender: ProcId, frame: bytes) -> None:
        if self.router is None:
            self._world.counts["to the dead"] += 1
        elif not self._pauses and not self._service_s and not self._inbox:
            self.perform(self.router.received(self.clock(), sender, frame))
        elif len(self._inbox) >= self._buffer:
            self._world.counts["overflowed"] += 1
        else:
            self._inbox.append((sender, frame))
            self._serve()

    def _serve(self) -> None:
        """Take packets from the inbox, as fast as we can at the moment."""
        if self._is_serving:
            return
        while self._inbox and not self._pauses and self.router is not None:
            if self._service_s:
                self._is_serving = True
                self._world.agenda.after(self._service_s, self._serve_one, self.lives)
                return
            self.perform(self.router.received(self.clock(), *self._inbox.popleft()))

    def _serve_one(self, life: int) -> None:
        if life != self.lives or self.router is None:
            return
        self._is_serving = False
        if self._inbox and not self._pauses:
            self.perform(self.router.received(self.clock(), *self._inbox.popleft()))
        self._serve()

    def _come_back(self, life: int, method: str, args: tuple[Any, ...]) -> None:
        """Something that this life asked for is due: a timer, a forced write, an answer."""
        if life != self.lives or self.router is None:
            return
        if self._pauses:
            self._deferred.append(lambda: self._come_back(life, method, args))
            return
        self.perform(getattr(self.router, method)(self.clock(), *args))

    def answer(self, layer: int, call: int, result: Any) -> None:
        """A port outside answers, now."""
        self._come_back(self.lives, "answered", (layer, call, result))

    def later(self, delay: float, do: Callable[..., None], *args: Any) -> None:
        """A port outside works for this life: not if that is over by then, and not while it is paused."""
        self._world.agenda.after(delay, self._do, self.lives, do, args)

    def _do(self, life: int, do: Callable[..., None], args: tuple[Any, ...]) -> None:
        if life != self.lives or self.router is None:
            return
        if self._pauses:
            self._deferred.append(lambda: self._do(life, do, args))
            return
        do(*args)

    def witness(self, port: str, kind: str, **columns: Any) -> None:
        """A port outside has done something: a row in its place among our own."""
        if self.router is not None and (row := self.router.witnessed(self.clock(), port, kind, **columns)) is not None:
            self._world.add_row(row)

    def multicast(self, payload: bytes, service: Service) -> bool:
        """The application generates a message; False if it could not be asked, as it is down or paused."""
        assert isinstance(self.app, Speaker), "its application multicasts"
        return self.app.multicast(payload, service)

    # What it does.

    def perform(self, orders: list[Order]) -> None:
        """Carry out the orders one by one; a crash may come before any of them."""
        world = self._world
        world.steps += 1
        for place, order in enumerate(orders):
            kind = type(order)
            if kind is Record:
                world.add_row(order.row)  # type: ignore[union-attr]
                continue
            if kind is Disarm:
                continue  # the router drops it: a simulated node sleeps for nothing
            if self.fuses and kind is not Stop and self._has_burnt_out():
                name = kind.__name__
                world.counts[f"crashes before {'an' if name[0] == 'A' else 'a'} {name}"] += 1
                return  # a node that has halted is dead already
            if kind is Write:
                try:
                    self._write(order)  # type: ignore[arg-type]
                except DiskError as error:
                    self._lose_disk(orders[place:], str(error))
                    return
            elif not _PERFORM[kind](self, order):
                return

    def _has_burnt_out(self) -> bool:
        """One more order is due: does a planned crash come before it?"""
        for cause, (left, crash) in self.fuses.items():
            if not left:
                crash()
                return True
            self.fuses[cause] = left - 1, crash
        return False

    def _transmit(self, order: Transmit) -> bool:
        world = self._world
        world.digest = crc32c(order.frame, world.digest)
        if world.watch_packets is not None:
            world.watch_packets(self.name, order.to, order.frame)
        world.network.transmit(self.name, order.to, order.frame)
        return True

    def _arm(self, order: Arm) -> bool:
        args = (order.layer, order.timer, order.generation)
        self._world.agenda.after(order.after / self.clock_rate, self._come_back, self.lives, "fire", args)
        return True

    def _cut(self, order: Cut) -> bool:
        self.disk.cut(order.at)
        return True

    def _write(self, order: Write) -> None:
        self._world.digest = crc32c(order.frame, self._world.digest)
        self.disk.write(order.frame)

    def _lose_disk(self, undone: list[Order], reason: str) -> None:
        """A write failed. What the cores said of themselves in the same step has happened; nothing else follows."""
        for order in undone:
            if type(order) is Record:
                self._world.add_row(order.row)
        self._come_back(self.lives, "disk_failed", (reason,))

    def _force(self, order: Force) -> bool:
        self._world.counts["forced writes"] += 1
        life = self.lives
        self.working += 1
        self.disk.force(
            lambda: self.finish(life, "forced", (order.number,)),
            lambda: self.finish(life, "disk_failed", ("a forced write failed",)),
        )
        return True

    def _discard(self, order: Discard) -> bool:
        self.disk.discard(order.before)
        return True

    def finish(self, life: int, method: str, args: tuple[Any, ...]) -> None:
        """What it waited for outside is there."""
        if life == self.lives and self.router is not None:
            self.working -= 1
            self._come_back(life, method, args)

    def _ask(self, order: Ask) -> bool:
        answer = self._world.ports[order.port](self.name, order)
        if answer is not None:
            result, delay = answer
            self.working += 1
            args = (order.layer, order.call, result)
            self._world.agenda.after(delay, self.finish, self.lives, "answered", args)
        return True

    def _tell(self, order: Tell) -> bool:
        self.app.hear(order.payload)
        return True

    def _stop(self, order: Stop) -> bool:
        """The router has halted; a fault that ends, or healing, starts it again."""
        self._world.note_halt(self, order.reason)
        self._go_down(keep=self._world.chance.choice((0.0, 1.0)), tear=False)  # a write that failed may be there
        return False


_PERFORM: dict[type[Any], Callable[[Process, Any], bool]] = {
    Transmit: Process._transmit,
    Arm: Process._arm,
    Cut: Process._cut,
    Force: Process._force,
    Discard: Process._discard,
    Ask: Process._ask,
    Tell: Process._tell,
    Stop: Process._stop,
}
