"""Thesis section 4.2, figure 4.8: the execution passes, and every variation that the text calls wrong fails.

The messages m1 to m5 of the figure are p:1:1, q:1:1, p:1:2, r:1:1 and p:1:3; m' is s:1:1.
"""

from __future__ import annotations

import pytest

from greenline.spec import twin
from greenline.spec.judge import Judge
from tests.trace.rows import history, trace

JUDGE = Judge(("evs",))

FIGURE = """
    p.1 start
    p.1 regular p.1 p
    q.1 start
    q.1 regular q.1 q
    r.1 start
    r.1 regular r.1 r
    s.1 start
    s.1 regular s.1 s
    t.1 start
    t.1 regular t.1 t
    p.1 transitional p.1>p.2 p
    p.1 regular p.2 p q r
    q.1 transitional q.1>p.2 q
    q.1 regular p.2 p q r
    r.1 transitional r.1>p.2 r
    r.1 regular p.2 p q r
    s.1 transitional s.1>s.2 s
    s.1 regular s.2 s t
    t.1 transitional t.1>s.2 t
    t.1 regular s.2 s t

    p.1 generate p:1:1 safe
    p.1 send p:1:1
    q.1 generate q:1:1 safe
    q.1 send q:1:1
    p.1 deliver p:1:1 safe
    q.1 deliver p:1:1 safe
    r.1 deliver p:1:1 safe
    p.1 generate p:1:2 safe
    p.1 send p:1:2
    r.1 generate r:1:1 safe
    r.1 send r:1:1
    p.1 deliver q:1:1 safe
    p.1 generate p:1:3 safe
    p.1 send p:1:3
    s.1 generate s:1:1 safe
    s.1 send s:1:1
    s.1 deliver s:1:1 safe
    t.1 deliver s:1:1 safe

    p.1 transitional p.2>p.3 p
    p.1 deliver p:1:2 safe
    p.1 deliver r:1:1 safe
    p.1 deliver p:1:3 safe
    p.1 regular p.3 p
    q.1 transitional p.2>q.3 q r
    q.1 deliver q:1:1 safe
    q.1 deliver r:1:1 safe
    q.1 regular q.3 q r s t
    r.1 transitional p.2>q.3 q r
    r.1 deliver q:1:1 safe
    r.1 deliver r:1:1 safe
    r.1 regular q.3 q r s t
    s.1 transitional s.2>q.3 s t
    s.1 regular q.3 q r s t
    t.1 transitional s.2>q.3 s t
    t.1 regular q.3 q r s t
    * quiet
"""


def changed(*changes: tuple[str, str]) -> str:
    """The figure with lines replaced; each must be there exactly once."""
    text = FIGURE
    for line, other in changes:
        assert text.count(line) == 1, line
        text = text.replace(line, other)
    return text


def broken(text: str) -> set[str]:
    """The rules that are broken, on which the SQL and its twin agree."""
    rules = {each.rule for each in JUDGE.broken(trace(text))}
    assert rules == twin.broken(history(text))
    return {rule.removeprefix("evs/") for rule in rules}


def test_the_figure_is_an_execution_of_extended_virtual_synchrony() -> None:
    assert broken(FIGURE) == set()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        pytest.param(
            [
                ("    q.1 deliver r:1:1 safe", "    q.1 deliver r:1:1 safe\n    q.1 deliver p:1:3 safe"),
                ("    r.1 deliver r:1:1 safe", "    r.1 deliver r:1:1 safe\n    r.1 deliver p:1:3 safe"),
            ],
            "5_causal_delivery",
            id="q and r deliver m5 without m3, which is causally before it",
        ),
        pytest.param(
            [
                ("    q.1 transitional p.2>q.3 q r\n    q.1 deliver q:1:1 safe", "    q.1 transitional p.2>q.3 q r"),
                ("    r.1 transitional p.2>q.3 q r\n    r.1 deliver q:1:1 safe", "    r.1 transitional p.2>q.3 q r"),
            ],
            "7_1_safe_delivery",
            id="q and r do not deliver m2, though p delivered it in the regular configuration",
        ),
        pytest.param(
            [("    q.1 transitional p.2>q.3 q r\n    q.1 deliver q:1:1 safe", "    q.1 transitional p.2>q.3 q r")],
            "3_self_delivery",
            id="q does not deliver its own m2",
        ),
        pytest.param(
            [("    r.1 deliver p:1:1 safe", "    r.1 generate r:1:9 basic")],
            "4_failure_atomicity",
            id="r does not deliver m1 in the regular configuration, as q does that goes with it",
        ),
        pytest.param(
            [
                ("    p.1 transitional p.2>p.3 p\n    p.1 deliver p:1:2 safe", "    p.1 deliver p:1:2 safe"),
                ("    p.1 deliver r:1:1 safe", "    p.1 transitional p.2>p.3 p\n    p.1 deliver r:1:1 safe"),
            ],
            "7_1_safe_delivery",
            id="p delivers m3 in the regular configuration, though q and r never do",
        ),
        pytest.param(
            [
                ("    q.1 transitional p.2>q.3 q r\n    q.1 deliver q:1:1 safe", "    q.1 transitional p.2>q.3 q r"),
                ("    q.1 deliver r:1:1 safe", "    q.1 deliver r:1:1 safe\n    q.1 deliver q:1:1 safe"),
            ],
            "6_2_at_one_logical_time",
            id="q delivers m4 before m2, r and p after it",
        ),
        pytest.param(
            [("    p.1 deliver p:1:3 safe", "    p.1 generate p:1:4 basic")],
            "3_self_delivery",
            id="p does not deliver its own m5",
        ),
        pytest.param(
            [
                ("    s.1 deliver s:1:1 safe", "    s.1 generate s:1:2 basic"),
                ("    t.1 deliver s:1:1 safe", "    t.1 generate t:1:1 basic"),
                ("    s.1 transitional s.2>q.3 s t", "    s.1 transitional s.2>q.3 s t\n    s.1 deliver s:1:1 safe"),
                ("    t.1 transitional s.2>q.3 s t", "    t.1 transitional s.2>q.3 s t\n    t.1 deliver s:1:1 safe"),
            ],
            "vs_10_a_merge_loses_nothing",
            id="s and t deliver m' only in their transitional configuration, though nobody left",
        ),
        pytest.param(
            [("    q.1 regular q.3 q r s t", "    q.1 deliver p:1:2 safe\n    q.1 regular q.3 q r s t")],
            "6_2_at_one_logical_time",
            id="q delivers m3 after m4",
        ),
        pytest.param(
            [("    p.1 regular p.3 p\n    q.1", "    p.1 regular p.3 p\n    p.1 deliver s:1:1 safe\n    q.1")],
            "1_3_delivered_was_sent",
            id="p delivers m', which was sent in a configuration of others",
        ),
    ],
)
def test_what_the_text_calls_wrong_breaks_the_right_rule(changes: list[tuple[str, str]], rule: str) -> None:
    assert rule in broken(changed(*changes))
