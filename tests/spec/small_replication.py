"""Small executions of a replicated database by somebody who knows everything, and what can go wrong with them.

Not an engine: it moves a few servers through meetings, primary components, crashes and healing, lets some come and
others go, and has clients who ask again and look at everything, so that every rule holds, because it can look into all
of them at once.
What an order comes to is found by `tests.spec.small_database`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from greenline.kernel.evidence import WORLD, Row
from tests.spec.small import renumbered
from tests.spec.small_database import Action, Bundle, Change, State, played


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
    base: int = 0
    """Where its order begins, if it is a newcomer."""
    is_new: bool = False
    is_gone: bool = False
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
        self.bundles: dict[str, Bundle] = {}
        self.attempts: dict[int, int] = {}
        self.confs = 0
        self.values = 0
        self.queries = 0
        self.numbers: dict[str, int] = {}
        self.requests: dict[str, str] = {}
        self.seen: dict[str, int] = {}
        """By session: the greatest position that it was told."""
        self.given_up: set[str] = set()

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

    def here(self) -> list[Server]:
        """Everybody who is still there, and a replica."""
        return [server for server in self.servers.values() if not server.is_gone and not server.is_new]

    # Lives.

    def start(self, server: Server) -> None:
        server.life += 1
        server.is_up, server.conf = True, None
        self.say(server.name, "start")
        position = server.durable = len(server.order)
        self.engine(server, "recover", position=position, sub=server.index, digest=self.digest(server.order))
        if server.is_new:
            self.engine(server, "newcomer")
        elif server.life == 1:
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
        change = self.bundles[bundle].change
        if change is not None:
            servers = self.state(server.order).servers
            told: dict[str, Any] = {"position": len(server.order), "members": " ".join(servers)}
            self.engine(server, "roster", digest="-".join(servers), detail=f"{change} done", **told)
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

    def state(self, order: list[str]) -> State:
        founders = sorted(set("pqrs") & set(self.weights))
        return played([self.bundles[bundle] for bundle in order], founders)

    def apply(self, server: Server) -> None:
        for place in self.state(server.order).applied:
            if place.position > server.applied:
                columns: dict[str, Any] = {"position": place.position, "sub": place.sub, "message": place.action}
                self.say(server.name, "apply", "database", digest=place.digest, detail=place.verdict, **columns)
        server.applied = len(server.order)

    # Clients.

    def ask(self, server: Server) -> str:
        """One or two clients ask; their bundle."""
        bundle = self.bundle(server)
        for _ in range(self.chance.choice((1, 1, 2))):
            action = self.action(server)
            level = self.chance.choice(("memory", "local", "local", "quorum"))
            service = "relaxed" if "~" in action.name else level
            self.say(WORLD, "call", message=action.name, members=server.name, service=service, detail=action.asked)
            self.bundles[bundle].actions.append(action)
            server.waiting.append((action.name, bundle, service))
        self.engine(server, "create", message=bundle, sub=len(self.bundles[bundle].actions), digest=f"d{self.values}")
        return bundle

    def bundle(self, server: Server, change: Change | None = None) -> str:
        server.index += 1
        bundle = f"{server.name}#{server.index}"
        self.bundles[bundle] = Bundle(server.name, change=change)
        return bundle

    def action(self, server: Server) -> Action:
        """A new one, or one that was asked for before: whether it was answered or not."""
        session = self.chance.choice("ab")
        known = [name for name in self.requests if name[0] == session]
        if known and self.chance.random() < 0.3:
            name = known[-1] if self.chance.random() < 0.7 else self.chance.choice(known)
        else:
            asked = self.request(server)
            key = session + ("~" if asked.split()[0] in ("add", "put") and self.chance.random() < 0.7 else "/")
            self.numbers[key] = self.numbers.get(key, 0) + 1
            name = f"{key}{self.numbers[key]}"
            self.requests[name] = asked
        return Action(name, self.requests[name])

    def request(self, server: Server) -> str:
        self.values += 1
        value, time = self.values, self.chance.randint(1, 9)
        read = self.state(server.order).registers.get("r1", "-")
        return self.chance.choice(
            (
                *(f"append l1 {value}", "read l1", f"write r1 {value}", "read r1", "transfer a b 1", "total"),
                *(f"write r1 {value} if r1 {read}", f"add c1 {value}", f"put t1 {time} {value}"),
            )
        )

    def answer(self, server: Server) -> None:
        """What is green and durable enough is answered; who comes early is told so."""
        state = self.state(server.order)
        for asked in list(server.waiting):
            action, bundle, level = asked
            if bundle not in server.order:
                continue
            position = server.order.index(bundle) + 1
            if level in ("memory", "relaxed") or position <= server.durable:
                server.waiting.remove(asked)
                place = next(
                    (each for each in state.applied if (each.action, each.position) == (action, position)), None
                )
                if place is None:
                    continue
                told: dict[str, Any] = {"message": action, "service": level, "members": server.name}
                if place.decided is None:
                    self.say(WORLD, "refused", detail=place.verdict, **told)
                    continue
                told |= {"position": place.decided[0], "sub": place.decided[1], "digest": place.digest}
                self.say(WORLD, "return", colour="green", detail=place.value, **told)
                if level in ("local", "quorum"):
                    self.learn(action[0], place.decided[0])

    def learn(self, session: str, position: int) -> None:
        self.seen[session] = max(self.seen.get(session, 0), position)

    def look(self, server: Server, services: tuple[str, ...]) -> None:
        """Somebody looks at something."""
        session, service = self.chance.choice("ab"), self.chance.choice(services)
        after = self.seen.get(session, 0)
        if service == "session" and after > len(server.order):
            return
        self.queries += 1
        query = f"{session}?{self.queries}"
        asked = self.chance.choice(("read l1", "read l1", "read r1", "count c1", "get t1", "total"))
        reds = sorted(server.bodies - set(server.order), key=_by_index) if service == "dirty" else []
        told: dict[str, Any] = {"message": query, "service": service, "members": server.name}
        self.say(WORLD, "call", position=after if service == "session" else None, detail=asked, **told)
        told |= {"position": len(server.order), "sub": len(reds), "colour": "dirty" if reds else "green"}
        self.say(WORLD, "return", detail=self.state(server.order + reds).read(asked), **told)
        if service in ("strict", "session"):
            self.learn(session, len(server.order))

    # Meetings.

    def meet(self, members: list[Server], talks: bool = True) -> None:
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
            if self.chance.random() < 0.5:
                self.look(server, ("session", "weak", "dirty"))
        if self.may_install(members):
            self.install(members, bodies, talks)
        else:
            for server in members:
                self.engine(server, "phase", detail="NonPrim")
            if talks:
                self.speak_red(members)

    def may_install(self, members: list[Server]) -> bool:
        prim = members[0].prim
        everybody = self.here()
        if any((s.prim.index, s.prim.attempt) > (prim.index, prim.attempt) for s in everybody):
            return False
        if any(len(server.order) > len(members[0].order) for server in everybody):
            return False
        names = {server.name for server in members}
        votes = {name: self.weights[name] for name in prim.members if name not in self.given_up}
        if not votes:
            return True
        held = sum(weight for name, weight in votes.items() if name in names)
        heaviest = min(prim.members, key=lambda name: (-self.weights[name], name))
        return 2 * held > sum(votes.values()) or (2 * held == sum(votes.values()) and heaviest in names)

    def install(self, members: list[Server], reds: list[str], talks: bool) -> None:
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
        if members and talks:
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
            for action in self.bundles[bundle].actions:
                self.say(WORLD, "return", message=action.name, colour="red", members=creator.name)
            self.look(creator, ("session", "weak", "dirty", "dirty"))

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
            self.look(self.chance.choice(members), ("strict", "session", "weak", "dirty"))
        known = self.state(members[0].order)
        line = min(self.servers[name].durable for name in known.servers) if members[0].is_up else 0
        if line and self.chance.random() < 0.5:
            server = self.chance.choice(members)
            self.engine(server, "white", position=line)
            self.engine(server, "discard", position=line, detail="white")
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
        elif self.chance.random() < 0.4:
            self.reconfigure(members)

    # Who comes and who goes.

    def reconfigure(self, members: list[Server]) -> None:
        """A primary component changes the set of servers, or ends old sessions."""
        known = self.state(members[0].order)
        going = [s for s in members if 2 * self.weights[s.name] < sum(self.weights[name] for name in known.servers)]
        match self.chance.choice(("join", "leave", "expire", "weigh")):
            case "join" if "t" not in self.servers:
                self.arrive("t")
                self.order(members, Change("join", "t"))
                if self.chance.random() < 0.7:
                    self.restore(self.servers["t"], self.chance.choice(members))
            case "leave" if len(members) > 2 and len(known.servers) > 2 and going:
                leaver = self.chance.choice(going)
                self.order(members, Change("leave", leaver.name, self.chance.choice(("", " void"))))
                remaining = [server for server in members if server is not leaver]
                if self.may_install(remaining):
                    self.part(leaver, remaining)
            case "expire":
                self.order(members, Change("expire", str(len(members[0].order))))
            case "weigh":
                self.order(members, Change("weigh", members[0].name, " 1"))

    def order(self, members: list[Server], change: Change) -> None:
        creator = self.chance.choice(members)
        bundle = self.bundle(creator, change)
        self.engine(creator, "create", message=bundle, sub=0, digest=str(change))
        for server in members:
            self.green(server, bundle, "OR-1.1 RegPrim")

    def arrive(self, name: str) -> None:
        nobody = Prim(0, 0, ())
        self.weights[name] = 1
        self.servers[name] = Server(name, nobody, nobody, is_new=True)
        self.start(self.servers[name])

    def restore(self, newcomer: Server, source: Server) -> None:
        """The newcomer becomes what its source has on disk, and may crash before it knows."""
        self.force(source)
        held = source.order[: source.durable]
        self.say(newcomer.name, "restored", "database", position=len(held))
        newcomer.applied = newcomer.committed = len(held)
        if self.chance.random() < 0.2:
            self.say(newcomer.name, "crash")
            self.start(newcomer)
        self.engine(newcomer, "restored", position=len(held), digest=self.digest(held))
        self.engine(newcomer, "durable", position=len(held))
        newcomer.order, newcomer.bodies, newcomer.base = list(held), set(held), len(held)
        newcomer.durable = newcomer.applied = newcomer.committed = len(held)
        newcomer.prim = newcomer.durable_prim = source.durable_prim
        newcomer.installed_at, newcomer.is_new = len(held), False

    def part(self, leaver: Server, remaining: list[Server]) -> None:
        """The others form a component without it: it is told, and stopped for good."""
        self.meet(remaining, talks=False)
        if any(server.is_up and leaver.name not in server.prim.members for server in remaining):
            self.engine(leaver, "left")
            self.crash(leaver)
            leaver.is_gone = True
            self.say(WORLD, "gone", members=leaver.name)

    def give_up(self) -> None:
        """An operator gives some up for dead; the others go on without them, in a new epoch."""
        dead = [server for server in self.here() if self.chance.random() < 0.4][:2]
        living = [server for server in self.here() if server not in dead]
        if not dead or not living or any(server.is_new for server in self.servers.values()):
            return
        for server in dead:
            if server.is_up:
                self.crash(server)
            server.is_gone = True
            self.given_up.add(server.name)
            self.say(WORLD, "gone", members=server.name)
        for server in living:
            if not server.is_up:
                self.start(server)
            names = " ".join(each.name for each in living)
            self.engine(server, "force", position=1, members=names, detail="they burnt")
        for server in dead:
            creator = living[0]
            bundle = self.bundle(creator, Change("leave", server.name))
            self.engine(creator, "create", message=bundle, sub=0, digest=bundle)
            for each in living:
                self.red(each, bundle, "NonPrim")

    # A run.

    def live(self) -> list[Row]:
        for server in list(self.servers.values()):
            self.start(server)
        for _ in range(self.chance.randint(1, 2)):
            self.trouble()
            for part in self.parts():
                self.meet(part)
        if self.chance.random() < 0.1:
            self.give_up()
        if self.chance.random() < 0.8:
            self.settle()
        return self.rows

    def trouble(self) -> None:
        for server in self.here():
            if server.is_up and self.chance.random() < 0.25:
                self.crash(server)
            elif not server.is_up and self.chance.random() < 0.5:
                self.start(server)
        if self.chance.random() < 0.1:
            for server in self.here():
                if server.is_up:
                    self.crash(server)
        self.say(WORLD, "fault", detail="parts")

    def parts(self) -> list[list[Server]]:
        sides: dict[int, list[Server]] = {}
        for server in (server for server in self.here() if server.is_up):
            sides.setdefault(self.chance.choice((0, 0, 1)), []).append(server)
        return list(sides.values())

    def settle(self) -> None:
        """Everybody meets until one meeting goes through with nobody crashing or left behind in it."""
        self.say(WORLD, "healed")
        while True:
            for server in self.servers.values():
                if not server.is_up and not server.is_gone:
                    self.start(server)
            members = self.here()
            self.meet(list(members))
            if not all(server.is_up for server in members) or len({len(server.order) for server in members}) > 1:
                continue
            known = self.state(members[0].order)
            if not all(server.prim.members == tuple(each.name for each in members) for server in members):
                continue
            for newcomer in (server for server in self.servers.values() if server.is_new):
                if newcomer.name not in known.servers:
                    self.order(members, Change("join", newcomer.name))
                self.restore(newcomer, members[0])
            for leaver in (server for server in members if server.name not in known.servers):
                self.part(leaver, [server for server in members if server.name in known.servers])
            if {server.name for server in self.here()} == set(members[0].prim.members) == set(known.servers):
                break
        for server in members:
            self.force(server)
            told: dict[str, Any] = {"position": len(server.order), "digest": self.digest(server.order), "sub": 0}
            contents = self.state(server.order).contents
            self.say(WORLD, "final", members=server.name, detail=contents, **told)
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
    for _ in range(chance.choice((1, 2, 3, 4))):
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
    kinds = ("mark", "phase", "vulnerable", "cpc", "install", "voter", "final", "return", "line")
    row = _some(rows, chance, *kinds, "apply", "roster", "restored", "force")
    other = _some(rows, chance, row.kind)
    column = chance.choice(("colour", "position", "sub", "members", "digest", "detail", "service"))
    setattr(row, column, getattr(other, column))
    return rows


def of_others(rows: list[Row], chance: Random) -> list[Row]:
    """An attempt, or a set of servers, is said to have other members, at one process or everywhere."""
    row = _some(rows, chance, "install", "cpc", "vulnerable", "roster", "force")
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
    about = chance.choice(("l1", "r1", "c1", "total"))
    answers = [row for row in rows if row.kind == "return" and (row.detail or "").startswith(about)]
    answers = [row for row in answers if row.service in ("local", "quorum", "strict")] or answers
    if answers:
        row, other = chance.choice((answers[-1], chance.choice(answers))), chance.choice(answers)
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


def outdated(rows: list[Row], chance: Random) -> list[Row]:
    """A query is answered from an older state, as it says itself, or claims to have asked for a newer one."""
    queries = [row for row in rows if row.kind in ("call", "return") and "?" in (row.message or "")]
    row = chance.choice(queries or rows)
    if row.position:
        row.position = chance.randint(0, row.position) if row.kind == "return" else row.position + 3
    return rows


def unapplied(rows: list[Row], chance: Random) -> list[Row]:
    """An action is applied nowhere, or by everybody with another verdict."""
    row, verdict = _some(rows, chance, "apply"), chance.choice((None, "again", "early", "expired", "done", "conflict"))
    if verdict is None:
        return [each for each in rows if each.kind != "apply" or each.message != row.message]
    for each in rows:
        if each.kind == "apply" and (each.position, each.sub) == (row.position, row.sub):
            each.detail = verdict
    return rows


def not_told(rows: list[Row], chance: Random) -> list[Row]:
    """Whoever had a conflict is told that all went well; or what an action had read was another value."""
    conflicts = [row for row in rows if row.kind == "return" and row.detail == "conflict"]
    calls = [row for row in rows if row.kind == "call" and " if " in (row.detail or "")]
    if conflicts and chance.random() < 0.5:
        for row in conflicts:
            row.detail = "r1 5"
    elif calls:
        row, other = chance.choice(calls), chance.choice(calls)
        row.detail = f"{(row.detail or '').partition(' if ')[0]} if {(other.detail or '').partition(' if ')[2]}"
    return rows


def kept_on(rows: list[Row], chance: Random) -> list[Row]:
    """Who has left is said to be a server after that, or in a component."""
    leaves = [row for row in rows if row.kind == "roster" and (row.detail or "").startswith("leave")]
    if leaves:
        leave = chance.choice(leaves)
        name = (leave.detail or "").split()[1]
        kind = chance.choice(("roster", "install"))
        for row in rows:
            if row.kind == kind and (row.position or 0) > (leave.position or 0):
                row.members = " ".join(sorted({*(row.members or "").split(), name}))
        rows.append(copy(leave))
        rows[-1].kind, rows[-1].process, rows[-1].incarnation = "cpc", leave.process, leave.incarnation
    return rows


def voided(rows: list[Row], chance: Random) -> list[Row]:
    """A change is said to have made void what somebody has ordered after it."""
    row = _some(rows, chance, "roster")
    later = [each for each in rows if each.kind == "mark" and (each.position or 0) > (row.position or 0)]
    if row.kind == "roster" and later:
        creator = (chance.choice(later).message or "").split("#")[0]
        key = (row.position, row.detail)
        for each in rows:
            if each.kind == "roster" and (each.position, each.detail) == key:
                each.detail = f"leave {creator} void done"
    return rows


def misrestored(rows: list[Row], chance: Random) -> list[Row]:
    """A snapshot is said to be of another order, or to end elsewhere."""
    row = _some(rows, chance, "restored")
    if row.kind == "restored" and row.layer == "engine":
        row.digest = row.digest if chance.random() < 0.5 else "another"
        row.position = (row.position or 0) + chance.choice((-1, 0, 1, 30))
    return rows


def told_elsewhere(rows: list[Row], chance: Random) -> list[Row]:
    """Two clients are told each other's places."""
    answers = [row for row in rows if row.kind == "return" and row.colour == "green" and "/" in (row.message or "")]
    if answers:
        row, other = chance.choice(answers), chance.choice(answers)
        row.position, row.sub, other.position, other.sub = other.position, other.sub, row.position, row.sub
    return rows


def miscounted(rows: list[Row], chance: Random) -> list[Row]:
    """A counter has another value in the end, at one server or at all; or somebody was told that it is another."""
    finals = [row for row in rows if row.kind == "final" and row.detail]
    for row in finals[: chance.choice((1, len(finals)))]:
        name, value, *rest = (row.detail or "").split()
        row.detail = " ".join([name, str(int(value) + chance.choice((-5, 1, 100))), *rest])
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
    outdated,
    unapplied,
    not_told,
    kept_on,
    voided,
    misrestored,
    told_elsewhere,
    miscounted,
    unquiet,
)
