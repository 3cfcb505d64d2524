"""Order, story and diagram: a trace as people see it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from greenline.trace.diagram import draw, page
from greenline.trace.order import merge, runs_at, told
from greenline.trace.story import tell
from greenline.trace.stream import NotATrace, TraceWriter
from tests.trace.rows import history

FIGURE = """
    p.1 start
    q.1 start
    p.1 regular p.1 p q
    q.1 regular p.1 p q
    p.1 generate p:1:1 safe
    p.1 send p:1:1
    q.1 deliver p:1:1 safe
    * fault partition p | q
    p.1 transitional p.1>p.2 p
    p.1 deliver p:1:1 safe
    p.1 regular p.2 p
    q.1 crash
    q.2 start
    * quiet nothing has changed
"""


def test_several_writers_are_merged_by_their_clocks() -> None:
    p, q = history("p.1 start\np.1 crash"), history("q.1 start")
    q[0].time = 0.5
    assert [row.process for row in merge([p, q])] == ["p", "q", "p"]


def test_a_delivery_is_never_told_before_its_message_was_generated() -> None:
    """q's clock is behind: by the clocks alone the effect would come before its cause."""
    p, q = history("p.1 start\np.1 generate p:1:1"), history("q.1 deliver p:1:1")
    q[0].time = -10.0
    assert [row.kind for row in merge([q, p])] == ["start", "generate", "deliver"]


def test_a_trace_that_waits_for_itself_is_told_all_the_same() -> None:
    p = history("p.1 deliver q:1:1\np.1 generate p:1:1")
    q = history("q.1 deliver p:1:1\nq.1 generate q:1:1")
    assert len(merge([p, q])) == 4


def test_one_run_of_several_is_told_by_name(tmp_path: Path) -> None:
    for run in ("one", "two"):
        with TraceWriter(tmp_path / f"{run}.trace", run) as writer:
            writer.extend(history(FIGURE))
    assert runs_at(tmp_path) == ["one", "two"]
    assert told(tmp_path, "two") == ("two", history(FIGURE))
    with pytest.raises(ValueError, match="holds 2 runs; name one with --run"):
        told(tmp_path)
    with pytest.raises(ValueError, match="has no run 'three'"):
        told(tmp_path, "three")


def test_a_trace_without_rows_has_no_story(tmp_path: Path) -> None:
    TraceWriter(tmp_path / "empty.trace", "run").close()
    with pytest.raises(NotATrace, match="has no rows"):
        told(tmp_path)


def test_a_story_has_who_where_and_what() -> None:
    lines = [str(line) for line in tell(history(FIGURE))]
    assert "0002  p                p.1      installs p.1 {p q}" in lines
    assert "0006  q                p.1      delivers p:1:1, safe" in lines
    assert "0007  *                partition p | q" in lines
    assert "0008  p                p.1>p.2  enters the transitional configuration {p}" in lines
    assert not any("sent" in line for line in lines)
    assert any("sent p:1:1" in str(line) for line in tell(history(FIGURE), everything=True))


def test_a_phase_is_told_where_it_begins_and_kept_beside_what_follows() -> None:
    lines = [str(line) for line in tell(history("p.1 phase Gather\np.1 phase Commit\np.1 deliver q:1:1 safe"))]
    assert lines[0].endswith("begins as Gather")
    assert lines[1].endswith("Gather -> Commit")
    assert "Commit" in lines[2]


def test_many_deliveries_in_a_row_are_one_line() -> None:
    text = "\n".join(f"p.1 deliver q:1:{number} safe" for number in range(1, 8))
    (line,) = tell(history(text))
    assert line.text == "delivers q:1:1 q:1:2 q:1:3 and 4 more, safe"


def test_a_diagram_is_one_drawing_that_needs_nothing_else() -> None:
    svg = draw("figure", history(FIGURE))
    root = ET.fromstring(svg)
    text = "".join(root.itertext())
    assert "p.1 {p q}" in text
    assert "p.1>p.2 {p}" in text
    assert "partition p | q" in text
    assert "href" not in svg
    assert "url(" not in svg
    assert page("figure", history(FIGURE)).startswith("<!doctype html>")


def test_a_diagram_shows_who_delivered_what_in_which_configuration() -> None:
    root = ET.fromstring(draw("figure", history(FIGURE)))
    titles = [element.text for element in root.iter() if element.tag.endswith("title")]
    assert "q: deliver p:1:1 safe" in titles
    assert "p:1:1 to q" in titles, "the arrow"


def test_what_a_trace_says_cannot_become_markup() -> None:
    svg = draw("<script>", history("* fault <b>&</b>"))
    ET.fromstring(svg)
    assert "<script>" not in svg


def test_the_phases_of_two_cores_are_told_apart() -> None:
    rows = history("p.1 phase Gather\np.1 phase NonPrim\np.1 phase Operational\np.1 deliver q:1:1 safe")
    for row, layer in zip(rows, ("ring", "engine", "ring", "ring"), strict=True):
        row.layer = layer
    lines = [line.text for line in tell(rows)]
    assert lines[:3] == ["begins as Gather", "begins as NonPrim", "Gather -> Operational"]


def test_a_message_of_a_later_life_has_a_label_of_its_own() -> None:
    svg = draw("lives", history("p.1 generate p:1:1 safe\np.2 generate p:2:1 safe"))
    assert ">p1</text>" in svg
    assert ">p2.1</text>" in svg
