"""The scribe: writes the rows of one life, in its own order, about what passes the group communication port.

It belongs to the router and not to a core: what it writes is evidence. A core may add witnesses, through it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from crc32c import crc32c

from greenline.kernel import evidence
from greenline.kernel.effects import Trace
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId, in_order
from greenline.kernel.ports import Deliver, Multicast, RegularConf, Sent, TransitionalConf


class Depth(StrEnum):
    """How much of a life goes into the trace."""

    FULL = "full"
    CONFIGURATIONS = "configurations"
    """Configurations, phases, starts and halts, and the digests that cores give."""


_TURNED_DOWN = frozenset(
    {evidence.START, evidence.REGULAR, evidence.TRANSITIONAL, evidence.HALT, evidence.PHASE, evidence.DIGEST}
)


class Scribe:
    def __init__(self, me: ProcId, depth: Depth) -> None:
        self.me = me
        self.depth = depth
        self.incarnation = 0
        self.conf: str | None = None
        """The configuration last told through the port: what a crash happens in."""
        self._rows = 0

    def begin(self, incarnation: int) -> None:
        self.incarnation = incarnation

    def note(self, now: float, kind: str, layer: str | None, conf: str | None, detail: str | None) -> Row | None:
        return self._row(now, kind, layer, conf, detail=detail)

    def generated(self, now: float, layer: str, conf: str | None, call: Multicast, refused: bool) -> Row | None:
        """The port's user asked for a message; if the provider was busy, it was not generated."""
        if self.depth is not Depth.FULL:
            return None
        kind = evidence.BUSY if refused else evidence.GENERATE
        message, service = str(call.message), call.service.value
        return self._row(now, kind, layer, conf, message=message, service=service, digest=_digest(call.payload))

    def passed(self, now: float, layer: str, conf: str | None, upcall: Any) -> Row | None:
        """Something was told through the port; nothing is written of what is not the port's."""
        match upcall:
            case Deliver() | Sent() if self.depth is not Depth.FULL:
                return None  # the hot path: not even a digest is made
            case Deliver(message, service, payload, seq, sub):
                return self._row(
                    now,
                    evidence.DELIVER,
                    layer,
                    conf,
                    message=str(message),
                    service=service.value,
                    position=seq,
                    sub=sub,
                    digest=_digest(payload),
                )
            case Sent(message):
                return self._row(now, evidence.SEND, layer, conf, message=str(message))
            case RegularConf(told) | TransitionalConf(told):
                self.conf = conf
                kind = evidence.REGULAR if isinstance(upcall, RegularConf) else evidence.TRANSITIONAL
                return self._row(now, kind, layer, conf, members=" ".join(in_order(told.members)))
            case _:
                return None

    def witness(self, now: float, layer: str, conf: str | None, effect: Trace) -> Row | None:
        """What a core wants seen. It may not write evidence."""
        assert effect.kind not in evidence.EVIDENCE, f"{layer} may not write evidence of kind {effect.kind}"
        return self._row(
            now,
            effect.kind,
            layer,
            conf,
            detail=effect.detail,
            message=None if effect.message is None else str(effect.message),
            members=None if effect.members is None else " ".join(effect.members),
            colour=effect.colour,
            position=effect.position,
            sub=effect.sub,
            digest=effect.digest,
        )

    def outside(
        self,
        now: float,
        port: str,
        kind: str,
        *,
        message: str | None = None,
        position: int | None = None,
        sub: int | None = None,
        digest: str | None = None,
        detail: str | None = None,
    ) -> Row | None:
        """What a port outside did for this node: evidence, in the node's own order."""
        columns = (message, None, None, position, sub, None, digest, detail)
        return self._row(now, kind, port, self.conf, *columns)

    def _row(
        self,
        now: float,
        kind: str,
        layer: str | None,
        conf: str | None,
        message: str | None = None,
        service: str | None = None,
        colour: str | None = None,
        position: int | None = None,
        sub: int | None = None,
        members: str | None = None,
        digest: str | None = None,
        detail: str | None = None,
    ) -> Row | None:
        if self.depth is not Depth.FULL and kind not in _TURNED_DOWN:
            return None
        index = self._rows
        self._rows = index + 1
        place = (self.me, self.incarnation, index, now, kind, layer, conf)
        return Row(*place, message, service, colour, position, sub, members, digest, detail)


def _digest(payload: bytes) -> str:
    return f"{crc32c(payload):08x}"
