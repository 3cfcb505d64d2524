"""Services in one event loop, and somebody who asks them over HTTP from outside of it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from greenline.node.calls import Answer, call
from greenline.node.config import Checked, LogFormat, load
from greenline.node.envelope import credential
from greenline.node.logs import Logger
from greenline.node.service import Service

PATIENCE_S = 20.0


class Running:
    """One service with its log, and what it was told."""

    def __init__(self, config: Checked) -> None:
        self.config = config
        self.told: list[Any] = []
        self._log = io.StringIO()
        self.service = Service(config, self.told.append, Logger(config.name, LogFormat.JSON, self._log))
        self.task = asyncio.create_task(self.service.run())

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.getvalue().splitlines()]

    def events(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.logged if each["event"] == event]

    async def get(self, path: str) -> Answer:
        assert self.config.admin is not None
        return await asyncio.to_thread(call, self.config.admin, "GET", path)

    async def post(self, path: str, body: bytes = b"", *, by: str | None = None) -> Answer:
        """With the credential of the current key, or another."""
        assert self.config.admin is not None
        kept = self.service.life.kept
        assert kept is not None
        shown = credential(kept.keyring.keys[kept.keyring.current]) if by is None else by
        return await asyncio.to_thread(call, self.config.admin, "POST", path, body, credential=shown)

    async def json(self, path: str) -> Any:
        return json.loads((await self.get(path)).body)

    async def stop(self) -> None:
        self.service.stop()
        await self.task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


def play(paths: list[Path], story: Callable[..., Awaitable[None]]) -> None:
    """The story with a running service for each file; all are stopped in the end."""

    async def live() -> None:
        running = [Running(load(path)) for path in paths]
        try:
            await story(*running)
        finally:
            for each in running:
                await each.stop()

    asyncio.run(live())
