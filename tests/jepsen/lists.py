"""Linearizability of lists that are appended to: the order can be read off the list itself, so nothing is searched.

Every value is appended once. The longest list that anybody was told says in which order the appends took effect, and a
read that saw n of them took effect between the n-th append and the next. So the order of all operations is known, but
for reads of the same length, and it only remains to see whether it agrees with time: nobody comes after somebody who
was called only after he had returned (`test_linearizable` compares this with the search).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from tests.jepsen.history import NEVER, Ended, Operation


def complaints(operations: Sequence[Operation]) -> list[str]:
    """Why these operations on one list cannot have happened; none if they can."""
    known = [each for each in operations if each.ended is not Ended.FAIL]
    failed = {each.value for each in operations if each.ended is Ended.FAIL and each.kind == "append"}
    told = [each for each in known if each.is_ok and each.seen is not None]
    longest: list[Any] = max((each.seen for each in told), key=len, default=[])
    return (
        _of_values(longest, {each.value for each in known if each.kind == "append"}, failed)
        or _of_prefixes(told, longest)
        or _of_time(known, longest)
    )


def _of_values(longest: list[Any], appended: set[Any], failed: set[Any]) -> list[str]:
    found = [f"{value} was appended once and stands there {n} times" for value, n in Counter(longest).items() if n > 1]
    found += [f"{value} is seen, and its append has failed" for value in longest if value in failed]
    found += [f"{value} is seen, and nobody appended it" for value in longest if value not in appended | failed]
    return found


def _of_prefixes(told: list[Operation], longest: list[Any]) -> list[str]:
    found = [f"{each}: no prefix of the longest list" for each in told if each.seen != longest[: len(each.seen)]]
    return found + [
        f"{each}: the list ends with another one"
        for each in told
        if each.kind == "append" and each.seen[-1:] != [each.value]
    ]


def _of_time(known: list[Operation], longest: list[Any]) -> list[str]:
    numbers = {value: number for number, value in enumerate(longest, 1)}
    placed = sorted(((_place(each, numbers), each) for each in known), key=_first)
    found: list[str] = []
    latest: Operation | None = None  # of all that took effect in an earlier place, the one that was called last
    for _, together in groupby(placed, key=_first):
        here = [each for _, each in together]
        if latest is not None:
            found += [
                f"{each} took effect after {latest}, which was called when it had returned"
                for each in here
                if each.end < latest.called
            ]
        latest = max([*here, latest or here[0]], key=lambda each: each.called)
    return found


def _place(operation: Operation, numbers: dict[Any, int]) -> float:
    """In the one order: append number n at n, who saw n of them between n and n + 1; who is not seen, in the end."""
    if operation.kind == "append":
        return numbers.get(operation.value, NEVER)
    return len(operation.seen) + 0.5 if operation.is_ok else NEVER


def _first(placed: tuple[float, Operation]) -> float:
    return placed[0]
