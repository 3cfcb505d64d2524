"""A glance: few columns of what was archived, seen as they are written, without Spark.

A follower writes rows in their order. If they are in it, and none is missing, the expectations on the log hold, and
seeing that takes a hundredth of the time that asking Spark does. If anything is otherwise, a glance does not say what:
the expectations themselves are asked (`expectations.LOG`), which show the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from greenline.pipeline.archive import ACTIONS, BUNDLES, CHANGES, KINDS
from greenline.pipeline.rows_columns import counted, places

_VERSION = "_commit_version"
_FEW = ("table", "_change_type")


def is_expected(files: Mapping[str, Sequence[Path]], first: int, last: int) -> bool:
    """Those of each kind that have these positions, segment by segment. False: it may be all the same."""
    expected = first
    if len({len(files[kind]) for kind in KINDS}) != 1:
        return False  # some have become one while they were listed
    for bundles, actions, changes in zip(files[BUNDLES], files[ACTIONS], files[CHANGES], strict=True):
        found = rows(bundles, "position", ("actions",), first, last)
        positions, counts = found.column("position"), found.column("actions").to_pylist()
        if positions.to_pylist() != list(range(expected, expected + len(counts))):
            return False
        numbered = rows(actions, "position", ("sub",), first, last)
        if not _are_numbered(numbered, positions.to_pylist(), counts):
            return False
        asked = positions.filter(pc.greater(found.column("actions"), 0))
        changed = pc.unique(rows(changes, _VERSION, (), first, last).column(_VERSION))
        if not pc.all(pc.is_in(changed, asked.combine_chunks()), min_count=0).as_py():
            return False
        expected += len(counts)
    return expected == last + 1


def kinds(changes: Iterable[Path], first: int, last: int) -> dict[str, set[str]]:
    """Which tables were changed at these positions, and how."""
    found: dict[str, set[str]] = {}
    for path in changes:
        seen = path.stat()
        for table, kind in _kinds(path, (seen.st_ino, seen.st_size, seen.st_mtime_ns), first, last):
            found.setdefault(table, set()).add(kind)
    return found


@lru_cache(maxsize=1024)
def _kinds(path: Path, _: tuple[int, ...], first: int, last: int) -> list[tuple[str, str]]:
    """Of one file, which stays as it is. It is asked for twice: is it time to write, and then, what?"""
    several = rows(path, _VERSION, _FEW, first, last, few=_FEW)
    each = several.unify_dictionaries().group_by(list(_FEW)).aggregate([])
    return list(zip(each.column("table").to_pylist(), each.column("_change_type").to_pylist(), strict=True))


def rows(path: Path, by: str, columns: Sequence[str], first: int, last: int, *, few: Sequence[str] = ()) -> pa.Table:
    """The rows of these positions, which the column `by` says; that, and these others. `few`: columns of few different
    values, which are then compared as numbers."""
    with pq.ParquetFile(path, read_dictionary=list(few)) as file:  # a data set would first look for what else there is
        found = file.read([by, *columns], use_threads=False)
    positions = found.column(by)
    if not len(positions):
        return found
    ends = pc.min_max(positions)
    if ends["min"].as_py() >= first and ends["max"].as_py() <= last:
        return found
    return found.filter(pc.and_(pc.greater_equal(positions, first), pc.less_equal(positions, last)))


def _are_numbered(actions: pa.Table, positions: Sequence[int], counts: Sequence[int]) -> bool:
    """Those of each bundle from 0, in order, as many as the bundle says."""
    if actions.num_rows != sum(counts):
        return False
    of = pa.chunked_array([pa.array(positions, pa.int64()).take(places(counts))])
    subs = pa.chunked_array([counted(counts)])
    return bool(actions.column("position").equals(of) and actions.column("sub").equals(subs))
