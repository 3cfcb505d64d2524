"""How much: the figures of the goals, unless the environment says otherwise."""

from __future__ import annotations

import os


def _size(name: str, usual: float) -> float:
    return float(os.environ.get(name, usual))


ACTIONS = int(_size("BENCH_ACTIONS", 1_000_000))
"""That somebody misses, or has in the log."""
LARGE_BYTES = int(_size("BENCH_LARGE_MB", 2048) * 1e6)
"""Of a database that somebody is new to."""
RECOVERED_BYTES = int(_size("BENCH_RECOVERED_MB", 1024) * 1e6)
APART_S = _size("BENCH_APART_S", 120)
"""A partition."""
APART_RATE = _size("BENCH_APART_RATE", 100_000)
"""Rows a second that each side asks for, at most."""
