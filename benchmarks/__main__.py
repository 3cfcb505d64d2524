"""Run every benchmark; the exit status says whether every goal was met."""

from __future__ import annotations

import sys

from benchmarks import engines, faults, judging, ring_cores, sessions, simulator, sites, spine, thesis
from benchmarks.database import speed
from benchmarks.pipeline import drain, live


def main() -> int:
    missed = 0
    for area in (simulator, judging, thesis, ring_cores, engines, sessions, spine, faults, sites, speed, drain, live):
        for figure in area.measure():
            print(figure, flush=True)
            missed += not figure.is_met
    print(f"{missed} goals missed" if missed else "every goal met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
