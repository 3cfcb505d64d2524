"""Opening: is what is on the disk a database of ours, and whole, and nobody else's at this moment?"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import apsw

from greenline.database.sqlite import connection, tables
from greenline.database.sqlite.broken import Unusable
from greenline.database.sqlite.determinism import Moment
from greenline.database.sqlite.limits import Limits

LOCK = "greenline.lock"
ANEW = "move it away and join again: another replica sends what is lost"


class Lock:
    """Of a directory: while it is held, no other process opens the database in it. The system lets it go with us."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise Unusable(f"the database in {directory} is in use by another process: stop that one first") from None

    def release(self) -> None:
        os.close(self._file)


def writer(path: Path, moment: Moment, limits: Limits, base: str) -> apsw.Connection:
    """The writer's connection, to a database that is made if there is none. What it has is on the disk then."""
    try:
        opened = connection.opened(path, connection.Role.WRITER, moment, base=base, cache_bytes=limits.cache_bytes)
        _prepare(opened, path)
        # A log that was long is short again; what is deleted leaves nothing, so that equal pages are equal bytes.
        opened.execute(f"PRAGMA journal_size_limit = {limits.wal_restart_bytes}").fetchall()
        opened.execute("PRAGMA secure_delete = FAST").fetchall()
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise Unusable(f"{path} is damaged ({error}); {ANEW}") from None
    except (apsw.BusyError, apsw.LockedError):
        raise Unusable(f"{path} is in use by another program: close that one first") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.FullError) as error:
        raise Unusable(f"{path} cannot be opened ({error}): are there rights, and room on the disk?") from None
    return opened


def _prepare(opened: apsw.Connection, path: Path) -> None:
    ((mode,),) = opened.execute("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise Unusable(f"{path} is in use by another program: close that one first")
    found = [str(name) for (name,) in opened.execute("SELECT name FROM sqlite_schema")]
    if not found:
        opened.execute(f"BEGIN; {tables.SCHEMA} COMMIT").fetchall()
    elif "greenline_meta" not in found:
        raise Unusable(f"{path} is a database, but not one of Greenline's: move it away")
    ((form,),) = opened.execute("SELECT value FROM greenline_meta WHERE key = 'format'")
    if form != tables.FORMAT:
        raise Unusable(f"{path} has the format {form}, we know {tables.FORMAT}: use the Greenline that has made it")
    opened.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
