"""The twin of the rules of client access: once more in plain Python, as `replication_twin` has those of replication.

What the order makes of lists, registers and counters is found by doing, one after the other, what was decided.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from greenline.kernel.evidence import Row
from greenline.spec.replication_twin import Execution, Operation, Step
from greenline.spec.twin import number_in

Place = tuple[int, float]
AFTER_ALL = float("inf")
READS = ("read", "count", "get")


def _place(s: Step) -> Place:
    return s.position, s.sub


def _session(action: str) -> str:
    return re.split("[~/]", action)[0]


def _number(action: str) -> int:
    number = [*re.split("[~/]", action), ""][1]
    return number_in(number) or 0


def _read_before(request: str) -> tuple[str, str] | None:
    """What an interactive action had read: the object and its value."""
    _, found, read = request.partition(" if ")
    words = [*read.split(" "), ""]
    return (words[0], words[1]) if found else None


@dataclass(frozen=True)
class Query:
    """An answer to a query, and how that was asked."""

    name: str
    service: str
    after: int
    verb: str
    object: str
    called: int
    returned: int
    position: int
    reds: int
    answer: str
    is_sound: bool

    @property
    def session(self) -> str:
        return self.name.split("?")[0]

    @property
    def values(self) -> list[str]:
        return self.answer.split(" ")[1:]


class Access(Execution):
    """An execution, as its clients see it."""

    @cached_property
    def request(self) -> dict[str, Operation]:
        return {o.action: o for o in self.operations}

    @cached_property
    def decisions(self) -> list[Step]:
        return [s for s in self.kept_applies if s.is_decided]

    @cached_property
    def told(self) -> list[Row]:
        """Answers for good."""
        found = [row for row in self.world if row.kind == "return" and self.is_safe(row)]
        return [row for row in found if "?" not in (row.message or "")]

    @cached_property
    def queries(self) -> list[Query]:
        found = []
        for row in self.world:
            o = self.request.get(row.message or "")
            if row.kind != "return" or row.colour not in ("green", "dirty") or "?" not in (row.message or ""):
                continue
            if o is None or o.called > row.local_index:
                continue
            call = next(each for each in self.world if each.local_index == o.called)
            found.append(
                Query(
                    o.action,
                    call.service or "",
                    -1 if call.position is None else call.position,
                    o.verb,
                    o.object,
                    o.called,
                    row.local_index,
                    -1 if row.position is None else row.position,
                    -1 if row.sub is None else row.sub,
                    row.detail or "",
                    self.is_sound(row),
                )
            )
        return found

    def done_to(self, name: str, until: Place, is_inclusive: bool) -> list[Step]:
        """What was done to an object, in order, before a place, or up to it."""
        verbs = ("append", "write", "add", "put")
        changes = {
            (_place(s), s.message): s
            for s in self.decisions
            if s.detail == "done" and s.message in self.request
            if self.request[s.message].object == name and self.request[s.message].verb in verbs
        }
        ordered = sorted(changes.values(), key=lambda s: (_place(s), s.message))
        return [s for s in ordered if _place(s) < until or (is_inclusive and _place(s) == until)]

    def stands(self, name: str, until: Place, is_inclusive: bool = True) -> str:
        """What a reader sees of an object then: its value, or of a list how many it has."""
        done = [(s, self.request[s.message]) for s in self.done_to(name, until, is_inclusive)]
        if not done:
            return "0" if name.startswith(("l", "c")) else "-"
        last = done[-1][1]
        match last.verb:
            case "append":
                return str(len(done))
            case "write":
                return last.argument
            case "add":
                return str(sum(_amount(o) for _, o in done if o.verb == "add"))
            case _:
                return str(max(_put(s, o) for s, o in done)[-1])


def _amount(o: Operation) -> int:
    return number_in(o.argument) or 0


def _put(s: Step, o: Operation) -> tuple[int, str, int, int]:
    value = [*o.request.split(" "), "", "", "", ""][3]
    return (
        _amount(o),
        _session(s.message),
        _number(s.message),
        number_in(value) or 0,
    )


def exactly_once(x: Access) -> bool:
    return any(
        one.message == other.message and _place(one) != _place(other) for one in x.decisions for other in x.decisions
    )


def retries_are_told_the_same(x: Access) -> bool:
    def answer(row: Row) -> tuple[object, ...]:
        return row.position, row.sub, row.digest or ""

    return any(one.message == other.message and answer(one) != answer(other) for one in x.told for other in x.told)


def uniform_output_agreement(x: Access) -> bool:
    for row in x.told:
        for s in x.kept_applies:
            is_it = s.message == row.message and s.is_decided
            if (s.position, s.sub) == (row.position, row.sub):
                if not is_it or s.digest != (row.digest or ""):
                    return True
            elif is_it:
                return True
    return False


def uniform_output_order(x: Access) -> bool:
    told = {(row.message, row.position, row.sub) for row in x.told}
    for process in x.servers:
        mine = [s for s in x.decisions if s.process == process]
        base = x.last_base(process)
        last = max((s.position for s in mine if (s.message, s.position, s.sub) in told), default=None)
        if last is None:
            continue
        own = {(_place(s), s.message) for s in mine if base < s.position < last}
        everybodys = {(_place(s), s.message) for s in x.decisions if base < s.position < last}
        if own != everybodys:
            return True
    return False


def session_order(x: Access) -> bool:
    strict = {(_place(s), s.message) for s in x.decisions if "~" not in s.message}
    for session in {_session(action) for _, action in strict}:
        ordered = sorted(each for each in strict if _session(each[1]) == session)
        numbers = [0, *(_number(action) for _, action in ordered)]
        if any(after != before + 1 for before, after in pairwise(numbers)):
            return True
    return False


def verdicts_are_true(x: Access) -> bool:
    for s in x.kept_applies:
        if s.detail in ("again", "released"):
            decided = [d for d in x.decisions if d.message == s.message]
            if not decided or min(map(_place, decided)) >= _place(s):
                return True
            if s.detail == "again" and "~" not in s.message and min(d.digest for d in decided) != s.digest:
                return True
        if s.detail == "early":
            number = s.message.partition("/")[2]
            before = f"{s.message.split('/')[0]}/{(number_in(number) or 0) - 1}"
            decided = [d for d in x.decisions if d.message == before]
            if number_in(number) == 1 and "@" not in s.message:
                return True
            if decided and min(map(_place, decided)) < _place(s):
                return True
    return False


def expired_is_for_good(x: Access) -> bool:
    expired = [s for s in x.kept_applies if s.detail == "expired"]
    return any(
        _session(s.message) == _session(d.message) and d.position > s.position for s in expired for d in x.decisions
    )


def nothing_accepted_is_lost(x: Access) -> bool:
    returns = [row for row in x.world if row.kind == "return" and not x.may_be_lost(row)]
    accepted = {row.message for row in returns if row.colour == "red" and row.message is not None}
    ordered = {s.message for s in x.kept_applies if s.detail != "again"}
    return x.is_settled and bool(accepted - ordered)


def sessions_read_their_writes(x: Access) -> bool:
    for query in (query for query in x.queries if query.service == "session"):
        if query.position < query.after:
            return True
        told = [
            -1 if row.position is None else row.position
            for row in x.told
            if _session(row.message or "") == query.session and row.local_index < query.called
        ]
        seen = [
            other.position
            for other in x.queries
            if other.service in ("strict", "session") and other.is_sound
            if other.session == query.session and other.returned < query.called
        ]
        if query.position < max([*told, *seen], default=query.position):
            return True
    return False


def strict_queries_are_current(x: Access) -> bool:
    return any(
        query.service == "strict" and row.local_index < query.called and query.position < (row.position or 0)
        for query in x.queries
        for row in x.told
        if row.position is not None
    )


def _lists(x: Access) -> list[Query]:
    return [q for q in x.queries if q.is_sound and q.verb in READS and q.object.startswith("l")]


def reads_are_of_their_position(x: Access) -> bool:
    for query in x.queries:
        if query.is_sound and query.verb in READS and query.service in ("strict", "session", "weak"):
            value = [*query.values, ""][0]
            seen = str(query.answer.count(" ")) if query.object.startswith("l") else value
            if seen != x.stands(query.object, (query.position, AFTER_ALL)):
                return True
    return False


def lists_are_of_their_position(x: Access) -> bool:
    for query in _lists(x):
        if query.service not in ("strict", "session", "weak", "dirty"):
            continue
        until = (query.position, AFTER_ALL)
        made = [x.request[s.message].argument for s in x.done_to(query.object, until, is_inclusive=True)]
        values = [*query.values, *[""] * len(made)]
        if values[: len(made)] != made:
            return True
        if query.service == "dirty" and query.reds == 0 and query.answer.count(" ") != len(made):
            return True
    return False


def interactive_reads_hold(x: Access) -> bool:
    for s in x.decisions:
        read = _read_before(x.request[s.message].request) if s.message in x.request else None
        if read is not None and s.detail in ("done", "conflict"):
            is_same = x.stands(read[0], _place(s), is_inclusive=False) == read[1]
            if is_same != (s.detail == "done"):
                return True
    return False


def no_update_is_lost(x: Access) -> bool:
    writes = [o for o in x.operations if o.verb == "write"]
    done = [(o.object, _read_before(o.request)) for o in writes if o.returned is not None and not o.is_conflict]
    replaced = [(name, read[1]) for name, read in done if read is not None and read[0] == name]
    written = [(o.object, o.argument) for o in writes]
    return any(replaced.count(each) > max(1, written.count(each)) for each in replaced)


def _finals(x: Access) -> list[tuple[Row, str, str]]:
    """What each database has in the end of each counter and each timestamped register that was asked for."""
    found = []
    for row in (row for row in x.world if row.kind == "final"):
        for name in {o.object for o in x.operations if o.verb in ("add", "put")}:
            _, is_there, rest = f" {row.detail or ''} ".partition(f" {name} ")
            nothing = "0" if name.startswith("c") else "-"
            found.append((row, name, rest.split(" ")[0] if is_there else nothing))
    return found


def relaxed_objects_converge(x: Access) -> bool:
    return any(
        value != x.stands(name, (-1 if row.position is None else row.position, AFTER_ALL))
        for row, name, value in _finals(x)
    )


def counters_hold_what_was_accepted(x: Access) -> bool:
    returns = [row for row in x.world if row.kind == "return" and not x.may_be_lost(row)]
    accepted = {row.message for row in returns}
    refused = {s.message for s in x.kept_applies if s.detail in ("failed", "conflict", "early", "crowded", "expired")}
    for row, name, value in _finals(x):
        adds = [o for o in x.operations if o.verb == "add" and o.object == name]
        least = sum(_amount(o) for o in adds if o.action in accepted and o.action not in refused)
        is_within = (final := number_in(value)) is not None and least <= final <= sum(map(_amount, adds))
        if adds and x.is_settled and row.members in x.last_servers and not is_within:
            return True
    return False


RULES: dict[str, Callable[[Access], bool]] = {
    "access/01_exactly_once": exactly_once,
    "access/02_retries_are_told_the_same": retries_are_told_the_same,
    "access/03_uniform_output_agreement": uniform_output_agreement,
    "access/04_uniform_output_order": uniform_output_order,
    "access/05_session_order": session_order,
    "access/06_verdicts_are_true": verdicts_are_true,
    "access/07_expired_is_for_good": expired_is_for_good,
    "access/08_nothing_accepted_is_lost": nothing_accepted_is_lost,
    "access/09_sessions_read_their_writes": sessions_read_their_writes,
    "access/10_strict_queries_are_current": strict_queries_are_current,
    "access/11_1_reads_are_of_their_position": reads_are_of_their_position,
    "access/11_2_lists_are_of_their_position": lists_are_of_their_position,
    "access/12_1_interactive_reads_hold": interactive_reads_hold,
    "access/12_2_no_update_is_lost": no_update_is_lost,
    "access/13_1_relaxed_objects_converge": relaxed_objects_converge,
    "access/13_2_counters_hold_what_was_accepted": counters_hold_what_was_accepted,
}


def broken(rows: list[Row]) -> set[str]:
    """The rules of client access that the rows of one run break."""
    execution = Access(rows)
    return {name for name, is_broken in RULES.items() if is_broken(execution)}
