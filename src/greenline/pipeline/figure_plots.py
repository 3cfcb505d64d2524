"""The papers' plots: which samples each is drawn from, and what the paper itself reports, to be drawn beside.

Papers: Amir, thesis (the Ring, 5.3); Amir and Tutu (the engine beside COREL and two-phase commit, 7); Karamanolis and
Magee (access protocols, 6.2). And what they do not have: our database and its sessions.
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.pipeline.charts import Point, Series


@dataclass(frozen=True)
class Plot:
    name: str
    """Of its file."""
    title: str
    benchmark: str
    metric: str
    along: str | None = None
    """The parameter on the x axis; without one, bars beside each other by subject."""
    by: tuple[str, ...] = ()
    """Parameters that tell series apart, beside the subject."""
    only: tuple[tuple[str, str], ...] = ()
    """Parameters that are held."""
    paper: tuple[Series, ...] = ()
    source: str = ""


def _reported(name: str, *points: tuple[float, float]) -> Series:
    return Series(name, tuple(Point(x, y) for x, y in points), is_dashed=True)


PLOTS = (
    Plot(
        "ring-members",
        "Ring: throughput by number of processors, 1 KB messages",
        "thesis",
        "throughput",
        "members",
        only=(("bytes", "1024"),),
        paper=(_reported("thesis, 10 Mbit Ethernet", (4, 872), (6, 852), (15, 852), (16, 856)),),
        source="Amir, thesis, figure 5.4",
    ),
    Plot(
        "ring-size",
        "Ring: throughput by size of messages",
        "thesis",
        "throughput",
        "bytes",
        only=(("members", "4"),),
        paper=(_reported("thesis, 10 Mbit Ethernet", (100, 1984), (1024, 860), (1400, 670)),),
        source="Amir, thesis, figure 5.5",
    ),
    Plot(
        "ring-latency",
        "Ring: latency to safe delivery by throughput",
        "thesis",
        "safe latency",
        "load",
        by=("members",),
        source="Amir, thesis, figure 5.6",
    ),
    Plot(
        "engine-throughput",
        "Replication: throughput by number of clients",
        "engines",
        "throughput",
        "clients",
        by=("durability",),
        source="Amir and Tutu, figure 5",
    ),
    Plot(
        "engine-latency",
        "Replication: latency of one client by number of replicas",
        "engines",
        "latency",
        "replicas",
        by=("durability",),
        paper=(
            _reported("two-phase commit, as reported", (2, 19.3), (14, 19.3)),
            _reported("COREL and engine, as reported", (2, 11.4), (14, 11.4)),
        ),
        source="Amir and Tutu, section 7",
    ),
    Plot(
        "access-latency",
        "Access protocols: latency by number of servers",
        "access",
        "latency",
        "servers",
        by=("bytes",),
        source="Karamanolis and Magee, figures 15 and 17",
    ),
    Plot(
        "access-throughput",
        "Access protocols: throughput by number of clients",
        "access",
        "throughput",
        "clients",
        by=("servers", "bytes"),
        source="Karamanolis and Magee, figures 16 and 17",
    ),
    Plot("database-throughput", "Database: durable rows a second, three replicas", "database", "throughput"),
    Plot("database-latency", "Database: latency of pipelined inserts", "database", "latency", by=("percentile",)),
    Plot("ring-cores", "Ring cores without sockets: safe messages a second", "ring", "throughput"),
    Plot("sessions-kept", "Sessions: rows kept as bundles come", "sessions", "rows kept", "bundles"),
)
