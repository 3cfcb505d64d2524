"""Coverage: what a run of a group communication provider exercised, counted from its trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from greenline.kernel.evidence import (
    CRASH,
    DELIVER,
    GENERATE,
    HALT,
    PHASE,
    REGULAR,
    SEND,
    START,
    TRANSITIONAL,
    Row,
)
from greenline.kernel.ports import Service


def cases(rows: Sequence[Row]) -> Counter[str]:
    """How often each case of thesis section 6.2 befell a safe message: 1, ? and 0."""
    sent_in = {row.message: row.conf for row in rows if row.kind == SEND}
    safe = {row.message for row in rows if row.kind in (GENERATE, DELIVER) and row.service == Service.SAFE}
    delivered: dict[tuple[str, str | None], str] = {}
    left: dict[str | None, set[str]] = {}
    inside: dict[str, tuple[str | None, str]] = {}
    for row in rows:
        if row.kind in (REGULAR, TRANSITIONAL):
            family = row.conf if row.kind == REGULAR else inside[row.process][0]
            if row.kind == REGULAR and row.process in inside:
                left.setdefault(inside[row.process][0], set()).add(row.process)
            inside[row.process] = (family, row.kind)
        elif row.kind in (CRASH, HALT):
            inside.pop(row.process, None)
        elif row.kind == DELIVER:
            delivered[row.process, row.message] = inside[row.process][1]
    found: Counter[str] = Counter()
    for message in safe & sent_in.keys():
        values = {kind for (_, each), kind in delivered.items() if each == message}
        found["case 1: safe in the regular configuration"] += REGULAR in values
        found["case ?: safe in a transitional configuration"] += TRANSITIONAL in values
        gone = left.get(sent_in[message], set())
        found["case 0: safe and not delivered in a component"] += any((q, message) not in delivered for q in gone)
    for kind, name in ((REGULAR, "regular"), (TRANSITIONAL, "transitional")):
        found[f"deliveries in {name} configurations"] = sum(value == kind for value in delivered.values())
    return +found


def changes_of_a_ring(rows: Sequence[Row]) -> Counter[str]:
    """What a run of the Ring went through: phases, attempts that failed and how many in a row, repeats, discards."""
    found = cases(rows)
    phase: dict[str, str] = {}
    depth: Counter[str] = Counter()
    for row in rows:
        who = row.process
        if row.kind == PHASE:
            before, now = phase.get(who, ""), row.detail or ""
            phase[who] = now
            found[f"entries into {now}"] += 1
            if before in ("Form", "EVS") and now == "Gather":
                found[f"failures inside {before}"] += 1
                depth[who] += 1
                found["cascades of two attempts and more"] += depth[who] == 2
        elif row.kind == REGULAR:
            depth[who] = 0
        elif row.kind in (CRASH, HALT):
            found["crashes inside Form and EVS"] += phase.pop(who, "") in ("Form", "EVS")
            depth[who] = 0
        elif row.kind == START:
            found["restarts"] += row.incarnation > 1
        elif row.kind == "repeat":
            found["repeats of the token" if row.detail == "token" else "retransmissions"] += 1
        elif row.kind == "discard":
            found["discards after a hole"] += 1
    return +found
