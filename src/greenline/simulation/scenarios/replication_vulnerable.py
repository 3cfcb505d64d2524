"""Vulnerable: I agreed to an attempt and do not know how it ended. Who must wait for whom (figure 6.12)."""

from __future__ import annotations

from greenline.replication.messages import CPC, Retrans
from greenline.simulation.scenarios.replication_components import cpc_of
from greenline.simulation.scenarios.stage import (
    Stage,
    are_in,
    catalogue,
    ends_as_one,
    order,
    power_fails,
    power_returns,
    reds,
    replica,
    told,
)
from greenline.simulation.scripted import Scripted


def after_a_total_crash(stage: Stage) -> Scripted:
    """p q r were primary and have ordered a bundle when the power failed everywhere. All are down."""
    servers = stage.script("p q r").form("p q r").settle()
    servers["p"].submit("append l1 1")
    servers.settle()
    power_fails(servers, "p q r")
    return servers.settle()


def with_an_attempt_that_only_p_saw_succeed(stage: Stage) -> Scripted:
    """p q r were primary. p q s try, p installs and answers a client, q and s die before they know. p is cut off."""
    servers = stage.script("p q r s").form("p q r").settle()
    servers.form("p q s").hold("q s", CPC).settle()
    servers["p"].submit("append l1 7")
    servers.settle()
    assert told(servers, "p", "install")[-1] == "2.1 {p q s}"
    assert servers["p"].answers == ["l1 7"]
    power_fails(servers, "q s")
    return servers.form("p").settle()


def repl_13(stage: Stage) -> None:
    """Everybody crashes and returns: nobody is missing, so they go on, with the longest order that any disk has."""
    servers = stage.engine("p q r").settle()
    for name in "qr":
        servers.world[name].disk.slowness = 100.0
    for number in (1, 2, 3):
        servers["p"].submit(f"append l1 {number}")
        servers.wait_until(lambda: len(servers["p"].answers) == number)  # noqa: B023
    power_fails(servers, "p q r")
    for name in "qr":
        servers.world[name].disk.slowness = 1.0
    power_returns(servers, "p q r")

    for name in "pqr":
        assert "0.1 {p q r} invalid R3" in told(servers, name, "vulnerable")
        assert order(servers, name) == ["p#1", "p#2", "p#3"]
    ends_as_one(servers)


def repl_14(stage: Stage) -> None:
    """p met q, q has died once more and meets r: all are accounted for, though p and r have not met."""
    servers = after_a_total_crash(stage)
    power_returns(servers, "p q")
    servers.form("p q").settle()
    assert are_in(servers, "NonPrim", "p q")
    assert replica(servers, "q").vulnerable.bits == ("p", "q")

    servers.form("p | q").settle()
    power_fails(servers, "q")
    power_returns(servers, "q r")
    servers.form("q r").settle()
    assert are_in(servers, "RegPrim", "q r")
    assert "0.1 {p q r} invalid R3" in told(servers, "r", "vulnerable")
    assert replica(servers, "p").vulnerable.is_valid
    ends_as_one(servers)
    assert "0.1 {p q r} invalid R1" in told(servers, "p", "vulnerable")


def repl_15(stage: Stage) -> None:
    """p and q met, but not to the end: what each knows was not merged, so neither counts for the other."""
    servers = after_a_total_crash(stage)
    power_returns(servers, "p q")
    servers["p"].submit("append l1 2")
    servers.settle().form("p q").hold("p q", Retrans).settle()
    assert are_in(servers, "ExchangeActions", "p q")
    servers.form("p | q").settle()
    assert reds(servers, "q") == ["p#2"], "what was retransmitted is kept"
    assert replica(servers, "p").vulnerable.bits == ("p",)
    assert replica(servers, "q").vulnerable.bits == ("q",)

    servers.restart("r").settle().form("q r").settle()
    assert are_in(servers, "NonPrim", "q r")
    ends_as_one(servers)


def repl_16(stage: Stage) -> None:
    """s was not in the last component that it knows: that frees it of nothing, and q r s are no primary component."""
    servers = with_an_attempt_that_only_p_saw_succeed(stage)
    power_returns(servers, "q s")
    servers.form("q s").settle().form("q r s").settle()
    assert are_in(servers, "NonPrim", "q r s")
    ends_as_one(servers)
    assert order(servers, "r") == ["p#1"]


def repl_17(stage: Stage) -> None:
    """The same in one meeting: q and s are judged by what they said, and neither frees the other."""
    servers = with_an_attempt_that_only_p_saw_succeed(stage).mute("q s")
    power_returns(servers, "q s")
    servers.form("q r s").settle().let_be().settle()
    assert are_in(servers, "NonPrim", "q r s")
    for name in "qs":
        assert replica(servers, name).vulnerable.key == (0, 1, 1, ("p", "q", "s"))
        assert replica(servers, name).vulnerable.is_valid
    ends_as_one(servers)


def repl_18(stage: Stage) -> None:
    """After a total crash, who is absent is no witness: p alone, and p with q, stay vulnerable."""
    servers = after_a_total_crash(stage)
    power_returns(servers, "p")
    assert replica(servers, "p").vulnerable.is_valid
    power_returns(servers, "q")
    servers.form("p q").settle()
    assert are_in(servers, "NonPrim", "p q")
    assert all(replica(servers, name).vulnerable.is_valid for name in "pq")
    servers.restart("r").settle()
    ends_as_one(servers)


def repl_19(stage: Stage) -> None:
    """s is vulnerable to an attempt that three components have come after: it is free, and blocks nobody."""
    servers = stage.script("p q r s").form("p q r s").hold("p q r s", CPC, where=cpc_of("s")).settle()
    servers.form("p q r", lost=cpc_of("s")).form("s").settle()
    assert told(servers, "s", "vulnerable")[-1] == "0.1 {p q r s} valid un"
    servers.form("p q").settle().form("p q r").settle()
    assert told(servers, "p", "install") == ["1.2 {p q r}", "2.1 {p q}", "3.1 {p q r}"]

    servers.form("p q r s").settle()
    assert "0.1 {p q r s} invalid R1" in told(servers, "s", "vulnerable")
    ends_as_one(servers)


def repl_20(stage: Stage) -> None:
    """r left before the end of the retransmission and never agreed: nobody can have installed, so p is free."""
    servers = stage.script("p q r")
    servers["p"].submit("append l1 1")
    servers.settle().form("p q r").hold("r", Retrans).settle()
    assert are_in(servers, "Construct", "p q")
    power_fails(servers, "p")
    power_returns(servers, "p")
    assert replica(servers, "p").vulnerable.is_valid

    servers.form("p r").settle()
    assert "0.1 {p q r} invalid R2" in told(servers, "p", "vulnerable")
    assert told(servers, "r", "install") == ["1.2 {p r}"]
    ends_as_one(servers)


def repl_21(stage: Stage) -> None:
    """All have agreed and crash before anything else: the number of that attempt is never used again."""
    servers = stage.script("p q r").form("p q r").hold("p q r", CPC).settle()
    assert told(servers, "p", "cpc") == ["0.1 {p q r}"]
    power_fails(servers, "p q r")
    power_returns(servers, "p q r")
    servers.form("p q r").settle()
    assert told(servers, "p", "cpc") == ["0.1 {p q r}", "0.2 {p q r}"]
    ends_as_one(servers)


SCENARIOS = catalogue(
    repl_13,
    repl_14,
    repl_15,
    repl_16,
    repl_17,
    repl_18,
    repl_19,
    repl_20,
    repl_21,
)
