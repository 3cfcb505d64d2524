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


class NoSamples(Exception):
    """There is nothing to draw: where we looked, what is there, and what to do."""


def sample_files(place: Path) -> list[Path]:
    """The files of samples at this place, each of them whole and of our version."""
    found = [place] if place.is_file() else sorted(place.rglob("*" + SUFFIX))
    if not found:
        what = f"holds no file that ends in {SUFFIX}" if place.exists() else "does not exist"
        raise NoSamples(f"{place} {what}: BENCH_SAMPLES={place} make bench writes some")
    for path in found:
        _check(path)
    return found


def _check(path: Path) -> None:
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise NoSamples(f"{path} is no whole Parquet file: {reason}; remove it, or run its benchmark again") from None
    version = (schema.metadata or {}).get(_KEY, b"none").decode(errors="replace")
    if version != str(VERSION):
        raise NoSamples(
            f"{path} has samples of version {version}; this Greenline reads version {VERSION}: run its benchmark again"
        )
