"""`greenline status`, and `cut`, `heal`, `kill`, `restart` for local clusters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from greenline.cli.local import PLACE, Local
from greenline.cli.say import Misuse, Page, as_json, aside, line, out
from greenline.kernel.identities import ProcId
from greenline.node.calls import NoAnswer, call
from greenline.node.config import FILE, BadConfig, address_of, load
from greenline.node.status import Status, unlike
from greenline.node.transport import Address
from greenline.replication.standing import Standing

Place = Annotated[Path, typer.Option("--dir", help="Where the cluster's files live.")]

_TIMEOUT_S = 1.0
_WIDE = 200
"""Columns, where nobody's window says how many."""


def status(
    place: Place = PLACE,
    at: Annotated[list[str] | None, typer.Option("--at", help="Ask at this admin port, HOST:PORT; repeatable.")] = None,
    wants_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Who is up, in which component, how far its order has come, whom it waits for and why. A node that is down is no
    error.

    white: so much of the order is on all disks; green: is ordered here; red: accepted here, and not ordered yet.
    """
    found = statuses(_given(at) if at else everybody(place))
    if wants_json:
        as_json({name: _plain(each) for name, each in found.items()})
    else:
        show(found)


def cut(
    sides: Annotated[str, typer.Argument(help='The sides, for example "p q | r".')],
    is_one_way: Annotated[
        bool, typer.Option("--one-way", help='"p q | r": r does not hear p and q, and they hear r.')
    ] = False,
    place: Place = PLACE,
) -> None:
    """Cut the network between nodes of a local cluster: both sides go on, in configurations of their own."""
    local = Local(place)
    down = local.cut_one_way(sides) if is_one_way else local.cut(sides)
    _tell_down(down, "comes back with the whole network")
    line(f"cut {sides}{', one way' if is_one_way else ''}")


def heal(place: Place = PLACE) -> None:
    """End all cuts in a local cluster."""
    Local(place).heal()
    line("healed")


def kill(name: Annotated[str, typer.Argument(help="Which node.")], place: Place = PLACE) -> None:
    """Kill a node of a local cluster, with kill -9; the others go on without it."""
    Local(place).kill(name)
    line(f"{name}  killed")


def restart(name: Annotated[str, typer.Argument(help="Which node.")], place: Place = PLACE) -> None:
    """Start a node of a local cluster again, from what its disk has."""
    local = Local(place)
    line(f"{name}  up, in its life {local.restart(name).incarnation}")
    others = [local.status(other) for other in local.names if other != name]
    if any(isinstance(each, Status) and name in each.gone for each in others):
        line(f"{name}  was removed, or has left: it is not a replica of this cluster any more, whatever it says itself")


def known(place: Path) -> dict[ProcId, Address]:
    """The admin ports of all members, as the files in the directory know them."""
    path = place / FILE
    paths = [path] if path.exists() else sorted(place.glob("*.toml")) or [path]
    try:
        configs = [load(each) for each in paths]
        return {name: address for config in configs for name, address in sorted(config.admins.items())}
    except BadConfig as mistake:
        raise Misuse(f"{mistake}; or ask a node with --at HOST:PORT") from None


def everybody(place: Path) -> dict[str, Address]:
    """The admin ports of all members: of the files, and of whoever came since, as they know of each other; of nobody
    who has left."""
    admins = known(place)
    answers = [each for each in statuses(admins).values() if isinstance(each, Status)]
    for each in answers:
        admins |= {name: address_of("admin", it.admin) for name, it in each.members.items() if name not in admins}
    gone = {name for each in answers for name in each.gone}
    return {name: admin for name, admin in sorted(admins.items()) if name not in gone}


def statuses(admins: dict[str, Address]) -> dict[str, Status | NoAnswer]:
    """What each says, all asked at once."""

    def ask(address: Address) -> Status | NoAnswer:
        try:
            return msgspec.json.decode(call(address, "GET", "/status", timeout=_TIMEOUT_S).body, type=Status)
        except NoAnswer as silence:
            return silence
        except msgspec.DecodeError:
            return NoAnswer("what answers there is no Greenline node of this version")

    with ThreadPoolExecutor(max(1, len(admins))) as threads:
        return dict(zip(admins, threads.map(ask, admins.values()), strict=True))


def show(found: dict[str, Status | NoAnswer]) -> None:
    """For people."""
    if any(isinstance(each, Status) and each.standing is not None for each in found.values()):
        _show_replicas(found)
    else:
        _show_processors(found)


def _show_replicas(found: dict[str, Status | NoAnswer]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("node", "component", "with", "white", "green", "red"):
        table.add_column(title, justify="right" if title in ("white", "green", "red") else "left")
    remarks: list[str] = []
    for name, each in found.items():
        if isinstance(each, NoAnswer):
            table.add_row(name, "down")
            remarks.append(f"{name} is down: {each}")
            continue
        stands = each.standing or Standing("no database")
        component = f"primary, {stands.prim.prim_index}" if stands.is_primary and stands.prim else "not primary"
        component = "left" if each.left is not None else component
        lines = (f"{stands.white:,}", f"{stands.green:,}", f"{stands.reds:,}")
        table.add_row(name, component if each.is_ready else "none yet", " ".join(stands.here), *lines)
        if stands.awaited:
            remarks.append(f"{name} waits for {' '.join(stands.awaited)}: {stands.because}")
        elif stands.because and not stands.is_primary:
            remarks.append(f"{name}: {stands.because}")
        if stands.left_behind:
            remarks.append(f"{name} has discarded what {' '.join(stands.left_behind)} lack: they need a snapshot")
        remarks += [f"{name}: {odd}" for odd in each.oddities]
    if (warning := unlike(each for each in found.values() if isinstance(each, Status))) is not None:
        remarks.append(warning)
    _print(table)
    for remark in remarks:
        line(remark)


def _show_processors(found: dict[str, Status | NoAnswer]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("node", "is", "life", "phase", "configuration", "delivered", "a second", "odd"):
        table.add_column(title, justify="right" if title in ("life", "delivered", "a second") else "left")
    for name, each in found.items():
        if isinstance(each, NoAnswer):
            table.add_row(name, "down", "", "", "", "", "", str(each))
            continue
        conf = "" if each.configuration is None else f"{each.configuration} {{{' '.join(each.in_configuration)}}}"
        counts = (f"{each.delivered}", f"{each.delivered_rate:.1f}")
        odd = "; ".join(each.oddities)
        table.add_row(each.name, "up", str(each.incarnation), each.phase, conf, *counts, odd)
    _print(table)


def _print(table: Table) -> None:
    page = out if out.is_terminal else Page(width=_WIDE, highlight=False, emoji=False)
    page.print(table, markup=False)


def _given(at: list[str]) -> dict[str, Address]:
    try:
        return {text: address_of("--at", text) for text in at}
    except ValueError as mistake:
        raise Misuse(str(mistake)) from None


def _plain(each: Status | NoAnswer) -> Any:
    if isinstance(each, NoAnswer):
        return {"up": False, "because": str(each)}
    return {"up": True, "odd": each.oddities, **msgspec.to_builtins(each)}


def _tell_down(down: list[ProcId], text: str) -> None:
    for name in down:
        aside(f"{name} is down; it {text}")
