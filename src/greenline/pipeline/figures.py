"""Figures: the samples of benchmarks, through Spark, into the papers' plots and into tables.

A step is a function from DataFrame to DataFrame; what comes to the driver is a row a point. Samples of different
machines are never put together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from greenline.pipeline.charts import Point, Series, bars, lines
from greenline.pipeline.figure_plots import PLOTS, Plot
from greenline.pipeline.samples import NoSamples, is_drawable, sample_files
from greenline.pipeline.session import why_not_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAGE = "figures.md"


@dataclass(frozen=True)
class Summed:
    """All samples of one measurement on one machine."""

    benchmark: str
    subject: str
    parameters: Mapping[str, str]
    metric: str
    unit: str
    machine: str
    samples: int
    low: float
    p50: float
    p99: float
    high: float


@dataclass(frozen=True)
class Drawn:
    """What came of the samples."""

    page: Path
    plots: tuple[Path, ...]
    missing: tuple[Plot, ...]
    """There are no samples for them."""
    samples: int


def draw_figures(session: SparkSession, place: Path, output: Path) -> Drawn:
    """Every plot that there are samples for, and one page with all of them and a table of everything."""
    summed = fetched(summed_up(samples_at(session, place)))
    output.mkdir(parents=True, exist_ok=True)
    plots: dict[Plot, Path] = {}
    for plot in PLOTS:
        if (svg := drawn(plot, summed)) is not None:
            plots[plot] = output / f"{plot.name}.svg"
            plots[plot].write_text(svg, encoding="utf-8")
    page = output / PAGE
    page.write_text("\n".join(_page(plots, summed)) + "\n", encoding="utf-8")
    missing = tuple(plot for plot in PLOTS if plot not in plots)
    return Drawn(page, tuple(plots.values()), missing, sum(each.samples for each in summed))


def samples_at(session: SparkSession, place: Path) -> DataFrame:
    paths = [path.absolute() for path in sample_files(place)]
    for path in paths:
        if reason := why_not_read(path):
            raise NoSamples(reason)
    return session.read.parquet(*map(str, paths))


def summed_up(samples: DataFrame) -> DataFrame:
    """A row for each measurement: its samples' number, extremes, median and 99th percentile."""
    from pyspark.sql import functions as F  # noqa: N812

    machine = F.concat_ws(", ", F.col("host")["processor"], F.concat(F.col("host")["cores"], F.lit(" cores")))
    return (
        samples.withColumn("parameters", F.array_sort(F.map_entries("parameters")))  # a map cannot be grouped by
        .withColumn("machine", machine)
        .groupBy("benchmark", "subject", "parameters", "metric", "unit", "machine")
        .agg(
            F.count("value").alias("samples"),
            F.min("value").alias("low"),
            F.percentile("value", F.lit(0.5)).alias("p50"),
            F.percentile("value", F.lit(0.99)).alias("p99"),
            F.max("value").alias("high"),
        )
    )


def fetched(summed: DataFrame) -> list[Summed]:
    rows = [
        Summed(**{**row, "parameters": {each["key"]: each["value"] for each in row["parameters"]}})
        for row in summed.toArrow().to_pylist()
    ]
    return sorted(rows, key=_order)


def _order(row: Summed) -> tuple[object, ...]:
    named = tuple((name, _number(value, 0.0), value) for name, value in sorted(row.parameters.items()))
    return row.benchmark, row.metric, row.subject, row.machine, named


def _number(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise


def drawn(plot: Plot, summed: Iterable[Summed]) -> str | None:
    """The plot as SVG; None if there are no samples for it."""
    rows = [row for row in summed if _belongs(row, plot)]
    if not rows:
        return None
    if len(units := sorted({row.unit for row in rows})) > 1:
        raise NoSamples(
            f"the benchmark {plot.benchmark} has samples of {plot.metric} in {' and in '.join(units)}, which have no"
            " axis in common: keep those of one in a directory"
        )
    y = f"{plot.metric}, {rows[0].unit}"
    machines = {row.machine for row in rows}
    apart = [*plot.by, *_varied(rows, {plot.along, *plot.by})]
    groups = list(dict.fromkeys(row.subject for row in rows))
    found: dict[str, list[Point]] = {}
    for row in rows:
        told = [] if plot.along is None else [row.subject]
        told += [f"{name} {row.parameters[name]}" for name in apart if name in row.parameters]
        told += [row.machine] if len(machines) > 1 else []
        x = groups.index(row.subject) if plot.along is None else _along(row, plot.along)
        found.setdefault(", ".join(told) or plot.metric, []).append(Point(x, row.p50, row.low, row.high))
    series = [Series(name, points) for name, points in found.items()]
    if plot.along is None:
        return bars(plot.title, y, groups, series)
    return lines(plot.title, plot.along, y, [*series, *plot.paper])


def _varied(rows: Sequence[Summed], known: Collection[str | None]) -> list[str]:
    """Other parameters that are not the same everywhere: their points are no line."""
    names = sorted({name for row in rows for name in row.parameters} - set(known))
    return [name for name in names if len({row.parameters.get(name) for row in rows}) > 1]


def _along(row: Summed, parameter: str) -> float:
    text = row.parameters[parameter]
    if not is_drawable(value := _number(text, math.nan)):
        raise NoSamples(
            f"the benchmark {row.benchmark} has a sample with {parameter} {text}, which is drawn along an axis and so"
            " must be a number: run it again"
        )
    return value


def _belongs(row: Summed, plot: Plot) -> bool:
    return (
        (row.benchmark, row.metric) == (plot.benchmark, plot.metric)
        and (plot.along is None or plot.along in row.parameters)
        and all(row.parameters.get(name) == value for name, value in plot.only)
    )


def _page(plots: Mapping[Plot, Path], summed: Sequence[Summed]) -> Iterator[str]:
    yield "# Figures"
    for plot, path in plots.items():
        yield f"\n## {plot.title}\n"
        yield f"![{plot.title}]({path.name})"
        if plot.source:
            yield f"\nAfter {plot.source}."
    yield "\n# Tables"
    for (benchmark, machine), rows in groupby(
        sorted(summed, key=lambda row: (row.benchmark, row.machine)), key=lambda row: (row.benchmark, row.machine)
    ):
        yield f"\n## {_cell(benchmark)}, on {_cell(machine)}\n"
        yield from table(list(rows))


def table(rows: Sequence[Summed]) -> Iterator[str]:
    """In Markdown that is aligned, so that it can be read as it is."""
    head = ["subject", "parameters", "metric", "unit", "samples", "min", "p50", "p99", "max"]
    cells = [
        [
            *(_cell(each) for each in (row.subject, _said(row), row.metric, row.unit)),
            str(row.samples),
            *(_figure(each) for each in (row.low, row.p50, row.p99, row.high)),
        ]
        for row in rows
    ]
    widths = [max(len(line[place]) for line in [head, *cells]) for place in range(len(head))]
    texts = 4
    for line in [head, *cells]:
        padded = [
            each.ljust(width) if place < texts else each.rjust(width)
            for place, (each, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield f"| {' | '.join(padded)} |"
        if line is head:
            rules = ["-" * width if place < texts else "-" * (width - 1) + ":" for place, width in enumerate(widths)]
            yield f"| {' | '.join(rules)} |"


def _said(row: Summed) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.parameters.items())


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def _cell(text: str) -> str:
    """A sample may be called anything: it stays in its cell."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
