"""Forcing: the majority is lost for good, and an operator decides who goes on (GAP 28).

This is outside the protocol: nobody can know that the dead are dead. So it is asked for by name, with a reason, of a
component whose members have just exchanged all they know; everybody whose word the protocol would wait for is
either here and survives, or is declared dead, and none of the dead may be seen. From then on the decision's number,
the epoch, comes first in every comparison: who has a lower one and is no survivor is refused for ever (`admission`).
Two operators who force two components make two databases; that is found when they meet, and not before.
"""

from __future__ import annotations

import msgspec

from greenline.kernel.effects import Effect, Trace, Upcall
from greenline.kernel.identities import in_order
from greenline.kernel.ports import Service
from greenline.replication.messages import Era, Override, Prim
from greenline.replication.outbox import Outbox
from greenline.replication.port import Force, Forced, Leave, Name, Refused, is_sound
from greenline.replication.replica import Replica, force, vulnerability, write_knowledge
from greenline.replication.requests import Requests, reconfigure_ourselves
from greenline.replication.server import Forcing, Met, Place


def why_not(met: Met | None, place: Place | None, call: Force) -> str | None:
    """Why it is not for an operator to decide here, or not like this."""
    if met is None or place is None:
        return "this server is in a primary component, or about to know whether it is; ask again when it is in none"
    survivors, dead, needed = set(call.survivors), set(call.dead), set(met.needed)
    if not is_sound((call.survivors, call.dead, call.reason), tuple[tuple[Name, ...], tuple[Name, ...], str]):
        return "these are no names of servers, or no reason that can be kept"
    if not call.reason.strip():
        return "say why: the reason is kept with the decision"
    if survivors & dead:
        return f"{' '.join(in_order(survivors & dead))} cannot both survive and be dead"
    if alive := dead & set(place.conf.members):
        return f"{' '.join(in_order(alive))} are connected with this server, so they are not dead"
    if missing := survivors - set(met.members):
        return f"{' '.join(in_order(missing))} are not connected with this server; all survivors must be"
    if unnamed := set(met.members) - survivors:
        return f"{' '.join(in_order(unnamed))} are connected with this server, and not among the survivors"
    if open_fate := needed - survivors - dead:
        return f"say of {' '.join(in_order(open_fate))}, too, whether they survive or are dead"
    return None


def refuse(call: Force, why: str, out: list[Effect]) -> None:
    out.append(Upcall(Refused(call.ticket, why)))


def ask_all(replica: Replica, forcing: Forcing, outbox: Outbox, place: Place, call: Force) -> None:
    forcing.asked = call
    survivors, dead = in_order(call.survivors), in_order(call.dead)
    override = Override(place.meeting, replica.me, replica.era.epoch + 1, survivors, dead, call.reason)
    outbox.say(override, Service.SAFE)


def overrule(replica: Replica, forcing: Forcing, requests: Requests, override: Override, out: list[Effect]) -> None:
    """The survivors are the last primary component from now on, and nobody waits for how an attempt ended."""
    survivors = override.survivors
    last, weights = replica.prim, replica.weights_of(survivors)
    if not any(weights):
        weights = (1,) * len(survivors)
    replica.prim = Prim(last.prim_index, last.attempt_index, survivors, weights, override.epoch)
    replica.era = Era(override.epoch, survivors)
    if replica.vulnerable.is_valid:
        replica.vulnerable = msgspec.structs.replace(replica.vulnerable, is_valid=False)
        out.append(vulnerability(replica, "invalid forced"))
    words = f"{override.server}: {override.reason}; dead: {' '.join(override.dead)}"
    out.append(Trace("force", words, members=survivors, position=override.epoch, sub=last.prim_index))
    write_knowledge(replica, out)
    gate = force(replica, out)
    if override.server == replica.me and forcing.asked is not None:
        out.append(Upcall(Forced(forcing.asked.ticket, override.epoch), gate=gate or None))
        forcing.asked = None
        for name in override.dead:
            reconfigure_ourselves(requests, Leave(name))


def beware(replica: Replica, override: Override, out: list[Effect]) -> None:
    """It came while the configuration changes: others may have decided it, or nobody has. With the dead we do nothing
    any more, and make no component without who has decided it; if nobody has, it is to be asked for again."""
    if override.epoch > replica.era.epoch:
        replica.era = Era(override.epoch, override.survivors)
        write_knowledge(replica, out)


def give_up(forcing: Forcing, out: list[Effect]) -> None:
    """The meeting is over before all had heard it."""
    if forcing.asked is not None:
        reason = "the meeting ended before it was decided; look who is connected, and whether it was, and ask again"
        refuse(forcing.asked, reason, out)
        forcing.asked = None
