"""What holds between any two events, in every phase. Cheap enough to be checked always."""

from __future__ import annotations

from greenline.ring.commit import Commit
from greenline.ring.evs import EVS
from greenline.ring.form import Form
from greenline.ring.gather import Gather
from greenline.ring.operational import Operational
from greenline.ring.processor import Ring

AnyPhase = Operational | Gather | Commit | Form | EVS


def check(phase: AnyPhase) -> None:
    processor = phase.processor
    ring = processor.ring
    check_ring(ring)
    assert processor.me in processor.my_obligation, "is not obliged to deliver what it said itself"
    assert processor.my_counter >= ring.conf_id.counter, "has forgotten the counter of its own configuration"
    if isinstance(phase, Operational):
        assert ring.is_alive, "is operational on a ring that it gave up"
    if isinstance(phase, EVS):
        check_ring(phase.new)
        assert phase.new.delivered == 0, "delivered a message of a configuration that is not installed"


def check_ring(ring: Ring) -> None:
    my_aru, discarded = ring.my_aru, ring.discarded
    assert discarded <= ring.delivered <= my_aru, "delivered past a hole, or discarded what is not delivered"
    assert discarded <= ring.safe_line <= my_aru, "calls safe what it lacks, or discarded what somebody may need"
    assert my_aru <= ring.high_seq, "has what nobody said"
    assert len(ring.store) <= ring.high_seq - discarded, "keeps what it discarded"
