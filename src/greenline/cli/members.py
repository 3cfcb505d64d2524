"""`greenline join`, `leave` and `remove`: replicas come and go while the cluster runs. `greenline user`: who may."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from greenline.cli.cluster import everybody, statuses
from greenline.cli.local import PLACE, Local, add, waits_for
from greenline.cli.reach import At, Ca, Place, Reach, User, reach
from greenline.cli.say import Misuse, aside, line
from greenline.client import Client, Error
from greenline.client.admin import ROLES
from greenline.node.acquaintance import Damaged
from greenline.node.bootstrap import CannotJoin
from greenline.node.bootstrap import join as join_by_token
from greenline.node.config import address_of
from greenline.node.invitation import BadToken, token_of
from greenline.node.status import Status
from greenline.node.transport import Address

JOIN = """\b
Examples:
  greenline join s                                        another replica of the local cluster
  greenline join s --token gl1-... --at 10.0.0.4:7400     of a cluster on other machines; then: greenline node
"""
NEW_PASSWORD = "GREENLINE_NEW_PASSWORD"
_T = TypeVar("_T")


def join(
    name: Annotated[str, typer.Argument(help="A name that the cluster has never had.")],
    token: Annotated[str | None, typer.Option("--token", help="From `greenline token` on the first node.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="HOST:PORT where the others will reach it.")] = None,
    place: Annotated[Path, typer.Option("--dir", help="Where its files go, or the local cluster's are.")] = PLACE,
    within: Annotated[float, typer.Option("--within", help="Seconds to wait until it is a replica.")] = 120.0,
) -> None:
    """Add a replica: it is given the state while the others go on, and counts from then on."""
    if token is None:
        _join_here(name, place, within)
        return
    if at is None:
        raise Misuse("--token needs --at: where will the others reach this machine?")
    try:
        path = join_by_token(token_of(token), name, place, address_of("--at", at))
    except (BadToken, CannotJoin, Damaged, ValueError) as mistake:
        raise Misuse(str(mistake)) from None
    aside(f"{name} is expected at {at}. On this machine:")
    line(f"greenline node {path}")


def _join_here(name: str, place: Path, within: float) -> None:
    local = Local(place)
    member = add(local, name)

    async def appoint(db: Client) -> None:
        await db.admin.place(name, address=member.address, admin=member.admin, clients=member.clients)

    asked(reach(place), appoint, within)
    local = Local(place)
    local.restart(name)
    aside(f"{name} is up, and is given the state")
    if not waits_for(lambda: _is_replica(local.status(name)), within):
        raise Misuse(f"{name} is no replica after {within:g} s; `greenline status` says what it waits for")
    line(f"{name}  is a replica")


def _is_replica(status: object) -> bool:
    return isinstance(status, Status) and status.standing is not None and status.standing.is_primary


def leave(
    name: Annotated[str, typer.Argument(help="Which replica.")],
    place: Place = PLACE,
    at: At = None,
    user: User = None,
    ca: Ca = None,
    within: Annotated[float, typer.Option("--within", help="Seconds to wait.")] = 60.0,
) -> None:
    """Let a replica go for good. All that it has accepted is ordered, and its name is never used again."""

    async def go(db: Client) -> int:
        return (await db.admin.leave(name)).position

    admin = everybody(place).get(name) if at is None else None
    position = asked(reach(place, at, user, ca), go, within)
    if admin is None:
        line(f"{name}  leaves at {position}; stop it once its status says `left`: until then the others may need it")
    elif waits_for(lambda: _has_left(admin), within):
        line(f"{name}  has left at {position}, and may be stopped")
    else:
        raise Misuse(f"{name} leaves at {position}, and is needed still; stop it once its status says `left`")


def _has_left(admin: Address) -> bool:
    """Does it say so itself?"""
    (status,) = statuses({"it": admin}).values()
    return isinstance(status, Status) and status.left is not None


def remove(
    name: Annotated[str, typer.Argument(help="Which replica.")],
    dead: Annotated[bool, typer.Option("--dead", help="Its disk is lost, or it will never be started again.")] = False,
    place: Place = PLACE,
    at: At = None,
    user: User = None,
    ca: Ca = None,
    within: Annotated[float, typer.Option("--within", help="Seconds to wait.")] = 60.0,
) -> None:
    """Remove a replica that is dead. What only it had accepted is lost; it must never come back."""
    if not dead:
        raise Misuse(
            f"what only {name} has accepted is lost when it is removed; say --dead if it will never come back, or let"
            f" it go with `greenline leave {name}` while it runs"
        )
    if _runs_here(name, place):
        raise Misuse(f"{name} runs in {place}: it is not dead; use `greenline leave {name}`, or stop it for good first")

    async def go(db: Client) -> int:
        return (await db.admin.remove(name)).position

    line(f"{name}  is removed, at {asked(reach(place, at, user, ca), go, within)}")


def _runs_here(name: str, place: Path) -> bool:
    try:
        local = Local(place)
    except Misuse:
        return False
    return name in local.names and local.pid(name) is not None


def survive(
    survivors: Annotated[list[str], typer.Argument(help="Replicas that live, and are connected to each other.")],
    dead: Annotated[list[str], typer.Option("--dead", help="One that is lost for good; repeat it for each.")],
    reason: Annotated[str, typer.Option("--reason", help="For the record.")],
    place: Place = PLACE,
    at: At = None,
    user: User = None,
    ca: Ca = None,
    within: Annotated[float, typer.Option("--within", help="Seconds to wait.")] = 60.0,
) -> None:
    """The majority is lost for good: go on without it. What only the dead had is lost, answered or not, and none of
    them may ever come back. Together, survivors and dead are everybody."""

    async def go(db: Client) -> None:
        await db.admin.survive(survivors, dead, reason)

    asked(reach(place, at, user, ca), go, within)
    line(f"{' '.join(survivors)}  go on without {' '.join(dead)}; keep those from ever starting again")


def user(
    name: Annotated[str, typer.Argument(help="Whom.")],
    role: Annotated[str, typer.Option("--role", help="read, write or admin.")] = "write",
    drop: Annotated[bool, typer.Option("--drop", help="They are nobody any more.")] = False,
    place: Place = PLACE,
    at: At = None,
    as_user: User = None,
    ca: Ca = None,
) -> None:
    """Let somebody use the cluster, with a password of their own; or change it, or their role, or end it."""
    if role not in ROLES:
        raise Misuse(f"--role {role}: choose {', '.join(ROLES)}")

    async def change(db: Client) -> int:
        done = await (db.admin.drop_user(name) if drop else db.admin.create_user(name, _new_password(name), role))
        return done.position

    position = asked(reach(place, at, as_user, ca), change)
    line(f"{name}  {'is no user any more' if drop else f'may {role}'}, from {position} on")


def _new_password(name: str) -> str:
    try:
        return os.environ.get(NEW_PASSWORD) or getpass.getpass(f"a password for {name} (or set {NEW_PASSWORD}): ")
    except EOFError:
        raise Misuse(f"{name} needs a password: set {NEW_PASSWORD}, or type it at a terminal") from None


def asked(reached: Reach, ask: Callable[[Client], Awaitable[_T]], within: float = 30.0) -> _T:
    """One question by an administrator; a mistake is one line."""

    async def run() -> _T:
        async with asyncio.timeout(within):
            async with reached.connected() as db:
                return await ask(db)

    try:
        return asyncio.run(run())
    except TimeoutError:
        raise Misuse(f"no answer within {within:g} s; is there a primary component? `greenline status` tells") from None
    except Error as error:
        raise Misuse(str(error)) from None
