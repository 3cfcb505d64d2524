"""Clusters of real nodes with their databases, each node in a process of its own on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from greenline.cli.local import Local, make, waits_for
from greenline.cli.reach import reach
from greenline.client import Client
from greenline.kernel.identities import ProcId
from greenline.node.config import written
from greenline.node.status import Status

PATIENCE_S = 30.0


@contextmanager
def databases(place: Path, names: str) -> Iterator[Local]:
    """All in one primary component to begin with; stopped in the end."""
    local = make(place, tuple(names.split()), faults=True)
    try:
        assert local.start_all() == []
        until_primary(local, names)
        yield local
    finally:
        local.stop_all()


def until_primary(local: Local, names: str, within: float = PATIENCE_S) -> None:
    """Until these are a primary component, and know it."""
    wanted = tuple(names.split())

    def are_there() -> bool:
        found = [local.status(name) for name in wanted]
        return all(_is_in_primary(each, wanted) for each in found)

    assert waits_for(are_there, within), {name: local.status(name) for name in wanted}


def _is_in_primary(status: object, members: tuple[ProcId, ...]) -> bool:
    stands = status.standing if isinstance(status, Status) else None
    return stands is not None and stands.is_primary and stands.prim is not None and stands.prim.servers == members


def until_alone(local: Local, name: ProcId) -> None:
    """Until it knows that nobody is with it."""

    def is_alone() -> bool:
        found = local.status(name)
        return isinstance(found, Status) and found.standing is not None and found.standing.here == (name,)

    until(is_alone)


def until(condition: Callable[[], bool]) -> None:
    assert waits_for(condition, PATIENCE_S)


def client(local: Local, at: ProcId | None = None, *, account: tuple[str, str] | None = None) -> Client:
    """At this node only, or wherever it likes; the operator's, or this user's. To be opened with `async with`."""
    reached = reach(local.place)
    if account is not None:
        reached = msgspec.structs.replace(reached, user=account[0], password=account[1])
    if at is None:
        return reached.connected()
    only = msgspec.structs.replace(reached, addresses=written(local.configs[at].clients[at]))
    return only.connected(roams=False)
