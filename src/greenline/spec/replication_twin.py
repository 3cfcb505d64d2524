"""The twin of the replication rules: once more in plain Python, slow and obvious (notes on replication, section 7).

It is written from what the rules say and not from the SQL, quantifier by quantifier. It judges small traces only, and
says which rules are broken; its purpose is to disagree with the SQL if either is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

from greenline.kernel.evidence import WORLD, Row
from greenline.spec.twin import number_in

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
    "newcomer",
    "roster",
    "restored",
    "left",
    "force",
)
DATABASE = ("apply", "commit", "opened", "replaced")
"""A database that becomes what a snapshot says is replaced; restored is its engine's word."""
DECIDED = ("done", "failed", "conflict")
VERDICTS = (*DECIDED, "again", "early", "crowded", "expired", "released")
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

    def has(self, server: str) -> bool:
        return _is_among(server, self.members)

    @property
    def words(self) -> list[str]:
        return [*self.detail.split(" "), "", ""]

    @property
    def is_done(self) -> bool:
        """Of a change of the server set."""
        return self.detail.endswith(" done")

    @property
    def is_decided(self) -> bool:
        return self.kind == "apply" and self.detail in DECIDED


@dataclass(frozen=True)
class Seat:
    """From where to where somebody is a server, and whether it leaves nothing behind."""

    since: int
    last_since: int
    until: float
    is_void: bool

    def holds(self, position: int) -> bool:
        return self.since <= position < self.until


@dataclass(frozen=True)
class Operation:
    """What a client asked for, and its answer if that holds for good."""

    action: str
    verb: str
    object: str
    argument: str
    request: str
    is_query: bool
    called: int
    returned: int | None
    position: int
    sub: int
    answer: str

    @property
    def place(self) -> tuple[int, int] | None:
        """Where it was told to be."""
        return None if self.returned is None or self.is_query else (self.position, self.sub)

    @property
    def is_conflict(self) -> bool:
        return self.returned is not None and self.answer == "conflict"

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
        self.crashed = {(r.process, r.incarnation) for r in own if r.kind == "crash"}
        self.servers = sorted({process for process, _ in self.lives})
        self.last_life = {
            process: max(life for each, life in self.lives if each == process) for process in self.servers
        }
        self.steps = [
            _step(row)
            for row in sorted(own, key=lambda row: (row.process, row.incarnation, row.local_index))
            if (row.process, row.incarnation) in self.lives
            if (row.layer == "engine" and row.kind in ENGINE)
            or (row.layer == "database" and row.kind in ("apply", "commit", "opened", "restored"))
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

    def _is_on_disk(self, step: Step, forced: tuple[str, ...], found: str) -> bool:
        """Its life goes on, or has reported so much forced, or every later life that tells began with so much."""
        if not self.is_over(step.process, step.life):
            return True
        later = [s for s in self.all(found) if s.process == step.process and s.life > step.life]
        return any(s.position >= step.position for s in self.all(*forced, of=(step.process, step.life))) or (
            bool(later) and all(s.position >= step.position for s in later)
        )

    def is_in_the_log(self, step: Step) -> bool:
        return self._is_on_disk(step, ("durable",), "recover")

    @cached_property
    def changes(self) -> list[Step]:
        return self.all("roster")

    @cached_property
    def seats(self) -> dict[str, Seat]:
        joins: dict[str, list[int]] = {}
        leaves: dict[str, list[Step]] = {}
        for s in self.changes:
            if s.is_done and s.words[0] == "join":
                joins.setdefault(s.words[1], []).append(s.position)
            if s.is_done and s.words[0] == "leave":
                leaves.setdefault(s.words[1], []).append(s)
        came_later = {s.process for s in self.all("newcomer")}
        for server in self.servers:
            if server not in joins and server not in came_later:
                joins[server] = [0]
        return {
            server: Seat(
                min(places),
                max(places),
                min((s.position for s in leaves.get(server, [])), default=FOREVER),
                any(re.match("leave .* void ", s.detail) for s in leaves.get(server, [])),
            )
            for server, places in joins.items()
        }

    def reach(self, step: Step) -> int:
        """How much of the order its process had then."""
        told = [s for s in self.all("recover", "restored", of=(step.process, step.life)) if s.index <= step.index]
        greens = [s for s in self.all("mark", of=(step.process, step.life)) if s.is_green and s.index <= step.index]
        return max((s.position for s in (*told, *greens)), default=0)

    @cached_property
    def given_up(self) -> dict[str, int]:
        """Who was, and in which epoch first."""
        found: dict[str, int] = {}
        for force in sorted(self.all("force"), key=lambda s: -s.position):
            for server, seat in self.seats.items():
                if seat.since <= self.reach(force) and not force.has(server):
                    found[server] = force.position
        return found

    def is_agreed(self, step: Step) -> bool:
        """Its server was not given up, or others have the same order up to here."""
        if step.process not in self.given_up:
            return True
        order = [s for s in (*self.marks, *self.all("restored")) if s.is_green or s.kind == "restored"]
        others = {(s.position, s.digest) for s in order if s.process not in self.given_up}
        mine = [s.position for s in order if s.process == step.process and (s.position, s.digest) in others]
        return step.position <= max(mine, default=0)

    def base(self, step: Step) -> int:
        """Where the order of its process began, then."""
        told = [s for s in self.all("restored") if s.process == step.process]
        return max((s.position for s in told if (s.life, s.index) <= (step.life, step.index)), default=0)

    def last_base(self, process: str) -> int:
        return max((s.position for s in self.all("restored", "replaced") if s.process == process), default=0)

    @cached_property
    def marks(self) -> list[Step]:
        return self.all("mark")

    @cached_property
    def kept_greens(self) -> list[Step]:
        return [s for s in self.marks if s.is_green and self.is_in_the_log(s) and self.is_agreed(s)]

    @cached_property
    def kept_applies(self) -> list[Step]:
        return [
            s for s in self.all("apply") if self._is_on_disk(s, ("commit", "replaced"), "opened") and self.is_agreed(s)
        ]

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

        living = [s for s in self.installs if s.process not in self.given_up]
        return [s for s in living if not self.is_over(s.process, s.life) or is_proven(s)]

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
        joined = self.seats[server].last_since if server in self.seats else 0
        return max([0, joined, *(s.position for s in told), *begun])

    @cached_property
    def up(self) -> list[str]:
        """Everybody, in the end, who was not stopped for good."""
        stopped = {row.members for row in self.world if row.kind == "gone"} | self.given_up.keys()
        return [server for server in self.servers if server not in stopped]

    @cached_property
    def is_settled(self) -> bool:
        weather = [row.kind for row in self.world if row.kind in ("fault", "healed")]
        is_quiet = any(row.kind == "quiet" for row in self.world)
        everybody_is_up = not any((process, self.last_life[process]) in self.dead for process in self.up)
        return is_quiet and weather[-1:] != ["fault"] and everybody_is_up and bool(self.up)

    @cached_property
    def last_servers(self) -> list[str]:
        """Who is a server in the end."""
        return [server for server in self.up if server in self.seats and self.seats[server].until == FOREVER]

    @cached_property
    def excused(self) -> set[str]:
        """What these have answered may be lost."""
        return self.given_up.keys() | {server for server, seat in self.seats.items() if seat.is_void}

    @cached_property
    def buried(self) -> set[str]:
        """Who died, was removed, and never came back: what only these have accepted is lost."""
        let_go = {s.process for s in self.all("left")}
        stopped = {row.members for row in self.world if row.kind == "gone" and row.members is not None}
        return {name for name in stopped - let_go if (name, self.last_life.get(name, 0)) in self.crashed}

    def may_be_lost(self, row: Row) -> bool:
        return row.members in self.excused or (row.colour == "red" and row.members in self.buried)

    def is_safe(self, row: Row) -> bool:
        """Is this answer green for good?"""
        return row.colour == "green" and row.service in ("local", "quorum") and row.members not in self.given_up

    @cached_property
    def lost_applies(self) -> list[Step]:
        """What was applied in lives that are over, and is nowhere kept as it was."""
        kept = {(s.position, s.sub, s.message, s.digest) for s in self.kept_applies}
        others = [s for s in self.all("apply") if s not in self.kept_applies]
        return [s for s in others if (s.position, s.sub, s.message, s.digest) not in kept]

    def is_sound(self, row: Row) -> bool:
        """Is the state that this answer shows kept?"""
        return row.members not in self.given_up and not any(
            s.process == row.members and s.position <= _number(row.position) for s in self.lost_applies
        )

    @cached_property
    def operations(self) -> list[Operation]:
        found = []
        for action in sorted({row.message for row in self.world if row.kind == "call" and row.message is not None}):
            mine = [row for row in self.world if row.message == action]
            calls = [row for row in mine if row.kind == "call"]
            is_query = "?" in action
            returns = [row for row in mine if row.kind == "return" and row.local_index > calls[0].local_index]
            safe = [
                row
                for row in returns
                if (
                    self.is_sound(row) and row.colour == "green" and row.service == "strict"
                    if is_query
                    else self.is_safe(row)
                )
            ]
            words = [*(calls[0].detail or "").split(" "), "", "", ""]
            found.append(
                Operation(
                    action,
                    words[0],
                    words[1],
                    words[2],
                    calls[0].detail or "",
                    is_query,
                    calls[0].local_index,
                    safe[0].local_index if safe else None,
                    _number(safe[0].position) if safe else -1,
                    _number(safe[0].sub) if safe else -1,
                    (safe[0].detail or "") if safe else "",
                )
            )
        return found

    @cached_property
    def lists(self) -> list[Operation]:
        return [o for o in self.operations if o.is_list and o.returned is not None and not o.is_conflict]

    def longest(self, name: str) -> list[str]:
        """The longest list seen under a name, its values."""
        seen = [o for o in self.lists if o.object == name]
        return max(seen, key=lambda o: (len(o.answer), o.answer)).values if seen else []


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _is_among(server: str, members: str) -> bool:
    return f" {server} " in f" {members} "


def _step(row: Row) -> Step:
    return Step(
        row.process,
        row.incarnation,
        row.local_index,
        row.time,
        "replaced" if (row.layer, row.kind) == ("database", "restored") else row.kind,
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
    return number_in(number) or 0


def _differ(values: Iterable[object]) -> bool:
    return len(set(values)) > 1


def rows_are_complete(x: Execution) -> bool:
    for life in x.by_life:
        recovers = [s.index for s in life if s.kind == "recover"]
        begun = [s.index for s in life if s.kind in ENGINE and s.kind not in ("phase", "recover", "voter", "newcomer")]
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
            colours = ("red", "green", "dirty") if "?" in row.message else ("red", "green")
            if row.kind == "return" and row.colour not in colours:
                return True
            if row.kind == "return" and row.colour != "red" and (row.position is None or row.sub is None):
                return True
    return False


def _lacks_something(s: Step) -> bool:
    match s.kind:
        case "phase" | "newcomer" | "left":
            return False
        case "roster":
            is_said = s.is_done or " failed" in s.detail
            return s.position < 0 or not s.members or not s.digest or not is_said
        case "restored":
            return s.position < 0 or not s.digest
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
        case "line" | "force":
            return s.position < 0 or not s.members
        case "apply":
            return s.position < 0 or s.sub < 0 or not s.message or s.detail not in VERDICTS
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
        places = [s for s in life if s.kind in ("recover", "restored") or s.is_green]
        for before, after in pairwise(places):
            if after.is_green and after.position != before.position + 1:
                return True
            if after.kind == "restored" and after.position < before.position:
                return True
    return False


def no_action_skipped(x: Execution) -> bool:
    kept = {(s.position, s.sub) for s in x.kept_applies}
    for life in x.by_life:
        for before, after in pairwise(s for s in life if s.kind in ("opened", "replaced", "apply")):
            if after.kind != "apply":
                continue
            is_next = after.position > before.position and after.sub == 0
            is_same = before.kind == "apply" and (after.position, after.sub) == (before.position, before.sub + 1)
            begin = (before.position, before.sub if before.kind == "apply" else FOREVER)
            if not (is_next or is_same):
                return True
            if after in x.kept_applies and any(begin < place < (after.position, after.sub) for place in kept):
                return True
    return False


def global_fifo(x: Execution) -> bool:
    chains: dict[tuple[str, int, str], list[Step]] = {}
    for s in x.kept_greens:
        chains.setdefault((s.process, x.base(s), _creator(s.message)), []).append(s)
    for (process, base, creator), theirs in chains.items():
        theirs.sort(key=lambda s: (s.position, s.life, s.index))
        is_restored = any(s.process == process and s.position == base for s in x.all("restored"))
        held = [s for s in x.kept_greens if is_restored and s.position <= base and _creator(s.message) == creator]
        first = 1 + max((_index(s.message) for s in held), default=0)
        if [_index(s.message) for s in theirs] != list(range(first, first + len(theirs))):
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
    return any(
        x.base(s) > 0 and any(kept.message == s.message and kept.position <= x.base(s) for kept in x.kept_greens)
        for s in x.marks
    )


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
    living = [s for s in x.installs if s.process not in x.given_up]
    for one in living:
        for other in living:
            same = (one.position, one.sub) == (other.position, other.sub)
            if same and (one.members, one.digest) != (other.members, other.digest):
                return True
    votes: dict[tuple[int, int, str], set[tuple[int, str]]] = {}
    for voter in (s for s in x.all("voter") if s.process not in x.given_up):
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
    for install in (s for s in x.installs if s.process not in x.given_up):
        before = {key: component for key, component in votes.items() if key[0] == install.position - 1}
        holds = {key: _holds_quorum(install.set, component, x.given_up) for key, component in before.items()}
        if not any(holds.values()) or any(not holds[key] for key in before if key in kept or key[0] == 0):
            return True
    return False


def _holds_quorum(members: list[str], votes: dict[str, tuple[int, bool]], given_up: Collection[str]) -> bool:
    everybody = sum(weight for weight, _ in votes.values())
    living = sum(weight for server, (weight, _) in votes.items() if server not in given_up)
    here = [vote for server, vote in votes.items() if server in members]
    held = sum(weight for weight, _ in here)
    if living < everybody and 2 * held >= living:
        return True
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
    return any(
        seat.holds(x.reach(s)) and server not in x.given_up and s.position > x.on_disk(server, s.conf)
        for s in white
        for server, seat in x.seats.items()
    )


def log_before_data(x: Execution) -> bool:
    for life in x.by_life:
        recovered = x.recovered(life[0].process, life[0].life)
        earlier = [s for s in x.all("replaced") if s.process == life[0].process and s.life < life[0].life]
        begun = max([recovered, 0, *(s.position for s in earlier)])
        snapshots = [s for s in life if s.kind in ("restored", "replaced")]
        forced = [s for s in life if s.kind == "durable"]
        greens = [s for s in life if s.is_green]
        for s in life:
            if s.kind in ("opened", "commit", "durable", "apply"):
                grounds = {"opened": [], "commit": forced}.get(s.kind, greens) + snapshots
                if s.position > max([begun, *(each.position for each in grounds if each.time <= s.time)]):
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
    returns = [row for row in x.world if row.kind == "return" and not x.may_be_lost(row)]
    answered = {row.message for row in returns if row.message is not None and "?" not in row.message}
    for server in x.last_servers:
        base = x.last_base(server)
        mine = [s for s in x.kept_applies if s.process == server]
        held = {s.message for s in x.kept_applies if s.position <= base}
        if answered - {s.message for s in mine} - held:
            return True
        places = {(s.message, (s.position, s.sub)) for s in mine}
        if any(o.place and o.place[0] > base and (o.action, o.place) not in places for o in x.operations):
            return True
    return False


def decided_once(x: Execution) -> bool:
    asked = {o.action for o in x.operations}
    decided = [s for s in x.kept_applies if s.is_decided]
    if any(s.message not in asked for s in decided if asked):
        return True
    return bool(asked) and any(
        one.process == other.process
        and one.message == other.message
        and (one.position, one.sub) != (other.position, other.sub)
        for one in decided
        for other in decided
    )


def convergence(x: Execution) -> bool:
    if not x.is_settled:
        return False
    finals = [row for row in x.world if row.kind == "final"]
    final = [row for row in finals if row.members in x.last_servers]
    if _differ(_number(row.position) for row in final) or _differ(row.digest or "" for row in final):
        return True
    if any(row.sub != 0 for row in final):
        return True
    if finals and not {row.members for row in final}.issuperset(x.last_servers):
        return True
    if x.up != x.last_servers:
        return True
    for last in ((server, x.last_life[server]) for server in x.last_servers):
        phases, installs = x.all("phase", of=last), x.all("install", of=last)
        if not phases or phases[-1].detail != "RegPrim":
            return True
        if not installs or installs[-1].members.count(" ") + 1 != len(x.last_servers):
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
    touched = [o for o in touched if not (o.verb == "write" and o.is_conflict)]
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
    def key(o: Operation) -> tuple[int, int]:
        number = o.action.split("/")[1]
        return number_in(number) or 0, o.called

    answered = [o for o in x.operations if o.place is not None and "/" in o.action]
    return any(
        one.action.split("/")[0] == other.action.split("/")[0]
        and key(one) < key(other)
        and (one.place or (0, 0)) >= (other.place or (0, 0))
        for one in answered
        for other in answered
    )


def one_server_set(x: Execution) -> bool:
    told: dict[tuple[int, int], set[tuple[str, str, str]]] = {}
    for life in x.by_life:
        count: Counter[int] = Counter()
        for s in (s for s in life if s.kind == "roster"):
            count[s.position] += 1
            if x.is_in_the_log(s):
                told.setdefault((s.position, count[s.position]), set()).add((s.detail, s.members, s.digest))
    return any(len(results) > 1 for results in told.values())


def a_change_is_as_it_is_said(x: Execution) -> bool:
    for life in x.by_life:
        before: Step | None = None
        for s in (s for s in life if s.kind in ("roster", "restored")):
            if s.kind == "restored":
                before = None
                continue
            verb, server = s.words[0], s.words[1]
            if s.is_done and verb in ("join", "leave") and s.has(server) != (verb == "join"):
                return True
            if before is not None and (s.position < before.position or not _follows(s, before)):
                return True
            before = s
    return False


def _follows(change: Step, before: Step) -> bool:
    verb, server = change.words[0], change.words[1]
    if not change.is_done or verb not in ("join", "leave"):
        return change.members == before.members
    step = {"join": int(not before.has(server)), "leave": -int(before.has(server))}[verb]
    return change.members.count(" ") == before.members.count(" ") + step


def who_has_left_stays_away(x: Execution) -> bool:
    return any(
        seat.until < s.position and (s.has(server) or (s.is_done and s.words[:2] == ["join", server]))
        for s in x.changes
        if x.is_in_the_log(s)
        for server, seat in x.seats.items()
    )


def a_snapshot_is_of_the_order(x: Execution) -> bool:
    furthest = max((s.position for s in x.marks if s.is_green), default=0)
    for s in x.all("restored"):
        there = [mark.digest for mark in x.kept_greens if mark.position == s.position]
        seat = x.seats.get(s.process)
        if (there and min(there) != s.digest) or s.position > furthest or seat is None or s.position < seat.since:
            return True
    return False


def who_has_left_is_done(x: Execution) -> bool:
    for server, seat in x.seats.items():
        formed = [s for s in x.kept_installs if x.reach(s) >= seat.until and not s.has(server)]
        if not formed or server in x.given_up:
            continue
        first = min(s.position for s in formed)
        if any(s.position > first and s.has(server) for s in x.installs):
            return True
        if any(s.process == server and s.position >= first for s in x.all("cpc")):
            return True
    return any(
        s.process == left.process and (left.life, left.index) < (s.life, s.index)
        for left in x.all("left")
        for s in x.all("create", "cpc", "install")
    )


def void_has_no_effect(x: Execution) -> bool:
    def is_void(mark: Step) -> bool:
        seat = x.seats.get(_creator(mark.message))
        return seat is not None and seat.is_void and seat.until < mark.position

    void = {mark.position for mark in x.kept_greens if is_void(mark)}
    return any(s.position in void for s in x.kept_applies)


def force_epochs(x: Execution) -> bool:
    forces = x.all("force")
    for one in forces:
        if not one.has(one.process):
            return True
        for other in forces:
            if one.position == other.position and one.members != other.members:
                return True
            is_later = one.process == other.process and (one.life, one.index) < (other.life, other.index)
            if is_later and other.position < one.position:
                return True
    return any(
        s.process == force.process
        and (force.life, force.index) < (s.life, s.index)
        and any(s.has(server) and epoch <= force.position for server, epoch in x.given_up.items())
        for force in forces
        for s in x.installs
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
    "replication/11_3_decided_once": decided_once,
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
    "replication/18_1_one_server_set": one_server_set,
    "replication/18_2_a_change_is_as_it_is_said": a_change_is_as_it_is_said,
    "replication/18_3_who_has_left_stays_away": who_has_left_stays_away,
    "replication/19_a_snapshot_is_of_the_order": a_snapshot_is_of_the_order,
    "replication/20_who_has_left_is_done": who_has_left_is_done,
    "replication/21_void_has_no_effect": void_has_no_effect,
    "replication/22_force_epochs": force_epochs,
}


def broken(rows: list[Row]) -> set[str]:
    """The rules of replication that the rows of one run break."""
    execution = Execution(rows)
    return {name for name, is_broken in RULES.items() if is_broken(execution)}
