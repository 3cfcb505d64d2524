"""What a provider of the group communication port owes once a run is quiet: each rule with traces that break it."""

from __future__ import annotations

import pytest

from greenline.spec.judge import Judge, rules_in
from tests.trace.rows import trace

JUDGE = Judge(("provider",))

GOOD = """
    p.1 start
    q.1 start
    p.1 regular p.1 p
    q.1 regular q.1 q
    * fault partition p | q
    p.1 generate p:1:1 safe
    p.1 send p:1:1
    p.1 deliver p:1:1 safe
    * healed
    p.1 transitional p.1>p.2 p
    q.1 transitional q.1>p.2 q
    p.1 regular p.2 p q
    q.1 regular p.2 p q
    q.1 generate q:1:1 agreed
    q.1 send q:1:1
    p.1 deliver q:1:1 agreed
    q.1 deliver q:1:1 agreed
    * quiet
"""


def broken(text: str) -> list[tuple[str, str | None]]:
    """Rule and process of every violation."""
    return [(each.rule.removeprefix("provider/"), each.witness.get("process")) for each in JUDGE.broken(trace(text))]


def changed(old: str, new: str = "") -> str:
    assert GOOD.count(old) == 1, f"{old!r} is not once in the history"
    return GOOD.replace(old, new)


def test_a_good_history_breaks_nothing() -> None:
    assert broken(GOOD) == []
    assert len(rules_in("provider")) == 4


def test_1_who_was_stopped_for_good_is_not_missed() -> None:
    alone = "r.1 start\nr.1 regular r.1 r\nr.1 crash\n"
    assert ("1_one_configuration", "p") in broken(alone + GOOD)
    assert broken(alone + "* gone r\n" + GOOD) == []


@pytest.mark.parametrize(
    ("history", "found"),
    [
        pytest.param(
            changed("    q.1 regular p.2 p q\n").replace("q.1 deliver q:1:1 agreed", "q.1 regular q.3 q"),
            [("1_one_configuration", "q"), ("2_sent_is_delivered", None)],
            id="one is left out",
        ),
        pytest.param(
            changed("    q.1 deliver q:1:1 agreed\n"), [("2_sent_is_delivered", "q")], id="not delivered to itself"
        ),
        pytest.param(
            changed("    p.1 deliver q:1:1 agreed\n"), [("2_sent_is_delivered", "p")], id="not delivered to another"
        ),
        pytest.param(
            changed("    q.1 send q:1:1\n").replace("p.1 deliver q:1:1 agreed", ""),
            [("3_generated_is_sent", "q")],
            id="never sent",
        ),
        pytest.param(
            changed("p.1 deliver q:1:1 agreed", "p.1 deliver q:1:1 agreed digest=else"),
            [("4_nothing_is_altered", "p")],
            id="altered",
        ),
    ],
)
def test_a_promise_that_is_not_kept_is_found(history: str, found: list[tuple[str, str | None]]) -> None:
    seen = broken(history)
    for rule, process in found[:1]:
        assert (rule, process) in seen


@pytest.mark.parametrize(
    "old", ["    p.1 deliver q:1:1 agreed\n", "    q.1 send q:1:1\n", "    q.1 deliver q:1:1 agreed\n"]
)
def test_nothing_is_owed_while_a_run_still_goes_on(old: str) -> None:
    assert broken(changed(old).replace("* quiet", "")) == []


def test_rings_may_stay_apart_while_the_network_is_cut() -> None:
    cut = GOOD.replace("* healed", "* fault one way").replace("p.1 regular p.2 p q", "p.1 regular p.2 p")
    assert ("1_one_configuration", "p") not in broken(cut)


def test_the_dead_owe_nothing() -> None:
    assert (
        broken(
            changed("    q.1 send q:1:1\n").replace(
                "    p.1 deliver q:1:1 agreed\n    q.1 deliver q:1:1 agreed", "    q.1 crash"
            )
        )
        == []
    )
