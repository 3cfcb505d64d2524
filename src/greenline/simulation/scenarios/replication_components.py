"""Components: who forms the next primary one, and what its installation makes of yellow and red (A.3, A.9 to A.12)."""

from __future__ import annotations

from greenline.replication.messages import CPC, Bundle
from greenline.replication.settings import Voting
from greenline.simulation.scenarios.stage import (
    Stage,
    are_in,
    catalogue,
    ends_as_one,
    marks,
    order,
    reds,
    replica,
    states,
    told,
    yellows,
)
from greenline.simulation.scripted import Scripted, Where


def bundle(*names: str) -> Where:
    """Is it one of these bundles?"""
    return lambda message: isinstance(message, Bundle) and str(message.id) in names


def cpc_of(name: str) -> Where:
    return lambda message: isinstance(message, CPC) and message.server == name


def with_a_red_outside(stage: Stage) -> Scripted:
    """p q r are primary and have ordered a bundle; s is alone, with a red that is older than what follows."""
    servers = stage.script("p q r s").form("p q r").settle()
    servers["s"].submit("append l1 90")
    servers["p"].submit("append l1 1")
    servers.settle()
    assert reds(servers, "s") == ["s#1"]
    assert order(servers, "q") == ["p#1"]
    return servers


def repl_05(stage: Stage) -> None:
    """What two of three delivered in transition becomes green before any red, as the third may have it green."""
    servers = with_a_red_outside(stage).hold("q r", Bundle)
    servers["p"].submit("append l1 2")
    servers.settle()
    assert order(servers, "p") == ["p#1", "p#2"]

    servers.form("q r s").settle()
    assert marks(servers, "q", "p#2") == ["red TransPrim", "yellow TransPrim", "green OR-1.2 Construct"]
    assert marks(servers, "q", "s#1")[-1] == "green OR-2 Construct"
    assert order(servers, "s") == ["p#1", "p#2", "s#1"]
    ends_as_one(servers)


def repl_06(stage: Stage) -> None:
    """q has it yellow and meets p, who has it green: two of five are no quorum, and it is green at q all the same."""
    servers = stage.script("p q r s t").form("p q r s t").settle().hold("q r s t", Bundle)
    servers["p"].submit("append l1 1")
    servers.settle().form("q").settle()
    assert yellows(servers, "q") == ["p#1"]

    servers.form("p q").settle()
    assert are_in(servers, "NonPrim", "p q")
    assert marks(servers, "q", "p#1")[-1] == "green OR-3 ExchangeActions"
    ends_as_one(servers)


def repl_07(stage: Stage) -> None:
    """Figure 4.8 once more: p has m3 m4 m5 in transition, q has m2 m4. Then m2 is green, m4 follows, then m3 and m5."""
    servers = stage.script("p q r s t").form("p q r s t").settle()
    servers.hold("p", Bundle, where=bundle("p#2")).hold("q r s t", Bundle, where=bundle("q#1"))
    for number, name in enumerate("pqprp", start=1):
        servers[name].submit(f"append l1 {number}")
        servers.wait(0.05)
    assert order(servers, "p") == ["p#1", "q#1"]
    assert order(servers, "q") == ["p#1"]

    servers.form("p").form("q r", lost=bundle("p#2")).settle()
    assert yellows(servers, "p") == ["p#2", "r#1", "p#3"]
    assert yellows(servers, "q") == yellows(servers, "r") == ["q#1", "r#1"]

    servers.form("p q r").settle()
    for name in "pqr":
        assert order(servers, name) == ["p#1", "q#1", "r#1", "p#2", "p#3"]
    assert marks(servers, "q", "q#1")[-1] == "green OR-3 ExchangeActions"
    assert marks(servers, "p", "r#1")[-1] == "green OR-1.2 Construct"
    assert marks(servers, "p", "p#2")[-1] == "green OR-2 Construct"
    ends_as_one(servers)


def repl_08(stage: Stage) -> None:
    """q dies in TransPrim, with half of its yellow list on disk: it is vulnerable, and its list does not count."""
    servers = with_a_red_outside(stage).hold("q r", Bundle)
    for number in (2, 3):
        servers["p"].submit(f"append l1 {number}")
        servers.settle()
    assert order(servers, "p") == ["p#1", "p#2", "p#3"]

    servers.form("q r").hold("q", Bundle, where=bundle("p#3")).settle()
    assert servers["q"].state == "TransPrim"
    servers.crash("q", keep=1.0).settle().restart("q").settle()
    assert yellows(servers, "r") == ["p#2", "p#3"]
    assert reds(servers, "q") == ["p#2"]
    returned = replica(servers, "q")
    was_vulnerable, was_complete = returned.vulnerable.is_valid, returned.yellow.is_valid

    servers.form("q r s").settle()
    assert order(servers, "q") == ["p#1", "p#2", "p#3", "s#1"]
    assert was_vulnerable
    assert not was_complete
    ends_as_one(servers)


def repl_09(stage: Stage) -> None:
    """p and q lack a CPC when the configuration changes: they are free, and try again under a higher number."""
    servers = stage.script("p q r").form("p q r").hold("p q r", CPC, where=cpc_of("r")).settle()
    servers.form("p q", lost=cpc_of("r")).settle()
    assert states(servers, "p")[-4:] == ["No", "ExchangeStates", "Construct", "RegPrim"]
    assert told(servers, "p", "vulnerable")[:2] == ["0.1 {p q r} valid try", "0.1 {p q r} invalid no"]
    assert told(servers, "p", "install") == ["1.2 {p q}"]

    servers.form("r").settle()
    assert told(servers, "r", "vulnerable")[-1] == "0.1 {p q r} valid un"
    ends_as_one(servers)
    assert "0.1 {p q r} invalid R1" in told(servers, "r", "vulnerable")


def repl_10(stage: Stage) -> None:
    """p has installed and speaks. q and r hear it in transition, after the CPCs: they install too, and it is yellow."""
    servers = stage.script("p q r").form("p q r").hold("q r", CPC, where=cpc_of("r")).settle()
    assert servers["p"].state == "RegPrim"
    servers["p"].submit("append l1 7")
    servers.settle()
    assert servers["p"].answers == ["l1 7"]

    servers.form("q r").settle()
    for name in "qr":
        began = states(servers, name).index("No")
        assert states(servers, name)[began : began + 3] == ["No", "Un", "TransPrim"]
        assert marks(servers, name, "p#1") == ["red Un", "yellow Un", "green OR-1.2 Construct"]
        assert told(servers, name, "install") == ["1.1 {p q r}", "2.1 {q r}"]
    ends_as_one(servers)


def repl_11(stage: Stage) -> None:
    """p has installed and says nothing. q and r have all CPCs, and cannot know: they stay vulnerable, and wait."""
    servers = stage.script("p q r")
    servers["q"].submit("append l1 7")
    servers.settle().form("p q r").hold("q r", CPC, where=cpc_of("r")).settle()
    assert order(servers, "p") == ["q#1"]

    servers.form("q r").settle()
    assert are_in(servers, "NonPrim", "q r")
    for name in "qr":
        assert told(servers, name, "vulnerable")[-1] == "0.1 {p q r} valid un"
        assert reds(servers, name) == ["q#1"]
    ends_as_one(servers)


def repl_12(stage: Stage) -> None:
    """All have all CPCs and nobody knows of another: no primary component until they have met, in any chain."""
    servers = stage.script("p q r").form("p q r").hold("p q r", CPC, where=cpc_of("r")).settle()
    servers.form("p | q | r").settle()
    assert [told(servers, name, "vulnerable")[-1] for name in "pqr"] == ["0.1 {p q r} valid un"] * 3

    servers.form("p q").settle()
    assert are_in(servers, "NonPrim", "p q")
    servers.form("q r").settle()
    assert are_in(servers, "RegPrim", "q r")
    assert told(servers, "r", "vulnerable")[-2] == "0.1 {p q r} invalid R3"
    ends_as_one(servers)


def repl_77(stage: Stage) -> None:
    """t has a complete yellow list of an older component: it has no say in what is yellow in the last."""
    servers = stage.script("p q r s t").form("p q r s t").settle().hold("t", Bundle)
    servers["p"].submit("append l1 1")
    servers.settle().form("t").form("p q r s").settle()
    assert yellows(servers, "t") == ["p#1"]
    assert told(servers, "p", "install")[-1] == "2.1 {p q r s}"
    servers["t"].submit("append l1 90")
    for number in (2, 3):
        servers["p"].submit(f"append l1 {number}")
        servers.settle()

    servers.hold("q r s", Bundle)
    servers["p"].submit("append l1 4")
    servers.settle().form("q r s t").settle()
    assert order(servers, "p") == ["p#1", "p#2", "p#3", "p#4"]
    assert order(servers, "t") == ["p#1", "p#2", "p#3", "p#4", "t#1"]
    ends_as_one(servers)


def repl_38(stage: Stage) -> None:
    """Four split into two and two: only the half with the distinguished server goes on."""
    servers = stage.engine("p q r s").settle().partition("p q | r s").settle()
    servers["q"].submit("append l1 1")
    servers["r"].submit("append l1 2")
    servers.settle()
    assert are_in(servers, "RegPrim", "p q")
    assert are_in(servers, "NonPrim", "r s")
    assert servers["q"].answers == ["l1 1"]
    assert servers["r"].answers == []
    ends_as_one(servers)
    assert servers["r"].answers == ["l1 1 2"]


def repl_39(stage: Stage) -> None:
    """A server that weighs more than all others together is primary alone, and they are not without it."""
    servers = stage.script("p q r", voting=Voting(weights=(("r", 3),))).form("p q r").settle()
    servers.form("p q | r").settle()
    assert servers["r"].state == "RegPrim"
    assert are_in(servers, "NonPrim", "p q")
    ends_as_one(servers)


def repl_40(stage: Stage) -> None:
    """With a lower bound of two, the half of two that has the tie-break is still too small."""
    servers = stage.script("p q r", voting=Voting(lower_bound=2)).form("p q r").settle().form("p q").settle()
    assert are_in(servers, "RegPrim", "p q")
    servers.form("p | q").settle()
    assert are_in(servers, "NonPrim", "p q")
    ends_as_one(servers)


SCENARIOS = catalogue(
    repl_05,
    repl_06,
    repl_07,
    repl_08,
    repl_09,
    repl_10,
    repl_11,
    repl_12,
    repl_38,
    repl_39,
    repl_40,
    repl_77,
)
