"""The order, told to whoever follows it: all of it, once, in order, and no faster than it is taken."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from greenline.access import wire
from greenline.kernel.actions import unpack
from greenline.kernel.statements import Role, body_of
from greenline.node.edge import Limits
from greenline.node.logfeed import HIDDEN
from greenline.replication.port import BundleId
from tests.node.callers import Caller, House, body, cheap, play, until, write


def extend(house: House, many: int, size: int = 100) -> None:
    """The order grows."""
    for _ in range(many):
        position = len(house.desk.log) + 1
        house.desk.log.append(wire.Bundle(position, BundleId("p", position), (b"x" * size,)))
    house.desk.say_green()


async def pieces(caller: Caller, ticket: int, up_to: int) -> list[wire.Ordered]:
    found: list[wire.Ordered] = []
    while not found or found[-1].bundles[-1].position < up_to:
        told = await caller.hear()
        assert isinstance(told, wire.Ordered)
        assert told.ticket == ticket
        found.append(told)
    return found


def positions(told: list[wire.Ordered]) -> list[int]:
    return [bundle.position for each in told for bundle in each.bundles]


def test_a_range_of_the_order_ends_where_it_was_asked_to() -> None:
    async def story(house: House) -> None:
        extend(house, 1000)
        async with await house.welcomed("rita") as rita:
            rita.say(wire.Log(1, 5, 900))
            told = await pieces(rita, 1, 900)
            assert positions(told) == list(range(5, 901))
            assert [each.is_end for each in told] == [False] * (len(told) - 1) + [True]
            assert len(told) > 1, "in pieces"
            assert (told[0].before, told[-1].digest) == (b"order 4", b"order 900")
            assert all(one.digest == following.before for one, following in pairwise(told))
            empty = await rita.ask(wire.Log(2, 8, 7))
            assert empty == wire.Ordered(2, (), is_end=True, digest=b"order 7"), (
                "what the order comes to, and nothing of it"
            )
            beyond = await rita.ask(wire.Log(2, 5001, 5000))
            assert beyond == wire.Ordered(2, (), is_end=True), "nobody knows yet"

    play(story, Limits(log_bytes=10_000))


def test_who_follows_is_told_as_the_order_grows_until_it_is_enough() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed("rita") as rita, await house.welcomed("will") as will:
            rita.say(wire.Log(1, 1))
            assert positions(await pieces(rita, 1, 3)) == [1, 2, 3]
            done = await will.ask(write(1, body()))
            assert isinstance(done, wire.Done)
            assert positions(await pieces(rita, 1, 4)) == [4]

            rita.say(wire.Enough(1), wire.Log(2, 5, 6))
            assert isinstance(await rita.ask(wire.Digests(3)), wire.Stands), "it has been heard"
            extend(house, 3)
            assert positions(await pieces(rita, 2, 6)) == [5, 6]

    play(story)


def test_what_is_discarded_is_told_with_where_to_begin() -> None:
    async def story(house: House) -> None:
        house.desk.low = 3
        async with await house.welcomed("rita") as rita:
            no = await rita.ask(wire.Log(1, 1))
            assert isinstance(no, wire.No)
            assert (no.ticket, no.kind, "position 3" in no.reason) == (1, "discarded", True)
            rita.say(wire.Log(1, 3))
            assert positions(await pieces(rita, 1, 3)) == [3], "the ticket is free again"

    play(story)


def test_a_follower_that_takes_nothing_is_not_told_more_than_fits() -> None:
    async def story(house: House) -> None:
        extend(house, 400, 100_000)
        async with await house.welcomed("rita") as rita, await house.welcomed("will") as will:
            rita.writer.transport.pause_reading()  # type: ignore[attr-defined]
            reads = house.desk.reads_of_log
            rita.say(wire.Log(1, 1, 403))
            await until(lambda: reads[:1] == [1])
            for ticket in range(1, 50):
                assert isinstance(await will.ask(write(ticket, body())), wire.Done), "others are served meanwhile"
            assert 1 < len(reads) < 100, "40 MB are not piled up here"
            rita.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert positions(await pieces(rita, 1, 403)) == list(range(1, 404))

    play(story, Limits(unsent_bytes=1 << 20))


def test_verifiers_of_passwords_are_shown_to_administrators_only() -> None:
    async def story(house: House) -> None:
        kept = cheap("secret")
        async with await house.operator() as operator:
            assert isinstance(await operator.ask(wire.Appoint(1, Role("zoe", "read", kept))), wire.Done)
            operator.say(wire.Log(2, 4, 4))
            (all_of_it,) = await pieces(operator, 2, 4)
        async with await house.welcomed("rita") as rita:
            rita.say(wire.Log(1, 4, 4))
            (less,) = await pieces(rita, 1, 4)

        assert all_of_it.bundles == (house.desk.log[3],)
        (action,) = unpack(less.bundles[0].actions[0])
        (original,) = unpack(house.desk.log[3].actions[0])
        assert (action.session, action.number) == (original.session, original.number)
        assert body_of(action.body) == Role("zoe", "read", HIDDEN)

    play(story)


def test_followers_end_with_their_connection() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed("rita") as rita:
            rita.say(wire.Log(1, 1))
            await pieces(rita, 1, 3)
        await until(lambda: house.clients.connected == 0)
        reads = len(house.desk.reads_of_log)
        extend(house, 3)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(house.desk.reads_of_log) == reads

    play(story)
