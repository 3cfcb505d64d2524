"""Three nodes of the spine, each in a process of its own, that can be killed, stopped and started again."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.lab.sites import Lab

from greenline.cli.ports import free_ports

NAMES = ("p", "q", "r")
LOOPBACK = "127.0.0.1"


class Cluster:
    def __init__(
        self,
        place: Path,
        *,
        mtu: int | None = None,
        delay: float = 0.0,
        ring: dict[str, Any] | None = None,
        trace: bool = False,
        profile: str | None = None,
        lab: Lab | None = None,
    ) -> None:
        """With a lab, each node is at its site; otherwise all are on loopback."""
        self._lab = lab
        hosts = {name: lab.addresses[name][0] if lab is not None else LOOPBACK for name in NAMES}
        self.ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
        """Of the nodes, for each other."""
        self.clients = {name: (hosts[name], port) for name, port in zip(NAMES, free_ports(len(NAMES)), strict=True)}
        """Where each serves clients."""
        self._plan = {
            "addresses": {name: (hosts[name], port) for name, port in self.ports.items()},
            "clients": self.clients,
            "place": str(place),
            "mtu": mtu,
            "delay": delay,
            "ring": ring or {},
            "trace": trace,
            "key": secrets.token_hex(32),
        }
        self._profile = profile
        self.processes = {name: self._started(name) for name in NAMES}
        for name in NAMES:
            self.wait_for(name, NAMES)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def wait_for(self, name: str, members: tuple[str, ...]) -> None:
        """Until this node is in a configuration of exactly these."""
        while json.loads(self._line(name)).get("members") != list(members):
            pass

    def configurations(self, name: str) -> int:
        """How many it has been in, since this was asked last or waited for."""
        self.signal(name, signal.SIGUSR2)
        found = 0
        while "so_far" not in (said := json.loads(self._line(name))):
            found += "members" in said
        return found

    def signal(self, name: str, number: signal.Signals) -> None:
        self.processes[name].send_signal(number)

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()

    def restart(self, name: str) -> None:
        self.processes[name] = self._started(name)

    def kept(self, name: str) -> int:
        """How many messages this node has on disk, in order."""
        self.signal(name, signal.SIGUSR2)
        said: dict[str, int] = {}
        while "so_far" not in said:
            said = json.loads(self._line(name))
        return said["so_far"]

    def begin_counting(self) -> None:
        for name in NAMES:
            self.signal(name, signal.SIGUSR1)

    def end(self) -> dict[str, Any]:
        """Stop them all. What do they tell of themselves?"""
        return {name: self._ended(name) for name in NAMES}

    def _ended(self, name: str) -> dict[str, Any]:
        self.signal(name, signal.SIGTERM)
        said: dict[str, Any] = {}
        while "kept" not in said:
            said = json.loads(self._line(name))
        self.processes[name].wait(10)
        return said

    def _line(self, name: str) -> bytes:
        out = self.processes[name].stdout
        assert out is not None
        line = out.readline()
        assert line, f"{name} has ended"
        return line

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "benchmarks.spine.node", name, json.dumps(self._plan)]
        command += [self._profile] if self._profile and name == "p" else []
        if self._lab is not None:
            command = self._lab.command(name, command)
        return subprocess.Popen(command, stdout=subprocess.PIPE)
