"""The checkers, on histories that are known to be right or wrong, and against one that tries every order.

A case is a line: `0-2 write 1; 3-? write 2; 4-5 read 1`, each with its call and its return; `?`: nobody knows how it
ended, `!` behind it: it has failed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations, permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.jepsen import lists
from tests.jepsen.history import Ended, Operation
from tests.jepsen.linearizable import List, Model, Register, witness

GOOD_REGISTERS = [
    "0-1 write 1; 2-3 read 1",
    "0-1 read -; 2-3 write 1",
    "0-5 write 1; 1-2 read -; 3-4 read 1",
    "0-5 write 1; 0-5 write 2; 6-7 read 1",
    "0-1 write 1; 2-3 cas 1 2 yes 2; 4-5 read 2",
    "0-1 write 1; 2-3 cas 9 2 no 1; 4-5 read 1",
    "0-? write 1; 2-3 read -; 4-5 read 1",
    "0-? write 1; 2-3 read -; 4-5 read -",
    "0-1 write 1; 2-? write 2; 3-4 read 1; 5-6 write 3; 7-8 read 2",
    "0-1 write 1; 2-? cas 1 2; 3-4 read 1; 5-6 read 2",
    "0-1 write 1; 2-? write 2; 3-4 cas 1 3 no 2; 5-6 read 2",
    "0-1 write 1; 2-3 write 2 !; 4-5 read 1",
    "0-? write 1; 0-? cas 1 2; 3-4 read 2",
    "0-? write 1; 0-? cas 2 3; 0-? cas 1 2; 3-4 read 3",
]

BAD_REGISTERS = {
    "a stale read": "0-1 write 1; 2-3 write 2; 4-5 read 1",
    "a read of nothing after a write": "0-1 write 1; 2-3 read -",
    "back in time": "0-9 write 1; 1-2 read 1; 3-4 read -",
    "two orders of two writes": "0-9 write 1; 0-9 write 2; 1-2 read 1; 3-4 read 2; 5-6 read 1",
    "a read of a failed write": "0-1 write 1 !; 2-3 read 1",
    "a read of the future": "0-1 read 1; 2-3 write 1",
    "a lost update": "0-1 write 1; 2-5 cas 1 2 yes 2; 2-5 cas 1 3 yes 3",
    "a condition that did not hold": "0-1 write 1; 2-3 write 2; 4-5 cas 1 3 yes 3",
    "a condition that held": "0-1 write 1; 2-3 cas 1 2 no 1",
    "done twice": "0-1 write 1; 2-? write 2; 3-4 read 2; 5-6 write 3; 7-8 read 2",
}

GOOD_LISTS = [
    "0-1 append 1; 2-3 read 1",
    "0-5 append 1; 0-5 append 2; 6-7 read 2,1",
    "0-? append 1; 2-3 read -; 4-5 read 1",
    "0-? append 1; 2-3 append 2; 4-5 read 2",
    "0-1 append 1 sees 1; 2-3 append 2 sees 1,2",
]

BAD_LISTS = {
    "a stale read": "0-1 append 1; 2-3 append 2; 4-5 read 1",
    "a lost append": "0-1 append 1; 2-3 append 2; 4-5 read 2",
    "a doubled append": "0-1 append 1; 2-3 read 1,1",
    "an append that failed": "0-1 append 1 !; 2-3 read 1",
    "out of nothing": "0-1 append 1; 2-3 read 1,7",
    "two orders": "0-9 append 1; 0-9 append 2; 1-2 read 1; 3-4 read 2",
    "an order against time": "0-1 append 1; 2-3 append 2; 4-5 read 2,1",
    "a read of the future": "0-1 read 1; 2-3 append 1",
    "not the last": "0-1 append 1; 2-3 append 2 sees 2,1",
    "an append in two places": "0-9 append 1 sees 1; 0-9 append 2 sees 2",
}


def history(text: str) -> list[Operation]:
    return [_operation(part.split()) for part in text.split(";")]


def _operation(words: list[str]) -> Operation:
    times, kind, *rest = words
    called, _, returned = times.partition("-")
    ended = Ended.UNKNOWN if returned == "?" else Ended.OK
    if rest[-1] == "!":
        ended = Ended.FAIL
    value: object = None
    seen: object = None
    match kind, rest:
        case "read", [text] if "," in text:
            seen = text.split(",")
        case "read", [text]:
            seen = None if text == "-" else text
        case "cas", [old, new, *told]:
            value, seen = [old, new], [told == ["yes", new], told[-1]] if told else None
        case "append", [text, "sees", told]:
            value, seen = text, told.split(",")
        case _, [text, *_]:
            value = text
    name = {"cas": "compare and set"}.get(kind, kind)
    return Operation("c", name, "k", float(called), float(returned.replace("?", "0")), ended, value, seen)


def list_history(text: str) -> list[Operation]:
    """A read of one or none is a list, too."""
    found = []
    for each in history(text):
        if each.kind == "read":
            told = each.seen if isinstance(each.seen, list) else [each.seen] if each.seen else []
            found.append(Operation("c", "read list", "k", each.called, each.returned, each.ended, None, told))
        else:
            found.append(each)
    return found


@pytest.mark.parametrize("text", GOOD_REGISTERS)
def test_what_can_have_happened_to_a_register_is_found_good(text: str) -> None:
    assert witness(Register(), history(text)) is None


@pytest.mark.parametrize("text", BAD_REGISTERS.values(), ids=BAD_REGISTERS.keys())
def test_what_cannot_have_happened_to_a_register_is_found_out(text: str) -> None:
    assert witness(Register(), history(text)) is not None


@pytest.mark.parametrize("text", GOOD_LISTS)
def test_what_can_have_happened_to_a_list_is_found_good(text: str) -> None:
    assert lists.complaints(list_history(text)) == []
    assert witness(List(), list_history(text)) is None


@pytest.mark.parametrize("text", BAD_LISTS.values(), ids=BAD_LISTS.keys())
def test_what_cannot_have_happened_to_a_list_is_found_out(text: str) -> None:
    assert lists.complaints(list_history(text))
    assert witness(List(), list_history(text)) is not None


def can_have_happened(model: Model, operations: Sequence[Operation]) -> bool:
    """The plain twin: any of the unknown ones, and any order of all that agrees with time."""
    certain = [each for each in operations if each.is_ok]
    unknown = [each for each in operations if each.ended is Ended.UNKNOWN and not each.kind.startswith("read")]
    return any(
        _explains(model, order)
        for count in range(len(unknown) + 1)
        for some in combinations(unknown, count)
        for order in permutations([*certain, *some])
    )


def _explains(model: Model, order: Sequence[Operation]) -> bool:
    state = model.initial
    for at, operation in enumerate(order):
        if any(later.end < operation.called for later in order[at + 1 :]):
            return False
        state = model.after(state, operation)
        if state is None:
            return False
    return True


_FEW = st.integers(1, 2)
_REGISTER_DEEDS: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("write"), _FEW, st.none()),
    st.tuples(st.just("read"), st.none(), st.none() | _FEW),
    st.tuples(st.just("compare and set"), st.tuples(_FEW, _FEW), st.tuples(st.booleans(), st.none() | _FEW).map(list)),
)


def _list_deeds(number: int) -> st.SearchStrategy[Any]:
    some = st.lists(st.integers(0, 2), unique=True, max_size=3)
    return st.one_of(
        st.tuples(st.just("append"), st.just(number), st.none()),
        st.tuples(st.just("read list"), st.none(), some),
    )


@st.composite
def small_histories(draw: st.DrawFn, *, of_lists: bool) -> list[Operation]:
    """Few operations on few values, so that right and wrong ones are about as frequent."""
    found = []
    for number in range(draw(st.integers(1, 5))):
        called = draw(st.integers(0, 6))
        returned = called + draw(st.integers(1, 5))
        ended = draw(st.sampled_from([Ended.OK, Ended.OK, Ended.OK, Ended.UNKNOWN, Ended.FAIL]))
        kind, value, seen = draw(_list_deeds(number) if of_lists else _REGISTER_DEEDS)
        found.append(Operation("c", kind, "k", called, returned, ended, value, seen))
    return found


@settings(max_examples=200, deadline=None)
@given(small_histories(of_lists=False))
def test_the_search_agrees_with_trying_every_order(operations: list[Operation]) -> None:
    assert (witness(Register(), operations) is None) == can_have_happened(Register(), operations)


@settings(max_examples=200, deadline=None)
@given(small_histories(of_lists=True))
def test_reading_the_order_off_a_list_agrees_with_trying_every_order(operations: list[Operation]) -> None:
    expected = can_have_happened(List(), operations)
    assert (lists.complaints(operations) == []) == expected
    assert (witness(List(), operations) is None) == expected


def real_history(chance: Random, count: int) -> list[Operation]:
    """Eight clients at one register that works, some of whom are not told how it ended."""
    free = [(0.0, f"c{number}") for number in range(8)]
    held: str | None = None
    found = []
    for number in range(count):
        called, client = min(free)
        free.remove((called, client))
        effect = called + 1 + chance.random()
        returned = effect + chance.random() * 4
        free.append((returned, client))
        found.append((effect, called, returned, client, number))
    operations = []
    for _, called, returned, client, number in sorted(found):
        ended = Ended.UNKNOWN if chance.random() < 0.02 else Ended.OK
        if chance.random() < 0.5:
            held = f"v{number}"
            operations.append(Operation(client, "write", "k", called, returned, ended, held))
        else:
            operations.append(Operation(client, "read", "k", called, returned, ended, None, held))
    return operations


def test_a_long_history_with_many_unknown_ends_is_judged_in_seconds() -> None:
    operations = real_history(Random(1), 600)
    begun = time.process_time()
    assert witness(Register(), operations) is None
    assert time.process_time() - begun < 20
