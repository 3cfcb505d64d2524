"""Broken: the database failed in a way that is nobody's outcome.

A constraint fails alike at every replica; a full disk does not. What fails here only is never told to a client as what
its action came to: the node halts, and begins again from its disk.
"""

from __future__ import annotations

import apsw

from greenline.kernel.database import Broken as Broken


class Unusable(Exception):
    """What is on the disk cannot be opened: says what it is, and what to do."""


_OF_THIS_PLACE = frozenset(
    {
        apsw.SQLITE_BUSY,
        apsw.SQLITE_CANTOPEN,
        apsw.SQLITE_CORRUPT,
        apsw.SQLITE_INTERNAL,
        apsw.SQLITE_INTERRUPT,
        apsw.SQLITE_IOERR,
        apsw.SQLITE_LOCKED,
        apsw.SQLITE_MISUSE,
        apsw.SQLITE_NOLFS,
        apsw.SQLITE_NOMEM,
        apsw.SQLITE_NOTADB,
        apsw.SQLITE_PERM,
        apsw.SQLITE_PROTOCOL,
        apsw.SQLITE_READONLY,
    }
)


_OF_CONTENT = frozenset({apsw.SQLITE_CORRUPT_VTAB, apsw.SQLITE_CORRUPT_SEQUENCE})
"""What virtual tables find in what clients have written to them: the same everywhere."""


def is_mistake(error: Exception) -> bool:
    """Is it ours, and nobody's disk? It would happen again: also a constraint that our own statements break."""
    return isinstance(error, apsw.ConstraintError) or not isinstance(error, apsw.Error | OSError | Unusable)


def is_breaking(error: apsw.Error) -> bool:
    """Did this fail because of where it ran, and not because of what was asked? A full disk: who writes knows."""
    if getattr(error, "extendedresult", 0) in _OF_CONTENT:
        return False
    return getattr(error, "result", apsw.SQLITE_INTERNAL) in _OF_THIS_PLACE
