"""A space-time diagram: who delivered what in which configuration, as one SVG that needs nothing else.

A lane a process, time from left to right in the order of `trace.order`, each event in a column of its own. A
lane's colour is the configuration that its process is in (the phase, where a protocol has no configurations); a
gap is a process that is down. An arrow goes from where a message was generated to where it was delivered. Who shows a
part of a run may mark the events that it is about, and the processes: they are ringed, and named in red.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from hashlib import blake2b
from html import escape

from greenline.kernel import evidence
from greenline.kernel.evidence import WORLD, Row

COLUMN, LANE, LEFT, RIGHT, TOP = 15, 74, 90, 200, 92
OMITTED = "omitted"
"""No event: it stands where whoever shows a part of a run has left something out. No trace has it."""
DRAWN = (evidence.EVIDENCE | {evidence.PHASE, evidence.FAULT, evidence.HEALED, OMITTED}) - {evidence.SEND}
STYLE = """
.spacetime text { font: 11px system-ui, sans-serif; fill: #222 } .spacetime .ground { fill: #fff }
.spacetime .name { font-weight: 600; font-size: 14px } .spacetime .title { font-size: 13px; font-weight: 600 }
.spacetime .small { font-size: 9px; fill: #444 } .spacetime .fault-text { font-size: 9px; fill: #b3261e }
.spacetime .fault { stroke: #b3261e; stroke-dasharray: 3 3; stroke-width: .8 }
.spacetime .omitted { stroke: #888; stroke-dasharray: 1 4; stroke-width: 2 } .spacetime .omitted-text { fill: #666 }
.spacetime .arrow { fill: none; stroke-width: 1; opacity: .55 } .spacetime .lane { stroke: #999; stroke-width: 1 }
.spacetime .other { fill: #666 } .spacetime .start { fill: #fff; stroke: #222 }
.spacetime .cross { stroke: #b3261e; stroke-width: 2.5; fill: none } .spacetime .accused { fill: #b3261e }
.spacetime .ring { fill: none; stroke: #b3261e; stroke-width: 2.5 }
@media screen and (prefers-color-scheme: dark) {
.spacetime text { fill: #dde1e6 } .spacetime .ground { fill: #16191d } .spacetime .small { fill: #b4bac2 }
.spacetime .band { fill-opacity: .25 } .spacetime .ink { filter: brightness(1.4) } .spacetime .lane { stroke: #777 }
.spacetime .fault, .spacetime .cross, .spacetime .ring { stroke: #ff8a80 }
.spacetime .fault-text, .spacetime .accused { fill: #ff8a80 } .spacetime .omitted-text { fill: #9aa0a8 }
.spacetime .start { fill: #16191d; stroke: #dde1e6 } .spacetime .other { fill: #9aa0a8 }
}
"""


def _nothing(_: Row) -> bool:
    return False


def draw(
    run: str,
    rows: Sequence[Row],
    *,
    is_marked: Callable[[Row], bool] = _nothing,
    accused: Container[str] = (),
    style: str = STYLE,
) -> str:
    """The diagram of one run, as SVG. A page with several of them has the style once, and gives them none."""
    events = [row for row in rows if row.kind in DRAWN or is_marked(row)]
    lanes = {name: place for place, name in enumerate(sorted({row.process for row in events} - {WORLD}))}
    width = LEFT + COLUMN * (len(events) + 2) + RIGHT
    height = TOP + LANE * len(lanes) + 24
    body = [*_bands(events, lanes), *_world(events, height), *_arrows(events, lanes), *_marks(events, lanes, is_marked)]
    names = [
        f'<text class="name{" accused" if name in accused else ""}" x="14" y="{_y(lanes, name) + 5}">'
        f"{escape(name)}</text>"
        for name in lanes
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="spacetime" role="img" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}">',
            f"<title>{escape(run)}</title><style>{style}</style>" if style else f"<title>{escape(run)}</title>",
            f'<rect class="ground" width="{width}" height="{height}" fill="white"/>',
            f'<text class="title" x="14" y="20">{escape(run)}</text>',
            *body,
            *names,
            "</svg>\n",
        ]
    )


def page(run: str, rows: Sequence[Row]) -> str:
    """The diagram as a page of HTML that scrolls."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(run)}</title>'
        f'<body style="margin:0;overflow:auto">{draw(run, rows)}</body></html>\n'
    )


def _x(column: int) -> int:
    return LEFT + COLUMN * (column + 1)


def _y(lanes: dict[str, int], process: str) -> int:
    return TOP + LANE * lanes[process] + LANE // 2


def _tint(text: str) -> str:
    """A light colour that stands for this text, the same in every diagram."""
    hue = int.from_bytes(blake2b(text.encode(), digest_size=2).digest(), "big") % 360
    return f"hsl({hue} 70% 88%)"


def _ink(lanes: dict[str, int], process: str) -> str:
    """A dark colour for what this process says; neighbours are far apart (137.5 degrees is the golden angle)."""
    return f"hsl({int(lanes.get(process, 0) * 137.5) % 360} 65% 40%)"


def _bands(events: Sequence[Row], lanes: dict[str, int]) -> list[str]:
    """The coloured stretches of each lane: one configuration, or one phase, of one life."""
    has_confs = any(row.kind in (evidence.REGULAR, evidence.TRANSITIONAL) for row in events)
    begins = {evidence.REGULAR, evidence.TRANSITIONAL} if has_confs else {evidence.PHASE}
    drawn: list[str] = []
    open_bands: dict[str, tuple[int, str, str]] = {}
    for column, row in enumerate(events):
        if row.process == WORLD:
            continue
        if row.kind in begins or row.kind in (evidence.CRASH, evidence.HALT):
            if row.process in open_bands:
                drawn += _band(lanes, row.process, column, *open_bands.pop(row.process))
            if row.kind in begins:
                label = f"{row.conf} {{{row.members}}}" if has_confs else row.detail or ""
                key = row.conf or row.detail or ""
                open_bands[row.process] = (column, key, label)
    for process in sorted(open_bands):
        drawn += _band(lanes, process, len(events), *open_bands[process])
    return drawn


def _band(lanes: dict[str, int], process: str, end: int, begin: int, key: str, label: str) -> list[str]:
    x, y, width = _x(begin), _y(lanes, process), COLUMN * (end - begin)
    room = max(1, width // 5)
    shown = label if len(label) <= room else label[: room - 1] + "…"
    return [
        f"<g><title>{escape(label)}</title>",
        f'<rect class="band" x="{x}" y="{y - 18}" width="{width}" height="36" fill="{_tint(key)}"/>',
        f'<line class="lane" x1="{x}" y1="{y}" x2="{x + width}" y2="{y}"/>',
        f'<text class="small" x="{x + 2}" y="{y - 21}">{escape(shown)}</text></g>',
    ]


def _world(events: Sequence[Row], height: int) -> list[str]:
    """What befalls the run as a whole, and where something was left out of it."""
    drawn: list[str] = []
    shown = 0
    for column, row in enumerate(events):
        if row.process == WORLD:
            x, y = _x(column), 36 + 12 * (shown % 4)
            shown += 1
            text = row.detail or row.kind
            shown_text = escape(text if len(text) <= 60 else text[:59] + "…")
            look = "omitted" if row.kind == OMITTED else "fault"
            drawn.append(
                f"<g><title>{escape(text)}</title>"
                f'<line class="{look}" x1="{x}" y1="{y + 3}" x2="{x}" y2="{height - 16}"/>'
                f'<text class="small {look}-text" x="{x + 2}" y="{y}">{shown_text}</text></g>'
            )
    return drawn


def _arrows(events: Sequence[Row], lanes: dict[str, int]) -> list[str]:
    origin: dict[str | None, tuple[int, Row]] = {}
    drawn: list[str] = []
    for column, row in enumerate(events):
        if row.kind == evidence.GENERATE:
            origin.setdefault(row.message, (column, row))
        elif row.kind == evidence.DELIVER and row.message in origin:
            begin, sender = origin[row.message]
            x1, y1, x2, y2 = _x(begin), _y(lanes, sender.process), _x(column), _y(lanes, row.process)
            if y1 != y2:
                curve = f"M{x1} {y1} C{x1 + 12} {y1} {x2 - 12} {y2} {x2} {y2}"
                drawn.append(
                    f'<path class="arrow ink" stroke="{_ink(lanes, sender.process)}" d="{curve}">'
                    f"<title>{escape(row.message or '')} to {escape(row.process)}</title></path>"
                )
    return drawn


def _marks(events: Sequence[Row], lanes: dict[str, int], is_marked: Callable[[Row], bool]) -> list[str]:
    drawn: list[str] = []
    for column, row in enumerate(events):
        if row.process == WORLD:
            continue
        x, y = _x(column), _y(lanes, row.process)
        mark = _mark(row, lanes, x, y)
        if is_marked(row):
            plain = f'<path class="other" d="M{x - 5} {y} l5 -5 l5 5 l-5 5 z"/>'
            mark = f'{mark or plain}<circle class="ring" cx="{x}" cy="{y}" r="10"/>'
        if mark:
            about = f"{row.process}: {row.kind} {row.message or row.conf or row.detail or ''} {row.service or ''}"
            label = _under(row, x - 6, y + (30 if column % 2 else 40))
            drawn.append(f"<g><title>{escape(about.strip())}</title>{mark}{label}</g>")
    return drawn


def _mark(row: Row, lanes: dict[str, int], x: int, y: int) -> str:
    match row.kind:
        case evidence.GENERATE:
            ink = _ink(lanes, row.process)
            return f'<rect class="ink" x="{x - 4}" y="{y - 4}" width="8" height="8" fill="{ink}"/>'
        case evidence.DELIVER:
            ink = _ink(lanes, (row.message or "").split(":")[0])
            return f'<circle class="ink" cx="{x}" cy="{y}" r="4" fill="{ink}"/>'
        case evidence.CRASH | evidence.HALT:
            return f'<path class="cross" d="M{x - 6} {y - 6} l12 12 m0 -12 l-12 12"/>'
        case evidence.START:
            return f'<circle class="start" cx="{x}" cy="{y}" r="4"/>'
        case _:
            return ""


def _under(row: Row, x: int, y: int) -> str:
    if row.kind not in (evidence.GENERATE, evidence.SEND, evidence.DELIVER):
        return ""
    return f'<text class="small" x="{x}" y="{y}">{escape(_label(row.message or ""))}</text>'


def _label(message: str) -> str:
    """Short, for under a mark: p1 for p:1:1, and p2.1 for the first of p's second life."""
    sender, life, number = [*message.split(":"), "", ""][:3]
    return f"{sender}{number}" if life == "1" else f"{sender}{life}.{number}"
