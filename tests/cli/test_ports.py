from __future__ import annotations

import socket
import subprocess
import sys

from greenline.cli.ports import free_ports

ASK = "import sys; from greenline.cli.ports import free_ports; print(*free_ports(40), flush=True); sys.stdin.read()"


def test_clusters_that_are_made_at_the_same_time_have_ports_of_their_own() -> None:
    """Though none of them listens yet."""
    asked = [
        subprocess.Popen([sys.executable, "-c", ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    given = [list(map(int, each.stdout.readline().split())) for each in asked if each.stdout]
    for each in asked:
        each.communicate()
    ports = [port for some in given for port in some] + free_ports(100)
    assert len(ports) == len(set(ports)) == 220


def test_a_port_that_somebody_has_is_left_out() -> None:
    (before,) = free_ports(1)
    with socket.socket(type=socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", before + 1))
        assert free_ports(1) != [before + 1]
