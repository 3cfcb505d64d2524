"""Tables against their plain twin: random orders, written in random ranges, asked for at random positions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from greenline.pipeline.running import Running, Told
from greenline.pipeline.tables import Tables
from tests.pipeline.orders import Order
from tests.pipeline.plain import asof

RANGES, POSITIONS, KEYS = 4, 25, 12


def grow(order: Order, chance: random.Random) -> None:
    """By rows that come, go, come back under the same key, and change without changing."""
    for _ in range(chance.randint(1, POSITIONS)):
        key, n = chance.randrange(KEYS), chance.randrange(3)
        order.of(
            *chance.choices(
                (
                    f"INSERT INTO t VALUES ({key}, 'a', {n}) ON CONFLICT DO UPDATE SET n = excluded.n",
                    f"INSERT INTO t (name, n) VALUES ('new', {n})",
                    f"REPLACE INTO t VALUES ({key}, 'b', {n})",
                    f"UPDATE t SET id = id + 100 WHERE id = {key}",
                    f"UPDATE t SET name = name || {n} WHERE id % 3 = {n}",
                    f"DELETE FROM t WHERE id % {KEYS} = {key}",
                    f"INSERT INTO u VALUES ({n}, 'x')",
                    "DELETE FROM u",
                ),
                k=chance.randint(1, 3),
            )
        )


@pytest.mark.parametrize("seed", range(3))
def test_tables_are_what_the_last_change_of_each_row_says_at_every_position(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance, order = random.Random(seed), Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER)", "CREATE TABLE u (n INTEGER, name TEXT)")
    for _ in range(RANGES):
        grow(order, chance)
        with Running(spark, tmp_path, Told(order)) as work:
            work.run()
    tables = Tables(spark, tmp_path)
    for position in {1, len(order.bundles), *chance.sample(range(1, len(order.bundles)), 5)}:
        for table in ("t", "u"):
            found = tables.as_of(table, position)
            own = [name for name in found.columns if not name.startswith("_")]
            rows = sorted(map(repr, found.select(*own).toArrow().to_pylist()))
            assert rows == sorted(map(repr, asof(tables.archive, table, position))), (table, position)
