"""The scripts that the tests share, written once."""

from __future__ import annotations

from functools import cache

from greenline.kernel.statements import Statement
from tests.sql.generator import Generator, Tried

SEEDS = SEED, OTHER = 1, 2
STATEMENTS = {SEED: 10_000, OTHER: 5_000}


@cache
def script(seed: int) -> tuple[Tried, ...]:
    return tuple(Generator(seed).script(STATEMENTS[seed]))


def actions(seed: int) -> list[tuple[Statement, ...]]:
    return [tried.action for tried in script(seed)]


def first(statements: int, seed: int) -> list[tuple[Statement, ...]]:
    """Actions with at least so many statements."""
    return [tried.action for tried in Generator(seed).script(statements)]
