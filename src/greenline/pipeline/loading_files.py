"""Files to be loaded: looked at before Spark is, which reads some of them in silence and otherwise than they are meant.

It passes over files whose names begin with `_` or `.`, takes some letters in names for patterns, bytes that are no
UTF-8 for question marks, and all that follows a quote that is never closed for one value.
"""

from __future__ import annotations

import csv
from codecs import getincrementaldecoder
from collections.abc import Iterator
from pathlib import Path

from greenline.pipeline.reaching import BadOption
from greenline.pipeline.session import PATTERN

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
    if found := PATTERN.search(str(place)):
        raise BadOption(f"Spark takes {found[0]} in the name of a file for a pattern: rename {place}")
    if place.is_dir():
        for file in sorted(place.rglob("[._]*")):
            if file.is_file() and kind_of(file) is not None:
                raise BadOption(f"Spark passes over files whose names begin with {file.name[0]}: rename {file}")
    elif place.name[:1] in ("_", "."):
        raise BadOption(f"Spark passes over files whose names begin with {place.name[0]}: rename {place}")
    if kind != "csv":
        return
    heads: dict[tuple[str, ...], Path] = {}
    for file in _plain(place):
        _check_letters(file)
        if _is_long(file):
            _check_quotes(file)
        heads.setdefault(_head(file), file)
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
    return names
