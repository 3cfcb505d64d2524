"""Snapshots that a replica takes over while its own database is still at work."""

from __future__ import annotations

from typing import Any

import pytest

from greenline.kernel.identities import ProcId
from greenline.simulation.scenarios.stage import Stage, are_in, ends_as_one, replica


@pytest.mark.parametrize("turn", [27, 30, 33])
def test_a_chunk_that_is_gone_when_it_is_to_be_used_is_asked_for_again(turn: int) -> None:
    """r is left behind, and its slow database still applies what its log has: what it had when it compared it may have
    changed by the time it is to become the snapshot."""
    stage = Stage()
    limits: dict[str, Any] = {"retain_after_white": 0, "retain_at_most": 4, "far": 3, "unapplied": 1, "pieces": 1}
    servers = stage.script("p q r", line_interval_s=0.01, **limits).form("p q r").settle()
    databases = servers["r"]._databases
    usual = databases._a_while

    def slow_at_r(name: ProcId) -> float:
        return 0.02 if name == "r" else usual(name)

    databases._a_while = slow_at_r  # type: ignore[method-assign]
    for number in range(40):
        servers["p"].submit(f"write r1 {1 if number < turn else 2}")
        servers.wait(0.01)
    servers.form("p q | r").wait(0.05)
    for _ in range(12):
        servers["p"].submit("write r1 1")
        servers.wait(0.03)
    servers.wait(0.2)
    assert servers["r"].position < replica(servers, "r").green < replica(servers, "p").low

    servers.form("p q r").settle()
    transfers = [row for row in servers.rows if row.kind == "transfer" and row.process == "r"]
    assert len(transfers) == 2, "it has compared again"
    assert are_in(servers, "RegPrim", "p q r")
    ends_as_one(servers)
