"""Metrics: a node's status as Prometheus reads it. Nothing is counted twice: they are made when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from greenline.node.status import Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_COUNTERS = {
    "delivered": ("messages_delivered", "Messages that were delivered to the application."),
    "sent": ("messages_sent", "Own messages that have their place in a configuration."),
    "packets_in": ("packets_received", "Datagrams that came, refused ones included."),
    "packets_out": ("packets_sent", "Datagrams that left."),
    "bytes_in": ("received_bytes", "Bytes of the datagrams that came."),
    "bytes_out": ("sent_bytes", "Bytes of the datagrams that left."),
    "forced_writes": ("forced_writes", "Forced writes of the log."),
}


class Metrics(Collector):
    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status
        self._families = CollectorRegistry()
        self._families.register(self)

    def text(self) -> bytes:
        return generate_latest(self._families)

    def describe(self) -> list[Metric]:
        return []  # nothing is asked before the node is there

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        info = {"name": status.name, "version": status.version, "cluster": status.cluster or "", "uid": status.uid}
        yield InfoMetricFamily("greenline_node", "Who this is.", info)
        for field, (name, text) in _COUNTERS.items():
            yield CounterMetricFamily(f"greenline_{name}", text, getattr(status, field))
        yield _by("greenline_packets_refused", "Packets that were not taken or not sent.", "reason", status.refused)
        yield _by("greenline_ignored", "What the protocol ignored or dropped.", "reason", status.ignored)
        yield _gauge("ready", "1 while it is operational in a configuration.", status.is_ready)
        yield _gauge("stopped", "1 while it has stopped; /status says why.", status.stopped is not None)
        yield _gauge("incarnation", "Which of its lives this is.", status.incarnation)
        yield _gauge("uptime_seconds", "Since the process began.", status.uptime)
        yield _gauge("configuration_members", "Members of the present configuration.", len(status.in_configuration))
        yield _gauge("strangers", "Names under which somebody else speaks, too.", len(status.strangers))
        yield _gauge("current_key", "The number of the key that seals; 0 without one.", status.current_key or 0)
        yield from _replica(status)
        members = GaugeMetricFamily("greenline_member_in", "1 for a member in the configuration.", labels=["member"])
        for name, member in status.members.items():
            members.add_metric([name], float(member.is_in))
        yield members


def _replica(status: Status) -> Iterator[Metric]:
    stands = status.standing
    if stands is None:
        return
    yield _gauge("clients", "Clients that are connected.", status.clients)
    yield _gauge("primary", "1 while it is in the primary component.", stands.is_primary)
    yield _gauge(
        "primary_index", "Of the last primary component that it knows.", stands.prim.prim_index if stands.prim else 0
    )
    yield _gauge("white", "Bundles of the order that are on all disks.", stands.white)
    yield _gauge("green", "Bundles that are ordered here.", stands.green)
    yield _gauge("red", "Bundles that are accepted here, and not ordered.", stands.reds)
    yield _gauge("waiting", "Submissions that are in no bundle yet.", stands.waiting)
    yield _gauge("kept_bytes", "Of bundles that are kept, since somebody may lack them.", stands.kept_bytes)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"greenline_{name}", text, float(value))


def _by(name: str, text: str, label: str, counts: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family
