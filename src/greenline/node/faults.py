"""Faults on demand, of a network and of a disk: for local clusters, which are to fail while somebody watches.

Packets are lost as in a network that is cut, one way or both. A forced write of the log, or a write of the database,
fails as the kernel would say it. Everything above them is the real thing.
"""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from pathlib import Path

import apsw
import msgspec

from greenline.kernel.identities import ProcId
from greenline.node.log import Log


class Ways(StrEnum):
    """Which ways of a node's network are cut."""

    BOTH = "both"
    IN = "in"
    """It does not hear them, and is heard."""
    OUT = "out"
    """It is not heard, and hears them."""


class Severed(msgspec.Struct, frozen=True):
    """From whom a node is cut off."""

    deaf_to: frozenset[ProcId] = frozenset()
    mute_to: frozenset[ProcId] = frozenset()

    @classmethod
    def of(cls, names: frozenset[ProcId], ways: Ways) -> Severed:
        return cls(frozenset() if ways is Ways.OUT else names, frozenset() if ways is Ways.IN else names)


class Fault(StrEnum):
    FULL = "full"
    """No space is left."""
    FAILED = "failed"
    """The device says that it could not write."""


_ERRNO = {Fault.FULL: errno.ENOSPC, Fault.FAILED: errno.EIO}


class Faults(msgspec.Struct, forbid_unknown_fields=True):
    """What fails from now on."""

    log: Fault | None = None
    database: Fault | None = None


class FaultyLog(Log):
    def __init__(self, directory: Path, faults: Faults) -> None:
        super().__init__(directory)
        self._faults = faults

    def _write(self, data: bytes, at: int) -> None:
        self._fail_if(Fault.FULL)
        super()._write(data, at)

    def _sync(self) -> None:
        self._fail_if(Fault.FAILED)
        super()._sync()

    def _fail_if(self, fault: Fault) -> None:
        if self._faults.log is fault:
            raise OSError(_ERRNO[fault], os.strerror(_ERRNO[fault]))


class FaultyFiles(apsw.VFS):
    """A file system for the database."""

    def __init__(self, faults: Faults) -> None:
        self.name = f"faulty-{id(faults):x}"
        self._faults = faults
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self._faults, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, faults: Faults, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._faults = faults
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._faults.database is Fault.FULL:
            raise apsw.FullError("no space is left, on demand")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._faults.database is Fault.FAILED:
            raise apsw.IOError("the device could not write, on demand")
        super().xSync(flags)
