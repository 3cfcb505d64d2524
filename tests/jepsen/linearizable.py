"""Linearizability of one object: is there an order of its operations that explains what each was told?

The search of Wing and Gong, as Lowe has it ("Testing for linearizability", just-in-time): walk through calls and
returns in the order of time, and keep every situation that the object may be in: its state, and which of the open
operations have taken effect. An operation is made to take effect only when somebody's return needs it. When a return
leaves no situation, there is no such order, and that operation is the witness.

One that nobody knows the end of stays open for ever. Of two situations that differ only in how many of those were
spent, the one that has spent fewer can do whatever the other can: so the other is dropped, or they would double with
each timeout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, NamedTuple, Protocol

from tests.jepsen.history import NEVER, Ended, Operation, of_kinds

MOST_SITUATIONS = 200_000


class Model(Protocol):
    """What an object is: pure functions of its state, which can be hashed."""

    initial: Any

    def after(self, state: Any, operation: Operation) -> Any | None:
        """The state after it; None if it cannot have been told what it was told."""

    def is_read(self, operation: Operation) -> bool:
        """It changes nothing, in whatever state."""

    def relevant(self, operations: Sequence[Operation]) -> list[Operation]:
        """Without those that explain nothing and need no explanation."""


class Register:
    """Written, read, and set if it still holds what somebody believes; that one is told what it holds then.

    So nothing that took effect stays hidden from whoever comes next, but for writes: what nobody knows the end of, and
    nobody saw, may as well not have been.
    """

    ABSENT = "absent"
    initial = ABSENT

    def after(self, state: Any, operation: Operation) -> Any | None:
        match operation.kind:
            case "write":
                return operation.value
            case "read":
                return state if operation.seen == self._told(state) else None
            case "compare and set":
                old, new = operation.value
                after = new if state == old else state
                told = [state == old, self._told(after)]
                return after if not operation.is_ok or operation.seen == told else None
        raise AssertionError(f"a register knows no {operation.kind}")

    def _told(self, state: Any) -> Any:
        return None if state == self.ABSENT else state

    def is_read(self, operation: Operation) -> bool:
        has_not_set = operation.is_ok and operation.kind == "compare and set" and not operation.seen[0]
        return operation.kind == "read" or has_not_set

    def relevant(self, operations: Sequence[Operation]) -> list[Operation]:
        told = [each for each in operations if each.is_ok]
        seen = {each.seen for each in told if each.kind == "read"}
        for each in of_kinds(told, "compare and set"):
            seen |= {each.value[0], each.seen[1]}
        untold = list(filter(_may_have_changed, operations))
        while more := {each.value[0] for each in of_kinds(untold, "compare and set") if _new(each) in seen} - seen:
            seen |= more  # what one had to find that may have written what was seen
        return [each for each in operations if each.is_ok or (_may_have_changed(each) and _new(each) in seen)]


class List:
    """Appended to, and read as a whole; an append may be told what the list was after it."""

    initial: tuple[Any, ...] = ()

    def after(self, state: Any, operation: Operation) -> Any | None:
        after: tuple[Any, ...] = (*state, operation.value) if operation.kind == "append" else state
        is_as_told = not operation.is_ok or operation.seen is None or after == tuple(operation.seen)
        return after if is_as_told else None

    def is_read(self, operation: Operation) -> bool:
        return operation.kind == "read list"

    def relevant(self, operations: Sequence[Operation]) -> list[Operation]:
        return [each for each in operations if each.is_ok or _may_have_changed(each)]


def _may_have_changed(operation: Operation) -> bool:
    return operation.ended is Ended.UNKNOWN and not operation.kind.startswith("read")


def _new(operation: Operation) -> Any:
    return operation.value[1] if operation.kind == "compare and set" else operation.value


class TooHard(Exception):
    """Too many operations are open at once: use more keys, each for a shorter time."""


class _Situation(NamedTuple):
    state: Any
    done: frozenset[int]
    """Which of the open operations have taken effect. Of those that will return."""
    spent: frozenset[int]
    """Of those that nobody knows the end of."""


def witness(model: Model, operations: Sequence[Operation]) -> Operation | None:
    """An operation whose return no order explains; None if there is an order."""
    relevant = model.relevant(operations)
    situations = {_Situation(model.initial, frozenset(), frozenset())}
    open_now: dict[int, Operation] = {}
    for _, is_return, number in _moments(relevant):
        if not is_return:
            open_now[number] = relevant[number]
            continue
        situations = {
            _Situation(state, done - {number}, spent)
            for state, done, spent in _with(model, situations, number, open_now)
        }
        if not situations:
            return relevant[number]
        del open_now[number]
    return None


def _moments(operations: Sequence[Operation]) -> list[tuple[float, bool, int]]:
    """Calls and returns in the order of time, calls first: at one moment two overlap."""
    moments = [(each.called, False, number) for number, each in enumerate(operations)]
    moments += [(each.end, True, number) for number, each in enumerate(operations) if each.end != NEVER]
    return sorted(moments)


def _with(
    model: Model, situations: Iterable[_Situation], wanted: int, open_now: dict[int, Operation]
) -> Iterator[_Situation]:
    """All situations, reached from these, in which the wanted one has just taken effect, or has before."""
    reads = {number: each for number, each in open_now.items() if model.is_read(each)}
    changes = {number: each for number, each in open_now.items() if number not in reads}
    fewest = _FewestSpent()
    turns = count()  # situations cannot be compared
    to_do = [(len(each.spent), next(turns), each) for each in situations]
    heapify(to_do)
    while to_do:
        _, turn, situation = heappop(to_do)
        if turn > MOST_SITUATIONS:
            raise TooHard(f"{len(open_now)} operations are open at {open_now[wanted]}")
        situation = _read_by_all(model, situation, reads)
        if not fewest.has_room_for(situation):
            continue
        if wanted in situation.done:
            yield situation
            continue
        for number, operation in changes.items():
            following = _changed(model, situation, number, operation)
            if following is not None:
                heappush(to_do, (len(following.spent), next(turns), following))


def _read_by_all(model: Model, situation: _Situation, reads: dict[int, Operation]) -> _Situation:
    """Whoever can have read this state has: that costs nothing, and later there may be no chance."""
    fitting = {number for number, each in reads.items() if model.after(situation.state, each) is not None}
    return situation._replace(done=situation.done | fitting)


def _changed(model: Model, situation: _Situation, number: int, operation: Operation) -> _Situation | None:
    state, done, spent = situation
    if number in done or number in spent:
        return None
    after = model.after(state, operation)
    if after is None:
        return None
    if operation.end != NEVER:
        return _Situation(after, done | {number}, spent)
    return _Situation(after, done, spent | {number}) if after != state else None


class _FewestSpent:
    """Situations that were met, those that have spent fewer before those that have spent more."""

    def __init__(self) -> None:
        self._met: dict[tuple[Any, frozenset[int]], list[frozenset[int]]] = {}

    def has_room_for(self, situation: _Situation) -> bool:
        """Not if one of the same state has spent no more than a part of what this has."""
        met = self._met.setdefault((situation.state, situation.done), [])
        if any(fewer <= situation.spent for fewer in met):
            return False
        met.append(situation.spent)
        return True
