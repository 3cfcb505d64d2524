"""A notation for hand-made traces that fits an event on a line.

    history('''
        p.1 start
        p.1 generate p:1:1 basic
        q.1 deliver p:1:1 basic
        * quiet
    ''')

A line is who (process and life), what kind, and what the kind needs: a message and a service, or a configuration
and its members. `conf=` and `digest=` may follow; a message's digest is its own name unless told otherwise.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from greenline.kernel.evidence import WORLD, Row
from greenline.trace.tables import to_table

_ABOUT_A_MESSAGE = {"generate", "send", "deliver"}


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
        elif plain:
            row.detail = " ".join(plain)
        row.conf = named.get("conf", None if process == WORLD else confs.get(who))
        rows.append(row)
    return rows


def trace(*histories: str) -> pa.Table:
    """One run for each history: `run0`, `run1`, ..."""
    return to_table((f"run{number}", history(text)) for number, text in enumerate(histories))
