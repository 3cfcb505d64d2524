"""Each request is decided once: sessions in a table of SQLite say the same as their plain twin."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import WINDOW, Action, OutcomeOf, Verdict
from greenline.kernel.database import Expire, Query, Rows
from greenline.kernel.statements import Statement, encode
from tests.database.plain_sessions import PlainSessions
from tests.database.sqlite.asking import PATIENT, Database, work

INSERT = encode(work(Statement("INSERT INTO t VALUES (1)")))
MAKE = encode(work("CREATE TABLE t (a)"))
FEW = Limits(transaction_seconds=3600, cached_sessions=1)

names = st.sampled_from(["a", "b", "c@2", "d@9"])
actions = st.builds(
    Action, names, st.integers(0, 6), st.just(INSERT), received=st.integers(0, 6), is_relaxed=st.just(False)
)
bundles = st.lists(
    st.tuples(st.lists(actions, max_size=8), st.sampled_from(["", "commit", "expire", "again"])), max_size=8
)


@settings(max_examples=25, deadline=None)
@given(bundles)
def test_sessions_say_what_their_plain_twin_says(story: list[tuple[list[Action], str]]) -> None:
    """In bundles, in runs, across commits, ends of sessions and restarts; with room for one session in memory."""
    plain = PlainSessions(WINDOW)
    with TemporaryDirectory() as directory:
        database = Database(Path(directory), FEW)
        database.decide(Action("maker", 1, MAKE))
        plain.decide(Action("maker", 1, MAKE), 1, 0)
        for asked, then in story:
            position = database.sqlite.position + 1
            system = (Expire(position - 2),) if then == "expire" else ()
            if system:
                plain.expire(position - 2)
            said = [
                _said(outcome.verdict, outcome.is_again, outcome.position, outcome.sub)
                for outcome in database.apply(*asked, system=system)
            ]
            assert said == [plain.decide(action, position, sub) for sub, action in enumerate(asked)]
            if then in ("commit", "again"):
                database.commit()
            if then == "again":
                database.sqlite.close()
                database = Database(Path(directory), FEW)
        database.commit()
        executed = database.rows("SELECT count(*) FROM t")
        database.sqlite.close()
    assert executed == [(len(plain.runs) - 1,)]


def _said(verdict: Verdict, is_again: bool, position: int, sub: int) -> str:
    what = "again" if is_again else verdict.value
    return f"{what} {position}.{sub}" if position else what


def test_a_request_that_is_asked_again_is_told_the_same_also_after_a_restart(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)")
        good, bad = (Action("c@1", number, INSERTED) for number in (1, 2))
        first = database.apply(good, bad)
        assert [outcome.verdict for outcome in first] == [Verdict.DONE, Verdict.FAILED]
        assert [outcome.value for outcome in database.apply(good, bad)] == [outcome.value for outcome in first]
        database.commit()

    with Database(tmp_path) as database:
        again = database.apply(good, bad)

        assert [(o.verdict, o.value, o.position, o.sub, o.is_again) for o in again] == [
            (o.verdict, o.value, o.position, o.sub, True) for o in first
        ]
        database.commit()
        assert database.rows("SELECT a FROM t") == [(5,)]


INSERTED = encode(work(Statement("INSERT INTO t (a) VALUES (?)", (5,))))


def test_what_was_decided_in_a_transaction_that_is_lost_is_decided_again(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)")
        (lost,) = database.apply(Action("c", 1, INSERT))

    with Database(tmp_path) as database:
        (again,) = database.apply(Action("c", 1, INSERT))

        assert again == lost


def test_a_window_of_outcomes_is_kept_and_no_more(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.decide(Action("maker", 1, MAKE))
        outcomes = database.apply(*(Action("c", number, INSERT) for number in range(1, WINDOW + 3)))
        assert [outcome.verdict for outcome in outcomes[-3:]] == [Verdict.DONE, Verdict.CROWDED, Verdict.EARLY]

        (after,) = database.apply(Action("c", WINDOW + 1, INSERT, received=10))

        assert after.verdict is Verdict.DONE
        database.commit()


def test_the_bytes_that_are_kept_for_a_session_are_bounded(tmp_path: Path) -> None:
    wide = encode(work(Statement("SELECT hex(zeroblob(1500))")))
    with Database(tmp_path) as database:
        asked = [Action("c", number, wide) for number in range(1, 41)]
        database.decide(*asked)
        again = database.apply(*asked)
        database.commit()
        ((size,),) = database.rows("SELECT length(outcomes) FROM greenline_sessions WHERE name = 'c'")

    kept = sum(outcome.is_whole for outcome in again)
    assert kept == PATIENT.kept_bytes // len(again[0].value)
    assert isinstance(size, int)
    assert size < PATIENT.kept_bytes + 40 * 50


def test_what_became_of_a_request_can_be_asked(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.decide(Action("maker", 1, MAKE))
        database.decide(Action("c@1", 1, INSERT), Action("c@1", 2, INSERT, received=1))
        told = {}
        for session, number in (("c@1", 1), ("c@1", 2), ("c@1", 3), ("nobody@1", 1)):
            answer = database.sqlite.answer(Query(OutcomeOf(session, number)))
            assert isinstance(answer, Rows)
            assert answer.outcome is not None
            told[session, number] = answer.outcome.verdict
        database.decide(system=(Expire(3),))
        answer = database.sqlite.answer(Query(OutcomeOf("c@1", 2)))

    assert list(told.values()) == [Verdict.RELEASED, Verdict.DONE, Verdict.UNKNOWN, Verdict.UNKNOWN]
    assert isinstance(answer, Rows)
    assert answer.outcome is not None
    assert answer.outcome.verdict is Verdict.EXPIRED
