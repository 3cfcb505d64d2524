"""A run: five real nodes, clients on all sides, a nemesis; then all is well again, and everything is judged.

.venv/bin/python -m tests.jepsen.run DIR       # judge again what a run has left in this directory
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from greenline.cli.local import Local
from greenline.spec.judge import Judge, folders_by_run
from greenline.trace.tables import load
from tests.jepsen.checks import complaints, longest_unavailability
from tests.jepsen.comings import Comings
from tests.jepsen.history import Ended, Operation, Recorder, of_kinds, read
from tests.jepsen.nemesis import Nemesis
from tests.jepsen.workload import AT_ONCE, WAITING, Actor, prepare
from tests.node.databases import client, databases, until_primary

NAMES = "p q r s t"
ROAMING = 3
PAUSE_S = 0.02
"""Of a client, between two requests."""
PATIENCE_S = 120.0
"""For the beginning, and for the end: a node whose disk failed often tries again after a minute."""
HISTORY = "history.jsonl"
_POLL_S = 0.1


@dataclass
class Report:
    seed: str
    operations: list[Operation]
    complaints: list[str]

    def __str__(self) -> str:
        asked = [each for each in self.operations if each.kind != "fault" and not each.kind.startswith("final")]
        faults = Counter(each.key for each in of_kinds(self.operations, "fault") if each.value)
        verdict = f"FAIL  {len(self.complaints)} complaints" if self.complaints else "ok  nothing lost, nothing doubled"
        return "\n".join(
            [
                f"jepsen seed {self.seed}   {len(asked)} operations   {faults.total()} faults   "
                f"longest without a primary component {longest_unavailability(self.operations):.1f} s",
                *(f"  {kind:<18}{_ends(asked, kind)}" for kind in sorted({each.kind for each in asked})),
                "  faults: " + ", ".join(f"{count} {kind}" for kind, count in sorted(faults.items())),
                *(f"FAIL  {each}" for each in self.complaints[:20]),
                verdict,
            ]
        )


def _ends(operations: list[Operation], kind: str) -> str:
    ends = Counter(each.ended for each in of_kinds(operations, kind))
    return "   ".join(f"{ends[how]:>6} {how}" for how in Ended)


def jepsen(place: Path, seconds: float, seed: str) -> Report:
    recorder = Recorder(place / HISTORY)
    try:
        with databases(place, NAMES) as local:
            asyncio.run(_run(local, recorder, seconds, seed))
    finally:
        recorder.close()
        Local(place).stop_all()  # newcomers, too
    return judged(place, seed)


def judged(place: Path, seed: str) -> Report:
    """From what is on disk."""
    operations = read(place / HISTORY)
    return Report(seed, operations, [*complaints(operations), *_broken_rules(place)])


def _broken_rules(place: Path) -> list[str]:
    trace = load(place / "data")
    (folders,) = folders_by_run(trace).values()
    return [str(each) for each in Judge(folders, threads=2).broken(trace)]


async def _run(local: Local, recorder: Recorder, seconds: float, seed: str) -> None:
    nemesis = Nemesis(local, seed)
    comings = Comings(local.place, nemesis, recorder, seed)
    async with AsyncExitStack() as stack:
        # Two at each node: one waits for the primary component when there is none, the other never waits.
        waiting = [Actor(name, client(local, at=name), recorder, seed, name) for name in local.names]
        at_once = [Actor(f"{name}'", client(local, at=name), recorder, seed, name) for name in local.names]
        roaming = [Actor(f"c{number}", client(local), recorder, seed) for number in range(ROAMING)]
        everybody = [*waiting, *at_once, *roaming]
        async with asyncio.timeout(PATIENCE_S):
            for actor in everybody:
                await stack.enter_async_context(actor.db)
            await prepare(roaming[0].db)
            await asyncio.gather(*(actor.db.query("SELECT 1") for actor in everybody))  # strict: everybody has it all
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as tasks:
            for actor in waiting:
                tasks.create_task(actor.act(until, WAITING, PAUSE_S))
            for actor in at_once:
                tasks.create_task(actor.act(until, AT_ONCE, PAUSE_S))
            for actor in roaming:
                tasks.create_task(actor.act(until, [*WAITING, *AT_ONCE], PAUSE_S))
            tasks.create_task(_strike(nemesis, recorder, until))
            tasks.create_task(comings.come_and_go(until))
        await asyncio.to_thread(nemesis.calm)  # somebody may have been killed since while it lingered
        await comings.all_leave()
        await asyncio.to_thread(until_primary, local, NAMES, PATIENCE_S)
        patience = time.monotonic() + PATIENCE_S
        await asyncio.gather(*(actor.wait_for_accepted(patience) for actor in everybody))
        await asyncio.gather(*(actor.look_in_the_end(PATIENCE_S) for actor in waiting))
        await _compare(waiting, recorder, patience)


async def _strike(nemesis: Nemesis, recorder: Recorder, until: float) -> None:
    """Until it is over; then all is well, so that who is still joining or leaving comes to an end."""
    while time.monotonic() < until:
        called = time.monotonic()
        kind, whom = await asyncio.to_thread(nemesis.strike)
        recorder.add(Operation("nemesis", "fault", kind, called, time.monotonic(), Ended.OK, whom))
        await asyncio.sleep(nemesis.pause())
    await asyncio.to_thread(nemesis.calm)


async def _compare(actors: list[Actor], recorder: Recorder, patience: float) -> None:
    """What the nodes come to, once all are at one position."""
    while True:
        called = time.monotonic()
        async with asyncio.timeout(PATIENCE_S):
            stands = await asyncio.gather(*(actor.db.digests() for actor in actors))
        if len({each.position for each in stands}) == 1 or called > patience:
            break
        await asyncio.sleep(_POLL_S)
    for actor, each in zip(actors, stands, strict=True):
        seen = [each.position, each.order.hex(), each.state.hex()]
        final = Operation(actor.name, "final digests", actor.node, called, time.monotonic(), Ended.OK, None, seen)
        recorder.add(final)


if __name__ == "__main__":
    print(judged(Path(sys.argv[1]), "?"))
