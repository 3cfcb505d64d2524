"""A storm on real processes, drawn from a seed: kills, stops and cuts; then all are back, and traces are judged."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest

from greenline.kernel.identities import ProcId
from greenline.spec.judge import Judge
from greenline.trace.tables import to_table
from tests.node.test_processes import Process, collected, until, written

SECONDS = float(os.environ.get("NODE_STORM_SECONDS", "20"))
SEED = os.environ.get("NODE_STORM_SEED", "0")


class Storm:
    """Whoever makes it knows whom it killed."""

    def __init__(self, nodes: dict[ProcId, Process], seed: str) -> None:
        self.nodes = nodes
        self.chance = Random(f"node storm {seed}")
        self.lives = dict.fromkeys(nodes, 1)
        self.down: set[ProcId] = set()
        self.stopped: set[ProcId] = set()
        self.killed: list[tuple[ProcId, int]] = []
        self.said = 0

    def blow(self) -> None:
        """One thing more goes wrong, or right, or is said."""
        name = self.chance.choice(sorted(self.nodes))
        match self.chance.choice(("say", "say", "say", "kill", "stop", "cut", "heal", "back")):
            case "say" if name not in self.down | self.stopped:
                self.said += 1
                self.nodes[name].say(f"{name} says {self.said}")
            case "kill" if name not in self.down and len(self.down) < len(self.nodes) - 1:
                self._kill(name)
            case "stop" if name not in self.down | self.stopped:
                self.nodes[name].stop_here()
                self.stopped.add(name)
            case "cut":
                side = {each for each in self.nodes if self.chance.random() < 0.5}
                for each in sorted(set(self.nodes) - self.down - self.stopped):
                    self._cut(each, set(self.nodes) - side if each in side else side)
            case "heal":
                for each in sorted(set(self.nodes) - self.down - self.stopped):
                    self.nodes[each].say("/heal")
            case "back":
                self._bring_back()

    def calm(self) -> None:
        """Everybody is up, goes on, and hears everybody."""
        self._bring_back()
        for each in self.nodes.values():
            each.say("/heal")

    def _kill(self, name: ProcId) -> None:
        self.nodes[name].kill()
        self.stopped.discard(name)
        self.down.add(name)
        self.killed.append((name, self.lives[name]))

    def _cut(self, name: ProcId, others: set[ProcId]) -> None:
        self.nodes[name].say("/cut " + " ".join(sorted(others - {name})))

    def _bring_back(self) -> None:
        for name in sorted(self.stopped):
            self.nodes[name].go_on()
        for name in sorted(self.down):
            self.lives[name] += 1
            self.nodes[name].restart()
        self.stopped.clear()
        self.down.clear()


@pytest.mark.slow
def test_a_storm_on_real_processes_breaks_no_rule_and_ends_in_one_configuration(tmp_path: Path) -> None:
    nodes = written(tmp_path, "p q r s t")
    storm = Storm(nodes, SEED)
    everybody = list(nodes.values())
    try:
        until(everybody, "{p q r s t}")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            storm.blow()
            pause = time.monotonic() + storm.chance.uniform(0.02, 0.4)
            while time.monotonic() < pause:
                for each in everybody:
                    each.listen(0.001)
        storm.calm()
        until(everybody, "{p q r s t}")
        nodes["p"].say("it is over")
        until(everybody, "p: it is over")
        assert [each.stop() for each in everybody] == [0] * 5
    finally:
        for each in everybody:
            each.kill()
    rows = collected(tmp_path, storm.killed)
    assert storm.killed
    broken = Judge(("run", "evs")).broken(to_table([("cluster", rows)]))
    assert [str(each) for each in broken[:3]] == []
