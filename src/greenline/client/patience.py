"""Patience: how long to wait before something is tried again, and when to try it elsewhere."""

from __future__ import annotations

import random

from greenline.access import wire

TRIES = 3
"""At one node that has too much to do; then another is asked."""
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 2.0
_OF_THE_NODE = frozenset({"closed", "stopped", "no primary"})


def pause_s(failures: int) -> float:
    """Twice as long after each failure, and never the same for two clients that failed together."""
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(failures, 16)) * random.uniform(0.5, 1)


def is_about_the_node(no: wire.No) -> bool:
    """It would refuse whatever was asked."""
    return no.kind in _OF_THE_NODE
