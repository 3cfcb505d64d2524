"""The changes of one table in its own columns: what fits is there, and what does not is told beside."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from greenline.pipeline import source_table
from greenline.pipeline.changes import CHANGES


def changes(*rows: tuple[list[str], list[Any]]) -> pa.RecordBatch:
    """Inserts into one table, at the positions 1, 2, 3..."""
    encode = msgspec.msgpack.encode
    time = datetime(2026, 5, 1, tzinfo=UTC)
    columns: list[list[Any]] = [
        ["t"] * len(rows),
        [encode([number]) for number in range(len(rows))],
        [json.dumps(names) for names, _ in rows],
        [encode(values) for _, values in rows],
        ["insert"] * len(rows),
        list(range(1, len(rows) + 1)),
        [time] * len(rows),
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, CHANGES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=CHANGES)


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("INTEGER", pa.int64()),
        ("unsigned big int", pa.int64()),
        ("POINT", pa.int64()),  # as SQLite has it
        ("VARCHAR(20)", pa.string()),
        ("TEXT", pa.string()),
        ("BLOB", pa.binary()),
        ("DOUBLE PRECISION", pa.float64()),
        ("REAL", pa.float64()),
        ("BOOLEAN", pa.bool_()),
        ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
        ("numeric(5)", pa.decimal128(5, 0)),
        ("DECIMAL(99, 2)", pa.string()),
        ("DECIMAL", pa.string()),
        ("DATETIME", pa.string()),
        ("", pa.string()),
    ],
)
def test_types_follow_from_those_that_are_declared(declared: str, kind: pa.DataType) -> None:
    assert source_table.type_of(declared) == kind


NO_UTF8 = msgspec.msgpack.Ext(1, b"\xff\x00")
LARGE = 2**53 + 1


@pytest.mark.parametrize(
    ("declared", "value", "shown", "other"),
    [
        ("INT", 2**63 - 1, 2**63 - 1, None),
        ("INT", 1.5, None, 1.5),
        ("INT", "one", None, "one"),
        ("INT", None, None, None),
        ("TEXT", "one", "one", None),
        ("TEXT", b"one", None, {"blob": "6f6e65"}),
        ("TEXT", NO_UTF8, None, {"text": "ff00"}),
        ("BLOB", b"\x00", b"\x00", None),
        ("BLOB", "text", None, "text"),
        ("REAL", 0.1, 0.1, None),
        ("REAL", float("inf"), float("inf"), None),
        ("REAL", 3, 3.0, None),
        ("REAL", LARGE, None, LARGE),
        ("BOOLEAN", 1, True, None),
        ("BOOLEAN", 0, False, None),
        ("BOOLEAN", 2, None, 2),
        ("BOOLEAN", "true", None, "true"),
        ("DECIMAL(6, 2)", 1234.5, Decimal("1234.50"), None),
        ("DECIMAL(6, 2)", 7, Decimal("7.00"), None),
        ("DECIMAL(38, 18)", 2**63 - 1, Decimal(2**63 - 1), None),
        ("DECIMAL(6, 2)", 0.125, None, 0.125),
        ("DECIMAL(6, 2)", 12345, None, 12345),
        ("DECIMAL(6, 2)", 1e300, None, 1e300),
        ("DECIMAL(6, 2)", float("inf"), None, {"real": "inf"}),
        ("DATE", "2026-05-01", "2026-05-01", None),
        ("", 5, "5", None),
        ("", 0.5, "0.5", None),
    ],
)
def test_a_value_that_does_not_fit_is_told_beside(declared: str, value: object, shown: object, other: object) -> None:
    schema = source_table.schema_of([("a", declared)])
    (row,) = source_table.typed(changes((["a"], [value])), schema).to_pylist()
    assert row["a"] == shown
    assert type(row["a"]) is type(shown)
    assert (row["_other"] and json.loads(dict(row["_other"])["a"])) == other


def test_rows_of_older_and_newer_tables_stand_beside_each_other() -> None:
    """A column was dropped, one was added, and one is spelt otherwise: names are compared as SQLite does."""
    schema = source_table.schema_of([("id", "INTEGER"), ("Name", "TEXT"), ("since", "INTEGER")])
    found = source_table.typed(
        changes((["id", "name", "dropped"], [1, "ada", 7]), (["id", "Name", "since"], [2, "rita", 1890])), schema
    )
    assert found.schema == schema
    rows = found.to_pylist()
    assert [(row["id"], row["Name"], row["since"]) for row in rows] == [(1, "ada", None), (2, "rita", 1890)]
    assert [row["_other"] for row in rows] == [[("dropped", "7")], None]
    assert [(row["_change_type"], row["_commit_version"]) for row in rows] == [("insert", 1), ("insert", 2)]
    assert [msgspec.msgpack.decode(row["_key"]) for row in rows] == [[0], [1]]


def test_columns_that_are_named_like_ours_are_known() -> None:
    assert source_table.clashing([("a", "INT"), ("_OTHER", "TEXT"), ("_key", "")]) == ["_OTHER", "_key"]
