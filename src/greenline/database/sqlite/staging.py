"""Staging: chunks of another's snapshot, kept aside as files until the last one is there.

A file is named by the digest of what is in it, and believed only as far as that is true: after a loss of power it may
hold anything. A crash leaves what was staged, so that a transfer goes on where it was.
"""

from __future__ import annotations

import os
from pathlib import Path

from greenline.kernel.actions import digest_of

_UNFINISHED = "unfinished"


class Staging:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)
        (directory / _UNFINISHED).unlink(missing_ok=True)

    def stage(self, data: bytes) -> bytes:
        digest = digest_of(data)
        unfinished = self._directory / _UNFINISHED
        unfinished.write_bytes(data)
        unfinished.replace(self._path(digest))
        return digest

    def read(self, digest: bytes) -> bytes | None:
        try:
            data = self._path(digest).read_bytes()
        except FileNotFoundError:
            return None
        return data if digest_of(data) == digest else None

    def digests(self) -> set[bytes]:
        """Of all that is staged and sound; the rest is removed."""
        found = set()
        for path in self._directory.iterdir():
            digest = digest_of(path.read_bytes())
            if digest.hex() == path.name:
                found.add(digest)
            else:
                path.unlink()
        return found

    def clear(self) -> None:
        for path in self._directory.iterdir():
            path.unlink()

    def _path(self, digest: bytes) -> Path:
        return self._directory / digest.hex()


def force(path: Path) -> None:
    """A file, or what a directory lists."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
