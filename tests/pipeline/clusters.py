"""Clusters that keep their order for whoever reads it late: a pipeline takes its time to start, and is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from greenline.cli.local import Local, make
from greenline.node.config import Tracing
from tests.node.databases import databases

KEPT = 1_000_000


@contextmanager
def keeping(place: Path, names: str = "p q r") -> Iterator[Local]:
    """All in one primary component to begin with; stopped in the end."""
    make(place, tuple(names.split()), trace=Tracing.OFF)
    for path in place.glob("*.toml"):
        path.write_text(f"{path.read_text()}\n[engine]\nretain_after_white = {KEPT}\n")
    with databases(place, names) as local:
        yield local
