"""The graph: steps with names, each a plain function from DataFrames to a DataFrame.

A step says what it takes and what it gives; the rest follows. Nothing runs before somebody writes, or collects, what
the last one gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Step:
    gives: str
    takes: tuple[str, ...]
    work: Callable[..., DataFrame]


def joined(steps: Iterable[Step], given: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """What was given, and what each step gives: in their order, which is the order that they take from each other."""
    frames = dict(given)
    for step in steps:
        lacking = [name for name in step.takes if name not in frames]
        assert not lacking, f"the step {step.gives} takes {lacking}, which no step before it gives"
        assert step.gives not in frames, f"two steps give {step.gives}"
        frames[step.gives] = step.work(*(frames[name] for name in step.takes))
    return frames
