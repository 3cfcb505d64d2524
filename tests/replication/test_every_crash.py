"""A server crashes before each thing that it does while components merge that have greens, yellows and reds to give.

The merge is played once to see what a server does; then once for every write, forced write, packet, request to the
database and answer, with a crash of its server just before it: what was not forced by then is lost. After each write
also with a crash that keeps it, and one that tears it. (Timers are passed over: to crash before one is set is to crash
before what comes after it.) All runs are judged together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Arm, Disarm, Order, Record, Write
from greenline.ring.messages import Regular
from greenline.simulation.cluster import Cluster
from greenline.simulation.load import replica_of
from greenline.simulation.process import Process
from greenline.simulation.subjects import engine_with
from greenline.spec.judge import Judge
from greenline.trace.tables import to_table

SEED = 6
VICTIMS = "ps"
"""Who gives most in the merge, and who is given most."""
REPLICAS = replace(engine_with(), quiet_for=2.0)


def in_three_components() -> Cluster:
    """s has been away while greens were made; the last of p is yellow at p, q and r, as the network fell apart when
    they had it and did not know of each other; all but q have reds. Nobody is in a primary component."""
    replicas = Cluster("p q r s", SEED, REPLICAS).settle()
    replicas.partition("p q r | s").settle()
    for number, name in enumerate("pqr"):
        replicas[name].submit(f"append l1 {number}", f"transfer a{number + 1} a{(number + 1) % 3 + 1} 10")
    replicas.settle()
    packets = replicas.watch(Regular, frm="p", to="q r")
    replicas["p"].submit("append l1 10")
    replicas.wait_until(lambda: len(packets) == 2).wait(0.0012).let_be()
    replicas.partition("p | q | r | s").settle()
    for number, name in enumerate("prs"):
        replicas[name].submit(f"append l2 {number}")
    return replicas.settle()


def merge(victim: ProcId | None = None, orders: int = 0, keep: float = 0.0, tear: bool = False) -> Cluster:
    replicas = in_three_components()
    if victim is not None:
        replicas.crash(victim, after_orders=orders, keep=keep, tear=tear)
    replicas.heal()
    if victim is not None:
        replicas.wait_until(lambda: not replicas.world[victim].is_up).wait(0.1).restart(victim)
    replicas.wait_until(lambda: all(replicas.world[name].is_running for name in replicas.names))
    for number, name in enumerate(replicas.names):
        replicas[name].submit(f"append l3 {number}")
    return replicas.settle()


def what_they_do() -> dict[ProcId, list[type[Any]]]:
    """In the merge, while nobody crashes: from the healing until all are one component."""
    replicas = in_three_components()
    done: dict[ProcId, list[type[Any]]] = {name: [] for name in replicas.names}

    def watch(process: Process) -> None:
        perform = process.perform

        def look(orders: list[Order]) -> None:
            done[process.name] += [type(order) for order in orders if not isinstance(order, Record | Disarm)]
            perform(orders)

        process.perform = look  # type: ignore[method-assign]

    for name in replicas.names:
        watch(replicas.world[name])
    replicas.heal().wait(0.6)
    return done


def crashes(done: dict[ProcId, list[type[Any]]]) -> Iterator[tuple[ProcId, int, float, bool]]:
    for victim in VICTIMS:
        for place, kind in enumerate(done[victim]):
            if kind is not Arm:
                yield victim, place, 0.0, False
            if place and done[victim][place - 1] is Write:
                yield victim, place, 1.0, False
                yield victim, place, 0.0, True


def test_the_merge_has_all_colours_in_play() -> None:
    replicas = in_three_components()
    before = len(replicas.rows)
    p, s = (replica_of(replicas.world, name) for name in "ps")
    assert (p.green, s.green, len(p.yellow.ids), len(p.reds()), len(s.reds())) == (3, 0, 1, 2, 1)
    replicas.heal().settle()
    marks = [row for row in replicas.rows[before:] if row.kind == "mark" and row.colour == "green"]
    assert {(row.detail or "").split()[0] for row in marks} == {"OR-1.2", "OR-2", "OR-3"}
    assert replicas.broken_rules() == []


@pytest.mark.slow
def test_a_crash_before_anything_that_a_server_does_in_a_merge_breaks_no_rule() -> None:
    done = what_they_do()
    runs: list[tuple[str, list[Row]]] = []
    for victim, orders, keep, tear in crashes(done):
        name = f"{victim} before {orders} keeps {keep:g}{' torn' if tear else ''}"
        replicas = merge(victim, orders, keep, tear)
        runs.append((name, replicas.quiet_rows()))
        assert {replicas[each].position for each in "pqrs"} == {replicas["p"].position}, name
        assert {replicas[each].state for each in "pqrs"} == {"RegPrim"}, name
    assert len(runs) > 90
    assert Judge(REPLICAS.rules).broken(to_table(runs)) == []
