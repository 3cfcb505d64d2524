"""Every rule of the noticeboard has traces that break it, and traces next to them that do not."""

from __future__ import annotations

import pytest

from greenline.spec.judge import Judge, by_run, rules_in
from tests.trace.rows import trace

JUDGE = Judge(("run", "noticeboard"))

GOOD = """
    p.1 start
    q.1 start
    p.1 generate p:1:1 basic
    p.1 send p:1:1
    p.1 deliver p:1:1 basic
    q.1 deliver p:1:1 basic
    q.1 crash
    q.2 start
    q.2 deliver p:1:1 basic
    p.1 generate p:1:2 basic
    p.1 send p:1:2
    q.2 deliver p:1:2 basic
    p.1 deliver p:1:2 basic
    * quiet
"""


def broken(text: str) -> list[tuple[str, str | None, str | None]]:
    """Rule, process and message of every violation."""
    found = JUDGE.broken(trace(text))
    return [(each.rule, each.witness.get("process"), each.witness.get("message")) for each in found]


def without(line: str, text: str = GOOD) -> str:
    assert text.count(line) == 1, f"{line!r} is not once in the history"
    return text.replace(line, "")


def instead(line: str, other: str, text: str = GOOD) -> str:
    assert text.count(line) == 1, f"{line!r} is not once in the history"
    return text.replace(line, other)


def test_a_good_history_breaks_nothing() -> None:
    assert broken(GOOD) == []


def test_once_quiet_everybody_is_up() -> None:
    halted = "p.1 start\np.1 halt the disk failed: no space left\n"
    assert broken(halted + "* quiet") == [("run/2_everybody_is_up", "p", None)]
    assert broken(halted) == []
    assert broken(halted + "p.2 start\n* quiet") == []
    assert broken(halted + "* gone p\n* quiet") == [], "it was stopped for good"


def test_a_node_may_halt_for_its_disk_but_not_for_our_mistake() -> None:
    assert broken("p.1 start\np.1 halt the disk failed: no space left") == []
    assert broken("p.1 start\np.1 halt impossible: board: pinned over a gap") == [
        ("run/1_nothing_impossible", "p", None)
    ]


@pytest.mark.parametrize(
    ("text", "witness"),
    [
        (without("p.1 generate p:1:2 basic"), ("p:1:2", {"p", "q"})),
        (instead("q.2 deliver p:1:2 basic", "q.2 deliver p:1:2 basic digest=other"), ("p:1:2", {"q"})),
        (instead("q.2 deliver p:1:2 basic", "q.2 deliver p:1:2 safe"), ("p:1:2", {"q"})),
    ],
    ids=["nobody posted it", "with another text", "with another service"],
)
def test_1_what_is_read_was_posted(text: str, witness: tuple[str, set[str]]) -> None:
    found = [each for each in broken(text) if each[0] == "noticeboard/1_posted_before_read"]
    assert {process for _, process, _ in found} == witness[1]
    assert {message for _, _, message in found} == {witness[0]}


def test_2_nobody_reads_twice_in_one_life() -> None:
    twice = instead("q.1 deliver p:1:1 basic", "q.1 deliver p:1:1 basic\nq.1 deliver p:1:1 basic")
    assert ("noticeboard/2_read_once", "q", "p:1:1") in broken(twice)


@pytest.mark.parametrize(
    ("text", "witness"),
    [
        (without("q.2 deliver p:1:1 basic"), ("noticeboard/3_in_the_authors_order", "q", "p:1:2")),
        (
            instead("p.1 send p:1:1\n    p.1 deliver p:1:1 basic", "p.1 send p:1:1\n    p.1 deliver p:1:2 basic"),
            ("noticeboard/3_in_the_authors_order", "p", "p:1:2"),
        ),
    ],
    ids=["a gap", "swapped"],
)
def test_3_notices_are_read_in_their_authors_order(text: str, witness: tuple[str, str, str]) -> None:
    assert witness in broken(text)


def test_3_the_lives_of_an_author_are_counted_apart() -> None:
    assert (
        broken("""
        p.1 start
        p.1 generate p:1:1
        p.1 deliver p:1:1
        p.1 crash
        p.2 start
        p.2 deliver p:1:1
        p.2 generate p:2:1
        p.2 send p:2:1
        p.2 deliver p:2:1
        * quiet
    """)
        == []
    )


FORGETFUL = """
    p.1 start
    p.1 generate p:1:1
    p.1 deliver p:1:1
    p.1 crash
    p.2 start
"""


def test_4_what_was_read_is_not_forgotten() -> None:
    assert ("noticeboard/4_nothing_read_is_forgotten", "p", "p:1:1") in broken(FORGETFUL + "* quiet")
    assert broken(FORGETFUL) == [], "the run goes on: it may read it yet"


UNREAD = """
    p.1 start
    q.1 start
    p.1 generate p:1:1
    p.1 send p:1:1
    p.1 deliver p:1:1
"""


def test_5_everyone_reads_everything_once_it_is_quiet() -> None:
    assert broken(UNREAD + "* quiet") == [("noticeboard/5_everyone_reads_everything", "q", "p:1:1")]
    assert broken(UNREAD) == [], "not yet is not never"
    assert broken(UNREAD + "q.1 crash\n* quiet") == [("run/2_everybody_is_up", "q", None)], "who is down cannot read"


def test_6_what_was_accepted_is_sent_unless_its_life_ended() -> None:
    accepted = "p.1 start\np.1 generate p:1:1\n"
    assert broken(accepted + "* quiet") == [("noticeboard/6_accepted_is_sent", "p", "p:1:1")]
    assert broken(accepted) == [], "not yet is not never"
    assert broken(accepted + "p.1 crash\np.2 start\n* quiet") == [], "it crashed before it could"


def test_5_a_notice_that_was_read_but_never_sent_counts_too() -> None:
    """Its author crashed before it could be told that the notice was sent; a reader has it all the same."""
    text = without("p.1 send p:1:1", UNREAD)
    found = broken(text + "p.1 crash\np.2 start\np.2 deliver p:1:1\n* quiet")
    assert found == [("noticeboard/5_everyone_reads_everything", "q", "p:1:1")]


def test_many_runs_are_judged_in_one_go_and_told_apart() -> None:
    found = by_run(JUDGE.broken(trace(GOOD, UNREAD + "* quiet", GOOD, FORGETFUL + "* quiet")))
    assert {run: {each.rule for each in broken} for run, broken in found.items()} == {
        "run1": {"noticeboard/5_everyone_reads_everything"},
        "run3": {"noticeboard/4_nothing_read_is_forgotten", "noticeboard/5_everyone_reads_everything"},
    }


def test_a_violation_reads_as_a_sentence() -> None:
    (found,) = JUDGE.broken(trace(UNREAD + "* quiet"))
    assert str(found) == (
        "noticeboard 5 everyone reads everything: it was never read, though the run fell quiet "
        "(process q, message p:1:1)"
    )


def test_every_rule_says_what_it_claims() -> None:
    for rule in (*rules_in("run"), *rules_in("noticeboard")):
        assert rule.claim.endswith("."), rule.name
        assert "because" in rule.sql, rule.name


def test_a_folder_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no folder 'nowhere'"):
        rules_in("nowhere")
