"""A real file, really forced: what was reported durable is there, and what a crash tore is found."""

from __future__ import annotations

import threading
from pathlib import Path

from greenline.kernel.codec import seal
from greenline.node.log import SEGMENT, DiskFailed, Log


def forced(log: Log) -> DiskFailed | None:
    """Force it, and wait until that is done."""
    done = threading.Event()
    outcome: list[DiskFailed | None] = []

    def tell(failure: DiskFailed | None) -> None:
        outcome.append(failure)
        done.set()

    log.force(tell)
    assert done.wait(10.0)
    return outcome[0]


def test_what_was_forced_is_there_after_the_process_is_gone(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    assert log.contents() == b""
    frames = [seal(1, bytes([number]) * number) for number in range(1, 50)]
    for frame in frames:
        log.write(frame)
    assert forced(log) is None
    again = Log(tmp_path / "log")
    assert again.contents() == b"".join(frames), "while the first has not even closed it"
    again.write(seal(1, b"more"))
    assert forced(again) is None
    assert Log(tmp_path / "log").contents() == b"".join(frames) + seal(1, b"more")


def test_frames_that_end_in_zeros_are_whole(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.contents()
    frame = seal(1, b"x" + b"\x00" * 20)
    log.write(frame)
    assert forced(log) is None
    assert Log(tmp_path / "log").contents() == frame


def test_a_torn_record_is_left_for_the_router_and_can_be_cut_off(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.contents()
    whole, torn = seal(1, b"whole"), seal(1, b"torn away")[:-3]
    log.write(whole + torn)
    assert forced(log) is None
    again = Log(tmp_path / "log")
    assert again.contents().startswith(whole + torn)
    again.cut(len(whole))
    again.write(seal(1, b"next"))
    assert forced(again) is None
    assert Log(tmp_path / "log").contents() == whole + seal(1, b"next")


def test_it_grows_by_segments(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.contents()
    frame = seal(1, b"x" * (SEGMENT // 3))
    for _ in range(4):
        log.write(frame)
        assert forced(log) is None
    assert (tmp_path / "log").stat().st_size == 2 * SEGMENT
    assert Log(tmp_path / "log").contents() == 4 * frame


def test_a_disk_that_fails_says_so(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", delay=_fail)
    log.contents()
    log.write(seal(1, b"x"))
    failure = forced(log)
    assert failure is not None
    assert "no space left" in str(failure)


def _fail() -> None:
    raise OSError(28, "no space left")
