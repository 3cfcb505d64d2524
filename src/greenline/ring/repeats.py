"""Repeats: who lacks messages asks for them on the token (`rtr`), and any holder answers (5.2.1).

Serves the ring in its regular configuration and, in EVS, the recovery of old ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from greenline.kernel.effects import Broadcast, Effect, Trace
from greenline.kernel.identities import ConfId, ProcId
from greenline.ring.flow import Allowance
from greenline.ring.messages import MOST_RANGES, Request
from greenline.ring.processor import Ring


def repeat(
    ring: Ring,
    rtr: Iterable[Request],
    allowance: Allowance,
    to: tuple[ProcId, ...] | None,
    out: list[Effect],
    keep_foreign: bool = False,
) -> list[Request]:
    """Answer requests as far as we can. What remains of them?"""
    unanswered: list[Request] = []
    for request in rtr:
        if request.conf_id != ring.conf_id:
            unanswered += [request] if keep_foreign else []
            continue
        if request.server is not None and request.server != ring.me:
            unanswered.append(request)
            continue
        left: list[int] = []
        # What every member has needs no repeating: a late original served it.
        for seq in range(max(request.first, ring.safe_line + 1), min(request.last, ring.high_seq) + 1):
            packet = ring.store.get(seq)
            if packet is None or allowance.is_spent:
                left.append(seq)
            else:
                allowance.spend(len(packet.body))
                out.append(Trace("repeat", position=seq))
                out.append(Broadcast(packet, to=to))
        unanswered += _requests(ring.conf_id, left, None)
    return unanswered


def ask(ring: Ring, rtr: list[Request], lacking: list[int], holders: tuple[ProcId, ...]) -> tuple[Request, ...]:
    """Add what we lack to the requests.

    Who asks again names who should answer, another one each time: the holder that answered may be one that we cannot
    hear. It takes the place of the thesis's random choice among holders.
    """
    if not lacking:
        ring.asked.clear()
        return tuple(rtr[: 2 * MOST_RANGES])
    pending = {seq for each in rtr if each.conf_id == ring.conf_id for seq in _within(each, ring)}
    again = [seq for seq in lacking if seq in ring.asked and seq not in pending]
    first = [seq for seq in lacking if seq not in ring.asked and seq not in pending]
    server = None
    if again:
        ring.attempt += 1
        others = [name for name in holders if name != ring.me]
        server = others[ring.attempt % len(others)] if others else None
    ring.asked = set(lacking)
    mine = _requests(ring.conf_id, again, server) + _requests(ring.conf_id, first, None)
    return tuple((rtr + mine[:MOST_RANGES])[: 2 * MOST_RANGES])


def _within(request: Request, ring: Ring) -> range:
    return range(max(request.first, ring.my_aru + 1), min(request.last, ring.high_seq) + 1)


def _requests(conf_id: ConfId, seqs: list[int], server: ProcId | None) -> list[Request]:
    return [Request(conf_id, first, last, server) for first, last in ranges(seqs)]


def ranges(seqs: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted numbers as ranges, first and last."""
    found: list[tuple[int, int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = found[-1][0], seq
        else:
            found.append((seq, seq))
    return found
