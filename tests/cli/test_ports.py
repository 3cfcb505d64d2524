from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from greenline.cli import ports
from greenline.cli.ports import free_ports

ASK = "import sys; from greenline.cli.ports import free_ports; print(*free_ports(40), flush=True); sys.stdin.read()"


def test_clusters_that_are_made_at_the_same_time_have_ports_of_their_own() -> None:
    """Though none of them listens yet."""
    asked = [
        subprocess.Popen([sys.executable, "-c", ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    given = [list(map(int, each.stdout.readline().split())) for each in asked if each.stdout]
    every = [port for some in given for port in some] + free_ports(100)
    for each in asked:
        each.communicate()
    assert len(every) == len(set(every)) == 220


def test_a_port_that_somebody_has_for_datagrams_is_not_free() -> None:
    (port,) = free_ports(1)
    assert ports._is_free(port)
    with socket.socket(type=socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", port))
        assert not ports._is_free(port)


def test_ports_of_those_who_may_be_down_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = free_ports(3)
    monkeypatch.setattr(ports, "_ports", iter((a, b, c)))
    assert free_ports(2, {b}) == [a, c]
    with pytest.raises(OSError, match="no port is free"):
        free_ports(1)
