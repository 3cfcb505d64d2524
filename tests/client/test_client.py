"""What callers ask, and what they are told, while nothing goes wrong."""

from __future__ import annotations

import asyncio
import datetime

import pytest

from greenline.client import (
    Colour,
    DataError,
    Identity,
    IntegrityError,
    InterfaceError,
    OperationalError,
    OutcomeUnknown,
    ProgrammingError,
    Refused,
)
from greenline.kernel.actions import unpack
from greenline.node.edge import Limits
from tests.client.places import CREDENTIAL, INSERT, TABLE, Stage, client, play, until
from tests.client.server import PASSWORD


def test_an_answer_says_what_came_of_it_and_where() -> None:
    async def story(stage: Stage) -> None:
        async with client(await stage.server("p")) as db:
            await db.execute(TABLE)
            written = await db.execute(INSERT, ("x",), level="quorum")

            assert (written.changes, written.last_id, written.rows) == (1, 1, ())
            assert (written.colour, written.position, written.sub) == (Colour.GREEN, 2, 0)
            assert written.level == "quorum"
            assert written.component is not None
            assert written.component.server == "p"

            rows = await db.query("SELECT a, b FROM t WHERE b = :b", {"b": "x"})
            assert (rows.columns, list(rows), rows.position) == (("a", "b"), [(1, "x")], 2)
            assert rows.consistency == "strict"

    play(story)


def test_a_statement_that_fails_raises_what_sqlite_says_and_where_it_was_decided() -> None:
    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            await db.execute(TABLE)
            await db.execute("INSERT INTO t VALUES (1, 'x')")

            with pytest.raises(IntegrityError, match="UNIQUE") as broken:
                await db.execute("INSERT INTO t VALUES (1, 'y')")
            assert (broken.value.code, broken.value.position) == (1555, 3)
            with pytest.raises(ProgrammingError, match="no such table"):
                await db.query("SELECT * FROM u")
            assert stage.written == ["x"]

    play(story)


def test_several_statements_are_one_action_or_nothing() -> None:
    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            both = await db.together([(TABLE, ()), (INSERT, ("x",))])
            assert [result.changes for result in both.results] == [0, 1]

            with pytest.raises(IntegrityError):
                await db.together([(INSERT, ("y",)), ("INSERT INTO t VALUES (1, 'z')", ())])
            assert stage.written == ["x"]

    play(story)


def test_each_of_a_batch_has_its_own_outcome() -> None:
    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            await db.execute(TABLE)
            rows = [("INSERT INTO t VALUES (?, 'x')", (number,)) for number in (1, 2, 1, 3)]
            written = await db.batch(rows)

            assert [type(each.error) for each in written] == [type(None), type(None), IntegrityError, type(None)]
            assert [each.sub for each in written] == [0, 1, 2, 3]
            assert await db.executemany(INSERT, [("y",), ("z",)]) == 2
            assert await db.batch([]) == []

    play(story)


def test_ten_thousand_writes_keep_their_order_and_never_pass_the_window() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            asked = [db.execute(INSERT, (number,)) for number in range(5000)]
            written = await asyncio.gather(db.batch([(INSERT, (-number,)) for number in range(5000)]), *asked)

            assert len(written) == 5001
            assert [b for b in stage.written if isinstance(b, int) and b > 0] == list(range(1, 5000))
            assert [b for b in stage.written if isinstance(b, int) and b < 0] == list(range(-1, -5000, -1))
            assert len(stage.written) == 10_000
        assert server.writes < 500, "they did not share frames"
        numbers = [each.number for bundle in stage.cluster.log for each in unpack(bundle.actions[0])]
        assert numbers == list(range(1, 10_002))

    play(story)


def test_what_is_accepted_is_told_at_once_and_its_outcome_when_it_is_green() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            server.is_primary = False
            first = await db.execute("INSERT INTO t VALUES (1, 'x')", wait="accepted")
            second = await db.execute("INSERT INTO t VALUES (1, 'y')", wait="accepted")
            assert (first.colour, first.position, first.error) == (Colour.RED, 0, None)
            assert stage.written == []
            dirty = await db.query("SELECT * FROM t", consistency="dirty")
            assert (dirty.reds, dirty.colour) == (2, Colour.RED)

            server.join()
            green = await first.green()
            assert (green.colour, green.position, green.changes) == (Colour.GREEN, 2, 1)
            with pytest.raises(IntegrityError):
                await second.green()

    play(story)


def test_a_long_partition_does_not_stop_who_only_wants_to_be_accepted() -> None:
    """256 outcomes are kept for a session: whoever has that many open goes on in another."""

    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            server.is_primary = False
            accepted = [await db.execute(INSERT, (number,), wait="accepted") for number in range(1300)]
            assert len(accepted) > Limits().outstanding
            assert server.writes == 1 + len(accepted), "what is accepted burdens nobody, so that nothing is asked again"
            server.join()
            await asyncio.gather(*(each.green() for each in accepted))

            assert stage.written == list(range(1300))
            assert len({each.session for each in accepted}) == 6

    play(story)


def test_an_impatient_query_is_refused_outside_the_primary_component_and_a_weak_one_answered() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            server.is_primary = False

            with pytest.raises(Refused) as refused:
                await db.query("SELECT * FROM t", patient=False)
            assert refused.value.kind == "no primary"
            assert list(await db.query("SELECT count(*) FROM t", consistency="weak")) == [(0,)]
            strict = asyncio.create_task(db.query("SELECT count(*) FROM t"))
            await until(lambda: bool(server._reds))
            server.join()
            assert list(await strict) == [(0,)]

    play(story)


def test_what_became_of_a_request_can_be_asked_by_its_identity() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db, client(server) as other:
            await db.execute(TABLE)
            written = await db.execute(INSERT, ("x",))

            again = await other.outcome(written.identity)
            assert (again.position, again.changes) == (2, 1)
            with pytest.raises(OutcomeUnknown):
                await other.outcome(Identity(written.session, 99))

    play(story)


def test_the_order_can_be_followed_as_it_grows() -> None:
    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            await db.execute(TABLE)
            for number in range(5):
                await db.execute(INSERT, (number,))

            told = [bundle.position async for ordered in db.log(2, 5) for bundle in ordered.bundles]
            assert told == [2, 3, 4, 5]

            growing = db.log(6)
            assert [bundle.position for bundle in (await anext(growing)).bundles] == [6]
            later = asyncio.ensure_future(anext(growing))
            await db.execute(INSERT, (5,))
            assert [bundle.position for bundle in (await later).bundles] == [7]
            await growing.aclose()  # type: ignore[attr-defined]
            assert (await db.digests()).position == 7

    play(story)


def test_misuse_is_told_before_anything_is_sent() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server(action_bytes=1000)
        db = client(server)
        with pytest.raises(InterfaceError, match="not open"):
            await db.execute(TABLE)
        async with db:
            with pytest.raises(InterfaceError, match="knows no datetime"):
                await db.execute(INSERT, (datetime.datetime(2020, 1, 1),))
            with pytest.raises(InterfaceError, match="several values"):
                await db.execute(INSERT, "abc")
            with pytest.raises(DataError, match="at most 1000"):
                await db.execute(INSERT, ("x" * 1000,))
            with pytest.raises(DataError):
                await db.execute(INSERT, (1 << 70,))
            with pytest.raises(InterfaceError, match="level"):
                await db.execute(TABLE, level="high")
            with pytest.raises(InterfaceError, match="consistency"):
                await db.query("SELECT 1", consistency="eventual")
            with pytest.raises(InterfaceError, match="wait"):
                await db.execute(TABLE, wait="red")
        with pytest.raises(InterfaceError, match="closed"):
            await db.execute(TABLE)
        with pytest.raises(InterfaceError, match="host:port"):
            client()
        assert server.writes == 0

    play(story)


@pytest.mark.parametrize("wait", ["green", "accepted"])
def test_what_a_closing_client_has_not_sent_is_told_that_nothing_came_of_it(wait: str) -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            await server.stop()
            await until(lambda: db.address is None)
            one = asyncio.create_task(db.execute(INSERT, ("x",), wait=wait))
            batch = asyncio.create_task(db.batch([(INSERT, ("y",)), (INSERT, ("z",))]))
            await asyncio.sleep(0)  # now they have asked
        with pytest.raises(InterfaceError, match="closed; nothing came of it"):
            await one
        assert [str(each.error) for each in await batch] == ["the client was closed; nothing came of it"] * 2
        assert stage.written == []

    play(story)


def test_administrators_appoint_users_and_change_the_cluster() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server, user="operator", password=CREDENTIAL) as db:
            await db.admin.create_user("bob", PASSWORD, "read")
            await db.admin.place("q", address="q:1", admin="q:2", clients="q:3")
            with pytest.raises(InterfaceError, match="role"):
                await db.admin.create_user("bob", PASSWORD, "king")
            with pytest.raises(OperationalError, match="nothing comes of Weigh"):
                await db.admin.weigh("p", 2)
        async with client(server, user="bob") as db:
            assert list(await db.query("SELECT name FROM greenline_members")) == [("q",)]
            with pytest.raises(Refused, match="needs the role 'write'"):
                await db.execute(TABLE)
            with pytest.raises(Refused, match="needs the role 'admin'"):
                await db.admin.leave("p")

    play(story)
