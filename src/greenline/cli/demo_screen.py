"""The demo's screen: eighty columns, twenty-four lines. Without a terminal: a line for each thing that happens."""

from __future__ import annotations

import textwrap
import time
from collections import deque

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from greenline.cli.demo_bank import Bank, End
from greenline.cli.demo_watch import Look, Watch
from greenline.cli.say import Page, line, out
from greenline.kernel.identities import ProcId
from greenline.replication.standing import Standing

WIDTH = 80
ACTS = 5
_BAR = 46
_LEAD = 8
"""Columns of what is white everywhere."""
_LEAST_SPAN = 40
"""Bundles that the rest of the bar shows, at least."""
_NEWS = 7
_WHITE, _GREEN, _RED = ("█", "bright_white"), ("▓", "green"), ("░", "red")


class Lines:
    """For pipes and logs."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    @property
    def seconds(self) -> int:
        return int(time.monotonic() - self._begun)

    def act(self, number: int, title: str, why: str) -> None:
        line()
        line(f"Act {number} of {ACTS}: {title}")
        for part in textwrap.wrap(why, WIDTH - 2):
            line(f"  {part}")

    def happened(self, text: str) -> None:
        for part in news(self.seconds, text):
            line(part)

    def close(self) -> None:
        pass


class Screen(Lines):
    """For a terminal: the replicas and their colours, and the last that happened."""

    def __init__(self, watch: Watch, bank: Bank, console: Console | None = None) -> None:
        super().__init__()
        self._watch = watch
        self._bank = bank
        self._title = ""
        self._why = ""
        self._news: deque[str] = deque(maxlen=_NEWS)
        page = console or Page(highlight=False, emoji=False)
        self._live = Live(get_renderable=self.page, console=page, refresh_per_second=4)
        self._live.start()

    def act(self, number: int, title: str, why: str) -> None:
        self._title, self._why = f"act {number} of {ACTS}: {title}", why

    def happened(self, text: str) -> None:
        self._news.extend(news(self.seconds, text))

    def close(self) -> None:
        self._live.stop()

    def page(self) -> RenderableType:
        looks = self._watch.looks
        base, span = scale(looks)
        lines = [Text(f"{'Greenline: ' + self._title:<{WIDTH - 6}}{self.seconds:>4} s", style="bold"), _legend()]
        for name, look in looks.items():
            lines += [_place(name, look, base, span), _numbers(look)]
        why = [Text(part, style="cyan") for part in textwrap.wrap(self._why, WIDTH)]
        heard = [Text(each) for each in self._news]
        return Group(*lines, Text(), _tally(self._bank), Text(), *why, Text(), *heard)


def on(watch: Watch, bank: Bank) -> Lines:
    return Screen(watch, bank) if out.is_terminal else Lines()


def news(seconds: int, text: str) -> list[str]:
    """With the time in front."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"{seconds:>4} s  ", subsequent_indent=" " * 8)


def scale(looks: dict[ProcId, Look]) -> tuple[int, int]:
    """Where the bars begin to show what is not white everywhere, and how many bundles the rest of them shows."""
    standings = [look.standing for look in looks.values() if look.standing is not None]
    base = min((stands.white for stands in standings), default=0)
    last = max((stands.green + stands.reds for stands in standings), default=0)
    return base, max(_LEAST_SPAN, last - base)


def bar(stands: Standing, base: int, span: int) -> Text:
    """White, then green, then red: where this replica stands among all. Whatever there is, be it one, is to be seen."""
    text = Text()
    begun, before = 0, 0
    for (mark, style), end in ((_WHITE, stands.white), (_GREEN, stands.green), (_RED, stands.green + stands.reds)):
        column = max(begun + (end > before), _LEAD + (end - base) * (_BAR - _LEAD) // span)
        text.append(mark * (column - begun), style)
        begun, before = column, end
    return text


def _legend() -> Text:
    text = Text(f"{'':<4}{'component':<15}{'with':<8}", style="dim")
    for (mark, style), name in ((_WHITE, "on all disks"), (_GREEN, "ordered"), (_RED, "accepted")):
        text.append(f"{mark} ", style).append(f"{name}  ", "dim")
    return text


def _place(name: ProcId, look: Look, base: int, span: int) -> Text:
    stands = look.standing
    if stands is None:
        return Text(f"{name:<4}down", style="bold red")
    prim = f"primary, {stands.prim.prim_index}" if stands.is_primary and stands.prim else "not primary"
    text = Text(f"{name:<4}", style="bold")
    text.append(f"{prim:<15}{' '.join(stands.here):<8}", "" if stands.is_primary else "yellow")
    return text.append_text(bar(stands, base, span))


def _numbers(look: Look) -> Text:
    stands = look.standing
    if stands is None:
        return Text()
    lines = f"white {stands.white} green {stands.green} red {stands.reds}"
    reads = f"weak {look.weak}  dirty {look.dirty}" if look.weak and look.dirty else ""
    return Text(f"    {lines:<30} {reads}", style="dim")


def _tally(bank: Bank) -> Text:
    done, refused, waiting = bank.count(End.DONE), bank.count(End.NO_MONEY), bank.count(End.OPEN)
    return Text(f"Tellers: {done:,} transfers done, {refused:,} without the money, {waiting:,} not answered yet")
