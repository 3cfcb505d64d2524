"""The service: a configured node with its admin port, from the first packet until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any

from greenline.node.admin import Admin, Server, listen
from greenline.node.config import Checked
from greenline.node.front import Front
from greenline.node.life import Life
from greenline.node.logs import Logger

LOOKS_EVERY_S = 1.0


class Service:
    """Make it in a running event loop; whatever is wrong with its configuration is said then, in one line."""

    def __init__(
        self, config: Checked, tell: Callable[[Any], None] = lambda _: None, log: Logger | None = None
    ) -> None:
        self._log = log or Logger(config.name, config.log_format)
        self.life = Life(config, self._log, tell)
        self._server: Server | None = None
        self._front: Front | None = None
        self._over = asyncio.Event()
        if config.admin is not None:
            try:
                self._socket = listen(config, config.admin)
            except Exception:
                self.life.close()
                raise
            self._server = Server(Admin(self.life).app)
        if self.life.desk is not None:
            try:
                self._front = Front(self.life, self.life.desk)
            except Exception:
                self.close()
                raise

    def close(self) -> None:
        """Of one that was never run, or whose run is over."""
        if self._server is not None:
            self._socket.close()
        self.life.close()
        self._log.close()

    def stop(self) -> None:
        self._over.set()

    def stop_on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)

    async def run(self) -> None:
        """Until `stop`; a node that stops by itself is watched on, so that its port can say why."""
        serving: asyncio.Task[None] | None = None
        try:
            self.life.start()
            if self._server is not None:
                serving = asyncio.create_task(self._server.serve([self._socket]))
            if self._front is not None:
                await self._front.open()
            while not self._over.is_set():
                self.life.look(time.monotonic())
                if self._front is not None:
                    self._front.look()
                try:
                    await asyncio.wait_for(self._over.wait(), LOOKS_EVERY_S)
                except TimeoutError:
                    continue
            self._log.info("stopping")
        finally:
            if self._server is not None and serving is not None:
                self._server.stop()
                await serving
            if self._front is not None:
                await self._front.close()
            self.close()
