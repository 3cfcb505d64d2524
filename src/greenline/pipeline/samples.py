"""Samples: what benchmarks measure, one row a measurement, whatever the benchmark.

benchmark     what ran: ring, database, sessions, ...
subject       what was measured: a protocol, a level of durability, a table
parameters    what was varied or held: clients, members, bytes, ...; numbers are written as numbers
metric, unit  throughput, 1/s; latency, ms; ...
value         what came out
sample        which of several measurements under the same parameters
time          when
host          what it ran on: cores, processor, system, python, greenline

A parameter that a figure draws along an axis is a number. Nothing here needs Spark: benchmarks write it, `figures`
reads it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

VERSION = 1
_KEY = b"greenline.samples.version"
SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("subject", pa.string()),
        ("parameters", pa.map_(pa.string(), pa.string())),
        ("metric", pa.string()),
        ("unit", pa.string()),
        ("value", pa.float64()),
        ("sample", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("host", pa.map_(pa.string(), pa.string())),
    ],
    metadata={_KEY: str(VERSION).encode()},
)
SUFFIX = ".samples.parquet"
LARGEST = 1e100


class NoSamples(Exception):
    """There is nothing to draw: where we looked, what is there, and what to do."""


def sample_files(place: Path) -> list[Path]:
    """The files of samples at this place, each of them whole, of our version and with a value in every place."""
    found = [place] if place.is_file() else sorted(_below(place))
    if not found:
        what = f"holds no file that ends in {SUFFIX}" if place.exists() else "does not exist"
        raise NoSamples(f"{place} {what}: BENCH_SAMPLES={place} make bench writes some")
    if not sum(map(_checked, found)):
        raise NoSamples(f"the files of samples at {place} are empty: BENCH_SAMPLES={place} make bench writes some")
    return found


def _below(place: Path) -> set[Path]:
    """Also behind links, each once."""
    found, seen = set[Path](), set[str]()
    for at, below, names in os.walk(place, followlinks=True):
        if (real := os.path.realpath(at)) in seen:
            below.clear()
        seen.add(real)
        found |= {Path(real, name).resolve() for name in names if name.endswith(SUFFIX)}
    return found


def is_drawable(value: float) -> bool:
    """No measurement is larger; and beyond it an axis has no round numbers."""
    return abs(value) <= LARGEST


def _checked(path: Path) -> int:
    """How many there are in it."""
    try:
        samples = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise NoSamples(f"{path} is no whole Parquet file: {reason}; remove it, or run its benchmark again") from None
    version = (samples.schema.metadata or {}).get(_KEY, b"none").decode(errors="replace")
    if version != str(VERSION):
        raise NoSamples(
            f"{path} has samples of version {version}; this Greenline reads version {VERSION}: run its benchmark again"
        )
    if not samples.schema.equals(SCHEMA):
        raise NoSamples(f"{path} does not have the columns of samples, {', '.join(SCHEMA.names)}, in their types")
    maps = [chunk for name in ("parameters", "host") for chunk in samples[name].chunks]
    lacks = any(column.null_count for column in (*samples.columns, *(each.items for each in maps)))
    if lacks or not all(map(is_drawable, samples["value"].to_pylist())):
        raise NoSamples(f"{path} has samples that lack something, or are no numbers: run its benchmark again")
    return int(samples.num_rows)
