"""Sessions as the client has them: what is received, what may be asked again, and what nobody can know."""

from __future__ import annotations

import asyncio

import pytest

from greenline.client.asked import AROUND, Asked, Part, Session
from greenline.client.errors import OutcomeUnknown, Refused
from greenline.client.writes import FRAME_BYTES
from greenline.kernel.actions import WINDOW, Action, Outcome, Verdict, pack
from greenline.node.config import BUNDLE_BYTES
from greenline.replication.port import Level, Where

WHERE = Where("p", True, 1, ("p",))
DONE = Outcome(Verdict.DONE, b"", 7, 3)


def parts(session: Session, *sizes: int) -> list[Part]:
    """Of calls of so many actions each, numbered, and sent once."""
    made = [Asked([b"x"] * size, Level.LOCAL, tell_taken=False).next_part(size, 1 << 20) for size in sizes]
    for part in made:
        session.number(part)
        part.times = 1
    return made


def settle(session: Session, part: Part, *verdicts: Verdict) -> list[Part]:
    undecided = session.answer(part, [Outcome(verdict) for verdict in verdicts], WHERE, Level.LOCAL)
    session.receive()
    return undecided


def test_only_what_is_answered_without_a_gap_is_received() -> None:
    session = Session("c@0")
    a, b, c = parts(session, 1, 2, 1)
    settle(session, b, Verdict.DONE, Verdict.FAILED)
    assert (session.received, session.room) == (0, WINDOW - 4)
    settle(session, a, Verdict.DONE)
    assert (session.received, session.room) == (3, WINDOW - 1)
    assert [(action.number, action.received) for action in session.actions_of(c)] == [(4, 3)]


def test_of_a_part_that_is_decided_by_half_the_other_half_stays_open() -> None:
    session = Session("c@0")
    (part,) = parts(session, 4)
    undecided = settle(session, part, Verdict.DONE, Verdict.DONE, Verdict.CROWDED, Verdict.EARLY)
    assert [each.first for each in undecided] == [3, 4]
    assert session.received == 2
    assert part.asked.left == 2
    assert [each.first for each in part.asked.parts] == [1, 2, 3, 4]


def test_a_part_is_cut_by_number_and_by_bytes_but_has_at_least_one_action() -> None:
    asked = Asked([b"x" * 10, b"x" * 10, b"x" * 99, b"x", b"x"], Level.LOCAL, tell_taken=False)
    cut = [asked.next_part(2, 50 + 2 * AROUND) for _ in range(3)]
    sizes = [(part.start, part.stop, part.size - AROUND * len(part)) for part in cut]
    assert sizes == [(0, 2, 20), (2, 3, 99), (3, 5, 2)]


@pytest.mark.parametrize(
    ("times", "told", "fates"),
    [
        ("1 1 1", "yes yes yes", "again again again"),
        ("1 1 1", "no yes no", "unknown again again"),
        ("1 1 1", "no no no", "unknown unknown unknown"),
        ("2 2 2", "yes yes yes", "unknown unknown unknown"),
        ("2 1 2", "yes yes yes", "unknown again again"),
        ("1 2 2", "yes yes no", "again again again"),
        ("2 2 0", "no no no", "unknown unknown again"),
    ],
)
def test_what_may_be_asked_again_when_a_session_is_over(times: str, told: str, fates: str) -> None:
    """Sent once and told that it is not decided: it never will be, and nothing after it. Otherwise a copy of it may be
    on its way."""
    session = Session("c@0")
    made = parts(session, 1, 1, 1)
    for part, so_often, is_told in zip(made, times.split(), told.split(), strict=True):
        part.times, part.is_told = int(so_often), is_told == "yes"

    again = session.close("the session is over")

    found = ["again" if part in again else "unknown" for part in made]
    assert found == fates.split()
    for part in made:
        (outcome,) = part.asked.outcomes
        assert outcome is None if part in again else isinstance(outcome, OutcomeUnknown)


def test_what_is_asked_again_in_another_session_can_become_unknown_there() -> None:
    first, second = Session("c@0"), Session("d@9")
    (part,) = parts(first, 1)
    part.is_told = True
    (again,) = first.close("the session is over")
    second.number(again)
    again.times = 1
    assert second.close("the connection was lost, and the session is over") == []
    (outcome,) = part.asked.outcomes
    assert isinstance(outcome, OutcomeUnknown)
    assert str(outcome.identity) == "d@9/1"


def test_who_was_refused_is_told_why_and_those_behind_are_asked_again() -> None:
    session = Session("c@0")
    a, b = parts(session, 1, 1)
    a.is_told, a.refusal = True, Refused("not this")
    b.times = 2
    assert session.close("refused") == [b]
    assert a.asked.outcomes == [a.refusal]


def test_one_who_stops_waiting_leaves_the_others_alone() -> None:
    async def story() -> None:
        session = Session("c@0")
        (part,) = parts(session, 1)
        waiting = [asyncio.create_task(part.asked.until_green()) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        part.settle([DONE], WHERE, Level.LOCAL)
        await waiting[1]
        assert waiting[0].cancelled()
        await part.asked.until_green()

    asyncio.run(story())


def test_what_goes_into_one_frame_fits_a_bundle_with_all_that_is_around_it() -> None:
    asked = Asked([b"x" * 30] * 60_000, Level.LOCAL, tell_taken=False)
    part = asked.next_part(60_000, FRAME_BYTES)
    session = "c0123456789abcdef@1000000000000000000"
    packed = pack(tuple(Action(session, 2**40 + each, body, 2**40) for each, body in enumerate(part.bodies)))
    assert 1 < len(part) < 60_000
    assert len(packed) <= BUNDLE_BYTES
