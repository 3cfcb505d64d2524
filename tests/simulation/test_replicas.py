"""What the simulator gives to replicas: databases, blackouts, a workload, and rows that a core cannot forge."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from greenline.database.memory import MemorySqlite
from greenline.kernel.actions import Action, pack
from greenline.kernel.core import Chance
from greenline.kernel.database import (
    DATABASE,
    Applied,
    Apply,
    Chunk,
    Commit,
    Committed,
    Open,
    Opened,
    Restore,
    SnapshotBegin,
    SnapshotChunk,
    SnapshotHeld,
    Stage,
)
from greenline.kernel.effects import Call, Effect, Trace
from greenline.kernel.events import Answered, Downcall, Event, Upcall
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.router import Layer
from greenline.replication.port import Level, Reads
from greenline.simulation.cluster import Cluster
from greenline.simulation.databases import Databases
from greenline.simulation.engine_coverage import life_of_an_engine
from greenline.simulation.farm import Batch, Farm
from greenline.simulation.faults import Blackout, Crash
from greenline.simulation.plan import Plan, draw_plan
from greenline.simulation.play import End, play
from greenline.simulation.shrink import shrink
from greenline.simulation.subjects import ENGINE_OVER_ADVERSARY, ENGINE_OVER_RING, NOTICEBOARD, SUBJECTS, Subject
from greenline.simulation.wishes import Lookup, Revision, Update, wish_of
from greenline.simulation.world import World

ENGINES = [ENGINE_OVER_ADVERSARY, ENGINE_OVER_RING]


def replicas(names: str = "p q r") -> Cluster:
    return Cluster(names, subject=ENGINE_OVER_RING).settle()


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
    found = [(row.kind, row.layer, row.position, row.sub, row.message, row.detail) for row in rows[1:]]
    assert found == [
        ("opened", "database", 0, None, None, None),
        ("apply", "database", 1, 0, "s/1", "done"),
        ("commit", "database", 1, None, None, None),
        ("apply", "database", 2, 0, "s/2", "done"),
    ]


def test_a_database_that_becomes_what_another_was_says_so_and_what_is_asked_again_is_not_done_again() -> None:
    world, databases = office()
    put(world, bundle(1), Commit(1))
    world.run_until(1.0)
    source = databases.places["p"].database
    held = source.answer(SnapshotBegin())
    assert isinstance(held, SnapshotHeld)
    chunks = [source.answer(SnapshotChunk(held.position, number)) for number in range(len(held.digests))]
    databases.places["p"].database = MemorySqlite()
    put(world, *(Stage(chunk.data) for chunk in chunks if isinstance(chunk, Chunk)))
    put(world, Restore(held.position, held.digests, b""), Apply(2, (pack((Action("s", 1, b"append l1 1"),)),)))
    world.run_until(2.0)
    found = [(row.kind, row.layer, row.position, row.detail) for row in world.rows if row.process == "p"][-2:]
    assert found == [("restored", "database", 1, None), ("apply", "database", 2, "again")]
    assert databases.query("p", "read l1") == "l1 1"


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


@pytest.mark.parametrize("kind", ["opened", "apply", "commit", "call", "return", "refused", "final", "gone"])
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
        one, other = farm.everywhere(Batch(tuple(draw_plan(subject, seed, 4, "storm") for seed in range(2))))
    assert [report.trace_hash for report in one] == [report.trace_hash for report in other]


def test_every_value_is_written_once_and_every_kind_of_request_is_drawn() -> None:
    levels: Counter[Level | None] = Counter()
    kinds: Counter[str] = Counter()
    for seed in range(20):
        written = []
        for request in draw_plan(ENGINE_OVER_RING, seed, 5, "calm").requests:
            levels[request.level] += 1
            wish = wish_of(request)
            kinds[type(wish).__name__] += 1
            match wish:
                case Update(_, bodies, _, is_relaxed):
                    kinds["relaxed"] += is_relaxed
                    written += [body.split(" ")[-1] for body in bodies if body.startswith(("append", "write", "put"))]
                case Lookup(_, _, reads, is_patient):
                    kinds[reads] += 1
                    kinds["impatient"] += not is_patient
                case Revision(_, _, value):
                    written.append(str(value))
        assert len(set(written)) == len(written)
    assert levels[Level.LOCAL] > levels[Level.QUORUM] > 0 < levels[Level.MEMORY]
    wishes = {"Update", "Lookup", "Revision", "Activation", "Expiry"}
    assert set(kinds) == wishes | set(Reads) | {"relaxed", "impatient"}


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
        "refused": 1,
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
    for seed in range(10):
        run = play(draw_plan(subject, seed, 4, "storm"))
        assert run.end is End.QUIET, run.rows[-1].detail
        seen += run.counts
    for what in (
        *("installs", "yellow marks", "recoveries while vulnerable", "databases that lost power", "restarts"),
        *("transfers", "databases restored", "changes: join done", "changes: leave done", "changes: weigh done"),
        *("joins that an exchange or a new component made green", "leaves of members of the component"),
        *("requests asked again in another component", "requests answered from what was kept", "conflicts"),
        *("dirty reads that saw red", "relaxed updates accepted outside a primary component"),
    ):
        assert seen[what], what
