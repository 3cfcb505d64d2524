"""Semantics: what queries see, what relaxed, interactive and active actions come to (thesis 7.1, Amir & Tutu 6).

Queries are not ordered: a strict one waits for what makes sure that it is not from the past, the others for nothing
that they did not ask for (GAP 36, 37). Actions of every kind are decided where they are ordered.
"""

from __future__ import annotations

from typing import Any

from greenline.database.procedures import PROCEDURES
from greenline.kernel.actions import Verdict
from greenline.kernel.database import Activate
from greenline.replication.messages import Barrier
from greenline.replication.port import Accepted, Level, Procedure, Reads, Refused, Replied
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.replication_admission import why_it_halted
from greenline.simulation.scenarios.replication_clients import multicasts
from greenline.simulation.scenarios.replication_durability import with_two_that_are_not_on_disk
from greenline.simulation.scenarios.replication_joining import has_joined
from greenline.simulation.scenarios.stage import (
    Stage,
    are_in,
    catalogue,
    ends_as_one,
    power_fails,
    power_returns,
    reds,
)
from greenline.simulation.scripted import Scripted

V1, V2 = (Procedure(each.name, each.version, each.digest) for each in PROCEDURES)


def seen(servers: Cluster, name: str, request: str, reads: Reads) -> str:
    """What a client of this server sees, at once."""
    asked = servers[name].ask(request, reads)
    servers.wait(0.2)
    (rows,) = servers[name].answers_of(asked)
    return rows


def position_of(servers: Cluster, name: str, ticket: int) -> int:
    """Where in the order that was decided."""
    answer = servers[name].told_of(ticket)[-1]
    assert isinstance(answer, Replied)
    return answer.position


def activated(servers: Scripted, procedure: Procedure) -> Verdict:
    servers["p"].reconfigure(Activate(procedure.name, procedure.version, procedure.digest))
    return servers.settle()["p"].outcomes[-1].verdict


def deposit(servers: Scripted, amount: int) -> tuple[str, int, int]:
    """A client of one of them calls the procedure: who was asked, the ticket, the amount."""
    name = "pqr"[amount % 3]
    ticket = servers[name].act(f"c{amount}", 1, f"call deposit a1 {amount}")
    servers.wait(0.004)
    return name, ticket, amount


def repl_57(stage: Stage) -> None:
    """Two clients read the same, and write what follows from it: one of them wins. The other is told that what it has
    read holds no more, and nothing of it is done; it reads again, and wins too."""
    servers = stage.engine("p q r").settle()
    servers["p"].submit("write r1 7")
    servers.settle()
    assert seen(servers, "p", "read r1", Reads.STRICT) == seen(servers, "q", "read r1", Reads.STRICT) == "r1 7"
    servers["p"].act("c", 1, "write r1 8", reads=(("read r1", "r1 7"),))
    servers["q"].act("d", 1, "write r1 9", reads=(("read r1", "r1 7"),))
    servers.settle()
    verdicts = {name: servers[name].outcomes[-1].verdict for name in "pq"}
    assert set(verdicts.values()) == {Verdict.DONE, Verdict.CONFLICT}
    won, lost = sorted(verdicts, key=lambda name: verdicts[name] is Verdict.CONFLICT)
    now = seen(servers, "r", "read r1", Reads.STRICT)
    assert now == servers[won].answers[-1]

    servers[lost].act("c" if lost == "p" else "d", 2, "write r1 10", received=1, reads=(("read r1", now),))
    servers.settle()
    assert servers[lost].answers[-1] == "r1 10"
    ends_as_one(servers)


def repl_58(stage: Stage) -> None:
    """r is away and has accepted two actions. A weak query sees neither, a dirty one both: also when a meeting has
    brought word that the first is ordered, elsewhere, while the second is red as before."""
    servers = stage.script("p q r s t").form("p q r s t").settle().form("p q s t | r").settle()
    servers["p"].submit("append l1 1")
    servers["r"].submit("append l1 2")
    servers.settle().form("r s").settle().form("p q s t | r").settle()
    servers["r"].submit("append l1 3")
    servers.settle()
    assert reds(servers, "r") == ["r#1", "r#2"]
    assert seen(servers, "r", "read l1", Reads.WEAK) == "l1 1"
    assert seen(servers, "r", "read l1", Reads.DIRTY) == "l1 1 2 3"

    servers.form("p q t | r s").settle()
    assert are_in(servers, "NonPrim", "r s")
    assert reds(servers, "r") == ["r#2"]
    assert seen(servers, "r", "read l1", Reads.WEAK) == "l1 1 2"
    assert seen(servers, "s", "read l1", Reads.DIRTY) == seen(servers, "r", "read l1", Reads.DIRTY) == "l1 1 2 3"
    assert seen(servers, "p", "read l1", Reads.DIRTY) == "l1 1 2"
    ends_as_one(servers)
    assert seen(servers, "r", "read l1", Reads.STRICT) == "l1 1 2 3"


def repl_59(stage: Stage) -> None:
    """Both sides of a partition add to a counter, and one client asks both for the same: it is added once, for those
    who see it before the merge, after it, and for who joins with a snapshot and is asked a third time."""
    servers = stage.script("p q r", newcomers="n").form("p q r").settle().form("p q | r").settle()
    servers["p"].act("c", 1, "add c1 5", relaxed=True)
    servers["r"].act("c", 2, "add c1 70", relaxed=True)
    told = servers["r"].act("c", 1, "add c1 5", relaxed=True)
    servers["r"].act("d", 1, "put t1 9 1", relaxed=True)
    servers["q"].act("e", 1, "put t1 8 2", relaxed=True)
    servers.settle()
    assert [type(each) for each in servers["r"].told_of(told)] == [Accepted], "to a relaxed action that is the answer"
    assert seen(servers, "r", "count c1", Reads.DIRTY) == "c1 75"
    assert seen(servers, "q", "count c1", Reads.WEAK) == "c1 5"

    servers.form("p q r").settle()
    assert seen(servers, "q", "count c1", Reads.WEAK) == "c1 75"
    servers.start("n").settle().form("n p q r").settle()
    servers["n"].act("c", 1, "add c1 5", relaxed=True)
    assert seen(servers.settle(), "n", "count c1", Reads.DIRTY) == "c1 75"
    ends_as_one(servers)
    assert servers["n"].read("count c1") == "c1 75"
    assert servers["n"].read("get t1") == "t1 1", "the later one, wherever it was ordered"


def repl_63(stage: Stage) -> None:
    """p has not heard yet that q and r went on without it. A strict query waits there until p is with them again, and
    sees what they did; a session query is told how old its answer is; who is in a hurry is refused."""
    servers = stage.script("p q r").form("p q r").settle()
    servers["p"].submit("write r1 1")
    servers.settle().form("q r").settle()
    servers["q"].submit("write r1 2")
    servers.settle()
    assert servers["p"].state == "RegPrim", "as far as it knows"
    strict = servers["p"].ask("read r1", Reads.STRICT)
    misled = servers["p"].ask("read r1", Reads.STRICT, is_patient=False)
    old = servers["p"].ask("read r1", Reads.SESSION, after=1)
    new = servers["p"].ask("read r1", Reads.SESSION, after=servers["q"].position)
    servers.wait(5.0)
    assert servers["p"].answers_of(strict) == servers["p"].answers_of(new) == []
    answer = servers["p"].answer_of(old)
    assert answer is not None
    assert (answer.rows, answer.position) == (b"r1 1", 1)

    servers.form("p").settle()
    hasty = [
        servers["p"].ask("read r1", Reads.STRICT, is_patient=False),
        servers["p"].ask("read r1", Reads.SESSION, after=2, is_patient=False),
    ]
    servers.settle()
    assert all(isinstance(servers["p"].told_of(each)[0], Refused) for each in hasty)
    assert [type(each) for each in servers["p"].told_of(misled)] == [Refused], "now p knows better"
    assert servers["p"].answers_of(strict) == []
    ends_as_one(servers)
    assert servers["p"].answers_of(strict) == servers["p"].answers_of(new) == ["r1 2"]


def repl_90(stage: Stage) -> None:
    """A procedure is called only where everybody has it. r lacks the second version, so that it is not activated until
    r has it; then all change at one place in the order. Who comes without it cannot join."""
    odd: dict[str, dict[str, Any]] = {"r": {"procedures": (V1,)}, "n": {"procedures": (V1,)}}
    servers = stage.script("p q r", odd=odd, newcomers="n", procedures=(V1, V2)).form("p q r").settle()
    servers["q"].submit("call deposit a1 1")
    servers.settle()
    assert servers["q"].answers[-1] == "no such procedure is active"
    assert activated(servers, V1) is Verdict.DONE
    assert activated(servers, V2) is Verdict.FAILED
    assert "r do not have version 2 of deposit" in servers["p"].answers[-1]
    servers["q"].submit("call deposit a1 2")
    servers.settle()
    assert servers["q"].answers[-1] == "ok"

    servers.crash("r").settle()
    odd["r"] = {}
    servers.restart("r").settle().form("p q r").settle()
    calls = [deposit(servers, amount) for amount in range(3, 6)]
    change = servers["p"].reconfigure(Activate(V2.name, V2.version, V2.digest))
    calls += [deposit(servers, amount) for amount in range(6, 9)]
    servers.settle()
    places = sorted((position_of(servers, name, call), amount) for name, call, amount in calls)
    booked = [str(amount) for place, amount in places if place > position_of(servers, "p", change)]
    assert 0 < len(booked) < len(calls)
    assert {servers[name].read("read l9") for name in "pqr"} == {" ".join(["l9", *booked])}, "that is new in the second"
    assert servers["p"].read("total") == "total 300"

    servers.start("n").settle().form("n p q r").settle()
    assert "does not have the procedures that are called here: deposit 2" in why_it_halted(servers, "n")
    odd["n"] = {}
    servers.form("p q r").settle().start("n").settle()
    ends_as_one(servers)
    assert has_joined(servers, "n")


def repl_92(stage: Stage) -> None:
    """Queries are neither ordered nor logged. A hundred strict ones that come at once cost two small multicasts, as the
    first goes at once and the others share; those that ask for less cost nothing."""
    servers = stage.script("p q r", line_interval_s=1000.0).form("p q r").settle()
    servers["p"].submit("append l1 1")
    servers.settle()
    sent, forced, index = multicasts(servers), servers.world.counts["forced writes"], servers["p"].position
    strict = [servers["p"].ask("read l1", Reads.STRICT) for _ in range(100)]
    servers.settle()
    assert all(servers["p"].answers_of(each) == ["l1 1"] for each in strict)
    assert multicasts(servers) - sent == len(servers.said_of(Barrier)) == 2
    others = [servers["q"].ask("read l1", reads) for reads in (Reads.SESSION, Reads.WEAK, Reads.DIRTY) * 20]
    servers.settle()
    assert all(servers["q"].answers_of(each) == ["l1 1"] for each in others)
    assert multicasts(servers) - sent == 2
    assert servers.world.counts["forced writes"] == forced
    assert {servers[name].position for name in "pqr"} == {index}
    ends_as_one(servers)


def repl_102(stage: Stage) -> None:
    """What is green in memory only is shown to nobody: a loss of all power may take it back."""
    servers = with_two_that_are_not_on_disk(stage, Level.LOCAL, "p q r")
    asked = [servers["p"].ask("read l1", reads) for reads in (Reads.WEAK, Reads.SESSION, Reads.STRICT)]
    servers.wait(0.2)
    shown = [each for ticket in asked for each in servers["p"].answers_of(ticket)]
    power_fails(servers, "p q r")
    power_returns(servers, "p q r")
    ends_as_one(servers)
    assert shown == []


def repl_103(stage: Stage) -> None:
    """r is away, and is asked for the same twice: both bundles are red there, and a dirty query counts them once."""
    servers = stage.script("p q r").form("p q r").settle().form("p q | r").settle()
    for _ in range(2):
        servers["r"].act("c", 1, "add c1 5", relaxed=True)
        servers.settle()
    assert len(reds(servers, "r")) == 2
    assert seen(servers, "r", "count c1", Reads.DIRTY) == "c1 5"
    ends_as_one(servers)
    assert servers["r"].read("count c1") == "c1 5"


SCENARIOS = catalogue(repl_57, repl_58, repl_59, repl_63, repl_90, repl_92, repl_102, repl_103)
