"""A process: the driver of a router in virtual time, with an application on top.

It decides nothing. It can be crashed before any order that it carries out, paused so that the world goes on
without it, or made a slow receiver with a small buffer; its clock may be off and may run fast or slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crc32c import crc32c

from greenline.kernel.identities import MessageId, ProcId
from greenline.kernel.orders import Arm, Ask, Cut, Disarm, Force, Order, Record, Stop, Tell, Transmit, Write
from greenline.kernel.ports import Busy, Deliver, Multicast, Ready, Service
from greenline.kernel.router import Router, Running
from greenline.simulation.disk import Disk, DiskError

if TYPE_CHECKING:
    from greenline.simulation.world import World

BUFFER = 256
"""How many packets a process that does not keep up is sent before the next is dropped."""


class Application:
    """The user of the topmost core: it multicasts, remembers what it was told, and waits while the port is busy."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.accepted = 0
        self.is_busy = False
        self.waiting: deque[tuple[Service, bytes]] = deque()

    @property
    def delivered(self) -> list[str]:
        """The texts that were delivered in this life, in order."""
        return [each.payload.decode() for each in self.told if isinstance(each, Deliver)]


class Process:
    def __init__(self, world: World, name: ProcId, disk: Disk) -> None:
        self.name = name
        self.disk = disk
        self.router: Router | None = None
        self.app = Application()
        self.lives = 0
        self.clock_offset = 0.0
        self.clock_rate = 1.0
        self.fuses: dict[int, tuple[int, Callable[[], None]]] = {}
        """Crashes that are planned: how many orders each lets pass, and what it does then."""
        self.working = 0
        """What it waits for outside: forced writes and answers."""
        self.wanted_down = 0
        """How many faults want it down at the moment."""
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
        self.app = Application()
        self.router = self._world.build(self.name, self.lives)
        self.perform(self.router.boot(self.clock(), self.disk.contents()))

    def start_if_wanted(self) -> None:
        if self.router is None and not self.wanted_down and not self._world.is_healing:
            self.start()

    def crash(self, keep: float = 0.0, tear: bool = False) -> None:
        """Die here. Memory is lost, and of the disk what was not forced, as told."""
        if self.router is None:
            return
        self._world.note_crash(self)
        self._go_down(keep, tear)

    def _go_down(self, keep: float, tear: bool) -> None:
        self.disk.crash(keep, tear)
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

    def multicast(self, payload: bytes, service: Service) -> bool:
        """The application generates a message; False if it could not be asked, as it is down or paused."""
        router = self.router
        if router is None or not self.is_running:
            return False
        app = self.app
        if app.is_busy:
            app.waiting.append((service, payload))
            return True
        message = MessageId(self.name, router.incarnation, app.accepted + 1)
        orders = router.ask(self.clock(), Multicast(message, service, payload))
        if any(type(order) is Tell and type(order.payload) is Busy for order in orders):
            app.is_busy = True
            app.waiting.appendleft((service, payload))
        else:
            app.accepted += 1
        self.perform(orders)
        return True

    def _try_again(self, life: int) -> None:
        """The port is ready: say what has waited, until it is busy again."""
        app = self.app
        while life == self.lives and self.is_running and app.waiting and not app.is_busy:
            service, payload = app.waiting.popleft()
            self.multicast(payload, service)

    # What it does.

    def perform(self, orders: list[Order]) -> None:
        """Carry out the orders one by one; a crash may come before any of them."""
        world = self._world
        world.steps += 1
        for order in orders:
            kind = type(order)
            if kind is Record:
                world.add_row(order.row)  # type: ignore[union-attr]
                continue
            if kind is Disarm:
                continue  # the router drops it: a simulated node sleeps for nothing
            if self.fuses and kind is not Stop and self._has_burnt_out():
                return  # a node that has halted is dead already
            if not _PERFORM[kind](self, order):
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

    def _write(self, order: Write) -> bool:
        self._world.digest = crc32c(order.frame, self._world.digest)
        try:
            self.disk.write(order.frame)
        except DiskError as error:
            self._come_back(self.lives, "disk_failed", (str(error),))
            return False
        return True

    def _force(self, order: Force) -> bool:
        self._world.counts["forced writes"] += 1
        life = self.lives
        self.working += 1
        self.disk.force(
            lambda: self._finish(life, "forced", (order.number,)),
            lambda: self._finish(life, "disk_failed", ("a forced write failed",)),
        )
        return True

    def _finish(self, life: int, method: str, args: tuple[Any, ...]) -> None:
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
            self._world.agenda.after(delay, self._finish, self.lives, "answered", args)
        return True

    def _tell(self, order: Tell) -> bool:
        self.app.told.append(order.payload)
        if isinstance(order.payload, Ready):
            self.app.is_busy = False
            self._world.agenda.after(0.0, self._try_again, self.lives)
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
    Write: Process._write,
    Force: Process._force,
    Ask: Process._ask,
    Tell: Process._tell,
    Stop: Process._stop,
}
