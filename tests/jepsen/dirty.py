"""Dirty reads: what is ordered at a node, and on top of it what is accepted there and not ordered yet.

All inserts go to the end of one table and none is ever deleted. So the row numbers in the end are the order of all
inserts, and a dirty read at a node is the beginning of that order, as far as the node knows it, with what is red there
behind it. A client who stays at a node looks at the rows above a number of which it knows that it was green there.
What must be so of what it is told (docs/guarantees.md, docs/semantics.md):

- Rows are numbered without a hole, and none is there twice: a red one that has become green is no red one.
- Somebody has asked for each before, and it is ordered in the end: red is accepted, and what is accepted is ordered.
- All that was green there before is there, in its place.
- All that was accepted there before is there, from the moment on in which anybody was told so; also if the node has
  crashed since: it is on its disk. What it had heard from others stays until it crashes.
- Requests of a client are decided in the order in which it made them, so whoever sees one sees those before it, before
  it. That holds for the order itself, too.

Nothing is said of the order of what several clients have asked for: it may still come out otherwise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any

from tests.jepsen.history import NEVER, Ended, Operation, of_kinds
from tests.jepsen.nemesis import DISKS, KILLS

NOTICES_WITHIN_S = 5.0
"""So long after its disk works again a node may still answer without having noticed that it has failed."""


def complaints(operations: list[Operation]) -> Iterator[str]:
    known = _Known(operations)
    yield from (f"in the order of all {why}" for why in _out_of_turn(known.order))
    reads: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for each in of_kinds(operations, "dirty rows"):
        if each.is_ok:
            reads[each.client, each.node].append(each)
    for (_, node), of_one in sorted(reads.items()):
        for each in of_one:
            yield from (f"{each}: {why}" for why in _of_any(known, each))
        if node:
            yield from _of_one_who_stays(known, node, of_one)


def inserts(operations: list[Operation]) -> dict[Any, Ended]:
    """How each ended: of those that were accepted, later."""
    ended = {each.value: each.ended for each in of_kinds(operations, "insert")}
    for each in of_kinds(operations, "accept"):
        ended[each.value] = Ended.FAIL if each.ended is Ended.FAIL else Ended.UNKNOWN
    return ended | {each.value: each.ended for each in of_kinds(operations, "green")}


class _Known:
    """What is known from everything but dirty reads."""

    def __init__(self, operations: list[Operation]) -> None:
        ends = [[value for (value,) in each.seen] for each in of_kinds(operations, "final inserts")]
        self.order: list[str] = max(ends, key=len, default=[])
        self.place = {value: number for number, value in enumerate(self.order, 1)}
        self.called = {each.value: each.called for each in of_kinds(operations, "insert", "accept")}
        self.ended = inserts(operations)
        by_client = sorted(self.order, key=_asker)
        self.before = {two: one for one, two in pairwise(by_client) if _asker(one)[0] == _asker(two)[0]}
        """What its client had asked for before it, and was done."""
        staying = [each for each in operations if each.is_ok and each.node]
        self.accepted = _by_node((each, each.value) for each in of_kinds(staying, "insert", "accept"))
        """When somebody was told so."""
        seen = ((each, each.seen) for each in of_kinds(staying, "newest"))
        done = ((each, self.place.get(each.value, 0)) for each in of_kinds(staying, "insert"))
        self._green = {node: _highest(told) for node, told in _by_node((*seen, *done)).items()}
        self._crashes = _crashes(list(of_kinds(operations, "fault")))

    def green_at(self, node: str, when: float) -> int:
        """A row number up to which everything was green there before."""
        return int(_latest(self._green.get(node, []), when))

    def crashed_until(self, node: str, when: float) -> float:
        """Later than that, and until then, it was surely neither killed nor stopped by its disk."""
        return _latest(self._crashes.get(node, []), when)


def _by_node(told: Iterable[tuple[Operation, Any]]) -> dict[str, list[tuple[float, Any]]]:
    """When somebody was told what, in the order of time."""
    found: dict[str, list[tuple[float, Any]]] = defaultdict(list)
    for each, what in told:
        found[each.node].append((each.returned, what))
    return {node: sorted(of_node) for node, of_node in found.items()}


def _highest(moments: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
    """The highest by each moment."""
    return [
        (when, most) for (when, _), most in zip(moments, accumulate((each for _, each in moments), max), strict=True)
    ]


def _latest(moments: list[tuple[float, Any]], when: float) -> float:
    before = bisect_left(moments, (when,))
    return float(moments[before - 1][1]) if before else 0.0


def _crashes(faults: list[Operation]) -> dict[str, list[tuple[float, Any]]]:
    """Of each node: from when on it may have crashed, and until when."""
    found: dict[str, list[tuple[float, Any]]] = defaultdict(list)
    well = sorted(each.returned for each in faults if each.key == "back")
    for each in faults:
        end = each.returned
        if each.key in DISKS:
            end = next((when for when in well if when > each.returned), NEVER) + NOTICES_WITHIN_S
        if each.key in DISKS or each.key in KILLS:
            for name in each.value.split():
                found[name].append((each.called, end))
    return {name: _highest(sorted(of_node)) for name, of_node in found.items()}


def _of_any(known: _Known, read: Operation) -> Iterator[str]:
    """What must be so wherever it was asked."""
    numbers, values = [number for number, _ in read.seen], [value for _, value in read.seen]
    if numbers != list(range(read.value + 1, read.value + 1 + len(numbers))):
        yield f"the rows above {read.value} have the numbers {numbers}"
    yield from (f"{value} {n} times" for value, n in Counter(values).items() if n > 1)
    for value in values:
        if known.called.get(value, read.returned) >= read.returned:
            yield f"nobody had asked for {value}"
        elif known.ended[value] is Ended.FAIL:
            yield f"{value} has failed"
        elif value not in known.place:
            yield f"{value} was never ordered"
    yield from _out_of_turn(values)


def _of_one_who_stays(known: _Known, node: str, reads: Iterable[Operation]) -> Iterator[str]:
    accepted = iter(known.accepted.get(node, []))
    soon = next(accepted, None)
    mine: set[str] = set()  # accepted here, and above the number that it asks for
    seen: dict[str, float] = {}  # in its last dirty read, and since when
    for each in sorted(reads, key=lambda read: read.called):
        floor, values = each.value, {value for _, value in each.seen}
        while soon is not None and soon[0] < each.called:
            mine.add(soon[1])
            soon = next(accepted, None)
        mine = {value for value in mine if known.place.get(value, NEVER) > floor}
        crashed = known.crashed_until(node, each.returned)
        heard = {value for value, since in seen.items() if since > crashed and known.place.get(value, NEVER) > floor}
        for why in (
            *_of_green(known, each, known.green_at(node, each.called)),
            *(f"{value} was accepted there before, and is not seen" for value in sorted(mine - values)),
            *(f"{value} was seen there before, and is not" for value in sorted(heard - mine - values)),
            *_of_predecessors(known, each),
        ):
            yield f"{each}: {why}"
        seen = {value: seen.get(value, each.called) for value in values}


def _of_green(known: _Known, read: Operation, green: int) -> Iterator[str]:
    """All of it is there, in its place, and what is below the floor is not there again."""
    floor = read.value
    if green > floor + len(read.seen):
        yield f"row {green} was green there before"
    for number, value in read.seen:
        if number <= green and known.order[number - 1 : number] != [value]:
            yield f"row {number} is {value}, and was green before as {known.order[number - 1 : number]}"
        if known.place.get(value, number) <= floor:
            yield f"{value} is there a second time: it is green, below row {floor}"


def _of_predecessors(known: _Known, read: Operation) -> Iterator[str]:
    """What its client had asked for before it is before it, or below the floor."""
    met: set[str] = set()
    for number, value in read.seen:
        before = known.before.get(value)
        if before is not None and before not in met and known.place[before] > read.value:
            yield f"row {number} is {value}, and {before} is not before it"
        met.add(value)


def _out_of_turn(values: Iterable[str]) -> Iterator[str]:
    last: dict[str, int] = {}
    for value in values:
        client, number = _asker(value)
        if last.get(client, 0) > number:
            yield f"{value} comes after {client}.{last[client]}"
        last[client] = number


def _asker(value: str) -> tuple[str, int]:
    """Which client, and its how manieth request."""
    client, _, number = value.rpartition(".")
    return client, int(number)
