"""Whoever does not read our output does not hold us up."""

from __future__ import annotations

import os

from greenline.node.outlet import MOST_WAITING, Outlet


def test_a_reader_that_has_stopped_loses_lines_and_holds_nobody_up() -> None:
    reading, writing = os.pipe()
    made = Outlet(writing)
    line = "x" * 1000 + "\n"
    for _ in range(2 * MOST_WAITING):
        made.write(line)
    assert made.dropped > MOST_WAITING // 2
    os.close(reading)
    made.close()
    os.close(writing)


def test_what_is_read_comes_whole_and_in_order() -> None:
    reading, writing = os.pipe()
    made = Outlet(writing)
    for number in range(100):
        made.write(f"{number}\n")
    made.close()
    os.close(writing)
    with os.fdopen(reading) as lines:
        assert lines.read().split() == [str(number) for number in range(100)]


def test_a_process_without_that_output_goes_on() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    made = Outlet(writing)
    made.write("to nobody\n")
    assert not made.isatty()
    made.close()
