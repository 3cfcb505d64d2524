"""The book of the tables: which directories hold what, up to which position. Whoever reads them begins here.

    tables.json                            this book; what it does not name is not there yet, or not any more
    archive/                               bundles, actions and changes, as the follower writes them (`archive`)
    current/TABLE/{first}-{last}/          the rows that a table has, each with the position it is so from
    history/TABLE/{first}-{last}/          the rows that it had, each with the positions it was so from and to

    .../_files.json                        which files a directory has, and how large each is

A directory is written aside, put in its place, and named in the book once all of them are there; the book itself is put
in place of the last one. So a kill at any moment leaves what was right before, and what was begun is made again, from
the same positions to the same rows. A directory that is not needed any more stays for a while, for those who read.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

VERSION = 2
FILE = "tables.json"
LIST = "_files.json"
"""Spark and others pass over what begins like that."""
KINDS = CURRENT, HISTORY = "current", "history"
ASIDE = ".aside"
_REMEDY = f"bring it back, or remove {FILE}, and the tables are made again"
_LONGEST = 180
"""Characters of a directory's name: no file system takes more than 255."""
GRACE_S = 600.0
"""So long a directory that was replaced is kept."""


class BadBook(Exception):
    """It, or what it names, cannot be read, or is of another form: what to do."""


class Table(msgspec.Struct, frozen=True):
    current: tuple[str, ...] = ()
    """Directories, relative to the book: all of them together."""
    history: tuple[str, ...] = ()
    rows: int = 0
    """That it has."""
    left_out: str = ""
    """Why it has no directories."""


class Book(msgspec.Struct, frozen=True):
    version: int = VERSION
    position: int = 0
    """The tables are as they were after this."""
    digest: str = ""
    """What the order comes to there."""
    tables: dict[str, Table] = {}


def read(place: Path) -> Book:
    """Raises `BadBook`."""
    path = place / FILE
    if not path.exists():
        return Book()
    try:
        book = msgspec.json.decode(path.read_bytes(), type=Book)
    except (msgspec.DecodeError, OSError) as error:
        raise BadBook(f"{path} cannot be read: {error}; remove it, and the tables are made again") from None
    if book.version != VERSION:
        raise BadBook(f"{path} has the form {book.version}, we know {VERSION}: remove it, and they are made again")
    return book


def write(place: Path, book: Book, before: Book | None = None) -> None:
    """In place of the one before: from now on, what it does not name any more is kept for a while."""
    path = place / FILE
    aside = path.with_name(FILE + ASIDE)
    with aside.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(book), indent=1))
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    for each in used(before or Book()) - used(book):
        with suppress(FileNotFoundError):
            os.utime(place / each)


def used(book: Book) -> set[str]:
    return {each for table in book.tables.values() for each in (*table.current, *table.history)}


def directory(kind: str, table: str, first: int, last: int) -> str:
    return f"{kind}/{folder(table)}/{first:020}-{last:020}"


def folder(table: str) -> str:
    """A name that no file system, and no reader of Parquet, takes for something else."""
    name = quote(table, safe=" ")
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}~{blake2b(table.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"
    return f"%{ord(name[0]):02X}{name[1:]}" if name[:1] in (".", "_") else name


def list_files(directory: Path) -> None:
    """Of one that is about to be put in its place."""
    sizes = {path.name: path.stat().st_size for path in sorted(directory.glob("[!._]*.parquet"))}
    (directory / LIST).write_bytes(msgspec.json.encode(sizes))


def files_in(directory: Path) -> list[Path]:
    """Raises `BadBook` unless they are those that it was given."""
    try:
        sizes = msgspec.json.decode((directory / LIST).read_bytes(), type=dict[str, int])
        found = {name: (directory / name).stat().st_size for name in sizes}
    except (OSError, msgspec.DecodeError) as error:
        raise BadBook(f"{directory} is not as it was written: {error}; {_REMEDY}") from None
    if others := sorted(name for name, size in found.items() if size != sizes[name]):
        raise BadBook(f"{directory / others[0]} has {found[others[0]]} bytes, not {sizes[others[0]]}; {_REMEDY}")
    return [directory / name for name in sizes]


def schema_of(file: Path) -> pa.Schema:
    """Raises `BadBook`."""
    try:
        return pq.read_schema(file).remove_metadata()
    except (OSError, pa.ArrowException) as error:
        raise BadBook(f"{file} cannot be read: {error}; {_REMEDY}") from None


def remove_unused(place: Path, book: Book, grace: float = GRACE_S) -> None:
    """Directories that the book does not name, if they are old enough."""
    named = used(book)
    for path in _directories(place):
        if str(path.relative_to(place)) not in named and time.time() - path.stat().st_mtime >= grace:
            shutil.rmtree(path, ignore_errors=True)


def _directories(place: Path) -> Iterator[Path]:
    for kind in (*KINDS, ASIDE):
        yield from (place / kind).glob("*/*")
