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
from typing import Any, NamedTuple, Protocol

from tests.jepsen.history import NEVER, Ended, Operation

MOST_SITUATIONS = 200_000


class Model(Protocol):
    """What an object is: pure functions of its state, which can be hashed."""

    initial: Any

    def after(self, state: Any, operation: Operation) -> Any | None:
        """The state after it; None if it cannot have been told what it was told."""


class Register:
    """Written, read, and written if it still holds what somebody believes. None to begin with is `ABSENT`."""

    ABSENT = "absent"
    initial = ABSENT

    def after(self, state: Any, operation: Operation) -> Any | None:
        match operation.kind:
            case "write":
                return operation.value
            case "read":
                held = self.ABSENT if operation.seen is None else operation.seen
                return state if state == held else None
            case "compare and set":
                old, new = operation.value
                if operation.is_ok and operation.seen != (state == old):
                    return None
                return new if state == old else state
        raise AssertionError(f"a register knows no {operation.kind}")


class List:
    """Appended to, and read as a whole; an append may be told what the list was after it."""

    initial: tuple[Any, ...] = ()

    def after(self, state: Any, operation: Operation) -> Any | None:
        after: tuple[Any, ...] = (*state, operation.value) if operation.kind == "append" else state
        is_as_told = not operation.is_ok or operation.seen is None or after == tuple(operation.seen)
        return after if is_as_told else None


class TooHard(Exception):
    """Too many operations are open at once: use more keys, each for a shorter time."""


class _Situation(NamedTuple):
    state: Any
    done: frozenset[int]
    """Which of the open operations have taken effect. Of those that will return."""
    spent: frozenset[int]
    """Of those that nobody knows the end of."""


def witness(model: Model, operations: Iterable[Operation]) -> Operation | None:
    """An operation whose return no order explains; None if there is an order."""
    relevant = [each for each in operations if _matters(each)]
    situations = {_Situation(model.initial, frozenset(), frozenset())}
    open_now: dict[int, Operation] = {}
    for _, is_return, number in _moments(relevant):
        if not is_return:
            open_now[number] = relevant[number]
            continue
        situations = _fewest_spent(
            after._replace(done=after.done - {number})
            for after in _with(model, situations, number, open_now)
        )
        if not situations:
            return relevant[number]
        del open_now[number]
    return None


def _matters(operation: Operation) -> bool:
    """Not what never happened, nor a read that nobody was told of."""
    is_read = operation.kind.startswith("read")
    return operation.is_ok or (operation.ended is Ended.UNKNOWN and not is_read)


def _moments(operations: Sequence[Operation]) -> list[tuple[float, bool, int]]:
    """Calls and returns in the order of time, calls first: at one moment two overlap."""
    moments = [(each.called, False, number) for number, each in enumerate(operations)]
    moments += [(each.end, True, number) for number, each in enumerate(operations) if each.end != NEVER]
    return sorted(moments)


def _with(
    model: Model, situations: Iterable[_Situation], wanted: int, open_now: dict[int, Operation]
) -> Iterator[_Situation]:
    """All situations, reached from these, in which the wanted one has just taken effect, or has before."""
    seen = set(situations)
    to_do = list(seen)
    while to_do:
        situation = to_do.pop()
        if wanted in situation.done:
            yield situation
            continue
        for number, operation in open_now.items():
            following = _step(model, situation, number, operation)
            if following is not None and following not in seen:
                seen.add(following)
                to_do.append(following)
        if len(seen) > MOST_SITUATIONS:
            raise TooHard(f"{len(open_now)} operations are open at {open_now[wanted]}")


def _step(model: Model, situation: _Situation, number: int, operation: Operation) -> _Situation | None:
    if number in situation.done or number in situation.spent:
        return None
    state = model.after(situation.state, operation)
    if state is None:
        return None
    if operation.end == NEVER:
        # Without any effect it need not be spent.
        return None if state == situation.state else situation._replace(state=state, spent=situation.spent | {number})
    return situation._replace(state=state, done=situation.done | {number})


def _fewest_spent(situations: Iterable[_Situation]) -> set[_Situation]:
    """Without those that have spent all that another one of the same state has, and more."""
    groups: dict[tuple[Any, frozenset[int]], list[frozenset[int]]] = {}
    for situation in sorted(set(situations), key=lambda each: len(each.spent)):
        kept = groups.setdefault((situation.state, situation.done), [])
        if not any(fewer <= situation.spent for fewer in kept):
            kept.append(situation.spent)
    return {_Situation(state, done, spent) for (state, done), kept in groups.items() for spent in kept}
