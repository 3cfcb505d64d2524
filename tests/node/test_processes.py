"""Real processes: `greenline node` on real sockets, killed with SIGKILL, started again, judged by their traces."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from greenline.kernel import evidence
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.node.config import BadConfig, load
from greenline.spec.judge import Judge
from greenline.trace.stream import SUFFIX, TraceReader
from greenline.trace.tables import to_table
from tests.node.test_driver import free_addresses

PATIENCE_S = 30.0
KEY = "ab" * 32


class Process:
    """One `greenline node`, with somebody at its terminal."""

    def __init__(self, name: ProcId, place: Path) -> None:
        self.name = name
        self.place = place
        self.heard: list[str] = []
        self._rest = b""
        self._popen = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "greenline.cli.main", "node", f"{self.name}.toml", "--trace"]
        return subprocess.Popen(command, cwd=self.place, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(self, text: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(text.encode() + b"\n")
        self._popen.stdin.flush()

    def listen(self, seconds: float) -> None:
        """Take what it has printed by now, or within so long."""
        assert self._popen.stdout is not None
        if self._popen.stdout.closed:
            return
        ready, _, _ = select.select([self._popen.stdout], [], [], seconds)
        if ready:
            *lines, self._rest = (self._rest + os.read(self._popen.stdout.fileno(), 65_536)).split(b"\n")
            self.heard += [line.decode() for line in lines]

    def stop_here(self) -> None:
        self._popen.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def last(self, like: str) -> str:
        """The last configuration that it told, or the last message."""
        is_conf = like.endswith("}")
        return next((line for line in reversed(self.heard) if line.startswith("in ") == is_conf), "")

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()

    def restart(self) -> None:
        self.heard.clear()
        self._rest = b""
        self._popen = self._started()

    def stop(self) -> int:
        self._popen.send_signal(signal.SIGTERM)
        return self._popen.wait(PATIENCE_S)


def until(processes: list[Process], line: str) -> None:
    """Until the last configuration, or the last message, that each was told ends so."""
    deadline = time.monotonic() + PATIENCE_S
    while not all(each.last(line).endswith(line) for each in processes):
        assert time.monotonic() < deadline, {each.name: each.heard[-3:] for each in processes}
        for each in processes:
            each.listen(0.02)


def written(place: Path, names: str) -> dict[ProcId, Process]:
    """Their configurations and the key, in one directory."""
    (place / "cluster.key").write_text(KEY)
    addresses = free_addresses(names)
    members = "\n".join(f'{name} = "{host}:{port}"' for name, (host, port) in addresses.items())
    for name in addresses:
        text = f'name = "{name}"\ndata = "data-{name}"\nkey = "cluster.key"\n[members]\n{members}\n'
        (place / f"{name}.toml").write_text(text)
    return {name: Process(name, place) for name in addresses}


def collected(place: Path, killed: list[tuple[ProcId, int]]) -> list[Row]:
    """The traces of all nodes; whoever killed one writes that down."""
    rows: list[Row] = []
    for path in sorted(place.glob(f"data-*/*{SUFFIX}")):
        life = [row for block in TraceReader(path) for row in block.rows]
        last = life[-1]
        if (last.process, last.incarnation) in killed:
            confs = [row.conf for row in life if row.kind in (evidence.REGULAR, evidence.TRANSITIONAL)]
            life.append(Row(last.process, last.incarnation, len(life), last.time, evidence.CRASH, conf=confs[-1]))
        rows += life
    return rows


@pytest.mark.slow
def test_three_processes_survive_kill_9_and_break_no_rule(tmp_path: Path) -> None:
    nodes = written(tmp_path, "p q r")
    everybody = list(nodes.values())
    try:
        until(everybody, "{p q r}")
        for number in range(5):
            nodes["q"].say(f"hello {number}")
        until(everybody, "q: hello 4")

        nodes["r"].kill()
        until([nodes["p"], nodes["q"]], "{p q}")
        nodes["p"].say("without r")
        until([nodes["p"], nodes["q"]], "p: without r")

        nodes["r"].restart()
        until(everybody, "{p q r}")
        nodes["r"].say("back again")
        until(everybody, "r: back again")
        assert [each.stop() for each in everybody] == [0, 0, 0]
    finally:
        for each in everybody:
            each.kill()
    rows = collected(tmp_path, [("r", 1)])
    assert {row.incarnation for row in rows if row.process == "r"} == {1, 2}
    assert Judge(("run", "evs")).broken(to_table([("cluster", rows)])) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "p"', 'name = "x"', "name = 'x' is none of the members p, q; add it to [members]"),
        ('name = "p"', 'nam = "p"', "unknown field `nam`"),
        ("127.0.0.1:1", "localhost:1", "members.p = 'localhost:1' is no address; write 10.0.0.1:7400"),
        ("127.0.0.1:1", "127.0.0.1:99999", "has no port between 1 and 65535"),
        ("127.0.0.1:2", "127.0.0.1:1", "members p and q have one address"),
        ("cluster.key", "other.key", "cannot read the key file"),
        ("cluster.key", "p.toml", "holds no key; it should be 64 hexadecimal digits"),
        ("[members]", "[ring]\nprobe = 0.0\n[members]", "[ring] probe = 0 is not between 0.001 and 600"),
        ("[members]", "[ring]\nspeed = 1\n[members]", "[ring] has no setting 'speed'"),
    ],
)
def test_a_mistake_in_the_file_is_one_clear_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "cluster.key").write_text(KEY)
    text = 'name = "p"\ndata = "data"\nkey = "cluster.key"\n[members]\np = "127.0.0.1:1"\nq = "127.0.0.1:2"\n'
    path = tmp_path / "p.toml"
    path.write_text(text)
    assert load(path).addresses == {"p": ("127.0.0.1", 1), "q": ("127.0.0.1", 2)}
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(BadConfig) as mistake:
        load(path)
    assert said in str(mistake.value)
    assert "\n" not in str(mistake.value)


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"cannot read .*: No such file or directory"):
        load(tmp_path / "none.toml")
