"""What an archive's changes come to, in the plainest way: the last of each row. A twin of what tables do with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow.parquet as pq

from greenline.pipeline.archive import CHANGES, Archive
from greenline.pipeline.capture import BEFORE, DELETE
from greenline.pipeline.changes import values_of

_WANTED = ["key", "columns", "row", "_change_type"]


def asof(archive: Archive, table: str, position: int) -> Iterator[dict[str, Any]]:
    """The rows of a table after a position, in no particular order. Raises `Discarded`."""
    archive.check_reach(position)
    rows: dict[bytes, tuple[str, bytes]] = {}
    for path in archive.files(CHANGES, last=position):
        filters = [("table", "=", table), ("_commit_version", "<=", position)]
        found = pq.read_table(path, columns=_WANTED, filters=filters)
        for key, columns, row, kind in zip(*(column.to_pylist() for column in found.columns), strict=True):
            if kind in (DELETE, BEFORE):
                rows.pop(key, None)
            else:
                rows[key] = columns, row
    for columns, row in rows.values():
        yield dict(zip(msgspec.json.decode(columns), values_of(row), strict=True))
