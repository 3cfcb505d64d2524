"""The tables that are ours, all named `greenline_*`: SQL may read them, and neither write nor drop them.

Where the state stands is a row like any other, written in the transaction that brings it there: so a crash leaves a
position and what belongs to it, or neither.
"""

from __future__ import annotations

import re

import apsw
import msgspec

from greenline.kernel.actions import DIGEST_BYTES

FILE = "greenline.db"
FORMAT = 1
PREFIX = "greenline_"
SECRET, ROLES = "greenline_users", "greenline_roles"
"""What passwords are checked against; and who may do what, which may be read."""
SEQUENCES = "sqlite_sequence"
"""Where SQLite keeps the last number of each AUTOINCREMENT; clients may write to it."""
OURS = apsw.SQLITE_PREPARE_PERSISTENT
FOREIGN = apsw.SQLITE_PREPARE_NORMALIZE
"""`prepare_flags` of our own statements and of clients'. SQLite does nothing about the second; but prepared statements
are kept by text and flags, so that a client who sends the same text as we do does not get ours, which was never asked
whether it may."""

SCHEMA = f"""
CREATE TABLE greenline_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO greenline_meta VALUES
    ('format', {FORMAT}), ('position', 0), ('outcomes', zeroblob({DIGEST_BYTES})), ('horizon', 0),
    ('basis', zeroblob({DIGEST_BYTES}));
CREATE TABLE greenline_sessions (
    name TEXT PRIMARY KEY, last INTEGER NOT NULL, received INTEGER NOT NULL, used INTEGER NOT NULL,
    outcomes BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE greenline_users (name TEXT PRIMARY KEY, role TEXT NOT NULL, verifier TEXT NOT NULL) WITHOUT ROWID;
CREATE VIEW greenline_roles AS SELECT name, role FROM greenline_users;
CREATE TABLE greenline_members (
    name TEXT PRIMARY KEY, address TEXT NOT NULL, admin TEXT NOT NULL, clients TEXT NOT NULL
) WITHOUT ROWID;
"""


NAMES = frozenset(re.findall(r"CREATE (?:TABLE|VIEW) (\w+)", SCHEMA))


class Stands(msgspec.Struct, frozen=True, gc=False):
    position: int
    outcomes: bytes
    """The chained digest of all outcomes up to `position`."""
    horizon: int
    """Unknown sessions that were named before this position are over."""
    basis: bytes
    """What came with the snapshot that it was last restored from: this replica's own, no part of what is common."""


def stands(connection: apsw.Connection) -> Stands:
    said = dict(connection.execute("SELECT key, value FROM greenline_meta", prepare_flags=OURS))
    return Stands(said["position"], said["outcomes"], said["horizon"], said["basis"])


def write_stands(connection: apsw.Connection, position: int, outcomes: bytes) -> None:
    write_meta(connection, "position", position)
    write_meta(connection, "outcomes", outcomes)


def write_meta(connection: apsw.Connection, key: str, value: int | bytes) -> None:
    connection.execute("UPDATE greenline_meta SET value = ? WHERE key = ?", (value, key), prepare_flags=OURS)
