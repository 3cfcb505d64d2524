"""SQL through the adapter behaves as in SQLite: equal results, errors and content; and what differs is listed."""

from __future__ import annotations

import pytest

from greenline.kernel.statements import Failure, Statement
from tests.sql.comparison import (
    Script,
    Step,
    Then,
    assert_same,
    difference,
    in_bundles,
    one_by_one,
    plainly,
    with_queries,
)
from tests.sql.differs import ENDS_THE_TRANSACTION, ON_PURPOSE, SETTING, statements
from tests.sql.plain import Plain
from tests.sql.replica import through_a_replica
from tests.sql.scripts import OTHER, SEED, actions, script

SOME = 2000
EXAMPLES = [(each.what, example) for each in ON_PURPOSE for example in each.examples]


@pytest.mark.slow
def test_an_action_alone_comes_to_what_it_comes_to_in_sqlite() -> None:
    assert_same(one_by_one(actions(OTHER)), through_a_replica)


@pytest.mark.slow
def test_actions_in_bundles_come_to_what_they_come_to_alone() -> None:
    """Equal statements that follow each other are executed together; if one fails, they are done again one by one."""
    assert_same(in_bundles(actions(SEED), SEED), through_a_replica)


@pytest.mark.slow
def test_restarts_change_nothing() -> None:
    """What was committed is there; what was lost is applied again, and comes to the same."""
    assert_same(in_bundles(actions(OTHER)[:SOME], SEED, restarts=True), through_a_replica)


@pytest.mark.slow
def test_queries_see_what_an_action_at_their_place_would_see() -> None:
    """What was applied, or, if they are dirty, also what is still to be applied."""
    tried = script(SEED)[: SOME // 2]
    steps = in_bundles([each.action for each in tried], SEED)
    assert_same(with_queries(steps, [each.kind.startswith("queries.") for each in tried], SEED), through_a_replica)


@pytest.mark.parametrize(("what", "example"), EXAMPLES, ids=[example[:80] for _, example in EXAMPLES])
def test_what_differs_on_purpose_is_refused_and_does_nothing(what: str, example: str) -> None:
    before, after = statements(*SETTING), statements("INSERT INTO t (a) VALUES ('after')", "SELECT * FROM t")
    script = [Step(before, Then.COMMIT), Step(statements(example), Then.GO_ON), Step(after, Then.COMMIT)]
    (_, refused, then), content = through_a_replica(script)
    assert isinstance(refused, Failure), f"{what}: {refused}"
    (_, expected_then), expected_content = plainly([script[0], script[2]])
    assert then == expected_then
    assert content == expected_content


@pytest.mark.parametrize("action", ENDS_THE_TRANSACTION, ids=" + ".join)
def test_what_would_end_the_transaction_undoes_its_own_action_only(action: tuple[str, ...]) -> None:
    """Others that were applied in the same transaction, before and behind it, stay as they are."""
    around = [statements(f"INSERT INTO t (a) VALUES ({number})") for number in range(6)]
    script = _together(statements(*SETTING), *around[:3], statements(*action), *around[3:])
    assert difference(script, through_a_replica) is None


def test_a_transaction_that_ends_within_a_run_undoes_one_action_of_it() -> None:
    insert = "INSERT OR ROLLBACK INTO t (a) VALUES (?)"
    run = [(Statement(insert, (value,)),) for value in (3, 4, "one", 5, 3, 6, "never", 7)]
    assert difference(_together(statements(*SETTING), *run), through_a_replica) is None


def test_every_text_that_differs_is_something_that_sqlite_does() -> None:
    """Else it would not differ. What needs a transaction or another database to end is asked for outside of one."""
    for _, example in EXAMPLES:
        plain = Plain()
        plain.run(statements(*SETTING))
        said = plain.run(statements(example))
        assert not isinstance(said, Failure) or "no such" in said.message or "cannot" in said.message, example


def _together(*actions: tuple[Statement, ...]) -> Script:
    return [Step(action, Then.BUNDLE if number % 3 == 2 else Then.GO_ON) for number, action in enumerate(actions)]
