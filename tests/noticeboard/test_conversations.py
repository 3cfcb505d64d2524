"""Golden conversations: what we did, and all that followed, in text files that a person can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenline.simulation.conversation import converse

KEPT = sorted((Path(__file__).parent / "conversations").glob("*.txt"))


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_conversation_goes_as_it_went(kept: Path, request: pytest.FixtureRequest) -> None:
    script = kept.read_text()
    today = converse(script)
    if request.config.getoption("--renew"):
        kept.write_text(today)
    else:
        assert today == script


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("> dance", "no command 'dance'"),
        ("> settle", "begins with: > start p q r"),
        ("> start p q\n> crash x", "no process 'x' here, only p q"),
        ('> start p q\n> crash p\n> p multicasts "x"', "p is down or paused"),
        ("> start p q\n> restart p", "p is not down"),
    ],
)
def test_a_script_that_makes_no_sense_is_refused(script: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        converse(script)
