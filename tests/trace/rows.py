"""A notation for hand-made traces that fits an event on a line.

    history('''
        p.1 start
        p.1 generate p:1:1 basic
        q.1 deliver p:1:1 basic
        * quiet
    ''')

A line is who (process and life), what kind, and what the kind needs: a message and a service, or a configuration
and its members. `conf=`, `digest=`, `at=` (members) and `after=` (position) may follow; a message's digest is its own
name unless told otherwise.

What a replication engine, its database and its clients say is written by `_FIELDS`, several members with commas:

    p.1 recover 0 0
    p.1 install 1 1 p,q
    p.1 mark q#1 red ExchangeActions
    p.1 mark q#1 green 1 OR-1.1 RegPrim
    p.1 apply 1 0 s/1
    p.1 roster 2 p,q,r join r done
    r.1 replaced 2
    r.1 restored 2
    * call s/1 p local append l1 5
    * return s/1 green 1 0 local l1 5
    * call s?1 p session read l1 after=1
    * return s?1 green 1 0 session l1 5 at=p

An action is `done` unless told otherwise. `replaced`: a database was restored; `restored` is its engine's word.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from greenline.kernel.evidence import WORLD, Row
from greenline.trace.tables import to_table

_ABOUT_A_MESSAGE = {"generate", "send", "deliver"}

_FIELDS = {
    "recover": "position sub",
    "create": "message sub",
    "mark": "message colour detail",
    "mark green": "message colour position detail",
    "durable": "position",
    "line": "members position",
    "vulnerable": "position sub members detail",
    "cpc": "position sub members",
    "install": "position sub members",
    "voter": "position members sub detail",
    "white": "position",
    "discard": "position detail",
    "roster": "position members detail",
    "newcomer": "",
    "restored": "position",
    "replaced": "position",
    "left": "",
    "force": "position members detail",
    "apply": "position sub message detail",
    "commit": "position",
    "opened": "position",
    "call": "message members service detail",
    "return": "message colour service detail",
    "return green": "message colour position sub service detail",
    "return dirty": "message colour position sub service detail",
    "refused": "message detail",
    "final": "members position sub detail",
    "gone": "members",
}
"""What follows the kind, word by word; `detail` takes all the rest. Of green and dirty ones a place is told too."""

_DATABASE = {"apply", "commit", "opened", "replaced"}
_CLIENTS = {"call", "return", "refused", "final", "gone"}
_STATES = {"NonPrim", "RegPrim", "TransPrim", "ExchangeStates", "ExchangeActions", "Construct", "No", "Un"}
_DIGESTS = {
    "create": "message",
    "mark green": "position",
    "install": "position",
    "roster": "members",
    "restored": "position",
    "apply": "message",
    "return green": "message",
    "final": "position",
}
"""Which kinds have a digest, and what it says unless told otherwise."""


def history(text: str) -> list[Row]:
    indices: Counter[tuple[str, int]] = Counter()
    confs: dict[str, str] = {}
    rows = []
    for number, line in enumerate(filter(None, map(str.strip, text.splitlines()))):
        who, kind, *words = line.split()
        process, _, life = who.partition(".")
        key = (process, int(life or 0))
        named = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        row = Row(process, key[1], indices[key], float(number), kind)
        indices[key] += 1
        if kind in _ABOUT_A_MESSAGE:
            row.message, row.service = plain[0], plain[1] if len(plain) > 1 else None
            row.digest = named.get("digest", plain[0])
        elif kind in ("regular", "transitional"):
            confs[who], row.members = plain[0], " ".join(plain[1:])
        elif kind in _FIELDS:
            _say(row, plain, named)
        elif plain:
            row.detail = " ".join(plain)
            row.layer = "engine" if kind == "phase" and row.detail in _STATES else None
        row.conf = named.get("conf", None if process == WORLD else confs.get(who))
        rows.append(row)
    return rows


def _say(row: Row, words: list[str], named: dict[str, str]) -> None:
    """A row of an engine, of its database or of its clients."""
    coloured = " ".join([row.kind, *words[1:2]])
    kind = coloured if coloured in _FIELDS else row.kind
    row.layer = "database" if row.kind in _DATABASE else None if row.kind in _CLIENTS else "engine"
    fields = _FIELDS[kind].split()
    for place, (field, word) in enumerate(zip(fields, words, strict=False)):
        if field == "detail":
            row.detail = " ".join(words[place:])
        elif field in ("position", "sub"):
            setattr(row, field, int(word))
        else:
            setattr(row, field, word.replace(",", " "))
    if kind in _DIGESTS:
        row.digest = named.get("digest", str(getattr(row, _DIGESTS[kind])))
    if "at" in named:
        row.members = named["at"]
    if "after" in named:
        row.position = int(named["after"])
    if kind == "apply" and row.detail is None:
        row.detail = "done"
    if kind == "replaced":
        row.kind = "restored"


def trace(*histories: str) -> pa.Table:
    """One run for each history: `run0`, `run1`, ..."""
    return to_table((f"run{number}", history(text)) for number, text in enumerate(histories))
