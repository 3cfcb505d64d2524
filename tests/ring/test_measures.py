"""What `greenline bench ring --simulated` counts: the thesis's figures, in virtual time."""

from __future__ import annotations

import pytest

from greenline.simulation.measuring import deaf_receiver, false_changes, measures


@pytest.mark.slow
def test_the_figures_of_the_thesis_come_out_in_virtual_time() -> None:
    """Agreed delivery after about half a rotation, safe after about two, throughput flat in the number of members."""
    found = {}
    for measure in measures():
        found[measure.what.strip()] = measure.value
        if measure.what.startswith("throughput"):
            break
    agreed = [value for what, value in found.items() if "rotations to agreed" in what]
    safe = [value for what, value in found.items() if "rotations to safe" in what]
    assert len(agreed) == len(safe) == 8
    assert all(0.5 <= value <= 0.75 for value in agreed)
    assert all(1.6 <= value <= 2.2 for value in safe)
    assert found["throughput, spread over 2 to 16 members"] < 0.03


def test_memory_is_bounded_with_a_deaf_receiver_and_far_sites_are_not_taken_for_dead() -> None:
    assert deaf_receiver().value < 640
    assert false_changes(hours=0.1).value == 0
