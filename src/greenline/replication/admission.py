"""Admission: with whom a meeting may be held at all (GAP 31 and 34).

A server of another cluster is a stranger. A server that claims less than it once promised came back from an old disk: a
backup, an image. It has forgotten what others rely on. Two orders that differ must never be repaired in silence.
Whoever is refused stops; of two orders that differ at equally many, both do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from greenline.kernel.identities import ProcId
from greenline.replication.messages import State
from greenline.replication.recovery import ANEW
from greenline.replication.settings import Settings

States = Mapping[ProcId, State]


def refused(states: States, settings: Settings) -> dict[ProcId, str]:
    """Who must not take part in this meeting, and why; everybody comes to the same."""
    return strangers(states, settings) or broken_promises(states) or diverged(states)


def must_stop(me: ProcId, states: States, settings: Settings) -> bool:
    """Is it for sure we who are wrong? Among strangers only the fewer are; where there is doubt, all wait."""
    alike = sum(state.cluster == states[me].cluster for state in states.values())
    return me not in strangers(states, settings) or me not in settings.servers or 2 * alike < len(states)


def strangers(states: States, settings: Settings) -> dict[ProcId, str]:
    """Who was started with other servers, weights or salt than most, or is no server of this cluster."""
    why = "it was started with other servers, weights or salt than the others; give all of them the same configuration"
    found = dict.fromkeys(_fewer({name: state.cluster for name, state in states.items()}), why)
    for name in states:
        if name not in settings.servers:
            found[name] = f"{name} is no server of this cluster, whose servers are {' '.join(settings.servers)}"
    return found


def broken_promises(states: States) -> dict[ProcId, str]:
    """Who claims less than others have seen of it, and what."""
    found: dict[ProcId, str] = {}
    for name, claim in states.items():
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


def diverged(states: States) -> dict[ProcId, str]:
    """Whose order differs from that of most who stand at the same position."""
    found: dict[ProcId, str] = {}
    for position in sorted({state.green for state in states.values()}):
        orders = {name: state.digest for name, state in states.items() if state.green == position}
        why = f"its order up to position {position} differs from the others'; compare the databases before you go on"
        found.update(dict.fromkeys(_fewer(orders), why))
    return found


def _fewer(values: Mapping[ProcId, bytes]) -> set[ProcId]:
    """Who does not have the value that more than half have; nobody, if all have the same."""
    counts = Counter(values.values())
    (most, times), *others = counts.most_common()
    if not others:
        return set()
    return {name for name, value in values.items() if value != most or 2 * times <= len(values)}
