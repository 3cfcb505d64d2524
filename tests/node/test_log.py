"""Real files, really forced: what was reported durable is there, what a crash tore never was, damage is told."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from greenline.kernel.codec import seal
from greenline.node.log import DiskFailed, Log, LogDamaged
from tests.node.tallying import SEGMENT_BYTES, Counting

PAGE = 4096
ROOT = Path(__file__).parent.parent.parent


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


# Discarding.


def discarded(log: Log, before: int) -> list[DiskFailed]:
    """Discard, and wait until that is done: the thread takes one thing after the other."""
    failures: list[DiskFailed] = []
    log.discard(before, failures.append)
    assert forced(log) is None
    return failures


def test_segments_that_end_before_the_place_are_deleted_and_no_others(tmp_path: Path) -> None:
    frames = [seal(1, bytes([65 + number]) * 400) for number in range(9)]
    kept(tmp_path, *([frame] for frame in frames), segment_bytes=1000)
    names = [path.name for path in segments(tmp_path)]
    assert len(names) == 5, "two frames in each"
    size = len(frames[0])
    for place, gone in ((0, 0), (2 * size - 1, 0), (2 * size, 1), (7 * size, 3), (9 * size, 4)):
        left = tmp_path / f"before {place}"
        left.mkdir()
        for path in segments(tmp_path):
            shutil.copy(path, left)
        log = Log(left, segment_bytes=1000)
        log.contents()
        assert discarded(log, place) == []
        log.close()
        assert [path.name for path in segments(left)] == names[gone:], "never the one that is written to"
        assert contents(left) == b"".join(frames[2 * gone :])


def test_a_log_goes_on_after_a_discard_in_this_life_and_in_the_next(tmp_path: Path) -> None:
    """Places go on in this life, and begin anew with what is left in the next."""
    frames = [seal(1, bytes([65 + number]) * 400) for number in range(20)]
    size = len(frames[0])
    log = Log(tmp_path, segment_bytes=1000)
    log.contents()
    for frame in frames[:8]:
        log.write(frame)
        assert forced(log) is None
    assert discarded(log, 2 * size) == []
    assert len(segments(tmp_path)) == 3, "the first ended there, to the byte"
    for frame in frames[8:14]:
        log.write(frame)
        assert forced(log) is None
    assert discarded(log, 5 * size) == []
    log.close()

    again = Log(tmp_path, segment_bytes=1000)
    assert again.contents() == b"".join(frames[4:14])
    again.write(frames[14])
    assert forced(again) is None
    assert discarded(again, 6 * size) == []
    again.close()
    assert contents(tmp_path) == b"".join(frames[10:15])


def test_a_segment_that_is_missing_after_the_first_is_damage_also_when_others_were_discarded(tmp_path: Path) -> None:
    kept(tmp_path, *([seal(1, bytes([number]) * 400)] for number in range(12)), segment_bytes=1000)
    log = Log(tmp_path)
    log.contents()
    assert discarded(log, 900) == []
    log.close()
    segments(tmp_path)[2].unlink()
    with pytest.raises(LogDamaged, match="missing"):
        contents(tmp_path)


def test_a_segment_that_cannot_be_deleted_is_a_disk_that_fails(tmp_path: Path) -> None:
    kept(tmp_path, *([seal(1, bytes([number]) * 400)] for number in range(8)), segment_bytes=1000)
    log = Log(tmp_path)
    log.contents()
    segments(tmp_path)[0].unlink()
    (failure,) = discarded(log, 900)
    log.close()
    assert "0000000001.segment: No such file or directory" in str(failure)


def test_a_log_under_constant_checkpoints_stays_bounded(tmp_path: Path) -> None:
    """Ten lives, together a thousand numbers and half a megabyte, in three segments of 4 KB."""
    number = 0
    for life in range(1, 11):
        counting = Counting(tmp_path)
        assert (counting.tally.number, counting.router.incarnation, counting.latest.number) == (number, life, life)
        for _ in range(100):
            counting.count()
            assert len(segments(tmp_path)) <= 3
        number = counting.durable
        counting.close()
        assert sum(path.stat().st_size for path in segments(tmp_path)) <= 3 * SEGMENT_BYTES
    assert number == 1000


WHENS = ["before it deletes anything", "before a segment is deleted", "before a segment is gone for good"]


@pytest.mark.parametrize("when", WHENS)
def test_a_process_that_is_killed_between_a_checkpoint_and_what_it_deletes_goes_on_from_the_checkpoint(
    tmp_path: Path, when: str
) -> None:
    """Again and again at the same point, so that what one life has left is deleted by a later one."""
    durable = 0
    for _ in range(3):
        command = [sys.executable, "-m", "tests.node.tallying", str(tmp_path), when]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60)
        assert told.returncode == -signal.SIGKILL, told.stderr
        began, *counted = [int(line.split()[1]) for line in told.stdout.decode().splitlines()]
        assert began >= durable
        assert counted == list(range(began + 1, began + 1 + len(counted)))
        durable = counted[-1]
    counting = Counting(tmp_path)
    assert counting.tally.number >= durable
    assert counting.router.incarnation == 4
    for _ in range(40):
        counting.count()
    counting.close()
    assert len(segments(tmp_path)) <= 3


def test_a_process_that_is_killed_at_any_moment_goes_on_from_what_it_promised(tmp_path: Path) -> None:
    chance = Random(3)
    durable = 0
    for life in range(1, 6):
        command = [sys.executable, "-m", "tests.node.tallying", str(tmp_path)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randrange(1, 120))]
            process.kill()
            lines += process.stdout.readlines()
        durable = max(durable, int(lines[-1].split()[1]))
        counting = Counting(tmp_path)
        assert counting.tally.number >= durable
        assert counting.router.incarnation == 2 * life
        counting.close()
    assert len(segments(tmp_path)) <= 5
