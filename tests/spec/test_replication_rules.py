"""Every rule of replication has hand-made traces that break it, and traces next to them that do not.

`STORY`: p, q and r form a primary component; r is cut off and goes on in red; p and q go on in green, until q crashes
and loses what its disk did not have; all meet again. `COMING`: s joins with a snapshot, and r leaves. `FORCED`: q goes
on alone and burns, and an operator lets p go on without it. Each case changes a line or two of one. The SQL must name
the rows, and its plain twin must come to the same verdict on every rule.
"""

from __future__ import annotations

from functools import cache

import pytest

from greenline.spec import replication_twin as twin
from greenline.spec.judge import Broken, Judge, by_run, folders_by_run, rules_in
from greenline.trace.tables import to_table
from tests.trace.rows import history, trace

JUDGE = Judge(("replication",))


def each(names: str, text: str) -> str:
    """The same lines for each of several processes (and lives), in turn."""
    return "".join(text.replace("@", name) for name in names.split())


def voters(prim: int, members: str) -> str:
    first, *others = members.split(",")
    return f"@ voter {prim} {first} 1 distinguished\n" + "".join(f"@ voter {prim} {name} 1\n" for name in others)


def component(prim: int, members: str) -> str:
    """An attempt to leave the component before, and its success."""
    attempt = f"{prim - 1} 1 {members}"
    return (
        f"@ phase Construct\n@ vulnerable {attempt} valid try\n@ cpc {attempt}\n"
        f"@ install {prim} 1 {members}\n{voters(prim, members)}@ phase RegPrim\n"
    )


STORY = "\n" + "".join(
    (
        each("p.1 q.1 r.1", "@ start\n@ recover 0 0\n" + voters(0, "p,q,r") + "@ opened 0\n@ regular p.1 p q r\n"),
        each("p.1 q.1 r.1", component(1, "p,q,r")),
        "* call a/1 p local append l1 5\n",
        "p.1 create p#1 1\n",
        each(
            "p.1 q.1 r.1", "@ mark p#1 red RegPrim\n@ mark p#1 green 1 OR-1.1 RegPrim\n@ apply 1 0 a/1\n@ durable 1\n"
        ),
        each("p.1 q.1 r.1", "@ commit 1\n@ line p 1\n"),
        "* return a/1 green 1 0 local l1 5\n",
        # r is cut off. What it has from q, it has in transition only.
        "* call a/2 q local read l1\n",
        "q.1 create q#1 1\n",
        each("p.1 q.1", "@ mark q#1 green 2 OR-1.1 RegPrim\n@ apply 2 0 a/2\n@ durable 2\n@ commit 2\n"),
        "* return a/2 green 2 0 local l1 5\n",
        "* fault r is cut off\n",
        "r.1 transitional p.1>r.2 r\nr.1 phase TransPrim\nr.1 mark q#1 yellow TransPrim\n",
        "r.1 regular r.2 r\nr.1 phase NonPrim\n",
        "* call b/1 r memory append l1 6\nr.1 create r#1 1\nr.1 mark r#1 red NonPrim\n* return b/1 red\n",
        # p and q go on. q crashes, and its disk does not have the last bundle.
        each("p.1 q.1", "@ transitional p.1>p.2 p q\n@ regular p.2 p q\n" + component(2, "p,q")),
        "* call a/3 p local write r1 7\np.1 create p#2 1\n",
        each("p.1 q.1", "@ mark p#2 green 3 OR-1.1 RegPrim\n@ apply 3 0 a/3\n"),
        "p.1 durable 3\np.1 commit 3\n* return a/3 green 3 0 local r1 7\n",
        "q.1 crash\nq.2 start\nq.2 recover 2 1\nq.2 opened 2\nq.2 phase NonPrim\n",
        # All meet again.
        "* healed\n",
        each("p.1 q.2 r.1", "@ regular p.3 p q r\n@ phase ExchangeActions\n"),
        "r.1 mark q#1 green 2 OR-3 ExchangeActions\nr.1 apply 2 0 a/2\nr.1 mark p#2 red ExchangeActions\n",
        each("q.2 r.1", "@ mark p#2 green 3 OR-3 ExchangeActions\n@ apply 3 0 a/3\n"),
        each("p.1 q.2", "@ mark r#1 red ExchangeActions\n"),
        each("q.2 r.1", "@ durable 3\n"),
        each("p.1 q.2 r.1", component(3, "p,q,r").replace("@ install", "@ mark r#1 green 4 OR-2 Construct\n@ install")),
        each("p.1 q.2 r.1", "@ apply 4 0 b/1\n@ durable 4\n@ commit 4\n"),
        "p.1 line q 4\np.1 white 4\np.1 discard 4 white\n",
        "* call a/4 p local read l1\n* call a/5 p local total\np.1 create p#3 2\n",
        each("p.1 q.2 r.1", "@ mark p#3 green 5 OR-1.1 RegPrim\n@ apply 5 0 a/4\n@ apply 5 1 a/5\n@ durable 5\n"),
        "* return a/4 green 5 0 local l1 5 6\n* return a/5 green 5 1 local total 100\n",
        "* final p 5 0\n* final q 5 0\n* final r 5 0\n",
        "* quiet\n",
    )
)

COMING = "\n" + "".join(
    (
        each("p.1 q.1 r.1", "@ start\n@ recover 0 0\n" + voters(0, "p,q,r") + "@ opened 0\n@ regular p.1 p q r\n"),
        each("p.1 q.1 r.1", component(1, "p,q,r")),
        "* call a/1 p local append l1 5\np.1 create p#1 1\n",
        each("p.1 q.1 r.1", "@ mark p#1 green 1 OR-1.1 RegPrim\n@ apply 1 0 a/1\n@ durable 1\n@ commit 1\n"),
        "* return a/1 green 1 0 local l1 5 at=p\n",
        # s comes, and becomes what p is.
        "s.1 start\ns.1 recover 0 0\ns.1 newcomer\ns.1 opened 0\np.1 create p#2 0\n",
        each(
            "p.1 q.1 r.1",
            "@ mark p#2 green 2 OR-1.1 RegPrim\n@ roster 2 p,q,r,s join s done\n@ durable 2\n@ commit 2\n",
        ),
        "p.1 line s 2\np.1 white 2\ns.1 replaced 2\ns.1 restored 2\n",
        # r goes, and what it leaves behind is void.
        "* call b/1 r local append l1 6\nr.1 create r#1 1\n* return b/1 red at=r\nq.1 create q#1 0\n",
        each("p.1 q.1 r.1", "@ mark q#1 green 3 OR-1.1 RegPrim\n@ roster 3 p,q,s leave r void done\n@ durable 3\n"),
        "p.1 mark r#1 red RegPrim\n",
        each("p.1 q.1 s.1", "@ regular p.2 p q s\n@ phase ExchangeActions\n"),
        "s.1 mark q#1 green 3 OR-3 ExchangeActions\ns.1 roster 3 p,q,s leave r void done\n",
        each("q.1 s.1", "@ mark r#1 red ExchangeActions\n"),
        each("p.1 q.1 s.1", component(2, "p,q,s").replace("@ install", "@ mark r#1 green 4 OR-2 Construct\n@ install")),
        each("p.1 q.1 s.1", "@ durable 4\n@ commit 4\n"),
        "r.1 left\nr.1 crash\n* gone r\np.1 white 4\np.1 discard 4 white\n",
        # s crashes and comes back as the server that it is.
        "s.1 crash\ns.2 start\ns.2 recover 4 0\ns.2 opened 4\ns.2 phase NonPrim\n",
        each("p.1 q.1 s.2", "@ regular p.3 p q s\n@ phase ExchangeActions\n" + component(3, "p,q,s")),
        "* call a/2 s local read l1\ns.2 create s#1 1\n",
        each("p.1 q.1 s.2", "@ mark s#1 green 5 OR-1.1 RegPrim\n@ apply 5 0 a/2\n@ durable 5\n@ commit 5\n"),
        "* return a/2 green 5 0 local l1 5 at=s\n",
        "* final p 5 0\n* final q 5 0\n* final s 5 0\n* quiet\n",
    )
)

FORCED = "\n" + "".join(
    (
        each("p.1 q.1", "@ start\n@ recover 0 0\n" + voters(0, "q,p") + "@ opened 0\n@ regular p.1 p q\n"),
        each("p.1 q.1", component(1, "q,p")),
        "* call a/1 q local write r1 5\nq.1 create q#1 1\n",
        each("p.1 q.1", "@ mark q#1 green 1 OR-1.1 RegPrim\n@ apply 1 0 a/1\n@ durable 1\n@ commit 1\n"),
        "* return a/1 green 1 0 local r1 5 at=q\n",
        # What only q has is lost with it, answered or not.
        "q.1 regular q.2 q\nq.1 phase ExchangeActions\n" + component(2, "q").replace("@", "q.1"),
        "* call a/2 q local write r1 6\nq.1 create q#2 1\nq.1 mark q#2 green 2 OR-1.1 RegPrim digest=only-q\n",
        "q.1 apply 2 0 a/2\n",
        "q.1 durable 2\nq.1 commit 2\n* return a/2 green 2 0 local r1 6 at=q\nq.1 crash\n* gone q\n",
        "p.1 regular p.2 p\np.1 phase ExchangeActions\np.1 force 1 p they burnt\n",
        component(2, "p").replace("@", "p.1"),
        "* call b/1 p local read r1\np.1 create p#1 1\np.1 mark p#1 green 2 OR-1.1 RegPrim\np.1 apply 2 0 b/1\n",
        "p.1 durable 2\np.1 commit 2\n* return b/1 green 2 0 local r1 5 at=p\n",
        "* final p 2 0\n* quiet\n",
    )
)

Change = tuple[str, str]
UNQUIET = ("* quiet", "")


def changed(*changes: Change, story: str = STORY) -> str:
    text = story
    for line, other in changes:
        assert text.count(f"\n{line}\n") == 1, f"{line!r} is not once in the history"
        text = text.replace(f"\n{line}\n", f"\n{other}\n" if other else "\n")
    return text


def after(line: str, *others: str) -> Change:
    return line, "\n".join((line, *others))


@cache
def judged_together() -> dict[str, list[Broken]]:
    """All cases of the tables below, in one go: most of what a small trace costs is the queries."""
    texts = [changed(*changes) for _, changes, _ in BROKEN] + [changed(*changes) for _, changes in HARMLESS]
    texts += [register(text) for text in (*ORDERABLE.values(), *UNORDERABLE.values())]
    texts += [changed(*changes, story=story) for _, story, changes, _ in BROKEN_SETS]
    texts += [changed(*changes, story=story) for _, story, changes in HARMLESS_SETS]
    found = by_run(JUDGE.broken(trace(*texts)))
    return {text: found.get(f"run{number}", []) for number, text in enumerate(texts)}


def verdict(text: str) -> dict[str, list[dict[str, object]]]:
    """The broken rules with their witnesses; SQL and twin agree on which."""
    found: dict[str, list[dict[str, object]]] = {}
    known = judged_together()
    for each in known[text] if text in known else JUDGE.broken(trace(text)):
        found.setdefault(each.rule.removeprefix("replication/"), []).append(each.witness)
    assert {f"replication/{rule}" for rule in found} == twin.broken(history(text))
    return found


@pytest.mark.parametrize("story", [STORY, COMING, FORCED], ids=["story", "coming", "forced"])
def test_a_story_breaks_nothing(story: str) -> None:
    assert verdict(story) == {}


def test_an_empty_trace_and_one_that_only_begins_break_nothing() -> None:
    assert verdict("p.1 start") == {}
    assert verdict("p.1 start\np.1 recover 0 0\np.1 crash\np.2 start\np.2 recover 0 0\np.2 phase NonPrim") == {}


LAST_GREEN = "q.1 mark p#2 green 3 OR-1.1 RegPrim"
LEARNT = "q.2 mark p#2 green 3 OR-3 ExchangeActions"
READ = "* return a/4 green 5 0 local l1 5 6"

BROKEN: list[tuple[str, list[Change], dict[str, object]]] = [
    ("00_rows_are_complete", [("q.2 recover 2 1", "")], {"process": "q", "incarnation": 2}),
    ("00_rows_are_complete", [("q.2 opened 2", "")], {"process": "q", "incarnation": 2}),
    ("00_rows_are_complete", [("r.1 mark r#1 red NonPrim", "r.1 mark r#1 pink NonPrim")], {"process": "r"}),
    ("00_rows_are_complete", [("r.1 mark r#1 red NonPrim", "r.1 mark r red NonPrim")], {"process": "r"}),
    ("00_rows_are_complete", [("p.1 create p#2 1", "p.1 create q#2 1")], {"process": "p"}),
    ("00_rows_are_complete", [("q.1 voter 2 q 1", "")], {"process": "q"}),
    ("00_rows_are_complete", [("q.1 install 2 1 p,q", "q.1 install 2 1 p,r")], {"process": "q"}),
    ("00_rows_are_complete", [("* call a/2 q local read l1", "")], {"process": "*"}),
    ("00_rows_are_complete", [("* return b/1 red", "* return b/1 white")], {"process": "*"}),
    # 1 to 4: the order
    (
        "01_1_global_total_order",
        [("r.1 mark q#1 green 2 OR-3 ExchangeActions", "r.1 mark r#1 green 2 OR-3 NonPrim")],
        {"position": 2},
    ),
    ("01_1_global_total_order", [(LEARNT, f"{LEARNT} digest=otherwise")], {"position": 3}),
    (
        "01_2_one_order_in_a_configuration",
        [(LAST_GREEN, "q.1 mark q#2 green 3 OR-1.1 RegPrim")],
        {"conf": "p.2", "position": 3},
    ),
    ("01_3_databases_apply_one_order", [("r.1 apply 2 0 a/2", "r.1 apply 2 0 b/1")], {"position": 2, "sub": 0}),
    (
        "01_3_databases_apply_one_order",
        [("r.1 apply 2 0 a/2", "r.1 apply 2 0 a/2 digest=failed")],
        {"position": 2, "sub": 0},
    ),
    ("02_1_no_position_skipped", [("r.1 mark q#1 green 2 OR-3 ExchangeActions", "")], {"process": "r", "position": 3}),
    ("02_1_no_position_skipped", [("q.2 recover 2 1", "q.2 recover 3 1")], {"process": "q", "incarnation": 2}),
    ("02_2_no_action_skipped", [("r.1 apply 5 0 a/4", "")], {"process": "r", "position": 5, "sub": 1}),
    ("02_2_no_action_skipped", [("q.2 opened 2", "q.2 opened 1")], {"process": "q", "incarnation": 2}),
    ("02_2_no_action_skipped", [after("r.1 apply 2 0 a/2", "r.1 apply 2 0 a/2")], {"process": "r", "position": 2}),
    (
        "03_global_fifo",
        [("q.1 mark p#1 green 1 OR-1.1 RegPrim", "q.1 mark p#2 green 1 OR-1.1 RegPrim")],
        {"process": "q"},
    ),
    (
        "04_colours_rise",
        [
            ("p.1 mark r#1 red ExchangeActions", ""),
            after("p.1 mark r#1 green 4 OR-2 Construct", "p.1 mark r#1 red RegPrim"),
        ],
        {"process": "p", "bundle": "r#1"},
    ),
    ("04_colours_rise", [after("r.1 mark q#1 yellow TransPrim", "r.1 mark q#1 red TransPrim")], {"bundle": "q#1"}),
    ("04_colours_rise", [after("r.1 mark r#1 red NonPrim", "r.1 mark r#1 red NonPrim")], {"bundle": "r#1"}),
    ("04_colours_rise", [after("q.2 phase NonPrim", "q.2 mark q#1 red NonPrim")], {"process": "q", "incarnation": 2}),
    # 5 to 7: components
    ("05_1_one_component", [("r.1 install 3 1 p,q,r", "r.1 install 3 2 p,q,r")], {"prim": 3}),
    (
        "05_1_one_component",
        [("r.1 regular r.2 r", "r.1 regular r.2 r\nr.1 install 2 2 r\nr.1 voter 2 r 1 distinguished")],
        {"prim": 2},
    ),
    ("05_2_one_outcome_of_an_attempt", [("q.1 install 2 1 p,q", "q.1 install 2 1 q,r")], {"prim": 2, "attempt": 1}),
    ("05_2_one_outcome_of_an_attempt", [("q.1 install 2 1 p,q", "q.1 install 2 1 p,q digest=longer")], {"prim": 2}),
    ("05_2_one_outcome_of_an_attempt", [("q.1 voter 2 q 1", "q.1 voter 2 q 2")], {"prim": 2}),
    (
        "06_quorum_chain",
        [("r.1 regular r.2 r", "r.1 regular r.2 r\nr.1 install 2 2 r\nr.1 voter 2 r 1 distinguished")],
        {"prim": 2, "members": "r"},
    ),
    (
        "06_quorum_chain",
        [(f"{name} install 3 1 p,q,r", f"{name} install 3 1 q,r") for name in ("p.1", "q.2", "r.1")],
        {"prim": 3},
    ),
    (
        "06_quorum_chain",
        [(f"{name} install 3 1 p,q,r", f"{name} install 4 1 p,q,r") for name in ("p.1", "q.2", "r.1")],
        {"prim": 4},
    ),
    (
        "07_green_in_four_ways",
        [(LEARNT, "q.2 mark p#2 green 3 OR-3 ExchangeStates")],
        {"process": "q", "bundle": "p#2"},
    ),
    ("07_green_in_four_ways", [(LEARNT, "q.2 mark p#2 green 3")], {"process": "q", "bundle": "p#2"}),
    ("07_green_in_four_ways", [(LEARNT, "q.2 mark p#2 green 3 OR-1.1 RegPrim")], {"process": "q", "incarnation": 2}),
    # 8 to 10: disks
    ("08_1_recovery_keeps_the_order", [("q.2 recover 2 1", "q.2 recover 1 1")], {"process": "q", "incarnation": 2}),
    ("08_2_recovery_keeps_own_bundles", [("q.2 recover 2 1", "q.2 recover 2 0")], {"process": "q", "bundle": "q#1"}),
    ("09_1_lines_are_true", [("p.1 line q 4", "p.1 line q 6")], {"server": "q", "position": 6}),
    ("09_1_lines_are_true", [("p.1 durable 3", "p.1 durable 3\np.1 line q 3")], {"server": "q", "position": 3}),
    (
        "09_2_white_is_everywhere",
        [("r.1 durable 5", ""), ("p.1 white 4", "p.1 white 5")],
        {"server": "r", "position": 5},
    ),
    ("09_2_white_is_everywhere", [("p.1 durable 3", "p.1 durable 3\np.1 white 3")], {"server": "q", "position": 3}),
    ("09_2_white_is_everywhere", [("p.1 discard 4 white", "p.1 discard 6 white")], {"server": "q", "kind": "discard"}),
    (
        "10_log_before_data",
        [("q.2 opened 2", "q.2 opened 3"), ("q.2 apply 3 0 a/3", "")],
        {"process": "q", "kind": "opened"},
    ),
    (
        "10_log_before_data",
        [("r.1 durable 1", ""), after("r.1 commit 1", "r.1 durable 1")],
        {"process": "r", "kind": "commit"},
    ),
    ("10_log_before_data", [("p.1 durable 3", "p.1 durable 4")], {"process": "p", "kind": "durable"}),
    (
        "10_log_before_data",
        [
            ("r.1 mark q#1 green 2 OR-3 ExchangeActions", ""),
            after("r.1 apply 2 0 a/2", "r.1 mark q#1 green 2 OR-3 ExchangeActions"),
        ],
        {"process": "r", "kind": "apply"},
    ),
    # 11 and 12: what clients were answered, and how it ends
    (
        "11_1_nothing_answered_moves",
        [("* return a/3 green 3 0 local r1 7", "* return a/3 green 2 0 local r1 7")],
        {"position": 2, "sub": 0},
    ),
    (
        "11_1_nothing_answered_moves",
        [("* return a/5 green 5 1 local total 100", "* return a/5 green 5 0 local total 100")],
        {"position": 5, "sub": 0},
    ),
    ("11_2_nothing_answered_is_lost", [("r.1 apply 4 0 b/1", "")], {"process": "r", "action": "b/1"}),
    (
        "11_2_nothing_answered_is_lost",
        [("* return a/4 green 5 0 local l1 5 6", "* return a/4 green 6 0 local l1 5 6")],
        {"action": "a/4"},
    ),
    (
        "11_2_nothing_answered_is_lost",
        [("q.1 commit 2", ""), ("q.2 opened 2", "q.2 opened 1")],
        {"process": "q", "action": "a/2"},
    ),
    ("11_3_decided_once", [("r.1 apply 5 1 a/5", "r.1 apply 5 1 a/4")], {"process": "r", "action": "a/4"}),
    ("11_3_decided_once", [("* call b/1 r memory append l1 6", ""), ("* return b/1 red", "")], {"action": "b/1"}),
    ("12_convergence", [("* final r 5 0", "* final r 5 0 digest=other")], {"process": "r"}),
    ("12_convergence", [("* final r 5 0", "* final r 4 0 digest=5")], {"process": "r", "position": 4}),
    ("12_convergence", [("* final r 5 0", "* final r 5 1")], {"process": "r"}),
    ("12_convergence", [("* final r 5 0", "")], {"process": "r"}),
    ("12_convergence", [("* quiet", "r.1 phase NonPrim\n* quiet")], {"process": "r"}),
    (
        "12_convergence",
        [(f"{name} install 3 1 p,q,r", f"{name} install 3 1 p,q") for name in ("p.1", "q.2", "r.1")],
        {"process": "r"},
    ),
    # 13: what clients saw
    ("13_1_lists_are_prefixes", [(READ, "* return a/4 green 5 0 local l1 6 5")], {"list": "l1"}),
    ("13_1_lists_are_prefixes", [(READ, "* return a/4 green 5 0 local l1 55 6")], {"list": "l1"}),
    (
        "13_2_an_append_is_the_last",
        [("* return a/1 green 1 0 local l1 5", "* return a/1 green 1 0 local l1 5 6")],
        {"action": "a/1"},
    ),
    ("13_2_an_append_is_the_last", [(READ, "* return a/4 green 5 0 local l2 5 6")], {"action": "a/4"}),
    ("13_3_nothing_from_nowhere", [(READ, "* return a/4 green 5 0 local l1 5 6 7")], {"list": "l1"}),
    ("13_3_nothing_from_nowhere", [(READ, "* return a/4 green 5 0 local l1 5 6 5")], {"list": "l1"}),
    (
        "13_4_lists_in_real_time",
        [("* return a/2 green 2 0 local l1 5", "* return a/2 green 2 0 local l1")],
        {"action": "a/2"},
    ),
    (
        "13_4_lists_in_real_time",
        [("* return a/2 green 2 0 local l1 5", "* return a/2 green 2 0 local l1 5 6")],
        {"action": "b/1"},
    ),
    (
        "13_6_the_sum_stays",
        [
            after(
                "* return a/5 green 5 1 local total 100",
                "* call a/6 p local total",
                "* return a/6 green 6 0 local total 99",
            )
        ],
        {},
    ),
    # 14 to 17
    (
        "14_1_vulnerable_before_cpc",
        [("q.1 vulnerable 1 1 p,q valid try", "")],
        {"process": "q", "prim": 1, "attempt": 1},
    ),
    ("14_1_vulnerable_before_cpc", [("q.1 vulnerable 0 1 p,q,r valid try", "")], {"process": "q", "prim": 0}),
    (
        "14_1_vulnerable_before_cpc",
        [("q.1 vulnerable 1 1 p,q valid try", "q.1 vulnerable 1 1 q,r valid try")],
        {"process": "q"},
    ),
    (
        "14_1_vulnerable_before_cpc",
        [after("q.1 vulnerable 1 1 p,q valid try", "q.1 vulnerable 1 1 p,q invalid no")],
        {"process": "q"},
    ),
    ("14_2_attempts_rise", [("q.2 cpc 2 1 p,q,r", "q.2 cpc 1 1 p,q,r")], {"process": "q", "incarnation": 2}),
    ("15_ids_are_never_reused", [after("q.2 phase NonPrim", "q.2 create q#1 1")], {"process": "q", "incarnation": 2}),
    (
        "15_ids_are_never_reused",
        [("q.2 recover 2 1", "q.2 recover 2 0"), after("q.2 phase NonPrim", "q.2 create q#1 1")],
        {"bundle": "q#1"},
    ),
    (
        "15_ids_are_never_reused",
        [("p.1 create p#2 1", "p.1 create p#3 1"), ("p.1 create p#3 2", "")],
        {"bundle": "p#3"},
    ),
    ("16_yellow_exclusion", [("r.1 mark q#1 yellow TransPrim", "")], {"process": "r", "conf": "p.1", "bundle": "q#1"}),
    (
        "17_sessions_in_order",
        [("* return a/4 green 5 0 local l1 5 6", "* return a/4 green 2 1 local l1 5 6")],
        {"action": "a/4"},
    ),
]


@pytest.mark.parametrize(
    ("rule", "changes", "witness"), BROKEN, ids=[f"{n} {case[0]}" for n, case in enumerate(BROKEN)]
)
def test_a_change_breaks_a_rule(rule: str, changes: list[Change], witness: dict[str, object]) -> None:
    found = verdict(changed(*changes))
    assert any(witness.items() <= each.items() for each in found.get(rule, [])), found


JOINED = "q.1 roster 2 p,q,r,s join s done"
LEFT = [f"{name} roster 3 p,q,s leave r void done" for name in ("p.1", "q.1", "r.1", "s.1")]

BROKEN_SETS: list[tuple[str, str, list[Change], dict[str, object]]] = [
    ("00_rows_are_complete", COMING, [(JOINED, "q.1 roster 2 p,q,r,s join s perhaps")], {"process": "q"}),
    ("00_rows_are_complete", COMING, [("p.1 apply 1 0 a/1", "p.1 apply 1 0 a/1 perhaps")], {"process": "p"}),
    ("02_1_no_position_skipped", COMING, [("s.1 mark q#1 green 3 OR-3 ExchangeActions", "")], {"process": "s"}),
    (
        "02_1_no_position_skipped",
        COMING,
        [after("s.1 mark r#1 green 4 OR-2 Construct", "s.1 restored 3")],
        {"process": "s", "position": 3},
    ),
    ("02_2_no_action_skipped", COMING, [("q.1 apply 1 0 a/1", "")], {"process": "q", "position": 5}),
    ("03_global_fifo", COMING, [("s.1 mark r#1 green 4 OR-2 Construct", "s.1 mark r#2 green 4 OR-2 Construct")], {}),
    ("04_colours_rise", COMING, [after("s.1 restored 2", "s.1 mark p#1 red ExchangeActions")], {"process": "s"}),
    ("08_1_recovery_keeps_the_order", COMING, [("s.2 recover 4 0", "s.2 recover 1 0")], {"process": "s"}),
    ("09_1_lines_are_true", COMING, [("p.1 line s 2", "p.1 line s 6")], {"server": "s"}),
    ("09_2_white_is_everywhere", COMING, [("p.1 white 2", "p.1 white 6")], {"server": "s", "position": 6}),
    ("10_log_before_data", COMING, [("s.2 opened 4", "s.2 opened 5")], {"process": "s", "kind": "opened"}),
    ("11_2_nothing_answered_is_lost", COMING, [("s.2 apply 5 0 a/2", "")], {"process": "s", "action": "a/2"}),
    ("11_2_nothing_answered_is_lost", COMING, [("s.1 replaced 2", ""), ("s.1 restored 2", "")], {"process": "s"}),
    ("11_3_decided_once", COMING, [("q.1 apply 5 0 a/2", "q.1 apply 5 0 a/1")], {"process": "q", "action": "a/1"}),
    ("12_convergence", COMING, [("* gone r", ""), ("r.1 crash", "")], {"process": "r"}),
    ("12_convergence", COMING, [("* final s 5 0", "")], {"process": "s"}),
    ("18_1_one_server_set", COMING, [(JOINED, "q.1 roster 2 p,q,r join s failed")], {"position": 2}),
    ("18_1_one_server_set", COMING, [(JOINED, f"{JOINED} digest=weights")], {"position": 2}),
    ("18_2_a_change_is_as_it_is_said", COMING, [(JOINED, "q.1 roster 2 p,q,r join s done")], {"process": "q"}),
    ("18_2_a_change_is_as_it_is_said", COMING, [(LEFT[1], "q.1 roster 3 p,s leave r void done")], {"process": "q"}),
    ("18_2_a_change_is_as_it_is_said", COMING, [(LEFT[1], "q.1 roster 3 p,q,s weigh p 2 done")], {"process": "q"}),
    ("18_2_a_change_is_as_it_is_said", COMING, [after(LEFT[1], "q.1 roster 1 p,q,s weigh p 2 done")], {"position": 1}),
    (
        "18_3_who_has_left_stays_away",
        COMING,
        [after("p.1 mark s#1 green 5 OR-1.1 RegPrim", "p.1 roster 5 p,q,r,s join r done")],
        {"server": "r", "position": 5},
    ),
    (
        "18_3_who_has_left_stays_away",
        COMING,
        [after("p.1 mark s#1 green 5 OR-1.1 RegPrim", "p.1 roster 5 p,q,r,s weigh q 2 done")],
        {"server": "r", "position": 5},
    ),
    ("19_a_snapshot_is_of_the_order", COMING, [("s.1 restored 2", "s.1 restored 2 digest=x")], {"process": "s"}),
    ("19_a_snapshot_is_of_the_order", COMING, [("s.1 restored 2", "s.1 restored 1")], {"process": "s", "position": 1}),
    ("19_a_snapshot_is_of_the_order", COMING, [("s.1 restored 2", "s.1 restored 9")], {"process": "s", "position": 9}),
    (
        "20_who_has_left_is_done",
        COMING,
        [(f"{name} install 3 1 p,q,s", f"{name} install 3 1 p,q,r,s") for name in ("p.1", "q.1", "s.2")],
        {"server": "r"},
    ),
    ("20_who_has_left_is_done", COMING, [("r.1 left", "r.1 cpc 2 1 p,q,r\nr.1 left")], {"process": "r"}),
    ("20_who_has_left_is_done", COMING, [after("r.1 left", "r.1 create r#2 1")], {"process": "r"}),
    (
        "21_void_has_no_effect",
        COMING,
        [after(f"{name} mark r#1 green 4 OR-2 Construct", f"{name} apply 4 0 b/1") for name in ("p.1", "q.1", "s.1")],
        {"process": "q", "position": 4, "action": "b/1"},
    ),
    (
        "21_void_has_no_effect",
        COMING,
        [after("s.1 mark r#1 green 4 OR-2 Construct", "s.1 apply 4 0 b/1")],
        {"process": "s"},
    ),
    ("22_force_epochs", FORCED, [("p.1 force 1 p they burnt", "p.1 force 1 q they burnt")], {"process": "p"}),
    ("22_force_epochs", FORCED, [after("p.1 force 1 p they burnt", "p.1 force 0 p again")], {"process": "p"}),
    ("22_force_epochs", FORCED, [("q.1 crash", "q.1 force 1 q me too\nq.1 crash")], {"epoch": 1}),
    ("22_force_epochs", FORCED, [("p.1 install 2 1 p", "p.1 install 2 1 p,q")], {"process": "p"}),
    ("06_quorum_chain", FORCED, [("p.1 force 1 p they burnt", "")], {"prim": 2, "members": "p"}),
    ("11_1_nothing_answered_moves", FORCED, [("p.1 force 1 p they burnt", "")], {"position": 2}),
]


@pytest.mark.parametrize(
    ("rule", "story", "changes", "witness"), BROKEN_SETS, ids=[f"{n} {case[0]}" for n, case in enumerate(BROKEN_SETS)]
)
def test_a_change_breaks_a_rule_where_servers_come_and_go(
    rule: str, story: str, changes: list[Change], witness: dict[str, object]
) -> None:
    found = verdict(changed(*changes, story=story))
    assert any(witness.items() <= each.items() for each in found.get(rule, [])), found


HARMLESS_SETS: list[tuple[str, str, list[Change]]] = [
    (
        "a change of which nothing comes changes nothing",
        COMING,
        [after(JOINED, "q.1 roster 2 p,q,r,s weigh x 2 failed x")],
    ),
    ("what was asked for before is done already", COMING, [after(LEFT[1], "q.1 roster 3 p,q,s leave r void done")]),
    ("who is gone need not be up, and is asked nothing", COMING, [("r.1 crash", "r.1 halt left")]),
    (
        "what a void server accepted may be lost",
        COMING,
        [("* return b/1 red at=r", "* return b/1 red at=r\n* refused b/1 x")],
    ),
    ("the log of a newcomer may be told to be durable", COMING, [after("s.1 restored 2", "s.1 durable 2")]),
    (
        "whoever takes a snapshot over need not have seen the changes before it",
        COMING,
        [("s.1 replaced 2", "s.1 roster 1 p,q,r,x,y weigh x 2 failed x\ns.1 replaced 2")],
    ),
]


@pytest.mark.parametrize(("story", "changes"), [case[1:] for case in HARMLESS_SETS], ids=[c[0] for c in HARMLESS_SETS])
def test_a_change_breaks_nothing_where_servers_come_and_go(story: str, changes: list[Change]) -> None:
    assert verdict(changed(*changes, story=story)) == {}


def test_every_rule_has_a_case() -> None:
    named = {f"replication/{rule}" for rule, *_ in (*BROKEN, *BROKEN_SETS)}
    named |= {"replication/13_5_registers_in_real_time"}
    assert named == {rule.name for rule in rules_in("replication")}


HARMLESS: list[tuple[str, list[Change]]] = [
    (
        "what a disk did not have may come to another place",
        [(LAST_GREEN, "q.1 mark q#2 green 3 OR-2 Un"), ("q.1 apply 3 0 a/3", "q.1 apply 3 0 c/1")],
    ),
    ("what was never committed may have another outcome", [("q.1 apply 3 0 a/3", "q.1 apply 3 0 a/3 digest=other")]),
    ("red need not be said before green", [("p.1 mark p#1 red RegPrim", ""), ("r.1 mark p#2 red ExchangeActions", "")]),
    ("what a disk did not have may be marked again", [(LEARNT, f"q.2 mark p#2 red ExchangeActions\n{LEARNT}")]),
    (
        "the number of a bundle that was never sent is given again",
        [("q.1 crash", "q.1 create q#2 1\nq.1 crash"), after("q.2 phase NonPrim", "q.2 create q#2 1")],
    ),
    (
        "what the next life recovers was on disk, told or not",
        [("q.2 recover 2 1", "q.2 recover 3 1"), (LEARNT, ""), ("p.1 durable 3", "p.1 durable 3\np.1 line q 3")],
    ),
    ("a disk may have kept more than it was forced to", [("q.2 recover 2 1", "q.2 recover 3 1"), (LEARNT, "")]),
    ("who crashed in a configuration need not have seen all of it", [(LAST_GREEN, ""), ("q.1 apply 3 0 a/3", "")]),
    (
        "who has not left a configuration may see the rest yet",
        [
            ("r.1 mark p#3 green 5 OR-1.1 RegPrim", ""),
            ("r.1 apply 5 0 a/4", ""),
            ("r.1 apply 5 1 a/5", ""),
            ("r.1 durable 5", ""),
            UNQUIET,
        ],
    ),
    (
        "nothing has converged while the network is not whole",
        [("* healed", ""), ("* final r 5 0", "* final r 4 2"), ("r.1 apply 5 1 a/5", "")],
    ),
    ("nothing has converged while somebody is down", [("* final r 5 0", "r.1 crash")]),
    (
        "a retry may be ordered twice, and is decided once",
        [
            after("* return b/1 red", "* call b/1 q memory append l1 6"),
            ("p.1 create p#3 2", "p.1 create p#3 3"),
            *(
                (f"{name} apply 5 1 a/5", f"{name} apply 5 1 a/5\n{name} apply 5 2 b/1 again")
                for name in ("p.1", "q.2", "r.1")
            ),
        ],
    ),
    (
        "what is refused may be asked again",
        [after("* call b/1 r memory append l1 6", "* refused b/1 busy", "* call b/1 r memory append l1 6")],
    ),
    ("who is left behind need not have what is discarded", [("p.1 discard 4 white", "p.1 discard 9 left behind: r")]),
    ("at level memory an answer may move", [after("* return b/1 red", "* return b/1 green 9 0 memory l1 6")]),
    (
        "who overlaps an append may not see it",
        [
            ("* call a/2 q local read l1", ""),
            after("* call a/1 p local append l1 5", "* call a/2 q local read l1"),
            ("* return a/2 green 2 0 local l1 5", "* return a/2 green 2 0 local l1"),
        ],
    ),
    (
        "a vulnerability may end in many ways",
        [after("q.2 phase NonPrim", "q.2 vulnerable 1 1 p,q valid un", "q.2 vulnerable 1 1 p,q invalid R2")],
    ),
    (
        "an attempt that fails is followed by another",
        [("q.2 cpc 2 1 p,q,r", "q.2 cpc 2 1 p,q,r\nq.2 vulnerable 2 2 p,q,r valid try\nq.2 cpc 2 2 p,q,r")],
    ),
    (
        "two sessions are not in order",
        [
            ("* call a/4 p local read l1", "* call d/4 p local read l1"),
            ("* return a/4 green 5 0 local l1 5 6", "* return d/4 green 5 0 local l1 5 6"),
            *((f"{name} apply 5 0 a/4", f"{name} apply 5 0 d/4") for name in ("p.1", "q.2", "r.1")),
        ],
    ),
]


@pytest.mark.parametrize("changes", [changes for _, changes in HARMLESS], ids=[name for name, _ in HARMLESS])
def test_a_change_breaks_nothing(changes: list[Change]) -> None:
    assert verdict(changed(*changes)) == {}


def test_a_lost_answer_is_not_told_from_a_late_one_while_the_run_goes_on() -> None:
    lost = [("r.1 apply 5 0 a/4", ""), ("r.1 apply 5 1 a/5", ""), ("* final r 5 0", "* final r 4 0")]
    assert {"11_2_nothing_answered_is_lost", "12_convergence"} <= set(verdict(changed(*lost)))
    assert verdict(changed(*lost, UNQUIET)) == {}


def test_a_router_may_open_a_gate_before_it_tells_the_core() -> None:
    """Then the commit stands before the row that allows it, at the same time by the process's clock."""
    text = changed(("p.1 durable 3", ""), after("p.1 commit 3", "p.1 durable 3"))
    rows = history(text)
    assert "replication/10_log_before_data" in twin.broken(rows)
    commit = next(n for n, row in enumerate(rows) if (row.process, row.kind, row.position) == ("p", "commit", 3))
    rows[commit].time = rows[commit + 1].time
    assert twin.broken(rows) == set()
    assert JUDGE.broken(to_table([("run", rows)])) == []


def test_10_a_newcomer_may_crash_between_its_database_and_its_log() -> None:
    """Its next life finds a database with a snapshot in it, and an empty log."""
    begun = COMING[: COMING.index("s.1 restored 2")]
    again = "s.1 crash\ns.2 start\ns.2 recover 0 0\ns.2 newcomer\ns.2 opened 2\n"
    assert verdict(f"{begun}{again}s.2 restored 2") == {}
    assert set(verdict(f"{begun}{again}s.2 restored 2".replace("s.1 replaced 2", ""))) == {"10_log_before_data"}


def test_16_a_router_may_tell_of_a_configuration_before_the_engine_has_heard_all_of_the_one_before() -> None:
    """Then the mark stands after the row of the configuration, and before all that the engine does in it."""
    late = "r.1 regular r.2 r\nr.1 mark q#1 yellow TransPrim conf=p.1>r.2"
    assert verdict(changed(("r.1 mark q#1 yellow TransPrim", ""), ("r.1 regular r.2 r", late))) == {}
    too_late = after("r.1 mark r#1 red NonPrim", "r.1 mark q#1 yellow TransPrim")
    assert set(verdict(changed(("r.1 mark q#1 yellow TransPrim", ""), too_late))) == {"16_yellow_exclusion"}


def test_16_who_is_in_the_configuration_and_far_behind_is_not_in_the_component() -> None:
    """Its log is too far from the others' to be in their exchange; what they order, it learns beside it."""
    beside = (
        "r.1 start\nr.1 recover 0 0\nr.1 regular p.1 p q r\nr.1 phase NonPrim\nr.1 regular r.2 r\nr.1 phase NonPrim\n"
    )
    votes = each(
        "p.1 q.1", "@ start\n@ recover 0 0\n" + voters(0, "p,q") + "@ regular p.1 p q r\n" + component(1, "p,q")
    )
    assert verdict(beside + votes + "p.1 mark p#1 green 1 OR-1.1 RegPrim") == {}


def two_pairs(weight_of_p: int, distinguished: str, winners: str) -> str:
    """Four servers; of their first component, two install the next."""
    first, second = winners.split(",")
    votes = "".join(
        f"@ voter 0 {name} {weight_of_p if name == 'p' else 1}{' distinguished' * (name == distinguished)}\n"
        for name in "pqrs"
    )
    text = each("p.1 q.1 r.1 s.1", "@ start\n@ recover 0 0\n" + votes)
    return text + each(f"{first}.1 {second}.1", f"@ install 1 1 {winners}\n" + voters(1, winners))


def test_6_half_of_the_votes_is_a_quorum_only_with_the_distinguished_server() -> None:
    assert verdict(two_pairs(1, "p", "p,q")) == {}
    assert set(verdict(two_pairs(1, "p", "r,s"))) == {"06_quorum_chain"}
    assert verdict(two_pairs(1, "r", "r,s")) == {}
    assert verdict(two_pairs(3, "r", "p,q")) == {}, "weights count"
    assert set(verdict(two_pairs(3, "r", "r,s"))) == {"06_quorum_chain"}, "the distinguished server breaks ties only"


ATTEMPTED_TWICE = each("p.1 q.1", "@ start\n@ recover 0 0\n" + voters(0, "p,q") + "@ regular p.1 p q\n") + each(
    "p.1 q.1", component(1, "p,q") + "@ crash\n"
)
AGAIN = each("p.2 q.2", "@ start\n@ recover 0 0\n@ regular p.2 p q\n" + component(1, "p,q").replace(" 1 p,q", " 2 p,q"))


def test_5_a_component_that_no_disk_knows_is_attempted_anew() -> None:
    """All crashed before their installation was on disk; nobody was told anything that rests on it."""
    assert verdict(ATTEMPTED_TWICE + AGAIN) == {}
    met = ATTEMPTED_TWICE.replace("q.1 crash", "q.1 phase ExchangeActions\nq.1 crash")
    assert set(verdict(met + AGAIN)) == {"05_1_one_component"}, "q had it on disk when it said so to others"
    green = "q.1 mark p#1 green 1 OR-1.1 RegPrim\nq.1 durable 1\nq.1 crash"
    ordered = ATTEMPTED_TWICE.replace("q.1 crash", green) + AGAIN.replace("q.2 recover 0 0", "q.2 recover 1 0")
    assert set(verdict(ordered)) == {"05_1_one_component"}, "q has a bundle on disk that was ordered in it"


def test_1_only_what_every_disk_lost_may_be_ordered_anew() -> None:
    """A power failure takes two bundles from memory; afterwards they come in the other order (GAP 3)."""
    before = "p.1 start\np.1 recover 0 0\np.1 mark p#1 green 1 OR-3 NonPrim\np.1 mark q#1 green 2 OR-3 NonPrim\n"
    now = "p.2 mark q#1 green 1 OR-3 NonPrim\np.2 mark p#1 green 2 OR-3 NonPrim\n"
    assert verdict(f"{before}p.1 crash\np.2 start\np.2 recover 0 0\n{now}") == {}
    kept = verdict(f"{before}p.1 durable 1\np.1 crash\np.2 start\np.2 recover 0 0\n{now}")
    assert {"01_1_global_total_order", "08_1_recovery_keeps_the_order", "04_colours_rise"} <= set(kept)


def register(text: str) -> str:
    return "\n".join(f"* {line.strip()}" for line in text.split("|"))


WRITTEN = "call a/1 p local write r1 1 | return a/1 green 1 0 local r1 1"

ORDERABLE = {
    "unwritten": "call a/1 p local read r1 | return a/1 green 1 0 local r1 -",
    "written": WRITTEN + "| call b/2 q local read r1 | return b/2 green 2 0 local r1 1",
    "overlapping, before": "call a/1 p local write r1 1 | call b/2 q local read r1 | return b/2 green 1 0 local r1 -",
    "overlapping, after": "call a/1 p local write r1 1 | call b/2 q local read r1 | return b/2 green 2 0 local r1 1",
    "level memory promises little": WRITTEN
    + "| call a/2 p memory write r1 2 | return a/2 green 2 0 memory r1 2"
    + "| call b/3 q local read r1 | return b/3 green 3 0 local r1 1",
    "two reads overlap": WRITTEN
    + "| call a/2 p local write r1 2 | call b/3 q local read r1 | call c/4 r local read r1"
    + "| return b/3 green 3 0 local r1 2 | return c/4 green 2 0 local r1 1 | return a/2 green 4 0 local r1 2",
}

UNORDERABLE = {
    "forgotten": WRITTEN + "| call b/2 q local read r1 | return b/2 green 2 0 local r1 -",
    "from nowhere": WRITTEN + "| call b/2 q local read r1 | return b/2 green 2 0 local r1 9",
    "of another register": WRITTEN + "| call b/2 q local read r1 | return b/2 green 2 0 local r2 1",
    "its own, otherwise": WRITTEN.replace("local r1 1", "local r1 2"),
    "before it was called": "call b/2 q local read r1 | return b/2 green 2 0 local r1 1 | call a/3 p local write r1 1",
    "overwritten": WRITTEN
    + "| call a/2 p local write r1 2 | return a/2 green 2 0 local r1 2"
    + "| call b/3 q local read r1 | return b/3 green 3 0 local r1 1",
    "back and forth": "call a/1 p local write r1 1 | call a/2 q local write r1 2"
    + "| call b/3 r local read r1 | return b/3 green 3 0 local r1 1"
    + "| call b/4 r local read r1 | return b/4 green 4 0 local r1 2"
    + "| call b/5 r local read r1 | return b/5 green 5 0 local r1 1",
    "within": WRITTEN
    + "| call b/2 q local read r1 | return b/2 green 2 0 local r1 1"
    + "| call a/3 p local write r1 3 | return a/3 green 3 0 local r1 3"
    + "| call b/4 q local read r1 | return b/4 green 4 0 local r1 1",
}


@pytest.mark.parametrize("text", ORDERABLE.values(), ids=ORDERABLE)
def test_13_registers_that_can_be_ordered(text: str) -> None:
    assert verdict(register(text)) == {}


@pytest.mark.parametrize("text", UNORDERABLE.values(), ids=UNORDERABLE)
def test_13_registers_that_cannot_be_ordered(text: str) -> None:
    assert set(verdict(register(text))) == {"13_5_registers_in_real_time"}


def test_many_runs_are_told_apart() -> None:
    found = JUDGE.broken(trace(STORY, changed((READ, "* return a/4 green 5 0 local l1 6 5")), STORY))
    assert {each.run for each in found} == {"run1"}


def test_a_run_with_an_engine_is_judged_by_these_rules() -> None:
    assert folders_by_run(trace(STORY, "p.1 start"))["run0"] == ("access", "evs", "provider", "replication", "run")
    assert folders_by_run(trace(STORY, "p.1 start"))["run1"] == ("run",)


def test_every_rule_says_what_it_claims() -> None:
    for rule in rules_in("replication"):
        assert rule.claim.endswith("."), rule.name
        assert "because" in rule.sql, rule.name
