"""Who may do what: passwords, roles, and how fast a change of them is felt."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading

import pytest

from greenline.access import passwords, wire
from greenline.access.passwords import is_right, is_verifier, verifier
from greenline.kernel.statements import Role
from greenline.node import users
from greenline.node.edge import Declined, Limits
from greenline.node.guesses import OF_A_USER
from greenline.node.users import Known, Users
from tests.node.callers import PASSWORD, House, body, cheap, play, read, until, write
from tests.node.desks import StubDesk

QUICK = Limits(recheck_s=0.02)


def test_a_verifier_tells_one_password_from_all_others() -> None:
    kept = verifier("correct horse", secrets.token_bytes(16), p=1)
    assert "correct" not in kept
    assert is_right("correct horse", kept)
    assert not is_right("correct horsf", kept)
    assert not is_right("", kept)
    assert cheap("same") != cheap("same"), "each has a salt of its own"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "password",
        "scrypt$16384$8$5$00$00",
        f"scrypt$16385$8$5${'0' * 32}${'0' * 64}",
        f"scrypt$1$8$1${'0' * 32}${'0' * 64}",
        f"scrypt$1048576$8$1${'0' * 32}${'0' * 64}",
        f"scrypt$16384$0$1${'0' * 32}${'0' * 64}",
        f"scrypt$16384$8$99${'0' * 32}${'0' * 64}",
        f"scrypt$16384$8$1${'0' * 32}${'0' * 64}\n",
    ],
)
def test_what_would_cost_a_node_too_much_is_no_verifier(text: str) -> None:
    assert not is_verifier(text)
    assert not is_right("x", text)


def test_the_operator_appoints_the_first_user_who_then_is_let_in() -> None:
    async def story(house: House) -> None:
        async with await house.operator() as operator:
            done = await operator.ask(wire.Appoint(1, Role("zoe", "write", cheap("secret"))))
            assert isinstance(done, wire.Done)
        async with await house.welcomed("zoe", "secret") as zoe:
            assert isinstance(await zoe.ask(write(1, body())), wire.Done)

    play(story)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (Role("operator", "read", cheap("x")), "refused"),
        (Role("", "read", cheap("x")), "malformed"),
        (Role("a:b", "read", cheap("x")), "malformed"),
        (Role(" a", "read", cheap("x")), "malformed"),
        (Role("a\n", "read", cheap("x")), "malformed"),
        (Role("a" * 65, "read", cheap("x")), "malformed"),
        (Role("zoe", "read", "secret"), "malformed"),
    ],
)
def test_users_that_cannot_be_are_not_appointed(change: Role, kind: str) -> None:
    async def story(house: House) -> None:
        async with await house.operator() as operator:
            no = await operator.ask(wire.Appoint(1, change))
            assert isinstance(no, wire.No)
            assert (no.ticket, no.kind) == (1, kind)

    play(story)


def test_a_lowered_role_is_felt_on_open_connections() -> None:
    async def story(house: House) -> None:
        kept = cheap("secret")
        house.desk.appoint("zoe", "write", kept)
        async with await house.welcomed("zoe", "secret") as zoe, await house.welcomed("will") as will:
            house.desk.appoint("zoe", "read", kept)
            tickets = iter(range(1, 10_000))
            while isinstance(no := await zoe.ask(write(next(tickets), body())), wire.Done):
                await asyncio.sleep(0.005)
            assert isinstance(no, wire.No)
            assert no.kind == "role"
            assert isinstance(await zoe.ask(read(next(tickets))), wire.Rows)
            assert isinstance(await will.ask(write(1, body())), wire.Done), "others keep theirs"

    play(story, QUICK)


@pytest.mark.parametrize("change", [Role("zoe", "write", ""), Role("zoe", "write", cheap("another"))])
def test_who_is_dropped_or_has_another_password_is_sent_away(change: Role) -> None:
    async def story(house: House) -> None:
        house.desk.appoint("zoe", "write", cheap("secret"))
        async with await house.welcomed("zoe", "secret") as zoe:
            house.desk.appoint(change.user, change.role, change.verifier)
            assert (await zoe.is_told_no()).kind == "password"
        async with await house.call() as again:
            again.say(wire.Hello(wire.VERSION, "zoe", "secret"))
            assert (await again.is_told_no()).kind == "password", "also if it was right before"

    play(story, QUICK)


def test_while_nothing_is_ordered_nobody_is_looked_up() -> None:
    async def story(house: House) -> None:
        async with await house.welcomed("will"):

            def looks() -> int:
                return sum("json_each" in sql for sql in house.desk.looked_up)

            await until(lambda: looks() == 5)
            await asyncio.sleep(10 * QUICK.recheck_s)
            assert looks() == 5
            house.desk.appoint("zoe", "read", cheap("x"))
            await until(lambda: looks() > 5)

    play(story, QUICK)


def test_a_hundred_connections_of_one_user_cost_one_check(monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[str] = []

    def counted(password: str, against: str) -> bool:
        checks.append(password)
        return passwords.is_right(password, against)

    monkeypatch.setattr(users, "is_right", counted)

    async def story(house: House) -> None:
        callers = await asyncio.gather(*(house.welcomed("will") for _ in range(100)))
        callers.append(await house.welcomed("will"))
        assert checks == [PASSWORD]
        for caller in callers:
            caller.close()

    play(story)


def test_too_many_passwords_at_once_are_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever guesses many keeps the node's threads busy, not its memory full."""
    go_on = threading.Event()
    monkeypatch.setattr(users, "is_right", lambda *_: go_on.wait(20) and False)

    async def story() -> None:
        desk = StubDesk()
        desk.appoint("will", "write", cheap(PASSWORD))
        checked = Users(desk, lambda: None, Limits(password_checks=4))
        told: list[Known | Declined] = []
        for number in range(6):
            checked.check("10.0.0.9", "will", f"guess {number}", told.append)
        assert [each.kind for each in told if isinstance(each, Declined)] == ["busy", "busy"]
        go_on.set()
        await until(lambda: len(told) == 6)
        assert [each.kind for each in told if isinstance(each, Declined)][2:] == ["password"] * 4
        checked.close()

    asyncio.run(story())


def test_who_guesses_is_stopped_and_costs_nothing_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the next guess is right: else it would be worth going on. Others at the same host are let in."""
    checks: list[str] = []

    def counted(password: str, against: str) -> bool:
        checks.append(password)
        return passwords.is_right(password, against)

    monkeypatch.setattr(users, "is_right", counted)

    async def said_to(house: House, user: str, password: str) -> wire.Answer:
        async with await house.call() as caller:
            return await caller.ask(wire.Hello(wire.VERSION, user, password))

    async def story(house: House) -> None:
        for number in range(OF_A_USER):
            no = await said_to(house, "will", f"guess {number}")
            assert isinstance(no, wire.No)
            assert no.kind == "password"
        for password in ("guess again", PASSWORD):
            no = await said_to(house, "will", password)
            assert isinstance(no, wire.No)
            assert (no.kind, no.is_retriable) == ("guesses", True)
            assert "try again in 6 s" in no.reason
        assert len(checks) == OF_A_USER
        assert isinstance(await said_to(house, "ann", PASSWORD), wire.Welcome)
        async with await house.operator() as operator:
            assert isinstance(await operator.ask(read(1)), wire.Rows)

    play(story)


def test_guesses_at_once_are_paid_for_before_they_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(users, "is_right", lambda *_: go_on.wait(20) and False)

    async def story() -> None:
        desk = StubDesk()
        desk.appoint("will", "write", cheap(PASSWORD))
        checked = Users(desk, lambda: None)
        told: list[Known | Declined] = []
        for number in range(100):
            checked.check("10.0.0.9", "will", f"guess {number}", told.append)
        assert [each.kind for each in told if isinstance(each, Declined)] == ["guesses"] * (100 - OF_A_USER)
        go_on.set()
        await until(lambda: len(told) == 100)
        checked.close()

    asyncio.run(story())


def test_passwords_are_checked_by_threads_that_stand_back() -> None:
    niceness: list[int] = []

    async def story() -> None:
        desk = StubDesk()
        desk.appoint("will", "write", cheap(PASSWORD))
        checked = Users(desk, lambda: None)
        told: list[Known | Declined] = []
        checked.check("10.0.0.9", "will", PASSWORD, told.append)
        await until(lambda: bool(told))
        threads = [each.native_id for each in threading.enumerate() if each.name.startswith("passwords")]
        niceness.extend(os.getpriority(os.PRIO_PROCESS, each) for each in threads if each is not None)
        checked.close()

    before = os.getpriority(os.PRIO_PROCESS, 0)
    asyncio.run(story())
    assert set(niceness) == {10}
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_name_that_nobody_can_have_is_not_looked_up() -> None:
    async def story() -> None:
        desk = StubDesk()
        checked = Users(desk, lambda: None)
        told: list[Known | Declined] = []
        checked.check("10.0.0.9", "x" * 60_000, "", told.append)
        assert isinstance(told[0], Declined)
        assert (told[0].kind, len(told[0].reason) < 200, desk.looked_up) == ("password", True, [])
        checked.close()

    asyncio.run(story())


def test_a_cluster_without_a_key_has_an_operator_without_a_password() -> None:
    async def story() -> None:
        told: list[Known | Declined] = []
        checked = Users(StubDesk(), lambda: None)
        checked.check("10.0.0.9", "operator", "", told.append)
        assert told == [Known("operator", "admin", "")]
        checked.close()

    asyncio.run(story())
