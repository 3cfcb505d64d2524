"""Make the trace, judge it by each engine, and say how fast, how large, and whether just what was planted was found."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from benchmarks.audits import dataset, memory, standalone
from greenline.pipeline import session
from greenline.pipeline.audit import Verdicts, opened
from greenline.spec.judge import Broken

EVENTS = int(os.environ.get("BENCH_EVENTS", "1000000"))
ENGINES = os.environ.get("BENCH_ENGINES", "duckdb spark").split()
MASTERS = os.environ.get("BENCH_MASTERS", "").split()
MEMORY = os.environ.get("BENCH_MEMORY", "3g")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="greenline-audits-") as made:
        place = Path(made) / "trace"
        place.mkdir()
        expected = dataset.make(place, EVENTS)
        rules = {each.rule for each in expected}
        print(f"{len({each.run for each in expected})} runs with a mistake break {len(rules)} rules", flush=True)
        asked = [(engine, None) for engine in ENGINES] + [("spark", master) for master in MASTERS]
        wrong = sum(not _judged(place, engine, master, expected) for engine, master in asked)
        return 1 if wrong else 0


def _judged(place: Path, engine: str, name: str | None, expected: list[Broken]) -> bool:
    with standalone.cluster() if name == "standalone" else nullcontext(name) as master:
        with memory.watched(os.getpid()) as peak, opened(place, engine=engine, master=master, memory=MEMORY) as audit:
            found = audit.judge(["evs"])
        if engine == "spark":
            session.stop()
    _say(found, name or "this machine", peak.gib)
    broken = [each for verdict in found.verdicts for each in verdict.broken]
    is_right = sorted(map(repr, broken)) == sorted(map(repr, expected))
    print("found what was planted, and nothing else" if is_right else "FAIL: found something else", flush=True)
    return is_right


def _say(found: Verdicts, where: str, gib: float) -> None:
    events = found.counts.events
    print(f"\n{found.engine} on {where}: {events:,} events of {found.counts.runs:,} runs")
    for name, seconds in [
        ("what rules share", found.preparing),
        *((each.rule.title, each.seconds) for each in found.verdicts),
        ("in all", found.seconds),
    ]:
        print(f"  {name:<52}{seconds:>9.1f} s {events / seconds:>14,.0f} events/s")
    print(f"  {'memory, at most, of all processes together':<52}{gib:>9.2f} GiB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
