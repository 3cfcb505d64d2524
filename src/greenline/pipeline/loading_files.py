"""Files to be loaded: looked at before Spark is, which reads some of them in silence and otherwise than they are meant.

It passes over files whose names begin with `_` or `.`, and over directories in a directory; takes some letters in names
for patterns, the columns of one Parquet file for those of all, bytes that are no UTF-8 for question marks, and all that
follows a quote that is never closed for one value.
"""

from __future__ import annotations

import csv
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from greenline.pipeline.reaching import BadOption
from greenline.pipeline.session import why_a_pattern, why_not_read

KINDS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_PACKED = {".gz", ".bz2", ".zst"}
_AT_ONCE = 1 << 20

Columns = tuple[tuple[str, str], ...]
"""Names and types."""


def kind_of(file: Path) -> str | None:
    """If its name tells."""
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in _PACKED]
    return KINDS.get(suffixes[-1]) if suffixes else None


def check(place: Path, kind: str) -> None:
    """A file, or a directory of them. Raises `BadOption`."""
    if not place.exists():
        raise BadOption(f"there is no {place}")
    if reason := why_a_pattern(place):
        raise BadOption(reason)
    for file in _found(place):
        if (file == place or kind_of(file) is not None) and (reason := why_not_read(file)):
            raise BadOption(reason)
    alike: dict[object, Path] = {}
    for file in _plain(place):
        ours = _columns_of_directories(file, place)
        if kind != "parquet":
            _check_letters(file)
        if kind == "csv" and _is_long(file):
            _check_quotes(file)
        if kind == "json":
            _check_objects(file)
        columns = _COLUMNS[kind](file) if kind in _COLUMNS and file.stat().st_size else ()
        if both := [name for name, _ in columns if name.lower() in ours]:
            raise BadOption(f"{file} has a column {both[0]}, and its directory's name is one: take out one of both")
        if columns or kind not in _COLUMNS:
            alike.setdefault((ours, columns), file)
    if len(alike) > 1:
        one, other, *_ = alike.values()
        raise BadOption(f"{one} and {other} do not have the same columns in the same order: load them one by one")


def has_long_rows(place: Path) -> bool:
    """Is a row of this CSV, or may it be, longer than a line? Then Spark cannot read parts of it side by side."""
    files = list(_plain(place))
    return not files or place.is_dir() or any(map(_is_long, files))


# Which there are.


def _plain(place: Path) -> Iterator[Path]:
    """Those that Spark reads, or should, and that are not packed."""
    for file in _found(place):
        is_data = kind_of(file) is not None or not file.suffix or all(map(_is_column, _between(file, place)))
        is_read = file == place or (file.name[0] not in "._" and is_data)
        if is_read and file.suffix.lower() not in _PACKED:
            yield file


def _found(place: Path) -> list[Path]:
    """In a directory, but for directories that are an editor's own, or Spark's, which everybody passes over."""
    if not place.is_dir():
        return [place]
    files = (file for file in sorted(place.rglob("*")) if file.is_file())
    return [
        file for file in files if not any(each[0] in "._" and not _is_column(each) for each in _between(file, place))
    ]


def _between(file: Path, place: Path) -> tuple[str, ...]:
    """Directories."""
    return file.relative_to(place).parts[:-1]


def _is_column(directory: str) -> bool:
    """As in `day=1`."""
    return "=" in directory


def _columns_of_directories(file: Path, place: Path) -> tuple[str, ...]:
    if strange := [each for each in _between(file, place) if not _is_column(each)]:
        raise BadOption(
            f"Spark passes over directories in a directory, unless they are named COLUMN=VALUE: load {strange[0]}"
            f" by itself, or take it out of {place}"
        )
    return tuple(each.partition("=")[0].lower() for each in _between(file, place))


# What is in them.


def _is_long(file: Path) -> bool:
    with file.open("rb") as lines:
        return any(line.count(b'"') % 2 or b"\r" in line.rstrip(b"\r\n") for line in lines)


def _check_letters(file: Path) -> None:
    decoder, read = getincrementaldecoder("utf-8")(), 0
    with file.open("rb") as data:
        while True:
            part = data.read(_AT_ONCE)
            try:
                decoder.decode(part, final=not part)
            except UnicodeDecodeError as error:
                place = max(0, read + error.start)
                raise BadOption(
                    f"{file} is not UTF-8, near byte {place:,}: convert it, with iconv for example"
                ) from None
            if not part:
                return
            read += len(part)


def _check_objects(file: Path) -> None:
    """An array in one line Spark takes for its objects; of one in several it takes each line for itself."""
    with file.open(encoding="utf-8-sig") as lines:
        first = next((line for line in iter(lambda: lines.readline(_AT_ONCE), "") if line.strip()), "{").strip()
    is_array = first.startswith("[") and (first.endswith("]") or len(first) >= _AT_ONCE - 1)
    if not (first.startswith("{") or is_array):
        raise BadOption(f"{file} does not have an object in each line, as it must: it begins with {first[:20]}")


def _check_quotes(file: Path) -> None:
    limit = csv.field_size_limit(1 << 30)
    row = 0
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for row, _ in enumerate(csv.reader(lines, strict=True), 1):  # noqa: B007
                pass
    except csv.Error as error:
        raise BadOption(f"{file} cannot be read after its row {row:,}, its header counted: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _head(file: Path) -> Columns:
    """In their order; all of them are text."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        names = tuple(next(csv.reader(lines), ()))
    if doubled := [name for name in names if [each.lower() for each in names].count(name.lower()) > 1]:
        raise BadOption(f"{file} has more than one column {doubled[0]}, which are one to SQL: rename them")
    if "" in names:
        raise BadOption(f"{file} has a column without a name, number {names.index('') + 1}: name it, or take it out")
    return tuple((name, "") for name in names)


def _schema(file: Path) -> Columns:
    """In any order, since Spark takes them by their names. How texts are kept is Arrow's own affair."""
    try:
        schema = pq.read_schema(file)
    except (OSError, pa.ArrowException) as error:
        raise BadOption(f"{file} is no whole Parquet file: {str(error).splitlines()[0]}") from None
    return tuple(sorted((field.name, _plain_type(field.type)) for field in schema))


def _plain_type(type_: pa.DataType) -> str:
    return str(type_.value_type if pa.types.is_dictionary(type_) else type_).removeprefix("large_")


_COLUMNS: dict[str, Callable[[Path], Columns]] = {"csv": _head, "parquet": _schema}
"""JSON has its columns in every line, and may lack some."""
