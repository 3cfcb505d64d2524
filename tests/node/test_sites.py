"""Nodes at sites of their own: network namespaces, real links, and what happens to those."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.faults import Faults
from tests.lab.sites import Lab, Wire, why_not
from tests.node.processes import cluster, collected, judge, rest, until, until_heard

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]


def test_a_link_that_is_cut_parts_the_sites_and_healing_brings_them_together(tmp_path: Path) -> None:
    with Lab("p q r", Wire.KERNEL) as lab, cluster(tmp_path, "p q r", lab) as nodes:
        lab.cut("p q | r")
        until([nodes["p"], nodes["q"]], "{p q}")
        until([nodes["r"]], "{r}")
        nodes["q"].say("here")
        nodes["r"].say("there")
        until([nodes["p"]], "q: here")
        until([nodes["r"]], "r: there")
        lab.heal()
        until(nodes.values(), "{p q r}")
        nodes["r"].say("together")
        until(nodes.values(), "r: together")
        rest(nodes)
    judge(collected(tmp_path, nodes))


@pytest.mark.parametrize(("family", "group"), [(0, "239.77.0.1"), (1, "ff05::77")], ids=["IPv4", "IPv6"])
def test_one_datagram_reaches_everybody_by_multicast(tmp_path: Path, family: int, group: str) -> None:
    host = f"[{group}]" if ":" in group else group
    link = f'[link]\nmulticast = "{host}:7400"\ninterface = "eth0"\n'
    with Lab("p q r", Wire.KERNEL) as lab, cluster(tmp_path, "p q r", lab, link, family) as nodes:
        nodes["p"].say("x" * 20_000)
        until(nodes.values(), "p: " + "x" * 20_000)
        nodes["q"].say("to all")
        until(nodes.values(), "q: to all")
        rest(nodes)
    judge(collected(tmp_path, nodes))


def test_a_node_that_is_stopped_is_left_behind_and_comes_back_without_driving_anybody_out(tmp_path: Path) -> None:
    with Lab("p q r", Wire.KERNEL) as lab, cluster(tmp_path, "p q r", lab) as nodes:
        for name in "pq":
            nodes[name].heard.clear()
        nodes["r"].stop_here()
        until([nodes["p"], nodes["q"]], "{p q}")
        for number in range(200):
            nodes["q"].say(f"{number} " + "x" * 1000)
        nodes["q"].say("all that r has missed")
        until([nodes["p"], nodes["q"]], "q: all that r has missed")
        nodes["r"].go_on()
        until(nodes.values(), "{p q r}")
        rest(nodes)
    assert {line.split()[-1] for name in "pq" for line in nodes[name].configurations} == {"q}", "r}"}
    assert [len(nodes[name].configurations) for name in "pq"] == [2, 2], nodes["p"].configurations
    judge(collected(tmp_path, nodes))


def test_sites_far_apart_stay_together_in_spite_of_losses(tmp_path: Path) -> None:
    with Lab("p q r") as lab:
        lab.everywhere(Faults(delay=0.020, loss=0.01))
        with cluster(tmp_path, "p q r", lab) as nodes:
            for each in nodes.values():
                each.listen(0.1)
                each.heard.clear()
            said = [f"{name}: {number}" for number in range(20) for name in nodes]
            for line in said:
                name, text = line.split(": ")
                nodes[name].say(text)
            until_heard(nodes.values(), said)
            assert [each.configurations for each in nodes.values()] == [[], [], []]
            rest(nodes)
    judge(collected(tmp_path, nodes))
