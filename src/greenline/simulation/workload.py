"""The workload of replicas: a few sessions that append to lists, write registers and move money, drawn from a seed."""

from __future__ import annotations

from random import Random

from greenline.database.operations import ACCOUNTS
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.port import Level
from greenline.simulation.requests import FLOOD, Request

LISTS = ("l1", "l2", "l3")
REGISTERS = ("r1", "r2")
LEVELS = (*(Level.LOCAL,) * 5, Level.QUORUM, Level.MEMORY)
KINDS = ("append", "append", "append", "read list", "write", "read", "transfer", "transfer", "total")
FLOODED = 0.1
"""In how many runs somebody asks for far more than is taken at once."""


class Drawing:
    """Operations for one run: every value that is written is written once."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.values = 0
        self.numbers: dict[str, int] = {}

    def submission(self, session: str, operations: int = 1) -> str:
        return " ; ".join(self._numbered(session) for _ in range(operations))

    def _numbered(self, session: str) -> str:
        self.numbers[session] = self.numbers.get(session, 0) + 1
        return f"{session}/{self.numbers[session]} {self._operation()}"

    def _operation(self) -> str:
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
            case _:
                return "total"

    def _value(self) -> int:
        self.values += 1
        return self.values


def draw_operations(chance: Random, names: tuple[ProcId, ...], seconds: float) -> tuple[Request, ...]:
    """Sessions that stay with a server for a while; some pipeline, some submit several operations together."""
    drawing = Drawing(chance)
    requests: list[Request] = []
    for place in range(chance.randint(2, 5)):
        session = f"s{place + 1}"
        window = chance.choice((1, 1, 2, 3))
        at = chance.uniform(0.0, seconds / 10)
        pace = chance.uniform(seconds / 50, seconds / 10)
        while at < seconds:
            server = chance.choice(names)
            for _ in range(chance.randint(2, 8)):
                burst = chance.choice((1, 1, 1, chance.randint(2, 6)))
                for _ in range(burst):
                    text = drawing.submission(session, chance.choice((1, 1, 1, 1, 2, 3)))
                    requests.append(Request(at, server, text, Service.SAFE, chance.choice(LEVELS), window))
                at += chance.expovariate(1 / pace)
    if chance.random() < FLOODED:
        at, server = chance.uniform(0.0, seconds), chance.choice(names)
        flood = (drawing.submission("flood") for _ in range(FLOOD))
        requests += [Request(at, server, text, Service.SAFE, Level.LOCAL, FLOOD) for text in flood]
    return tuple(sorted(requests, key=lambda request: request.at))
