"""Lingering: what storms have found about servers that have left and are still needed, or still have something."""

from __future__ import annotations

from greenline.replication.messages import CPC, Bundle, State
from greenline.replication.port import Leave, Weigh
from greenline.replication.settings import Voting
from greenline.simulation.scenarios.replication_exchange import submit_one_by_one
from greenline.simulation.scenarios.replication_members import was_let_go
from greenline.simulation.scenarios.stage import (
    Stage,
    are_in,
    catalogue,
    ends_as_one,
    power_fails,
    power_returns,
    replica,
)
from greenline.simulation.scripted import Scripted


def ends_without(servers: Scripted, name: str) -> None:
    """All meet, this one is let go, and the others are one without it."""
    ends_as_one(servers)
    assert was_let_go(servers, name)
    ends_as_one(servers)


def repl_97(stage: Stage) -> None:
    """p has left, and does not know it yet. q and r need it for a component, so they discard nothing that it lacks."""
    servers = stage.script("p q r", retain_after_white=0, line_interval_s=0.01)
    servers.form("p q r").settle().form("p r | q").settle()
    servers.hold("p", Bundle)
    servers["r"].reconfigure(Leave("p"))
    servers.settle().form("q r").settle()
    assert are_in(servers, "NonPrim", "q r"), "p counts for the half of the last component that decides"
    assert replica(servers, "r").low < replica(servers, "r").green
    ends_without(servers, "p")


def repl_98(stage: Stage) -> None:
    """q weighs nothing, and r, who has all the weight, has left: they stay a component until p takes over, and do not
    meet again and again."""
    weights = Voting(weights=(("r", 3),))
    servers = stage.script("p q r", voting=weights).form("p q r").settle()
    servers["p"].reconfigure(Weigh("q", 0))
    servers.settle().form("q r | p").settle()
    servers["q"].reconfigure(Leave("r"))
    servers.settle()
    assert are_in(servers, "RegPrim", "q r")
    assert replica(servers, "q").prim.weights == (0, 3)
    ends_without(servers, "r")
    assert replica(servers, "q").prim.servers == ("p", "q")


def repl_99(stage: Stage) -> None:
    """r was removed while it was away, and what it lacks is discarded. What it has accepted is handed over all the
    same, and ordered after its leave; then it is let go."""
    servers = stage.script("p q r", retain_after_white=0, line_interval_s=0.01, far=3)
    servers.form("p q r").settle().form("p q | r").settle()
    submit_one_by_one(servers, "r", range(100, 106))
    servers["p"].reconfigure(Leave("r"))
    submit_one_by_one(servers, "p", range(1, 21))
    servers.settle()
    assert replica(servers, "p").low > replica(servers, "r").green
    ends_without(servers, "r")
    assert servers["q"].read("read l1").endswith("100 101 102 103 104 105")


def repl_101(stage: Stage) -> None:
    """c has left, and alone knows the component in which it counts nothing any more. b learns of that from it, and
    loses power before its disk does: it still needs c, who is let go only when b has written that down."""
    servers = stage.script("b c").form("b c").settle().hold("b", CPC, where=lambda cpc: cpc.prim_index == 2)
    servers["c"].reconfigure(Leave("c"))
    servers.settle().form("b | c").settle()
    assert replica(servers, "c").prim.weights == (1, 0)
    assert replica(servers, "b").vulnerable.is_valid
    servers.form("b c").hold("b", State).wait(1.0)
    servers.hang("b").release().wait(1.0)
    power_fails(servers, "b")
    power_returns(servers, "b")
    servers.form("b c").settle()
    ends_without(servers, "c")


SCENARIOS = catalogue(repl_97, repl_98, repl_99, repl_101)
