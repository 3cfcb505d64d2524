"""A figure: what was measured, beside the goal, and beside a baseline of the same run where there is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    name: str
    measured: float
    unit: str
    goal: float | None = None
    at_least: bool = True
    """Is the goal a floor or a ceiling?"""
    baseline: str = ""

    @property
    def is_met(self) -> bool:
        if self.goal is None:
            return True
        return self.measured >= self.goal if self.at_least else self.measured <= self.goal

    def __str__(self) -> str:
        goal = ""
        if self.goal is not None:
            verdict = "met" if self.is_met else "MISSED"
            goal = f"goal {'>=' if self.at_least else '<='} {self.goal:,g}   {verdict}"
        return f"{self.name:<52}{_short(self.measured):>12} {self.unit:<12}{goal}   {self.baseline}".rstrip()


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """The best of several tries: what the machine's other tenants did is not ours."""
    best = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best
