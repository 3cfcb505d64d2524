"""Garbage: whoever makes a million rows has Python look for circles among them again and again, a third of the time.

Rows, keys and values refer to nothing that refers to them: they go when nobody has them any more.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """For some seconds at most, in which little else is made. Threads may do so at a time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
