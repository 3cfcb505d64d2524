"""Processes that are killed with SIGKILL and started again, judged by their traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.processes import cluster, collected, judge, rest, until


@pytest.mark.slow
def test_three_processes_survive_kill_9_and_break_no_rule(tmp_path: Path) -> None:
    with cluster(tmp_path, "p q r") as nodes:
        for number in range(5):
            nodes["q"].say(f"hello {number}")
        until(nodes.values(), "q: hello 4")

        nodes["r"].kill()
        until([nodes["p"], nodes["q"]], "{p q}")
        nodes["p"].say("without r")
        until([nodes["p"], nodes["q"]], "p: without r")

        nodes["r"].restart()
        until(nodes.values(), "{p q r}")
        nodes["r"].say("back again")
        until(nodes.values(), "r: back again")
        rest(nodes)
    rows = collected(tmp_path, nodes)
    assert {row.incarnation for row in rows if row.process == "r"} == {1, 2}
    judge(rows)
