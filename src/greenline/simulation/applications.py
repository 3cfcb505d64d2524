"""Applications: who stands on the topmost core of a process, in one life of it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from greenline.kernel.identities import MessageId
from greenline.kernel.orders import Tell
from greenline.kernel.ports import Busy, Deliver, Multicast, Ready, Service
from greenline.simulation.requests import Request

if TYPE_CHECKING:
    from greenline.simulation.process import Process


class Application:
    """Remembers what it was told."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.told: list[Any] = []

    @property
    def is_kept_waiting(self) -> bool:
        """Is there something that it could not ask for yet?"""
        return False

    @property
    def delivered(self) -> list[str]:
        """The texts that were delivered in this life, in order."""
        return [each.payload.decode() for each in self.told if isinstance(each, Deliver)]

    def take(self, request: Request) -> bool:
        """Ask for what a plan wants asked; False if nobody is there to be asked."""
        raise NotImplementedError

    def hear(self, upcall: Any) -> None:
        self.told.append(upcall)


class Speaker(Application):
    """The user of a group communication port: it multicasts, and waits while the port is busy."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self.accepted = 0
        self.is_busy = False
        self.waiting: deque[tuple[Service, bytes]] = deque()

    @property
    def is_kept_waiting(self) -> bool:
        return bool(self.waiting)

    def take(self, request: Request) -> bool:
        return self.multicast(request.text.encode(), request.service)

    def multicast(self, payload: bytes, service: Service) -> bool:
        process = self.process
        router = process.router
        if router is None or not process.is_running:
            return False
        if self.is_busy:
            self.waiting.append((service, payload))
            return True
        message = MessageId(process.name, router.incarnation, self.accepted + 1)
        orders = router.ask(process.clock(), Multicast(message, service, payload))
        if any(type(order) is Tell and type(order.payload) is Busy for order in orders):
            self.is_busy = True
            self.waiting.appendleft((service, payload))
        else:
            self.accepted += 1
        process.perform(orders)
        return True

    def hear(self, upcall: Any) -> None:
        super().hear(upcall)
        if isinstance(upcall, Ready):
            self.is_busy = False
            self.process.later(0.0, self._try_again)

    def _try_again(self) -> None:
        """The port is ready: say what has waited, until it is busy again."""
        while self.process.app is self and self.process.is_running and self.waiting and not self.is_busy:
            service, payload = self.waiting.popleft()
            self.multicast(payload, service)
