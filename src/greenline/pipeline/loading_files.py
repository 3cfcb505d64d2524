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
from greenline.pipeline.session import why_not_read

KINDS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_PACKED = {".gz", ".bz2", ".zst"}
_AT_ONCE = 1 << 20


def kind_of(file: Path) -> str | None:
    """If its name tells."""
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in _PACKED]
    return KINDS.get(suffixes[-1]) if suffixes else None


def check(place: Path, kind: str) -> None:
    """A file, or a directory of them. Raises `BadOption`."""
    if not place.exists():
        raise BadOption(f"there is no {place}")
    files = sorted(file for file in place.rglob("*") if file.is_file()) if place.is_dir() else [place]
    for file in files:
        if (not place.is_dir() or kind_of(file) is not None) and (reason := why_not_read(file)):
            raise BadOption(reason)
        if strange := [each for each in file.relative_to(place).parts[:-1] if "=" not in each]:
            raise BadOption(
                f"Spark passes over directories in a directory, unless they are named COLUMN=VALUE: load {strange[0]}"
                f" by itself, or take it out of {place}"
            )
    heads: dict[object, Path] = {}
    for file in _plain(place):
        if kind != "parquet":
            _check_letters(file)
        if kind == "csv" and _is_long(file):
            _check_quotes(file)
        if kind == "json":
            _check_object(file)
        if kind in _HEADS:
            heads.setdefault(_HEADS[kind](file), file)
    if len(heads) > 1:
        one, other, *_ = heads.values()
        raise BadOption(f"{one} and {other} do not have the same columns in the same order: load them one by one")


def has_long_rows(place: Path) -> bool:
    """Is a row of this CSV, or may it be, longer than a line? Then Spark cannot read parts of it side by side."""
    files = list(_plain(place))
    return not files or place.is_dir() or any(map(_is_long, files))


def _plain(place: Path) -> Iterator[Path]:
    """Those that are not packed."""
    files = sorted(path for path in place.rglob("[!._]*") if path.is_file()) if place.is_dir() else [place]
    yield from (file for file in files if file.suffix.lower() not in _PACKED)


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


def _check_object(file: Path) -> None:
    with file.open(encoding="utf-8-sig") as lines:
        first = next((line.strip() for line in lines if line.strip()), "{")
    if not first.startswith("{"):
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


def _head(file: Path) -> tuple[str, ...]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        names = tuple(next(csv.reader(lines), ()))
    if doubled := [name for name in names if [each.lower() for each in names].count(name.lower()) > 1]:
        raise BadOption(f"{file} has more than one column {doubled[0]}, which are one to SQL: rename them")
    if "" in names:
        raise BadOption(f"{file} has a column without a name, number {names.index('') + 1}: name it, or take it out")
    return names


def _schema(file: Path) -> pa.Schema:
    try:
        return pq.read_schema(file).remove_metadata()
    except (OSError, pa.ArrowException) as error:
        raise BadOption(f"{file} is no whole Parquet file: {str(error).splitlines()[0]}") from None


_HEADS: dict[str, Callable[[Path], object]] = {"csv": _head, "parquet": _schema}
"""JSON has its columns in every line, and may lack some."""
