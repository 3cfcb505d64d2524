"""Durability: what a crash leaves, what an answer promises, and what may be discarded (notes 2.6, GAP 3, 20 to 23)."""

from __future__ import annotations

from math import inf

from greenline.replication.messages import CPC, Bundle, Fetch, Retrans, State, Want
from greenline.replication.port import Level
from greenline.simulation.faults import FailingDisk, FullDisk
from greenline.simulation.scenarios.replication_components import with_a_red_outside
from greenline.simulation.scenarios.replication_exchange import submit_one_by_one
from greenline.simulation.scenarios.stage import (
    Stage,
    are_in,
    catalogue,
    ends_as_one,
    marks,
    order,
    power_fails,
    power_returns,
    reds,
    replica,
)
from greenline.simulation.scripted import Scripted


def content(servers: Scripted, name: str, what: str = "l1") -> str:
    """A list as its database has it, asked by a client."""
    servers[name].submit(f"read {what}")
    servers.settle()
    return servers[name].answers[-1]


def repl_30(stage: Stage) -> None:
    """p crashes before any step between a request and its sending: its bundle returns as red, once, or never was."""
    found = set()
    for orders in range(1, 6):
        for keep in (0.0, 1.0):
            servers = stage.script("p q r").form("p q r").settle().mute("p").crash("p", after_orders=orders, keep=keep)
            servers["p"].submit("append l1 7")
            servers.wait(0.1)
            servers.world["p"].crash(keep)  # at the latest: it is not sent
            servers.restart("p").settle()
            returned = reds(servers, "p")
            ends_as_one(servers)
            assert order(servers, "q") == returned
            assert content(servers, "q") == ("l1 7" if returned else "l1")
            found.add(len(returned))
    assert found == {0, 1}


def repl_31(stage: Stage) -> None:
    """p crashes after it has sent, and the others deliver: it comes back to a bundle of that name, and no second."""
    servers = stage.script("p q r").form("p q r").settle().hold("p q r", Bundle)
    servers["p"].submit("append l1 7")
    servers.settle()
    power_fails(servers, "p")
    servers.release().settle()
    assert order(servers, "q") == ["p#1"]

    power_returns(servers, "p")
    assert reds(servers, "p") == ["p#1"]
    ends_as_one(servers)
    assert marks(servers, "p", "p#1") == ["green OR-3 ExchangeActions"]
    assert content(servers, "p") == "l1 7"
    assert order(servers, "p") == ["p#1", "p#2"]


def with_two_that_are_not_on_disk(stage: Stage, level: Level, hanging: str) -> Scripted:
    """q's bundle, then p's, are green everywhere; neither had seen the other's. The disks of some hang by then."""
    servers = stage.script("p q r").form("p q r").settle().hold("p q r", Bundle)
    servers["q"].submit("append l1 1", level=level)
    servers.wait(0.05)
    servers["p"].submit("append l1 2", level=level)
    servers.wait(0.05).hang(hanging).release().wait(0.3)
    assert order(servers, "p") == order(servers, "q") == ["q#1", "p#1"]
    return servers


def repl_34(stage: Stage) -> None:
    """Answered at level memory, and the power fails everywhere: both actions are kept, their places are not."""
    servers = with_two_that_are_not_on_disk(stage, Level.MEMORY, "p q r")
    assert (servers["q"].answers, servers["p"].answers) == (["l1 1"], ["l1 1 2"])
    power_fails(servers, "p q r")
    power_returns(servers, "p q r")
    ends_as_one(servers)
    assert order(servers, "r") == ["p#1", "q#1"]
    assert content(servers, "r") == "l1 2 1"


def repl_35(stage: Stage) -> None:
    """At level local nobody is answered before a disk has the order; what one was told survives a loss of all power."""
    servers = with_two_that_are_not_on_disk(stage, Level.LOCAL, "p q r")
    answers = servers["p"].answers + servers["q"].answers
    power_fails(servers, "p q r")
    power_returns(servers, "p q r")
    ends_as_one(servers)
    assert answers == []

    servers = with_two_that_are_not_on_disk(stage, Level.LOCAL, "q r")
    assert (servers["q"].answers, servers["p"].answers) == ([], ["l1 1 2"])
    power_fails(servers, "p q r")
    power_returns(servers, "p q r")
    ends_as_one(servers)
    assert order(servers, "r") == ["q#1", "p#1"]


def repl_36(stage: Stage) -> None:
    """r's disk hangs: what r has only in memory is announced by nobody, so nobody discards it, and r gets it again."""
    servers = stage.script("p q r", retain_after_white=0).form("p q r").settle().hang("r")
    submit_one_by_one(servers, "p", range(1, 21))
    servers.wait(3.0)
    assert replica(servers, "r").green == 20
    assert replica(servers, "p").durable_green == 20
    believed = replica(servers, "p").green_lines.get("r", 0)
    power_fails(servers, "r")
    power_returns(servers, "r")
    assert replica(servers, "r").green == 0
    ends_as_one(servers)
    assert believed == 0
    assert replica(servers, "p").low > 0, "now all have it on disk"


def repl_37(stage: Stage) -> None:
    """r stays away: the others keep what it lacks, up to a limit. Beyond that it is left behind, and all can see it: no
    log brings it back, only a snapshot."""
    servers = stage.script("p q r", retain_after_white=0).form("p q r").settle().form("p q | r").settle()
    submit_one_by_one(servers, "p", range(1, 41))
    servers.settle()
    assert replica(servers, "p").low == 0
    ends_as_one(servers)

    servers = stage.script("p q r", retain_after_white=0, retain_at_most=20, far=20, line_interval_s=0.01)
    servers.form("p q r").settle().form("p q | r").settle()
    submit_one_by_one(servers, "p", range(1, 41))
    servers.settle()
    assert replica(servers, "p").low > 0
    assert {row.detail for row in servers.rows if row.kind == "discard"} == {"left behind: r"}
    servers.form("p q r").settle()
    assert any(row.kind == "far" and row.process == "r" and "snapshot" in str(row.detail) for row in servers.rows)
    assert len(servers.said_of(Fetch)) < 3, "it does not ask for ever"
    assert [each.server for each in servers.said_of(Want)] == ["r"]
    ends_as_one(servers)


def repl_56(stage: Stage) -> None:
    """A disk that is full, or fails, stops its server and nobody else. It resumes at the position that it had."""
    for kind in (FullDisk, FailingDisk):
        servers = stage.script("p q r").form("p q r").settle()
        submit_one_by_one(servers, "p", range(1, 4))
        servers.settle()
        fault = kind(at=0.0, until=inf, process="r")
        servers.world.begin(fault)
        servers["p"].submit("append l1 4")
        servers.settle()
        assert servers["r"].state == "", "it has halted"
        assert servers["p"].answers[-1] == "l1 1 2 3 4"
        servers.form("p q").settle()
        assert are_in(servers, "RegPrim", "p q")

        servers.world.end(fault)
        servers.settle()
        recovered = [row.position for row in servers.rows if row.kind == "recover" and row.process == "r"][-1]
        assert recovered in (3, 4), "what it could not force may be there all the same"
        ends_as_one(servers)


def repl_66(stage: Stage) -> None:
    """r is killed, or loses power, between any two steps of marking, logging, applying: it skips and repeats none."""
    for orders in range(10):
        for keep in (0.0, 1.0):
            servers = stage.script("p q r").form("p q r").settle()
            submit_one_by_one(servers, "p", range(1, 3))
            servers.settle().crash("r", after_orders=orders, keep=keep)
            submit_one_by_one(servers, "p", range(3, 5))
            servers.wait(0.2).restart("r").settle()
            ends_as_one(servers)
            assert content(servers, "r") == "l1 1 2 3 4"


def repl_69(stage: Stage) -> None:
    """A component is installed, and half of its records are on disk when the power fails: what p has green keeps its
    place, as the order is written before the knowledge that rests on it."""
    servers = with_a_red_outside(stage).hold("q r", Bundle)
    servers["p"].submit("append l1 2")
    servers.settle()
    assert order(servers, "p") == ["p#1", "p#2"]

    servers.form("q r s").hold("q r s", CPC).settle()
    servers.hang("q r s").release().wait(0.1)
    assert are_in(servers, "RegPrim", "q r s")
    power_fails(servers, "q r s", keep=0.5)
    power_returns(servers, "q r s")
    servers.form("q r s").settle()
    assert are_in(servers, "RegPrim", "q r s")
    assert order(servers, "q") == ["p#1", "p#2", "s#1"]
    ends_as_one(servers)


def repl_70(stage: Stage) -> None:
    """An answer at level quorum waits for the disks of a quorum, and for no more; one at level local does not."""
    servers = stage.script("p q r").form("p q r").settle().hang("q r")
    servers["p"].submit("append l1 1", level=Level.QUORUM)
    servers.wait(0.3)
    servers["p"].submit("append l1 2", level=Level.LOCAL)
    servers.wait(2.0)
    assert servers["p"].answers == ["l1 1 2"]
    servers.go_on("q").wait(2.0)
    assert servers["p"].answers == ["l1 1 2", "l1 1"]
    ends_as_one(servers)


def repl_76(stage: Stage) -> None:
    """While its disk hangs, p says nothing that others would rely on: no bundle, no State, no CPC."""

    def said_by_p(servers: Scripted) -> list[str]:
        mine = [each for each in servers.said if getattr(each, "server", getattr(each, "creator", "")) == "p"]
        return [type(each).__name__ for each in mine]

    servers = stage.script("p q r").form("p q r").settle()
    before = said_by_p(servers)
    servers.hang("p")["p"].submit("append l1 1")
    servers.wait(1.0)
    assert said_by_p(servers) == before, "a bundle whose body is not on its disk"
    power_fails(servers, "p")
    power_returns(servers, "p")
    servers["p"].submit("append l1 2")
    ends_as_one(servers)
    assert content(servers, "p") == "l1 2"

    servers = stage.script("a p q s").form("p s").settle()
    before = said_by_p(servers)
    servers["s"].submit("append l1 1")
    servers.hang("p").wait(0.1)
    assert reds(servers, "p") == ["s#1"]
    servers.form("p q").wait(1.0)
    assert said_by_p(servers) == before, "a State with a red that is not on its disk"
    ends_as_one(servers)

    servers = stage.script("p q r").form("p q r").hold("p", State).settle()
    before = said_by_p(servers)
    servers.hang("p").release().wait(1.0)
    assert said_by_p(servers) == before, "a CPC whose attempt is not on its disk"
    assert servers["p"].state == "Construct"
    ends_as_one(servers)


def repl_74(stage: Stage) -> None:
    """A red that becomes green when a component is installed is answered at level local once its disk has its place."""
    servers = stage.script("p q r s")
    servers["r"].submit("append l1 1")
    servers["p"].submit("append l1 0")
    servers.settle().form("q r s").hold("q r s", CPC).settle()
    servers.hang("q r s").release().wait(1.0)
    assert are_in(servers, "RegPrim", "q r s")
    assert servers["r"].position == 1
    early = list(servers["r"].answers)
    power_fails(servers, "q r s")
    power_returns(servers, "q r s")
    ends_as_one(servers)
    assert early == [], "it was answered while its disk hung"


def repl_75(stage: Stage) -> None:
    """A component is installed and nothing follows: its order gets to the disks, and who waits for a quorum of them is
    answered."""
    servers = stage.script("p q r")
    servers["q"].submit("append l1 1", level=Level.QUORUM)
    servers.settle().form("p q r").settle()
    assert {replica(servers, name).durable_green for name in "pqr"} == {1}
    assert servers["q"].answers == ["l1 1"]
    ends_as_one(servers)


def repl_78(stage: Stage) -> None:
    """p learns the place of its bundle in a meeting without a quorum: it answers at level local once it is on disk."""
    servers = stage.script("p q r s t").form("p q r s t").settle().hold("p", Bundle)
    servers["p"].submit("append l1 1")
    servers.settle().form("p").settle().form("p q").hold("p", Retrans).settle()
    servers.hang("p").release().wait(1.0)
    assert marks(servers, "p", "p#1")[-1] == "green OR-3 ExchangeActions"
    assert servers["p"].position == 1
    early = list(servers["p"].answers)
    ends_as_one(servers)
    assert early == [], "it was answered while its disk hung"


SCENARIOS = catalogue(
    repl_30,
    repl_31,
    repl_34,
    repl_35,
    repl_36,
    repl_37,
    repl_56,
    repl_66,
    repl_69,
    repl_70,
    repl_74,
    repl_75,
    repl_76,
    repl_78,
)
