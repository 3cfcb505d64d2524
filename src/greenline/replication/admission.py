"""Admission: with whom a meeting may be held at all (GAP 27, 28, 31, 32 and 34).

A server of another cluster is a stranger, and so is one that the most updated of us does not know: whoever is a replica
has its own Join in its order, so that the longest order names everybody. A server that claims less than it once
promised came back from an old disk: a backup, an image. It has forgotten what others rely on. Two orders that differ
must never be repaired in silence. Whoever is refused stops; of two orders that differ at equally many, both do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from greenline.kernel.identities import ProcId
from greenline.replication.messages import State
from greenline.replication.recovery import ANEW
from greenline.replication.roster import Roster

States = Mapping[ProcId, State]
Reasons = dict[ProcId, str]


def refused(states: States) -> Reasons:
    """Who must not take part in this meeting, and why; everybody comes to the same."""
    return strangers(states) or overruled(states) or unknown(states) or broken_promises(states) or diverged(states)


def must_stop(me: ProcId, states: States) -> bool:
    """Is it for sure we who are wrong? Among strangers newcomers are, else the fewer; if there is doubt, all wait."""
    replicas = _replicas(states)
    alike = sum(state.cluster == states[me].cluster for state in replicas.values())
    return me not in strangers(states) or states[me].is_new or 2 * alike < len(replicas)


def strangers(states: States) -> Reasons:
    """Who was started with other servers, weights or salt than most. Newcomers have no say in it."""
    why = "it was started with other servers, weights or salt than the others; give all of them the same configuration"
    replicas = _replicas(states)
    clusters = {state.cluster for state in replicas.values()}
    strange = {name for name, state in states.items() if state.is_new and {state.cluster} != clusters}
    found = _fewer({name: state.cluster for name, state in replicas.items()}) | (strange if clusters else set())
    return dict.fromkeys(found, why)


def _replicas(states: States) -> States:
    return {name: state for name, state in states.items() if not state.is_new}


def overruled(states: States) -> Reasons:
    """Whom an operator has declared dead, or did not count among the survivors (GAP 28)."""
    replicas = _replicas(states)
    epoch = max((state.era.epoch for state in replicas.values()), default=0)
    survivors = {name: state.era.survivors for name, state in replicas.items() if state.era.epoch == epoch}
    if differ := _fewer(survivors):
        why = (
            "primary components were forced at two places, with other survivors; compare the databases before you go on"
        )
        return dict.fromkeys(differ, why)
    remain = next(iter(survivors.values()), ())
    why = f"a primary component was forced without it, so that what it knows counts no more; {ANEW}"
    return {name: why for name, state in replicas.items() if state.era.epoch < epoch and name not in remain}


def unknown(states: States) -> Reasons:
    """Who is not, or not any more, who it says it is."""
    replicas = _replicas(states)
    if not replicas:
        return {}
    longest = max(replicas.values(), key=lambda state: (state.era.epoch, state.green))
    found = {name: _unknown(state, longest.roster) for name, state in states.items()}
    return {name: why for name, why in found.items() if why is not None}


def _unknown(state: State, roster: Roster) -> str | None:
    name, seat, gone = state.server, roster.seat_of(state.server), roster.gone_of(state.server)
    if seat is not None and seat.birth != state.birth:
        return f"{name} is the name of another server of this cluster; {ANEW}"
    if state.is_new and gone is not None:
        return f"{name} was the name of a server that left at position {gone.position}; {ANEW}"
    if not state.is_new and seat is None and gone is None:
        return f"{name} is no server of this cluster, whose servers are {' '.join(roster.servers)}"
    return None


def broken_promises(states: States) -> Reasons:
    """Who claims less than others have seen of it, and what."""
    found: Reasons = {}
    for name, claim in _replicas(states).items():
        own_index = dict(claim.red_cut).get(name, 0)
        attempt = claim.prim.prim_index, claim.attempt_index
        for other, seen in sorted(states.items()):
            has = dict(seen.red_cut).get(name, 0)
            line = dict(seen.green_lines).get(name, 0)
            agreed = max(((prim, each) for who, prim, each in seen.promised if who == name), default=(0, 0))
            if has > own_index:
                what = f"{other} has its bundle {name}#{has}, but it knows only {own_index} of its own"
            elif line > claim.green:
                what = f"{other} was told that it has the order up to {line} on disk, but it has {claim.green}"
            elif agreed > attempt:
                what = f"{other} saw it agree to attempt {agreed}, but it knows only {attempt}"
            else:
                continue
            found[name] = f"its disk is older than it is: {what}. It was restored from a backup; {ANEW}"
    return found


def diverged(states: States) -> Reasons:
    """Whose order differs from that of most who stand at the same position."""
    found: Reasons = {}
    for position in sorted({state.green for state in states.values()}):
        orders = {name: state.digest for name, state in states.items() if state.green == position}
        why = f"its order up to position {position} differs from the others'; compare the databases before you go on"
        found.update(dict.fromkeys(_fewer(orders), why))
    return found


def _fewer(values: Mapping[ProcId, Hashable]) -> set[ProcId]:
    """Who does not have the value that more than half have; nobody, if all have the same."""
    counts = Counter(values.values())
    if len(counts) <= 1:
        return set()
    (most, times), *_ = counts.most_common()
    return {name for name, value in values.items() if value != most or 2 * times <= len(values)}
