"""Memory: names come from the network, so what is kept by name is kept for so many names at most."""

from __future__ import annotations

from typing import TypeVar

from greenline.kernel.identities import ProcId
from greenline.ring.messages import MOST_NAMES

T = TypeVar("T")


def remember(memory: dict[ProcId, T], name: ProcId, what: T) -> None:
    """Of a flood of names the oldest are forgotten."""
    if name not in memory and len(memory) >= MOST_NAMES:
        del memory[next(iter(memory))]
    memory[name] = what


def count_in(reps: dict[ProcId, int], name: ProcId, incarnation: int) -> None:
    """One more representative, or a later life of one; beyond what a Join can say, it must wait for a later merge."""
    if name in reps or len(reps) < MOST_NAMES:
        reps[name] = max(reps.get(name, 0), incarnation)
