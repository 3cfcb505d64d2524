"""Knowledge: what the State messages of a meeting, taken together, say (figure 6.12, A.7).

Pure functions of the messages as they were sent, so that everybody comes to the same. Departs from the papers: the
first disjunct of step 3 releases servers that it must not (GAP 2), and no bit is ever set in step 4 (GAP 1); R1 to R3
stand in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import msgspec

from greenline.kernel.identities import ProcId, in_order
from greenline.replication.messages import Era, Prim, State, Vulnerable, Yellow
from greenline.replication.port import BundleId

IsGreen = Callable[[BundleId], bool]


@dataclass(frozen=True, slots=True)
class Learned:
    prim: Prim
    attempt_index: int
    yellow: Yellow
    vulnerable: Mapping[ProcId, Vulnerable]
    """Of every member, after the meeting."""
    released_by: Mapping[ProcId, str]
    """Who is vulnerable no more, and by which rule."""
    era: Era

    @property
    def is_anybody_vulnerable(self) -> bool:
        return any(each.is_valid for each in self.vulnerable.values())


def compute_knowledge(states: Mapping[ProcId, State], is_green: IsGreen) -> Learned:
    prim = max((state.prim for state in states.values()), key=lambda each: each.rank)
    updated = [state for _, state in sorted(states.items()) if state.prim == prim]
    vulnerable: dict[ProcId, Vulnerable] = {}
    released_by: dict[ProcId, str] = {}
    for server, state in sorted(states.items()):
        vulnerable[server], why = _fate(server, states, prim)
        if state.vulnerable.is_valid and why:
            released_by[server] = why
    return Learned(
        prim=prim,
        attempt_index=max(state.attempt_index for state in updated),
        yellow=_common_yellow([state.yellow for state in updated if state.yellow.is_valid], is_green),
        vulnerable=vulnerable,
        released_by=released_by,
        era=max((state.era for _, state in sorted(states.items())), key=lambda era: era.epoch),
    )


def _common_yellow(lists: list[Yellow], is_green: IsGreen) -> Yellow:
    """What all of them have, in the order that they share; nobody outside can have ordered more (GAP 12, 13)."""
    if not lists:
        return Yellow()
    common = set(lists[0].ids).intersection(*(each.ids for each in lists))
    return Yellow(True, tuple(each for each in lists[0].ids if each in common and not is_green(each)))


def _fate(server: ProcId, states: Mapping[ProcId, State], prim: Prim) -> tuple[Vulnerable, str]:
    """What becomes of a server's vulnerability, and why; judged from what was sent, not from others' fates."""
    mine = states[server].vulnerable
    if not mine.is_valid:
        return mine, ""
    if is_superseded(mine, prim):
        return _invalid(mine), "R1"
    if has_witness(server, mine, states):
        return _invalid(mine), "R2"
    bits = accounted(mine, states)
    if bits.issuperset(mine.set):
        return _invalid(mine), "R3"
    return msgspec.structs.replace(mine, bits=in_order(bits)), ""


def is_superseded(mine: Vulnerable, prim: Prim) -> bool:
    """R1: somebody knows a component newer than this attempt could have made, or another of its index.

    An operator's override is newer than any attempt before it.
    """
    if prim.epoch != mine.epoch:
        return prim.epoch > mine.epoch
    after = mine.prim_index + 1
    is_another = (prim.attempt_index, prim.servers) != (mine.attempt_index, mine.set)
    return prim.prim_index > after or (prim.prim_index == after and is_another)


def has_witness(server: ProcId, mine: Vulnerable, states: Mapping[ProcId, State]) -> bool:
    """R2: somebody of the attempt is here and not vulnerable to it: it knows how it ended. The absent know nothing."""
    return any(
        not (state.vulnerable.is_valid and state.vulnerable.key == mine.key)
        for other, state in states.items()
        if other in mine.set and other != server
    )


def accounted(mine: Vulnerable, states: Mapping[ProcId, State]) -> set[ProcId]:
    """R3: with whom of the attempt knowledge is merged by now, over any chain of meetings."""
    bits: set[ProcId] = set()
    for other, state in states.items():
        if state.vulnerable.is_valid and state.vulnerable.key == mine.key:
            bits |= {other, *state.vulnerable.bits}
    return bits


def _invalid(vulnerable: Vulnerable) -> Vulnerable:
    return msgspec.structs.replace(vulnerable, is_valid=False)


def distinguished(prim: Prim) -> ProcId:
    """Who breaks a tie: the heaviest, of those the first by name."""
    _, server = min(zip((-weight for weight in prim.weights), prim.servers, strict=True))
    return server


def has_quorum(members: Collection[ProcId], prim: Prim) -> bool:
    """Dynamic linear voting: more than half of the last primary component, or half of it and the distinguished one."""
    weights = dict(zip(prim.servers, prim.weights, strict=True))
    here = sum(weight for server, weight in weights.items() if server in members)
    everybody = sum(weights.values())
    return 2 * here > everybody or (2 * here == everybody and distinguished(prim) in members)
