"""Samples of benchmarks, charts of them, and the papers' plots."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.samples import Samples
from pyspark.sql import SparkSession

from greenline.pipeline.charts import Point, Series, bars, lines, short, ticks
from greenline.pipeline.figure_plots import PLOTS, Plot
from greenline.pipeline.figures import Summed, draw_figures, drawn, fetched, samples_at, summed_up, table
from greenline.pipeline.samples import SCHEMA, NoSamples, sample_files

X, Y = "clients", "throughput, 1/s"


def text_of(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter() if element.tag.endswith("}text")]


def heights(svg: str) -> list[float]:
    """Where the marks of the first series are, from left to right."""
    marks = [element for element in ET.fromstring(svg).iter() if element.tag.endswith("}circle")]
    return [float(mark.attrib["cy"]) for mark in marks][:-1]  # the last one is the legend's


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0, 872, [0, 200, 400, 600, 800, 1000]),
        (3, 3, [0, 1, 2, 3]),
        (0, 0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-4, 4, [-4, -2, 0, 2, 4]),
        (0, 5e-324, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 1e100, [0, 2e99, 4e99, 6e99, 8e99, 1e100]),
    ],
)
def test_ticks_are_round_and_reach_all_values(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_a_line_goes_through_its_points_in_the_order_of_x() -> None:
    svg = lines("engines", X, Y, [Series("engine", [Point(4, 400), Point(1, 100), Point(2, 200)])])
    first, second, third = heights(svg)
    assert 2 * (first - second) == pytest.approx(second - third, rel=0.01)
    assert first > second, "more is higher"
    assert {"engines", "engine", "clients", "throughput, 1/s", "400"} <= set(text_of(svg))


def test_what_a_paper_reports_is_dashed() -> None:
    svg = lines("t", X, Y, [Series("ours", [Point(1, 1)]), Series("theirs", [Point(1, 2)], is_dashed=True)])
    assert [("stroke-dasharray" in line.attrib) for line in ET.fromstring(svg).findall(".//{*}polyline")] == [
        False,
        True,
    ]


def test_bars_stand_beside_each_other_in_their_groups() -> None:
    series = [Series("p50", [Point(0, 1), Point(1, 2)]), Series("p99", [Point(0, 3), Point(1, 4)])]
    svg = bars("t", Y, ["local", "quorum"], series)
    rects = [rect for rect in ET.fromstring(svg).findall(".//{*}rect") if rect.attrib.get("fill", "").startswith("#")]
    of_bars = [rect for rect in rects if float(rect.attrib["height"]) != 8]  # not the legend's
    places = [float(rect.attrib["x"]) for rect in of_bars]
    assert places[0] < places[2] < places[1] < places[3]
    assert [float(rect.attrib["height"]) for rect in of_bars] == pytest.approx(
        [float(of_bars[0].attrib["height"]) * each for each in (1, 2, 3, 4)], rel=0.01
    )


def test_whatever_a_series_is_called_stays_text() -> None:
    svg = lines("<t>", "<x>", "&", [Series("</svg><script>", [Point(1, 1)])])
    assert "</svg><script>" in text_of(svg)
    assert not ET.fromstring(svg).findall(".//{*}script")


def test_benchmarks_keep_samples_only_where_they_are_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_SAMPLES", raising=False)
    for named in (False, True):
        if named:
            monkeypatch.setenv("BENCH_SAMPLES", str(tmp_path / "samples"))
        samples = Samples("ring")
        for value in (10, 20):
            samples.add("packed", "throughput", value, "1/s", members=3, bytes=200)
        samples.keep()
        assert (tmp_path / "samples").exists() is named
    (path,) = sample_files(tmp_path / "samples")
    found = pq.read_table(path)
    assert found.schema.equals(SCHEMA)
    rows = found.to_pylist()
    assert [(row["sample"], row["value"]) for row in rows] == [(1, 10.0), (2, 20.0)]
    assert rows[0]["parameters"] == [("bytes", "200"), ("members", "3")]


def test_what_is_no_file_of_samples_is_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(NoSamples, match=r"does not exist: BENCH_SAMPLES=.* make bench writes some"):
        sample_files(tmp_path / "nowhere")
    with pytest.raises(NoSamples, match=r"holds no file that ends in \.samples\.parquet"):
        sample_files(tmp_path)
    other = tmp_path / "other.samples.parquet"
    pq.write_table(pa.table({"value": [1.0]}), other)
    with pytest.raises(NoSamples, match=r"other\.samples\.parquet has samples of version none"):
        sample_files(tmp_path)
    other.write_bytes(other.read_bytes()[:-20])
    with pytest.raises(NoSamples, match=r"other\.samples\.parquet is no whole Parquet file"):
        sample_files(tmp_path)


def test_samples_that_lack_something_are_said_by_name(tmp_path: Path) -> None:
    samples = Samples("ring", tmp_path)
    samples.add("packed", "throughput", 10, "1/s", members=3)
    samples.keep()
    (path,) = sample_files(tmp_path)
    good = pq.read_table(path)
    for column, value, said in (
        ("value", pa.array([None], pa.float64()), "lack something, or are no numbers"),
        ("value", pa.array([float("inf")]), "lack something, or are no numbers"),
        ("parameters", pa.array([[("members", None)]], SCHEMA.field("parameters").type), "lack something"),
        ("value", pa.array(["10"]), "does not have the columns of samples, .*, in their types"),
    ):
        bad = good.set_column(SCHEMA.get_field_index(column), column, value)
        pq.write_table(bad.replace_schema_metadata(SCHEMA.metadata), path)
        with pytest.raises(NoSamples, match=said):
            sample_files(tmp_path)


def test_a_parameter_along_an_axis_is_a_number() -> None:
    with pytest.raises(NoSamples, match="a sample with clients many, which is drawn along an axis"):
        drawn(ENGINES, [summed("engine", 100, clients="many")])


@pytest.mark.parametrize("text", ["nan", "inf", "-1.7e308"])
def test_nor_is_what_no_axis_reaches(text: str) -> None:
    with pytest.raises(NoSamples, match="must be a number"):
        drawn(ENGINES, [summed("engine", 100, clients=text)])


def test_two_units_are_not_drawn_along_one_axis() -> None:
    slow = replace(summed("engine", 100, clients="1"), unit="1/min")
    with pytest.raises(NoSamples, match="samples of throughput in 1/min and in 1/s"):
        drawn(ENGINES, [slow, summed("engine", 100, clients="1")])


def test_points_that_were_measured_otherwise_are_another_series() -> None:
    rows = [summed("engine", 100, clients=n, durability="local", bytes=each) for n in "14" for each in ("64", "900")]
    svg = drawn(ENGINES, rows)
    assert svg is not None
    assert {"engine, durability local, bytes 64", "engine, durability local, bytes 900"} <= set(text_of(svg))


def test_a_bar_below_nothing_hangs_down() -> None:
    svg = bars("t", Y, ["a"], [Series("up", [Point(0, 2)]), Series("down", [Point(0, -2)])])
    up, down = (
        rect
        for rect in ET.fromstring(svg).findall(".//{*}rect")
        if float(rect.attrib["height"]) > 8 and rect.attrib.get("x")
    )
    assert float(up.attrib["y"]) + float(up.attrib["height"]) == pytest.approx(float(down.attrib["y"]))
    assert up.attrib["height"] == down.attrib["height"]


def test_numbers_for_people_do_not_reach_the_next_letter() -> None:
    assert [short(each) for each in (999.4, 999.9, 999_999, 1e12, 0.25)] == ["999", "1k", "1M", "1T", "0.25"]


def test_samples_behind_a_link_are_drawn_and_none_are_said(tmp_path: Path) -> None:
    there, place = tmp_path / "there", tmp_path / "place"
    place.mkdir()
    samples = Samples("ring", there)
    samples.add("packed", "throughput", 10, "1/s", members=3)
    samples.keep()
    (place / "link").symlink_to(there)
    (place / "again").symlink_to(there)
    (path,) = sample_files(place)
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    with pytest.raises(NoSamples, match="are empty"):
        sample_files(place)


def summed(subject: str, value: float, machine: str = "m", **parameters: str) -> Summed:
    return Summed(
        "engines", subject, parameters, "throughput", "1/s", machine, 3, value - 1, value, value + 1, value + 1
    )


ENGINES = Plot("e", "Engines", "engines", "throughput", "clients", by=("durability",))


def test_a_plot_has_a_series_for_each_subject_and_for_what_tells_them_apart() -> None:
    rows = [
        summed("engine", 100, clients="1", durability="local"),
        summed("engine", 300, clients="14", durability="local"),
        summed("engine", 900, clients="14", durability="memory"),
        summed("COREL", 50, clients="1"),
        summed("COREL", 50, replicas="1"),
    ]
    svg = drawn(ENGINES, rows)
    assert svg is not None
    assert {"engine, durability local", "engine, durability memory", "COREL"} <= set(text_of(svg))
    assert len(ET.fromstring(svg).findall(".//{*}polyline")) == 3
    assert drawn(ENGINES, rows[-1:]) is None, "it has no clients"


def test_samples_of_two_machines_are_two_series() -> None:
    rows = [summed("engine", 100, machine, clients="1") for machine in ("small", "large")]
    svg = drawn(ENGINES, rows)
    assert svg is not None
    assert {"engine, small", "engine, large"} <= set(text_of(svg))


def test_a_table_can_be_read_as_it_is() -> None:
    assert list(table([summed("en|gine\n<b>", 1234.5, clients="1")])) == [
        "| subject         | parameters | metric     | unit | samples |   min |   p50 |   p99 |   max |",
        "| --------------- | ---------- | ---------- | ---- | ------: | ----: | ----: | ----: | ----: |",
        "| en\\|gine &lt;b> | clients 1  | throughput | 1/s  |       3 | 1,234 | 1,234 | 1,236 | 1,236 |",
    ]


def test_every_plot_of_the_papers_can_be_drawn() -> None:
    names = [plot.name for plot in PLOTS]
    assert len(set(names)) == len(names)
    for plot in PLOTS:
        held = dict(plot.only) | ({plot.along: "2"} if plot.along and plot.along not in dict(plot.only) else {})
        row = Summed(plot.benchmark, "subject", held, plot.metric, "1/s", "m", 1, 1.0, 1.0, 1.0, 1.0)
        svg = drawn(plot, [row])
        assert svg is not None, plot.name
        assert {series.name for series in plot.paper} <= set(text_of(svg))


@pytest.mark.slow
def test_samples_become_plots_and_tables_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    samples = Samples("thesis", tmp_path / "in")
    for members in (2, 16):
        for value in range(101):
            samples.add("Ring, simulated", "throughput", 800 + value, "1/s", members=members, bytes=1024)
    samples.keep()
    rows = fetched(summed_up(samples_at(spark, tmp_path / "in")))
    assert [dict(row.parameters) for row in rows] == [{"bytes": "1024", "members": each} for each in ("2", "16")]
    assert [(row.samples, row.low, row.p50, row.p99, row.high) for row in rows] == [(101, 800, 850, 899, 900)] * 2

    done = draw_figures(spark, tmp_path / "in", tmp_path / "out")
    assert [path.name for path in done.plots] == ["ring-members.svg"]
    assert len(done.missing) == len(PLOTS) - 1
    assert done.samples == 202
    page = done.page.read_text()
    assert "![Ring: throughput by number of processors, 1 KB messages](ring-members.svg)" in page
    assert "After Amir, thesis, figure 5.4." in page
    assert "| Ring, simulated | bytes 1024, members 16 | throughput | 1/s  |     101 | 800 | 850 | 899 | 900 |" in page
