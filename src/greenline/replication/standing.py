"""Standing: where a replica stands, for people who ask. In a total crash it says who is still awaited."""

from __future__ import annotations

import msgspec

from greenline.kernel.identities import ProcId, in_order
from greenline.replication.catching_up import CatchingUp
from greenline.replication.core import Boot, Engine, Phase
from greenline.replication.discarding import left_behind, white_line
from greenline.replication.joining import Transfer
from greenline.replication.knowledge import has_quorum
from greenline.replication.messages import Prim
from greenline.replication.nonprim import Farewell, NonPrim
from greenline.replication.regprim import RegPrim
from greenline.replication.replica import Replica
from greenline.replication.transprim import TransPrim


class Standing(msgspec.Struct, frozen=True):
    state: str
    prim: Prim | None = None
    """The last primary component that it knows; its own if `is_primary`."""
    is_primary: bool = False
    here: tuple[ProcId, ...] = ()
    """Who is in its configuration."""
    awaited: tuple[ProcId, ...] = ()
    """Who must be met before there can be a primary component again, some or all of them."""
    because: str = ""
    """Why there is no primary component here."""
    green: int = 0
    reds: int = 0
    white: int = 0
    green_lines: tuple[tuple[ProcId, int], ...] = ()
    left_behind: tuple[ProcId, ...] = ()
    """Servers that lack what is discarded here: they need a snapshot."""
    is_far: bool = False
    """It is catching up, and takes no part in a primary component until it is near."""
    kept_bytes: int = 0
    """Of the bundles that it keeps, since somebody may lack them."""
    waiting: int = 0
    """Submissions that are not in a bundle yet."""


def standing(engine: Engine) -> Standing:
    phase = engine.phase
    if isinstance(phase, Boot):
        return Standing("Boot")
    replica = phase.server.replica
    here = phase.place.conf.members if phase.place is not None else (replica.me,)
    is_primary = isinstance(phase, RegPrim)
    awaited, because = _awaited(phase, replica, here)
    return Standing(
        state=type(phase).__name__,
        prim=replica.prim,
        is_primary=is_primary,
        here=here,
        awaited=awaited,
        because=because,
        green=replica.green,
        reds=len(replica.reds()),
        white=white_line(replica),
        green_lines=tuple(sorted(replica.green_lines.items())),
        left_behind=left_behind(replica),
        is_far=isinstance(phase, NonPrim) and isinstance(phase.way, CatchingUp | Transfer),
        kept_bytes=replica.live_bytes,
        waiting=len(phase.server.requests.waiting),
    )


def _awaited(phase: Phase, replica: Replica, here: tuple[ProcId, ...]) -> tuple[tuple[ProcId, ...], str]:
    """After an attempt whose end is unknown: everybody of it who was not met since; else the last component's rest."""
    if isinstance(phase, RegPrim | TransPrim):
        return (), ""
    if not isinstance(phase, NonPrim) or phase.is_transitional:
        return (), "the configuration has just changed"
    if replica.is_new and phase.way is None:
        return (), "we are new, and there is nobody here whom we could join"
    vulnerable = replica.vulnerable
    if vulnerable.is_valid:
        missing = set(vulnerable.set) - set(vulnerable.bits) - {replica.me}
        return in_order(missing), "they agreed to a component with us, and nobody here knows what became of it"
    match phase.way:
        case Farewell():
            return (), "we have left"
        case Transfer(source=source):
            return (), f"we have nothing that we could go on from, and are being given a snapshot by {source}"
        case CatchingUp():
            return (), "we are far behind the others, and are catching up"
    if has_quorum(here, replica.prim):
        return (), "somebody here is far behind, does not know what became of an attempt, or all are too light"
    missing = set(replica.prim.servers) - set(here)
    return in_order(missing), "they were in the last primary component, and those here are no quorum of it"
