"""Acquaintance: who a node is for life, and whom it has met, in a small file of its data directory.

A name is what an administrator writes; the uid is drawn when a data directory is made, and tells two nodes apart that
were given one name, or one that comes back with an empty disk: it would use its incarnations, and so its messages'
identities, a second time. Whom we have met, and in which life, keeps packets of earlier lives out of our next one.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec

from greenline.kernel.identities import ProcId
from greenline.node.log import force_directory
from greenline.node.sealing import UID_BYTES, Met

LOG = "log"
"""The log's directory, where a node keeps both."""


class Damaged(Exception):
    """The file is there and cannot be read: the node does not guess who it is."""


class _Page(msgspec.Struct, frozen=True):
    name: str
    uid: bytes
    met: dict[str, Met]


class Acquaintance:
    """One node's page. Written whole: a kill leaves the old page or the new."""

    def __init__(self, path: Path, me: ProcId) -> None:
        self._path = path
        if path.exists():
            self._page = self._read(me)
        else:
            if (path.parent / LOG).exists():
                raise Damaged(f"{path} is gone, though there is a log beside it; bring it back from a copy")
            self._page = _Page(me, secrets.token_bytes(UID_BYTES), {})
            self._write(self._page)

    @property
    def uid(self) -> bytes:
        return self._page.uid

    @property
    def met(self) -> dict[ProcId, Met]:
        return self._page.met

    def meet(self, name: ProcId, met: Met) -> None:
        """Remembered from here on, or an `OSError` and nothing has changed."""
        self._write(_Page(self._page.name, self._page.uid, self._page.met | {name: met}))
        self._page.met[name] = met

    def _read(self, me: ProcId) -> _Page:
        try:
            page = msgspec.json.decode(self._path.read_bytes(), type=_Page)
        except (OSError, msgspec.DecodeError) as error:
            raise Damaged(f"cannot read {self._path}: {error}; bring it back from a copy of this node's data") from None
        if page.name != me:
            raise Damaged(
                f"{self._path} is of the node {page.name}, not of {me}; give {me} a data directory of its own"
            )
        return page

    def _write(self, page: _Page) -> None:
        beside = self._path.with_suffix(".new")
        with beside.open("wb") as file:
            file.write(msgspec.json.encode(page))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        force_directory(self._path.parent)
