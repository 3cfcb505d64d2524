"""Comings and goings: replicas join and leave while everything else goes wrong, by the command that a person types.

Newcomers are killed while they are given the state, and while they linger: whoever has left is needed until it says so,
so it is started again, and has to come to its end. Once it says so it may go in whatever way, and stays away.
"""

from __future__ import annotations

import asyncio
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
PATIENCE_S = 120.0
"""A node whose disk failed often tries again after a minute."""
_POLL_S = 0.2
_LINGERS_S = 0.02
"""When all is well nobody lingers for much longer."""


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
                await asyncio.to_thread(self._nemesis.welcome, name)
                await asyncio.sleep(self._chance.uniform(0, STAYS_S))
                await self._leave(name, until)

    async def all_leave(self) -> None:
        """When all is well again: whoever could not before, or was not told that it could."""
        for name in list(self._there):
            has_left = await self._leave(name, time.monotonic() + PATIENCE_S, is_safe=True)
            assert has_left, f"{name} cannot leave although all is well: {await self._how_all_are()}"

    async def _leave(self, name: ProcId, until: float, *, is_safe: bool = False) -> bool:
        """It is stopped once nobody needs it any more. Every other one is killed before, unless it is safe."""
        while (left := until - time.monotonic()) > 0:
            status = await self._status(name)
            if isinstance(status, Status) and status.left is not None:
                await self._part_with(name)
                return True
            if isinstance(status, Status) and status.standing is not None and status.standing.is_primary:
                leaving = asyncio.create_task(self._do("leave", name, left))
                if not is_safe and self._chance.random() < 0.5:
                    await self._kill_while_it_lingers(name, leaving)
                await leaving
            await asyncio.sleep(_POLL_S)
        return False

    async def _part_with(self, name: ProcId) -> None:
        self._there.remove(name)
        number = self._chance.choice((signal.SIGTERM, signal.SIGKILL))
        await asyncio.to_thread(self._nemesis.part_with, name, number)

    async def _interrupt(self, name: ProcId, joining: asyncio.Task[bool]) -> None:
        while not joining.done() and not self._is_up(name):
            await asyncio.sleep(_POLL_S)
        if self._is_up(name):
            await asyncio.sleep(self._chance.uniform(0, 1))
            local = Local(self._place)
            with suppress(Misuse):
                await asyncio.to_thread(local.kill, name)
                await asyncio.to_thread(local.restart, name)

    async def _kill_while_it_lingers(self, name: ProcId, leaving: asyncio.Task[bool]) -> None:
        """Its leave is green, and perhaps the others still need it: the nemesis starts it again with the others."""
        while not leaving.done():
            status = await self._status(name)
            if isinstance(status, Status) and name in status.gone:
                called = time.monotonic()
                killed = await asyncio.to_thread(self._nemesis.kill, name)
                self._note("kill a leaver", called, Ended.OK, killed)
                return
            await asyncio.sleep(_LINGERS_S)

    async def _do(self, verb: str, name: ProcId, within: float) -> bool:
        """`greenline join` or `leave`. Who has no answer in time does not know what became of it."""
        called = time.monotonic()
        command = [sys.executable, "-m", "greenline.cli.main", verb, name, "--dir", str(self._place)]
        process = await asyncio.create_subprocess_exec(
            *command, "--within", str(within), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
        is_done = process.returncode == 0
        self._note(verb, called, Ended.OK if is_done else Ended.UNKNOWN, name, "" if is_done else said.decode())
        return is_done

    def _note(self, kind: str, called: float, ended: Ended, whom: str, why: str = "") -> None:
        self._recorder.add(Operation("nemesis", "fault", kind, called, time.monotonic(), ended, whom, why=why))

    def _is_up(self, name: ProcId) -> bool:
        local = Local(self._place)
        return name in local.names and local.pid(name) is not None

    async def _how_all_are(self) -> str:
        said = [each.why for each in self._recorder.operations if each.key == "leave"]
        stands = {name: await self._status(name) for name in Local(self._place).names}
        return "\n".join(["it said last: " + "".join(said[-1:]), *(f"{name}: {each}" for name, each in stands.items())])

    async def _status(self, name: ProcId) -> Status | NoAnswer:
        return await asyncio.to_thread(Local(self._place).status, name)
