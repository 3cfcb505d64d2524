"""How the command speaks: consoles, exit statuses, and what a misuse looks like."""

from __future__ import annotations

import json
import sys
from enum import IntEnum
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

out = Console(highlight=False, soft_wrap=True)
talk = Console(highlight=False, soft_wrap=True, stderr=True)


class Status(IntEnum):
    """What an exit status means, for every command."""

    OK = 0
    BROKEN = 1
    MISUSE = 2
    STUCK = 3


class Misuse(Exception):
    """The caller's mistake: what was asked, why not, and what would work."""


def line(text: object = "") -> None:
    """One line of data, as it is: brackets in it are no markup."""
    out.print(str(text), markup=False)


def aside(text: object = "") -> None:
    """One line of talk."""
    talk.print(str(text), markup=False)


def as_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=1)
    sys.stdout.write("\n")


def progress(what: str) -> Progress:
    """A bar on stderr, only where somebody watches."""
    return Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=talk,
        transient=True,
        disable=not talk.is_terminal,
    )
