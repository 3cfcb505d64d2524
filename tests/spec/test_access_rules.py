"""Every rule of client access has hand-made traces that break it, and traces next to them that do not.

`STORY`: clients of p and q ask, ask again elsewhere, read in every way, add and put in any order, and have conflicts.
Each case changes a line or two of it. The SQL must name the rows, and its plain twin must come to the same verdict.
"""

from __future__ import annotations

from functools import cache

import pytest

from greenline.spec import access_twin as twin
from greenline.spec.judge import Broken, Judge, by_run, rules_in
from tests.trace.rows import history, trace

JUDGE = Judge(("access",))


def both(text: str) -> str:
    return f"p.1 {text}\nq.1 {text}\n"


STORY = "\n" + "".join(
    (
        both("start"),
        both("opened 0"),
        "* call s/1 p local append l1 5\n",
        both("apply 1 0 s/1"),
        "* return s/1 green 1 0 local l1 5 at=p\n",
        # Whoever asks again is told the same.
        "* call s/1 q local append l1 5\n",
        both("apply 2 0 s/1 again"),
        "* return s/1 green 1 0 quorum l1 5 at=q\n",
        "* call s/2 q local append l1 6\n* return s/2 red at=q\n",
        both("apply 3 0 s/2"),
        "* return s/2 green 3 0 local l1 5 6 at=q\n",
        # Four ways to read.
        "* call s?1 p session read l1 after=3\n* return s?1 green 3 0 session l1 5 6 at=p\n",
        "* call t?1 q strict read l1\n* return t?1 green 3 0 strict l1 5 6 at=q\n",
        "* call t?2 q weak read l1\n* return t?2 green 1 0 weak l1 5 at=q\n",
        "* call t?3 q dirty read l1\n* return t?3 dirty 3 1 dirty l1 5 6 7 at=q\n",
        "* call t?4 q dirty read l1\n* return t?4 green 3 0 dirty l1 5 6 at=q\n",
        # Two have read 7: one of them may replace it.
        "* call u/1 p local write r1 7\n",
        both("apply 4 0 u/1"),
        "* return u/1 green 4 0 local r1 7 at=p\n",
        "* call u/2 p local write r1 8 if r1 7\n* call v/1 q local write r1 9 if r1 7\n",
        both("apply 5 0 u/2"),
        both("apply 5 1 v/1 conflict"),
        "* return u/2 green 5 0 local r1 8 at=p\n* return v/1 green 5 1 local conflict at=q\n",
        "* call v/3 q local read r1\n",
        both("apply 6 0 v/3 early"),
        "* refused v/3 early\n",
        "* call v?1 q weak read r1\n* return v?1 green 4 0 weak r1 7 at=q\n",
        # Relaxed ones come in any order.
        "* call w~1 p relaxed add c1 5\n* call w~2 q relaxed add c1 2\n* return w~1 red at=p\n* return w~2 red at=q\n",
        both("apply 7 0 w~2"),
        both("apply 7 1 w~1"),
        "* call w~3 p relaxed put t1 9 1\n* call w~4 q relaxed put t1 4 2\n* return w~3 red at=p\n",
        both("apply 8 0 w~3"),
        both("apply 8 1 w~4"),
        both("apply 9 0 w~2 again digest=nothing-kept"),
        "* call w?1 p strict count c1\n* return w?1 green 9 0 strict c1 7 at=p\n",
        "* call w?2 p strict get t1\n* return w?2 green 9 0 strict t1 1 at=p\n",
        # A session is over.
        "* call s/3 p local append l1 8\n* return s/3 red at=p\n",
        both("apply 10 0 s/3 expired"),
        "* refused s/3 expired\n",
        "* final p 10 0 c1 7 t1 1\n* final q 10 0 c1 7 t1 1\n",
        "* quiet\n",
    )
)

Change = tuple[str, str]


def changed(*changes: Change) -> str:
    text = STORY
    for line, other in changes:
        assert text.count(f"\n{line}\n") == 1, f"{line!r} is not once in the history"
        text = text.replace(f"\n{line}\n", f"\n{other}\n" if other else "\n")
    return text


def everywhere(line: str, other: str) -> list[Change]:
    return [(f"{name} {line}", f"{name} {other}" if other else "") for name in ("p.1", "q.1")]


def after(line: str, *others: str) -> Change:
    return line, "\n".join((line, *others))


RETRIED = "* return s/1 green 1 0 quorum l1 5 at=q"
STRICT = "* return t?1 green 3 0 strict l1 5 6 at=q"
WEAK = "* return t?2 green 1 0 weak l1 5 at=q"
SESSION = "* return s?1 green 3 0 session l1 5 6 at=p"
DIRTY = "* return t?3 dirty 3 1 dirty l1 5 6 7 at=q"
COUNTED = "* return w?1 green 9 0 strict c1 7 at=p"
FINAL = "* final q 10 0 c1 7 t1 1"

ACCEPTED = "* call z/1 p local read l1\n* return z/1 red at=p"
WITH_R = "r.1 start\nr.1 opened 0\n* call z/1 r local read l1\n* return z/1 red at=r"

BROKEN: list[tuple[str, list[Change], dict[str, object]]] = [
    ("01_exactly_once", everywhere("apply 2 0 s/1 again", "apply 2 0 s/1"), {"action": "s/1"}),
    ("01_exactly_once", [("q.1 apply 3 0 s/2", "q.1 apply 3 1 s/2")], {"action": "s/2"}),
    ("02_retries_are_told_the_same", [(RETRIED, f"{RETRIED} digest=other")], {"action": "s/1"}),
    ("02_retries_are_told_the_same", [(RETRIED, "* return s/1 green 2 0 quorum l1 5 at=q")], {"action": "s/1"}),
    (
        "03_uniform_output_agreement",
        [("q.1 apply 4 0 u/1", "q.1 apply 4 0 u/1 digest=x")],
        {"process": "q", "position": 4},
    ),
    ("03_uniform_output_agreement", [("q.1 apply 4 0 u/1", "q.1 apply 4 0 u/9")], {"process": "q", "action": "u/1"}),
    ("03_uniform_output_agreement", everywhere("apply 4 0 u/1", "apply 4 0 u/1 early"), {"action": "u/1"}),
    ("03_uniform_output_agreement", everywhere("apply 3 0 s/2", "apply 3 1 s/2"), {"action": "s/2", "process": ""}),
    ("04_uniform_output_order", [("q.1 apply 1 0 s/1", "")], {"process": "q", "position": 5}),
    ("04_uniform_output_order", [("p.1 apply 3 0 s/2", "")], {"process": "p", "position": 5}),
    ("05_session_order", everywhere("apply 6 0 v/3 early", "apply 6 0 v/3"), {"action": "v/3"}),
    (
        "05_session_order",
        [*everywhere("apply 1 0 s/1", "apply 1 0 s/2"), *everywhere("apply 3 0 s/2", "apply 3 0 s/1")],
        {"action": "s/2", "position": 1},
    ),
    ("06_verdicts_are_true", everywhere("apply 3 0 s/2", "apply 3 0 s/2 again"), {"action": "s/2"}),
    ("06_verdicts_are_true", everywhere("apply 3 0 s/2", "apply 3 0 s/2 released"), {"action": "s/2"}),
    ("06_verdicts_are_true", everywhere("apply 2 0 s/1 again", "apply 2 0 s/1 again digest=x"), {"action": "s/1"}),
    ("06_verdicts_are_true", everywhere("apply 6 0 v/3 early", "apply 6 0 v/2 early"), {"action": "v/2"}),
    ("06_verdicts_are_true", everywhere("apply 4 0 u/1", "apply 4 0 u/1 early"), {"action": "u/1"}),
    ("07_expired_is_for_good", everywhere("apply 2 0 s/1 again", "apply 2 0 s/1 expired"), {"action": "s/2"}),
    ("07_expired_is_for_good", everywhere("apply 6 0 v/3 early", "apply 6 0 w~9 expired"), {"action": "w~1"}),
    ("08_nothing_accepted_is_lost", everywhere("apply 3 0 s/2", ""), {"action": "s/2"}),
    ("08_nothing_accepted_is_lost", everywhere("apply 7 1 w~1", ""), {"action": "w~1"}),
    ("08_nothing_accepted_is_lost", [("* refused s/3 expired", ACCEPTED)], {"action": "z/1"}),
    (
        "08_nothing_accepted_is_lost",
        [after("* refused s/3 expired", f"{WITH_R}\nr.1 halt\n* gone r")],
        {"action": "z/1"},
    ),
    ("09_sessions_read_their_writes", [(SESSION, "* return s?1 green 1 0 session l1 5 at=p")], {"query": "s?1"}),
    (
        "09_sessions_read_their_writes",
        [
            ("* call s?1 p session read l1 after=3", "* call s?1 p session read l1 after=1"),
            (SESSION, "* return s?1 green 1 0 session l1 5 at=p"),
        ],
        {"query": "s?1"},
    ),
    (
        "09_sessions_read_their_writes",
        [after(WEAK, "* call t?9 q session read l1 after=0", "* return t?9 green 1 0 session l1 5 at=q")],
        {"query": "t?9"},
    ),
    ("10_strict_queries_are_current", [(STRICT, "* return t?1 green 1 0 strict l1 5 at=q")], {"query": "t?1"}),
    ("10_strict_queries_are_current", [(COUNTED, "* return w?1 green 4 0 strict c1 0 at=p")], {"query": "w?1"}),
    ("11_1_reads_are_of_their_position", [(COUNTED, "* return w?1 green 9 0 strict c1 9 at=p")], {"query": "w?1"}),
    ("11_1_reads_are_of_their_position", [(WEAK, "* return t?2 green 1 0 weak l1 5 6 at=q")], {"query": "t?2"}),
    (
        "11_1_reads_are_of_their_position",
        [("* return v?1 green 4 0 weak r1 7 at=q", "* return v?1 green 4 0 weak r1 8 at=q")],
        {"query": "v?1", "object": "r1"},
    ),
    (
        "11_1_reads_are_of_their_position",
        [("* return w?2 green 9 0 strict t1 1 at=p", "* return w?2 green 9 0 strict t1 2 at=p")],
        {"query": "w?2", "object": "t1"},
    ),
    ("11_2_lists_are_of_their_position", [(WEAK, "* return t?2 green 1 0 weak l1 6 at=q")], {"query": "t?2"}),
    ("11_2_lists_are_of_their_position", [(DIRTY, "* return t?3 dirty 3 1 dirty l1 5 at=q")], {"query": "t?3"}),
    ("11_2_lists_are_of_their_position", [(DIRTY, "* return t?3 dirty 3 1 dirty l1 7 5 6 at=q")], {"query": "t?3"}),
    (
        "11_2_lists_are_of_their_position",
        [("* return t?4 green 3 0 dirty l1 5 6 at=q", "* return t?4 green 3 0 dirty l1 5 6 7 at=q")],
        {"query": "t?4"},
    ),
    ("12_1_interactive_reads_hold", everywhere("apply 5 1 v/1 conflict", "apply 5 1 v/1"), {"action": "v/1"}),
    ("12_1_interactive_reads_hold", everywhere("apply 5 0 u/2", "apply 5 0 u/2 conflict"), {"action": "u/2"}),
    (
        "12_2_no_update_is_lost",
        [("* return v/1 green 5 1 local conflict at=q", "* return v/1 green 5 1 local r1 9 at=q")],
        {"object": "r1", "value": "7"},
    ),
    (
        "12_2_no_update_is_lost",
        [
            ("* call u/2 p local write r1 8 if r1 7", "* call u/2 p local write r1 8 if r1 -"),
            ("* call v/1 q local write r1 9 if r1 7", "* call v/1 q local write r1 9 if r1 -"),
            ("* return v/1 green 5 1 local conflict at=q", "* return v/1 green 5 1 local r1 9 at=q"),
        ],
        {"object": "r1", "value": "-"},
    ),
    ("13_1_relaxed_objects_converge", [(FINAL, "* final q 10 0 c1 9 t1 1")], {"process": "q", "object": "c1"}),
    ("13_1_relaxed_objects_converge", [(FINAL, "* final q 10 0 c1 7 t1 2")], {"process": "q", "object": "t1"}),
    ("13_1_relaxed_objects_converge", [(FINAL, "* final q 10 0")], {"process": "q", "object": "c1"}),
    ("13_2_counters_hold_what_was_accepted", [(FINAL, "* final q 10 0 c1 9 t1 1")], {"process": "q", "object": "c1"}),
    ("13_2_counters_hold_what_was_accepted", [(FINAL, "* final q 10 0 c1 5 t1 1")], {"process": "q", "object": "c1"}),
]

HARMLESS: list[tuple[str, list[Change]]] = [
    (
        "what only one has accepted that died, and was removed while it was down",
        [after("* refused s/3 expired", f"{WITH_R}\nr.1 crash\n* gone r")],
    ),
    ("at level memory an answer may move", [after(RETRIED, "* return s/1 green 9 0 memory l1 5 at=q")]),
    (
        "what no disk kept may have been another",
        [
            *[(f"p.1 {line}", "") for line in ("start", "opened 0")],
            (
                "q.1 start",
                "p.1 start\np.1 opened 0\np.1 apply 1 0 x/1\np.1 crash\np.2 start\np.2 opened 0\n"
                "* call x?1 p weak read l1\n* return x?1 green 1 0 weak l1 99 at=p\nq.1 start",
            ),
            *[(line, line.replace("p.1", "p.2")) for line in STORY.splitlines() if line.startswith("p.1 apply")],
        ],
    ),
    (
        "a query may be asked again, and is bounded by its first call",
        [
            ("* call t?1 q strict read l1", ""),
            ("* call s/1 q local append l1 5", "* call t?1 q strict read l1\n* call s/1 q local append l1 5"),
            (STRICT, "* return t?1 green 1 0 strict l1 5 at=q"),
        ],
    ),
    (
        "what expired may have been decided before",
        everywhere("apply 9 0 w~2 again digest=nothing-kept", "apply 9 0 w~2 expired"),
    ),
    (
        "what is accepted may be refused for its session",
        [("* refused s/3 expired", f"* refused s/3 expired\n{ACCEPTED}\n{both('apply 11 0 z/1 crowded')}")],
    ),
    ("a weak read may be old", [("* return v?1 green 4 0 weak r1 7 at=q", "* return v?1 green 3 0 weak r1 - at=q")]),
    ("nothing is lost while the run goes on", [("* refused s/3 expired", ACCEPTED), ("* quiet", "")]),
    (
        "a value that was written twice may be replaced twice",
        [
            after("* return u/1 green 4 0 local r1 7 at=p", "* call z/1 p memory write r1 7"),
            ("* return v/1 green 5 1 local conflict at=q", "* return v/1 green 5 1 memory r1 9 at=q"),
        ],
    ),
]


@cache
def judged_together() -> dict[str, list[Broken]]:
    """All cases, in one go: most of what a small trace costs is the queries."""
    texts = [STORY, *(changed(*changes) for _, changes, _ in BROKEN), *(changed(*changes) for _, changes in HARMLESS)]
    found = by_run(JUDGE.broken(trace(*texts)))
    return {text: found.get(f"run{number}", []) for number, text in enumerate(texts)}


def verdict(text: str) -> dict[str, list[dict[str, object]]]:
    """The broken rules with their witnesses; SQL and twin agree on which."""
    found: dict[str, list[dict[str, object]]] = {}
    for each in judged_together()[text]:
        found.setdefault(each.rule.removeprefix("access/"), []).append(each.witness)
    assert {f"access/{rule}" for rule in found} == twin.broken(history(text))
    return found


def test_the_story_breaks_nothing() -> None:
    assert verdict(STORY) == {}


@pytest.mark.parametrize(
    ("rule", "changes", "witness"), BROKEN, ids=[f"{n} {case[0]}" for n, case in enumerate(BROKEN)]
)
def test_a_change_breaks_a_rule(rule: str, changes: list[Change], witness: dict[str, object]) -> None:
    found = verdict(changed(*changes))
    assert any(witness.items() <= each.items() for each in found.get(rule, [])), found


@pytest.mark.parametrize("changes", [changes for _, changes in HARMLESS], ids=[name for name, _ in HARMLESS])
def test_a_change_breaks_nothing(changes: list[Change]) -> None:
    found = verdict(changed(*changes))
    assert found == {}


def test_every_rule_has_two_cases_and_says_what_it_claims() -> None:
    named = [rule for rule, _, _ in BROKEN]
    for rule in rules_in("access"):
        assert named.count(rule.name.removeprefix("access/")) >= 2, rule.name
        assert rule.claim.endswith((".", ").")), rule.name
        assert "because" in rule.sql, rule.name


def test_the_tables_that_the_rules_rest_on_are_made_too() -> None:
    assert Judge(("replication", "access")).broken(trace("p.1 start")) == []
    assert {each.folder for each in JUDGE.rules} == {"access"}
