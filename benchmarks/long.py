"""A long legal execution, made quickly: processes that deliver, part and meet again, as one run of any length."""

from __future__ import annotations

from collections.abc import Iterator

from greenline.kernel.evidence import DELIVER, GENERATE, QUIET, REGULAR, SEND, START, TRANSITIONAL, WORLD, Row

MESSAGES = 200
"""Messages in one configuration."""


class _Process:
    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[Row] = []
        self.conf = ""
        self.sent = 0

    def add(self, kind: str, **rest: str | None) -> None:
        self.rows.append(Row(self.name, 1, len(self.rows), 0.0, kind, "long", self.conf or None, **rest))  # type: ignore[arg-type]

    def enter(self, kind: str, conf: str, members: str) -> None:
        self.conf = conf
        self.add(kind, members=members)


def long_execution(events: int, processes: int) -> list[Row]:
    """About so many events: all together, then two halves, then all together again, and so on."""
    everybody = [_Process(chr(ord("a") + n)) for n in range(processes)]
    for process in everybody:
        process.add(START)
        process.enter(REGULAR, f"{process.name}.1", process.name)
    counter = 1
    halves = [everybody[: processes // 2], everybody[processes // 2 :]]
    while sum(len(process.rows) for process in everybody) < events:
        counter += 1
        _install([everybody], counter)
        leftovers = list(_talk(everybody, MESSAGES, keep_back=processes))
        counter += 1
        _install(halves, counter, leftovers)
        for half in halves:
            list(_talk(half, MESSAGES // 2, keep_back=0))
    counter += 1
    _install([everybody], counter)
    rows = [row for process in everybody for row in process.rows]
    return [*rows, Row(WORLD, 0, 0, 0.0, QUIET)]


def _install(groups: list[list[_Process]], counter: int, leftovers: list[tuple[str, str]] | None = None) -> None:
    """Each group goes to a configuration of its own, through transitional ones of those who come together."""
    for group in groups:
        conf = f"{group[0].name}.{counter}"
        members = " ".join(process.name for process in group)
        came_from = {process.name: process.conf for process in group}
        for process in group:
            old = came_from[process.name]
            together = " ".join(name for name, conf in came_from.items() if conf == old)
            process.enter(TRANSITIONAL, f"{old}>{conf}", together)
            for message, service in leftovers or ():
                process.add(DELIVER, message=message, service=service, digest="0")
            process.enter(REGULAR, conf, members)


def _talk(group: list[_Process], messages: int, keep_back: int) -> Iterator[tuple[str, str]]:
    """Everybody speaks in turn and everybody delivers; the last few messages are left for the transition."""
    for number in range(messages):
        sender = group[number % len(group)]
        sender.sent += 1
        message, service = f"{sender.name}:1:{sender.sent}", "safe" if number % 2 else "agreed"
        sender.add(GENERATE, message=message, service=service, digest="0")
        sender.add(SEND, message=message)
        if number >= messages - keep_back:
            yield message, service
            continue
        for process in group:
            process.add(DELIVER, message=message, service=service, digest="0")
