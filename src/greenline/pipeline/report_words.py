"""Words of a trace on a page: whatever they are, they are shown, and nothing more."""

from __future__ import annotations

from html import escape

import msgspec

from greenline.kernel.evidence import Row

MOST = 300
"""Characters of one value that are shown."""


def plain(text: str) -> str:
    """What cannot be seen, or turns what follows around, becomes its number; what has no end gets one."""
    short = text if len(text) <= MOST else text[: MOST - 1] + "…"
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in short)


def shown(value: object) -> str:
    return escape(plain(str(value)))


def tame(row: Row) -> Row:
    """The same row for who draws it or tells it."""
    texts = {name: plain(value) for name in row.__struct_fields__ if isinstance(value := getattr(row, name), str)}
    return msgspec.structs.replace(row, **texts)


def number(value: float) -> str:
    return f"{value:,.0f}"


def seconds(value: float) -> str:
    if value >= 90:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes:,} min {rest} s"
    return f"{value:.1f} s" if value >= 0.9995 else f"{value * 1000:.0f} ms"
