"""Charts: lines and bars as SVG that needs nothing else, light or dark.

Colours are Okabe and Ito's, which most people can tell apart; a series has a mark of its own as well, for the others
and for paper.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 48, 56
LEGEND_LINE = 18
NO_SPAN = 1e-9
"""Such a part of a number, and less, is no space between two: they are drawn as one."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6a00", "#666666")
STYLE = """
.chart text { font: 12px system-ui, sans-serif; fill: #333 } .chart .title { font-size: 15px; font-weight: 600 }
.chart .ground { fill: #fff } .chart .grid { stroke: #e3e6ea } .chart .axis { stroke: #777 }
.chart .line { fill: none; stroke-width: 2 } .chart .spread { stroke-width: 1; opacity: .7 }
.chart .small { font-size: 11px }
@media screen and (prefers-color-scheme: dark) { .chart text { fill: #dde1e6 } .chart .ground { fill: #16191d }
.chart .grid { stroke: #2c3138 } .chart .axis { stroke: #888 } .chart .ink { filter: brightness(1.35) } }
"""


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    """How far the samples of this point reach."""


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[Point]
    is_dashed: bool = False
    """Not ours: what a paper reports."""


class Scale:
    """From values to places along an axis."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.ticks = ticks(min(values), max(values))
        self._low, self._begin = self.ticks[0], begin
        self._each = (end - begin) / (self.ticks[-1] - self._low)

    def __call__(self, value: float) -> float:
        return round(self._begin + (value - self._low) * self._each, 2)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from at most the lowest to at least the highest, about five of them."""
    if high - low < abs(high) * NO_SPAN or high - low < sys.float_info.min:
        low, high = (0.0, low) if low > sys.float_info.min else (low, low + max(1.0, abs(low)))
    raw = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def lines(title: str, x: str, y: str, series: Sequence[Series]) -> str:
    """Points joined by lines, in the order of x; whiskers where samples are spread."""
    drawn = [Series(each.name, sorted(each.points, key=lambda point: point.x), each.is_dashed) for each in series]
    drawn = [each for each in drawn if each.points]
    if not drawn:
        raise ValueError(f"{title!r} has no points")
    points = [point for each in drawn for point in each.points]
    reached = [value for point in points for value in (point.y, point.low, point.high) if value is not None]
    bottom = HEIGHT - BOTTOM
    across = Scale([point.x for point in points], LEFT, WIDTH - RIGHT)
    up = Scale([0.0, *reached], bottom, TOP)
    body = [*_grid(x, y, up, bottom), *_x_ticks(across, bottom)]
    for number, each in enumerate(drawn):
        body += _line(each, number, across, up)
    return _svg(title, body, [each.name for each in drawn])


def bars(title: str, y: str, groups: Sequence[str], series: Sequence[Series]) -> str:
    """Beside each other in each group; a point's x is the number of its group, from 0."""
    points = [point for each in series for point in each.points]
    if not points:
        raise ValueError(f"{title!r} has no points")
    reached = [value for point in points for value in (point.y, point.low, point.high) if value is not None]
    bottom = HEIGHT - BOTTOM
    up = Scale([0.0, *reached], bottom, TOP)
    room = (WIDTH - LEFT - RIGHT) / len(groups)
    width = min(64.0, 0.8 * room / len(series))
    body = [*_grid("", y, up, bottom)]
    for place, group in enumerate(groups):
        body.append(_text(LEFT + room * (place + 0.5), bottom + 18, group, "middle", "small"))
    for number, each in enumerate(series):
        for point in each.points:
            begin = LEFT + room * (point.x + 0.5) + width * (number - len(series) / 2)
            body += _bar(each.name, point, number, begin, width, up)
    return _svg(title, body, [each.name for each in series])


def short(value: float) -> str:
    """For people: 1.2k, 35M, 0.25."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _line(series: Series, number: int, across: Scale, up: Scale) -> Iterator[str]:
    ink = COLOURS[number % len(COLOURS)]
    path = " ".join(f"{across(point.x)},{up(point.y)}" for point in series.points)
    dash = ' stroke-dasharray="6 4"' if series.is_dashed else ""
    yield f'<polyline class="line ink" stroke="{ink}"{dash} points="{path}"/>'
    for point in series.points:
        x = across(point.x)
        if point.low is not None and point.high is not None and point.low < point.high:
            ends = f'y1="{up(point.low)}" x2="{x}" y2="{up(point.high)}"'
            yield f'<line class="spread ink" stroke="{ink}" x1="{x}" {ends}/>'
        about = escape(f"{series.name}: {short(point.y)} at {short(point.x)}")
        yield f"<g><title>{about}</title>{_mark(number, x, up(point.y))}</g>"


def _bar(name: str, point: Point, number: int, x: float, width: float, up: Scale) -> Iterator[str]:
    ink, top, foot = COLOURS[number % len(COLOURS)], up(point.y), up(0.0)
    yield (
        f"<g><title>{escape(name)}: {short(point.y)}</title>"
        f'<rect class="ink" fill="{ink}" x="{x:.1f}" y="{min(top, foot)}" width="{width:.1f}"'
        f' height="{abs(foot - top):.2f}"/></g>'
    )
    yield _text(x + width / 2, (top if point.high is None else up(point.high)) - 5, short(point.y), "middle", "small")
    if point.low is not None and point.high is not None and point.low < point.high:
        middle = f"{x + width / 2:.1f}"
        yield f'<line class="axis" x1="{middle}" y1="{up(point.low)}" x2="{middle}" y2="{up(point.high)}"/>'


def _mark(number: int, x: float, y: float) -> str:
    ink = f'class="ink" fill="{COLOURS[number % len(COLOURS)]}"'
    match number % 4:
        case 0:
            return f'<circle {ink} cx="{x}" cy="{y}" r="4"/>'
        case 1:
            return f'<rect {ink} x="{x - 4}" y="{y - 4}" width="8" height="8"/>'
        case 2:
            return f'<path {ink} d="M{x} {y - 5} l5 9 h-10 z"/>'
        case _:
            return f'<path {ink} d="M{x - 5} {y} l5 -5 l5 5 l-5 5 z"/>'


def _grid(x: str, y: str, up: Scale, bottom: float) -> Iterator[str]:
    for tick in up.ticks:
        yield f'<line class="grid" x1="{LEFT}" y1="{up(tick)}" x2="{WIDTH - RIGHT}" y2="{up(tick)}"/>'
        yield _text(LEFT - 8, up(tick) + 4, short(tick), "end", "small")
    yield f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{WIDTH - RIGHT}" y2="{bottom}"/>'
    yield _text((LEFT + WIDTH - RIGHT) / 2, bottom + 42, x, "middle")
    yield f'<g transform="rotate(-90 18 {(TOP + bottom) / 2})">{_text(18, (TOP + bottom) / 2, y, "middle")}</g>'


def _x_ticks(across: Scale, bottom: float) -> Iterator[str]:
    for tick in across.ticks:
        yield f'<line class="axis" x1="{across(tick)}" y1="{bottom}" x2="{across(tick)}" y2="{bottom + 5}"/>'
        yield _text(across(tick), bottom + 20, short(tick), "middle", "small")


def _text(x: float, y: float, text: str, anchor: str, look: str = "") -> str:
    named = f' class="{look}"' if look else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, body: Sequence[str], names: Sequence[str]) -> str:
    legend = []
    for number, name in enumerate(names):
        y = HEIGHT + 6 + LEGEND_LINE * number
        legend += [_mark(number, LEFT + 6, y - 4), _text(LEFT + 18, y, name, "start")]
    height = HEIGHT + LEGEND_LINE * len(names) + 4
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" width="{WIDTH}" height="{height}"'
            f' viewBox="0 0 {WIDTH} {height}"><title>{escape(title)}</title><style>{STYLE}</style>',
            f'<rect class="ground" width="{WIDTH}" height="{height}" fill="white"/>',
            f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>',
            *body,
            *legend,
            "</svg>\n",
        ]
    )
