"""Logs: what an operator should know, one event a line on stderr; for people on a terminal, as JSON elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog

from greenline.node.config import LogFormat
from greenline.node.outlet import Outlet
from greenline.node.status import EXPECTED

STDERR = 2
AT_MOST_EVERY_S = 10.0
"""Whoever floods us with refused packets does not flood the log."""


class Logger:
    """Events with their facts. Its own, and no global: two nodes in one process do not mix."""

    def __init__(self, name: str, format_: LogFormat | None = None, stream: TextIO | None = None) -> None:
        self._outlet = Outlet(STDERR) if stream is None else None
        stream = cast(TextIO, self._outlet) if stream is None else stream
        if format_ is None:
            format_ = LogFormat.CONSOLE if stream.isatty() else LogFormat.JSON
        last: Any = structlog.processors.JSONRenderer(sort_keys=False)
        if format_ is LogFormat.CONSOLE:
            last = structlog.dev.ConsoleRenderer(colors=stream.isatty())
        self._log = structlog.wrap_logger(
            structlog.WriteLogger(stream),  # each line at once, lest what others write comes between it and its end
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                last,
            ],
            wrapper_class=structlog.BoundLogger,
        ).bind(node=name)

    def close(self) -> None:
        if self._outlet is not None:
            self._outlet.close()

    def info(self, event: str, **facts: Any) -> None:
        self._say(self._log.info, event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        self._say(self._log.warning, event, facts)

    def error(self, event: str, **facts: Any) -> None:
        self._say(self._log.error, event, facts)

    def _say(self, how: Callable[..., Any], event: str, facts: dict[str, Any]) -> None:
        with suppress(OSError):  # a log that cannot be written takes no node down
            how(event, **facts)


class Refusals:
    """What was refused since it was last told: one line for each reason, and not too often."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._told: Counter[str] = Counter()
        self._when: dict[str, float] = {}

    def look(self, now: float, refused: Counter[str]) -> None:
        for reason, count in sorted(refused.items()):
            if count < self._told[reason]:
                self._told[reason] = 0  # a new life counts from the beginning
            more = count - self._told[reason]
            if more and reason not in EXPECTED and now - self._when.get(reason, -AT_MOST_EVERY_S) >= AT_MOST_EVERY_S:
                self._log.warning("refused", reason=reason, packets=more)
                self._told[reason] = count
                self._when[reason] = now
