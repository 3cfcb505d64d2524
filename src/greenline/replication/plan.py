"""The plan of an exchange: who gives what to whom, so that every needed bundle travels once.

A pure function of the State messages of a meeting, hence the same at everybody. Phase 1 brings the global order up to
that of the most updated server, phase 2 the reds. Who is too far from the others takes no part: for this meeting it is
as if it were not there (`catching_up` brings it near, `joining` gives it a snapshot). The papers leave open who is most
updated among equals and what "turn" and "end of retransmission" are (GAP 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from greenline.kernel.identities import ProcId, in_order
from greenline.replication.messages import Cut, State


@dataclass(frozen=True, slots=True)
class RedShare:
    """The holder sends a creator's bundles from `first` to `last`."""

    holder: ProcId
    creator: ProcId
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    members: tuple[ProcId, ...]
    """Who takes part."""
    far: tuple[ProcId, ...]
    source: ProcId
    """The most updated server: who gives the greens. Nobody, if all are newcomers."""
    first: int
    last: int
    """The positions that it gives; none if first > last."""
    reds: tuple[RedShare, ...]

    def senders(self, phase: int) -> set[ProcId]:
        if phase == 1:
            return {self.source} if self.first <= self.last else set()
        return {share.holder for share in self.reds}


def draw_plan(states: Mapping[ProcId, State]) -> Plan:
    """Everybody's State messages to a plan. Newcomers have nothing, and take no part."""
    members = {name: state for name, state in states.items() if not state.is_new}
    if not members:
        return Plan((), in_order(states), "", 1, 0, ())
    far = min(state.far for state in members.values())
    most_updated = max(state.green for state in members.values())
    members = {name: state for name, state in members.items() if most_updated - state.green <= far}
    members = _without_the_rich(members, far)
    members = _within_reach(members)
    source = _source(members)
    green = members[source].green
    return Plan(
        members=in_order(members),
        far=in_order(states.keys() - members.keys()),
        source=source,
        first=min(state.green for state in members.values()) + 1,
        last=green,
        reds=tuple(_red_shares(members, source)),
    )


def _source(members: Mapping[ProcId, State]) -> ProcId:
    """Of the most updated, who keeps the longest log, then the first by name."""
    return min(members, key=lambda name: (-members[name].green, members[name].low, name))


def _within_reach(members: Mapping[ProcId, State]) -> dict[ProcId, State]:
    """Without those who lack what the source has discarded: they were left behind, and need a snapshot."""
    low = members[_source(members)].low
    return {name: state for name, state in members.items() if state.green >= low}


def _without_the_rich(members: Mapping[ProcId, State], far: int) -> dict[ProcId, State]:
    """Without those who have more reds that the last primary component lacks than anybody should wait for."""
    newest = max(state.prim.rank for state in members.values())
    known: dict[ProcId, int] = {}
    for state in members.values():
        if state.prim.rank == newest:
            raise_to(known, state.red_cut)
    return {
        name: state
        for name, state in members.items()
        if sum(max(0, index - known.get(creator, 0)) for creator, index in state.red_cut) <= far
    }


def _red_shares(members: Mapping[ProcId, State], source: ProcId) -> Iterator[RedShare]:
    """For every creator: from what the least of us has, greens included, to what the most of us has."""
    green_cut = dict(members[source].green_cut)
    cuts = {name: dict(state.red_cut) for name, state in members.items()}
    for creator in sorted({creator for cut in cuts.values() for creator in cut}):
        has = {name: max(cut.get(creator, 0), green_cut.get(creator, 0)) for name, cut in cuts.items()}
        least, most = min(has.values()), max(has.values())
        if least < most:
            holder = source if has[source] == most else min(name for name, index in has.items() if index == most)
            yield RedShare(holder, creator, least + 1, most)


def raise_to(cut: dict[ProcId, int], other: Cut) -> None:
    """So that it is no lower than the other anywhere."""
    for name, index in other:
        cut[name] = max(cut.get(name, 0), index)


class Lacking:
    """Who of a plan lacks what: decides whether a green bundle travels with its body."""

    def __init__(self, states: Mapping[ProcId, State], plan: Plan) -> None:
        self._behind = [(states[name].green, dict(states[name].red_cut)) for name in plan.members]

    def body(self, position: int, creator: ProcId, index: int) -> bool:
        """Does somebody who lacks this green bundle lack its body too?"""
        return any(green < position and red_cut.get(creator, 0) < index for green, red_cut in self._behind)
