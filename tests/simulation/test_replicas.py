"""What the simulator gives to replicas: clients, databases, blackouts, and rows that a core cannot forge."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from greenline.database.sqlite import MemorySqlite
from greenline.kernel import evidence
from greenline.kernel.actions import Action, pack
from greenline.kernel.core import Chance
from greenline.kernel.database import DATABASE, Applied, Apply, Commit, Committed, Open, Opened
from greenline.kernel.effects import Call, Effect, Trace
from greenline.kernel.events import Answered, Downcall, Event, Upcall
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.kernel.router import Layer
from greenline.replication.port import Level
from greenline.simulation.cluster import Cluster
from greenline.simulation.coverage import life_of_an_engine
from greenline.simulation.databases import Databases
from greenline.simulation.farm import Batch, Farm
from greenline.simulation.faults import Blackout, Crash
from greenline.simulation.plan import Plan, draw_plan
from greenline.simulation.play import End, play
from greenline.simulation.requests import Request
from greenline.simulation.shrink import shrink
from greenline.simulation.subjects import ENGINE_OVER_ADVERSARY, ENGINE_OVER_RING, NOTICEBOARD, SUBJECTS, Subject
from greenline.simulation.world import World

ENGINES = [ENGINE_OVER_ADVERSARY, ENGINE_OVER_RING]


def replicas(names: str = "p q r") -> Cluster:
    return Cluster(names, subject=ENGINE_OVER_RING).settle()


def of_clients(rows: list[Row], *kinds: str) -> list[Row]:
    return [row for row in rows if row.process == evidence.WORLD and row.kind in kinds]


# Clients.


def test_a_client_is_told_what_its_operations_came_to() -> None:
    replica = replicas()
    replica["p"].submit("append l1 7", "read l1")
    replica["q"].submit("transfer a1 a2 500", level=Level.QUORUM)
    replica.settle()
    assert replica["p"].answers == ["l1 7", "l1 7"]
    assert replica["q"].answers == ["refused"]
    assert replica["p"].accepted == replica["q"].accepted == 1
    assert len({replica[name].database for name in "pqr"}) == 1
    assert {replica[name].position for name in "pqr"} == {2}
    assert {replica[name].state for name in "pqr"} == {"RegPrim"}


def test_what_clients_see_is_written_by_one_clock() -> None:
    replica = replicas()
    replica["p"].submit("append l1 7", "append l1 8", level=Level.QUORUM)
    replica.settle()
    rows = of_clients(replica.rows, "call", "return")
    assert [(row.kind, row.message, row.colour, row.sub, row.detail) for row in rows] == [
        ("call", "at-p/1", None, None, "append l1 7"),
        ("call", "at-p/2", None, None, "append l1 8"),
        ("return", "at-p/1", "red", None, None),
        ("return", "at-p/2", "red", None, None),
        ("return", "at-p/1", "green", 0, "l1 7"),
        ("return", "at-p/2", "green", 1, "l1 7 8"),
    ]
    assert {row.service for row in rows} == {"quorum"}
    assert {row.members for row in rows} == {"p"}
    assert [row.position for row in rows if row.colour == "green"] == [1, 1]
    finals = of_clients(replica.quiet_rows(), "final")
    assert [(row.members, row.position, row.sub) for row in finals] == [("p", 1, 0), ("q", 1, 0), ("r", 1, 0)]
    assert len({row.digest for row in finals}) == 1


def test_who_is_down_is_not_asked() -> None:
    replica = replicas().crash("p")
    with pytest.raises(ValueError, match="p is down"):
        replica["p"].submit("total")
    with pytest.raises(TypeError, match="p is no replica"):
        _ = Cluster("p q").settle()["p"].answers


def asked(*texts: str, window: int = 1, server: str = "p") -> Cluster:
    replica = replicas()
    for text in texts:
        assert replica.world[server].app.take(Request(0.0, server, text, Service.SAFE, Level.LOCAL, window))
    return replica


def test_a_sequential_session_waits_for_its_answer_and_a_pipelined_one_does_not() -> None:
    texts = [f"s1/{number} append l1 {number}" for number in (1, 2, 3)]
    assert len(of_clients(asked(*texts).rows, "call")) == 1
    assert len(of_clients(asked(*texts, window=2).rows, "call")) == 2
    replica = asked(*texts).settle()
    greens = [row.kind for row in of_clients(replica.rows, "call", "return") if row.colour != "red"]
    assert greens == ["call", "return"] * 3
    assert replica["p"].answers == ["l1 1", "l1 1 2", "l1 1 2 3"]


def test_a_session_moves_on_to_another_server_and_gives_up_what_it_has_not_asked() -> None:
    replica = asked("s1/1 append l1 1", "s1/2 append l1 2")
    assert replica.world["q"].app.take(Request(0.0, "q", "s1/3 read l1", Service.SAFE, Level.LOCAL))
    calls = [row.message for row in of_clients(replica.settle().rows, "call")]
    assert calls == ["s1/1", "s1/3"]
    assert replica.world.counts["requests given up by those who moved on"] == 1


def test_what_a_dead_server_was_asked_stays_unanswered() -> None:
    replica = asked("s1/1 append l1 1")
    replica.crash("p").settle().restart("p").settle()
    assert replica.world["p"].app.take(Request(0.0, "p", "s1/2 read l1", Service.SAFE, Level.LOCAL))
    replica.settle()
    assert [row.message for row in of_clients(replica.rows, "return") if row.colour == "green"] == ["s1/2"]


# Databases.


class Clerk:
    """A core that puts to its database whatever it is given, and tells up what comes back."""

    phase = None

    def handle(self, now: float, event: Event) -> list[Effect]:
        match event:
            case Downcall(Trace() as row):
                return [row]
            case Downcall(request):
                return [Call(1, DATABASE, request)]
            case Answered(_, answer):
                return [Upcall(answer)]
        return []


def office() -> tuple[World, Databases]:
    def build(me: ProcId, everybody: tuple[ProcId, ...], chance: Chance) -> list[Layer]:
        return [Layer("clerk", 1, Clerk(), None, None)]

    world = World(("p",), "0", build)
    databases = Databases(world, "0")
    world["p"].start()
    world.run_until(0.1)
    return world, databases


def put(world: World, *requests: object) -> None:
    process = world["p"]
    assert process.router is not None
    for request in requests:
        process.perform(process.router.ask(process.clock(), request))


def bundle(position: int) -> Apply:
    return Apply(position, (pack((Action("s", position, b"append l1 %d" % position),)),))


def test_requests_are_served_in_order_and_leave_rows_among_the_processes_own() -> None:
    world, _ = office()
    put(world, Open(), bundle(1), Commit(1), bundle(2))
    assert world.is_working
    world.run_until(1.0)
    assert not world.is_working
    assert [type(each) for each in world["p"].app.told] == [Opened, Applied, Committed, Applied]
    rows = [row for row in world.rows if row.process == "p"]
    assert [row.local_index for row in rows] == list(range(len(rows)))
    found = [(row.kind, row.layer, row.position, row.sub, row.message) for row in rows[1:]]
    assert found == [
        ("opened", "database", 0, None, None),
        ("apply", "database", 1, 0, "s/1"),
        ("commit", "database", 1, None, None),
        ("apply", "database", 2, 0, "s/2"),
    ]


@pytest.mark.parametrize(("keep", "positions"), [(1.0, {1}), (0.0, {0, 1})])
def test_a_crash_leaves_what_was_committed_and_a_power_loss_perhaps_less(keep: float, positions: set[int]) -> None:
    world, databases = office()
    place = databases.places["p"]
    found = set()
    for _ in range(20):
        place.database = MemorySqlite(image_every=9)
        put(world, bundle(1), Commit(1), bundle(2))
        world.run_until(world.agenda.now + 1.0)
        assert place.database.position == 2
        put(world, Commit(2))
        world["p"].crash(keep)
        found.add(place.database.position)
        world["p"].start()
        world.run_until(world.agenda.now + 1.0)
        assert place.database.position in found, "what a dead life has asked for is not done any more"
    assert found == positions


def test_a_paused_process_has_a_paused_database() -> None:
    world, databases = office()
    put(world, bundle(1))
    world["p"].pause()
    world.run_until(1.0)
    assert databases.places["p"].database.position == 0
    world["p"].resume()
    world.run_until(2.0)
    assert databases.places["p"].database.position == 1


@pytest.mark.parametrize("kind", ["opened", "apply", "commit", "call", "return", "refused", "final"])
def test_a_core_cannot_write_what_its_database_did_or_its_clients_saw(kind: str) -> None:
    world, _ = office()
    put(world, Trace(kind))
    assert not world["p"].is_up
    assert world.rows[-1].kind == "halt"
    assert f"may not write evidence of kind {kind}" in (world.rows[-1].detail or "")


# Plans.


@pytest.mark.parametrize("subject", ENGINES)
def test_a_plan_is_data_and_the_run_is_decided_by_it(subject: Subject) -> None:
    plan = draw_plan(subject, 3, 3, "storm")
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
    assert SUBJECTS[plan.core] is subject
    first, second = play(plan), play(plan)
    assert first.rows == second.rows


@pytest.mark.slow
@pytest.mark.parametrize("subject", ENGINES)
def test_storms_over_replicas_leave_the_same_trace_under_another_hash_seed(subject: Subject) -> None:
    with Farm(2) as farm:
        one, other = farm.everywhere(Batch(tuple(draw_plan(subject, seed, 4, "storm") for seed in range(4))))
    assert [report.trace_hash for report in one] == [report.trace_hash for report in other]


def test_operations_are_numbered_by_session_and_write_each_value_once() -> None:
    levels: Counter[Level | None] = Counter()
    for seed in range(20):
        parts = []
        for request in draw_plan(ENGINE_OVER_RING, seed, 5, "calm").requests:
            levels[request.level] += 1
            parts += request.text.split(" ; ")
        numbers: dict[str, list[int]] = {}
        for part in parts:
            session, _, number = part.split(" ")[0].partition("/")
            numbers.setdefault(session, []).append(int(number))
        assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())
        written = [part.split(" ")[-1] for part in parts if "append" in part or "write" in part]
        assert len(set(written)) == len(written)
    assert levels[Level.LOCAL] > levels[Level.QUORUM] > 0 < levels[Level.MEMORY]


def test_everything_goes_dark_in_some_storms_of_replicas_and_in_no_others() -> None:
    def dark(subject: Subject, profile: str) -> int:
        plans = [draw_plan(subject, seed, 5, profile) for seed in range(100)]
        return sum(any(isinstance(fault, Blackout) for fault in plan.schedule) for plan in plans)

    assert 10 <= dark(ENGINE_OVER_RING, "storm") <= 30
    assert dark(ENGINE_OVER_RING, "flapping") == dark(NOTICEBOARD, "storm") == 0


def test_a_blackout_takes_everybody_and_they_return_one_by_one() -> None:
    board = Cluster("p q r").settle()
    at = board.world.agenda.now
    crashes = tuple(Crash(at=0.01 * n, until=0.5 + 0.1 * n, process=name) for n, name in enumerate("pqr"))
    board.world.begin(Blackout(at=at, until=at + 1.0, crashes=crashes))
    board.wait(0.1)
    assert not any(board.world[name].is_up for name in "pqr")
    board.wait(0.45)
    assert [name for name in "pqr" if board.world[name].is_up] == ["p"]
    board.settle()
    assert all(board.world[name].is_up for name in "pqr")


def test_a_blackout_is_made_plainer_and_smaller() -> None:
    crashes = tuple(Crash(at=0.0, until=0.5, process=name, orders=3, keep=0.5, tear=True) for name in "pqr")
    dark = Blackout(at=1.0, until=1.5, crashes=crashes)
    assert dark.names() == {"p", "q", "r"}
    plan = msgspec.structs.replace(draw_plan(NOTICEBOARD, 1, 3, "calm"), schedule=(dark,), requests=())
    (left,) = shrink(plan, lambda candidate: bool(candidate.schedule) and len(candidate.names) == 3).schedule
    assert isinstance(left, Blackout)
    assert {(crash.orders, crash.keep, crash.tear) for crash in left.crashes} == {(0, 0.0, False)}
    only = dark.without("q")
    assert only is not None
    assert only.names() == {"p", "r"}


# What is counted.


def test_what_a_run_of_replicas_went_through_is_counted() -> None:
    def row(process: str, kind: str, life: int = 1, **columns: str) -> Row:
        return Row(process, life, 0, 0.0, kind, **columns)  # type: ignore[arg-type]

    found = life_of_an_engine(
        [
            *(row("p", "start"), row("q", "start")),
            row("p", "phase", layer="engine", detail="Un"),
            row("p", "phase", layer="engine", detail="TransPrim"),
            row("q", "phase", layer="engine", detail="Un"),
            row("q", "vulnerable", detail="valid un"),
            row("p", "mark", colour="yellow", detail="TransPrim"),
            row("p", "mark", colour="green", detail="OR-1.1 RegPrim"),
            *(row("p", "crash"), row("q", "crash")),
            *(row("p", "start", 2), row("q", "start", 2)),
            *(row("p", "install", 2), row("q", "install", 2)),
            *(row("*", "call", service="local"), row("*", "refused")),
        ]
    )
    assert found == {
        "entries into Un": 2,
        "entries into TransPrim": 1,
        "Un left by an action": 1,
        "Un left by a crash": 1,
        "yellow marks": 1,
        "bundles greened by OR-1.1": 1,
        "restarts": 2,
        "recoveries while vulnerable": 1,
        "installs": 2,
        "total crashes survived": 1,
        "calls, local": 1,
        "refused submissions": 1,
    }


def test_crashes_are_counted_by_the_order_that_they_came_before() -> None:
    replica = replicas().crash("p", after_orders=1)
    replica["p"].submit("append l1 1")
    replica.settle()
    counted = {name: count for name, count in replica.world.counts.items() if name.startswith("crashes before")}
    assert sum(counted.values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("subject", ENGINES)
def test_storms_reach_what_is_rare(subject: Subject) -> None:
    seen: Counter[str] = Counter()
    for seed in range(12):
        run = play(draw_plan(subject, seed, 5, "storm"))
        assert run.end is End.QUIET
        seen += run.counts
    for what in ("installs", "yellow marks", "recoveries while vulnerable", "databases that lost power", "restarts"):
        assert seen[what], what
