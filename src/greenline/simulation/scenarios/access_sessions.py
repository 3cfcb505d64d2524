"""Sessions: a client's requests count once each, in its order, whoever it asks, whoever dies, and how often it asks.

The stories of the notes on access (`transactions-and-access`, 16) that are about sessions. In all of them a server
tells nothing before it is safe, so that there is nothing to be replayed to the servers but by the client itself.
"""

from __future__ import annotations

from greenline.database.sessions import STORED_BYTES
from greenline.kernel.actions import WINDOW, Outcome, OutcomeOf, Verdict
from greenline.kernel.database import Expire
from greenline.replication.messages import Bundle
from greenline.replication.port import Reads, Refused
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.stage import (
    Stage,
    catalogue,
    ends_as_one,
    order,
    power_fails,
    power_returns,
    reds,
)


def last(servers: Cluster, name: str) -> Outcome:
    """What this server has told last."""
    return servers.settle()[name].outcomes[-1]


def what_became(servers: Cluster, name: str, session: str, number: int) -> Outcome:
    """As this server says who is asked, and may not change anything."""
    asked = servers[name].ask(OutcomeOf(session, number))
    answer = servers.settle()[name].answer_of(asked)
    assert answer is not None
    assert answer.outcome is not None
    return answer.outcome


def acc_05(stage: Stage) -> None:
    """p dies with a request that nobody else has seen. The client asks q; if p's disk had it, it comes a second time
    when p returns, and nothing comes of it."""
    for is_on_disk in (False, True):
        servers = stage.script("p q r").form("p q r").settle().mute("p")
        servers["p"].act("c", 1, "append l1 1")
        servers.wait(0.1 if is_on_disk else 0.0)
        power_fails(servers, "p")
        servers.form("q r").settle()
        servers["q"].act("c", 1, "append l1 1")
        first = last(servers, "q")
        assert (first.value, first.is_again) == (b"l1 1", False)

        power_returns(servers, "p")
        assert reds(servers, "p") == (["p#1"] if is_on_disk else [])
        ends_as_one(servers)
        assert order(servers, "q") == ["q#1", *(["p#1"] if is_on_disk else [])]
        assert servers["p"].read("read l1") == "l1 1"


def acc_06(stage: Stage) -> None:
    """p tells two clients what came of their requests, and dies; q and r had not heard of that. They order both as p
    had, and tell the same who asks again."""
    servers = stage.script("p q r").form("p q r").settle().hold("q r", Bundle)
    servers["p"].act("c", 1, "append l1 1")
    servers.wait(0.1)
    servers["p"].act("d", 1, "append l1 2")
    servers.wait(0.1)
    told = list(servers["p"].outcomes)
    assert [each.value for each in told] == [b"l1 1", b"l1 1 2"]
    assert (servers["q"].position, servers["r"].position) == (0, 0)
    power_fails(servers, "p")

    servers.form("q r").settle()
    servers["q"].submit("append l1 3")
    servers.settle()
    for session, outcome in zip("cd", told, strict=True):
        again = what_became(servers, "r", session, 1)
        assert (again.value, again.position, again.sub) == (outcome.value, outcome.position, outcome.sub)
    power_returns(servers, "p")
    ends_as_one(servers)


def acc_08(stage: Stage) -> None:
    """d has seen at p what c did, and asks q for something that rests on it; p and c are dead by then, and q has not
    heard of either. What d has seen is before what it asks for, as it must be."""
    servers = stage.script("p q r").form("p q r").settle().hold("q r", Bundle)
    servers["p"].act("c", 1, "write r1 7")
    servers.wait(0.1)
    seen = servers["p"].ask("read r1", Reads.WEAK)
    servers.wait(0.1)
    assert servers["p"].answers_of(seen) == ["r1 7"]
    power_fails(servers, "p")

    servers["q"].act("d", 1, "write r2 8", reads=(("read r1", "r1 7"),))
    servers.form("q r")
    assert last(servers, "q").verdict is Verdict.DONE
    assert order(servers, "r") == ["p#1", "q#1"]
    power_returns(servers, "p")
    ends_as_one(servers)


def acc_10(stage: Stage) -> None:
    """A client has just come to p when p dies with all that it was asked. The client goes to q, asks for everything
    again that it was not told of, in its order, and goes on."""
    servers = stage.engine("p q r").settle()
    servers["q"].act("c", 1, "append l1 1")
    servers.settle()
    servers["p"].act("c", 2, "append l1 2", received=1)
    servers["p"].act("c", 3, "append l1 3", received=1)
    servers.crash("p").settle()
    for number in (2, 3, 4):
        servers["q"].act("c", number, f"append l1 {number}", received=1)
    servers.settle()
    assert servers["q"].answers == ["l1 1", "l1 1 2", "l1 1 2 3", "l1 1 2 3 4"]
    servers.restart("p").settle()
    ends_as_one(servers)


def acc_13(stage: Stage) -> None:
    """A client starts again under a new name, while requests of its old life are on their way: each is decided once,
    whenever it arrives, or never any more, once the old session is over."""
    servers = stage.script("p q r").form("p q r").settle()
    servers["p"].act("c", 1, "append l1 1")
    servers.settle()
    servers["p"].act("c@1", 1, "append l1 90")
    servers.settle()
    servers["q"].act("c", 2, "append l1 2")
    assert last(servers, "q").value == b"l1 1 90 2"
    for name, number, value in (("r", 2, b"l1 1 90 2"), ("q", 1, b"l1 1")):
        servers[name].act("c", number, f"append l1 {number}")
        assert (last(servers, name).value, last(servers, name).is_again) == (value, True)

    position = servers["p"].position
    servers["p"].act(f"c@{position}", 1, "append l1 91")
    servers.settle()
    servers["q"].reconfigure(Expire(position + 1))
    servers.settle()
    for number in (1, 2, 3):
        servers["r"].act("c", number, f"append l1 {number}")
        assert last(servers, "r").verdict is Verdict.EXPIRED
    assert servers["r"].read("read l1") == "l1 1 90 2 91"
    ends_as_one(servers)


def acc_14(stage: Stage) -> None:
    """A session that nobody has used for long is over, by order: a late duplicate of it is refused and not done again.
    One that was used since goes on, and so does who takes a new name."""
    servers = stage.script("p q r").form("p q r").settle()
    servers["p"].act("c", 1, "append l1 1")
    servers.settle()
    servers["q"].act("d", 1, "append l1 2")
    servers.settle()
    servers["q"].reconfigure(Expire(2))
    servers.settle()
    for session, number, text in (("c", 1, "append l1 1"), ("c", 2, "append l1 91"), ("unheard-of", 1, "append l1 92")):
        servers["r"].act(session, number, text)
        assert last(servers, "r").verdict is Verdict.EXPIRED
    servers["r"].act("c", 1, "add c1 1", relaxed=True)
    assert last(servers, "r").verdict is Verdict.EXPIRED
    servers["r"].act("d", 2, "append l1 3")
    assert last(servers, "r").value == b"l1 1 2 3"
    servers["p"].act(f"c@{servers['p'].position}", 1, "append l1 4")
    assert last(servers, "p").value == b"l1 1 2 3 4"
    ends_as_one(servers)


def acc_15(stage: Stage) -> None:
    """n has joined with a snapshot. A request that was decided long before is asked of n again: it knows the outcome,
    as sessions are part of what it was given."""
    servers = stage.engine("p q r", newcomers="n").settle()
    servers["p"].act("c", 1, "append l1 1")
    first = last(servers, "p")
    servers["p"].submit("append l1 2")
    servers.settle().start("n").settle()
    servers["n"].act("c", 1, "append l1 1")
    again = last(servers, "n")
    assert (again.value, again.position, again.is_again) == (first.value, first.position, True)
    servers["n"].act("c", 2, "append l1 3", received=1)
    assert last(servers, "n").value == b"l1 1 2 3"
    ends_as_one(servers)


def acc_22(stage: Stage) -> None:
    """p dies when all others have the request on their disks and p has told nobody: any of them knows the outcome."""
    servers = stage.script("p q r").form("p q r").settle()
    servers["p"].act("c", 1, "append l1 1")
    servers.wait_until(lambda: servers["p"].accepted == 1).hang("p").wait(1.0)
    assert {servers[name].position for name in "pqr"} == {1}
    assert servers["p"].answers == []
    power_fails(servers, "p")
    servers.form("q r").settle()
    assert what_became(servers, "q", "c", 1).value == b"l1 1"
    servers["r"].act("c", 1, "append l1 1")
    assert (last(servers, "r").value, last(servers, "r").is_again) == (b"l1 1", True)
    power_returns(servers, "p")
    ends_as_one(servers)


def acc_28(stage: Stage) -> None:
    """A client has written at q, and comes to p, who is cut off: with what q told it, it is shown its own writing, or
    waits, or is refused if it will not wait. It is never shown less."""
    servers = stage.engine("p q r").settle().partition("p | q r").settle()
    servers["q"].act("c", 1, "write r1 7")
    token = last(servers, "q").position
    waiting = servers["p"].ask("read r1", Reads.SESSION, after=token)
    hasty = servers["p"].ask("read r1", Reads.SESSION, after=token, is_patient=False)
    servers.settle()
    assert servers["p"].answers_of(waiting) == []
    (refusal,) = servers["p"].told_of(hasty)
    assert isinstance(refusal, Refused)
    assert refusal.is_retriable
    ends_as_one(servers)
    assert servers["p"].answers_of(waiting) == ["r1 7"]


def acc_85(stage: Stage) -> None:
    """A client does not wait for one answer before the next request, and one is lost: those after it are too early, and
    not done. It asks for them again, in order."""
    servers = stage.script("p q r").form("p q r").settle()
    for number in (1, 3, 4):
        servers["p"].act("c", number, f"append l1 {number}")
    servers.settle()
    assert [each.verdict for each in servers["p"].outcomes] == [Verdict.DONE, Verdict.EARLY, Verdict.EARLY]
    assert what_became(servers, "r", "c", 3).verdict is Verdict.UNKNOWN
    for number in (2, 3, 4):
        servers["q"].act("c", number, f"append l1 {number}")
    assert last(servers, "q").value == b"l1 1 2 3 4"
    ends_as_one(servers)


def acc_86(stage: Stage) -> None:
    """A client never says what it has received: so many outcomes are kept for it, and the next request is not decided
    until it does."""
    servers = stage.script("p q r").form("p q r").settle()
    for number in range(1, WINDOW + 2):
        servers["p"].act("c", number, "add c1 1")
    assert last(servers, "p").verdict is Verdict.CROWDED
    assert servers["q"].read("count c1") == f"c1 {WINDOW}"
    servers["q"].act("c", WINDOW + 1, "add c1 1", received=2)
    assert last(servers, "q").verdict is Verdict.DONE
    servers["r"].act("c", 2, "add c1 1")
    assert last(servers, "r").verdict is Verdict.RELEASED
    servers["r"].act("c", 3, "add c1 1")
    assert (last(servers, "r").verdict, last(servers, "r").is_again) == (Verdict.DONE, True)
    assert servers["q"].read("count c1") == f"c1 {WINDOW + 1}"
    ends_as_one(servers)


def acc_87(stage: Stage) -> None:
    """An outcome is too long to be kept: who asks first is told all of it, who asks again only that it was done."""
    servers = stage.script("p q r").form("p q r").settle()
    numbers = [10**14 + number for number in range(STORED_BYTES // 15)]
    for first in range(0, len(numbers), WINDOW):
        servers["p"].submit(*(f"append l1 {number}" for number in numbers[first : first + WINDOW]))
    servers.settle()
    servers["p"].act("c", 1, "append l1 7")
    whole = last(servers, "p")
    assert len(whole.value) > STORED_BYTES
    servers["q"].act("c", 1, "append l1 7")
    again = last(servers, "q")
    assert (again.verdict, again.position, again.value) == (Verdict.DONE, whole.position, b"")
    assert (whole.is_whole, again.is_whole) == (True, False)
    ends_as_one(servers)


def acc_88(stage: Stage) -> None:
    """What became of a request? Who asks that is told, and changes nothing: not even what may still become of it."""
    servers = stage.script("p q r").form("p q r").settle()
    for number, received in ((1, 0), (2, 0), (3, 1)):
        servers["p"].act("c", number, f"append l1 {number}", received)
        servers.settle()
    found = what_became(servers, "q", "c", 2)
    assert (found.verdict, found.value, found.position, found.is_again) == (Verdict.DONE, b"l1 1 2", 2, True)
    assert what_became(servers, "q", "c", 1).verdict is Verdict.RELEASED
    assert what_became(servers, "q", "c", 4).verdict is Verdict.UNKNOWN
    assert what_became(servers, "q", "d", 1).verdict is Verdict.UNKNOWN
    servers["q"].act("c", 4, "append l1 4")
    assert last(servers, "q").value == b"l1 1 2 3 4"
    servers["p"].reconfigure(Expire(5))
    servers.settle()
    for session in ("c", "d"):
        assert what_became(servers, "q", session, 1).verdict is Verdict.EXPIRED
    ends_as_one(servers)


def acc_89(stage: Stage) -> None:
    """r, cut off, accepts something for a session that the others let end. It does not end before r knows of it too:
    what r has accepted comes before its word that it does, and counts."""
    servers = stage.script("p q r").form("p q r").settle()
    servers["p"].act("c", 1, "append l1 1")
    servers.settle().form("p q | r").settle()
    servers["r"].act("c", 1, "add c1 5", relaxed=True)
    servers["r"].act("c", 2, "append l1 2")
    servers["p"].reconfigure(Expire(2))
    assert last(servers, "p").verdict is Verdict.DONE
    servers["p"].reconfigure(Expire(2))
    refused = last(servers, "p")
    assert (refused.verdict, b"once r know it" in refused.value) == (Verdict.FAILED, True)
    servers.form("p q r").settle()
    assert servers["q"].read("count c1") == "c1 5"
    assert last(servers, "r").value == b"l1 1 2"
    servers["p"].reconfigure(Expire(servers["p"].position))
    servers.settle()
    servers["q"].act("c", 3, "append l1 3")
    assert last(servers, "q").verdict is Verdict.EXPIRED
    ends_as_one(servers)


SCENARIOS = catalogue(
    acc_05, acc_06, acc_08, acc_10, acc_13, acc_14, acc_15, acc_22, acc_28, acc_85, acc_86, acc_87, acc_88, acc_89
)
