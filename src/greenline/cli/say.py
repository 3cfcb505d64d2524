"""How the command speaks: consoles, exit statuses, and what a misuse looks like."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from enum import IntEnum
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Status(IntEnum):
    """What an exit status means, for every command."""

    OK = 0
    BROKEN = 1
    MISUSE = 2
    STUCK = 3
    FAILED = 4
    """The command itself could not go on."""
    CLOSED_PIPE = 141
    """Whoever read our output has seen enough."""


class Page(Console):
    """A console whose reader may leave: that is no broken rule, so the status says something else."""

    def on_broken_pipe(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it flushes at exit
        raise SystemExit(Status.CLOSED_PIPE)


out = Page(highlight=False, soft_wrap=True, emoji=False)
talk = Page(highlight=False, soft_wrap=True, emoji=False, stderr=True)


class Misuse(Exception):
    """The caller's mistake: what was asked, why not, and what would work."""


_TAME = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
"""What a terminal would obey: a name may come from a file of somebody else's."""


def line(text: object = "") -> None:
    """One line of data, as it is: brackets in it are no markup."""
    out.print(str(text).translate(_TAME), markup=False)


def aside(text: object = "") -> None:
    """One line of talk."""
    talk.print(str(text).translate(_TAME), markup=False)


def as_json(value: Any) -> None:
    """Straight to stdout: nothing may touch it on the way."""
    try:
        sys.stdout.write(json.dumps(value, indent=1) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        out.on_broken_pipe()


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


def heed_termination() -> None:
    """A SIGTERM is a Ctrl-C: what was begun comes to an end, and nothing is left behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def hush() -> None:
    """What py4j logs: after a Ctrl-C, where in it that was. What goes wrong is raised all the same."""
    logging.getLogger().addHandler(logging.NullHandler())
