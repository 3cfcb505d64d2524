"""Columns of rows that belong to others: so many of the first, so many of the second."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc


def places(counts: Sequence[int]) -> pa.Array:
    """0 so many times as the first says, 1 so many times as the second: to take what some have in common for each."""
    some = [(number, end) for number, (count, end) in enumerate(zip(counts, accumulate(counts), strict=True)) if count]
    numbers, ends = pa.array([n for n, _ in some], pa.int32()), pa.array([end for _, end in some], pa.int32())
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, numbers))


def counted(counts: Sequence[int]) -> pa.Array:
    """From 0 up to as many as the first says, again from 0 up to as many as the second."""
    every = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int32()), sum(counts)), start=-1)
    before = pa.array(list(accumulate(counts, initial=0))[:-1], pa.int32())
    return pc.subtract(every, before.take(places(counts)))


def listed(counts: Sequence[int], values: pa.Array) -> pa.Array:
    """So many of the values for each row."""
    offsets = pa.array(list(accumulate(counts, initial=0)), pa.int32())
    element = pa.field("element", values.type, nullable=False)
    return pa.ListArray.from_arrays(offsets, values, type=pa.list_(element))


def whole(values: Sequence[int | None]) -> pa.Array:
    """A client may write any number into an action; one of more than 64 bits is not shown."""
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        fitting = [each if each is not None and -(1 << 63) <= each < 1 << 63 else None for each in values]
        return pa.array(fitting, pa.int64())
