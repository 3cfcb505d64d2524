"""What holds between any two events, in every state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenline.replication.regprim import RegPrim
from greenline.replication.replica import Replica
from greenline.replication.transprim import TransPrim

if TYPE_CHECKING:
    from greenline.replication.core import Phase


def check(phase: Phase) -> None:
    replica = phase.server.replica
    check_queue(replica)
    if isinstance(phase, RegPrim | TransPrim):
        assert replica.vulnerable.is_valid, "in a primary component and not vulnerable"
        assert replica.prim.servers == phase.component.members, "another primary component than it knows"
        assert not replica.yellow.is_valid, "calls its yellow list complete too early"
    if isinstance(phase, RegPrim):
        assert not replica.yellow.ids, "yellow in a regular configuration"


def check_queue(replica: Replica) -> None:
    """Cheap: it runs after every event, in production too."""
    assert len(replica.digests) == len(replica.order) + 1, "an order without its digests"
    assert replica.durable_green <= replica.forced_green == replica.green, "a green mark that no barrier covers"
    assert replica.index == replica.red_cut.get(replica.me, 0) + len(replica.ongoing), "an own bundle is lost"
