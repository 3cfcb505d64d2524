"""What a real cluster of three does when something happens to it: kills, idleness, floods, a node that is stopped.

python -m benchmarks.faults             # all of it, some minutes
python -m benchmarks.faults failover    # or one of: failover, idle, flood, gigabyte
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.spine.cluster import NAMES, Cluster
from benchmarks.spine.load import LENGTH, MESSAGE, Load
from greenline.kernel import evidence
from greenline.kernel.evidence import Row
from greenline.spec.judge import Judge
from greenline.trace.stream import SUFFIX, TraceReader
from greenline.trace.tables import to_table

KILLS = 50
FLOOD_A_SECOND = 50_000
GIGABYTE = 10**9
STOPPED_S = 10.0
MEMORY_MB = 300


class Asker:
    """One client that asks one thing at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> float:
        """How long does a message take to be ordered, forced and answered?"""
        begun = time.perf_counter()
        self._socket.sendall(MESSAGE)
        got = b""
        while len(got) < LENGTH.size:
            got += self._socket.recv(LENGTH.size - len(got))
        return time.perf_counter() - begun

    def close(self) -> None:
        self._socket.close()


def failover() -> Iterator[Figure]:
    """From kill -9 of a node to the answer to the next message elsewhere, with the defaults."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as place, Cluster(Path(place)) as cluster:
        asker = Asker(cluster.clients["p"])
        for number in range(KILLS):
            victim = ("q", "r")[number % 2]
            others = tuple(name for name in NAMES if name != victim)
            asker.ask()
            begun = time.perf_counter()
            cluster.kill(victim)
            asker.ask()
            took.append(time.perf_counter() - begun)
            cluster.wait_for("p", others)
            cluster.restart(victim)
            cluster.wait_for("p", NAMES)
        asker.close()
    took.sort()
    yield Figure(f"failover, p50 of {KILLS} kills", 1000 * took[len(took) // 2], "ms")
    yield Figure(f"failover, p99 of {KILLS} kills", 1000 * took[len(took) * 99 // 100], "ms")


def idle() -> Iterator[Figure]:
    """What an idle cluster costs, and a lone message after idleness beside one on a turning ring."""
    with tempfile.TemporaryDirectory() as place, Cluster(Path(place)) as cluster:
        asker = Asker(cluster.clients["q"])
        asker.ask()
        time.sleep(1.0)
        pids = [process.pid for process in cluster.processes.values()]
        before = sum(map(_cpu_seconds, pids))
        time.sleep(10.0)
        yield Figure(
            "CPU of an idle cluster", 100 * (sum(map(_cpu_seconds, pids)) - before) / 10, "% of a core", 2, False
        )
        after_idleness: list[float] = []
        for _ in range(40):
            time.sleep(0.3)
            after_idleness.append(asker.ask())
        turning: list[float] = []
        background = Load([cluster.clients["p"], cluster.clients["r"]], 1, 1)
        for _ in range(40):
            background.run(0.05)
            turning.append(_asked_beside(asker, background))
        background.close()
        asker.close()
    lone, busy = statistics.median(after_idleness), statistics.median(turning)
    told = f"{1000 * lone:.2f} ms after idleness, {1000 * busy:.2f} ms on a turning ring"
    yield Figure("a lone message after idleness, of one on a turning ring", lone / busy, "times", 2, False, told)


def _asked_beside(asker: Asker, background: Load) -> float:
    """The ring turns for others meanwhile: they are served by a process of their own."""
    pid = os.fork()
    if pid == 0:
        background.run(0.5)
        os._exit(0)
    time.sleep(0.05)
    took = asker.ask()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return took


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def flood() -> Iterator[Figure]:
    """Throughput while somebody sends garbage to one node, beside throughput without."""
    with tempfile.TemporaryDirectory() as place, Cluster(Path(place)) as cluster:
        load = Load(list(cluster.clients.values()), 2, 2000)
        load.run(1.0)
        calm, flooded = [], []
        for _ in range(3):
            calm.append(_rate(load))
            flooder = _flooder(cluster.ports["q"])
            flooded.append(_rate(load))
            flooder.kill()
            flooder.wait()
        load.close()
        changes = {name: cluster.configurations(name) for name in NAMES}
        said = cluster.end()
    refused = sum(said["q"]["refused"].values())
    assert not any(changes.values()), f"a configuration has changed: {changes}"
    told = f"{statistics.median(calm):,.0f} messages/s without, {refused:,} datagrams refused"
    ratio = statistics.median(flooded) / statistics.median(calm)
    yield Figure("throughput under a flood of garbage, of that without", ratio, "times", 0.5, True, told)


def _rate(load: Load) -> float:
    before, begun = load.answered, time.perf_counter()
    load.run(3.0)
    return (load.answered - before) / (time.perf_counter() - begun)


FLOODER = """
import os, socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
garbage = [os.urandom(120) for _ in range(500)]
due = time.perf_counter()
while True:
    for each in garbage:
        out.sendto(each, ("127.0.0.1", int(sys.argv[1])))
    due += len(garbage) / int(sys.argv[2])
    time.sleep(max(0.0, due - time.perf_counter()))
"""


def _flooder(port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", FLOODER, str(port), str(FLOOD_A_SECOND)])


def gigabyte() -> Iterator[Figure]:
    """A gigabyte through three nodes while one of them is stopped for ten seconds and resumed; then it is judged."""
    with tempfile.TemporaryDirectory() as place, Cluster(Path(place), trace=True) as cluster:
        load = Load([cluster.clients["p"], cluster.clients["q"]], 2, 2000)
        begun = time.perf_counter()
        load.run(1.0)
        cluster.signal("r", signal.SIGSTOP)
        load.run(STOPPED_S)
        cluster.signal("r", signal.SIGCONT)
        while load.answered * len(MESSAGE) < GIGABYTE:
            load.run(0.5)
        took = time.perf_counter() - begun
        load.settle()
        load.close()
        deadline = time.monotonic() + 10
        while {cluster.kept("p"), cluster.kept("q")} != {load.answered}:
            kept = cluster.kept("p"), cluster.kept("q")
            assert time.monotonic() < deadline, f"{kept} and {load.answered}: lost among those that stayed"
            time.sleep(0.05)
        said = cluster.end()
        rows = [row for name in NAMES for row in _rows(Path(place) / name)]
    broken = Judge(("run", "evs")).broken(to_table([("spine", rows)]))
    assert not broken, [str(each) for each in broken[:3]]
    confs = sum(row.kind == evidence.REGULAR and row.process == "r" for row in rows)
    told = f"in {took:.0f} s; r saw {confs} configurations; {len(rows):,} rows, no rule broken"
    most = max(node["memory"] for node in said.values())
    yield Figure("memory of a node, 1 GB with one stopped for 10 s", most, "MB", MEMORY_MB, False, told)


def _rows(place: Path) -> Iterator[Row]:
    for path in sorted(place.glob(f"*{SUFFIX}")):
        for block in TraceReader(path):
            yield from block.rows


AREAS: dict[str, Callable[[], Iterator[Figure]]] = {
    "failover": failover,
    "idle": idle,
    "flood": flood,
    "gigabyte": gigabyte,
}


def measure() -> Iterator[Figure]:
    for area in AREAS.values():
        yield from area()


if __name__ == "__main__":
    for area in sys.argv[1:] or AREAS:
        for figure in AREAS[area]():
            print(figure, flush=True)
