"""Run these, or all of them."""

from __future__ import annotations

import sys

from benchmarks.database import apart, away, recovery, speed

AREAS = {"speed": speed, "recovery": recovery, "away": away, "apart": apart}

if __name__ == "__main__":
    for name in sys.argv[1:] or AREAS:
        for figure in AREAS[name].measure():
            print(figure, flush=True)
