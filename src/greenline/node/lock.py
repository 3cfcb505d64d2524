"""The lock on a data directory: one node at a time, and everybody can see which.

The kernel lets go of it when the process ends, however it ends; the number in the file is only for people and signals.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

NAME = "lock"
_PATIENCE_S = 0.5
"""Somebody who looks whether it is locked holds it for a moment."""
_PAUSE_S = 0.02


class Locked(Exception):
    """Another node runs on the directory."""


class DataLock:
    """Holds a data directory until it is closed."""

    def __init__(self, data: Path) -> None:
        self._file = os.open(data / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + _PATIENCE_S
        while not _is_taken(self._file, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                pid = _pid_in(self._file)
                os.close(self._file)
                raise Locked(f"another node runs on {data} (pid {pid}); stop it first, or give this one another `data`")
            time.sleep(_PAUSE_S)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


def holder(data: Path) -> int | None:
    """The process of the node that runs on this directory."""
    try:
        file = os.open(data / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _is_taken(file, fcntl.LOCK_SH) else _pid_in(file)
    finally:
        os.close(file)


def _is_taken(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid_in(file: int) -> int | None:
    text = os.pread(file, 32, 0).strip()
    return int(text) if text.isdigit() else None
