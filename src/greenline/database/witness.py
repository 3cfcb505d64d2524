"""What a database did for its replica, as rows of evidence: the same words in the simulator and on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from greenline.database.sessions import STORED_BYTES
from greenline.kernel import evidence
from greenline.kernel.actions import Outcome, opened
from greenline.kernel.database import Applied, Apply, Committed, Open, Opened, Restore
from greenline.replication.messages import decode_basis


def rows_of(request: Any, answer: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The kind and the columns of each, all of one moment."""
    match request, answer:
        case Open(), Opened(position, basis=basis):
            yield evidence.OPENED, {"position": position}
            if _was_restored(position, basis):
                # The life before may have died when that was done, and nobody was told.
                yield evidence.RESTORED, {"position": position}
        case Apply(_, bundle), Applied(position, _, replies):
            for sub, (action, outcome) in enumerate(zip(opened(bundle), replies, strict=True)):
                if action is not None:
                    detail = "again" if outcome.is_again else outcome.verdict.value
                    place = {"message": str(action), "position": position, "sub": sub}
                    yield evidence.APPLY, {**place, "digest": outcome_digest(outcome), "detail": detail}
        case Restore(), Opened(position):
            yield evidence.RESTORED, {"position": position}
        case _, Committed(position):
            yield evidence.COMMIT, {"position": position}


def _was_restored(position: int, basis: bytes) -> bool:
    """It is what a snapshot has made it, and nothing since."""
    found = decode_basis(basis) if basis else None
    return found is not None and found.position == position


def outcome_digest(outcome: Outcome) -> str:
    """What an outcome comes to, in the rows of databases and of clients alike."""
    value = outcome.value if len(outcome.value) <= STORED_BYTES else b""  # of a longer one only the verdict is kept
    return blake2b(outcome.verdict.encode() + b" " + value, digest_size=8).hexdigest()
