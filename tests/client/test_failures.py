"""Nodes die, say nothing, lose and refuse; every write happens once, and whoever asked is told."""

from __future__ import annotations

import asyncio

import pytest

from greenline.client import OperationalError, OutcomeUnknown, Refused, TimedOut, Unreachable, link
from greenline.client.finding import Nobody
from greenline.kernel.actions import WINDOW, unpack
from greenline.replication import port
from tests.client.places import CREDENTIAL, INSERT, TABLE, Stage, client, play, until


def test_a_connection_that_dies_before_the_answer_does_not_repeat_the_write() -> None:
    """The node has done it, and nobody was told."""

    async def story(stage: Stage) -> None:
        server = await stage.server()
        cable = await stage.cable(server)
        async with client(cable) as db:
            await db.execute(TABLE)
            server.is_mute = True
            asked = [asyncio.create_task(db.execute(INSERT, (number,))) for number in range(WINDOW + 36)]
            await until(lambda: stage.count == WINDOW)

            server.is_mute = False
            cable.cut()
            written = await asyncio.gather(*asked)

            assert stage.written == list(range(WINDOW + 36))
            assert [each.outcome.is_again for each in written if not isinstance(each.outcome, Exception | None)] == (
                [True] * WINDOW + [False] * 36
            )
            assert [each.last_id for each in written] == list(range(1, WINDOW + 37))

    play(story)


def test_cut_again_and_again_every_write_happens_once_in_order() -> None:
    async def story(stage: Stage) -> None:
        cables = [await stage.cable(await stage.server(name)) for name in "pqr"]
        async with client(*cables) as db:
            await db.execute(TABLE)

            async def cut_now_and_then() -> None:
                for when in range(200, 2800, 200):
                    while stage.count < when:
                        await asyncio.sleep(0.005)
                    for cable in cables:
                        cable.cut()

            cutting = asyncio.create_task(cut_now_and_then())
            written = await db.batch([(INSERT, (number,)) for number in range(3000)])
            await cutting

            assert stage.written == list(range(3000))
            assert [each.last_id for each in written] == list(range(1, 3001))

    play(story)


def test_what_a_node_has_lost_is_asked_elsewhere() -> None:
    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        async with client(p, q) as db:
            await db.execute(TABLE)
            here, there = (p, q) if db.address == p.address else (q, p)
            here.loses = 1
            written = await db.execute(INSERT, ("x",))

            assert stage.written == ["x"]
            assert written.component is not None
            assert written.component.server == there.name
            assert there.writes == 1

    play(story)


def test_when_one_of_two_nodes_is_stopped_the_other_is_asked() -> None:
    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        async with client(p, q) as db:
            await db.execute(TABLE)
            here = p if db.address == p.address else q
            asked = [asyncio.create_task(db.execute(INSERT, (number,))) for number in range(300)]
            await until(lambda: stage.count > 100)
            await here.stop()
            await asyncio.gather(*asked)

            assert stage.written == list(range(300))
            assert list(await db.query("SELECT count(*) FROM t")) == [(300,)]

    play(story)


def test_a_node_that_nobody_named_is_learnt_of_from_another() -> None:
    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        place = ("q", "", "", q.address)
        stage.cluster.db.execute("INSERT INTO greenline_members VALUES (?, ?, ?, ?)", place)
        async with client(p) as db:
            await p.stop()
            await db.execute(TABLE)
            assert db.address == q.address

    play(story)


def test_one_in_a_primary_component_is_preferred() -> None:
    async def story(stage: Stage) -> None:
        nodes = [await stage.server(name) for name in "pqr"]
        for node in nodes[:2]:
            node.is_primary = False
        async with client(*nodes) as db:
            assert db.address == nodes[2].address

    play(story)


def test_a_write_that_waits_outside_the_primary_component_is_taken_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "SILENCE_S", 0.05)

    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        q.is_primary = False
        async with client(p, q) as db:
            await db.execute(TABLE)
            assert db.address == p.address

            p.is_primary, q.is_primary = False, True
            written = await db.execute(INSERT, ("x",))
            assert written.component is not None
            assert written.component.server == "q"

            p.join()
            assert stage.written == ["x"], "p had it too, and it is decided once"

    play(story)


def test_a_node_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "SILENCE_S", 0.05)

    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        async with client(p, q) as db:
            await db.execute(TABLE)
            here, there = (p, q) if db.address == p.address else (q, p)
            here.is_mute = True
            await db.execute(INSERT, ("x",))
            assert db.address == there.address
            assert stage.written == ["x"]

    play(story)


def test_a_node_that_is_busy_is_asked_again_in_the_same_order_and_not_left() -> None:
    """The frames behind the refused one come too early, and are asked again too."""

    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        async with client(p, q) as db:
            await db.execute(TABLE)
            here, there = (p, q) if db.address == p.address else (q, p)
            here.refuses.append(port.Refused(1, "too much to do"))
            asked = [
                asyncio.create_task(db.execute(INSERT, (number,), level="memory" if number % 2 else "local"))
                for number in range(10)
            ]
            written = await asyncio.gather(*asked)
            assert stage.written == list(range(10))
            assert len({each.session for each in written}) == 1
            assert there.writes == 0

    play(story)


def test_a_node_that_is_busy_is_asked_again_though_what_it_has_accepted_is_not_green() -> None:
    """What is accepted may be answered in hours."""

    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            server.is_primary = False
            accepted = [await db.execute(INSERT, (number,), wait="accepted") for number in range(3)]
            server.refuses.extend([port.Refused(1, "too much to do")] * 2)
            accepted += await asyncio.gather(
                *(db.execute(INSERT, (number,), wait="accepted") for number in range(3, 600))
            )
            server.join()
            await asyncio.gather(*(each.green() for each in accepted))
            assert stage.written == list(range(600))

    play(story)


def test_who_does_not_wait_any_longer_can_ask_later() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            server.is_primary = False
            with pytest.raises(TimedOut) as late:
                await db.execute(INSERT, ("x",), timeout=0.02)
            assert late.value.handle is not None
            with pytest.raises(TimedOut):
                await db.query("SELECT 1", timeout=0.02)

            server.join()
            assert (await db.outcome(late.value.handle)).changes == 1
            assert stage.written == ["x"]

    play(story)


def test_what_could_not_be_sent_in_time_never_happens() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        cable = await stage.cable(server)
        async with client(cable) as db:
            await db.execute(TABLE)
            await cable.remove()
            await until(lambda: db.address is None)
            with pytest.raises(TimedOut, match="nothing came of it") as late:
                await db.execute(INSERT, ("x",), timeout=0.02)
            assert late.value.handle is None
            cancelled = asyncio.create_task(db.execute(INSERT, ("y",)))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert not db._link.writes.is_waiting

    play(story)


def test_a_session_that_was_ended_while_its_client_slept_is_followed_by_another() -> None:
    """What was asked once, and is told to be of a session that is over, was never done: it is asked in a new one."""

    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            await db.execute(TABLE)
            first = await db.execute(INSERT, (0,))
            stage.cluster.sessions.expire(stage.cluster.position + 1)
            written = await db.batch([(INSERT, (number,)) for number in range(1, 100)])

            assert all(each.error is None for each in written)
            assert stage.written == list(range(100))
            assert {each.session for each in written} != {first.session}

    play(story)


def test_what_may_have_been_done_in_a_session_that_is_over_is_not_done_again() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        cable = await stage.cable(server)
        async with client(cable) as db:
            await db.execute(TABLE)
            server.is_mute = True
            asked = asyncio.create_task(db.execute(INSERT, ("x",)))
            await until(lambda: stage.written == ["x"])

            stage.cluster.sessions.expire(stage.cluster.position + 1)
            server.is_mute = False
            cable.cut()
            with pytest.raises(OutcomeUnknown, match="find out") as unknown:
                await asked
            assert unknown.value.identity is not None
            assert stage.written == ["x"]

            await db.execute(INSERT, ("y",))
            assert stage.written == ["x", "y"]

    play(story)


def test_a_session_that_is_about_to_end_is_left_for_a_new_one() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db, client(server) as other:
            await db.execute(TABLE)
            await other.execute(INSERT, ("x",))
            server.ending_before = stage.cluster.position
            await db.execute(INSERT, ("y",))
            assert stage.written == ["x", "y"]
            sessions = [unpack(bundle.actions[0])[0].session for bundle in stage.cluster.log]
            assert sessions[0] != sessions[2]
            assert sessions[2].endswith("@2"), "it was not named by what the node knows by now"

    play(story)


def test_a_write_that_is_refused_for_good_stops_no_other() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            server.refuses.append(port.Refused(1, "this never", is_retriable=False))
            refused = asyncio.create_task(db.execute(INSERT, ("x",)))
            behind = asyncio.create_task(db.execute(INSERT, ("y",), level="memory"))
            with pytest.raises(Refused, match="this never"):
                await refused
            await behind
            assert stage.written == ["y"]

    play(story)


def test_a_write_that_is_refused_for_good_leaves_what_was_accepted_before_it_alone() -> None:
    """Who was refused need not wait for it, either."""

    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            server.is_primary = False
            accepted = await db.execute(INSERT, ("a",), wait="accepted")
            server.refuses.append(port.Refused(1, "this never", is_retriable=False))
            with pytest.raises(Refused, match="this never"):
                await db.execute(INSERT, ("b",), wait="accepted")
            behind = await db.execute(INSERT, ("c",), wait="accepted")
            server.join()
            await accepted.green()
            await behind.green()
            assert stage.written == ["a", "c"]
            assert accepted.session != behind.session

    play(story)


def test_nobody_is_told_accepted_while_what_stands_before_it_is_not() -> None:
    """Nothing behind a request that was refused can be decided, though the node has taken it."""

    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db:
            await db.execute(TABLE)
            server.is_primary = False
            server.refuses.append(port.Refused(1, "too much to do"))
            told: list[str] = []

            async def write(name: str, level: str) -> None:
                await db.execute(INSERT, (name,), wait="accepted", level=level)
                told.append(name)

            await asyncio.gather(write("a", "local"), write("b", "memory"))
            assert told == ["a", "b"]

    play(story)


def test_a_query_that_was_not_answered_is_asked_again_elsewhere() -> None:
    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        cables = [await stage.cable(server) for server in (p, q)]
        async with client(*cables) as db:
            here, there = (p, q) if db.address == cables[0].address else (q, p)
            here.is_mute = True
            asked = asyncio.create_task(db.query("SELECT 1"))
            await until(lambda: here.queries == 1)
            for cable in cables:
                cable.cut()
            rows = await asked
            assert (list(rows), rows.component.server) == ([(1,)], there.name)

    play(story)


def test_a_change_of_the_cluster_is_not_asked_twice() -> None:
    """It has no identity by which it could be told from another one like it."""

    async def story(stage: Stage) -> None:
        server = await stage.server()
        cable = await stage.cable(server)
        async with client(cable, user="operator", password=CREDENTIAL) as db:
            server.is_mute = True
            asked = asyncio.create_task(db.admin.weigh("p", 2))
            await until(lambda: server.changes == 1)
            server.is_mute = False
            cable.cut()
            with pytest.raises(OutcomeUnknown, match="look what has become"):
                await asked
            await db.execute(TABLE)
            assert server.changes == 1

    play(story)


def test_that_a_replica_leaves_is_asked_until_it_is_answered() -> None:
    """Also if it was asked of the one that leaves, and that one was stopped before its answer came."""

    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        cables = [await stage.cable(server) for server in (p, q)]
        async with client(*cables, user="operator", password=CREDENTIAL) as db:
            here, there = (p, q) if db.address == cables[0].address else (q, p)
            here.is_mute = True
            asked = asyncio.create_task(db.admin.leave(here.name))
            await until(lambda: here.changes == 1)
            for cable in cables:
                cable.cut()
            with pytest.raises(OperationalError, match="nothing comes of Leave"):
                await asked
            assert there.changes == 1

    play(story)


def test_nobody_there_is_said_with_every_reason() -> None:
    async def story(stage: Stage) -> None:
        p, q = await stage.server("p"), await stage.server("q")
        await p.stop()
        await q.stop()
        with pytest.raises(Unreachable) as nobody:
            await client(p, q, within=0.1).open()
        assert p.address in str(nobody.value)
        assert q.address in str(nobody.value)

    play(story)


def test_a_client_that_is_closed_tells_who_waits_that_nobody_knows() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        db = client(server)
        await db.open()
        await db.execute(TABLE)
        server.is_primary = False
        asked = asyncio.create_task(db.execute(INSERT, ("x",)))
        await until(lambda: bool(server._reds))
        await db.close()
        with pytest.raises(OutcomeUnknown):
            await asked

    play(story)


def test_who_is_refused_for_now_is_not_refused_for_good() -> None:
    """A node that has just begun, or is busy, may take us soon."""
    busy, unknown = Refused("it has just begun", kind="closed"), Refused("who is that?", kind="password")
    cases: list[tuple[list[Unreachable | Refused], bool, bool]] = [
        ([busy, busy], False, False),
        ([busy, unknown], False, True),
        ([unknown, Unreachable("lost")], False, True),
        ([unknown, unknown], True, True),
    ]
    for errors, is_unanimous, is_hopeless in cases:
        nobody = Nobody(errors)
        assert (nobody.is_unanimous, nobody.is_hopeless) == (is_unanimous, is_hopeless)
