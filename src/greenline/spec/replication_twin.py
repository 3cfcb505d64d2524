"""The twin of the replication rules: once more in plain Python, slow and obvious (notes on replication, section 7).

It is written from what the rules say and not from the SQL, quantifier by quantifier. It judges small traces only, and
says which rules are broken; its purpose is to disagree with the SQL if either is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

from greenline.kernel.evidence import WORLD, Row

ENGINE = (
    "phase",
    "recover",
    "create",
    "mark",
    "durable",
    "line",
    "vulnerable",
    "cpc",
    "install",
    "voter",
    "white",
    "discard",
)
DATABASE = ("apply", "commit", "opened")
COLOURS = ("red", "yellow", "green")
WAYS = {
    "OR-1.1 RegPrim",
    "OR-1.2 Construct",
    "OR-1.2 Un",
    "OR-2 Construct",
    "OR-2 Un",
    "OR-3 ExchangeActions",
    "OR-3 NonPrim",
}
FOREVER = float("inf")


@dataclass(frozen=True, eq=False)
class Step:
    """One row of an engine or its database; what it lacks is empty."""

    process: str
    life: int
    index: int
    time: float
    kind: str
    conf: str
    message: str
    colour: str
    position: int
    sub: int
    members: str
    digest: str
    detail: str

    @property
    def is_green(self) -> bool:
        return self.kind == "mark" and self.colour == "green"

    @property
    def set(self) -> list[str]:
        return self.members.split(" ") if self.members else []


@dataclass(frozen=True)
class Operation:
    """What a client asked for, and its answer if that holds for good."""

    action: str
    verb: str
    object: str
    argument: str
    asked: str
    called: int
    calls: int
    refusals: int
    returned: int | None
    place: tuple[int, int] | None
    answer: str

    @property
    def is_list(self) -> bool:
        return self.verb == "append" or (self.verb == "read" and self.object.startswith("l"))

    @property
    def is_register(self) -> bool:
        return self.verb == "write" or (self.verb == "read" and self.object.startswith("r"))

    @property
    def values(self) -> list[str]:
        return self.answer.split(" ")[1:]


class Execution:
    """The rows of one run, and the words in which the rules speak of them."""

    def __init__(self, rows: list[Row]) -> None:
        self.world = sorted((row for row in rows if row.process == WORLD), key=lambda row: row.local_index)
        own = [row for row in rows if row.process != WORLD]
        self.lives = {(r.process, r.incarnation) for r in own if r.kind in ("start", "crash", "halt")}
        self.dead = {(r.process, r.incarnation) for r in own if r.kind in ("crash", "halt")}
        self.servers = sorted({process for process, _ in self.lives})
        self.last_life = {
            process: max(life for each, life in self.lives if each == process) for process in self.servers
        }
        self.steps = [
            _step(row)
            for row in sorted(own, key=lambda row: (row.process, row.incarnation, row.local_index))
            if (row.process, row.incarnation) in self.lives
            if (row.layer == "engine" and row.kind in ENGINE) or (row.layer == "database" and row.kind in DATABASE)
        ]
        self._of_kind = {kind: [s for s in self.steps if s.kind == kind] for kind in (*ENGINE, *DATABASE)}
        self.regular = [row for row in own if row.kind == "regular" and row.conf is not None]

    def all(self, *kinds: str, of: tuple[str, int] | None = None) -> list[Step]:
        """Steps of these kinds, each by process, life and index; of one life, if told."""
        found = [s for kind in kinds for s in self._of_kind[kind]]
        return found if of is None else [s for s in found if (s.process, s.life) == of]

    @cached_property
    def by_life(self) -> list[list[Step]]:
        return [list(steps) for _, steps in groupby(self.steps, key=lambda s: (s.process, s.life))]

    def is_over(self, process: str, life: int) -> bool:
        return (process, life) in self.dead or life < self.last_life[process]

    def first(self, kind: str, process: str, life: int) -> Step | None:
        found = self.all(kind, of=(process, life))
        return min(found, key=lambda s: s.position) if found else None

    def recovered(self, process: str, life: int) -> int:
        step = self.first("recover", process, life)
        return step.position if step else 0

    def _is_on_disk(self, step: Step, forced: str, found: str) -> bool:
        """Its life goes on, or has reported so much forced, or every later life that tells began with so much."""
        if not self.is_over(step.process, step.life):
            return True
        later = [s for s in self.all(found) if s.process == step.process and s.life > step.life]
        return any(s.position >= step.position for s in self.all(forced, of=(step.process, step.life))) or (
            bool(later) and all(s.position >= step.position for s in later)
        )

    @cached_property
    def marks(self) -> list[Step]:
        return self.all("mark")

    @cached_property
    def kept_greens(self) -> list[Step]:
        return [s for s in self.marks if s.is_green and self._is_on_disk(s, "durable", "recover")]

    @cached_property
    def kept_applies(self) -> list[Step]:
        return [s for s in self.all("apply") if self._is_on_disk(s, "commit", "opened")]

    @cached_property
    def installs(self) -> list[Step]:
        return self.all("install")

    @cached_property
    def kept_installs(self) -> list[Step]:
        def is_proven(install: Step) -> bool:
            later = [s for s in self.steps if (s.process, s.life) == (install.process, install.life)]
            return any(
                s.index > install.index
                and (
                    (s in self.kept_greens and s.detail == "OR-1.1 RegPrim")
                    or (s.kind == "phase" and s.detail in ("ExchangeActions", "Construct"))
                )
                for s in later
            )

        return [s for s in self.installs if not self.is_over(s.process, s.life) or is_proven(s)]

    def in_conf(self, conf: str | None) -> list[Step]:
        """What engines did in this configuration. A router may be ahead of its engine, and a database with it."""
        return [s for s in self.steps if conf and s.conf == conf and s.kind in ENGINE]

    def on_disk(self, server: str, conf: str) -> int:
        """How much of the order it has had on disk, up to its last life in this configuration; in any, if in none."""
        there = max((s.life for s in self.in_conf(conf) if s.process == server), default=None)
        until = self.last_life.get(server, 0) if there is None else there
        after = min((life for process, life in self.lives if process == server and life > until), default=until)
        told = [s for s in self.all("durable") if s.process == server and s.life <= until]
        begun = [self.recovered(process, life) for process, life in self.lives if process == server and life <= after]
        return max([0, *(s.position for s in told), *begun])

    @cached_property
    def is_settled(self) -> bool:
        weather = [row.kind for row in self.world if row.kind in ("fault", "healed")]
        is_quiet = any(row.kind == "quiet" for row in self.world)
        everybody_is_up = not any((process, life) in self.dead for process, life in self.last_life.items())
        return is_quiet and weather[-1:] != ["fault"] and everybody_is_up and bool(self.servers)

    @cached_property
    def operations(self) -> list[Operation]:
        found = []
        for action in sorted({row.message for row in self.world if row.kind == "call" and row.message is not None}):
            mine = [row for row in self.world if row.message == action]
            calls = [row for row in mine if row.kind == "call"]
            safe = [row for row in mine if row.kind == "return" and row.colour == "green"]
            safe = [r for r in safe if r.service in ("local", "quorum") and r.local_index > calls[0].local_index]
            words = [*(calls[0].detail or "").split(" "), "", "", ""]
            found.append(
                Operation(
                    action,
                    words[0],
                    words[1],
                    words[2],
                    calls[0].members or "",
                    calls[0].local_index,
                    len(calls),
                    sum(row.kind == "refused" for row in mine),
                    safe[0].local_index if safe else None,
                    (_number(safe[0].position), _number(safe[0].sub)) if safe else None,
                    (safe[0].detail or "") if safe else "",
                )
            )
        return found

    @cached_property
    def lists(self) -> list[Operation]:
        return [o for o in self.operations if o.is_list and o.returned is not None]

    def longest(self, name: str) -> list[str]:
        """The longest list seen under a name, its values."""
        seen = [o for o in self.lists if o.object == name]
        return max(seen, key=lambda o: (len(o.answer), o.answer)).values if seen else []


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _step(row: Row) -> Step:
    return Step(
        row.process,
        row.incarnation,
        row.local_index,
        row.time,
        row.kind,
        row.conf or "",
        row.message or "",
        row.colour or "",
        _number(row.position),
        _number(row.sub),
        row.members or "",
        row.digest or "",
        row.detail or "",
    )


def _creator(bundle: str) -> str:
    return bundle.split("#")[0]


def _index(bundle: str) -> int:
    number = bundle.partition("#")[2]
    return int(number) if number.isdigit() else 0


def _differ(values: Iterable[object]) -> bool:
    return len(set(values)) > 1


def rows_are_complete(x: Execution) -> bool:
    for life in x.by_life:
        recovers = [s.index for s in life if s.kind == "recover"]
        begun = [s.index for s in life if s.kind in ENGINE and s.kind not in ("phase", "recover", "voter")]
        if len(recovers) > 1 or (recovers and begun and begun[0] < recovers[0]):
            return True
        if not recovers and (begun or any(s.kind in DATABASE for s in life)):
            return True
        data = [s for s in life if s.kind in DATABASE]
        if data and [s.kind for s in data].count("opened") != 1:
            return True
        if data and data[0].kind != "opened":
            return True
    if any(_lacks_something(s) for s in x.steps):
        return True
    if any(_is_badly_installed(x, s) for s in x.installs):
        return True
    calls = {o.action: o.called for o in x.operations}
    for row in x.world:
        if row.kind in ("return", "refused"):
            if row.message is None or calls.get(row.message, FOREVER) > row.local_index:
                return True
            if row.kind == "return" and row.colour not in ("red", "green"):
                return True
            if row.kind == "return" and row.colour == "green" and (row.position is None or row.sub is None):
                return True
    return False


def _lacks_something(s: Step) -> bool:
    match s.kind:
        case "phase":
            return False
        case "mark":
            if s.colour not in COLOURS or _index(s.message) < 1:
                return True
            return s.is_green and (s.position < 1 or not s.digest)
        case "create":
            return s.sub < 0 or _creator(s.message) != s.process or _index(s.message) < 1
        case "recover" | "install":
            return s.position < 0 or s.sub < 0
        case "cpc" | "vulnerable" | "voter":
            return s.position < 0 or s.sub < 0 or not s.members
        case "line":
            return s.position < 0 or not s.members
        case "apply":
            return s.position < 0 or s.sub < 0 or not s.message
        case _:
            return s.position < 0


def _is_badly_installed(x: Execution, install: Step) -> bool:
    voters = [s for s in x.all("voter", of=(install.process, install.life)) if s.position == install.position]
    return install.process not in install.set or len(voters) != len(install.set)


def global_total_order(x: Execution) -> bool:
    return any(
        one.position == other.position and (one.message, one.digest) != (other.message, other.digest)
        for one in x.kept_greens
        for other in x.kept_greens
    )


def one_order_in_a_configuration(x: Execution) -> bool:
    ordered = [s for s in x.marks if s.is_green and s.detail == "OR-1.1 RegPrim" and s.conf]
    return any(
        one.conf == other.conf
        and one.position == other.position
        and (one.message, one.digest) != (other.message, other.digest)
        for one in ordered
        for other in ordered
    )


def databases_apply_one_order(x: Execution) -> bool:
    return any(
        (one.position, one.sub) == (other.position, other.sub)
        and (one.message, one.digest) != (other.message, other.digest)
        for one in x.kept_applies
        for other in x.kept_applies
    )


def no_position_skipped(x: Execution) -> bool:
    for life in x.by_life:
        places = [s for s in life if s.kind == "recover" or s.is_green]
        if any(after.is_green and after.position != before.position + 1 for before, after in pairwise(places)):
            return True
    return False


def no_action_skipped(x: Execution) -> bool:
    for life in x.by_life:
        for before, after in pairwise(s for s in life if s.kind in ("opened", "apply")):
            is_next = (after.position, after.sub) == (before.position + 1, 0)
            is_same = before.kind == "apply" and (after.position, after.sub) == (before.position, before.sub + 1)
            if after.kind == "apply" and not is_next and not is_same:
                return True
    return False


def global_fifo(x: Execution) -> bool:
    for process in x.servers:
        greens = [s for s in x.kept_greens if s.process == process]
        for creator in {_creator(s.message) for s in greens}:
            theirs = [s for s in greens if _creator(s.message) == creator]
            theirs.sort(key=lambda s: (s.position, s.life, s.index))
            if [_index(s.message) for s in theirs] != list(range(1, len(theirs) + 1)):
                return True
    return False


def colours_rise(x: Execution) -> bool:
    def height(s: Step) -> int:
        return {"red": 1, "yellow": 2}.get(s.colour, 3)

    for one in x.marks:
        for other in x.marks:
            if (one.process, one.message) != (other.process, other.message):
                continue
            if one.life == other.life and one.index < other.index and height(other) <= height(one):
                return True
            if one.life < other.life and one in x.kept_greens:
                return True
    return False


def one_component(x: Execution) -> bool:
    return any(
        one.position == other.position
        and (one.sub, one.members, one.digest) != (other.sub, other.members, other.digest)
        for one in x.kept_installs
        for other in x.kept_installs
    )


def _attempts(x: Execution, voter: Step) -> set[int]:
    """The attempt by which the teller of a vote installed the component; none, if it did not."""
    key = (voter.process, voter.life, voter.position)
    return {s.sub for s in x.installs if (s.process, s.life, s.position) == key}


def one_outcome_of_an_attempt(x: Execution) -> bool:
    for one in x.installs:
        for other in x.installs:
            same = (one.position, one.sub) == (other.position, other.sub)
            if same and (one.members, one.digest) != (other.members, other.digest):
                return True
    votes: dict[tuple[int, int, str], set[tuple[int, str]]] = {}
    for voter in x.all("voter"):
        for attempt in _attempts(x, voter) or {0}:
            key = (voter.position, attempt, voter.members)
            votes.setdefault(key, set()).add((voter.sub, voter.detail))
    return any(len(told) > 1 for told in votes.values())


def quorum_chain(x: Execution) -> bool:
    kept = {(s.position, s.sub) for s in x.kept_installs}
    votes: dict[tuple[int, int], dict[str, tuple[int, bool]]] = {}
    for voter in x.all("voter"):
        for attempt in _attempts(x, voter) or ({0} if voter.position == 0 else set()):
            component = votes.setdefault((voter.position, attempt), {})
            weight, is_distinguished = component.get(voter.members, (voter.sub, False))
            is_distinguished = is_distinguished or voter.detail == "distinguished"
            component[voter.members] = max(weight, voter.sub), is_distinguished
    for install in x.installs:
        before = {key: component for key, component in votes.items() if key[0] == install.position - 1}
        holds = {key: _holds_quorum(install.set, component) for key, component in before.items()}
        if not any(holds.values()) or any(not holds[key] for key in before if key in kept or key[0] == 0):
            return True
    return False


def _holds_quorum(members: list[str], votes: dict[str, tuple[int, bool]]) -> bool:
    everybody = sum(weight for weight, _ in votes.values())
    here = [vote for server, vote in votes.items() if server in members]
    held = sum(weight for weight, _ in here)
    return 2 * held > everybody or (2 * held == everybody and any(is_distinguished for _, is_distinguished in here))


def green_in_four_ways(x: Execution) -> bool:
    for green in (s for s in x.marks if s.is_green):
        before = [s for s in x.installs if (s.process, s.life) == (green.process, green.life) and s.index < green.index]
        if green.detail not in WAYS or (green.detail == "OR-1.1 RegPrim" and not before):
            return True
    return False


def recovery_keeps_the_order(x: Execution) -> bool:
    durable = x.all("durable")
    for process, life in x.lives:
        begun = x.first("recover", process, life)
        if begun and any(s.process == process and s.life < life and s.position > begun.position for s in durable):
            return True
    return False


def recovery_keeps_own_bundles(x: Execution) -> bool:
    made = [s for s in x.all("create") if _creator(s.message) == s.process]
    marked = {s.message for s in x.marks}
    for process, life in x.lives:
        begun = x.all("recover", of=(process, life))
        for bundle in {s.message for s in made if s.process == process} & marked:
            lives = [s.life for s in made if s.message == bundle]
            if begun and max(lives) < life and _index(bundle) > min(s.sub for s in begun):
                return True
    return False


def lines_are_true(x: Execution) -> bool:
    return any(s.position > x.on_disk(s.members, s.conf) for s in x.all("line"))


def white_is_everywhere(x: Execution) -> bool:
    white = [s for s in x.all("white", "discard") if s.kind == "white" or s.detail == "white"]
    return any(s.position > x.on_disk(server, s.conf) for s in white for server in x.servers)


def log_before_data(x: Execution) -> bool:
    for life in x.by_life:
        recovered = x.recovered(life[0].process, life[0].life)
        if any(s.position > recovered for s in life if s.kind == "opened"):
            return True
        forced = [s for s in life if s.kind == "durable"]
        greens = [s for s in life if s.is_green]
        for s in life:
            if s.kind in ("commit", "durable", "apply"):
                grounds = forced if s.kind == "commit" else greens
                if s.position > max([recovered, 0, *(each.position for each in grounds if each.time <= s.time)]):
                    return True
    return False


def nothing_answered_moves(x: Execution) -> bool:
    for one in x.operations:
        if one.place is None or one.place[0] < 1:
            continue
        if any((s.position, s.sub) == one.place and s.message != one.action for s in x.kept_applies):
            return True
        if any(other.place == one.place and other.action != one.action for other in x.operations):
            return True
    return False


def nothing_answered_is_lost(x: Execution) -> bool:
    if not x.is_settled:
        return False
    answered = {row.message for row in x.world if row.kind == "return" and row.message is not None}
    for server in x.servers:
        mine = [s for s in x.kept_applies if s.process == server]
        if answered - {s.message for s in mine}:
            return True
        places = {(s.message, (s.position, s.sub)) for s in mine}
        if any(o.place is not None and (o.action, o.place) not in places for o in x.operations):
            return True
    return False


def applied_once(x: Execution) -> bool:
    taken = {o.action: o.calls - o.refusals for o in x.operations}
    for server in x.servers if taken else []:
        for action in {s.message for s in x.kept_applies}:
            mine = [s for s in x.kept_applies if s.process == server and s.message == action]
            if len({(s.position, s.sub) for s in mine}) > taken.get(action, 0) and mine:
                return True
    return False


def convergence(x: Execution) -> bool:
    if not x.is_settled:
        return False
    final = [row for row in x.world if row.kind == "final"]
    if _differ(_number(row.position) for row in final) or _differ(row.digest or "" for row in final):
        return True
    if any(row.sub != 0 for row in final):
        return True
    if final and not {row.members for row in final}.issuperset(x.servers):
        return True
    for last in x.last_life.items():
        phases, installs = x.all("phase", of=last), x.all("install", of=last)
        if not phases or phases[-1].detail != "RegPrim":
            return True
        if not installs or installs[-1].members.count(" ") + 1 != len(x.servers):
            return True
    return False


def lists_are_prefixes(x: Execution) -> bool:
    return any(
        one.object == other.object
        and not f"{one.answer} ".startswith(f"{other.answer} ")
        and not f"{other.answer} ".startswith(f"{one.answer} ")
        for one in x.lists
        for other in x.lists
    )


def an_append_is_the_last(x: Execution) -> bool:
    return any(
        not f"{o.answer} ".startswith(f"{o.object} ")
        or (o.verb == "append" and not o.answer.endswith(f" {o.argument}"))
        for o in x.lists
    )


def nothing_from_nowhere(x: Execution) -> bool:
    for name in {o.object for o in x.lists}:
        values = x.longest(name)
        asked = {o.argument for o in x.operations if o.verb == "append" and o.object == name}
        if _differ([len(values), len(set(values) & asked)]):
            return True
    return False


def lists_in_real_time(x: Execution) -> bool:
    for before in x.lists:
        for after in x.operations:
            if after.object != before.object or (before.returned or 0) > after.called:
                continue
            if after in x.lists and len(after.values) < len(before.values):
                return True
            whole = x.longest(after.object)
            if after.verb == "append" and after.argument in whole[: len(before.values)]:
                return True
    return False


def registers_in_real_time(x: Execution) -> bool:
    """By looking for an order: the oldest way of all, for few operations."""
    touched = [o for o in x.operations if o.is_register and (o.verb == "write" or o.returned is not None)]
    for name in {o.object for o in touched}:
        mine = [o for o in touched if o.object == name]
        answered = [o for o in mine if o.returned is not None]
        if any(not o.answer.startswith(f"{name} ") for o in answered):
            return True
        if any(o.verb == "write" and o.answer != f"{name} {o.argument}" for o in answered):
            return True
        if not _can_be_ordered(mine):
            return True
    return False


def _can_be_ordered(operations: list[Operation]) -> bool:
    """Is there an order that respects returns before calls, and in which every read sees the last write?

    A write that never returned may come at any time after its call, or never: then it is put at the end.
    """

    def end(o: Operation) -> float:
        return FOREVER if o.returned is None else o.returned

    def value(o: Operation) -> str:
        return o.argument if o.verb == "write" else o.answer[len(o.object) + 1 :]

    dead_ends: set[tuple[frozenset[str], str]] = set()

    def search(left: frozenset[str], current: str) -> bool:
        if not left:
            return True
        if (left, current) in dead_ends:
            return False
        open_ones = [o for o in operations if o.action in left]
        soonest = min(end(o) for o in open_ones)
        for o in open_ones:
            is_possible = o.called < soonest and (o.verb == "write" or value(o) == current)
            if is_possible and search(left - {o.action}, value(o)):
                return True
        dead_ends.add((left, current))
        return False

    return search(frozenset(o.action for o in operations), "-")


def the_sum_stays(x: Execution) -> bool:
    return _differ(o.answer for o in x.operations if o.verb == "total" and o.returned is not None)


def vulnerable_before_cpc(x: Execution) -> bool:
    for life in x.by_life:
        last: Step | None = None
        for s in life:
            if s.kind == "vulnerable":
                last = s
            elif s.kind == "cpc":
                tried = (last.detail, last.position, last.sub, last.members) if last else None
                if tried != ("valid try", s.position, s.sub, s.members):
                    return True
    return False


def attempts_rise(x: Execution) -> bool:
    return any(
        one.process == other.process and (other.position, other.sub) <= (one.position, one.sub)
        for one in x.all("cpc")
        for other in x.all("cpc")
        if (one.life, one.index) < (other.life, other.index)
    )


def ids_are_never_reused(x: Execution) -> bool:
    for life in x.by_life:
        numbers = [
            (s.kind, s.sub if s.kind == "recover" else _index(s.message))
            for s in life
            if s.kind in ("recover", "create")
        ]
        if any(kind == "create" and number != before + 1 for (_, before), (kind, number) in pairwise(numbers)):
            return True
    for one in x.all("create"):
        was_sent = any(
            (s.process, s.life) == (one.process, one.life)
            for mark in x.marks
            if mark.message == one.message and mark.process != one.process
            for s in x.in_conf(mark.conf)
        )
        again = [s for s in x.all("create") if s.process == one.process and s.message == one.message]
        if was_sent and any(s.life > one.life for s in again):
            return True
    return False


def yellow_exclusion(x: Execution) -> bool:
    ordered: set[tuple[str, str, str]] = set()
    for green in (s for s in x.marks if s.is_green and s.detail == "OR-1.1 RegPrim"):
        before = [s for s in x.installs if (s.process, s.life) == (green.process, green.life) and s.index < green.index]
        if before:
            ordered.add((green.conf, green.message, before[-1].members))
    for stay in x.regular:
        life = (stay.process, stay.incarnation)
        later = [
            row for row in x.regular if (row.process, row.incarnation) == life and row.local_index > stay.local_index
        ]
        following = min(later, key=lambda row: row.local_index).conf if later else None
        left_at = min((s.index for s in x.in_conf(following) if (s.process, s.life) == life), default=None)
        if left_at is None:
            continue
        for conf, bundle, members in ordered:
            known = any(
                s.process == stay.process and s.message == bundle and (s.life, s.index) < (stay.incarnation, left_at)
                for s in x.marks
            )
            if conf == stay.conf and stay.process in members.split(" ") and not known:
                return True
    return False


def sessions_in_order(x: Execution) -> bool:
    answered = [o for o in x.operations if o.place is not None and o.calls == 1]
    return any(
        one.action.split("/")[0] == other.action.split("/")[0]
        and one.asked == other.asked
        and one.called < other.called
        and (one.place or (0, 0)) >= (other.place or (0, 0))
        for one in answered
        for other in answered
    )


RULES: dict[str, Callable[[Execution], bool]] = {
    "replication/00_rows_are_complete": rows_are_complete,
    "replication/01_1_global_total_order": global_total_order,
    "replication/01_2_one_order_in_a_configuration": one_order_in_a_configuration,
    "replication/01_3_databases_apply_one_order": databases_apply_one_order,
    "replication/02_1_no_position_skipped": no_position_skipped,
    "replication/02_2_no_action_skipped": no_action_skipped,
    "replication/03_global_fifo": global_fifo,
    "replication/04_colours_rise": colours_rise,
    "replication/05_1_one_component": one_component,
    "replication/05_2_one_outcome_of_an_attempt": one_outcome_of_an_attempt,
    "replication/06_quorum_chain": quorum_chain,
    "replication/07_green_in_four_ways": green_in_four_ways,
    "replication/08_1_recovery_keeps_the_order": recovery_keeps_the_order,
    "replication/08_2_recovery_keeps_own_bundles": recovery_keeps_own_bundles,
    "replication/09_1_lines_are_true": lines_are_true,
    "replication/09_2_white_is_everywhere": white_is_everywhere,
    "replication/10_log_before_data": log_before_data,
    "replication/11_1_nothing_answered_moves": nothing_answered_moves,
    "replication/11_2_nothing_answered_is_lost": nothing_answered_is_lost,
    "replication/11_3_applied_once": applied_once,
    "replication/12_convergence": convergence,
    "replication/13_1_lists_are_prefixes": lists_are_prefixes,
    "replication/13_2_an_append_is_the_last": an_append_is_the_last,
    "replication/13_3_nothing_from_nowhere": nothing_from_nowhere,
    "replication/13_4_lists_in_real_time": lists_in_real_time,
    "replication/13_5_registers_in_real_time": registers_in_real_time,
    "replication/13_6_the_sum_stays": the_sum_stays,
    "replication/14_1_vulnerable_before_cpc": vulnerable_before_cpc,
    "replication/14_2_attempts_rise": attempts_rise,
    "replication/15_ids_are_never_reused": ids_are_never_reused,
    "replication/16_yellow_exclusion": yellow_exclusion,
    "replication/17_sessions_in_order": sessions_in_order,
}


def broken(rows: list[Row]) -> set[str]:
    """The rules of replication that the rows of one run break."""
    execution = Execution(rows)
    return {name for name, is_broken in RULES.items() if is_broken(execution)}
