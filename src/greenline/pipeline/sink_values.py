"""Spark's values as SQLite holds them. What it cannot hold is refused by name, never bent.

| Spark                       | SQLite                                                                          |
|-----------------------------|---------------------------------------------------------------------------------|
| byte, short, int, long      | INTEGER                                                                         |
| boolean                     | INTEGER, 0 or 1                                                                 |
| float, double               | REAL; NaN is refused, because SQLite would make it NULL                         |
| decimal                     | TEXT with all its digits, because REAL has 15; INTEGER if whole and below 10^18 |
| string, char, varchar       | TEXT                                                                            |
| binary                      | BLOB                                                                            |
| date                        | TEXT, `2026-05-01`                                                              |
| timestamp                   | TEXT in UTC, `2026-05-01 12:00:00.000000`, which sorts with CURRENT_TIMESTAMP   |
| timestamp without time zone | the same, as it is                                                              |

A column of an existing table then makes of them what its own type says, as of all that is inserted into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

INTEGER_DIGITS = 18
"""What always fits 64 bits."""

Row = tuple[Any, ...]


class Unfit(Exception):
    """SQL has nothing to hold this: which column, and what to do."""


def declared(schema: StructType) -> dict[str, str]:
    """Each column with the type that a table made for it declares."""
    return {field.name: _declared(field.name, field.dataType) for field in schema.fields}


def _declared(name: str, type_: DataType) -> str:
    match type_:
        case DecimalType():
            return "INTEGER" if _is_whole(type_.precision, type_.scale) else "TEXT"
        case BooleanType() | IntegralType():
            return "INTEGER"
        case FractionalType():
            return "REAL"
        case StringType() | CharType() | VarcharType() | DateType() | TimestampType() | TimestampNTZType():
            return "TEXT"
        case BinaryType():
            return "BLOB"
    raise Unfit(
        f"column {name} is {type_.simpleString()}, for which SQL has no type: cast it, to JSON with to_json, say,"
        " or leave it out"
    )


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """Raises `Unfit`."""
    columns = [_plain(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return list(zip(*columns, strict=True))


def _plain(name: str, column: pa.Array) -> Sequence[Any]:
    type_ = column.type
    if pa.types.is_boolean(type_):
        column = column.cast(pa.int8())
    elif pa.types.is_date(type_):
        column = column.cast(pa.string())
    elif pa.types.is_timestamp(type_):
        # The zone is only how Spark would show it: the moment is counted in UTC.
        column = column.cast(pa.timestamp("us", type_.tz)).cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string())
    values: list[Any] = column.to_pylist()
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        if any(value is not None and not _is_a_time(value) for value in values):
            raise Unfit(f"column {name} has a time outside of the years 1 to 9999: write it as a string of your own")
        return values
    if pa.types.is_decimal(type_):
        # Arrow would write a small one as 1E-7.
        make = int if _is_whole(type_.precision, type_.scale) else "{:f}".format
        return [None if value is None else make(value) for value in values]
    if pa.types.is_floating(type_) and any(value != value for value in values):
        raise Unfit(
            f"column {name} has a NaN, of which SQL would make NULL: if that is meant, write nanvl({name}, NULL)"
        )
    return values


def _is_a_time(text: str) -> bool:
    """Later ones have a sign or more digits, and of the last ones Arrow only says that they are out of its range: as
    texts none of them stands where it should."""
    return text[:4].isdecimal() and text[4] == "-" and text[:4] != "0000"


def _is_whole(precision: int, scale: int) -> bool:
    return scale == 0 and precision <= INTEGER_DIGITS
