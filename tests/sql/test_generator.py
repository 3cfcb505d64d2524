"""The generator itself: what it writes is worth comparing, and the comparison finds what is different."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from greenline.kernel.statements import Failure
from tests.sql.comparison import Played, Script, assert_same, difference, one_by_one, plainly, shortest
from tests.sql.generator import Generator
from tests.sql.plain import NOT_OF_SQLITE, Plain, content_of
from tests.sql.scripts import SEED, SEEDS, STATEMENTS, actions, script

FEATURES = """
    CREATE TABLE|ALTER TABLE|DROP TABLE|CREATE VIEW|DROP VIEW|CREATE INDEX|CREATE UNIQUE INDEX|DROP INDEX|CREATE TRIGGER
    DROP TRIGGER|USING fts5|USING rtree|WITHOUT ROWID|STRICT|AUTOINCREMENT|STORED|VIRTUAL|DEFERRABLE INITIALLY DEFERRED
    ON DELETE CASCADE|ON DELETE SET NULL|ON UPDATE CASCADE|RESTRICT|CHECK (|NOT NULL|UNIQUE (|DEFAULT|INSTEAD OF|BEFORE
    RAISE(IGNORE)|RAISE(ABORT|RAISE(FAIL|RENAME TO|RENAME COLUMN|ADD COLUMN|DROP COLUMN|AS SELECT
    INSERT INTO|REPLACE INTO|OR IGNORE|OR REPLACE|OR FAIL|OR ABORT|DEFAULT VALUES|DO NOTHING|DO UPDATE|excluded.
    RETURNING|UPDATE|FROM (SELECT|DELETE FROM|WITH w|RECURSIVE|MATERIALIZED|OVER (|PARTITION BY|EXCLUDE TIES
    FILTER (WHERE|UNION|UNION ALL|INTERSECT|EXCEPT|GROUP BY|HAVING|DISTINCT|LEFT JOIN|RIGHT JOIN|FULL JOIN|CROSS JOIN
    USING (|EXISTS (
    CASE|CAST(|LIKE|GLOB|ESCAPE|COLLATE NOCASE|COLLATE RTRIM|NULLS LAST|BETWEEN|IS DISTINCT FROM|json_each|json_tree
    json_set|->|->>|json_group_array|MATCH|highlight(|snippet(|group_concat|ntile(|printf(|zeroblob(|x'|9e999|?1|:p1|OFFSET
""".replace("\n", "|")


def test_most_statements_are_right_and_some_are_wrong() -> None:
    """If all were refused, or none, equal answers would say little."""
    for seed in SEEDS:
        done = [tried.is_done for tried in script(seed)]
        assert 0.6 < sum(done) / len(done) < 0.85


def test_every_kind_of_statement_succeeds_somewhere() -> None:
    done = Counter(tried.kind for tried in script(SEED) if tried.is_done)
    assert done.keys() == {tried.kind for tried in script(SEED)}
    assert min(done.values()) >= 3, done
    assert sum(len(tried.action) for tried in script(SEED)) >= STATEMENTS[SEED]


@pytest.mark.parametrize("feature", sorted({each.strip() for each in FEATURES.split("|") if each.strip()}))
def test_every_feature_of_the_language_succeeds_somewhere(feature: str) -> None:
    assert any(
        feature in each.sql for seed in SEEDS for tried in script(seed) if tried.is_done for each in tried.action
    )


def test_errors_are_of_many_kinds() -> None:
    """By SQLite's extended codes: constraints of each kind, mismatches, what is too big, and plain mistakes."""
    failures = [tried.said for seed in SEEDS for tried in script(seed) if isinstance(tried.said, Failure)]
    codes = {failure.code for failure in failures}
    assert codes >= {NOT_OF_SQLITE, 1, 18, 20, 275, 787, 1299, 1555, 2067, 3091}
    assert len({failure.message for failure in failures if failure.code == 1}) > 100


def test_a_seed_says_everything() -> None:
    assert list(islice(Generator(5).script(500), 400)) == list(islice(Generator(5).script(500), 400))


def test_a_script_says_the_same_to_sqlite_when_it_is_played_again() -> None:
    assert_same(one_by_one(actions(SEED)[:2000]), plainly)


def test_a_difference_is_found_and_told_by_a_short_script() -> None:
    """Were foreign keys forgotten, what remains of thousands of statements are the few that show it."""

    def without_foreign_keys(steps: Script) -> Played:
        plain = Plain()
        plain.db.execute("PRAGMA foreign_keys = OFF")
        return [plain.run(step.action) for step in steps], content_of(plain.db)

    found = difference(one_by_one(actions(SEED)), without_foreign_keys)
    assert found is not None
    short = shortest(found, without_foreign_keys)
    assert len(short.script) <= 6
    assert "REFERENCES" in str(short)
