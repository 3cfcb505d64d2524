"""Comings and goings: replicas join and leave while everything else goes wrong, by the command that a person types."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

from greenline.cli.local import Local
from greenline.cli.say import Misuse
from greenline.kernel.identities import ProcId
from greenline.node.calls import NoAnswer
from greenline.node.status import Status
from tests.jepsen.history import Ended, Operation, Recorder
from tests.jepsen.nemesis import Nemesis

LEAST_S = 5.0
"""In less time nobody is asked to come or go."""
STAYS_S = 5.0
PATIENCE_S = 30.0
_POLL_S = 0.2


class Comings:
    def __init__(self, place: Path, nemesis: Nemesis, recorder: Recorder, seed: str) -> None:
        self._place = place
        self._nemesis = nemesis
        self._recorder = recorder
        self._chance = Random(f"comings {seed}")
        self._came = 0
        self._there: list[ProcId] = []
        """Those that were started, and have not left for good."""

    async def come_and_go(self, until: float) -> None:
        """One after the other. Every other one is killed while it is given the state, and started again."""
        while (left := until - time.monotonic()) > LEAST_S:
            self._came += 1
            name = f"n{self._came}"
            joining = asyncio.create_task(self._do("join", name, left))
            if self._chance.random() < 0.5:
                await self._interrupt(name, joining)
            await joining
            if self._is_up(name):
                self._there.append(name)
                self._nemesis.newcomers.append(name)
                await asyncio.sleep(self._chance.uniform(0, STAYS_S))
                await self._leave(name, until)

    async def all_leave(self) -> None:
        """When all is well again: whoever could not before, or was not told that it could."""
        for name in list(self._there):
            has_left = await self._leave(name, time.monotonic() + PATIENCE_S)
            assert has_left, f"{name} cannot leave although all is well: {self._status(name)}"

    async def _leave(self, name: ProcId, until: float) -> bool:
        """It is stopped once nobody needs it any more."""
        while (left := until - time.monotonic()) > 0:
            status = self._status(name)
            if isinstance(status, Status) and status.left is not None:
                self._stop(name)
                return True
            if isinstance(status, Status) and status.standing is not None and status.standing.is_primary:
                await self._do("leave", name, left)
            await asyncio.sleep(_POLL_S)
        return False

    def _stop(self, name: ProcId) -> None:
        self._there.remove(name)
        self._nemesis.newcomers.remove(name)
        pid = Local(self._place).pid(name)
        assert pid is not None, f"{name} is gone, and nobody killed it"
        os.kill(pid, signal.SIGTERM)

    async def _interrupt(self, name: ProcId, joining: asyncio.Task[bool]) -> None:
        while not joining.done() and not self._is_up(name):
            await asyncio.sleep(_POLL_S)
        if self._is_up(name):
            await asyncio.sleep(self._chance.uniform(0, 1))
            local = Local(self._place)
            with suppress(Misuse):
                await asyncio.to_thread(local.kill, name)
                await asyncio.to_thread(local.restart, name)

    async def _do(self, verb: str, name: ProcId, within: float) -> bool:
        """`greenline join` or `leave`. Who has no answer in time does not know what became of it."""
        called = time.monotonic()
        command = [sys.executable, "-m", "greenline.cli.main", verb, name, "--dir", str(self._place)]
        process = await asyncio.create_subprocess_exec(
            *command, "--within", str(within), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
        is_done = process.returncode == 0
        ended, why = Ended.OK if is_done else Ended.UNKNOWN, "" if is_done else said.decode()
        operation = Operation("nemesis", "fault", verb, called, time.monotonic(), ended, name, why=why)
        self._recorder.add(operation)
        return is_done

    def _is_up(self, name: ProcId) -> bool:
        local = Local(self._place)
        return name in local.names and local.pid(name) is not None

    def _status(self, name: ProcId) -> Status | NoAnswer:
        return Local(self._place).status(name)
