"""The exchange: everybody gets what it lacks, each thing once, whatever is on its way meanwhile (A.4 to A.6).

Who is too far from the others comes near beside it.
"""

from __future__ import annotations

from collections import Counter

from greenline.kernel.ports import RegularConf
from greenline.replication.messages import CPC, Bundle, Near, Retrans, Segment, State
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
    states,
    told,
)
from greenline.simulation.scripted import TICK_S, Scripted


def submit_one_by_one(servers: Scripted, name: str, numbers: range) -> None:
    """Each in a bundle of its own."""
    for number in numbers:
        servers[name].submit(f"append l1 {number}")
        servers.wait(0.02)


def repl_22(stage: Stage) -> None:
    """s has two bundles on their way when it meets r, who lacks those before: r holds them, and all order the same."""
    servers = stage.script("p q r s").form("q s").settle()
    submit_one_by_one(servers, "s", range(1, 8))
    servers.mute("s")
    submit_one_by_one(servers, "s", range(8, 10))
    assert reds(servers, "q") == [f"s#{index}" for index in range(1, 8)]

    servers.form("q r s").settle()
    assert are_in(servers, "ExchangeStates", "q r s")
    servers.let_be().settle()
    assert are_in(servers, "RegPrim", "q r s")
    assert marks(servers, "q", "s#8")[0] == "red ExchangeStates"
    assert marks(servers, "r", "s#8")[0] == "red ExchangeActions"
    assert order(servers, "q") == order(servers, "r") == [f"s#{index}" for index in range(1, 10)]
    ends_as_one(servers)


def repl_23(stage: Stage) -> None:
    """A State, a retransmission and a CPC that were made in one meeting and sent in the next are ignored there."""
    servers = stage.script("p q r").mute("p").form("p q").settle().form("p q r").settle().let_be().settle()
    assert servers.ignored("of another meeting") == ["p", "q", "r"]
    ends_as_one(servers)

    for has_reds in (True, False):
        servers = stage.script("p q r")
        if has_reds:
            servers["p"].submit("append l1 1")
        servers.settle().form("p q").hold("p", State).settle().mute("p").release().settle()
        assert servers["p"].state == ("ExchangeActions" if has_reds else "Construct")
        servers.form("p q r").settle().let_be().settle()
        assert servers.ignored("of another meeting") == ["p", "q", "r"]
        ends_as_one(servers)


def repl_24(stage: Stage) -> None:
    """q is on its way out when the last retransmission and the CPCs come: to it they mean nothing, and it goes on."""
    servers = stage.script("p q r")
    servers["r"].submit("append l1 1")
    servers.settle().form("p q r").hold("q", Retrans).settle()
    assert are_in(servers, "Construct", "p r")
    servers.form("q").settle()
    assert servers.ignored("its meeting is over here") == ["q", "q"]
    assert reds(servers, "q") == ["r#1"]
    ends_as_one(servers)


def repl_25(stage: Stage) -> None:
    """Ten changes of configuration, each some messages after the last: what was learnt is kept, nothing is twice."""
    servers = stage.script("p q r s")
    for place, name in enumerate(servers.names):
        submit_one_by_one(servers, name, range(2 * place, 2 * place + 2))
    sides = ("p q r s", "p q | r s", "p q r | s", "q r s", "p | q s")
    for change in range(10):
        servers.form(sides[change % len(sides)]).arrive().wait(TICK_S * (change % 7))
    ends_as_one(servers)
    assert sorted(order(servers, "p")) == sorted(f"{name}#{index}" for name in "pqrs" for index in (1, 2))


def repl_26(stage: Stage) -> None:
    """Five servers with nothing ordered and two reds each: every bundle travels once, from the one who has it."""
    servers = stage.script("p q r s t")
    for place, name in enumerate(servers.names):
        submit_one_by_one(servers, name, range(2 * place, 2 * place + 2))
    servers.form("p q r s t").settle()
    sent = Counter(str(body.id) for retrans in servers.said_of(Retrans) for body in retrans.reds)
    assert sent == {f"{name}#{index}": 1 for name in "pqrst" for index in (1, 2)}
    ends_as_one(servers)


def repl_27(stage: Stage) -> None:
    """r has the body and lacks only its place: the order travels without bodies."""
    servers = stage.script("p q r").form("p q r").settle().hold("r", Bundle)
    submit_one_by_one(servers, "p", range(3))
    servers.settle().form("r").settle().form("p q r").settle()
    entries = [entry for retrans in servers.said_of(Retrans) for entry in retrans.greens.entries]
    assert [str(entry.id) for entry in entries] == ["p#1", "p#2", "p#3"]
    assert all(entry.body is None for entry in entries)
    ends_as_one(servers)


def repl_28(stage: Stage) -> None:
    """A client asks once in an exchange and once in a transitional configuration: its second stays the second."""
    servers = stage.script("p q r").form("p q r").hold("p q r", State).settle()
    servers["p"].submit("append l1 1")
    servers.form("p q").hold("p q", RegularConf).settle()
    assert servers["p"].state == "NonPrim"
    servers["p"].submit("append l1 2")
    servers.settle()
    assert servers["p"].accepted == 0
    servers.release().settle()
    assert servers["p"].answers == ["l1 1", "l1 1 2"]
    ends_as_one(servers)


def far_away(stage: Stage, numbers: int) -> Scripted:
    """p q r were primary; r is alone; a server is far if it is more than four bundles from the others."""
    servers = stage.script("p q r", far=4, message_bytes=200).form("p q r").settle().form("p q | r").settle()
    submit_one_by_one(servers, "q", range(1, numbers + 1))
    return servers.settle()


def repl_71(stage: Stage) -> None:
    """r returns far behind: p and q do not wait for it, and go on ordering while it comes near beside them."""
    servers = far_away(stage, 20)
    servers.form("p q r").hold("r", Segment).settle()
    assert are_in(servers, "RegPrim", "p q")
    assert told(servers, "p", "install")[-1] == "3.1 {p q}"
    servers["p"].submit("append l1 21")
    servers.settle()
    assert servers["p"].answers[-1].endswith("20 21")
    assert (servers["r"].state, servers["r"].position) == ("NonPrim", 0)
    servers["r"].submit("append l1 22")
    servers.settle()
    assert servers["r"].accepted == 1, "its clients are served"
    assert marks(servers, "r", "r#1") == ["red NonPrim"], "and their bundles stay with it"
    assert marks(servers, "p", "r#1") == []

    servers.release().hold("p q r", Near).settle()
    assert replica(servers, "r").green >= 21 - 4
    assert len(servers.said_of(Segment)) > 5, "piece by piece"
    assert are_in(servers, "RegPrim", "p q")
    ends_as_one(servers)
    assert servers["r"].answers[-1].endswith("20 21 22")


def repl_72(stage: Stage) -> None:
    """r returns with more reds than anybody should wait for: it offers them beside the exchange, piece by piece."""
    servers = stage.script("p q r", far=4, message_bytes=200).form("p q r").settle().form("p q | r").settle()
    submit_one_by_one(servers, "r", range(1, 13))
    servers.settle().form("p q r").hold("p q r", Near).settle()
    assert are_in(servers, "RegPrim", "p q")
    assert servers["r"].state == "NonPrim"
    assert not servers.said_of(Retrans)
    assert marks(servers, "p", "r#12") == ["red RegPrim"]

    ends_as_one(servers)
    assert len(servers["r"].answers) == 12
    assert order(servers, "p") == [f"r#{index}" for index in range(1, 13)]


def repl_73(stage: Stage) -> None:
    """r has come near: the component of p and q ends at that word, inside its configuration, and the next has all."""
    servers = far_away(stage, 12).form("p q r").hold("p q r", Near).settle()
    before = len(servers.said_of(Bundle))
    servers["q"].submit("append l1 13")
    servers.settle()
    assert len(servers.said_of(Bundle)) == before + 1
    assert are_in(servers, "RegPrim", "p q")

    servers.release().settle()
    installed = [row for row in servers.rows if row.kind == "install" and row.process == "p"][-2:]
    assert [row.members for row in installed] == ["p q", "p q r"]
    assert installed[0].conf == installed[1].conf
    assert "TransPrim" not in states(servers, "p")[-3:]
    assert marks(servers, "p", "q#13") == ["red ExchangeStates", "green OR-2 Construct"]
    ends_as_one(servers)


def repl_79(stage: Stage) -> None:
    """After a total crash q and r are far behind p, and nobody is primary: they come near, and only then all go on."""
    servers = stage.script("p q r", far=4, message_bytes=200).form("p q r").settle().hang("q r")
    submit_one_by_one(servers, "p", range(1, 21))
    power_fails(servers, "p q r")
    power_returns(servers, "p q r")
    assert [replica(servers, name).green for name in "pqr"] == [20, 0, 0]

    servers.form("p q r").hold("p q r", Near).settle()
    assert are_in(servers, "NonPrim", "p q r")
    assert min(replica(servers, name).green for name in "qr") >= 20 - 4
    servers.release().settle()
    assert are_in(servers, "RegPrim", "p q r")
    assert "0.1 {p q r} invalid R3" in told(servers, "p", "vulnerable")
    ends_as_one(servers)


def repl_80(stage: Stage) -> None:
    """To q the component has ended at r's word, p hears it in transition: what p said after it is green to nobody."""
    for sides in ("p | q r", "q | p r", "p | q | r"):
        servers = far_away(stage, 12).form("p q r").hold("p r", Near).settle()
        assert [servers[name].state for name in "pqr"] == ["RegPrim", "ExchangeStates", "NonPrim"]
        servers["p"].submit("append l1 13")
        servers.settle().form(sides).settle()
        assert marks(servers, "p", "p#1")[:2] == ["red TransPrim", "yellow TransPrim"]
        assert marks(servers, "q", "p#1")[0] == "red ExchangeStates"
        ends_as_one(servers)
        assert order(servers, "q")[-1] == "p#1"


def repl_81(stage: Stage) -> None:
    """p and r have met again when q hears, in transition, the CPCs of the last attempt: what they said since then means
    nothing to q, who waits in Un."""
    servers = stage.script("p q r", far=4, message_bytes=200).form("p q r").settle().form("p q | r").settle()
    submit_one_by_one(servers, "p", range(12))
    servers.settle().form("p q r").hold("q", CPC).settle()
    assert [type(each) for each in servers.said[-2:]] == [State, State]

    servers.form("p r | q").settle()
    assert states(servers, "q")[-4:] == ["No", "Un", "ExchangeStates", "NonPrim"]
    ends_as_one(servers)


def repl_82(stage: Stage) -> None:
    """r knows more of the order than q, who knows the newer component: what is green at r is what q lacks before r's
    reds. They come near once, and not again and again."""
    servers = stage.script("p q r", far=4).form("p q r").settle().form("p q | r").settle()
    submit_one_by_one(servers, "p", range(10))
    servers.settle().form("p q r").hold("r", State).settle().hang("q")
    submit_one_by_one(servers, "p", range(10, 14))
    servers.release().hold("r", Segment).wait(0.2)
    servers.mute("r").release().wait(0.2)
    submit_one_by_one(servers, "p", range(14, 18))
    power_fails(servers, "p q")
    servers.wait(0.1).restart("q").settle()
    assert (replica(servers, "q").green, replica(servers, "r").green) == (10, 14)
    assert reds(servers, "r") == ["p#15", "p#16", "p#17", "p#18"]

    before = len(servers.said_of(Near))
    servers.let_be().form("q r").settle()
    assert len(servers.said_of(Near)) - before <= 2
    assert order(servers, "q") == order(servers, "r")
    assert reds(servers, "q") == reds(servers, "r")
    servers.restart("p").settle()
    ends_as_one(servers)


SCENARIOS = catalogue(
    repl_22,
    repl_23,
    repl_24,
    repl_25,
    repl_26,
    repl_27,
    repl_28,
    repl_71,
    repl_72,
    repl_73,
    repl_79,
    repl_80,
    repl_81,
    repl_82,
)
