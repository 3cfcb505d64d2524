"""The changes of one table, in columns of its own: their types follow from those that the table declares.

| declared | type |
|---|---|
| `...INT...` | long |
| `...CHAR...`, `...CLOB...`, `...TEXT...` | string |
| `...BLOB...` | binary |
| `...REAL...`, `...FLOA...`, `...DOUB...` | double |
| `...BOOL...` | boolean |
| `DECIMAL(p, s)`, `NUMERIC(p, s)` | decimal(p, s) |
| anything else, or nothing | string: numbers in as few digits as say which they are |

SQLite keeps whatever it is given: a column may hold values of another type than it declares, and rows may be older or
newer than the definition of their table. A value that does not fit its column exactly is NULL there, and `_other` has
it, by the column's name, as JSON (`rows`). If all fit, `_other` is NULL.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import msgspec
import pyarrow as pa

from greenline.database.sqlite.rows import folded
from greenline.pipeline.changes import values_of
from greenline.pipeline.rows_json import shown

OTHER = "_other"
OURS = (
    pa.field("_key", pa.binary(), nullable=False),
    pa.field(OTHER, pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))),
    pa.field("_change_type", pa.string(), nullable=False),
    pa.field("_commit_version", pa.int64(), nullable=False),
    pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC")),
)
"""The columns that stand behind the table's own."""
_EXACT = 1 << 53
"""Every whole number up to here is a double."""
_MOST_DIGITS = 38
_names = msgspec.json.Decoder(tuple[str, ...]).decode


class Unfit(Exception):
    """A value is not one of its column's type."""


def schema_of(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Of a table with these columns and declared types."""
    return pa.schema([*(pa.field(name, type_of(declared)) for name, declared in columns), *OURS])


def type_of(declared: str) -> pa.DataType:
    words = declared.upper()
    for kind, marks in _KINDS:
        if any(mark in words for mark in marks):
            return kind
    if found := re.match(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", words):
        digits, scale = int(found[1]), int(found[2] or 0)
        if 0 < digits <= _MOST_DIGITS and scale <= digits:
            return pa.decimal128(digits, scale)
    return pa.string()


_KINDS = (
    (pa.int64(), ("INT",)),
    (pa.string(), ("CHAR", "CLOB", "TEXT")),
    (pa.binary(), ("BLOB",)),
    (pa.float64(), ("REAL", "FLOA", "DOUB")),
    (pa.bool_(), ("BOOL",)),
)
"""In the order in which SQLite looks for them."""


def typed(changes: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Changes of one table, as rows of this schema."""
    own = [field for field in schema if field.name not in _OUR_NAMES]
    if (plain := _plain(changes, own)) is not None:
        nothing = pa.nulls(len(changes), schema.field(OTHER).type)
        rest = [changes.column(field.name) for field in OURS[2:]]
        return pa.RecordBatch.from_arrays([*plain, changes.column("key"), nothing, *rest], schema=schema)
    columns: dict[str, list[Any]] = {field.name: [] for field in own}
    converters = {field.name.lower(): (columns[field.name], _converter(field.type)) for field in own}
    others: list[list[tuple[str, str]] | None] = []
    shapes: dict[str, tuple[str, ...]] = {}
    rows = zip(changes.column("columns").to_pylist(), changes.column("row").to_pylist(), strict=True)
    for number, (written, packed) in enumerate(rows, 1):
        if written not in shapes:
            shapes[written] = _names(written)
        other: list[tuple[str, str]] = []
        for name, value in zip(shapes[written], values_of(packed), strict=True):
            column, convert = converters.get(name.lower(), _NOWHERE)
            try:
                if value is None:
                    continue
                if len(column) == number:
                    raise Unfit  # of a column that was named like this one
                column.append(convert(value))
            except Unfit:
                other.append((name, shown(value)))
        for column in columns.values():
            if len(column) < number:
                column.append(None)
        others.append(other or None)
    return pa.RecordBatch.from_arrays(
        [
            *(pa.array(columns[field.name], field.type) for field in own),
            changes.column("key"),
            pa.array(others, schema.field(OTHER).type),
            *(changes.column(field.name) for field in OURS[2:]),
        ],
        schema=schema,
    )


_OUR_NAMES = frozenset(field.name for field in OURS)


def _plain(changes: pa.RecordBatch, own: Sequence[pa.Field]) -> list[pa.Array] | None:
    """Column by column, if all rows have the same ones and every value is of its column's type, as most are."""
    shapes = changes.column("columns").unique().to_pylist()
    if len(shapes) != 1:
        return None
    names = _names(shapes[0])
    columns = zip(*map(values_of, changes.column("row").to_pylist()), strict=True)
    held = dict(zip(map(str.lower, names), columns, strict=True))
    fields = {field.name.lower(): field for field in own}
    if len(held) < len(names) or not held.keys() <= fields.keys():
        return None
    for name, values in held.items():
        kind = _TYPES.get(fields[name].type)
        if kind is None or not set(map(type, values)) <= {kind, type(None)}:
            return None
    return [
        pa.array(held[name], field.type) if name in held else pa.nulls(len(changes), field.type)
        for name, field in fields.items()
    ]


def clashing(columns: Iterable[tuple[str, str]], ours: Collection[str] = _OUR_NAMES) -> list[str]:
    """Those that are named like ours, or like each other to Spark."""
    names = [name for name, _ in columns]
    times = Counter(map(_to_spark, names))
    return [name for name in names if _to_spark(name) in ours or times[_to_spark(name)] > 1]


def _to_spark(name: str) -> str:
    """Names that come to the same are one: letters of any alphabet have two cases, and Java compares the large letters
    and then the small ones of them, one by one."""
    return "".join(_small(letter.upper() if len(letter.upper()) == 1 else letter) for letter in name)


def _small(letter: str) -> str:
    """For Java a letter has one small one."""
    return letter.lower()[:1]


def is_alike(one: str, other: str) -> bool:
    """Two names of one table, to SQLite."""
    return folded(one) == folded(other)


def found_in(names: Collection[str], table: str) -> str | None:
    """The name of this table as it is written."""
    return table if table in names else next((name for name in names if is_alike(name, table)), None)


# Values. SQLite has five types of them, and a sixth is text that is no UTF-8.


def _converter(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind.precision, kind.scale)
    try:
        return _CONVERTERS[kind]
    except KeyError:
        names = ", ".join(sorted({str(each) for each in _CONVERTERS}))
        raise ValueError(f"a column of the type {kind} cannot be read: choose among {names} and decimals") from None


def _long(value: Any) -> int:
    if type(value) is int:
        return value
    raise Unfit


def _double(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int and -_EXACT <= value <= _EXACT:
        return float(value)
    raise Unfit


def _boolean(value: Any) -> bool:
    if type(value) is int and value in (0, 1):
        return bool(value)
    raise Unfit


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) in (int, float):
        return str(value)
    raise Unfit


def _blob(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    raise Unfit


def _decimal(value: Any, digits: int, scale: int) -> Decimal:
    """A double that was written with so many digits is meant to be what was written."""
    if type(value) not in (int, float):
        raise Unfit
    try:
        with localcontext(prec=2 * _MOST_DIGITS):
            exact = Decimal(str(value))
            fitting = exact.quantize(Decimal(1).scaleb(-scale))
    except InvalidOperation:
        raise Unfit from None
    if fitting != exact or len(fitting.as_tuple().digits) > digits:
        raise Unfit
    return fitting


def _nowhere(_: Any) -> Any:
    """Its column is not there any more, or not yet."""
    raise Unfit


_NOWHERE: tuple[list[Any], Callable[[Any], Any]] = [], _nowhere
_TYPES = {pa.int64(): int, pa.string(): str, pa.binary(): bytes, pa.float64(): float}
"""As which type of ours a value of SQLite is one of its column's without being converted."""
_CONVERTERS: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.int64(): _long,
    pa.string(): _text,
    pa.binary(): _blob,
    pa.float64(): _double,
    pa.bool_(): _boolean,
}
