"""How fast the simulator steps, and how long a storm takes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.figures import Figure, seconds
from greenline.kernel.core import Chance
from greenline.kernel.effects import Effect, Send
from greenline.kernel.events import Event, Received
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.router import Layer
from greenline.simulation.agenda import Agenda
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import play
from greenline.simulation.subjects import NOTICEBOARD
from greenline.simulation.world import World
from greenline.spec.judge import Judge
from greenline.trace.stream import TraceWriter
from greenline.trace.tables import to_parquet, to_table

EVENTS = 100_000
STORMS = 60
ROWS = 200_000


class Token(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    number: int


class Relay:
    """The trivial core: passes a token on."""

    phase = None

    def __init__(self, successor: ProcId) -> None:
        self.successor = successor

    def handle(self, _: float, event: Event) -> list[Effect]:
        if isinstance(event, Received):
            return [Send(self.successor, Token(event.message.number + 1))]
        return [Send(self.successor, Token(0))]


def _relay(me: ProcId, names: tuple[ProcId, ...], _: Chance) -> list[Layer]:
    return [Layer("relay", 1, Relay(names[(names.index(me) + 1) % len(names)]), Token, Token)]


def _pass_tokens() -> None:
    world = World(("p", "q", "r"), "bench", _relay)
    for process in world.processes.values():
        process.start()
    while world.steps < EVENTS:
        world.agenda.step()


def _bare_agenda() -> None:
    """The baseline: as many events with nothing behind them, from an agenda of the same size."""
    agenda = Agenda()

    def again() -> None:
        agenda.after(0.001, again)

    for _ in range(3):
        again()
    for _ in range(EVENTS):
        agenda.step()


def measure() -> Iterator[Figure]:
    bare = EVENTS / seconds(_bare_agenda)
    rate = EVENTS / seconds(_pass_tokens)
    yield Figure(
        "kernel events a second, trivial core, one core",
        rate,
        "1/s",
        50_000,
        baseline=f"a bare agenda does {bare:,.0f}, {bare / rate:.1f} times as many",
    )

    plans = [draw_plan(NOTICEBOARD, seed, 5, "storm") for seed in range(STORMS)]
    times = []
    for plan in plans:
        begun = time.perf_counter()
        play(plan)
        times.append(time.perf_counter() - begun)
    yield Figure("a storm of five noticeboards, mean", sum(times) / STORMS, "s", 0.3, at_least=False)
    yield Figure(f"the slowest of {STORMS} storms", max(times), "s", 0.3, at_least=False)

    runs = [play(plan) for plan in plans]
    judge = Judge(NOTICEBOARD.rules)
    judge.broken(to_table([(runs[0].plan.run, runs[0].rows)]))
    judged = seconds(lambda: judge.broken(to_table((run.plan.run, run.rows) for run in runs)))
    yield Figure(f"judging {STORMS} storms, share of playing them", judged / sum(times), "", 0.1, at_least=False)

    yield from _trace()


def _trace() -> Iterator[Figure]:
    rows = [Row("p", 1, n, 0.5, "deliver", "ring", "p.1", f"q:1:{n}", "safe", digest="0123abcd") for n in range(ROWS)]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place)

        def write(number: list[int] = [0]) -> None:  # noqa: B006 - a counter of its own
            number[0] += 1
            with TraceWriter(path / f"{number[0]}.trace", "bench") as writer:
                writer.extend(rows)

        taken = seconds(write)
        yield Figure("trace rows written a second", ROWS / taken, "1/s", 500_000)
        yield Figure("bytes a row in the stream", (path / "1.trace").stat().st_size / ROWS, "B")
        converted = seconds(lambda: to_parquet(path / "1.trace"))
        yield Figure("trace rows into Parquet a second", ROWS / converted, "1/s")
