"""Beside the states: messages that mean the same in all of them."""

from __future__ import annotations

from collections.abc import Iterator

from greenline.kernel.effects import Effect
from greenline.kernel.ports import Service
from greenline.replication.messages import Fetch, Greens, Line, Segment
from greenline.replication.replica import Replica, greens_from, raise_line
from greenline.replication.server import Place, Server


def on_line(server: Server, line: Line, out: list[Effect]) -> None:
    if line.server != server.replica.me:
        raise_line(server.replica, line.server, line.durable_green, out)


def on_fetch(server: Server, fetch: Fetch) -> None:
    if fetch.source == server.replica.me:
        server.fetches.append(fetch)


def serve_fetches(server: Server, place: Place | None) -> None:
    """Our exchange is over: give who is far behind the next piece of what we have on disk."""
    replica = server.replica
    while server.fetches:
        fetch = server.fetches.pop(0)
        if place is not None and fetch.meeting == place.meeting:
            for greens, is_last in _pieces(replica, fetch.green):
                segment = Segment(
                    fetch.meeting, replica.me, fetch.server, replica.durable_green, greens, (), is_last=is_last
                )
                server.outbox.say(segment, Service.AGREED)


def _pieces(replica: Replica, green: int) -> Iterator[tuple[Greens | None, bool]]:
    """Some pieces of the order after this position, the last one marked; nothing, if we do not have it."""
    if not replica.low <= green < replica.durable_green:
        yield None, True  # who asks has all that we have, or lacks what we have discarded
        return
    for place in range(replica.settings.pieces):
        greens = greens_from(replica, green + 1, replica.durable_green, replica.settings.message_bytes)
        green += len(greens.entries)
        is_last = place == replica.settings.pieces - 1 or green == replica.durable_green
        yield greens, is_last
        if is_last:
            return
