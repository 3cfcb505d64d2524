"""The judge of dirty reads, on histories that are known to be right or wrong.

A case is a line: `1 p accept a.1; 2 p dirty 0 a.1 b.1; order a.1 b.1`: when, at which node (`-`: anywhere), what, and
in the end the order. `insert` is done, `ask` has an unknown end, `fail` has failed, `newest 2` saw row 2 as green,
`dirty 1` saw these above row 1. `kill`, `log failed` and `back` are the nemesis's.
"""

from __future__ import annotations

import pytest

from tests.jepsen import dirty
from tests.jepsen.history import Ended, Operation

GOOD = [
    "1 p accept a.1; 2 p dirty 0 a.1; order a.1",
    "1 p accept a.1; 1 q insert b.1; 2 p dirty 0 a.1; order b.1 a.1",
    "1 p accept a.1; 1 q insert b.1; 2 p dirty 0 b.1 a.1; 3 p dirty 0 a.1 b.1; order b.1 a.1",
    "1 p insert a.1; 2 p newest 1; 3 p accept a.2; 4 p dirty 1 a.2; order a.1 a.2",
    "1 p insert a.1; 2 p newest 1; 3 q accept b.1; 4 p dirty 1; order a.1 b.1",
    "1 p ask a.1; 2 p dirty 0; 3 p dirty 0 a.1; order a.1",
    "1 q accept b.1; 2 p dirty 0 b.1; 3 - kill p; 4 p dirty 0; order b.1",
    "1 q accept b.1; 2 p dirty 0 b.1; 3 - log failed p; 4 - back; 5 p dirty 0; order b.1",
    "1 q insert b.1; 2 q insert b.2; 3 - dirty 1 b.1; order b.1 b.2",
]
BAD = [
    ("1 p accept a.1; 2 p dirty 0; order a.1", "a.1 was accepted there before, and is not seen"),
    ("1 p accept a.1; 2 - kill p; 3 p dirty 0; order a.1", "a.1 was accepted there before, and is not seen"),
    ("1 p insert a.1; 2 p dirty 0; order a.1", "a.1 was accepted there before, and is not seen"),
    ("1 q insert b.1; 2 p newest 1; 3 p dirty 0; order b.1", "row 1 was green there before"),
    (
        "1 q insert b.1; 1 q ask c.1; 2 p newest 1; 3 p dirty 0 c.1 b.1; order b.1 c.1",
        "row 1 is c.1, and was green before as",
    ),
    ("1 p insert a.1; 2 p newest 1; 3 p dirty 1 a.1; order a.1", "a.1 is there a second time"),
    ("1 p accept a.1; 2 p dirty 0 a.1 a.1; order a.1", "a.1 2 times"),
    ("1 p dirty 0 a.1; 2 p accept a.1; order a.1", "nobody had asked for a.1"),
    ("1 p fail a.1; 2 p dirty 0 a.1; order", "a.1 has failed"),
    ("1 p ask a.1; 2 p dirty 0 a.1; order", "a.1 was never ordered"),
    ("1 q accept b.1; 2 p dirty 0 b.1; 3 p dirty 0; order b.1", "b.1 was seen there before, and is not"),
    ("1 q accept b.1; 2 - kill p; 3 p dirty 0 b.1; 4 p dirty 0; order b.1", "b.1 was seen there before, and is not"),
    ("1 q accept b.1; 2 q accept b.2; 3 p dirty 0 b.2; order b.1 b.2", "row 1 is b.2, and b.1 is not before it"),
    ("1 q accept b.1; 2 q accept b.2; 3 - dirty 0 b.2 b.1; order b.1 b.2", "b.1 comes after b.2"),
    ("1 q insert b.1; 2 q insert b.2; order b.2 b.1", "in the order of all b.1 comes after b.2"),
]


def history(text: str) -> list[Operation]:
    *told, order = text.split(";")
    found = [_operation(each.split()) for each in told]
    return [*found, _told(99, "q", "final inserts", seen=[[value] for value in order.split()[1:]])]


def _operation(words: list[str]) -> Operation:
    when, node, kind, *rest = words
    at = float(when)
    match kind, rest:
        case "insert" | "accept", [value]:
            return _told(at, node, kind, value)
        case "ask" | "fail", [value]:
            return _told(at, node, "insert", value, ended=Ended.UNKNOWN if kind == "ask" else Ended.FAIL)
        case "newest", [number]:
            return _told(at, node, kind, seen=int(number))
        case "dirty", [floor, *values]:
            rows = [[number, value] for number, value in enumerate(values, int(floor) + 1)]
            return _told(at, node, "dirty rows", int(floor), rows)
        case _:
            fault, name = (kind, rest[-1]) if kind == "kill" else (" ".join([kind, *rest[:-1]]), "".join(rest[-1:]))
            return Operation("nemesis", "fault", fault, at, at + 0.5, Ended.OK, name)


def _told(
    at: float, node: str, kind: str, value: object = None, seen: object = None, ended: Ended = Ended.OK
) -> Operation:
    return Operation("c", kind, "", at, at + 0.5, ended, value, seen, node.strip("-"))


@pytest.mark.parametrize("text", GOOD)
def test_what_a_dirty_read_may_show(text: str) -> None:
    assert list(dirty.complaints(history(text))) == []


@pytest.mark.parametrize(("text", "wanted"), BAD)
def test_what_a_dirty_read_may_not_show(text: str, wanted: str) -> None:
    found = list(dirty.complaints(history(text)))
    assert any(wanted in each for each in found), found


def test_rows_have_no_holes_between_them() -> None:
    whole = history("1 p accept a.1; 2 p accept a.2; 3 p dirty 0 a.1 a.2; order a.1 a.2")
    holed = [
        _told(3, "p", "dirty rows", 0, [[1, "a.1"], [3, "a.2"]]) if each.kind == "dirty rows" else each
        for each in whole
    ]
    assert list(dirty.complaints(whole)) == []
    assert ["have the numbers [1, 3]" in each for each in dirty.complaints(holed)] == [True]
