"""A real file, really forced: what was reported durable is there, and what a crash tore is found."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from greenline.kernel.codec import seal
from greenline.node.log import DiskFailed, Log


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


def test_it_goes_on_in_the_next_segment_and_splits_no_frame(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", segment_bytes=1000)
    log.contents()
    frames = [seal(1, bytes([65 + number]) * (300 if number < 7 else 2500)) for number in range(9)]
    for frame in frames[:5]:
        log.write(frame)
        assert forced(log) is None
    for frame in frames[5:]:
        log.write(frame)
    assert forced(log) is None
    log.close()
    sizes = [path.stat().st_size for path in sorted((tmp_path / "log").glob("*.segment"))]
    assert sizes == [1000, 1000, 1000, len(frames[-1]), len(frames[-1])]
    again = Log(tmp_path / "log", segment_bytes=1000)
    assert again.contents() == b"".join(frames)
    again.write(frames[0])
    assert forced(again) is None
    assert Log(tmp_path / "log").contents() == b"".join(frames) + frames[0]


def test_what_was_torn_before_a_segment_that_was_never_begun_is_cut_off(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", segment_bytes=1000)
    log.contents()
    first, second = seal(1, b"x" * 900), seal(1, b"y" * 300)
    log.write(first)
    log.write(second + seal(1, b"torn away")[:-3])
    assert forced(log) is None
    log.close()
    (tmp_path / "log" / "0000000003.segment").write_bytes(bytes(1000))
    again = Log(tmp_path / "log", segment_bytes=1000)
    assert again.contents().startswith(first + second)
    again.cut(len(first + second))
    again.write(seal(1, b"next"))
    assert forced(again) is None
    assert Log(tmp_path / "log").contents() == first + second + seal(1, b"next")


def test_a_segment_that_a_crash_left_half_made_is_forgotten(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.contents()
    log.write(seal(1, b"x"))
    assert forced(log) is None
    log.close()
    (tmp_path / "log" / "0000000002.new").write_bytes(b"\x00" * 100)
    assert Log(tmp_path / "log").contents() == seal(1, b"x")
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["0000000001.segment"]


def test_a_disk_that_fails_says_so(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", segment_bytes=1000)
    log.contents()
    shutil.rmtree(tmp_path / "log")
    log.write(seal(1, b"x" * 2000))
    failure = forced(log)
    assert failure is not None
    assert "No such file or directory" in str(failure)
