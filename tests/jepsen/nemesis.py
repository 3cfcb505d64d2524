"""The nemesis: what goes wrong in a local cluster, drawn from a seed.

Networks that split into halves, lose one node, fall into three parts or hang together by one bridge, or in which two
nodes do not hear each other and all others do; networks that are cut one way: half of the nodes, or one of them, hear
nothing of the others, or are not heard. Kill -9 of one, of several, of all; processes that are stopped for a while;
disks that are full or cannot write, for the log and for the database. All of it befalls newcomers like everybody else.
Every few seconds all is well again for a moment: a storm that never lets up only shows that a dead cluster answers
nothing.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from random import Random
from threading import Lock

import msgspec

from greenline.cli.local import Local
from greenline.cli.reach import operator_password
from greenline.kernel.identities import ProcId
from greenline.node.calls import Answer, call
from greenline.node.faults import Ways

LONG_S = 6.0
"""Nobody is down, stopped, cut off or without a disk for much longer; but who has no disk often tries seldom."""
FAULTS = (
    *("halves", "alone", "three parts", "bridge", "two"),
    *("one way", "deaf", "mute"),
    *("kill", "kill", "kill several", "restart", "stop", "disk", "disk", "back"),
)
KILLS = ("kill", "kill several", "kill a leaver")
DISKS = {f"{part} {how}": {part: how} for part in ("log", "database") for how in ("full", "failed")}
PATIENCE_S = 30.0
_NOTHING = {"log": None, "database": None}


class Nemesis:
    """Everything here waits for processes and answers, and one at a time: call it in a thread."""

    def __init__(self, local: Local, seed: str) -> None:
        self._local = local
        self._chance = Random(f"nemesis {seed}")
        self._turn = Lock()
        self._founders = local.names
        self._names = list(local.names)
        """Whom it has in its hands: founders, and newcomers until they have left."""
        self._down: set[ProcId] = set()
        self._stopped: set[ProcId] = set()
        self._failing: set[ProcId] = set()
        self._deaf: dict[ProcId, set[ProcId]] = {name: set() for name in local.names}
        """Whom each cannot hear."""
        self._calm_at = time.monotonic() + LONG_S

    # Newcomers.

    def welcome(self, name: ProcId) -> None:
        """From now on it is treated like the others."""
        with self._turn:
            self._local = Local(self._local.place)
            self._names.append(name)
            self._deaf[name] = set()

    def kill(self, name: ProcId) -> str:
        """Now; it is started again with the others."""
        with self._turn:
            return self._kill([name])

    def part_with(self, name: ProcId, number: signal.Signals) -> None:
        """It has left, and is stopped by this signal if it is not down."""
        with self._turn:
            self._names.remove(name)
            self._failing.discard(name)
            if name in self._stopped:
                self._signal(name, signal.SIGCONT)
            if name not in self._down:
                self._signal(name, number)
            self._stopped.discard(name)
            self._down.discard(name)

    # Faults.

    def pause(self) -> float:
        return self._chance.uniform(0.1, 0.9)

    def strike(self) -> tuple[str, str]:
        """One thing more goes wrong, or all is well again: which fault it is, and whom it befell."""
        with self._turn:
            if time.monotonic() > self._calm_at:
                return "back", self._calm()
            return self._strike(self._chance.choice(FAULTS))

    def calm(self) -> str:
        """Everybody is up, goes on, hears everybody, and can write: who was down."""
        with self._turn:
            return self._calm()

    def _strike(self, kind: str) -> tuple[str, str]:
        some = self._chance.sample(self._names, len(self._names))
        half = len(some) // 2
        match kind:
            case "halves":
                return kind, self._cut(some[:half], some[half:])
            case "alone":
                return kind, self._cut(some[:1], some[1:])
            case "three parts":
                return kind, self._cut(some[:2], some[2:4], some[4:])
            case "bridge":
                return kind, self._cut(some[:half], some[half + 1 :])
            case "two":
                return kind, self._cut(some[:1], some[1:2])
            case "one way":
                return kind, self._cut_one_way(some[:half], some[half:])
            case "deaf":
                return kind, self._cut_one_way(some[1:], some[:1])
            case "mute":
                return kind, self._cut_one_way(some[:1], some[1:])
            case "kill":
                return kind, self._kill(some[:1])
            case "kill several":
                return kind, self._kill(some[: self._chance.randint(2, len(some))])
            case "restart":
                return kind, self._restart()
            case "stop":
                return kind, self._stop(some[0])
            case "disk":
                how = self._chance.choice(sorted(DISKS))
                return how, self._spoil(some[0], how)
        return "back", self._calm()

    def _calm(self) -> str:
        gone = {name for name in self._names if self._local.pid(name) is None} - self._down
        assert not gone, f"{gone} are gone, and nobody killed them"
        for name in sorted(self._stopped):
            self._signal(name, signal.SIGCONT)
        self._stopped.clear()
        for deaf_to in self._deaf.values():
            deaf_to.clear()
        self._tell(self._names)
        for name in sorted(self._failing):
            self._demand(name, "/faults", _NOTHING)
        self._failing.clear()
        if self._down:
            failures = self._local.start_all(self._down)
            assert failures == [], failures
        back = " ".join(sorted(self._down))
        self._down.clear()
        self._calm_at = time.monotonic() + self._chance.uniform(LONG_S / 2, LONG_S)
        return back

    def _cut(self, *sides: list[ProcId]) -> str:
        """Besides what is cut already. Who is on no side hears all."""
        for side in sides:
            for name in side:
                self._deaf[name] |= {other for each in sides if each is not side for other in each}
        self._tell(self._names)
        return " | ".join(" ".join(sorted(side)) for side in sides)

    def _cut_one_way(self, unheard: list[ProcId], deaf: list[ProcId]) -> str:
        for name in deaf:
            self._deaf[name] |= set(unheard)
        self._tell(self._names)
        return f"{' '.join(sorted(unheard))} > {' '.join(sorted(deaf))}"

    def _tell(self, names: Iterable[ProcId]) -> None:
        """Each is told whom it does not hear: who is not heard need not know."""
        for name in names:
            if name not in self._down | self._stopped:
                deaf_to = self._deaf[name]
                # Perhaps it has not heard of a newcomer yet, or has forgotten one that has left meanwhile.
                if not self._post(name, "/cut", _unheard(deaf_to)).is_good:
                    self._demand(name, "/cut", _unheard(deaf_to.intersection(self._founders)))

    def _kill(self, names: list[ProcId]) -> str:
        there = [name for name in names if name not in self._down]
        for name in there:
            self._local.kill(name)
        self._down |= set(there)
        self._stopped -= set(there)
        self._failing -= set(there)
        return " ".join(sorted(there))

    def _restart(self) -> str:
        """One of those who are down, into whatever network there is."""
        if not self._down:
            return ""
        name = self._chance.choice(sorted(self._down))
        self._local.restart(name)
        self._down.remove(name)
        self._tell([name])
        return name

    def _stop(self, name: ProcId) -> str:
        if name in self._down | self._stopped:
            return ""
        self._signal(name, signal.SIGSTOP)
        self._stopped.add(name)
        return name

    def _spoil(self, name: ProcId, how: str) -> str:
        if name in self._down | self._stopped | self._failing:
            return ""
        self._demand(name, "/faults", _NOTHING | DISKS[how])
        self._failing.add(name)
        return name

    def _signal(self, name: ProcId, number: signal.Signals) -> None:
        pid = self._local.pid(name)
        assert pid is not None, f"{name} is gone, and nobody killed it"
        os.kill(pid, number)

    def _demand(self, name: ProcId, path: str, body: object) -> None:
        answer = self._post(name, path, body)
        assert answer.is_good, f"{name} {path}: {answer.error}"

    def _post(self, name: ProcId, path: str, body: object) -> Answer:
        config = self._local.configs[name]
        assert config.admin is not None
        password = operator_password(config)
        return call(config.admin, "POST", path, msgspec.json.encode(body), credential=password, timeout=PATIENCE_S)


def _unheard(names: Iterable[ProcId]) -> dict[str, object]:
    return {"names": sorted(names), "ways": Ways.IN}
