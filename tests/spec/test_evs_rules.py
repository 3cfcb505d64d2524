"""Every rule of Extended Virtual Synchrony has hand-made traces that break it, and one next to them that does not.

`PAIR` is two processes that meet, speak, and part; each case changes a line or two of it. The SQL must name the rows,
and its plain twin must come to the same verdict on every rule.
"""

from __future__ import annotations

import pytest

from greenline.spec import twin
from greenline.spec.judge import Judge, rules_in
from greenline.trace.tables import to_table
from tests.trace.rows import history, trace

JUDGE = Judge(("evs",))

PAIR = """
p.1 start
p.1 regular p.1 p
q.1 start
q.1 regular q.1 q
p.1 transitional p.1>p.2 p
p.1 regular p.2 p q
q.1 transitional q.1>p.2 q
q.1 regular p.2 p q
p.1 generate p:1:1 safe
p.1 send p:1:1
q.1 generate q:1:1 agreed
q.1 send q:1:1
p.1 deliver p:1:1 safe
q.1 deliver p:1:1 safe
p.1 deliver q:1:1 agreed
q.1 deliver q:1:1 agreed
p.1 generate p:1:2 safe
p.1 send p:1:2
p.1 transitional p.2>p.3 p
p.1 deliver p:1:2 safe
p.1 regular p.3 p
q.1 transitional p.2>q.3 q
q.1 regular q.3 q
* quiet
"""

Change = tuple[str, str]


def changed(*changes: Change) -> str:
    text = PAIR
    for line, other in changes:
        assert text.count(f"\n{line}\n") == 1, f"{line!r} is not once in the history"
        text = text.replace(f"\n{line}\n", f"\n{other}\n" if other else "\n")
    return text


def verdict(text: str) -> dict[str, list[dict[str, object]]]:
    """The broken rules with their witnesses; SQL and twin agree on which."""
    found: dict[str, list[dict[str, object]]] = {}
    for each in JUDGE.broken(trace(text)):
        found.setdefault(each.rule.removeprefix("evs/"), []).append(each.witness)
    assert {f"evs/{rule}" for rule in found} == twin.broken(history(text))
    return found


def test_the_pair_breaks_nothing() -> None:
    assert verdict(PAIR) == {}


def test_an_empty_trace_and_one_that_only_begins_break_nothing() -> None:
    assert verdict("p.1 start") == {}
    assert verdict("p.1 start\np.1 crash\np.2 start\np.2 regular p.1 p") == {}


UNQUIET = ("* quiet", "")

CASES: list[tuple[str, list[Change], dict[str, object]]] = [
    # 0: not even well-formed
    ("0_2_a_life_begins_and_ends", [("p.1 start", "")], {"process": "p"}),
    (
        "0_2_a_life_begins_and_ends",
        [("q.1 regular q.3 q", "q.1 regular q.3 q\nq.1 crash\nq.1 generate q:1:2 safe")],
        {"process": "q"},
    ),
    (
        "0_2_a_life_begins_and_ends",
        [("q.1 regular q.3 q", "q.1 regular q.3 q\nq.2 start\nq.2 regular q.4 q")],
        {"process": "q", "incarnation": 1},
    ),
    ("0_3_a_message_is_its_senders", [("q.1 generate q:1:1 agreed", "")], {"process": "q", "message": "q:1:1"}),
    ("0_3_a_message_is_its_senders", [("p.1 send p:1:1", "q.1 send p:1:1")], {"process": "q", "message": "p:1:1"}),
    (
        "0_3_a_message_is_its_senders",
        [("p.1 generate p:1:2 safe", "p.1 generate p:1:2 safe\np.1 generate p:1:2 safe")],
        {"message": "p:1:2"},
    ),
    ("0_4_one_service", [("q.1 deliver p:1:1 safe", "q.1 deliver p:1:1 agreed")], {"message": "p:1:1"}),
    ("0_4_one_service", [("q.1 generate q:1:1 agreed", "q.1 generate q:1:1 AGREED")], {"message": "q:1:1"}),
    ("0_4_one_service", [("p.1 generate p:1:2 safe", "p.1 generate p:1:2")], {"message": "p:1:2"}),
    ("0_5_rows_are_complete", [("p.1 regular p.3 p", "p.1 regular p.3")], {"process": "p"}),
    # 1: basic delivery
    (
        "1_1_precedes_is_an_order",
        [
            ("q.1 deliver p:1:1 safe", ""),
            ("p.1 deliver q:1:1 agreed", ""),
            ("p.1 generate p:1:1 safe", "p.1 deliver q:1:1 agreed\np.1 generate p:1:1 safe"),
            ("q.1 generate q:1:1 agreed", "q.1 deliver p:1:1 safe\nq.1 generate q:1:1 agreed"),
        ],
        {},
    ),
    (
        "1_1_precedes_is_an_order",
        [
            ("p.1 generate p:1:2 safe", ""),
            ("p.1 send p:1:2", ""),
            ("p.1 deliver p:1:2 safe", "p.1 deliver p:1:2 safe\np.1 generate p:1:2 safe\np.1 send p:1:2"),
        ],
        {"process": "p", "message": "p:1:2"},
    ),
    ("1_3_delivered_was_sent", [("p.1 send p:1:2", "")], {"process": "p", "message": "p:1:2"}),
    (
        "1_3_delivered_was_sent",
        [("q.1 regular q.3 q", "q.1 regular q.3 q\nq.1 deliver p:1:2 safe")],
        {"process": "q", "message": "p:1:2", "conf": "q.3"},
    ),
    ("1_3_delivered_was_sent", [("p.1 send p:1:1", "p.1 send p:1:1 conf=p.1")], {"message": "p:1:1"}),
    ("1_4_once", [("p.1 send p:1:2", "p.1 send p:1:2\np.1 send p:1:2")], {"message": "p:1:2"}),
    (
        "1_4_once",
        [("p.1 deliver p:1:2 safe", "p.1 deliver p:1:2 safe\np.1 deliver q:1:1 agreed")],
        {"process": "p", "message": "q:1:1"},
    ),
    (
        "1_4_once",
        [("p.1 deliver p:1:1 safe", "p.1 deliver p:1:1 safe\np.1 deliver p:1:1 safe")],
        {"process": "p", "message": "p:1:1"},
    ),
    (
        "1_4_once",
        [
            (
                "p.1 deliver p:1:2 safe",
                "p.1 deliver p:1:2 safe\np.1 generate p:1:3 safe\np.1 send p:1:3\np.1 deliver p:1:3 safe",
            )
        ],
        {"message": "p:1:3"},
    ),
    # 2: delivery of configuration changes
    (
        "2_1_who_ends_together",
        [("q.1 transitional p.2>q.3 q", ""), ("q.1 regular q.3 q", "")],
        {"process": "q", "other": "p"},
    ),
    (
        "2_1_who_ends_together",
        [("p.1 regular p.3 p", "p.1 regular p.3 p q")],
        {"process": "p", "conf": "p.3", "other": "q"},
    ),
    ("2_1_who_ends_together", [("q.1 regular q.3 q", "q.1 regular q.3 q r")], {"process": "q", "other": "r"}),
    (
        "2_2_in_the_configuration_it_is_in",
        [("q.1 deliver p:1:1 safe", "q.1 deliver p:1:1 safe conf=q.1")],
        {"process": "q", "message": "p:1:1"},
    ),
    (
        "2_2_in_the_configuration_it_is_in",
        [("q.1 deliver q:1:1 agreed", "q.1 deliver q:1:1 agreed conf=x.9")],
        {"process": "q"},
    ),
    (
        "2_2_in_the_configuration_it_is_in",
        [("q.1 regular q.3 q", "q.1 regular q.3 q\nq.1 crash conf=p.2")],
        {"process": "q", "kind": "crash"},
    ),
    (
        "2_3_after_for_all",
        [("q.1 regular p.2 p q", ""), ("q.1 deliver p:1:1 safe", "q.1 deliver p:1:1 safe\nq.1 regular p.2 p q")],
        {"conf": "p.2"},
    ),
    (
        "2_4_before_for_all",
        [("q.1 regular p.2 p q", ""), ("q.1 deliver p:1:1 safe", "q.1 deliver p:1:1 safe\nq.1 regular p.2 p q")],
        {"conf": "p.2"},
    ),
    # 3: self delivery
    ("3_self_delivery", [("p.1 deliver p:1:2 safe", "")], {"process": "p", "message": "p:1:2"}),
    ("3_self_delivery", [("q.1 deliver q:1:1 agreed", "")], {"process": "q", "message": "q:1:1"}),
    # 5: causal delivery
    (
        "5_causal_delivery",
        [
            ("q.1 transitional p.2>q.3 q", "q.1 transitional p.2>q.3 q\nq.1 deliver p:1:2 safe"),
            ("q.1 deliver q:1:1 agreed", ""),
        ],
        {"process": "q", "message": "p:1:2", "cause": "q:1:1"},
    ),
    (
        "5_causal_delivery",
        [
            ("q.1 transitional p.2>q.3 q", "q.1 transitional p.2>q.3 q\nq.1 deliver p:1:2 safe"),
            ("q.1 deliver p:1:1 safe", ""),
        ],
        {"process": "q", "message": "p:1:2", "cause": "p:1:1"},
    ),
    # 6: agreed delivery
    (
        "6_1_order_respects_precedes",
        [
            ("p.1 generate p:1:2 safe", ""),
            ("p.1 send p:1:2", ""),
            ("p.1 deliver p:1:2 safe", "p.1 deliver p:1:2 safe\np.1 generate p:1:2 safe\np.1 send p:1:2"),
        ],
        {"message": "p:1:2"},
    ),
    (
        "6_2_at_one_logical_time",
        [
            ("q.1 deliver p:1:1 safe", ""),
            ("q.1 deliver q:1:1 agreed", "q.1 deliver q:1:1 agreed\nq.1 deliver p:1:1 safe"),
        ],
        {},
    ),
    ("6_3_no_holes", [("q.1 deliver p:1:1 safe", "")], {"process": "q", "message": "p:1:1"}),
    # 7: safe delivery
    ("7_1_safe_delivery", [("q.1 deliver p:1:1 safe", "")], {"process": "q", "message": "p:1:1"}),
    (
        "7_1_safe_delivery",
        [
            ("p.1 deliver p:1:2 safe", ""),
            ("p.1 transitional p.2>p.3 p", "p.1 deliver p:1:2 safe\np.1 transitional p.2>p.3 p"),
        ],
        {"process": "q", "message": "p:1:2"},
    ),
    (
        "7_2_safe_configuration",
        [("p.1 regular p.2 p q", "p.1 regular p.2 p q r"), ("q.1 regular p.2 p q", "q.1 regular p.2 p q r")],
        {"process": "r", "conf": "p.2"},
    ),
    # the facts of virtual synchrony
    ("vs_01_self_inclusion", [("p.1 regular p.3 p", "p.1 regular p.3 q")], {"process": "p", "conf": "p.3"}),
    ("vs_02_one_configuration", [("q.1 regular p.2 p q", "q.1 regular p.2 q")], {"conf": "p.2"}),
    ("vs_02_one_configuration", [("q.1 regular p.2 p q", "q.1 transitional p.2 p q")], {"conf": "p.2"}),
    ("vs_03_counters_rise", [("p.1 regular p.3 p", "p.1 regular p.2 p")], {"process": "p", "conf": "p.2"}),
    (
        "vs_03_counters_rise",
        [("q.1 regular q.3 q", "q.1 regular q.3 q\nq.1 crash\nq.2 start\nq.2 regular q.3 q")],
        {"process": "q"},
    ),
    ("vs_04_alone_at_first", [("p.1 regular p.1 p", "p.1 regular p.1 p q")], {"process": "p", "conf": "p.1"}),
    ("vs_04_alone_at_first", [("q.1 regular q.1 q", "")], {"process": "q"}),
    ("vs_05_regular_and_transitional_alternate", [("p.1 transitional p.2>p.3 p", "")], {"process": "p", "conf": "p.3"}),
    (
        "vs_05_regular_and_transitional_alternate",
        [("q.1 transitional p.2>q.3 q", "q.1 transitional p.2>p.3 q")],
        {"conf": "p.2>p.3"},
    ),
    (
        "vs_06_transitional_members",
        [("p.1 transitional p.2>p.3 p", "p.1 transitional p.2>p.3 p q")],
        {"process": "q", "conf": "p.2>p.3"},
    ),
    (
        "vs_06_transitional_members",
        [("p.1 transitional p.2>p.3 p", "p.1 transitional p.2>p.3 q")],
        {"process": "p", "conf": "p.2>p.3"},
    ),
    (
        "vs_08_nothing_sent_in_transition",
        [("p.1 deliver p:1:2 safe", "p.1 deliver p:1:2 safe\np.1 generate p:1:3 safe\np.1 send p:1:3")],
        {"process": "p", "message": "p:1:3"},
    ),
    ("vs_09_a_prefix_of_one_order", [("q.1 deliver p:1:1 safe", "")], {"conf": "p.2", "place": 1}),
    (
        "vs_10_a_merge_loses_nothing",
        [
            (
                "q.1 transitional q.1>p.2 q",
                "q.1 generate q:1:0 safe\nq.1 send q:1:0\nq.1 transitional q.1>p.2 q\nq.1 deliver q:1:0 safe",
            )
        ],
        {"process": "q", "message": "q:1:0"},
    ),
    (
        "vs_11_own_messages_in_order",
        [("p.1 deliver p:1:1 safe", ""), ("p.1 deliver p:1:2 safe", "p.1 deliver p:1:2 safe\np.1 deliver p:1:1 safe")],
        {"process": "p", "message": "p:1:1"},
    ),
    # and once more, in another way each
    (
        "2_3_after_for_all",
        [("p.1 regular p.2 p q", ""), ("p.1 deliver q:1:1 agreed", "p.1 deliver q:1:1 agreed\np.1 regular p.2 p q")],
        {"conf": "p.2"},
    ),
    (
        "2_4_before_for_all",
        [("p.1 regular p.2 p q", ""), ("p.1 deliver q:1:1 agreed", "p.1 deliver q:1:1 agreed\np.1 regular p.2 p q")],
        {"conf": "p.2"},
    ),
    (
        "6_1_order_respects_precedes",
        [
            ("q.1 deliver p:1:1 safe", ""),
            ("p.1 deliver q:1:1 agreed", ""),
            ("p.1 generate p:1:1 safe", "p.1 deliver q:1:1 agreed\np.1 generate p:1:1 safe"),
            ("q.1 generate q:1:1 agreed", "q.1 deliver p:1:1 safe\nq.1 generate q:1:1 agreed"),
        ],
        {},
    ),
    (
        "6_2_at_one_logical_time",
        [("q.1 regular p.2 p q", ""), ("q.1 deliver p:1:1 safe", "q.1 deliver p:1:1 safe\nq.1 regular p.2 p q")],
        {"conf": "p.2"},
    ),
    ("6_3_no_holes", [("p.1 deliver p:1:1 safe", "")], {"process": "p", "message": "p:1:1", "conf": "p.2"}),
    ("vs_01_self_inclusion", [("q.1 transitional p.2>q.3 q", "q.1 transitional p.2>q.3 p")], {"process": "q"}),
    (
        "vs_08_nothing_sent_in_transition",
        [("q.1 transitional p.2>q.3 q", "q.1 transitional p.2>q.3 q\nq.1 generate q:1:2 safe\nq.1 send q:1:2")],
        {"process": "q", "message": "q:1:2"},
    ),
    (
        "vs_09_a_prefix_of_one_order",
        [
            ("q.1 deliver p:1:1 safe", ""),
            ("q.1 deliver q:1:1 agreed", "q.1 deliver q:1:1 agreed\nq.1 deliver p:1:1 safe"),
        ],
        {"conf": "p.2", "place": 1},
    ),
    (
        "vs_10_a_merge_loses_nothing",
        [
            (
                "p.1 transitional p.1>p.2 p",
                "p.1 generate p:1:0 agreed\np.1 send p:1:0\np.1 transitional p.1>p.2 p\np.1 deliver p:1:0 agreed",
            )
        ],
        {"process": "p", "message": "p:1:0"},
    ),
    (
        "vs_11_own_messages_in_order",
        [
            ("q.1 send q:1:1", "q.1 send q:1:1\nq.1 generate q:1:2 causal\nq.1 send q:1:2"),
            ("q.1 deliver q:1:1 agreed", "q.1 deliver q:1:2 causal\nq.1 deliver q:1:1 agreed"),
        ],
        {"process": "q", "message": "q:1:1"},
    ),
]

TOGETHER: list[Change] = [
    ("p.1 transitional p.2>p.3 p", "p.1 transitional p.2>p.3 p q"),
    ("p.1 deliver p:1:2 safe", "p.1 regular p.3 p q"),
    ("p.1 regular p.3 p", "q.1 deliver p:1:2 safe"),
    ("p.1 send p:1:2", "p.1 send p:1:2\np.1 deliver p:1:2 safe"),
    ("q.1 transitional p.2>q.3 q", "q.1 transitional p.2>p.3 p q"),
    ("q.1 regular q.3 q", "q.1 regular p.3 p q"),
]
"""p and q part no more, but go on together."""


def together(*changes: Change) -> str:
    text = changed(*TOGETHER)
    for line, other in changes:
        assert text.count(f"\n{line}\n") == 1, line
        text = text.replace(f"\n{line}\n", f"\n{other}\n" if other else "\n")
    return text


@pytest.mark.parametrize(
    ("rule", "changes", "witness"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_rule_is_broken_and_its_row_is_named(rule: str, changes: list[Change], witness: dict[str, object]) -> None:
    found = verdict(changed(*changes))
    assert rule in found
    assert any(witness.items() <= row.items() for row in found[rule]), found[rule]


def test_who_goes_on_together_delivers_the_same() -> None:
    assert verdict(together()) == {}
    without = together(("q.1 deliver p:1:2 safe", ""))
    assert {"4_failure_atomicity", "7_1_safe_delivery", "vs_07_together_all_the_way"} <= verdict(without).keys()
    assert verdict(without)["4_failure_atomicity"][0]["message"] == "p:1:2"
    later = together(
        ("q.1 deliver p:1:2 safe", ""),
        ("q.1 transitional p.2>p.3 p q", "q.1 transitional p.2>p.3 p q\nq.1 deliver p:1:2 safe"),
    )
    assert {"4_failure_atomicity", "vs_07_together_all_the_way", "vs_10_a_merge_loses_nothing"} <= verdict(later).keys()


def test_a_crash_excuses_and_a_run_that_goes_on_may_still_deliver() -> None:
    lacking = [("q.1 deliver p:1:1 safe", ""), ("q.1 deliver q:1:1 agreed", ""), ("q.1 transitional p.2>q.3 q", "")]
    crashed = changed(*lacking, ("q.1 regular q.3 q", "q.1 crash"))
    assert "7_1_safe_delivery" not in verdict(crashed)
    assert "3_self_delivery" not in verdict(crashed)
    going_on = changed(*lacking, ("q.1 regular q.3 q", ""), UNQUIET)
    assert verdict(going_on) == {}
    assert "7_1_safe_delivery" in verdict(changed(*lacking, ("q.1 regular q.3 q", "")))


def test_a_weaker_label_on_a_delivery_hides_nothing() -> None:
    """What was generated as safe is judged as safe, whatever a provider calls it when it delivers it."""
    for label in ("agreed", "basic"):
        hidden = changed(("q.1 deliver p:1:1 safe", ""), ("p.1 deliver p:1:1 safe", f"p.1 deliver p:1:1 {label}"))
        assert {"0_4_one_service", "7_1_safe_delivery"} <= verdict(hidden).keys()


def test_who_is_past_a_configuration_is_not_excused() -> None:
    """The run goes on, but counters rise: q will never install p.2."""
    past = changed(
        UNQUIET,
        ("q.1 generate q:1:1 agreed", ""),
        ("q.1 send q:1:1", ""),
        ("q.1 deliver p:1:1 safe", ""),
        ("q.1 deliver q:1:1 agreed", ""),
        ("p.1 deliver q:1:1 agreed", ""),
        ("q.1 transitional p.2>q.3 q", ""),
        ("q.1 regular q.3 q", ""),
        ("q.1 transitional q.1>p.2 q", "q.1 transitional q.1>q.3 q"),
        ("q.1 regular p.2 p q", "q.1 regular q.3 q"),
    )
    assert {"7_1_safe_delivery", "7_2_safe_configuration"} <= verdict(past).keys()


def test_rows_out_of_number_and_at_one_place() -> None:
    rows = history("p.1 start\np.1 regular p.1 p\np.1 generate p:1:1 safe")
    rows[2].local_index = 3
    assert {each.rule for each in JUDGE.broken(to_table([("gap", rows)]))} == {"evs/0_1_rows_are_numbered"}
    rows[2].local_index = 1
    both = {"evs/0_1_rows_are_numbered", "evs/1_2_a_process_is_a_sequence"}
    assert {each.rule for each in JUDGE.broken(to_table([("twice", rows)]))} == both
    assert twin.broken(rows) == both


def test_a_message_or_a_configuration_without_a_name_is_incomplete() -> None:
    for kind, column in (("deliver", "message"), ("send", "message"), ("regular", "conf"), ("regular", "members")):
        rows = history(PAIR)
        setattr(next(row for row in reversed(rows) if row.kind == kind), column, None)
        broken = {each.rule for each in JUDGE.broken(to_table([("run", rows)]))}
        assert "evs/0_5_rows_are_complete" in broken
        assert broken == twin.broken(rows)


def test_every_rule_is_broken_by_some_case() -> None:
    elsewhere = {
        "0_1_rows_are_numbered",
        "1_2_a_process_is_a_sequence",
        "4_failure_atomicity",
        "vs_07_together_all_the_way",
    }
    assert {rule.name.removeprefix("evs/") for rule in rules_in("evs")} == {rule for rule, _, _ in CASES} | elsewhere


def test_the_twin_has_the_same_rules() -> None:
    assert {rule.name for rule in rules_in("evs")} == set(twin.RULES)
