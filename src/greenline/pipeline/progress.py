"""Progress: how far a pipeline is, in a small file that anybody may read, and in another one for Prometheus.

`status.prom` has the form that the textfile collector of a node exporter takes: point it at the directory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

FILE, METRICS = "status.json", "status.prom"
STALE_S = 30.0
"""Whoever is running says so more often than that."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    """running, waiting, ended or failed."""
    because: str = ""
    pid: int = 0
    updated: float = 0.0
    order: int = 0
    """How far the order goes, as it was last seen."""
    archived: int = 0
    """How far it is archived and checked: so far every table can be asked for."""
    written: int = 0
    """How far the tables are written as files of their own."""
    lag_positions: int = 0
    lag_seconds: float = 0.0
    """Since when there is something in the order that is not archived and checked."""
    written_lag_seconds: float = 0.0
    verified: int = 0
    """The last position at which a replica had the same state."""
    rows: dict[str, int] = {}
    """Of each table, as it is written."""
    left_out: dict[str, str] = {}

    @property
    def is_alive(self) -> bool:
        """Who says that it runs, and has not for long, was killed."""
        return self.state in ("running", "waiting") and time.time() - self.updated < STALE_S


_GAUGES = {
    "order": ("order_position", "How far the order goes."),
    "archived": ("archived_position", "How far it is archived and checked."),
    "written": ("written_position", "How far the tables are written."),
    "lag_positions": ("lag_positions", "Positions of the order that are not archived and checked."),
    "lag_seconds": ("lag_seconds", "Since when there are such positions."),
    "written_lag_seconds": ("written_lag_seconds", "Since when there are positions that the written tables lack."),
    "verified": ("verified_position", "Where a replica was last seen to have the same state."),
    "updated": ("updated_timestamp_seconds", "When this was written."),
}


def read(place: Path) -> Progress | None:
    """None if nothing has ever run there, or what it left cannot be read."""
    try:
        return msgspec.json.decode((place / FILE).read_bytes(), type=Progress)
    except (OSError, msgspec.DecodeError):
        return None


def write(place: Path, progress: Progress) -> None:
    place.mkdir(parents=True, exist_ok=True)
    _put(place / FILE, msgspec.json.format(msgspec.json.encode(progress), indent=1))
    _put(place / METRICS, metrics(progress))


def metrics(progress: Progress) -> bytes:
    """As Prometheus reads it."""
    families = CollectorRegistry()
    families.register(_Gauges(progress))
    return generate_latest(families)


class _Gauges(Collector):
    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for field, (name, text) in _GAUGES.items():
            yield GaugeMetricFamily(f"greenline_pipeline_{name}", text, getattr(self._progress, field))
        yield GaugeMetricFamily("greenline_pipeline_up", "1 while it runs.", self._progress.is_alive)
        rows = GaugeMetricFamily(
            "greenline_pipeline_table_rows", "Rows of a table, as it is written.", labels=["table"]
        )
        for table, count in self._progress.rows.items():
            rows.add_metric([table], count)
        yield rows


def _put(path: Path, data: bytes) -> None:
    """Nobody reads half of it; and two threads may say something at a time."""
    aside = path.with_name(f"{path.name}.{threading.get_ident()}")
    aside.write_bytes(data)
    aside.replace(path)
