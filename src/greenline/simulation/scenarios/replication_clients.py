"""Clients: what they see of a component that is quiet, split, merged, or asked too much; and what that costs."""

from __future__ import annotations

from greenline.replication.messages import State
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.stage import Stage, are_in, catalogue, ends_as_one, marks, order, reds


def multicasts(servers: Cluster) -> int:
    return sum(row.kind == "send" for row in servers.rows)


def repl_01(stage: Stage) -> None:
    """A hundred actions in a quiet primary component: a multicast for each bundle, and two forced writes on its way."""
    servers = stage.engine("p q r", line_interval_s=1000.0).settle()
    sent, forced = multicasts(servers), servers.world.counts["forced writes"]
    for number in range(100):
        servers["pqr"[number % 3]].submit(f"append l1 {number}")
        servers.wait(0.002)
    servers.settle()
    made = sum(row.kind == "create" for row in servers.rows)
    assert made <= 100
    assert multicasts(servers) - sent == made
    assert servers.world.counts["forced writes"] - forced <= 4 * made, "its creator's two, and one of each other"
    assert sum(len(servers[name].answers) for name in "pqr") == 100
    ends_as_one(servers)


def repl_02(stage: Stage) -> None:
    """r alone accepts five: they are safe there, red, and get their answers after the merge."""
    servers = stage.engine("p q r").settle().partition("p q | r").settle()
    for number in range(5):
        servers["r"].submit(f"append l1 {number}")
        servers.wait(0.05)
    servers.settle()
    assert servers["r"].accepted == 5
    assert servers["r"].answers == []
    assert reds(servers, "r") == [f"r#{index}" for index in range(1, 6)]
    ends_as_one(servers)
    assert servers["r"].answers[-1] == "l1 0 1 2 3 4"
    assert marks(servers, "p", "r#5")[-1] == "green OR-2 Construct"


def repl_03(stage: Stage) -> None:
    """p and q go on while r is away: r learns their order as it is, and nothing is ordered anew."""
    servers = stage.engine("p q r").settle().partition("p q | r").settle()
    for number in range(10):
        servers["pq"[number % 2]].submit(f"append l1 {number}")
        servers.wait(0.05)
    servers.settle()
    assert are_in(servers, "RegPrim", "p q")
    assert (servers["p"].position, servers["r"].position) == (10, 0)
    ends_as_one(servers)
    for bundle in order(servers, "p"):
        assert marks(servers, "r", bundle)[-1] == "green OR-3 ExchangeActions"


def repl_04(stage: Stage) -> None:
    """Both sides write: what was red comes after what was green, and nothing before what its creator had seen."""
    servers = stage.engine("p q r s t").settle().partition("p q r | s t").settle()
    for number in range(5):
        servers["p"].submit(f"append l1 {number}")
        servers["ts"[number % 2]].submit(f"append l1 {10 + number}")
        servers.wait(0.05)
    servers.settle()
    ends_as_one(servers)
    greens = [f"p#{index}" for index in range(1, 6)]
    assert order(servers, "q") == [*greens, "t#1", "s#1", "t#2", "s#2", "t#3"]
    assert servers["t"].answers[-1] == "l1 0 1 2 3 4 10 11 12 13 14"


def repl_29(stage: Stage) -> None:
    """More is asked during an exchange than may wait: the rest is refused, with a reason, and nothing else is lost."""
    servers = stage.script("p q r", buffered=100).form("p q r").hold("p q r", State).settle()
    for number in range(120):
        servers["p"].submit(f"append l1 {number}")
    assert len(servers["p"].refusals) == 20
    assert "try again later" in servers["p"].refusals[0]
    servers.release().settle()
    assert servers["p"].accepted == 100
    assert servers["p"].answers[-1] == " ".join(["l1", *map(str, range(100))])
    ends_as_one(servers)


def repl_32(stage: Stage) -> None:
    """A client asks two servers for the same, connected or not: it has one effect, and both tell the same of it."""
    for sides in ("p q r", "p q | r"):
        servers = stage.engine("p q r").settle().partition(sides).settle()
        servers["p"].act("c", 1, "append l1 1")
        servers["r"].act("c", 1, "append l1 1")
        ends_as_one(servers)
        (one,), (other,) = servers["p"].outcomes, servers["r"].outcomes
        assert (one.value, one.position, one.sub) == (other.value, other.position, other.sub)
        assert {one.is_again, other.is_again} == {True, False}
        assert servers["q"].position == 2, "both are ordered"
        assert servers["q"].read("read l1") == "l1 1"


def repl_33(stage: Stage) -> None:
    """p dies anywhere between a request and its reply. The client asks q for the same: it is done once, and if p had
    told what came of it, q tells the same."""
    found = set()
    for orders in range(1, 13):
        servers = stage.script("p q r").form("p q r").settle().crash("p", after_orders=orders)
        servers["q"].submit("append l1 1")
        servers["p"].act("c", 1, "append l1 2")
        servers.wait(0.5)
        told = list(servers["p"].outcomes)
        servers.world["p"].crash()  # at the latest
        servers.form("q r").settle()
        servers["q"].act("c", 1, "append l1 2")
        servers.settle().restart("p").settle()
        ends_as_one(servers)
        again = servers["q"].outcomes[-1]
        assert [(each.value, each.position) for each in told] in ([], [(again.value, again.position)])
        assert servers["p"].read("read l1").split().count("2") == 1
        found.add((len(told), again.is_again))
    assert found == {(0, False), (0, True), (1, True)}


def repl_55(stage: Stage) -> None:
    """What breaks a constraint fails the same everywhere: it has its place, changes nothing, and its client is told."""
    servers = stage.engine("p q r").settle()
    servers["p"].submit("transfer a1 a2 60", "transfer a1 a2 60", "append l1 1")
    servers["q"].submit("transfer a3 a9 1", "make coffee")
    servers.settle()
    assert servers["p"].answers == ["ok", "refused", "l1 1"]
    assert servers["q"].answers == ["refused", "no such operation"]
    assert {servers[name].position for name in "pqr"} == {2}
    ends_as_one(servers)


def repl_60(stage: Stage) -> None:
    """Fourteen servers: one multicast for an action, however many they are, and one forced write for each receiver."""
    names = "a b c d e f g h i j k l m n"
    servers = stage.engine(names, line_interval_s=1000.0).settle()
    sent, forced = multicasts(servers), servers.world.counts["forced writes"]
    for number, name in enumerate(names.split()):
        servers[name].submit(f"append l1 {number}")
        servers.wait(0.1)
    assert all(len(servers[name].answers) == 1 for name in servers.names)
    assert multicasts(servers) - sent == 14
    assert servers.world.counts["forced writes"] - forced == 14 * (13 + 2), "its creator's body is forced before"
    ends_as_one(servers)


SCENARIOS = catalogue(repl_01, repl_02, repl_03, repl_04, repl_29, repl_32, repl_33, repl_55, repl_60)
