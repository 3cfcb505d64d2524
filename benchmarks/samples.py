"""Samples on disk: what was measured, kept for `greenline pipeline figures` when BENCH_SAMPLES names a directory.

BENCH_SAMPLES=samples python -m benchmarks
greenline pipeline figures samples
"""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from greenline import __version__
from greenline.pipeline.samples import SCHEMA, SUFFIX


class Samples:
    """Of one benchmark. A file a process and benchmark, written anew at each measurement: little is lost to a kill."""

    def __init__(self, benchmark: str, place: Path | None = None) -> None:
        named = os.environ.get("BENCH_SAMPLES")
        self._place = place or (Path(named) if named else None)
        self._benchmark = benchmark
        self._begun = datetime.now(UTC)
        self._rows: list[dict[str, Any]] = []
        self._taken: dict[tuple[object, ...], int] = {}

    def add(self, subject: str, metric: str, value: float, unit: str, **parameters: object) -> None:
        if self._place is None:
            return
        said = {name: str(each) for name, each in sorted(parameters.items())}
        key = subject, metric, *said.items()
        self._taken[key] = number = self._taken.get(key, 0) + 1
        self._rows.append(
            {
                "benchmark": self._benchmark,
                "subject": subject,
                "parameters": list(said.items()),
                "metric": metric,
                "unit": unit,
                "value": float(value),
                "sample": number,
                "time": datetime.now(UTC),
                "host": list(host().items()),
            }
        )

    def keep(self) -> None:
        if self._place is None or not self._rows:
            return
        self._place.mkdir(parents=True, exist_ok=True)
        path = self._place / f"{self._benchmark}-{self._begun:%Y%m%dT%H%M%S.%f}-{os.getpid()}{SUFFIX}"
        aside = path.with_name(path.name + ".part")
        pq.write_table(pa.Table.from_pylist(self._rows, SCHEMA), aside)
        aside.rename(path)


def host() -> dict[str, str]:
    """What a reader must know of a machine to compare; not its name."""
    return {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "greenline": __version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
