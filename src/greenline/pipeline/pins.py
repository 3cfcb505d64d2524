"""Pins: second names for files of an archive while they are read.

A follower makes one segment of several small ones, and some minutes later removes those (`segments.GRACE_S`). Whoever
reads for longer holds them by names of its own (hard links): the rows are the same, whichever segment they are in.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from greenline.pipeline.archive import Archive

TRIES = 20


def link(path: Path, other: Path) -> None:
    """The same file under a second name; a copy, where a file system does not have those."""
    try:
        os.link(path, other)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        shutil.copyfile(path, other)


class Pins:
    def __init__(self, place: Path) -> None:
        self._place = place

    def held(self, archive: Archive, kind: str, first: int, last: int) -> list[Path]:
        """The files with rows of these positions. What is merged while they are listed is listed again."""
        for left in reversed(range(TRIES)):
            try:
                return [self._pin(path) for path in archive.files(kind, first, last)]
            except FileNotFoundError:
                if not left:
                    raise
                archive.refresh()
        raise AssertionError("the last try returns or raises")

    def let_go(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)

    def _pin(self, path: Path) -> Path:
        pin = self._place / path.parent.name / path.name
        if not pin.exists():
            pin.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another thread was faster
                link(path, pin)
        return pin
