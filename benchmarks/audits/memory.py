"""How much memory a process and all that it started hold together, at most."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAUSE_S = 1.0


class Peak:
    def __init__(self) -> None:
        self.bytes = 0

    @property
    def gib(self) -> float:
        return self.bytes / 2**30


@contextmanager
def watched(pid: int) -> Iterator[Peak]:
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(PAUSE_S):
            peak.bytes = max(peak.bytes, _of_tree(pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


def _of_tree(pid: int) -> int:
    """By the share of each page: what two processes have in common counts once."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    total, found = 0, [pid]
    while found:
        each = found.pop()
        found += children.get(each, [])
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total
