"""The clerk: what it was given is on the disk, or it is said why not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenline.pipeline.archive import KINDS, SEGMENTS, Archive, locked
from greenline.pipeline.clerk import UNDER_WAY, Clerk, NotWritten
from greenline.pipeline.rows_outcomes import came
from greenline.pipeline.segments import Segment
from greenline.replication.replica import NO_ORDER
from tests.pipeline.orders import Order


@pytest.fixture
def clerk(tmp_path: Path) -> Iterator[Clerk]:
    lock = locked(tmp_path)
    clerk = Clerk(tmp_path, lock)
    yield clerk
    clerk.close()
    os.close(lock)


def segments(count: int) -> list[Segment]:
    """Of one bundle each, which nobody has asked anything in."""
    order = Order()
    for _ in range(count):
        order.of()
    return [
        Segment(before, [(place, {})], [bundle], [digest], [came(())])
        for place, (bundle, before, digest) in enumerate(
            zip(order.bundles, order.digests[:-1], order.digests[1:], strict=True)
        )
    ]


def write_all(clerk: Clerk, given: list[Segment]) -> None:
    for segment in given:
        clerk.write(segment)


def test_all_that_it_was_given_is_there_when_it_has_finished(clerk: Clerk, tmp_path: Path) -> None:
    for kind in (SEGMENTS, *KINDS):
        (tmp_path / kind).mkdir()
    given = segments(3 * UNDER_WAY)
    write_all(clerk, given)
    clerk.finish()
    archive = Archive(tmp_path)
    assert archive.last == len(given)
    assert archive.digest_at(0) == NO_ORDER
    archive.check()


def test_why_a_segment_could_not_be_written_is_told_though_others_wait_behind_it(clerk: Clerk) -> None:
    """There are no directories for them."""
    with pytest.raises(NotWritten, match="No such file or directory"):
        write_all(clerk, segments(3 * UNDER_WAY))
    with pytest.raises(NotWritten):
        clerk.finish()


def test_a_clerk_that_was_killed_has_written_nothing(clerk: Clerk) -> None:
    os.kill(clerk.pid, signal.SIGKILL)
    with pytest.raises(NotWritten, match="was killed"):
        write_all(clerk, segments(3 * UNDER_WAY))
