"""What must hold of a history, and why it does not: from values and from times of one clock, nothing that a node says
of itself but its digests in the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from tests.jepsen import dirty, lists
from tests.jepsen.history import Ended, Operation, by_key, of_kinds
from tests.jepsen.linearizable import Register, witness
from tests.jepsen.workload import ACCOUNTS, BALANCE

REGISTER = ("write", "read", "compare and set")
LIST = ("append", "read list")
WAITING = (*REGISTER, *LIST, "insert", "transfer")


def complaints(operations: list[Operation]) -> list[str]:
    """Everything that is wrong."""
    finals = {what: list(of_kinds(operations, f"final {what}")) for what in ("inserts", "transfers", "accounts")}
    return [
        *_of_registers(operations),
        *_of_lists(operations),
        *_of_what_is_there_once("insert", dirty.inserts(operations), _final_values(finals["inserts"])),
        *_of_what_is_there_once("transfer", _transfers(operations), _final_values(finals["transfers"])),
        *_of_accepted(operations),
        *_of_money(operations, finals),
        *_of_reads_that_go_back(operations),
        *_of_own_rows(operations),
        *dirty.complaints(operations),
        *_of_digests(operations),
    ]


# Strict operations are linearizable.


def _of_registers(operations: list[Operation]) -> Iterator[str]:
    ends = _read_in_the_end(operations, "registers", "read")
    for key, history in by_key([*of_kinds(operations, *REGISTER), *ends]).items():
        bad = witness(Register(), history)
        if bad is not None:
            yield f"register {key} is not linearizable: nothing explains {bad}"


def _of_lists(operations: list[Operation]) -> Iterator[str]:
    ends = _read_in_the_end(operations, "lists", "read list")
    for key, history in by_key([*of_kinds(operations, *LIST), *ends]).items():
        yield from (f"list {key} is not linearizable: {why}" for why in lists.complaints(history))


def _read_in_the_end(operations: list[Operation], what: str, kind: str) -> Iterator[Operation]:
    """The last reads, key by key; a key that is not there is read, too."""
    kinds = REGISTER if kind == "read" else LIST
    keys = {each.key for each in of_kinds(operations, *kinds)}
    for final in of_kinds(operations, f"final {what}"):
        held = dict(final.seen)
        for key in sorted(keys | set(held)):
            seen = (held.get(key) or "").split() if kind == "read list" else held.get(key)
            yield Operation(final.client, kind, key, final.called, final.returned, Ended.OK, None, seen, final.node)


# Every write is there once, if anybody was told that it is done; and nothing else is there.


def _transfers(operations: list[Operation]) -> dict[Any, Ended]:
    """One that found too little has moved nothing."""
    return {
        tuple(each.value): Ended.FAIL if each.is_ok and each.seen is False else each.ended
        for each in of_kinds(operations, "transfer")
    }


def _final_values(finals: list[Operation]) -> dict[str, list[Any]]:
    return {each.key: [row[0] if len(row) == 1 else tuple(row) for row in each.seen] for each in finals}


def _of_what_is_there_once(what: str, ended: dict[Any, Ended], found: dict[str, list[Any]]) -> Iterator[str]:
    if not found:
        yield f"nobody has looked at the {what}s in the end"
    for node, values in found.items():
        times = Counter(values)
        yield from (
            f"{what} {value} was done, and {node} has lost it" for value in _all(ended, Ended.OK) if not times[value]
        )
        yield from (f"{what} {value} has failed, and is at {node}" for value in _all(ended, Ended.FAIL) if times[value])
        yield from (f"{what} {value} is at {node} {n} times" for value, n in times.items() if n > 1)
        yield from (f"{what} {value} is at {node}, and nobody asked for it" for value in times if value not in ended)


def _all(ended: dict[Any, Ended], how: Ended) -> list[Any]:
    return [value for value, each in ended.items() if each is how]


def _of_accepted(operations: list[Operation]) -> Iterator[str]:
    green = {each.value for each in of_kinds(operations, "green") if each.is_ok}
    for each in of_kinds(operations, "accept"):
        if each.is_ok and each.value not in green:
            yield f"{each}: accepted, and did not become green"


# Money is neither made nor lost.


def _of_money(operations: list[Operation], finals: dict[str, list[Operation]]) -> Iterator[str]:
    for each in of_kinds(operations, "total"):
        if each.is_ok and each.seen != [ACCOUNTS * BALANCE, ACCOUNTS]:
            yield f"{each}: there are {ACCOUNTS} accounts and {ACCOUNTS * BALANCE} in them"
    moved = {each.key: each.seen for each in finals["transfers"]}
    for final in finals["accounts"]:
        balances = dict.fromkeys(range(ACCOUNTS), BALANCE)
        for _, payer, payee, amount in moved.get(final.key, ()):
            balances[payer] -= amount
            balances[payee] += amount
        if [list(each) for each in balances.items()] != final.seen:
            yield f"the accounts at {final.key} are {final.seen}, and its transfers come to {balances}"


# Weak reads of one node do not go back, nor do those of a session; and who asks for his own rows sees them.


def _of_reads_that_go_back(operations: list[Operation]) -> Iterator[str]:
    groups: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for each in of_kinds(operations, "newest"):
        if each.is_ok and each.key == "weak" and each.node:
            groups["node", each.node].append(each)
        if each.is_ok and each.key == "session":
            groups["session", each.client].append(each)
        if each.is_ok and each.key == "strict":
            groups["strict", ""].append(each)
    for (kind, who), reads in sorted(groups.items()):
        yield from (f"{kind} {who}: {why}" for why in _going_back(reads))


def _going_back(reads: Iterable[Operation]) -> Iterator[str]:
    """Those that were called when another one, which saw more, had returned."""
    by_call = sorted(reads, key=lambda each: each.called)
    by_return = sorted(by_call, key=lambda each: each.returned)
    most: Operation | None = None
    at = 0
    for each in by_call:
        while by_return[at].returned < each.called:
            most = max(by_return[at], most or by_return[at], key=lambda one: one.seen)
            at += 1
        if most is not None and each.seen < most.seen:
            yield f"{each} goes back behind {most}"


def _of_own_rows(operations: list[Operation]) -> Iterator[str]:
    for each in of_kinds(operations, "own"):
        if each.is_ok and each.seen != 1:
            yield f"{each}: it was inserted once, and before"


def _of_digests(operations: list[Operation]) -> Iterator[str]:
    found = {each.key: each.seen for each in of_kinds(operations, "final digests")}
    if len({tuple(each) for each in found.values()}) != 1:
        yield f"the digests differ, or nobody has looked at them: {found}"


# For the report.


def longest_unavailability(operations: list[Operation]) -> float:
    """So long nobody at all was told that something was done which needs a primary component."""
    done = sorted(each.returned for each in of_kinds(operations, *WAITING) if each.is_ok)
    return max((later - earlier for earlier, later in pairwise(done)), default=float("inf"))
