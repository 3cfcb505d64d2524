"""Clients of replicas: they ask until they are told, elsewhere if need be, and every request counts once."""

from __future__ import annotations

import pytest

from greenline.kernel import evidence
from greenline.kernel.actions import WINDOW, OutcomeOf, Verdict
from greenline.kernel.evidence import Row
from greenline.kernel.ports import Service
from greenline.replication.port import Level, Reads, Refused
from greenline.simulation.cluster import Cluster
from greenline.simulation.load import Load
from greenline.simulation.requests import Request
from greenline.simulation.subjects import ENGINE_OVER_RING
from greenline.simulation.wishes import Activation, Expiry, Lookup, Revision, Update, wish_of


def replicas(names: str = "p q r") -> Cluster:
    return Cluster(names, subject=ENGINE_OVER_RING).settle()


def of_clients(rows: list[Row], *kinds: str) -> list[Row]:
    return [row for row in rows if row.process == evidence.WORLD and row.kind in kinds]


def wants(cluster: Cluster, server: str, *texts: str, window: int = 1, reads: Reads | None = None) -> Cluster:
    for text in texts:
        assert cluster.world[server].app.take(Request(0.0, server, text, Service.SAFE, Level.LOCAL, window, reads))
    return cluster


def calls(cluster: Cluster) -> list[str]:
    return [f"{row.members} {row.message}" for row in of_clients(cluster.rows, "call")]


def greens(cluster: Cluster) -> list[str]:
    return [f"{row.message} {row.detail}" for row in of_clients(cluster.rows, "return") if row.colour == "green"]


def waits_for(cluster: Cluster) -> list[str]:
    return cluster.world.still_waiting()


# What a scenario asks.


def test_a_client_is_told_what_its_operations_came_to() -> None:
    replica = replicas()
    replica["p"].submit("append l1 7", "read l1")
    replica["q"].submit("transfer a1 a2 500", level=Level.QUORUM)
    replica.settle()
    assert replica["p"].answers == ["l1 7", "l1 7"]
    assert replica["q"].answers == ["refused"]
    assert replica["q"].outcomes[0].verdict is Verdict.FAILED
    assert replica["p"].accepted == replica["q"].accepted == 1
    assert len({replica[name].database for name in "pqr"}) == 1
    assert {replica[name].read("read l1") for name in "pqr"} == {"l1 7"}


def test_what_clients_see_is_written_by_one_clock() -> None:
    replica = replicas()
    before = replica["p"].position
    replica["p"].submit("append l1 7", "append l1 8", level=Level.QUORUM)
    replica.settle()
    rows = of_clients(replica.rows, "call", "return")
    assert [(row.kind, row.message, row.colour, row.sub, row.detail) for row in rows] == [
        ("call", "p-1/1", None, None, "append l1 7"),
        ("call", "p-1/2", None, None, "append l1 8"),
        ("return", "p-1/1", "red", None, None),
        ("return", "p-1/2", "red", None, None),
        ("return", "p-1/1", "green", 0, "l1 7"),
        ("return", "p-1/2", "green", 1, "l1 7 8"),
    ]
    assert {row.service for row in rows} == {"quorum"}
    assert {row.members for row in rows} == {"p"}
    assert [row.position for row in rows if row.colour == "green"] == [before + 1] * 2
    applied = {row.digest for row in replica.rows if row.kind == "apply" and row.message == "p-1/2"}
    assert applied == {rows[-1].digest}, "clients and databases write the same of an outcome"
    finals = of_clients(replica.quiet_rows(), "final")
    assert [(row.members, row.position, row.sub) for row in finals] == [(name, before + 1, 0) for name in "pqr"]
    assert len({row.digest for row in finals}) == 1
    assert {row.detail for row in finals} == {"c1 0 c2 0 t1 - t2 -"}


def test_who_is_down_is_not_asked() -> None:
    replica = replicas().crash("p")
    with pytest.raises(ValueError, match="p is down"):
        replica["p"].submit("total")
    with pytest.raises(ValueError, match="p is down"):
        replica["p"].ask("total")
    with pytest.raises(TypeError, match="p is no replica"):
        _ = Cluster("p q").settle()["p"].answers


def test_a_scenario_decides_on_every_identity() -> None:
    replica = replicas()
    replica["p"].act("mine", 1, "write r1 7")
    replica.settle()
    replica["q"].act("mine", 1, "write r1 7")
    replica["r"].act("mine", 2, "write r1 9", received=1, reads=(("read r1", "r1 8"),))
    replica.settle()
    assert [outcome.is_again for outcome in replica["q"].outcomes] == [True]
    assert [outcome.verdict for outcome in replica["r"].outcomes] == [Verdict.CONFLICT]
    assert of_clients(replica.rows, "call")[-1].detail == "write r1 9 if r1 8"
    ticket = replica["q"].ask(OutcomeOf("mine", 2), Reads.WEAK)
    strict = replica["q"].ask("read r1")
    replica.settle()
    answer = replica["q"].answer_of(ticket)
    assert answer is not None
    assert answer.outcome is not None
    assert answer.outcome.verdict is Verdict.CONFLICT
    assert replica["q"].answers_of(strict) == ["r1 7"]
    told = {row.message: row.detail for row in of_clients(replica.rows, "return")}
    assert told["q-1?1"] == "conflict"
    assert told["q-2?1"] == "r1 7"


def test_who_would_rather_be_refused_than_wait_is_refused() -> None:
    replica = replicas().partition("p | q r").settle()
    ticket = replica["p"].ask("read l1", is_patient=False)
    patient = replica["p"].ask("read l1")
    replica.settle()
    assert [type(each) for each in replica["p"].told_of(ticket)] == [Refused]
    assert replica["p"].answers_of(patient) == []
    replica.heal().settle()
    assert replica["p"].answers_of(patient) == ["l1"]


# What the clients of a plan do.


def test_a_sequential_client_waits_for_its_answer_and_a_pipelined_one_does_not() -> None:
    texts = [f"s1/ append l1 {number}" for number in (1, 2, 3)]
    assert len(calls(wants(replicas(), "p", *texts))) == 1
    assert len(calls(wants(replicas(), "p", *texts, window=2))) == 2
    replica = wants(replicas(), "p", *texts).settle()
    seen = [row.kind for row in of_clients(replica.rows, "call", "return") if row.colour != "red"]
    assert seen == ["call", "return"] * 3
    assert replica["p"].answers == ["l1 1", "l1 1 2", "l1 1 2 3"]


def test_a_client_that_moves_asks_again_for_what_it_waits_for_and_then_for_what_is_new() -> None:
    replica = wants(replicas(), "p", "s1/ append l1 1", "s1/ append l1 2", window=2)
    wants(replica, "q", "s1/ append l1 3", window=3).settle()
    assert calls(replica) == ["p s1/1", "p s1/2", "q s1/1", "q s1/2", "q s1/3"]
    assert {replica[name].read("read l1") for name in "pqr"} == {"l1 1 2 3"}
    both = [row for row in of_clients(replica.rows, "return") if row.message == "s1/1" and row.colour == "green"]
    assert len(both) == 2
    assert len({(row.position, row.sub, row.digest, row.detail) for row in both}) == 1
    assert waits_for(replica) == []


def test_what_a_dead_server_was_asked_is_asked_elsewhere_and_counts_once() -> None:
    replica = wants(replicas(), "p", "s1/ append l1 1", "s1/ append l1 2")
    replica.wait(0.002).crash("p").settle().restart("p").settle()
    assert {replica[name].read("read l1") for name in "pqr"} == {"l1 1 2"}
    assert waits_for(replica) == []


def test_who_is_not_answered_says_so() -> None:
    replica = replicas().partition("p | q | r").settle()
    wants(replica, "p", "s1/ append l1 1", "s1? read l1", "s2? read r1", window=2, reads=Reads.STRICT)
    replica.wait(5.0)
    assert [each for each in waits_for(replica) if each.startswith("s1")] == ["s1 still waits for s1/1 s1?1"]
    replica.heal().settle()
    assert waits_for(replica) == []


def test_a_relaxed_update_is_answered_wherever_it_is_accepted_and_seen_by_dirty_reads() -> None:
    replica = replicas().partition("p | q r").settle()
    wants(replica, "p", "s1~ add c1 5", "s1~ add c1 2").settle()
    assert replica["p"].accepted == 2
    assert [each for each in waits_for(replica) if each.startswith("s1")] == []
    wants(replica, "p", "s1? count c1", reads=Reads.DIRTY).settle()
    (seen,) = [row for row in of_clients(replica.rows, "return") if row.message == "s1?1"]
    assert (seen.colour, seen.detail) == ("dirty", "c1 7")
    assert seen.sub is not None
    assert seen.sub > 0
    replica.heal().settle()
    assert {replica[name].read("count c1") for name in "pqr"} == {"c1 7"}


def test_who_writes_what_it_has_read_is_told_of_a_conflict_and_may_try_again() -> None:
    replica = replicas()
    wants(replica, "p", "s1/ write r1 7 if r1", reads=Reads.WEAK).settle()
    assert "s1/1 r1 7" in greens(replica)
    replica.partition("p | q r").settle()
    wants(replica, "p", "s1/ write r1 8 if r1 or again", reads=Reads.WEAK).wait(1.0)
    wants(replica, "q", "s2/ write r1 9").settle()
    replica.heal().settle()
    told = greens(replica)
    assert "s1/2 conflict" in told
    assert "s1/3 r1 1000000008" in told
    assert "write r1 8 if r1 7" in [row.detail for row in of_clients(replica.rows, "call")]


def test_a_client_whose_session_is_over_takes_a_new_name() -> None:
    replica = wants(replicas(), "p", "s1/ append l1 1").settle()
    wants(replica, "p", "s2/ append l2 1").settle()
    wants(replica, "q", "expire 0").settle()
    wants(replica, "p", "s1/ append l1 2", "s1/ append l1 3").settle()
    (refused,) = of_clients(replica.rows, "refused")
    assert (refused.message, refused.detail) == ("s1/2", "expired")
    (last,) = [row for row in of_clients(replica.rows, "return") if row.detail == "l1 1 3"]
    assert last.message is not None
    assert last.message.startswith("s1.2@")
    assert last.message.endswith("/1")
    assert waits_for(replica) == []


def test_a_client_asks_what_became_of_its_request() -> None:
    replica = replicas().partition("p | q r").settle()
    wants(replica, "p", "s1/ append l1 1", "s1? outcome", window=2, reads=Reads.WEAK).settle()
    asked = of_clients(replica.rows, "call")[1]
    assert (asked.message, asked.service, asked.detail) == ("s1?1", "weak", "outcome s1/1")
    told = [row.detail for row in of_clients(replica.rows, "return") if row.message == "s1?1"]
    assert told[0] == "unknown"


def test_a_session_reads_what_it_has_seen() -> None:
    replica = wants(replicas(), "p", "s1/ append l1 1").settle()
    wants(replica, "q", "s1? read l1", reads=Reads.SESSION).settle()
    asked = of_clients(replica.rows, "call")[-1]
    answered = of_clients(replica.rows, "return")[-1]
    assert asked.position is not None
    assert answered.position is not None
    assert 0 < asked.position <= answered.position
    assert answered.detail == "l1 1"


def test_a_procedure_is_called_in_the_version_that_is_active() -> None:
    replica = wants(replicas(), "p", "s1/ call deposit a1 5").settle()
    wants(replica, "p", "activate deposit 1").settle()
    wants(replica, "p", "s1/ call deposit a1 5").settle()
    wants(replica, "p", "activate deposit 2").settle()
    wants(replica, "q", "s1/ call deposit a1 5", "s1/ total").settle()
    assert [each.split(" ", 1)[1] for each in greens(replica)] == [
        "no such procedure is active",
        "ok",
        "ok",
        "total 300",
    ]
    assert {replica[name].read("read l9") for name in "pqr"} == {"l9 5"}


def test_more_than_is_kept_for_a_client_is_asked_again_until_all_is_answered() -> None:
    many = WINDOW + 16
    replica = wants(replicas(), "p", *(f"flood/ append l1 {number}" for number in range(many)), window=many).settle()
    assert replica["q"].read("read l1") == " ".join(["l1", *map(str, range(many))])
    assert waits_for(replica) == []
    assert any(row.detail == "crowded" for row in of_clients(replica.rows, "refused"))


def test_clients_are_the_same_whoever_else_there_is() -> None:
    """What a client draws is its own: shrinking away another one does not change it."""
    one, other = replicas(), replicas()
    wants(other, "p", "s9/ total")
    for cluster in (one, other):
        wants(cluster, "p", "s1/ append l1 1")
    loads = [cluster.world["p"].app.load for cluster in (one, other)]  # type: ignore[attr-defined]
    assert all(isinstance(load, Load) for load in loads)
    assert len({load.clients["s1"]._patience for load in loads}) == 1


# The words.


def asks(text: str, reads: Reads | None = None) -> object:
    return wish_of(Request(0.0, "p", text, Service.SAFE, Level.LOCAL, 1, reads))


def test_a_text_is_a_wish() -> None:
    assert asks("s1/ append l1 7 ; s1/ read l1") == Update("s1", ("append l1 7", "read l1"), Level.LOCAL)
    assert asks("s1/4 append l1 7") == Update("s1", ("append l1 7",), Level.LOCAL), "plans that give numbers are played"
    assert asks("s1~ add c1 5") == Update("s1", ("add c1 5",), Level.LOCAL, is_relaxed=True)
    assert asks("s1? read l1", Reads.DIRTY) == Lookup("s1", "read l1", Reads.DIRTY)
    assert asks("s1/ write r1 9 if r1", Reads.STRICT) == Revision("s1", "r1", 9, Reads.STRICT, Level.LOCAL)
    again = asks("s1/ write r1 9 if r1 or again")
    assert isinstance(again, Revision)
    assert again.times > 1
    assert asks("activate deposit 2") == Activation("deposit", 2)
    assert asks("expire 20") == Expiry(20)


@pytest.mark.parametrize(
    "text", ["m1", "s1 read l1", "s1/ read l1 ; s2/ read l1", "s1/ read l1 ; s1~ add c1 1", "s1/ "]
)
def test_what_is_no_wish_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="asks nothing of a replica"):
        asks(text)
