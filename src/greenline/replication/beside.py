"""Beside the states: messages that mean the same in all of them."""

from __future__ import annotations

from greenline.kernel.effects import Effect
from greenline.kernel.ports import Service
from greenline.replication.messages import Fetch, Line, Segment
from greenline.replication.replica import greens_from, raise_line
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
            greens = None  # it has all that we have, or lacks what we have discarded
            if replica.low <= fetch.green < replica.durable_green:
                greens = greens_from(replica, fetch.green + 1, replica.durable_green, replica.settings.message_bytes)
            segment = Segment(fetch.meeting, replica.me, fetch.server, replica.durable_green, greens, ())
            server.outbox.say(segment, Service.AGREED)
