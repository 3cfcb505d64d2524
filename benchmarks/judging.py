"""How long judging takes: a long trace by all rules of EVS, and small runs beside playing them."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator

from benchmarks.figures import Figure, seconds
from benchmarks.long import long_execution
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import play
from greenline.simulation.subjects import ADVERSARY
from greenline.spec.judge import Judge
from greenline.trace.tables import to_table

PROCESSES = 8
RUNS = 100


def measure() -> Iterator[Figure]:
    for events in (10_000, 100_000, 1_000_000):
        trace = to_table([("long", long_execution(events, PROCESSES))])
        begun = time.perf_counter()
        broken = Judge(("evs",), threads=os.cpu_count() or 1).broken(trace)
        taken = time.perf_counter() - begun
        assert not broken, "the long execution is legal"
        is_longest = events == 1_000_000
        goal = 20.0 if is_longest else None
        yield Figure(f"all EVS rules over {trace.num_rows:,} events", taken, "s", goal, at_least=False)
        del trace
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Figure("most memory so far, with the trace and its making", peak, "GiB", 4.0, at_least=False)

    plans = [draw_plan(ADVERSARY, seed, 5, "calm") for seed in range(RUNS)]
    runs = [play(plan) for plan in plans]
    judge = Judge(ADVERSARY.rules)
    judge.broken(to_table([(runs[0].plan.run, runs[0].rows)]))
    played = seconds(lambda: [play(plan) for plan in plans], 2)
    judged = seconds(lambda: judge.broken(to_table((run.plan.run, run.rows) for run in runs)), 2)
    yield Figure(f"judging {RUNS} adversary runs, share of playing them", judged / played, "", None, at_least=False)
