"""Joining: a newcomer becomes a replica, and who was left behind becomes one again (Amir & Tutu 5.1, GAP 27, 29 to 32).

Whatever happens on its way, its Join counts once, what it was given need not be given again, and nobody waits for it.
"""

from __future__ import annotations

from greenline.kernel import evidence
from greenline.replication.messages import Manifest, Piece, Want
from greenline.replication.port import Join, Joined, Leave, Replied, Unanswered
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.replication_admission import why_it_halted
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
    states,
)
from greenline.simulation.scripted import Scripted


def has_joined(servers: Cluster, name: str) -> bool:
    """Was it told so, in this life?"""
    return any(isinstance(each, Joined) for each in servers[name].events)


def changes(servers: Cluster, at: str) -> list[str]:
    """What changes of the cluster came to, as this server saw it: "join n done"."""
    return [str(row.detail) for row in servers.rows if row.kind == "roster" and row.process == at]


def transfers(servers: Cluster, name: str) -> list[str]:
    """Whose snapshots it began to take, and what it lacked of them."""
    return [str(row.detail) for row in servers.rows if row.kind == "transfer" and row.process == name]


def with_a_large_database(stage: Stage) -> Scripted:
    """p q r are primary, and know so much that a snapshot has many chunks; they travel one by one. n has arrived."""
    servers = stage.script("p q r", newcomers="n", pieces=1).form("p q r").settle()
    for number in range(60):
        servers["p"].submit(f"write r{number} {number}")
    return servers.settle().start("n").settle()


def dies_when_restored(servers: Scripted, name: str, keep: float) -> None:
    """As soon as its database is a snapshot, before it hears of that itself."""
    process = servers.world[name]
    servers.world.lookouts[evidence.RESTORED] = [lambda _: process.crash(keep)]


def repl_42(stage: Stage) -> None:
    """n joins while everybody works: nobody waits for it, it has what all have, and its own first action counts."""
    servers = stage.engine("p q r", newcomers="n", pieces=2, message_bytes=500).settle()
    for number in range(120):
        servers["pqr"[number % 3]].submit(f"append l{number % 7} {number}")
        servers.wait(0.01)
        if number == 30:
            servers.start("n")
    servers.settle()
    assert sum(len(servers[name].answers) for name in "pqr") == 120
    (joined,) = (each for each in servers["n"].events if isinstance(each, Joined))
    assert 30 < joined.position < servers["p"].position, "much was ordered before that, and much after"
    assert are_in(servers, "RegPrim", "n p q r")
    assert {servers[name].database for name in "npqr"} == {servers["p"].database}

    servers["n"].submit("append l8 7")
    servers.settle()
    assert servers["n"].answers == ["l8 7"]
    ends_as_one(servers)


def repl_43(stage: Stage) -> None:
    """n joins where there is no primary component: its Join is red. It is ordered elsewhere; when p hears of that, n
    is given a snapshot, and is a replica without ever having seen a primary component."""
    servers = stage.script("p q r s t", newcomers="n").form("p q r s t").settle().form("q r s t").settle()
    servers["q"].submit("append l1 1")
    servers.start("n").settle().form("n p").settle()
    assert reds(servers, "p") == ["p#1"]
    assert not has_joined(servers, "n")

    servers.form("p t").settle().form("q r s t").settle()
    assert changes(servers, "q") == ["join n done"]
    servers.form("q r s | n p t").settle()
    assert marks(servers, "p", "p#1")[-1] == "green OR-3 ExchangeActions"
    assert has_joined(servers, "n")
    assert "RegPrim" not in states(servers, "n")
    assert order(servers, "p") == ["q#1", "p#1"]
    assert servers["n"].read("read l1") == "l1 1"
    ends_as_one(servers)


def repl_44(stage: Stage) -> None:
    """p dies while it gives n a snapshot. q goes on, at a later position: what n has is not given to it again."""
    servers = with_a_large_database(stage).form("n p q r")
    servers.wait_until(lambda: len(servers.said_of(Piece)) == 4)
    chunks = servers.said_of(Manifest)[0].count
    power_fails(servers, "p")
    servers.form("q r").settle()
    servers["q"].submit("append l1 1")
    servers.settle().form("n q r").settle()
    assert has_joined(servers, "n")

    first, second = servers.said_of(Manifest)
    assert (first.server, second.server) == ("p", "q")
    assert second.basis.position > first.basis.position
    given = [each for each in servers.said_of(Piece) if each.server == "q"]
    assert len(given) < chunks - 2, "it was given some of them before"
    assert changes(servers, "q") == ["join n done"]
    power_returns(servers, "p")
    ends_as_one(servers)


def repl_45(stage: Stage) -> None:
    """Two ask for the same Join: the second changes nothing. Two machines have one name: the second is refused."""
    servers = stage.script("p q r", newcomers="n").form("q r").settle().start("n").settle()
    servers.form("n p").settle().form("n q r | p").settle()
    assert has_joined(servers, "n")
    ends_as_one(servers)
    assert changes(servers, "r") == ["join n done", "join n done"]
    seat = replica(servers, "p").roster.seat_of("n")
    assert seat is not None
    assert seat.since == 1, "it is one since the first"

    servers = stage.script("p q r", newcomers="n").form("q r").settle().start("n").settle()
    servers["p"].reconfigure(Join("n", b"of another machine"))
    servers.form("n q r").settle()
    assert has_joined(servers, "n")
    ends_as_one(servers)
    assert changes(servers, "r")[0] == "join n done"
    assert "is the name of another server already" in changes(servers, "r")[1]

    servers = stage.script("p q r", newcomers="n").form("q r").settle().start("n").settle()
    servers["q"].reconfigure(Join("n", b"of another machine"))
    servers.form("n p").settle().form("n p q r").settle()
    assert "is the name of another server of this cluster" in why_it_halted(servers, "n")
    servers.part_with("n")
    ends_as_one(servers)


def repl_46(stage: Stage) -> None:
    """n has joined while r was away. When they meet, r learns of its Join in the same meeting: from the log of another,
    or, as n's own log begins after it, by a snapshot of n itself."""
    servers = stage.script("p q r", newcomers="n").form("p q r").settle().form("p q | r").settle()
    servers.start("n").settle().form("n p q").settle()
    assert are_in(servers, "RegPrim", "n p q")
    assert "n" not in replica(servers, "r").roster.servers
    servers.form("n p r | q").settle()
    assert marks(servers, "r", "p#1") == ["red ExchangeActions", "green OR-3 ExchangeActions"]
    assert are_in(servers, "RegPrim", "n p r")
    ends_as_one(servers)

    servers = stage.script("p q r", newcomers="n").form("p q r").settle().form("p q | r").settle()
    servers.start("n").settle().form("n p q").settle()
    servers["r"].submit("append l1 1")
    servers.settle().form("n r | p q").settle()
    assert transfers(servers, "r")[0].startswith("from n:")
    assert "n" in replica(servers, "r").roster.servers
    assert reds(servers, "n") == ["r#1"]
    assert are_in(servers, "RegPrim", "p q")
    ends_as_one(servers)


def repl_50(stage: Stage) -> None:
    """n was the name of a server that has left: nobody takes it again, neither by order nor by walking in."""
    servers = stage.script("p q r", newcomers="n").form("p q r").settle()
    for change in (Join("n", b"one"), Leave("n"), Join("n", b"another"), Join("n", b"one")):
        servers["p"].reconfigure(change)
        servers.settle()
    assert [outcome.verdict for outcome in servers["p"].outcomes] == ["done", "done", "failed", "failed"]
    assert "left at position 2; take a new one" in servers["p"].answers[-1]

    servers.start("n").settle().form("n p q r").settle()
    assert "was the name of a server that left" in why_it_halted(servers, "n")
    servers.part_with("n")
    ends_as_one(servers)


def repl_86(stage: Stage) -> None:
    """r is left behind, and comes back by a snapshot, under its own name. What it has accepted is ordered all the same;
    the outcome of what was ordered meanwhile it cannot tell, and says so: the others can."""
    servers = stage.script("p q r", retain_after_white=0, retain_at_most=20, far=20, line_interval_s=0.01)
    servers.form("q r").settle().form("p q | r").settle()
    ordered = servers["r"].act("c", 1, "append l2 1")
    servers.settle().form("q r").settle().form("p q | r").settle()
    submit_one_by_one(servers, "p", range(1, 41))
    red = servers["r"].act("d", 1, "append l3 2")
    servers.settle()
    assert replica(servers, "p").low > replica(servers, "r").green
    assert reds(servers, "r") == ["r#1", "r#2"]

    servers.form("p q r").settle()
    assert transfers(servers, "r")
    assert are_in(servers, "RegPrim", "p q r")
    assert isinstance(servers["r"].told_of(ordered)[-1], Unanswered)
    assert isinstance(servers["r"].told_of(red)[-1], Replied)
    assert servers["r"].answers == ["l3 2"]
    servers["p"].act("c", 1, "append l2 1")
    servers.settle()
    assert servers["p"].answers[-1] == "l2 1"
    ends_as_one(servers)


def repl_88(stage: Stage) -> None:
    """n dies when its database is the snapshot and its log knows nothing of that: the database says where it begins."""
    for keep in (0.0, 1.0):
        servers = with_a_large_database(stage)
        dies_when_restored(servers, "n", keep)
        servers.form("n p q r").settle()
        assert (servers["n"].state, servers["n"].position) == ("", servers["p"].position)
        pieces = len(servers.said_of(Piece))

        servers.start("n").settle()
        assert [row.position for row in servers.rows if row.kind == "recover" and row.process == "n"] == [0, 0]
        assert has_joined(servers, "n")
        ends_as_one(servers)
        assert len(servers.said_of(Piece)) == pieces, "nothing was given to it again"


def repl_91(stage: Stage) -> None:
    """n asks p, who cannot order anything for long. It goes to q instead, and joins there; p's Join comes late."""
    servers = stage.script("p q r s t", newcomers="n").form("q r s t").settle().start("n").settle()
    servers.form("n p").settle().wait(60.0)
    assert reds(servers, "p") == ["p#1"]
    assert not has_joined(servers, "n")

    servers.form("n q r s t | p").settle()
    assert has_joined(servers, "n")
    assert are_in(servers, "RegPrim", "n q r s t")
    ends_as_one(servers)
    assert changes(servers, "p") == ["join n done", "join n done"]
    assert [each.source for each in servers.said_of(Want)] == ["p", "q"]


def repl_95(stage: Stage) -> None:
    """n, or who gives it a snapshot, dies at any step of that: n is a replica in the end, and joined once."""
    for name, steps in (("n", range(1, 35, 5)), ("p", range(1, 47, 7))):
        for orders in steps:
            servers = stage.script("p q r", newcomers="n", pieces=2).form("p q r").settle()
            servers["p"].submit(*(f"write r{number} {number}" for number in range(30)))
            servers.settle().start("n").settle().form("n p q r").crash(name, after_orders=orders, keep=orders % 2)
            servers.wait(1.0)
            servers.world[name].crash()  # at the latest
            servers.form(" ".join(each for each in "npqr" if each != name)).settle()
            servers.restart(name).settle()
            ends_as_one(servers)
            assert set(changes(servers, "q")) == {"join n done"}
            assert replica(servers, "q").roster.servers == ("n", "p", "q", "r")


SCENARIOS = catalogue(repl_42, repl_43, repl_44, repl_45, repl_46, repl_50, repl_86, repl_88, repl_91, repl_95)
