"""Admission: with whom no meeting can be held. Whoever is refused stops; the others go on without it (GAP 31, 34)."""

from __future__ import annotations

from greenline.database.memory import MemorySqlite
from greenline.kernel import evidence
from greenline.simulation.desk import Desk
from greenline.simulation.scenarios.replication_exchange import submit_one_by_one
from greenline.simulation.scenarios.stage import Stage, are_in, catalogue, power_fails, reds, replica
from greenline.simulation.scripted import Scripted

DOWN_AT_THE_END = frozenset({"run/2_everybody_is_up"})
OTHER_VOTES = frozenset({"replication/05_2_one_outcome_of_an_attempt"})
TWO_OF_ONE_NAME = frozenset({"replication/15_ids_are_never_reused", "run/1_nothing_impossible"})
AN_OLD_DISK = frozenset({"replication/08_1_recovery_keeps_the_order", "replication/08_2_recovery_keeps_own_bundles"})


def why_it_halted(servers: Scripted, name: str) -> str:
    return next((str(row.detail) for row in servers.rows if row.kind == evidence.HALT and row.process == name), "")


def goes_on_without(servers: Scripted, name: str, because: str) -> None:
    """It is refused and stops; when it has left, the others are a primary component."""
    servers.form(" ".join(servers.names)).settle()
    assert because in why_it_halted(servers, name), why_it_halted(servers, name)
    others = " ".join(other for other in servers.names if other != name)
    servers.form(others).settle()
    assert are_in(servers, "RegPrim", others)


def give_it_an_empty_database(servers: Scripted, name: str) -> None:
    desk = servers.world[name].app
    assert isinstance(desk, Desk)
    desk.load.databases.places[name].database = MemorySqlite()


def repl_52(stage: Stage) -> None:
    """r comes back with an old disk, and has forgotten what it agreed to, said or stored: the others remember."""
    stage.forgiven = DOWN_AT_THE_END | AN_OLD_DISK
    for asked, because in (("", "saw it agree"), ("r", "knows only 0 of its own"), ("p", "on disk, but it has 0")):
        servers = stage.script("p q r")
        old = servers.image("r")
        servers.form("p q r").settle()
        if asked:
            submit_one_by_one(servers, asked, range(1, 4))
            servers.settle()
        power_fails(servers, "r")
        servers.restore("r", old)
        give_it_an_empty_database(servers, "r")
        servers.restart("r").settle()
        goes_on_without(servers, "r", because)


def repl_53(stage: Stage) -> None:
    """r was started with other servers, or is of another cluster: nobody meets it, and it says so."""
    stage.forgiven = DOWN_AT_THE_END | OTHER_VOTES
    for odd in ({"salt": "another"}, {"servers": ("q", "r")}):
        servers = stage.script("p q r", odd={"r": odd})
        goes_on_without(servers, "r", "other servers, weights or salt")


def repl_65(stage: Stage) -> None:
    """The order that r knows is not the others': it is told so and stops, and nothing is repaired in silence."""
    stage.forgiven = DOWN_AT_THE_END
    servers = stage.script("p q r").form("p q r").settle()
    submit_one_by_one(servers, "p", range(1, 4))
    servers.settle()
    replica(servers, "r").digests[-1] = bytes(16)
    goes_on_without(servers, "r", "its order up to position 3 differs")


def repl_83(stage: Stage) -> None:
    """r comes back with an old disk and uses its numbers again, alone. When it meets q, who has the first ones, the
    contents differ: nobody orders both."""
    stage.forgiven = DOWN_AT_THE_END | AN_OLD_DISK | TWO_OF_ONE_NAME
    servers = stage.script("p q r s t").form("p q r s t").settle().form("p s t | q r").settle()
    old = servers.image("r")
    submit_one_by_one(servers, "r", range(2))
    assert reds(servers.settle(), "q") == ["r#1", "r#2"]
    power_fails(servers, "r")
    servers.restore("r", old).restart("r").settle()
    submit_one_by_one(servers, "r", range(91, 93))

    servers.settle().heal().settle()
    halted = {row.process for row in servers.rows if row.kind == evidence.HALT}
    assert "r" in halted or "q" in halted
    left = [name for name in servers.names if name not in halted]
    servers.form(" ".join(left)).settle()
    assert len({servers[name].database for name in left}) == 1


def repl_84(stage: Stage) -> None:
    """The disk of r hangs, its process does not: nobody can meet without its State. It stops, and the others go on."""
    stage.forgiven = DOWN_AT_THE_END
    servers = stage.script("p q r s", disk_patience_s=5.0).form("p q r").settle().hang("r")
    servers["p"].submit("append l1 1")
    servers.wait(0.2).form("p q r s")
    servers["p"].submit("append l1 2")
    servers.wait(12.0)
    assert [row.process for row in servers.rows if row.kind == evidence.HALT] == ["r"]
    servers.form("p q s").settle()
    assert are_in(servers, "RegPrim", "p q s")
    assert servers["p"].answers[-1] == "l1 1 2"


SCENARIOS = catalogue(repl_52, repl_53, repl_65, repl_83, repl_84)
