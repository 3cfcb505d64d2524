"""Real files, really forced: what was reported durable is there, what a crash tore never was, damage is told."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from random import Random

import pytest

from greenline.kernel.codec import seal
from greenline.node.log import DiskFailed, Log, LogDamaged

PAGE = 4096


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


def kept(directory: Path, *batches: list[bytes], segment_bytes: int = 1 << 20) -> None:
    """Each batch forced, and then the process is gone."""
    log = Log(directory, segment_bytes=segment_bytes)
    log.contents()
    for batch in batches:
        for frame in batch:
            log.write(frame)
        assert forced(log) is None
    log.close()


def contents(directory: Path) -> bytes:
    log = Log(directory)
    try:
        return log.contents()
    finally:
        log.close()


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.segment"))


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
    assert contents(tmp_path / "log") == b"".join(frames) + seal(1, b"more")


def test_it_goes_on_in_the_next_segment(tmp_path: Path) -> None:
    frames = [seal(1, bytes([65 + number]) * (300 if number < 7 else 2500)) for number in range(9)]
    kept(tmp_path, *([frame] for frame in frames), segment_bytes=1000)
    assert [path.stat().st_size for path in segments(tmp_path)][:3] == [1000, 1000, 1000]
    assert contents(tmp_path) == b"".join(frames)
    kept(tmp_path, [frames[0]])
    assert contents(tmp_path) == b"".join(frames) + frames[0]


def test_a_batch_of_which_a_crash_left_any_pages_never_was(tmp_path: Path) -> None:
    """A disk writes pages in any order. (The last batch was not forced to its end, so nobody was told of it.)"""
    chance = Random(7)
    first, second = [seal(1, b"first" * 100)], [seal(1, bytes([number % 251]) * 60) for number in range(800)]
    kept(tmp_path / "before", first)
    kept(tmp_path / "after", first)
    shutil.copytree(tmp_path / "before", tmp_path / "grown")
    kept(tmp_path / "grown", second)
    before, after = (segments(tmp_path / each)[0].read_bytes() for each in ("before", "grown"))
    pages = [at for at in range(0, len(after), PAGE) if before[at : at + PAGE] != after[at : at + PAGE]]
    assert len(pages) > 10
    for number in range(60):
        left = set(chance.sample(pages, chance.randrange(len(pages))))
        torn = b"".join((after if at in left else before)[at : at + PAGE] for at in range(0, len(after), PAGE))
        place = tmp_path / f"torn {number}"
        place.mkdir()
        (place / segments(tmp_path / "before")[0].name).write_bytes(torn)
        assert contents(place) == b"".join(first)
        kept(place, [seal(1, b"next")])
        assert contents(place) == b"".join(first) + seal(1, b"next"), "over what the crash has left"


def test_a_torn_end_of_a_segment_that_a_new_one_follows_is_no_damage_if_nothing_was_begun(tmp_path: Path) -> None:
    kept(tmp_path, [seal(1, b"x" * 700)], [seal(1, b"y" * 700)], segment_bytes=1000)
    one, two = segments(tmp_path)
    with two.open("r+b") as file:
        file.seek(100)
        file.write(b"torn")
    kept(tmp_path, [seal(1, b"z")], segment_bytes=1000)
    assert contents(tmp_path) == seal(1, b"x" * 700) + seal(1, b"z")
    assert one.exists()


@pytest.mark.parametrize("harm", ["a byte in the middle", "a segment is gone", "another log's segment", "no head"])
def test_damage_to_what_was_forced_is_not_passed_over(tmp_path: Path, harm: str) -> None:
    place, other = tmp_path / "log", tmp_path / "other"
    for each in (place, other):
        kept(each, *([seal(1, bytes([number]) * 400)] for number in range(8)), segment_bytes=1000)
    first, second, *_ = segments(place)
    match harm:
        case "a byte in the middle":
            data = bytearray(first.read_bytes())
            data[100] ^= 1
            first.write_bytes(data)
        case "a segment is gone":
            second.unlink()
        case "another log's segment":
            second.write_bytes(segments(other)[1].read_bytes())
        case "no head":
            second.write_bytes(bytes(1000))
    with pytest.raises(LogDamaged):
        contents(place)


def test_a_log_inside_a_log_is_only_bytes(tmp_path: Path) -> None:
    kept(tmp_path / "other", [seal(1, b"foreign")], [seal(1, b"more")])
    foreign = segments(tmp_path / "other")[0].read_bytes()[:400]
    kept(tmp_path / "log", [seal(1, b"mine")], [seal(1, foreign)])
    data = segments(tmp_path / "log")[0]
    torn = data.read_bytes()
    at = torn.index(b"foreign") - 60
    data.write_bytes(torn[:at] + bytes(8) + torn[at + 8 :])
    assert contents(tmp_path / "log") == seal(1, b"mine"), "its last batch is torn, and what is inside is not ours"


def test_a_segment_that_a_crash_left_half_made_is_forgotten(tmp_path: Path) -> None:
    kept(tmp_path, [seal(1, b"x")])
    (tmp_path / "0000000002.new").write_bytes(bytes(100))
    assert contents(tmp_path) == seal(1, b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["0000000001.segment"]


def test_a_disk_that_fails_says_so_and_closes_nothing_of_others(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", segment_bytes=1000)
    log.contents()
    shutil.rmtree(tmp_path / "log")
    log.write(seal(1, b"x" * 2000))
    failure = forced(log)
    assert failure is not None
    assert "No such file or directory" in str(failure)
    other = os.open(tmp_path, os.O_RDONLY)
    log.close()
    os.fstat(other)
    os.close(other)
