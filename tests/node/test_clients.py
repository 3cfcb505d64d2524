"""The client port on real sockets: who is let in, what is refused and in which words, and what a node can bear."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import struct

import pytest

from greenline.access import wire
from greenline.kernel.actions import Action, OutcomeOf, Read, Series, Verdict, pack, pack_series
from greenline.kernel.statements import (
    Inquiry,
    Member,
    Question,
    Result,
    Role,
    Statement,
    Trial,
    Work,
    encode,
    reply_of,
    results_of,
)
from greenline.node.edge import Limits
from greenline.replication.port import Leave, Level, Reads, Refused, Unanswered
from greenline.replication.queries import NO_PRIMARY
from tests.node.callers import PASSWORD, Caller, House, body, cheap, many_descriptors, play, read, until, write

HELLO = wire.Hello(wire.VERSION, "will", PASSWORD)


# Coming in.


def test_who_says_who_they_are_is_welcomed_and_told_where_they_are() -> None:
    async def story(house: House) -> None:
        async with await house.call() as will:
            welcome = await will.ask(HELLO)

            assert isinstance(welcome, wire.Welcome)
            assert (welcome.role, welcome.position, welcome.where.server) == ("write", 3, "p")
            assert welcome.clients == {"p": "10.0.0.1:7600"}, "q listens for nobody"
            assert welcome.statement_bytes == house.limits.action_bytes

    play(story)


def test_a_node_without_tls_serves_in_clear() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            assert isinstance(await will.ask(write(1, body())), wire.Done)

    play(story, is_secure=False)


def test_who_comes_in_clear_where_tls_is_required_is_told_so_in_clear() -> None:
    async def story(house: House) -> None:
        async with await Caller.at(house.address, None) as naive:
            naive.say(HELLO)
            no = await naive.is_told_no()
        assert (no.kind, "TLS" in no.reason) == ("tls", True)
        await until(lambda: house.clients.refused["tls"] == 1)

    play(story)


def test_an_older_tls_is_not_spoken() -> None:
    async def story(house: House) -> None:
        assert house.tls is not None
        house.tls.minimum_version = ssl.TLSVersion.TLSv1_2
        house.tls.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(OSError):  # noqa: PT011 - as TLS says it, or TCP
            await house.call()
        await until(lambda: house.clients.refused["handshake"] == 1)

    play(story)


@pytest.mark.parametrize(
    ("user", "password"), [("will", "it shines"), ("nobody", PASSWORD), ("operator", PASSWORD), ("will", ""), ("", "")]
)
def test_a_wrong_password_ends_the_connection(user: str, password: str) -> None:
    async def story(house: House) -> None:
        async with await house.call() as stranger:
            stranger.say(wire.Hello(wire.VERSION, user, password))
            assert (await stranger.is_told_no()).kind == "password"

    play(story)


def test_another_version_is_told_which_one_is_spoken() -> None:
    async def story(house: House) -> None:
        async with await house.call() as future:
            future.say(wire.Hello(2, "will", PASSWORD))
            assert (await future.is_told_no()).kind == "version"

    play(story)


def test_nobody_is_heard_before_hello_nor_while_it_is_checked() -> None:
    async def story(house: House) -> None:
        async with await house.call() as rash:
            rash.say(write(1, body()))
            assert (await rash.is_told_no()).kind == "malformed"
        async with await house.call() as hasty:
            hasty.say(HELLO, write(1, body()))
            assert (await hasty.is_told_no()).kind == "malformed"
        assert len(house.desk.log) == 3, "nothing was ordered but the users"

    play(story)


def test_a_stranger_who_says_much_or_nothing_is_sent_away() -> None:
    async def story(house: House) -> None:
        async with await house.call() as loud:
            loud.say_bytes(struct.pack(">I", wire.UNKNOWN_YET_BYTES + 1))
            assert (await loud.is_told_no()).kind == "too large"
        async with await house.call() as silent:
            assert (await silent.is_told_no()).kind == "malformed"
        mute = socket.create_connection(house.address)
        mute.setblocking(False)
        assert b"no Hello came" in await asyncio.get_running_loop().sock_recv(mute, 1000), "in clear, before any TLS"
        mute.close()

    play(story, Limits(hello_s=0.2))


@pytest.mark.parametrize("is_secure", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_noise_takes_no_node_down(seed: int, is_secure: bool) -> None:
    """Also inside TLS, after a good beginning."""
    chance = random.Random(seed)

    async def story(house: House) -> None:
        for _ in range(20):
            noise = chance.randbytes(chance.randrange(1, 3000))
            async with await Caller.at(house.address, None) as vandal:
                vandal.say_bytes((b"\x16" if chance.random() < 0.5 else b"") + noise)
            async with await house.welcomed() as trusted:
                good = bytearray(wire.framed(write(1, body(), body())))
                for _ in range(chance.randrange(1, 6)):
                    good[chance.randrange(4, len(good))] = chance.randrange(256)
                trusted.say_bytes(bytes(good) + struct.pack(">I", len(noise)) + noise)
                while not isinstance(no := await trusted.hear(), wire.No) or no.ticket != 0:
                    pass
        async with await house.welcomed() as will:
            assert isinstance(await will.ask(write(1, body())), wire.Done)

    play(story, is_secure=is_secure)


# Asking.


def test_writes_and_reads_are_answered_by_ticket_pipelined() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            will.say(write(1, body(), body("INSERT INTO t (text) VALUES (?)", "x")), read(2, "SELECT count(*) FROM t"))
            done, rows = await will.hear(), await will.hear()

            assert isinstance(done, wire.Done)
            assert (done.ticket, done.position, [each.verdict for each in done.outcomes]) == (1, 4, [Verdict.DONE] * 2)
            assert results_of(done.outcomes[1].value)[0].last_id == 2
            assert isinstance(rows, wire.Rows)
            assert (rows.ticket, reply_of(rows.rows)) == (2, Result(0, 2, ("count(*)",), ((2,),)))

    play(story)


def test_an_update_may_be_reported_twice_taken_and_done() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            asked = write(1, body())
            will.say(wire.Write(1, 1, asked.actions, Level.QUORUM, tell_taken=True))
            taken, done = await will.hear(), await will.hear()
            assert isinstance(taken, wire.Taken)
            assert isinstance(done, wire.Done)
            assert (taken.ticket, done.ticket, done.level) == (1, 1, Level.QUORUM)

            rows = await will.ask(wire.Read(2, None, Reads.WEAK, outcome_of=OutcomeOf("c1@0", 1)))
            assert isinstance(rows, wire.Rows)
            assert rows.outcome == done.outcomes[0]

    play(story)


def test_what_the_desk_refuses_or_cannot_answer_is_told_as_that() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            house.desk.refusal = Refused(0, NO_PRIMARY)
            assert await will.ask(read(1)) == wire.No(1, "no primary", NO_PRIMARY, is_retriable=True)
            house.desk.refusal = Refused(0, "full")
            assert await will.ask(write(2, body())) == wire.No(2, "unavailable", "full", is_retriable=True)
            house.desk.refusal = Refused(0, "odd", is_retriable=False)
            assert await will.ask(write(3, body())) == wire.No(3, "refused", "odd")
            house.desk.refusal = Unanswered(0, "it leaves")
            assert await will.ask(write(4, body())) == wire.Lost(4, "it leaves")

    play(story)


def test_a_closed_desk_sends_clients_elsewhere_and_keeps_those_it_has() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            house.desk.is_open, house.desk.why_closed = False, "the disk is full"
            assert await will.ask(write(1, body())) == wire.No(1, "closed", "the disk is full", is_retriable=True)
            async with await house.call() as late:
                late.say(HELLO)
                assert await late.is_told_no() == wire.No(0, "closed", "the disk is full", is_retriable=True)
            house.desk.is_open = True
            assert isinstance(await will.ask(write(2, body())), wire.Done)

    play(story)


DEEP = b"\x91" * 5000 + b"\x00"
"""Nested so deeply that it depends on the reader whether it can be opened."""
LONG = "x" * 600
_SERIES = pack_series(Series("c1@0", 1, 0, body(), (b"",) * 4))
HIDING = _SERIES[:5] + bytes([_SERIES[5] + 1]) + _SERIES[6:] + b"\x91" * 50 + b"\x00"
"""A series with one field more."""
BAD_ACTIONS = {
    "no actions at all": (b"nonsense", 1),
    "none": (pack(()), 0),
    "another count": (pack((Action("c1@0", 1, body()),)), 2),
    "no number": (pack((Action("c1@0", 0, body()),)), 1),
    "no session": (pack((Action("", 1, body()),)), 1),
    "a session without a position": (pack((Action("c1", 1, body()),)), 1),
    "a session that is two lines": (pack((Action("c1@0\n", 1, body()),)), 1),
    "a long name": (pack((Action("c" * 60 + "@0", 1, body()),)), 1),
    "no body": (pack((Action("c1@0", 1, b""),)), 1),
    "a second that is bad": (pack((Action("c1@0", 1, body()), Action("c1@0", 2, b"no"))), 2),
    "a role among the work": (pack((Action("c1@0", 1, encode(Role("will", "admin", cheap("x")))),)), 1),
    "a member": (pack((Action("c1@0", 1, encode(Member("r", "", "", ""))),)), 1),
    "reads of its own": (pack((Action("c1@0", 1, body(), reads=(Read(b"", b""),)),)), 1),
    "too deep in a parameter": (pack((Action("c1@0", 1, b"\x94\x01\x00\x00\x91\x92\xa1x\x91" + DEEP),)), 1),
    "too deep behind a statement": (pack((Action("c1@0", 1, b"\x94\x01\x00\x00\x91\x94\xa1x\x90\xc4\x00" + DEEP),)), 1),
    "too deep behind an action": (b"\x91\x97\xa4c1@0\x01\xc4\x00\x00\xc2\x90" + DEEP, 1),
    "deep enough behind an action": (b"\x91\x97\xa4c1@0\x01\xc4\x00\x00\xc2\x90" + b"\x91" * 50 + b"\x00", 1),
    "deep enough behind a series": (HIDING, 4),
    "more in a series than may be under way": (pack_series(Series("c1@0", 1, 0, body(), (b"",) * 257)), 257),
    "too many": (pack(tuple(Action("c1@0", 1, b"") for _ in range(5000))), 5000),
    "packed in more bytes than it takes": (b"\x91\x96\xa4c1@0\xcd\x00\x01" + encode(body()) + b"\x00\xc2\x90", 1),
    "a list in a long body": (pack((Action("c1@0", 1, body("SELECT ?, ?", LONG, [1])),)), 1),
    "long and no statements": (pack((Action("c1@0", 1, encode((1, 0, 0, LONG))),)), 1),
    "long and short of parts": (pack((Action("c1@0", 1, b"\x94\x01" + encode(LONG)),)), 1),
}


@pytest.mark.parametrize("bad", list(BAD_ACTIONS))
def test_actions_that_are_none_are_refused_and_the_rest_goes_on(bad: str) -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            actions, count = BAD_ACTIONS[bad]
            no = await will.ask(wire.Write(1, count, actions))
            assert isinstance(no, wire.No), no
            assert (no.ticket, no.kind, no.is_retriable) == (1, "malformed", False)
            assert isinstance(await will.ask(write(2, body("INSERT INTO t (text) VALUES (?)", LONG))), wire.Done)
        assert len(house.desk.log) == 4

    play(story, is_secure=False)


def test_sessions_from_the_future_wait_and_those_about_to_end_are_over() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            no = await will.ask(write(1, body(), session="c1@1000"))
            assert isinstance(no, wire.No)
            assert (no.kind, no.is_retriable) == ("unavailable", True)

            house.desk.ending_before = 3
            no = await will.ask(write(2, body(), session="c1@2"))
            assert isinstance(no, wire.No)
            assert (no.kind, no.is_retriable) == ("ending", False)
            assert isinstance(await will.ask(write(3, body(), session="c2@3")), wire.Done)

    play(story)


def test_an_action_has_a_largest_size_and_a_frame_too() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            no = await will.ask(write(1, body("INSERT INTO t (text) VALUES (?)", "x" * 2000)))
            assert isinstance(no, wire.No)
            assert (no.ticket, no.kind) == (1, "too large")
            will.say_bytes(struct.pack(">I", 10_001))
            assert (await will.is_told_no()).kind == "too large"

    play(story, Limits(action_bytes=1000, frame_bytes=10_000))


def test_a_ticket_in_use_or_a_second_hello_ends_the_connection() -> None:
    async def story(house: House) -> None:
        house.desk.held = []
        async with await house.welcomed() as twice:
            twice.say(write(1, body()), write(1, body()))
            assert (await twice.is_told_no()).kind == "malformed"
        async with await house.welcomed() as polite:
            polite.say(HELLO)
            assert (await polite.is_told_no()).kind == "malformed"

    play(story)


BAD_QUERIES = {
    "nothing": None,
    "nonsense": b"nonsense",
    "an inquiry": encode(Inquiry(Statement("SELECT verifier FROM greenline_users"))),
    "a list for a parameter": encode(Question(0, 0, Statement("SELECT ?", ([1],)))),
    "too deep": b"\x94\x01\x00\x00\x92\xa1x\x91" + DEEP,
}


@pytest.mark.parametrize("bad", list(BAD_QUERIES))
def test_queries_that_are_none_are_refused_also_an_administrators(bad: str) -> None:
    async def story(house: House) -> None:
        async with await house.welcomed("ann") as ann:
            no = await ann.ask(wire.Read(1, BAD_QUERIES[bad], Reads.WEAK))
            assert isinstance(no, wire.No), no
            assert (no.ticket, no.kind, no.is_retriable) == (1, "malformed", False)

    play(story, is_secure=False)


def test_roles_are_held_to() -> None:
    """Who reads may not write, also not tentatively; who writes may not administer."""

    async def story(house: House) -> None:
        trial = wire.Read(2, encode(Trial(Work(0, 0, ()))), Reads.SESSION)
        async with await house.welcomed("rita") as rita:
            assert isinstance(await rita.ask(read(1)), wire.Rows)
            for request in (trial, write(3, body())):
                no = await rita.ask(request)
                assert isinstance(no, wire.No)
                assert (no.ticket, no.kind) == (request.ticket, "role")
        async with await house.welcomed("will") as will:
            for bold in (
                wire.Administer(4, Leave("q")),
                wire.Appoint(5, Role("will", "admin", cheap("x"))),
                wire.Survive(6, ("p",), ("q",), "I say so"),
            ):
                no = await will.ask(bold)
                assert isinstance(no, wire.No)
                assert (no.ticket, no.kind) == (bold.ticket, "role")
        assert house.desk.changes == []

    play(story)


def test_an_administrator_changes_the_cluster() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed("ann") as ann:
            assert isinstance(await ann.ask(wire.Administer(1, Leave("q"))), wire.Done)
            assert house.desk.changes == [Leave("q")]
            forced = await ann.ask(wire.Survive(2, ("p",), ("q",), "q burnt"))
            assert isinstance(forced, wire.Done)
            assert forced.outcomes[0].value == encode(7), "the epoch"
            stands = await ann.ask(wire.Digests(3))
            assert isinstance(stands, wire.Stands)
            assert (stands.position, stands.order, stands.state) == (3, b"order", b"state")
            no = await ann.ask(wire.Appoint(4, Member("not a name", "", "", "")))
            assert isinstance(no, wire.No)
            assert no.kind == "malformed"

    play(story)


# Staying.


def test_what_nobody_waits_for_is_forgotten() -> None:
    async def story(house: House) -> None:
        house.desk.held = []
        async with await house.welcomed() as will:
            will.say(write(1, body()), read(2), wire.Enough(1))
            await until(lambda: house.desk.forgotten == [1])
        await until(lambda: house.desk.forgotten == [1, 2])
        house.desk.release()

    play(story)


def test_who_says_goodbye_is_let_go_at_once() -> None:
    async def story(house: House) -> None:
        will = await house.welcomed()
        will.writer.close()
        await until(lambda: house.clients.connected == 0)

    play(story)


def test_after_enough_a_ticket_is_not_answered() -> None:
    async def story(house: House) -> None:
        house.desk.held = []
        async with await house.welcomed() as will:
            will.say(write(1, body()), wire.Enough(1), read(2))
            await until(lambda: len(house.desk.held or []) == 2)
            house.desk.release()
            assert isinstance(await will.hear(), wire.Rows)

    play(story)


@pytest.mark.parametrize("limits", [Limits(outstanding=10), Limits(outstanding_bytes=1_000_000)])
def test_whoever_has_asked_for_much_is_not_read_from_until_it_is_answered(limits: Limits) -> None:
    """Of what comes in one go, two or three more may be taken."""

    async def story(house: House) -> None:
        house.desk.held = []
        async with await house.welcomed() as eager, await house.welcomed() as other:
            eager.say(*(read(ticket, f"SELECT '{'x' * 100_000}'") for ticket in range(1, 101)))
            await until(lambda: len(house.desk.held or []) >= 10)
            for ticket in range(1, 6):
                assert isinstance(await other.ask(wire.Digests(ticket)), wire.Stands), "others are read from"
            assert len(house.desk.held) <= 13

            house.desk.release()
            for ticket in range(1, 101):
                rows = await eager.hear()
                assert isinstance(rows, wire.Rows)
                assert rows.ticket == ticket

    play(story, limits)


def test_whoever_is_not_read_from_is_seen_to_hang_up_all_the_same() -> None:
    async def story(house: House) -> None:
        house.desk.held = []
        async with await house.welcomed() as eager:
            eager.say(*(read(ticket) for ticket in range(1, 11)))
            await until(lambda: len(house.desk.held or []) >= 10)
        await until(lambda: house.clients.connected == 0)

    play(story, Limits(outstanding=10, recheck_s=0.05))


@pytest.mark.parametrize("is_secure", [True, False])
def test_a_reader_that_takes_nothing_is_cut_off_and_nobody_else_is(is_secure: bool) -> None:
    async def story(house: House) -> None:
        house.desk.rows = encode(Result(0, 0, ("x",), ((b"x" * 200_000,),)))
        async with await house.welcomed() as sleeper, await house.welcomed() as will:
            sleeper.writer.transport.pause_reading()  # type: ignore[attr-defined]
            sleeper.say(*(read(ticket) for ticket in range(1, 101)))
            await until(lambda: house.clients.refused["stuck"] == 1)
            assert house.clients.connected == 1
            house.desk.rows = None
            assert isinstance(await will.ask(read(1)), wire.Rows)

    play(story, Limits(unsent_bytes=1 << 20, stuck_s=0.3), is_secure=is_secure)


def test_a_slow_reader_is_waited_for() -> None:
    """It takes little at a time, but never nothing for long; and it is clogged for much longer than that."""

    async def story(house: House) -> None:
        house.desk.rows = encode(Result(0, 0, ("x",), ((b"x" * 200_000,),)))
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        narrow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(narrow, house.address)
        async with Caller(*await asyncio.open_connection(sock=narrow)) as slow:
            assert isinstance(await slow.ask(HELLO), wire.Welcome)
            slow.say(*(read(ticket) for ticket in range(1, 76)))
            for ticket in range(1, 76):
                rows = await slow.hear()
                assert isinstance(rows, wire.Rows)
                assert rows.ticket == ticket
                await asyncio.sleep(0.02)
        assert house.clients.refused["stuck"] == 0

    play(story, Limits(unsent_bytes=1 << 20, stuck_s=0.3), is_secure=False)


def test_answers_have_a_hard_limit() -> None:
    async def story(house: House) -> None:
        house.desk.rows = encode(Result(0, 0, ("x",), ((b"x" * 1_000_000,),)))
        house.desk.held = []
        async with await house.welcomed() as sleeper:
            sleeper.writer.transport.pause_reading()  # type: ignore[attr-defined]
            sleeper.say(*(read(ticket) for ticket in range(1, 31)))
            await until(lambda: len(house.desk.held or []) == 30)
            house.desk.release()
            await until(lambda: house.clients.refused["stuck"] == 1)

    play(story, Limits(unsent_bytes=1 << 20, most_unsent_bytes=8 << 20))


def test_an_answer_that_fits_no_frame_is_told_without_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_BYTES", 10_000)

    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            done = await will.ask(write(1, body("SELECT zeroblob(20000)")))
            assert isinstance(done, wire.Done)
            (outcome,) = done.outcomes
            assert (outcome.verdict, outcome.value, outcome.is_whole) == (Verdict.DONE, b"", False)
            no = await will.ask(read(2, "SELECT zeroblob(20000)"))
            assert isinstance(no, wire.No)
            assert (no.ticket, no.kind) == (2, "too large")

    play(story)


def test_one_client_too_many_is_told_that_the_node_is_busy() -> None:
    async def story(house: House) -> None:
        callers = [await house.welcomed() for _ in range(3)]
        async with await house.call() as fourth:
            no = await fourth.is_told_no()
            assert (no.kind, no.is_retriable) == ("busy", True)
        callers.pop().close()
        await until(lambda: house.clients.connected == 2)
        async with await house.welcomed() as fifth:
            assert isinstance(await fifth.ask(read(1)), wire.Rows)
        for caller in callers:
            caller.close()

    play(story, Limits(connections=3))


def test_who_comes_when_too_many_are_being_told_so_is_hung_up_on() -> None:
    """Else whoever opens connections and says nothing takes all file descriptors of the node."""

    async def story(house: House) -> None:
        mute = [await asyncio.open_connection(*house.address) for _ in range(100)]
        await until(lambda: house.clients.refused["busy"] == 100 - 3 - 64)
        assert house.clients.connected == 3 + 64
        for _, writer in mute:
            writer.transport.abort()
        await until(lambda: house.clients.connected == 0)
        async with await house.welcomed() as will:
            assert isinstance(await will.ask(read(1)), wire.Rows)

    play(story, Limits(connections=3))


def test_everybody_is_told_when_a_node_stops() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed() as will:
            closing = asyncio.create_task(house.clients.close())
            no = await will.is_told_no()
            assert (no.kind, no.is_retriable) == ("stopped", True)
            await closing
        assert house.clients.connected == 0

    play(story)


@pytest.mark.slow
@pytest.mark.parametrize(("idle", "busy", "is_secure"), [(1000, 200, False), (200, 50, True)])
def test_a_thousand_idle_clients_and_two_hundred_busy_ones_are_served(idle: int, busy: int, is_secure: bool) -> None:
    """With TLS fewer: here the callers' half of every handshake is ours as well."""

    async def story(house: House) -> None:
        callers: list[Caller] = []
        while len(callers) < idle + busy:
            callers += await asyncio.gather(*(house.welcomed() for _ in range(50)))

        async def work(number: int, caller: Caller) -> None:
            for ticket in range(1, 11):
                asked = write(ticket, *([body()] * 5), session=f"c{number}@0", number=5 * ticket - 4)
                assert isinstance(await caller.ask(asked), wire.Done)

        await asyncio.gather(*(work(number, caller) for number, caller in enumerate(callers[idle:])))
        assert house.clients.connected == idle + busy
        assert len(house.desk.log) == 3 + busy * 10
        assert isinstance(await callers[0].ask(read(1)), wire.Rows), "who was idle is still served"
        for caller in callers:
            caller.close()

    with many_descriptors():
        play(story, is_secure=is_secure)
