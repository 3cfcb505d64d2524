"""Tables against their plain twin: random orders, written in random ranges, asked for at random positions."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.msgpack import Ext
from pyspark.sql import DataFrame, SparkSession

from greenline.pipeline.running import Running, Told
from greenline.pipeline.tables import Tables
from tests.pipeline.orders import Order
from tests.pipeline.plain import asof

RANGES, POSITIONS, KEYS = 4, 25, 12
TYPES = ("TEXT", "INTEGER", "BLOB", "REAL", "")


def grow(order: Order, chance: random.Random) -> None:
    """By rows that come, go, come back under the same key, change without changing, and get other types."""
    for _ in range(chance.randint(1, POSITIONS)):
        key, n = chance.randrange(KEYS), chance.randrange(3)
        if chance.random() < 0.1:
            anew = f"(id INTEGER PRIMARY KEY, name {chance.choice(TYPES)}, n {chance.choice(TYPES)})"
            kept = (
                f"CREATE TABLE m {anew}",
                "INSERT INTO m SELECT * FROM t",
                "DROP TABLE t",
                "ALTER TABLE m RENAME TO t",
            )
            wider, narrower = "ALTER TABLE t ADD COLUMN more TEXT DEFAULT 'm'", "ALTER TABLE t DROP COLUMN more"
            order.of(*chance.choice((kept, ("DROP TABLE t", f"CREATE TABLE t {anew}"), (wider,), (narrower,))))
        order.of(
            *chance.choices(
                (
                    f"INSERT INTO t VALUES ({key}, 'a', {n}) ON CONFLICT DO UPDATE SET n = excluded.n",
                    f"INSERT INTO t (name, n) VALUES ('new', {n})",
                    f"REPLACE INTO t VALUES ({key}, x'00ff', {n}.5)",
                    f"UPDATE t SET id = id + 100 WHERE id = {key}",
                    f"UPDATE t SET name = name || {n} WHERE id % 3 = {n}",
                    f"DELETE FROM t WHERE id % {KEYS} = {key}",
                    f"INSERT INTO u VALUES ({n}, 'x')",
                    "DELETE FROM u",
                ),
                k=chance.randint(1, 3),
            )
        )


def values(found: DataFrame) -> list[str]:
    """What rows hold, wherever they show it."""
    rows = []
    for row in found.toArrow().to_pylist():
        other = {name: json.loads(value) for name, value in row["_other"] or ()}
        rows.append({name: other.get(name, value) for name, value in row.items() if not name.startswith("_")})
    return sorted(map(repr, map(plainly, rows)))


def plainly(row: dict[str, Any]) -> dict[str, str]:
    return {name: plain(value) for name, value in row.items()}


def plain(value: Any) -> str:
    match value:
        case dict():
            return str(next(iter(value.values())))
        case Ext(data=data) | (bytes() as data):
            return bytes(data).hex()
        case _:
            return str(value)


@pytest.mark.parametrize("seed", range(3))
def test_tables_are_what_the_last_change_of_each_row_says_at_every_position(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance, order = random.Random(seed), Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER)", "CREATE TABLE u (n INTEGER, name TEXT)")
    held: dict[tuple[str, int], list[str]] = {}
    for _ in range(RANGES):
        grow(order, chance)
        with Running(spark, tmp_path, Told(order)) as work:
            work.run()
        tables = Tables(spark, tmp_path)
        held["t", len(order.bundles)] = values(tables.current("t"))
    tables, last = Tables(spark, tmp_path), len(order.bundles)
    for position in {1, last, *chance.sample(range(1, last), 6)}:
        held |= {(table, position): values(tables.as_of(table, position)) for table in "tu"}
    for (table, position), found in held.items():
        rows = sorted(map(repr, map(plainly, asof(tables.archive, table, position))))
        assert found == rows, (table, position)
