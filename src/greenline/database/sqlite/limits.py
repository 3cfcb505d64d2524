"""Limits: how much a statement, an answer or a session may take before it is refused.

What decides the outcome of an action must be equal at every replica: `steps`, `value_bytes` and `kept_bytes` are a
part of the protocol and are not for a site to choose. The others are each replica's own.
"""

from __future__ import annotations

import msgspec

MEBIBYTE = 1024 * 1024
OF_A_SITE = ("readers", "query_seconds", "result_bytes", "cache_bytes", "wal_bytes", "checkpoint_seconds")
"""Which of them a site may choose."""


class Limits(msgspec.Struct, frozen=True):
    # Equal at every replica.
    steps: int = 50_000_000
    """Of SQLite's virtual machine, for all statements of an action."""
    value_bytes: int = 4 * MEBIBYTE
    """What the results of an action may come to."""
    kept_bytes: int = 65_536
    """What is kept of the outcomes of one session."""

    # Each replica's own.
    trial_steps: int = 5_000_000
    """Of a trial: it holds the writer."""
    readers: int = 2
    query_seconds: float = 10.0
    result_bytes: int = 8 * MEBIBYTE
    cached_sessions: int = 10_000
    transaction_seconds: float = 0.02
    """A transaction that is open for longer is to be committed before anything else is applied."""
    cache_bytes: int = 64 * MEBIBYTE
    """Of pages, for the writer."""
    wal_bytes: int = 16 * MEBIBYTE
    """A log that is longer is brought to the main file at once."""
    wal_restart_bytes: int = 64 * MEBIBYTE
    """A log that is longer is to begin anew: the writer finishes the checkpoint itself."""
    wal_most_bytes: int = 256 * MEBIBYTE
    """With a log that is longer, no query begins until those that run have ended, and the log could begin anew."""
    wal_rest_frames: int = 250
    """So much may be left of it for the writer."""
    checkpoint_seconds: float = 1.0
    """So long after a commit it is durable at the latest, if nothing is in the way."""
    dirty_attempts: int = 3
    """So often a dirty query is begun again because something was committed; then it goes on with what it has."""
