"""The basis: what came with the snapshot that the database was restored from, in a file beside it.

In the database it would take pages, at this replica only; so the database has its digest, and the two change together.
"""

from __future__ import annotations

from pathlib import Path

from greenline.database.sqlite.staging import force
from greenline.kernel.actions import DIGEST_BYTES, digest_of

NONE = bytes(DIGEST_BYTES)
"""What the database has if it was never restored: as long as a digest, so that no row on its page moves."""


def write(directory: Path, basis: bytes) -> bytes:
    """Before the database that has its digest is in place."""
    digest = digest_of(basis)
    path = _path(directory, digest)
    path.write_bytes(basis)
    force(path)
    force(directory)
    return digest


def read(directory: Path, digest: bytes) -> bytes:
    return b"" if digest == NONE else _path(directory, digest).read_bytes()


def remove_others(directory: Path, digest: bytes) -> None:
    """After it."""
    for path in directory.glob("basis-*"):
        if path != _path(directory, digest):
            path.unlink()


def _path(directory: Path, digest: bytes) -> Path:
    return directory / f"basis-{digest.hex()}"
