"""Seeds that once failed, each with the reason. They are played as they were drawn, and must never fail again."""

from __future__ import annotations

import pytest

from greenline.simulation.farm import Batch, Judging
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import End
from greenline.simulation.subjects import RING


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "seed"),
    [
        pytest.param(3, 11, id="a crash between two steps of an installation"),
        pytest.param(3, 29, id="a member that went on without us was not believed gone"),
        pytest.param(3, 122, id="who is in less of a hurry was given up for ever"),
        pytest.param(3, 73, id="a timer a hair too early set itself for ever"),
        pytest.param(5, 25099, id="one slow rotation made a lost token hard to notice"),
        pytest.param(5, 9495, id="a node that had halted was killed once more"),
        pytest.param(5, 1851, id="an idle token raced round while representatives negotiated"),
    ],
)
def test_a_seed_that_failed_does_not_fail_again(nodes: int, seed: int) -> None:
    (report,) = Judging().reports(Batch((draw_plan(RING, seed, nodes, "storm"),)))
    assert report.broken == []
    assert report.end is End.QUIET
