"""The audit beside a live cluster: real nodes, one of which has a mistake, and the command that finds it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from greenline.kernel.identities import ProcId
from tests.node.processes import Process, until, write_files
from tests.node.test_driver import free_addresses

ROOT = Path(__file__).parents[2]
WITHIN_S = 60.0
"""What is promised: from the mistake to the line that tells of it."""
BEGINS_WITHIN_S = 120.0


class Auditor:
    """`greenline audit --follow`, and what it says."""

    def __init__(self, place: Path) -> None:
        self.report, self.table = place / "audit.html", place / "broken.table"
        kept = ["--report", str(self.report), "--table", str(self.table)]
        command = [sys.executable, "-m", "greenline.cli.main", "audit", "--follow", str(place), *kept]
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background is deaf to it
        try:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        finally:
            signal.signal(signal.SIGINT, before)
        self.said = ""

    def until(self, condition: Callable[[str], bool], within: float) -> None:
        assert self._process.stdout is not None
        deadline = time.monotonic() + within
        while not condition(self.said):
            left = deadline - time.monotonic()
            assert left > 0, f"in {within} s it said only: {self.said}"
            if select.select([self._process.stdout], [], [], left)[0]:
                more = os.read(self._process.stdout.fileno(), 65_536)
                assert more, f"it ended: {self.said}"
                self.said += more.decode()

    def stop(self) -> int:
        self._process.send_signal(signal.SIGINT)
        rest, _ = self._process.communicate(timeout=WITHIN_S)
        self.said += rest.decode()
        return self._process.returncode

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def live(place: Path, mutant: str) -> Iterator[tuple[dict[ProcId, Process], Auditor]]:
    """p, q and r, of which r is the mutant, in one configuration; and an auditor beside them."""

    def at(name: ProcId, command: list[str]) -> list[str]:
        node = command[command.index("node") + 1 :]
        of_mutant = ["/usr/bin/env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.pipeline.mutant_node", mutant]
        return [*of_mutant, *node] if name == "r" else command

    addresses = free_addresses("p q r")
    write_files(place, addresses)
    nodes = {name: Process(name, place, at) for name in addresses}
    try:
        until(nodes.values(), "{p q r}", BEGINS_WITHIN_S)
        auditor = Auditor(place)
        try:
            yield nodes, auditor
        finally:
            auditor.kill()
    finally:
        for each in nodes.values():
            each.kill()


@pytest.mark.long
def test_a_node_that_runs_a_mutant_is_told_of_within_a_minute(tmp_path: Path) -> None:
    """It forgets its counter of configurations at every start: nothing is wrong until it is started again."""
    with live(tmp_path, "configuration-counter-not-stable") as (nodes, auditor):
        nodes["r"].say("hello")
        until(nodes.values(), "r: hello")
        auditor.until(lambda said: said.count("judged in") >= 2, BEGINS_WITHIN_S)
        assert "FAIL" not in auditor.said

        nodes["r"].kill()
        nodes["r"].restart()
        auditor.until(lambda said: "evs vs 03 counters rise: its counter does not rise (process r" in said, WITHIN_S)
        assert auditor.stop() == 1
        assert "the whole of it: greenline audit" in auditor.said
        assert "its counter does not rise" in auditor.report.read_text()
        assert "evs/vs_03_counters_rise" in pq.read_table(auditor.table).column("rule").to_pylist()
