"""Golden conversations of the Ring: what we did, and all that followed, in text files that a person can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenline.simulation.conversation import converse
from greenline.simulation.subjects import RING

KEPT = sorted((Path(__file__).parent / "conversations").glob("*.txt"))


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_conversation_goes_as_it_went(kept: Path, request: pytest.FixtureRequest) -> None:
    script = kept.read_text()
    today = converse(script, RING)
    if request.config.getoption("--renew"):
        kept.write_text(today)
    else:
        assert today == script
