"""One partition of a load at real nodes, without Spark: attempts one after the other and at once, alike and not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from greenline.cli.local import Local
from greenline.client import Client, SerializationFailure
from greenline.pipeline import sink_ledger
from greenline.pipeline.sink_ledger import LEDGER, Load
from greenline.pipeline.sink_partition import MOST_BYTES, Partition, Stopped
from greenline.pipeline.sink_values import Unfit, rows_of
from tests.node.databases import client, databases, until_primary

pytestmark = pytest.mark.slow

TABLE = "CREATE TABLE {} (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"
ROWS = 1000


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with databases(tmp_path_factory.mktemp("cluster"), "p q r") as local:
        yield local


def told(local: Local, story: Callable[[Client, Client], Coroutine[Any, Any, None]]) -> None:
    """By two clients, as two attempts have."""

    async def both() -> None:
        async with client(local) as one, client(local) as other:
            await story(one, other)

    asyncio.run(both())


def of(table: str, *, name: str = "", rows_in_batch: int = 10) -> Load:
    return Load(name or table, table, ("id", "text"), rows_in_batch, None)


def rows(*ids: range, size: int = 64, text: str = "text") -> Iterator[pa.RecordBatch]:
    """As Spark hands them over: so many at a time."""
    every = [number for some in ids for number in some]
    for start in range(0, len(every), size):
        some = every[start : start + size]
        yield pa.record_batch({"id": some, "text": [f"{text} {number}" for number in some]})


async def prepare(db: Client, load: Load) -> None:
    await db.execute(TABLE.format(load.table))
    await sink_ledger.begin(db, load, 30)


async def fill(db: Client, load: Load, what: Iterator[pa.RecordBatch], timeout: float = 30) -> int:
    """All of it, as a task and the driver do together."""
    partition = Partition(db, load, 0, timeout)
    return await partition.finish(await partition.fill(what))


async def ids(db: Client, load: Load) -> list[int]:
    return [id_ for (id_,) in await db.query(f"SELECT id FROM {load.table} ORDER BY id")]


def breaking(what: Iterator[pa.RecordBatch], after: int) -> Iterator[pa.RecordBatch]:
    for _ in range(after):
        yield next(what)
    raise ConnectionError("the executor is lost")


def test_an_attempt_that_breaks_off_is_taken_up_and_one_that_comes_late_changes_nothing(local: Local) -> None:
    """Also with other batches from Spark: how it hands rows over is not what is loaded."""
    load = of("taken_up")

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)
        with pytest.raises(ConnectionError):
            await fill(one, load, breaking(rows(range(ROWS)), after=5))
        begun = await sink_ledger.total(one, load.name, 30)
        assert 0 < begun < ROWS

        assert await fill(other, load, rows(range(ROWS), size=7)) == ROWS
        assert await fill(one, load, rows(range(ROWS))) == ROWS
        assert await ids(one, load) == list(range(ROWS))
        assert await sink_ledger.total(one, load.name, 30) == ROWS

    told(local, story)


def test_an_attempt_whose_input_ends_too_early_does_no_harm(local: Local) -> None:
    """When what feeds a task is lost, Spark closes the stream as if that were all; and nobody hears of the task."""
    load = of("too_early")

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)
        lost = await Partition(one, load, 0, 30).fill(rows(range(555)))
        assert len(lost.rows) == 5
        assert await ids(one, load) == list(range(550))

        assert await fill(other, load, rows(range(ROWS))) == ROWS
        await Partition(one, load, 0, 30).fill(rows(range(555)))
        assert await ids(one, load) == list(range(ROWS))

    told(local, story)


def test_attempts_at_the_same_time_share_the_work(local: Local) -> None:
    load = of("at_once")

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)
        filled = await asyncio.gather(*(fill(db, load, rows(range(ROWS))) for db in (one, other, one, other)))
        assert filled == [ROWS] * 4
        assert await ids(one, load) == list(range(ROWS))

    told(local, story)


@pytest.mark.parametrize(
    ("table", "second"),
    [
        ("other_rows", [range(500), range(2000, 2500)]),
        ("other_order", [range(20, 500), range(20), range(500, ROWS)]),
        ("fewer", [range(490)]),
        ("more", [range(ROWS + 1)]),
        ("none", []),
    ],
)
def test_an_attempt_with_other_rows_is_refused(local: Local, table: str, second: list[range]) -> None:
    """Its input was computed anew and came out different. Silence would lose rows, or have them twice."""
    load = of(table)

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)
        await fill(one, load, rows(range(ROWS)))
        with pytest.raises(Stopped, match="this attempt has other rows"):
            await fill(other, load, rows(*second))
        assert await ids(one, load) == list(range(ROWS))

    told(local, story)


def test_attempts_at_the_same_time_that_differ_do_not_mix(local: Local) -> None:
    """One of them is refused, and what is loaded is a beginning of the other, or all of it."""
    load = of("mixed")
    up, down = range(ROWS), range(ROWS - 1, -1, -1)

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)
        came = await asyncio.gather(fill(one, load, rows(up)), fill(other, load, rows(down)), return_exceptions=True)
        assert sum(isinstance(each, Stopped) for each in came) == 1
        assert ROWS in came
        assert await ids(one, load) == list(range(ROWS))

    told(local, story)


def test_a_batch_continues_nothing_but_its_own_beginning(local: Local) -> None:
    """It may be on its way while another attempt does the batch before it, with other rows or as the last one."""
    load = of("continued")
    mine, theirs, more = [(1, "mine")], [(1, "theirs")], [(2, "more")]

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)
        for partition, rows_there, is_last in ((0, theirs, False), (1, mine, True)):
            await one.execute("DELETE FROM continued")
            there = load.beginning.after(rows_there, is_last)
            await one.write(load.action(partition, load.beginning, there, rows_there))

            here = load.beginning.after(mine, is_last=False)
            with pytest.raises(SerializationFailure):
                await other.write(load.action(partition, here, here.after(more, is_last=False), more))
            assert await ids(one, load) == [1]

    told(local, story)


def test_a_row_that_breaks_a_constraint_is_named_and_what_is_before_it_stays(local: Local) -> None:
    load = of("constrained")

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)
        await one.execute("INSERT INTO constrained VALUES (537, 'was there')")
        with pytest.raises(Stopped) as stopped:
            await fill(one, load, rows(range(ROWS)))
        why = str(stopped.value)
        assert "its row 538 was refused: UNIQUE constraint failed: constrained.id (id=537, text='text 537')" in why
        assert "Its first 530 rows are in constrained and stay" in why
        assert await ids(one, load) == [*range(530), 537]

        await one.execute("DELETE FROM constrained WHERE id = 537")
        assert await fill(other, load, rows(range(ROWS))) == ROWS
        assert await ids(one, load) == list(range(ROWS))

    told(local, story)


def test_a_ledger_that_was_set_back_stops_the_load(local: Local) -> None:
    load = of("set_back")

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)

        def meddling() -> Iterator[pa.RecordBatch]:
            every = rows(range(ROWS), size=200)
            yield next(every)
            forget = other.execute(f"DELETE FROM {LEDGER} WHERE load = 'set_back' AND partition = 0")
            asyncio.run_coroutine_threadsafe(forget, loop).result()
            yield from every

        loop = asyncio.get_running_loop()
        with pytest.raises(Stopped, match=f"somebody has set {LEDGER} back"):
            await fill(one, load, meddling())

    told(local, story)


def test_batches_of_large_rows_are_cut_until_they_fit(local: Local) -> None:
    load = of("large", rows_in_batch=100)

    async def story(one: Client, other: Client) -> None:
        await prepare(one, load)
        large = "x" * (MOST_BYTES // 4)
        assert await fill(one, load, rows(range(10), text=large)) == 10
        assert await fill(other, load, rows(range(10), size=3, text=large)) == 10
        assert await ids(one, load) == list(range(10))

        with pytest.raises(Stopped, match=r"an action of .* bytes: at most"):
            await fill(one, of("large", name="too large"), rows(range(20, 21), text=large * 5))

    told(local, story)


def test_batches_of_many_columns_are_cut_until_their_words_fit(local: Local) -> None:
    """Of short values it is the SQL around them that is long."""
    names = [f"a_column_with_quite_a_long_name_{number}" for number in range(100)]
    load = Load("wide", "wide", tuple(names), 1000, None)
    wide = pa.record_batch({name: list(range(3000)) for name in names})

    async def story(one: Client, _: Client) -> None:
        await one.execute(f"CREATE TABLE wide ({', '.join(names)})")
        await sink_ledger.begin(one, load, 30)
        assert await fill(one, load, iter([wide])) == 3000
        assert (await one.query(f"SELECT count(*), sum({names[-1]}) FROM wide")).rows == ((3000, sum(range(3000))),)

    told(local, story)


@pytest.mark.long
def test_replicas_die_and_the_majority_with_them_and_the_load_goes_on_when_it_is_back(tmp_path: Path) -> None:
    load = of("dying", rows_in_batch=20)

    async def story(local: Local) -> None:
        async with client(local) as db:
            await prepare(db, load)

            def killing(*victims: str) -> Iterator[pa.RecordBatch]:
                every = rows(range(ROWS), size=100)
                for _ in range(5):
                    yield next(every)
                for victim in victims:
                    local.kill(victim)
                yield from every

            assert db.component is not None
            served_by = db.component.server
            left, other = sorted(set(local.names) - {served_by})
            with pytest.raises(Stopped, match="the cluster has not answered for 3 s: is there a primary component"):
                await fill(db, load, killing(served_by, other), timeout=3)

            await asyncio.to_thread(local.restart, other)
            await asyncio.to_thread(until_primary, local, " ".join(sorted((left, other))))
            assert await fill(db, load, rows(range(ROWS))) == ROWS
            assert await ids(db, load) == list(range(ROWS))

    with databases(tmp_path, "p q r") as local:
        asyncio.run(story(local))


def test_values_are_kept_or_refused() -> None:
    whole, exact = (
        pa.array([Decimal(12), None], pa.decimal128(18, 0)),
        pa.array([Decimal("1E-9")], pa.decimal128(38, 9)),
    )
    assert rows_of(pa.record_batch({"a": whole})) == [(12,), (None,)]
    assert rows_of(pa.record_batch({"a": exact})) == [("0.000000001",)]
    moment = pa.array([1_777_636_800_000_001], pa.timestamp("us", "America/New_York"))
    assert rows_of(pa.record_batch({"a": moment})) == [("2026-05-01 12:00:00.000001",)]
    for last in (pa.array([2**63 - 1], pa.timestamp("us", "UTC")), pa.array([3_663_378, -800_000], pa.date32())):
        with pytest.raises(Unfit, match="column a has a time outside of the years 1 to 9999"):
            rows_of(pa.record_batch({"a": last}))
    assert rows_of(pa.record_batch({"a": pa.array([-719_162, None], pa.date32())})) == [("0001-01-01",), (None,)]
    with pytest.raises(Unfit, match="column a has a NaN"):
        rows_of(pa.record_batch({"a": [1.0, float("nan"), None]}))
