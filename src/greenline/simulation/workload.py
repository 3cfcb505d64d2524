"""The workload of replicas: a few clients who append to lists, write registers, move money, count and look things up,
and an operator now and then; all drawn from a seed."""

from __future__ import annotations

from random import Random

from greenline.database.operations import ACCOUNTS
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.port import Level, Reads
from greenline.simulation.databases import COUNTERS, TIMED
from greenline.simulation.requests import Request
from greenline.simulation.wishes import BETWEEN, OUTCOME

LISTS = ("l1", "l2", "l3")
REGISTERS = ("r1", "r2")
LEVELS = (*(Level.LOCAL,) * 5, Level.QUORUM, Level.MEMORY)
KINDS = (
    *("append",) * 3,
    *("read list", "write", "read", "transfer", "transfer", "total", "call", "add"),
)
READS = (Reads.STRICT, Reads.SESSION, Reads.WEAK, Reads.DIRTY)
UPDATES, QUERIES, RELAXED, REVISIONS = 0.56, 0.22, 0.14, 0.08
"""How much of what clients ask is what."""
SEVERAL = (1, 1, 1, 1, 2, 3)
"""How many actions come in one submission."""
IMPATIENT = 0.2
"""How many queries would rather be refused than wait."""
FLOOD = 80
"""More than is taken at once, and more outcomes than are kept for a client who has not said what it received."""
FLOODED = 0.1
"""In how many runs somebody asks for so much."""
ACTIVATED = 0.6
EXPIRED = 0.4
"""In how many runs an operator activates procedures, and lets sessions expire."""


class Drawing:
    """What is asked in one run: every value that is written to a list or a register is written once."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.values = 0

    def request(self, at: float, server: ProcId, client: str, window: int) -> Request:
        """One thing that a client asks."""
        chance = self.chance
        kind = chance.random()
        if kind < UPDATES:
            text = BETWEEN.join(f"{client}/ {self.operation()}" for _ in range(chance.choice(SEVERAL)))
            return Request(at, server, text, Service.SAFE, chance.choice(LEVELS), window)
        if kind < UPDATES + QUERIES:
            reads, is_patient = chance.choice(READS), chance.random() > IMPATIENT
            text = f"{client}? {self._query()}"
            return Request(at, server, text, Service.SAFE, None, window, reads, is_patient)
        if kind < UPDATES + QUERIES + RELAXED:
            text = BETWEEN.join(f"{client}~ {self._relaxed(at)}" for _ in range(chance.choice(SEVERAL)))
            return Request(at, server, text, Service.SAFE, Level.LOCAL, window)
        register, reads = chance.choice(REGISTERS), chance.choice((Reads.STRICT, Reads.WEAK))
        again = chance.choice(("", " or again"))
        text = f"{client}/ write {register} {self._value()} if {register}{again}"
        return Request(at, server, text, Service.SAFE, chance.choice(LEVELS), window, reads)

    def operation(self) -> str:
        chance = self.chance
        match chance.choice(KINDS):
            case "append":
                return f"append {chance.choice(LISTS)} {self._value()}"
            case "read list":
                return f"read {chance.choice(LISTS)}"
            case "write":
                return f"write {chance.choice(REGISTERS)} {self._value()}"
            case "read":
                return f"read {chance.choice(REGISTERS)}"
            case "transfer":
                source, target = chance.sample(ACCOUNTS, 2)
                return f"transfer {source} {target} {chance.randint(1, 60)}"
            case "call":
                return f"call deposit {chance.choice(ACCOUNTS[:2])} {chance.randint(1, 20)}"
            case "add":
                return f"add {chance.choice(COUNTERS)} {chance.randint(1, 9)}"
            case _:
                return "total"

    def _query(self) -> str:
        chance = self.chance
        every = [f"read {chance.choice((*LISTS, *REGISTERS))}", f"count {chance.choice(COUNTERS)}"]
        return chance.choice([*every, *every, "total", f"get {chance.choice(TIMED)}", OUTCOME])

    def _relaxed(self, at: float) -> str:
        """A clock that is a little off gives the time of a put."""
        chance = self.chance
        if chance.random() < 0.6:
            return f"add {chance.choice(COUNTERS)} {chance.randint(1, 9)}"
        time = max(1, round(at * 1000) + chance.randint(-300, 300))
        return f"put {chance.choice(TIMED)} {time} {self._value()}"

    def _value(self) -> int:
        self.values += 1
        return self.values


def draw_operations(chance: Random, names: tuple[ProcId, ...], seconds: float) -> tuple[Request, ...]:
    """Clients who stay with a server for a while; some pipeline, some submit several operations together."""
    drawing = Drawing(chance)
    requests: list[Request] = []
    for place in range(chance.randint(2, 5)):
        client = f"s{place + 1}"
        window = chance.choice((1, 1, 2, 3))
        at = chance.uniform(0.0, seconds / 10)
        pace = chance.uniform(seconds / 25, seconds / 6)
        while at < seconds:
            server = chance.choice(names)
            for _ in range(chance.randint(2, 8)):
                burst = chance.choice((1, 1, 1, chance.randint(2, 5)))
                requests += [drawing.request(at, server, client, window) for _ in range(burst)]
                at += chance.expovariate(1 / pace)
    if chance.random() < FLOODED:
        at, server = chance.uniform(0.0, seconds), chance.choice(names)
        flood = (f"flood/ {drawing.operation()}" for _ in range(FLOOD))
        requests += [Request(at, server, text, Service.SAFE, Level.LOCAL, FLOOD) for text in flood]
    requests += _administration(chance, names, seconds)
    return tuple(sorted(requests, key=lambda request: request.at))


def _administration(chance: Random, names: tuple[ProcId, ...], seconds: float) -> list[Request]:
    texts: list[tuple[float, str]] = []
    if chance.random() < ACTIVATED:
        first = chance.uniform(0.0, seconds / 2)
        texts += [(first, "activate deposit 1"), (first + chance.uniform(0.1, 0.5) * seconds, "activate deposit 2")]
    if chance.random() < EXPIRED:
        texts += [
            (chance.uniform(0.2, 0.9) * seconds, f"expire {chance.choice((0, 1, chance.randint(2, 20)))}")
            for _ in range(chance.randint(1, 2))
        ]
    return [Request(at, chance.choice(names), text, Service.SAFE, Level.LOCAL) for at, text in texts if at < seconds]
