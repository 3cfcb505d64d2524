"""Small executions of a replicated database by somebody who knows everything, and what can go wrong with them.

Not an engine: it moves a few servers through meetings, primary components, crashes and healing so that every rule
holds, because it can look into all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from greenline.kernel.evidence import WORLD, Row
from tests.spec.small import renumbered

Action = tuple[str, str]
"""Its name and what it asks for."""


@dataclass
class Prim:
    index: int
    attempt: int
    members: tuple[str, ...]


@dataclass
class Server:
    name: str
    prim: Prim
    durable_prim: Prim
    installed_at: int = 0
    """How long the order was when it installed its last component."""
    life: int = 0
    is_up: bool = False
    conf: str | None = None
    index: int = 0
    order: list[str] = field(default_factory=list)
    bodies: set[str] = field(default_factory=set)
    durable: int = 0
    applied: int = 0
    committed: int = 0
    waiting: list[tuple[str, str, str]] = field(default_factory=list)
    """Asked here and not answered: action, bundle, level."""


class World:
    def __init__(self, chance: Random, talk: int = 3) -> None:
        self.chance = chance
        self.talk = talk
        """How many bundles a primary component orders, at most."""
        self.rows: list[Row] = []
        self.places: dict[tuple[str, int], int] = {}
        names = "pqrs"[: chance.randint(2, 4)]
        self.weights = {name: chance.choice((1, 1, 1, 2)) for name in names}
        first = Prim(0, 0, tuple(names))
        self.servers = {name: Server(name, first, first) for name in names}
        self.bundles: dict[str, list[Action]] = {}
        self.attempts: dict[int, int] = {}
        self.confs = 0
        self.actions = 0
        self.values = 0

    # Rows.

    def say(self, process: str, kind: str, layer: str | None = None, **columns: Any) -> None:
        server = self.servers.get(process)
        key = (process, server.life if server else 0)
        place = self.places.get(key, 0)
        self.places[key] = place + 1
        conf = server.conf if server else None
        self.rows.append(Row(*key, place, float(len(self.rows)), kind, layer, **{"conf": conf} | columns))

    def engine(self, server: Server, kind: str, **columns: Any) -> None:
        self.say(server.name, kind, "engine", **columns)

    def up(self) -> list[Server]:
        return [server for server in self.servers.values() if server.is_up]

    # Lives.

    def start(self, server: Server) -> None:
        server.life += 1
        server.is_up, server.conf = True, None
        self.say(server.name, "start")
        position = server.durable = len(server.order)
        self.engine(server, "recover", position=position, sub=server.index, digest=self.digest(server.order))
        if server.life == 1:
            self.vote(server, server.prim)
        self.engine(server, "phase", detail="NonPrim")
        self.say(server.name, "opened", "database", position=server.committed)
        server.applied = server.committed
        self.apply(server)

    def crash(self, server: Server) -> None:
        """What the disk does not have is lost, or some of it."""
        self.say(server.name, "crash")
        server.is_up = False
        kept = self.chance.randint(server.durable, len(server.order))
        del server.order[kept:]
        if kept > server.installed_at:  # the log is a sequence: what was ordered in a component comes after it
            server.durable_prim = server.prim
        server.prim = server.durable_prim
        server.waiting.clear()

    def digest(self, order: list[str]) -> str:
        return ">".join(order) or "-"

    def vote(self, server: Server, prim: Prim) -> None:
        heaviest = min(prim.members, key=lambda name: (-self.weights[name], name))
        for name in prim.members:
            detail = "distinguished" if name == heaviest else None
            self.engine(server, "voter", position=prim.index, members=name, sub=self.weights[name], detail=detail)

    # The order.

    def red(self, server: Server, bundle: str, state: str) -> None:
        if bundle not in server.bodies:
            server.bodies.add(bundle)
            self.engine(server, "mark", message=bundle, colour="red", sub=server.prim.index, detail=state)

    def green(self, server: Server, bundle: str, detail: str) -> None:
        self.red(server, bundle, detail.split()[1])
        server.order.append(bundle)
        columns: dict[str, Any] = {"position": len(server.order), "digest": self.digest(server.order)}
        self.engine(server, "mark", message=bundle, colour="green", sub=server.prim.index, detail=detail, **columns)
        self.apply(server)

    def force(self, server: Server) -> None:
        server.durable_prim = server.prim
        if server.durable < len(server.order):
            server.durable = len(server.order)
            self.engine(server, "durable", position=server.durable)
        self.answer(server)
        if server.committed < server.durable and self.chance.random() < 0.7:
            server.committed = server.durable
            self.say(server.name, "commit", "database", position=server.committed)

    def apply(self, server: Server) -> None:
        for position in range(server.applied + 1, len(server.order) + 1):
            for sub, (action, _) in enumerate(self.bundles[server.order[position - 1]]):
                outcome = self.outcome(server.order[:position], action)
                self.say(server.name, "apply", "database", position=position, sub=sub, message=action, digest=outcome)
            server.applied = position

    def outcome(self, order: list[str], wanted: str) -> str:
        """What an action answers, all before it applied."""
        state: dict[str, str] = {}
        for action, asked in (each for bundle in order for each in self.bundles[bundle]):
            verb, *words = asked.split()
            match verb:
                case "append":
                    answer = state[words[0]] = f"{state.get(words[0], words[0])} {words[1]}"
                case "write":
                    answer = state[words[0]] = " ".join(words)
                case "read":
                    answer = state.get(words[0], words[0] if words[0][0] == "l" else f"{words[0]} -")
                case "total":
                    answer = "total 100"
                case _:
                    answer = "ok"
            if action == wanted:
                return answer
        raise KeyError(wanted)

    # Clients.

    def ask(self, server: Server) -> str:
        """One to three clients ask; their bundle."""
        server.index += 1
        bundle = f"{server.name}#{server.index}"
        self.bundles[bundle] = []
        for _ in range(self.chance.choice((1, 1, 2))):
            self.actions += 1
            action = f"{self.chance.choice('ab')}/{self.actions}"
            level = self.chance.choice(("memory", "local", "local", "quorum"))
            asked = self.request()
            self.say(WORLD, "call", message=action, members=server.name, service=level, detail=asked)
            self.bundles[bundle].append((action, asked))
            server.waiting.append((action, bundle, level))
        self.engine(server, "create", message=bundle, sub=len(self.bundles[bundle]), digest=f"d{self.actions}")
        return bundle

    def request(self) -> str:
        self.values += 1
        return self.chance.choice(
            (f"append l1 {self.values}", "read l1", f"write r1 {self.values}", "read r1", "transfer a b 1", "total")
        )

    def answer(self, server: Server) -> None:
        """What is green and durable enough is answered."""
        for asked in list(server.waiting):
            action, bundle, level = asked
            if bundle not in server.order:
                continue
            position = server.order.index(bundle) + 1
            if level == "memory" or position <= server.durable:
                server.waiting.remove(asked)
                sub = [name for name, _ in self.bundles[bundle]].index(action)
                value = self.outcome(server.order, action)
                place: dict[str, Any] = {"position": position, "sub": sub}
                self.say(WORLD, "return", message=action, colour="green", service=level, detail=value, **place)

    # Meetings.

    def meet(self, members: list[Server]) -> None:
        self.confs += 1
        names = tuple(server.name for server in members)
        for server in members:
            if server.conf is not None:
                self.say(server.name, "transitional", "ring", conf=f"{server.conf}>{self.confs}", members=server.name)
            server.conf = f"{names[0]}.{self.confs}"
            self.say(server.name, "regular", "ring", members=" ".join(names))
            self.engine(server, "phase", detail="ExchangeStates")
            self.force(server)
        whole = max((server.order for server in members), key=len)
        bodies = sorted({bundle for server in members for bundle in server.bodies} - set(whole), key=_by_index)
        for server in members:
            self.engine(server, "phase", detail="ExchangeActions")
            for bundle in whole[len(server.order) :]:
                self.green(server, bundle, "OR-3 ExchangeActions")
            for bundle in bodies:
                self.red(server, bundle, "ExchangeActions")
            server.prim = max((each.prim for each in members), key=lambda prim: (prim.index, prim.attempt))
            for other in members:
                if other.durable and self.chance.random() < 0.5:
                    self.engine(server, "line", members=other.name, position=other.durable)
        if self.may_install(members):
            self.install(members, bodies)
        else:
            for server in members:
                self.engine(server, "phase", detail="NonPrim")
            self.speak_red(members)

    def may_install(self, members: list[Server]) -> bool:
        prim = members[0].prim
        everybody = self.servers.values()
        if any((s.prim.index, s.prim.attempt) > (prim.index, prim.attempt) for s in everybody):
            return False
        if any(len(server.order) > len(members[0].order) for server in everybody):
            return False
        names = {server.name for server in members}
        votes = {name: self.weights[name] for name in prim.members}
        held = sum(weight for name, weight in votes.items() if name in names)
        heaviest = min(votes, key=lambda name: (-votes[name], name))
        return 2 * held > sum(votes.values()) or (2 * held == sum(votes.values()) and heaviest in names)

    def install(self, members: list[Server], reds: list[str]) -> None:
        before = members[0].prim
        attempt = self.attempts[before.index] = self.attempts.get(before.index, 0) + 1
        names = tuple(server.name for server in members)
        attempted: dict[str, Any] = {"position": before.index, "sub": attempt, "members": " ".join(names)}
        for server in members:
            self.engine(server, "phase", detail="Construct")
            self.engine(server, "vulnerable", detail="valid try", **attempted)
            self.force(server)
            self.engine(server, "cpc", **attempted)
        prim = Prim(before.index + 1, attempt, names)
        for server in list(members):
            if self.chance.random() < 0.1 and len(self.up()) > 1:
                self.crash(server)
                members.remove(server)
                continue
            for bundle in reds:
                self.green(server, bundle, "OR-2 Construct")
            server.prim, server.installed_at = prim, len(server.order)
            told: dict[str, Any] = {"position": prim.index, "sub": attempt, "members": " ".join(names)}
            self.engine(server, "install", digest=self.digest(server.order), **told)
            self.vote(server, prim)
            self.engine(server, "phase", detail="RegPrim")
        if members:
            self.speak_green(members)

    def speak_red(self, members: list[Server]) -> None:
        for _ in range(self.chance.choice((0, 1, 2))):
            creator = self.chance.choice(members)
            bundle = self.ask(creator)
            if self.chance.random() < 0.1:
                self.lose(creator, bundle)
                members.remove(creator)
                return
            for server in members:
                self.red(server, bundle, "NonPrim")
            for action, _ in self.bundles[bundle]:
                self.say(WORLD, "return", message=action, colour="red")

    def lose(self, creator: Server, bundle: str) -> None:
        """Its creator crashes before the disk has it: its number will be given to another."""
        creator.waiting = [each for each in creator.waiting if each[1] != bundle]
        creator.index -= 1
        del self.bundles[bundle]
        self.crash(creator)

    def speak_green(self, members: list[Server]) -> None:
        for _ in range(self.chance.randint(0, self.talk)):
            creator = self.chance.choice(members)
            bundle = self.ask(creator)
            for server in members:
                self.green(server, bundle, "OR-1.1 RegPrim")
            for server in members:
                if self.chance.random() < 0.6:
                    self.force(server)
        if len(members) > 1 and self.chance.random() < 0.3:
            late = self.chance.choice(members)
            bundle = self.ask(self.chance.choice([server for server in members if server is not late]))
            for server in members:
                if server is late:
                    self.engine(server, "phase", detail="TransPrim")
                    self.red(server, bundle, "TransPrim")
                    self.engine(server, "mark", message=bundle, colour="yellow", detail="TransPrim")
                else:
                    self.green(server, bundle, "OR-1.1 RegPrim")
        line = min(server.durable for server in self.servers.values())
        if line and self.chance.random() < 0.5:
            server = self.chance.choice(members)
            self.engine(server, "white", position=line)
            self.engine(server, "discard", position=line, detail="white")

    # A run.

    def live(self) -> list[Row]:
        for server in self.servers.values():
            self.start(server)
        for _ in range(self.chance.randint(1, 2)):
            self.trouble()
            for part in self.parts():
                self.meet(part)
        if self.chance.random() < 0.8:
            self.settle()
        return self.rows

    def trouble(self) -> None:
        for server in self.servers.values():
            if server.is_up and self.chance.random() < 0.25:
                self.crash(server)
            elif not server.is_up and self.chance.random() < 0.5:
                self.start(server)
        if self.chance.random() < 0.1:
            for server in self.up():
                self.crash(server)
        self.say(WORLD, "fault", detail="parts")

    def parts(self) -> list[list[Server]]:
        sides: dict[int, list[Server]] = {}
        for server in self.up():
            sides.setdefault(self.chance.choice((0, 0, 1)), []).append(server)
        return list(sides.values())

    def settle(self) -> None:
        """Everybody meets until one meeting goes through with nobody crashing or left behind in it."""
        self.say(WORLD, "healed")
        members = list(self.servers.values())
        while True:
            for server in members:
                if not server.is_up:
                    self.start(server)
            self.meet(list(members))
            if all(server.is_up for server in members) and len({len(server.order) for server in members}) == 1:
                break
        for server in members:
            self.force(server)
            told: dict[str, Any] = {"position": len(server.order), "digest": self.digest(server.order), "sub": 0}
            self.say(WORLD, "final", members=server.name, **told)
        self.say(WORLD, "quiet")


def _by_index(bundle: str) -> tuple[int, str]:
    creator, index = bundle.split("#")
    return int(index), creator


def small_execution(seed: int) -> list[Row]:
    return World(Random(f"small replication/{seed}")).live()


def corrupted(rows: list[Row], seed: int) -> list[Row]:
    """The same with one to three mistakes in it; the rows of each life are numbered anew."""
    chance = Random(f"corrupted replication/{seed}")
    rows = [copy(row) for row in rows]
    for _ in range(chance.choice((1, 1, 2, 3))):
        rows = chance.choice(MISTAKES)(rows, chance)
    return renumbered(rows)


def _some(rows: list[Row], chance: Random, *kinds: str) -> Row:
    """Kinds are told apart first: some are rare, and their mistakes are not to be."""
    found = {row.kind for row in rows} & set(kinds) if kinds else {row.kind for row in rows}
    kind = chance.choice(sorted(found or {row.kind for row in rows}))
    return chance.choice([row for row in rows if row.kind == kind])


def dropped(rows: list[Row], chance: Random) -> list[Row]:
    row = _some(rows, chance)
    return [each for each in rows if each is not row]


def duplicated(rows: list[Row], chance: Random) -> list[Row]:
    row = _some(rows, chance)
    place = next(place for place, each in enumerate(rows) if each is row)
    rows.insert(chance.randrange(place, len(rows)) + 1, copy(row))
    return rows


def moved(rows: list[Row], chance: Random) -> list[Row]:
    """It is said to have happened much earlier, or much later, in the same life; at the time of what it stands by."""
    row = _some(rows, chance)
    rows = [each for each in rows if each is not row]
    place = chance.randrange(0, len(rows))
    rows.insert(place, row)
    row.time = rows[place + 1].time
    return rows


def misplaced(rows: list[Row], chance: Random) -> list[Row]:
    """A place, a number or a weight is off by one or two; often that of a promise."""
    row = _some(rows, chance, *chance.choice(((), ("line", "white", "durable", "recover", "return"))))
    column = chance.choice(("position", "sub"))
    value = getattr(row, column)
    if value is not None:
        setattr(row, column, max(0, value + chance.choice((-2, -1, -1, 1, 1, 2))))
    return rows


def of_another(rows: list[Row], chance: Random) -> list[Row]:
    """A bundle or an action is said to be another one."""
    row = _some(rows, chance, "mark", "create", "apply", "return", "refused")
    row.message = _some(rows, chance, row.kind).message
    return rows


def by_another(rows: list[Row], chance: Random) -> list[Row]:
    """It is said to have befallen another process, or another life."""
    row, other = _some(rows, chance), _some(rows, chance)
    if WORLD not in (row.process, other.process):
        row.process, row.incarnation = other.process, other.incarnation
    return rows


def as_another(rows: list[Row], chance: Random) -> list[Row]:
    """A word of it is that of another row of its kind."""
    row = _some(rows, chance, "mark", "phase", "vulnerable", "cpc", "install", "voter", "final", "return", "line")
    other = _some(rows, chance, row.kind)
    column = chance.choice(("colour", "position", "sub", "members", "digest", "detail", "service"))
    setattr(row, column, getattr(other, column))
    return rows


def of_others(rows: list[Row], chance: Random) -> list[Row]:
    """An attempt is said to have other members, at one process or everywhere."""
    row = _some(rows, chance, "install", "cpc", "vulnerable")
    key, is_everywhere = (row.kind, row.position, row.sub), chance.random() < 0.5
    members = " ".join(sorted(set((row.members or "").split()) ^ {chance.choice("pqrs")}))
    for each in rows:
        if each is row or (is_everywhere and (each.kind, each.position, each.sub) == key):
            each.members = members
    return rows


def elsewhere(rows: list[Row], chance: Random) -> list[Row]:
    """It is said to have happened in another configuration."""
    row, other = _some(rows, chance, "mark", "line", "white", "regular"), _some(rows, chance, "regular")
    row.conf = other.conf
    return rows


def emptied(rows: list[Row], chance: Random) -> list[Row]:
    """Something that a row should say is missing."""
    row = _some(rows, chance)
    setattr(row, chance.choice(("conf", "message", "colour", "position", "sub", "members", "digest", "detail")), None)
    return rows


def misanswered(rows: list[Row], chance: Random) -> list[Row]:
    """A client is answered something else: less, more, or what another was."""
    answers = [row for row in rows if row.kind == "return" and row.detail and row.detail != "ok"]
    if answers:
        row, other = chance.choice(answers), chance.choice(answers)
        words = (row.detail or "").split()
        row.detail = chance.choice(
            (" ".join(words[:-1]), f"{row.detail} 7", other.detail, " ".join([*words[:-1], "8"]))
        )
    return rows


def forgotten(rows: list[Row], chance: Random) -> list[Row]:
    """A life begins with less than its disk had, and goes on from there."""
    later = [row for row in rows if row.incarnation > 1]
    row = _some(later or rows, chance, "recover", "opened")
    if row.kind == "recover" and chance.random() < 0.5:
        row.sub = max(0, (row.sub or 0) - 1)
    elif row.position:
        row.position -= 1
    return rows


def unquiet(rows: list[Row], chance: Random) -> list[Row]:
    """The end is missing: nobody knows whether the run was over."""
    return rows[: chance.randrange(len(rows) // 2, len(rows) + 1)]


MISTAKES: tuple[Callable[[list[Row], Random], list[Row]], ...] = (
    dropped,
    duplicated,
    moved,
    misplaced,
    of_another,
    by_another,
    as_another,
    of_others,
    elsewhere,
    emptied,
    misanswered,
    forgotten,
    unquiet,
)
