"""Backups: the committed state as one plain SQLite file, and a new cluster that begins with it.

A backup can be taken while the node runs, by another process on its machine: it reads, like any query. What it comes
back as is never the old replica: it would have forgotten what it had promised. It is the beginning of a new order, so
where the old one stood is wiped out, and with it the sessions; the users stay.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from greenline.database.sqlite import basis, images
from greenline.database.sqlite.staging import force
from greenline.database.sqlite.tables import FILE, FORMAT, stands, write_meta, write_stands
from greenline.kernel.actions import DIGEST_BYTES


class NoBackup(Exception):
    """The file is none, or is damaged; or it is not where it should be."""


def take(directory: Path, target: Path) -> int:
    """The state of the database in this directory, to a new file; then its position. What is there is not replaced."""
    source = directory / FILE
    if not source.exists():
        raise NoBackup(f"there is no database in {directory}; has its node ever run?")
    if target.exists():
        raise NoBackup(f"{target} exists already; choose another name, or move it away")
    beside = target.with_name(target.name + ".new")
    beside.unlink(missing_ok=True)
    try:
        copy = images.copied(source, beside)
        write_meta(copy, "basis", basis.NONE)
        position = stands(copy).position
        copy.close()
    except apsw.Error as error:
        beside.unlink(missing_ok=True)
        raise NoBackup(f"{source} cannot be copied: {error}") from None
    force(beside)
    os.link(beside, target)
    beside.unlink()
    force(target.parent)
    return position


def begin_anew(backup: Path, directory: Path) -> int:
    """A database with this content, for a replica that has no past; then the position that the backup was of."""
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / FILE
    if target.exists():
        raise NoBackup(f"there is a database in {directory} already; choose another directory")
    try:
        opened = apsw.Connection(f"file:{backup}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.CantOpenError:
        raise NoBackup(f"cannot open {backup}: is it there, and may you read it?") from None
    beside = target.with_suffix(".new")
    beside.unlink(missing_ok=True)
    try:
        position = _checked(opened, backup)
        copy = images.passing(beside)
        with copy.backup("main", opened, "main") as copying:
            copying.step()
        _forget(copy)
        copy.close()
    except apsw.Error as error:
        raise NoBackup(f"{backup} cannot be read: {error}") from None
    finally:
        opened.close()
    force(beside)
    beside.rename(target)
    force(directory)
    return position


def _checked(opened: apsw.Connection, backup: Path) -> int:
    """Its position, if it is one of ours, and whole."""
    found = [name for (name,) in opened.execute("SELECT name FROM sqlite_schema WHERE name = 'greenline_meta'")]
    if not found:
        raise NoBackup(f"{backup} is a database, but no backup of Greenline's")
    ((form,),) = opened.execute("SELECT value FROM greenline_meta WHERE key = 'format'")
    if form != FORMAT:
        raise NoBackup(f"{backup} has the format {form}, we know {FORMAT}: use the Greenline that has made it")
    ((verdict,), *_) = opened.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise NoBackup(f"{backup} is damaged: {verdict}")
    return stands(opened).position


def _forget(copy: apsw.Connection) -> None:
    write_stands(copy, 0, bytes(DIGEST_BYTES))
    write_meta(copy, "horizon", 0)
    write_meta(copy, "basis", basis.NONE)
    copy.execute("DELETE FROM greenline_sessions; DELETE FROM greenline_members").fetchall()
