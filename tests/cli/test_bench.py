"""`greenline bench`: what it says when asked for something that it cannot count."""

from __future__ import annotations

from tests.cli.command import Greenline


def test_it_says_what_it_cannot_count(greenline: Greenline) -> None:
    assert "there is nothing to count of 'lansis'; there is ring" in greenline("bench", "lansis", "--simulated").err
    answer = greenline("bench", "ring")
    assert answer.status == 2
    assert "only --simulated is counted here" in answer.err
