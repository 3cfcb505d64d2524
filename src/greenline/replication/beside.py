"""Beside the states: what is the same in all of them."""

from __future__ import annotations

from collections.abc import Iterator

from greenline.kernel.effects import Effect, Trace
from greenline.kernel.ports import Service
from greenline.replication.giving import serve
from greenline.replication.messages import Fetch, Greens, Line, Segment
from greenline.replication.port import Announce, Seen
from greenline.replication.queries import refuse_all
from greenline.replication.replica import Replica, greens_from, raise_line
from greenline.replication.requests import close, left_at, reconfigure_ourselves
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


def serve_newcomers(server: Server, place: Place | None, out: list[Effect]) -> None:
    """Our exchange is over: do the next step for whoever needs a snapshot in this meeting."""
    giving = server.giving
    giving.wants = {name: want for name, want in giving.wants.items() if place and want.meeting == place.meeting}
    giving.picks = [pick for pick in giving.picks if place and pick.meeting == place.meeting]
    serve(server.replica, giving, server.requests, server.applying, server.outbox, out)


def close_if_left(server: Server, out: list[Effect]) -> None:
    """Our own leave is green: whoever waits here is sent elsewhere."""
    if server.is_closed:
        return
    server.is_closed = True
    out.append(Trace("leaving", position=left_at(server.replica)))
    close(server.replica, server.requests, out)
    refuse_all(server.queries, "this server has left the cluster; ask another", out)


def announce_procedures(server: Server) -> None:
    """Once in a life, if the others know otherwise: a procedure is called only where everybody has it."""
    replica = server.replica
    seat = replica.roster.seat_of(replica.me)
    if seat is None or replica.is_new:
        return
    server.has_announced = True
    if seat.procedures != replica.settings.procedures:
        reconfigure_ourselves(server.requests, Announce(replica.me, replica.settings.procedures))


def say_what_is_seen(server: Server) -> None:
    """Sessions are to end, and our disk has that: say so in the order, once in a life."""
    replica, ending = server.replica, server.replica.roster.ending
    assert ending is not None
    is_due = replica.me in ending.waiting and replica.durable_green >= ending.position > server.has_seen
    if is_due and not replica.has_left:
        server.has_seen = ending.position
        reconfigure_ourselves(server.requests, Seen(replica.me, replica.durable_green))


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
