"""The nemesis: what goes wrong in a local cluster, drawn from a seed.

Networks that split into halves, lose one node, fall into three parts or hang together by one bridge, or in which two
nodes do not hear each other and all others do; kill -9 of one, of several, of all; processes that are stopped for a
while; disks that are full or cannot write, for the log and for the database. Every few seconds all is well again for
a moment: a storm that never lets up only shows that a dead cluster answers nothing.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from random import Random

import msgspec

from greenline.cli.local import Local
from greenline.cli.reach import operator_password
from greenline.kernel.identities import ProcId
from greenline.node.calls import Answer, call

LONG_S = 6.0
"""Nobody is down, stopped, cut off or without a disk for much longer."""
FAULTS = (
    *("halves", "alone", "three parts", "bridge", "two"),
    *("kill", "kill", "kill several", "restart", "stop", "disk", "disk", "back"),
)
PATIENCE_S = 15.0
_DISKS = [{part: how} for part in ("log", "database") for how in ("full", "failed")]
_NOTHING = {"log": None, "database": None}


class Nemesis:
    """Everything here waits for processes and answers: call it in a thread."""

    def __init__(self, local: Local, seed: str) -> None:
        self.newcomers: list[ProcId] = []
        """Nothing befalls them but that the network splits; that is done by the others."""
        self._local = local
        self._chance = Random(f"nemesis {seed}")
        self._down: set[ProcId] = set()
        self._stopped: set[ProcId] = set()
        self._failing: set[ProcId] = set()
        self._apart: dict[ProcId, set[ProcId]] = {name: set() for name in local.names}
        """Whom each cannot hear."""
        self._calm_at = time.monotonic() + LONG_S

    def pause(self) -> float:
        return self._chance.uniform(0.1, 0.9)

    def strike(self) -> tuple[str, str]:
        """One thing more goes wrong, or all is well again: which fault it is, and whom it befell."""
        if time.monotonic() > self._calm_at:
            return "back", self.calm()
        kind = self._chance.choice(FAULTS)
        some = self._chance.sample(self._local.names, len(self._local.names))
        everybody = [*some, *self.newcomers]
        self._chance.shuffle(everybody)
        half = len(everybody) // 2
        match kind:
            case "halves":
                return kind, self._cut(everybody[:half], everybody[half:])
            case "alone":
                return kind, self._cut(everybody[:1], everybody[1:])
            case "three parts":
                return kind, self._cut(everybody[:2], everybody[2:4], everybody[4:])
            case "bridge":
                return kind, self._cut(everybody[:half], everybody[half + 1 :])
            case "two":
                return kind, self._cut(everybody[:1], everybody[1:2])
            case "kill":
                return kind, self._kill(some[:1])
            case "kill several":
                return kind, self._kill(some[: self._chance.randint(2, len(some))])
            case "restart":
                return kind, self._restart()
            case "stop":
                return kind, self._stop(some[0])
            case "disk":
                return kind, self._spoil(some[0])
        return "back", self.calm()

    def calm(self) -> str:
        """Everybody is up, goes on, hears everybody, and can write: who was down."""
        gone = {name for name in self._local.names if self._local.pid(name) is None} - self._down
        assert not gone, f"{gone} are gone, and nobody killed them"
        for name in sorted(self._stopped):
            self._signal(name, signal.SIGCONT)
        self._stopped.clear()
        for apart in self._apart.values():
            apart.clear()
        self._tell_all(self._local.names)
        for name in sorted(self._failing):
            self._demand(name, "/faults", _NOTHING)
        self._failing.clear()
        if self._down:
            failures = self._local.start_all()
            assert failures == [], failures
        back = " ".join(sorted(self._down))
        self._down.clear()
        self._calm_at = time.monotonic() + self._chance.uniform(LONG_S / 2, LONG_S)
        return back

    def _cut(self, *sides: list[ProcId]) -> str:
        """Besides what is cut already. Who is on no side hears all."""
        for side in sides:
            for name in set(side) & set(self._local.names):
                self._apart[name] |= {other for each in sides if each is not side for other in each}
        self._tell_all(self._local.names)
        return " | ".join(" ".join(sorted(side)) for side in sides)

    def _tell_all(self, names: Iterable[ProcId]) -> None:
        for name in names:
            if name not in self._down | self._stopped:
                apart = self._apart[name]
                # Perhaps it has not heard of a newcomer yet, or has forgotten one that has left meanwhile.
                if not self._post(name, "/cut", {"names": sorted(apart)}).is_good:
                    self._demand(name, "/cut", {"names": sorted(apart.intersection(self._local.names))})

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
        self._tell_all([name])
        return name

    def _stop(self, name: ProcId) -> str:
        if name in self._down | self._stopped:
            return ""
        self._signal(name, signal.SIGSTOP)
        self._stopped.add(name)
        return name

    def _spoil(self, name: ProcId) -> str:
        if name in self._down | self._stopped | self._failing:
            return ""
        how = self._chance.choice(_DISKS)
        self._demand(name, "/faults", _NOTHING | how)
        self._failing.add(name)
        return f"{name} {how}"

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
