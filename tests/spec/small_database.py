"""What an order of bundles comes to: lists, registers, counters, timestamped registers, and the sessions of clients."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Action:
    name: str
    asked: str

    @property
    def session(self) -> str:
        return re.split("[~/]", self.name)[0]

    @property
    def number(self) -> int:
        return int(re.split("[~/]", self.name)[1])


@dataclass(frozen=True)
class Change:
    verb: str
    about: str
    rest: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.about}{self.rest}"


@dataclass
class Bundle:
    creator: str
    actions: list[Action] = field(default_factory=list)
    change: Change | None = None


@dataclass(frozen=True)
class Applied:
    """What an action came to, and where it was decided, if it was."""

    action: str
    position: int
    sub: int
    verdict: str
    value: str
    digest: str
    decided: tuple[int, int] | None


@dataclass
class Session:
    used: int = 0
    last: int = 0
    decided: dict[str, Applied] = field(default_factory=dict)


@dataclass
class State:
    servers: list[str]
    void: set[str] = field(default_factory=set)
    applied: list[Applied] = field(default_factory=list)
    sessions: dict[str, Session] = field(default_factory=dict)
    horizon: int = 0
    lists: dict[str, str] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    timed: dict[str, tuple[int, str, int, int]] = field(default_factory=dict)

    @property
    def contents(self) -> str:
        """Of what is relaxed."""
        counters = [f"{name} {value}" for name, value in self.counters.items()]
        return " ".join([*counters, *(f"{name} {put[-1]}" for name, put in self.timed.items())])

    def take(self, position: int, bundle: Bundle) -> None:
        """The next bundle of the order."""
        if bundle.creator in self.void:
            return
        if bundle.change is not None:
            self._change(bundle.change)
        for sub, action in enumerate(bundle.actions):
            self.applied.append(self._decide(action, position, sub))

    def _change(self, change: Change) -> None:
        match change.verb:
            case "join":
                self.servers = sorted({*self.servers, change.about})
            case "leave":
                self.servers = [name for name in self.servers if name != change.about]
                self.void |= {change.about} if change.rest else set()
            case "expire":
                self.horizon = max(self.horizon, int(change.about))
                self.sessions = {name: s for name, s in self.sessions.items() if s.used >= self.horizon}

    def _decide(self, action: Action, position: int, sub: int) -> Applied:
        def refused(verdict: str) -> Applied:
            return Applied(action.name, position, sub, verdict, "", verdict, None)

        is_relaxed = "~" in action.name
        if action.session not in self.sessions and self.horizon:
            return refused("expired")
        if action.session not in self.sessions and not is_relaxed and action.number > 1:
            return refused("early")
        session = self.sessions.setdefault(action.session, Session())
        session.used = position
        if action.name in session.decided:
            first = session.decided[action.name]
            return Applied(action.name, position, sub, "again", first.value, first.digest, (first.position, first.sub))
        if not is_relaxed and action.number != session.last + 1:
            return refused("early")
        session.last += not is_relaxed
        verdict, value = self._do(action)
        digest = f"{verdict}:{value}".replace(" ", "_")
        decided = Applied(action.name, position, sub, verdict, value, digest, (position, sub))
        session.decided[action.name] = decided
        return decided

    def _do(self, action: Action) -> tuple[str, str]:
        asked, _, read = action.asked.partition(" if ")
        if read and self.read(f"read {read.split()[0]}") != read:
            return "conflict", "conflict"
        verb, *words = asked.split()
        match verb:
            case "append":
                self.lists[words[0]] = f"{self.lists.get(words[0], words[0])} {words[1]}"
                return "done", self.lists[words[0]]
            case "write":
                self.registers[words[0]] = words[1]
                return "done", " ".join(words)
            case "add":
                self.counters[words[0]] = self.counters.get(words[0], 0) + int(words[1])
            case "put":
                put = (int(words[1]), action.session, action.number, int(words[2]))
                self.timed[words[0]] = max(put, self.timed.get(words[0], put))
            case "read" | "total":
                return "done", self.read(asked)
        return "done", "ok"

    def read(self, asked: str) -> str:
        verb, *names = asked.split()
        name = names[0] if names else ""
        match verb:
            case "count":
                return f"{name} {self.counters.get(name, 0)}"
            case "get":
                return f"{name} {self.timed[name][-1] if name in self.timed else '-'}"
            case "read" if name.startswith("l"):
                return self.lists.get(name, name)
            case "read":
                return f"{name} {self.registers.get(name, '-')}"
            case _:
                return "total 100"


def played(order: list[Bundle], servers: list[str]) -> State:
    state = State(list(servers))
    for place, bundle in enumerate(order):
        state.take(place + 1, bundle)
    return state
