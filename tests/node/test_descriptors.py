"""File descriptors: a process asks for what its clients need, and promises no more than it was granted."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from greenline.node.descriptors import OWN

ASKS = """
import io, json, resource
from greenline.node.config import LogFormat
from greenline.node.descriptors import granted
from greenline.node.edge import Limits
from greenline.node.logs import Logger
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
said = io.StringIO()
limits = granted(Limits(connections=2000, http_connections=200), Logger("p", LogFormat.JSON, said))
now = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
print(json.dumps([now, limits.connections, limits.http_connections, said.getvalue()]))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "granted", "clients", "http", "is_told"),
    [
        (64, 8000, 2200 + OWN, 2000, 200, False),
        (5000, 8000, 5000, 2000, 200, False),
        (64, 1100 + OWN, 1100 + OWN, 1000, 100, True),
        (64, 100, 100, 1, 1, True),
    ],
)
def test_clients_are_promised_what_was_granted(
    soft: int, hard: int, granted: int, clients: int, http: int, is_told: bool
) -> None:
    """In a process of its own: what is given up cannot be had back."""
    said = subprocess.run(
        [sys.executable, "-c", ASKS.format(soft=soft, hard=hard)], capture_output=True, check=True, text=True
    )
    now, connections, http_connections, log = json.loads(said.stdout)
    assert (now, connections, http_connections) == (granted, clients, http)
    assert ("LimitNOFILE" in log) == is_told
