"""The noticeboard's core, event by event."""

from __future__ import annotations

import pytest

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Append, Barrier, Broadcast, Effect, Ignored, Send
from greenline.kernel.events import Answered, Downcall, Durable, Event, Received, Start, TimerFired, Upcall
from greenline.kernel.identities import MessageId
from greenline.kernel.ports import Deliver, Multicast, Sent, Service
from greenline.noticeboard.company import Timer
from greenline.noticeboard.core import Noticeboard, Unborn
from greenline.noticeboard.messages import Notice, Summary


def notice(number: int, author: str = "q", life: int = 1) -> Notice:
    return Notice(author, life, number, Service.BASIC, b"text")


def started(*records: Notice, life: int = 1) -> Noticeboard:
    core = Noticeboard()
    core.handle(0.0, Start("p", life, records))
    return core


def gates(effects: list[Effect]) -> dict[str, int | None]:
    """Which gate each output of a kind waits at."""
    outputs = [each for each in effects if isinstance(each, Send | Broadcast | Upcall)]
    return {type(getattr(each, "payload", getattr(each, "message", None))).__name__: each.gate for each in outputs}


def test_a_life_begins_alone_and_with_a_hello() -> None:
    core = Noticeboard()
    effects = core.handle(0.0, Start("p", 1))
    assert type(core.phase).__name__ == "Alone"
    assert Broadcast(Summary(())) in effects


def test_nothing_of_a_post_leaves_before_it_is_durable() -> None:
    core = started()
    effects = core.handle(0.0, Downcall(Multicast(MessageId("p", 1, 1), Service.BASIC, b"x")))
    assert Append(Notice("p", 1, 1, Service.BASIC, b"x")) in effects
    assert Barrier(1) in effects
    assert gates(effects) == {Sent.__name__: 1, Notice.__name__: 1, Deliver.__name__: 1}


def test_a_notice_from_a_peer_is_read_when_it_is_durable() -> None:
    effects = started().handle(0.0, Received(notice(1), "q"))
    assert gates(effects) == {Deliver.__name__: 1}


def test_a_notice_counts_in_a_summary_only_when_it_is_durable() -> None:
    core = started()
    core.handle(0.0, Received(notice(1), "q"))
    assert Broadcast(Summary(())) in core.handle(0.1, TimerFired(Timer.HELLO, 1))
    core.handle(0.2, Durable(1))
    assert Broadcast(Summary((("q", 1, 1),))) in core.handle(0.3, TimerFired(Timer.HELLO, 2))


@pytest.mark.parametrize(
    ("number", "reason"), [(1, "already on the board"), (3, "a notice before it is missing")], ids=["again", "early"]
)
def test_a_notice_out_of_turn_is_ignored_by_name(number: int, reason: str) -> None:
    effects = started(notice(1)).handle(0.0, Received(notice(number), "q"))
    assert effects == [Ignored(reason)]


def test_a_summary_is_answered_with_what_its_sender_lacks_in_order() -> None:
    core = started(notice(1), notice(2), notice(1, author="r"))
    effects = core.handle(0.0, Received(Summary((("q", 1, 1),)), "s"))
    assert [each.message for each in effects if isinstance(each, Send)] == [notice(2), notice(1, author="r")]


def test_a_long_answer_comes_in_batches() -> None:
    core = started(*(notice(number) for number in range(1, 41)))
    effects = core.handle(0.0, Received(Summary(()), "s"))
    assert [each.message.number for each in effects if isinstance(each, Send)] == list(range(1, 17))


def test_who_was_silent_for_long_has_left() -> None:
    core = started()
    core.handle(0.0, Received(Summary((("q", 1, 1),)), "q"))
    assert type(core.phase).__name__ == "Exchanging"
    core.handle(0.6, TimerFired(Timer.HELLO, 1))
    assert type(core.phase).__name__ == "Exchanging"
    core.handle(0.8, TimerFired(Timer.HELLO, 2))
    assert type(core.phase).__name__ == "Alone"


@pytest.mark.parametrize("event", [Answered(1, None), Start("p", 2), Upcall("from below"), TimerFired("other", 1)])
@pytest.mark.parametrize("phase", ["Alone", "Exchanging", "Level"])
def test_what_no_phase_expects_is_impossible(phase: str, event: Event) -> None:
    core = started()
    if phase != "Alone":
        core.handle(0.0, Received(Summary(()), "q"))
    if phase == "Level":
        core.handle(0.0, Received(Summary(()), "q"))
    assert type(core.phase).__name__ == phase
    with pytest.raises(Impossible):
        core.handle(0.0, event)


def test_the_first_event_of_a_life_is_its_start() -> None:
    with pytest.raises(Impossible, match="the first event of a life is its start"):
        Noticeboard().handle(0.0, Durable(1))


@pytest.mark.parametrize("phase", ["Alone", "Exchanging", "Level"])
def test_a_peers_nonsense_is_ignored_by_name(phase: str) -> None:
    core = started()
    for _ in range({"Alone": 0, "Exchanging": 1, "Level": 2}[phase]):
        core.handle(0.0, Received(Summary(()), "q"))
    mine = "said to be mine, but I have not written it"
    assert core.handle(0.0, Received(notice(1, author="p", life=1), "q")) == [Ignored(mine)]
    assert core.handle(0.0, Received(notice(1, author="p", life=9), "q")) == [Ignored(mine)]
    assert core.handle(0.0, Received(Summary(()), "p")) == [Ignored("from somebody who uses my name")]


def test_only_what_is_durable_is_given_away() -> None:
    core = started(notice(1))
    core.handle(0.0, Received(notice(2), "q"))
    effects = core.handle(0.0, Received(Summary(()), "s"))
    assert [each.message.number for each in effects if isinstance(each, Send)] == [1]


def test_the_invariants_are_asked_after_every_event() -> None:
    core = started(notice(1))
    phase = core.phase
    assert not isinstance(phase, Unborn)
    phase.board.durable.clear()
    with pytest.raises(AssertionError, match="neither on disk nor on its way there"):
        core.handle(0.1, TimerFired(Timer.HELLO, 1))
