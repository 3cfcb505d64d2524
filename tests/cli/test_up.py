"""`greenline up`: a cluster of three, a cut, a heal, a kill and a restart, from one terminal, in real processes."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from greenline.cli.local import Local
from tests.cli.command import Greenline

PATIENCE_S = 40.0


class Terminal:
    def __init__(self, place: Path) -> None:
        command = [sys.executable, "-m", "greenline.cli.main", "up", "-n", "3", "--dir", "local", "--database", "none"]
        self.popen = subprocess.Popen(command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.shown: list[str] = []
        self._rest = b""

    def type(self, text: str) -> None:
        assert self.popen.stdin is not None
        self.shown.clear()
        self.popen.stdin.write(text.encode() + b"\n")
        self.popen.stdin.flush()

    def until(self, *lines: str) -> None:
        """Until each of these was shown, since something was typed last."""
        assert self.popen.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        while not all(any(wanted in shown for shown in self.shown) for wanted in lines):
            assert time.monotonic() < deadline, self.shown
            ready, _, _ = select.select([self.popen.stdout], [], [], 0.1)
            if ready:
                *more, self._rest = (self._rest + os.read(self.popen.stdout.fileno(), 65_536)).split(b"\n")
                self.shown += [line.decode() for line in more]


def until_held(path: Path) -> None:
    """Until somebody else has locked it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return
    raise AssertionError(f"nobody has locked {path}")


@pytest.mark.slow
def test_a_cluster_of_three_a_cut_a_heal_a_kill_and_a_restart(greenline: Greenline, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    with terminal.popen:
        terminal.until(*(f"{name}  in " for name in "pqr"), "{p q r}")
        terminal.type("p hello")
        terminal.until(*(f"{name}  p: hello" for name in "pqr"))

        terminal.type("cut p q | r")
        terminal.until("r  in r", "{p q}")
        terminal.type("r alone")
        terminal.until("r  r: alone")
        terminal.type("heal")
        terminal.until(*(f"{name}  in " for name in "pqr"), "{p q r}")

        terminal.type("kill q")
        terminal.until("q  killed", "{p r}")
        terminal.type("restart q")
        terminal.until("q  in ", "{p q r}")
        terminal.type("status")
        terminal.until("q     up     2  Operational", "p     up", "r     up")
        terminal.type("q many\n" * 50)
        terminal.until("r  q: many", "delivered a second: p ")

        place = ("--dir", tmp_path / "local")
        assert greenline("kill", "r", *place).status == 0
        assert greenline("restart", "r", *place).status == 0
        terminal.until("{p q}", "r  in ")
        assert greenline("kill", "r", *place).status == 0
        command = [sys.executable, "-m", "greenline.cli.main", "restart", "r", "--dir", "local"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as late:
            until_held(tmp_path / "local" / ".door")
            terminal.type("quit")  # while r is starting
            late.communicate(timeout=PATIENCE_S)
        assert terminal.popen.wait(PATIENCE_S) == 0
    local = Local(tmp_path / "local")
    assert [local.pid(name) for name in local.names] == [None, None, None], "also the one that another has started"


UP = [sys.executable, "-m", "greenline.cli.main", "up", "-n", "1", "--dir", "local", "--database", "none"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_with_nobody_to_type_it_runs_until_it_is_told_to_stop(tmp_path: Path, how: signal.Signals) -> None:
    """As a script starts it, with an ampersand."""
    with subprocess.Popen(UP, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as up:
        assert up.stderr is not None
        while "nobody is there to type" not in up.stderr.readline():
            assert up.poll() is None
        local = Local(tmp_path / "local")
        assert local.pid("p") is not None
        up.send_signal(how)
        assert up.wait(PATIENCE_S) == 0
    assert local.pid("p") is None


@pytest.mark.slow
def test_what_is_piped_into_it_is_carried_out_to_its_last_line_and_ends_it(tmp_path: Path) -> None:
    done = subprocess.run(UP, cwd=tmp_path, input="status\np hello\nkill p", capture_output=True, text=True)
    assert done.returncode == 0
    assert "p  killed" in done.stdout, "though nothing ends its line"


def test_a_directory_with_another_cluster_is_not_touched(greenline: Greenline, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("")
    answer = greenline("up", "-n", 2, "--dir", tmp_path)
    assert answer.status == 2
    assert "holds a cluster of x; ask for 1 nodes, or for another --dir" in answer.err
    assert "a local cluster has 1 to 26 nodes" in greenline("up", "-n", 0).err
