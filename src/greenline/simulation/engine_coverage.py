"""Coverage of replicas: what a run of the engine went through, counted from its trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from greenline.kernel.database import DATABASE
from greenline.kernel.evidence import (
    APPLY,
    CALL,
    CRASH,
    GONE,
    HALT,
    PHASE,
    REFUSED,
    REGULAR,
    RESTORED,
    RETURN,
    START,
    Row,
)


def life_of_an_engine(rows: Sequence[Row]) -> Counter[str]:
    """States and colours, how attempts ended, who came and went, and what clients saw."""
    found: Counter[str] = Counter()
    found += _states(rows)
    found += _comings(rows)
    found += _clients(rows)
    return +found


def _states(rows: Sequence[Row]) -> Counter[str]:
    found: Counter[str] = Counter()
    state: dict[str, str] = {}
    vulnerable: set[str] = set()
    up: set[str] = set()
    was_dark = False
    """Everybody was down, and nothing has been installed since."""
    for row in rows:
        who, detail = row.process, row.detail or ""
        if row.kind == PHASE and row.layer == "engine":
            before, state[who] = state.get(who), detail
            found[f"entries into {detail}"] += 1
            if before == "Un":
                found[f"Un left by {'an action' if detail == 'TransPrim' else 'a configuration'}"] += 1
        elif row.kind == "mark":
            found["yellow marks"] += row.colour == "yellow"
            if row.colour == "green":
                found[f"bundles greened by {detail.split(' ')[0]}"] += 1
        elif row.kind == "vulnerable":
            (vulnerable.add if detail.startswith("valid") else vulnerable.discard)(who)
        elif row.kind == START:
            found["restarts"] += row.incarnation > 1
            found["recoveries while vulnerable"] += who in vulnerable
            up.add(who)
        elif row.kind in (CRASH, HALT):
            found["Un left by a crash"] += state.pop(who, "") == "Un"
            up.discard(who)
            was_dark |= not up
        elif row.kind == "install":
            found["installs"] += 1
            found["total crashes survived"] += was_dark
            was_dark = False
        elif row.kind in ("discard", "far", "near"):
            found[f"{row.kind} rows"] += 1
    return found


def _comings(rows: Sequence[Row]) -> Counter[str]:
    """Each change of the roster is counted once, however many see it; what is undone by a crash of everybody too."""
    found: Counter[str] = Counter()
    bundles: dict[tuple[str, int | None], str] = {}
    """What has which position, at whom."""
    reds: set[tuple[str, str]] = set()
    """Bundles that were red outside a primary component, at whom."""
    late: set[str] = set()
    """Bundles that became green in an exchange, or with a new component."""
    changed: set[tuple[int | None, str]] = set()
    joins: set[str] = set()
    component: dict[str, str] = {}
    sources: dict[str, str] = {}
    for row in rows:
        who, detail, message = row.process, row.detail or "", row.message or ""
        if row.kind == "mark":
            if row.colour == "green":
                bundles[who, row.position] = message
                if detail.startswith(("OR-2", "OR-3")):
                    late.add(message)
            elif detail == "NonPrim" and message.startswith(f"{who}#"):
                reds.add((who, message))
        elif row.kind == "install":
            component[who] = row.members or ""
        elif row.kind == "roster":
            what, *words = detail.split(" ")
            if what == "join" and detail.endswith("done"):
                joins.add(bundles.get((who, row.position), ""))
            if (row.position, detail) not in changed:
                changed.add((row.position, detail))
                found[f"changes: {what}{' done' if detail.endswith('done') else ' refused'}"] += 1
                if what == "leave" and detail.endswith("done"):
                    found["leaves of members of the component"] += words[0] in component.get(who, "").split(" ")
        elif row.kind == "transfer":
            found["transfers"] += 1
            found["transfers resumed with another source"] += sources.get(who, row.members) != row.members
            sources[who] = row.members or ""
        elif row.kind == RESTORED and row.layer == DATABASE:
            found["databases restored"] += 1
            sources.pop(who, None)
        elif row.kind == GONE:
            found["removed or left for good"] += 1
    alone = {message for _, message in reds}
    found["joins asked in a non-primary component"] = len(joins & alone)
    found["joins that an exchange or a new component made green"] = len(joins & late)
    return found


def _clients(rows: Sequence[Row]) -> Counter[str]:
    found: Counter[str] = Counter()
    asked: dict[str, str] = {}
    """Where each request was asked last."""
    conf: dict[str, str | None] = {}
    state: dict[str, str] = {}
    again: set[tuple[int | None, int | None]] = set()
    expired: set[str] = set()
    for row in rows:
        who, detail, message = row.process, row.detail or "", row.message or ""
        server = row.members or ""
        if row.kind == PHASE and row.layer == "engine":
            state[who] = detail
        elif row.kind == REGULAR:
            conf[who] = row.conf
        elif row.kind in (CRASH, HALT):
            conf.pop(who, None)
            state.pop(who, None)
        elif row.kind == CALL:
            found[f"calls, {row.service}"] += 1
            if (before := asked.get(message)) is not None:
                found["requests asked again"] += 1
                found["requests asked again in another component"] += conf.get(before) != conf.get(server)
            asked[message] = server
        elif row.kind == RETURN:
            if row.colour == "red":
                found["accepted"] += 1
                is_relaxed = row.service == "relaxed" and state.get(server) not in ("RegPrim", "TransPrim")
                found["relaxed updates accepted outside a primary component"] += is_relaxed
            else:
                found[f"replies, {row.service}"] += 1
                found["conflicts"] += detail == "conflict"
                found["dirty reads that saw red"] += row.colour == "dirty"
        elif row.kind == REFUSED:
            found["refused"] += 1
            if detail in ("early", "crowded", "expired", "released"):
                found[f"verdicts: {detail}"] += 1
            if detail == "expired":
                expired.add(message.replace("~", "/").split("/")[0])
        elif row.kind == APPLY and detail == "again":
            again.add((row.position, row.sub))
    found["requests answered from what was kept"] = len(again)
    found["sessions that were over"] = len(expired)
    return found
