"""The run itself, from a seed; and what the checkers say to its history once somebody has tampered with it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.jepsen.checks import complaints
from tests.jepsen.history import Operation
from tests.jepsen.run import Report, jepsen

SECONDS = float(os.environ.get("JEPSEN_SECONDS", "45"))
SEED = os.environ.get("JEPSEN_SEED", "0")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    place = tmp_path_factory.mktemp("jepsen")
    print(f"\nseed {SEED}, {SECONDS:g} s, in {place}")
    begun = time.monotonic()
    report = jepsen(place, SECONDS, SEED)
    print(report)
    print(f"{time.monotonic() - begun:.0f} s in all; judge it again: python -m tests.jepsen.run {place}")
    return report


def test_whatever_goes_wrong_nothing_that_a_client_was_told_is_lost_or_doubled(report: Report) -> None:
    assert report.complaints == []


Tampering = Callable[[list[Operation]], list[Operation]]


def last(kind: str, change: Callable[[Operation], Any], key: str | None = None, *, stays: bool = False) -> Tampering:
    """The last one of this kind that was told something, at one node for ever, has been told something else."""

    def tampered(operations: list[Operation]) -> list[Operation]:
        told = [each for each in operations if each.kind == kind and each.is_ok and each.seen]
        victim = [each for each in told if key in (None, each.key) and (each.node or not stays)][-1]
        return [msgspec.structs.replace(each, seen=change(each)) if each is victim else each for each in operations]

    return tampered


def without_one_that_was_done(kind: str) -> Tampering:
    """Somebody was told so, and in the end one node lacks it."""

    def tampered(operations: list[Operation]) -> list[Operation]:
        done = next(each.value for each in operations if each.kind == kind and each.is_ok and each.seen)
        row = done if isinstance(done, list) else [done]
        return last(f"final {kind}s", lambda each: [each for each in each.seen if each != row])(operations)

    return tampered


def without_an_outcome(operations: list[Operation]) -> list[Operation]:
    """Nobody was told what became of one that was accepted."""
    victim = next(each for each in operations if each.kind == "green")
    return [each for each in operations if each is not victim]


def with_swapped_reads(operations: list[Operation]) -> list[Operation]:
    """Two of one list, of which the second saw more, when the first had returned."""
    reads = [each for each in operations if each.kind == "read list" and each.is_ok]
    one, other = next(
        (one, other)
        for one in reads
        for other in reads
        if one.key == other.key and one.returned < other.called and len(one.seen) < len(other.seen)
    )
    swapped = {id(one): other.seen, id(other): one.seen}
    return [
        msgspec.structs.replace(each, seen=swapped[id(each)]) if id(each) in swapped else each for each in operations
    ]


def with_a_stale_read(operations: list[Operation]) -> list[Operation]:
    """Somebody reads a register, once all is over, as it was in the beginning."""
    end = max(each.returned for each in operations) + 1
    written = next(each for each in operations if each.kind == "write" and each.is_ok)
    first = msgspec.structs.replace(written, kind="read", called=end, returned=end, value=None, seen=None)
    return [*operations, first]


def _swapped(rows: list[list[Any]]) -> list[list[Any]]:
    """The first two of them."""
    (one, value), (two, other), *rest = rows
    return [[one, other], [two, value], *rest]


TAMPERED = {
    "insert .* has lost it": without_one_that_was_done("insert"),
    "insert .* 2 times": last("final inserts", lambda each: [*each.seen, each.seen[0]]),
    "insert .* nobody asked for it": last("final inserts", lambda each: [*each.seen, ["z.1"]]),
    "transfer .* has lost it": without_one_that_was_done("transfer"),
    "its transfers come to": last("final accounts", lambda each: [[0, 1], *each.seen[1:]]),
    "and 600 in them": last("total", lambda _: [599, 6]),
    "did not become green": without_an_outcome,
    "list .* not linearizable": with_swapped_reads,
    "list .* stands there 2 times": last("final lists", lambda each: [[k, f"{v} {v}"] for k, v in each.seen]),
    "register .* not linearizable": with_a_stale_read,
    "goes back behind": last("newest", lambda _: 0, "session"),
    "it was inserted once, and before": last("own", lambda _: 0, "session"),
    "nobody had asked for": last("dirty rows", lambda each: [*each.seen[:-1], [each.seen[-1][0], "z.1"]]),
    "dirty rows .* 2 times": last("dirty rows", lambda each: [*each.seen, [each.seen[-1][0] + 1, each.seen[-1][1]]]),
    "have the numbers": last("dirty rows", lambda each: [[number + 1, value] for number, value in each.seen]),
    "was green there before": last("dirty rows", lambda _: [], stays=True),
    "and was green before as": last("dirty rows", lambda each: _swapped(each.seen), stays=True),
    "the digests differ": last("final digests", lambda each: [each.seen[0], each.seen[1], "00"]),
}


@pytest.mark.parametrize("wanted", TAMPERED)
def test_a_history_that_somebody_has_tampered_with_is_found_out(report: Report, wanted: str) -> None:
    """A check that cannot fail is worse than none."""
    found = set(complaints(TAMPERED[wanted](report.operations))) - set(report.complaints)
    assert any(re.search(wanted, each) for each in found), found
