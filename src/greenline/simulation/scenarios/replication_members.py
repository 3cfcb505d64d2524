"""Members: servers that leave, weigh more or less, or are lost for good (Amir & Tutu 5.1, GAP 24 to 28 and 33).

Nothing of that touches the quorum of the component that is being left; nothing that was accepted is lost by it.
"""

from __future__ import annotations

from greenline.kernel.actions import OutcomeOf, Verdict
from greenline.replication.messages import Bundle, Near, Override, Segment
from greenline.replication.port import Forced, Leave, Refused, Unanswered, Weigh
from greenline.replication.settings import Voting
from greenline.simulation.scenarios.replication_admission import why_it_halted
from greenline.simulation.scenarios.replication_exchange import submit_one_by_one
from greenline.simulation.scenarios.replication_joining import changes
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


def was_let_go(servers: Scripted, name: str) -> bool:
    """Was it told that nobody needs it any more, and stopped for good?"""
    return name not in servers.living and any(row.kind == "left" and row.process == name for row in servers.rows)


def repl_41(stage: Stage) -> None:
    """p is to weigh 3. Until the next component is installed it weighs 1, whoever has heard of it; then, at once, 3."""
    servers = stage.script("p q r").form("p q r").settle().hold("p q r", Near)
    servers["r"].reconfigure(Weigh("p", 3))
    servers.settle().form("p | q r").settle()
    assert changes(servers, "p") == ["weigh p 3 done"]
    assert servers["p"].state == "NonPrim", "q and r count more in the component that was left"
    assert are_in(servers, "RegPrim", "q r")
    ends_as_one(servers)
    servers.form("p | q r").settle()
    assert servers["p"].state == "RegPrim"
    ends_as_one(servers)

    servers = stage.script("p q r").form("p q r").settle()
    servers["r"].reconfigure(Weigh("p", 3))
    servers.settle()
    assert replica(servers, "r").prim.weights == (3, 1, 1), "they have met again"
    power_fails(servers, "p q r")
    power_returns(servers, "p q r")
    servers.form("p q r").settle().form("p | q r").settle()
    assert servers["p"].state == "RegPrim"
    assert are_in(servers, "NonPrim", "q r")
    ends_as_one(servers)


def repl_47(stage: Stage) -> None:
    """The leave of c is green at a alone; b and c, who is alive, do not know that, and are more. One of these is a
    primary component, and it is not a."""
    servers = stage.script("a b c").form("a b c").settle().hold("b c", Bundle)
    servers["a"].reconfigure(Leave("c"))
    servers.settle()
    assert changes(servers, "a") == ["leave c done"]
    servers.form("a | b c").settle()
    assert servers["a"].state == "NonPrim"
    assert servers["b"].state == "RegPrim"
    assert marks(servers, "b", "a#1") == ["red TransPrim", "yellow TransPrim", "green OR-1.2 Construct"]
    assert was_let_go(servers, "c")
    ends_as_one(servers)
    assert replica(servers, "a").prim.servers == ("a", "b")


def repl_48(stage: Stage) -> None:
    """One of two leaves, and the other loses power before its disk knows of that. It cannot go on without the one who
    has left: that one takes nothing any more, but it has not gone yet, and answers."""
    for leaver, other in (("c", "b"), ("b", "c")):
        servers = stage.script("b c").form("b c").settle().hang(other)
        servers[leaver].reconfigure(Leave(leaver))
        servers.wait(1.0)
        assert changes(servers, leaver) == [f"leave {leaver} done"]
        servers[leaver].submit("append l1 1")
        assert servers[leaver].refusals == ["this server has left the cluster; ask another"]
        power_fails(servers, other)
        power_returns(servers, other)
        assert replica(servers, other).roster.servers == ("b", "c")

        servers.form("b c").settle()
        assert servers[other].state == "RegPrim"
        assert was_let_go(servers, leaver)
        servers.form(other).settle()
        servers[other].submit("append l1 2")
        servers.settle()
        assert servers[other].answers == ["l1 2"]
        ends_as_one(servers)


def with_late_reds(stage: Stage, leave: Leave) -> Scripted:
    """c has died. d has two bundles of it that nobody else has; the others have ordered its leave meanwhile."""
    servers = stage.script("a b c d e").form("a b c d e").settle().form("a b e | c d").settle()
    submit_one_by_one(servers, "c", range(1, 3))
    servers.part_with("c").settle()
    servers["a"].reconfigure(leave)
    servers.settle()
    assert are_in(servers, "RegPrim", "a b e")
    assert reds(servers, "d") == ["c#1", "c#2"]
    ends_as_one(servers)
    assert order(servers, "a") == ["a#1", "c#1", "c#2"]
    return servers


def repl_49(stage: Stage) -> None:
    """Bundles of a server that was removed turn up late: they are ordered after its leave, as they were accepted. If it
    left for nothing more to come of it, they have their places, and no effect."""
    servers = with_late_reds(stage, Leave("c"))
    assert servers["a"].read("read l1") == "l1 1 2"
    servers = with_late_reds(stage, Leave("c", is_void=True))
    assert servers["a"].read("read l1") == "l1"
    assert [row.position for row in servers.rows if row.kind == "void" and row.process == "a"] == [2, 3]


def without_p(stage: Stage) -> Scripted:
    """p and q were the last primary component when p burnt. q and r have met since, and are no quorum of it."""
    servers = stage.script("p q r").form("p q r").settle().form("p q | r").settle()
    servers["p"].submit("append l1 1")
    servers.settle()
    power_fails(servers, "p")
    servers.form("q r").settle()
    assert are_in(servers, "NonPrim", "q r")
    return servers


def repl_51(stage: Stage) -> None:
    """p is lost for good, and nobody can go on without it. An operator decides that q and r do: they are primary from
    now on, p leaves, and if it turns up after all it is refused, and stops."""
    servers = without_p(stage)
    told = servers["q"].force("q r", "p", "p has burnt")
    servers.settle()
    assert servers["q"].told_of(told) == [Forced(told, 1)]
    assert are_in(servers, "RegPrim", "q r")
    assert changes(servers, "r") == ["leave p done"]
    servers["r"].submit("append l1 2")
    servers.settle()
    assert servers["r"].answers == ["l1 1 2"]

    power_returns(servers, "p")
    assert servers["p"].state == "NonPrim"
    servers.form("p q r").settle()
    assert "a primary component was forced without it" in why_it_halted(servers, "p")
    servers.part_with("p")
    ends_as_one(servers)

    servers = stage.script("p q r").form("p q r").settle()
    power_fails(servers, "p q r")
    servers.part_with("p")
    power_returns(servers, "q r")
    servers.form("q r").settle()
    assert are_in(servers, "NonPrim", "q r"), "nobody knows what p has seen"
    servers["r"].force("q r", "p", "p has burnt")
    servers.settle()
    assert are_in(servers, "RegPrim", "q r")
    ends_as_one(servers)


def repl_93(stage: Stage) -> None:
    """A component is not forced by mistake: who is to be dead must not be there, who is to survive must be, everybody
    must be named once, and there must be a reason. Nor is it while there is a way without."""
    servers = without_p(stage)
    for survivors, dead, reason, why in (
        ("q", "p r", "a fire", "r are connected with this server, so they are not dead"),
        ("p q r", "", "a fire", "p are not connected with this server; all survivors must be"),
        ("q", "p", "a fire", "r are connected with this server, and not among the survivors"),
        ("q r", "", "a fire", "say of p, too, whether they survive or are dead"),
        ("q r", "p r", "a fire", "r cannot both survive and be dead"),
        ("q r", "p", " ", "say why: the reason is kept with the decision"),
    ):
        asked = servers["q"].force(survivors, dead, reason)
        servers.settle()
        assert servers["q"].told_of(asked) == [Refused(asked, why)]
    power_returns(servers, "p")
    ends_as_one(servers)
    asked = servers["q"].force("p q r", "", "impatience")
    assert "ask again when it is in NonPrim" in servers["q"].refusals[-1]
    assert isinstance(servers["q"].told_of(asked)[0], Refused)
    assert not any(row.kind == "force" for row in servers.rows)


def repl_85(stage: Stage) -> None:
    """The whole primary component has left: p. It alone can make the next one, so it stays until others come, makes one
    with them, and is let go."""
    servers = stage.script("p q r").form("p q r").settle().form("p q | r").settle().form("p | q").settle()
    assert replica(servers, "p").prim.servers == ("p",)
    servers["p"].reconfigure(Leave("p"))
    servers.settle().form("q r").settle()
    assert are_in(servers, "NonPrim", "q r")
    assert "p" in servers.living

    servers.form("p q r").settle()
    assert was_let_go(servers, "p")
    assert are_in(servers, "RegPrim", "q r")
    ends_as_one(servers)


def repl_87(stage: Stage) -> None:
    """r was removed for dead, and was only away: it hands over what it had accepted, and is let go. What it cannot say
    to its clients any more, others can."""
    servers = stage.script("p q r").form("p q r").settle().form("p q | r").settle()
    waiting = servers["r"].act("c", 1, "append l1 1")
    servers["p"].reconfigure(Leave("r"))
    servers.settle()
    assert servers["r"].accepted == 1

    servers.form("p q r").wait(0.05)
    assert isinstance(servers["r"].told_of(waiting)[-1], Unanswered)
    servers.settle()
    assert was_let_go(servers, "r")
    asked = servers["q"].ask(OutcomeOf("c", 1))
    servers.settle()
    answer = servers["q"].answer_of(asked)
    assert answer is not None
    assert answer.outcome is not None
    assert (answer.outcome.verdict, answer.outcome.value, answer.outcome.position) == (Verdict.DONE, b"l1 1", 2)
    ends_as_one(servers)


def repl_89(stage: Stage) -> None:
    """A leave that would leave nobody, or too little for any primary component, comes to nothing; it says why."""
    servers = stage.script("p")
    servers.form("p").settle()
    servers["p"].reconfigure(Leave("p"))
    servers.settle()
    assert [outcome.verdict for outcome in servers["p"].outcomes] == [Verdict.FAILED]
    assert "would weigh 0 then, and a primary component needs 1" in servers["p"].answers[0]

    servers = stage.script("p q", voting=Voting(lower_bound=2)).form("p q").settle()
    for change, why in (
        (Leave("q"), "would weigh 1 then, and a primary component needs 2"),
        (Weigh("p", 0), "would weigh 1 then, and a primary component needs 2"),
        (Leave("z"), "z is no server of this cluster"),
    ):
        servers["p"].reconfigure(change)
        servers.settle()
        assert why in servers["p"].answers[-1]
    ends_as_one(servers)


def repl_94(stage: Stage) -> None:
    """q and r part while it is being decided that they survive. If q has heard it, that counts, and r hears it when
    they meet again; if nobody has in time, it was not decided, and is to be asked for again. It may be decided once
    more, about others."""
    servers = without_p(stage).part_with("p").hold("r", Override)
    asked = servers["q"].force("q r", "p", "p has burnt")
    servers.settle().form("q | r").settle()
    assert servers["q"].told_of(asked) == [Forced(asked, 1)]
    assert (servers["q"].state, servers["r"].state) == ("RegPrim", "NonPrim")
    ends_as_one(servers)
    assert changes(servers, "r") == ["leave p done"]

    servers = without_p(stage).part_with("p").hold("q r", Override)
    asked = servers["q"].force("q r", "p", "p has burnt")
    servers.settle().form("q | r").settle()
    assert isinstance(servers["q"].told_of(asked)[0], Refused)
    servers.form("q r").settle()
    assert are_in(servers, "NonPrim", "q r")
    servers["q"].force("q r", "p", "p has burnt")
    servers.settle()
    assert are_in(servers, "RegPrim", "q r")
    servers.part_with("q").form("r").settle()
    assert servers["r"].state == "NonPrim"
    asked = servers["r"].force("r", "q", "q has burnt as well")
    servers.settle()
    assert servers["r"].told_of(asked) == [Forced(asked, 3)], "the one that nobody heard in time has a number too"
    ends_as_one(servers)


def repl_96(stage: Stage) -> None:
    """r leaves, and r or who has asked for it dies at any step of that: the others never wait for it, and when it is
    over r is gone, or nobody has heard of its leave."""
    for name, steps in (("p", range(1, 26, 3)), ("r", range(1, 22, 3))):
        for orders in steps:
            servers = stage.script("p q r").form("p q r").settle().crash(name, after_orders=orders, keep=orders % 2)
            servers["p"].reconfigure(Leave("r"))
            servers.wait(1.0)
            others = " ".join(each for each in servers.living if each != name)
            servers.form(others).settle()
            if name in servers.living:
                servers.restart(name).settle()
            servers.form(" ".join(servers.living)).settle()
            ends_as_one(servers)
            is_ordered = "leave r done" in changes(servers, "q")
            assert ("r" in servers.living) != is_ordered
            assert replica(servers, "q").roster.servers == (("p", "q") if is_ordered else ("p", "q", "r"))


def repl_100(stage: Stage) -> None:
    """a alone has heard in time that a and b survive; n has joined a since, and meets b. n was in no component, so what
    it knows of them counts nothing: b and n are none, however much b weighed in the beginning."""
    servers = stage.script("a b c d", newcomers="n", voting=Voting(weights=(("b", 5),))).form("a b c d").settle()
    for change in (Weigh("b", 1), Weigh("c", 2)):
        servers["a"].reconfigure(change)
        servers.settle()
    power_fails(servers, "c d")
    servers.part_with("c").part_with("d").form("a b").settle().hold("b", Override)
    servers["a"].force("a b", "c d", "they have burnt")
    servers.settle().form("a | b").settle()
    assert servers["a"].state == "RegPrim"
    servers.start("n").settle().form("a n").hold("n", Segment).settle().form("a | b n").settle()
    assert are_in(servers, "NonPrim", "b n")
    ends_as_one(servers)


def repl_104(stage: Stage) -> None:
    """r hears too late that p is dead, and p is not dead at all. r does not know whether it was decided, so it does
    nothing with p any more: q goes on, and p is turned away."""
    servers = without_p(stage).hold("r", Override)
    servers["q"].force("q r", "p", "p is not seen any more")
    servers.settle().form("q | r").settle()
    servers.restart("p").settle().form("p r").settle()
    assert "forced without it" in why_it_halted(servers, "p")
    assert (servers["q"].state, servers["r"].state) == ("RegPrim", "ExchangeStates")
    servers.part_with("p").form("q r").settle()
    ends_as_one(servers)


SCENARIOS = catalogue(
    repl_41,
    repl_47,
    repl_48,
    repl_49,
    repl_51,
    repl_85,
    repl_87,
    repl_89,
    repl_93,
    repl_94,
    repl_96,
    repl_100,
    repl_104,
)
