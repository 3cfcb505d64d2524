"""`greenline backup` and `restore`: the state as one file, and a new cluster that begins with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from greenline.cli.local import PLACE, make
from greenline.cli.node import OURS_ALONE
from greenline.cli.reach import configs_in
from greenline.cli.say import Misuse, aside, line
from greenline.database.sqlite.backups import NoBackup, begin_anew, take
from greenline.node.bootstrap import DATA, CannotJoin, found
from greenline.node.life import DATABASE_DIRECTORY

RESTORE = """\b
Examples:
  greenline restore monday.db --dir again                       a local cluster, of one replica to begin with
  greenline restore monday.db --dir greenline --me p=10.0.0.1:7400
"""


def backup(
    target: Annotated[Path, typer.Argument(help="A new file.")],
    name: Annotated[str | None, typer.Option("--name", help="Of which replica, in a local cluster.")] = None,
    place: Annotated[Path, typer.Option("--dir", help="Where the node's files are, on this machine.")] = PLACE,
) -> None:
    """Copy the state of a replica, as it is committed now, into one SQLite file. The node may run or not."""
    configs = {config.name: config for config in configs_in(place)}
    config = configs.get(name or next(iter(configs)))
    if config is None:
        raise Misuse(f"there is no {name!r} in {place}; there is {' '.join(configs)}")
    os.umask(OURS_ALONE)
    try:
        position = take(config.data / DATABASE_DIRECTORY, target)
    except NoBackup as mistake:
        raise Misuse(str(mistake)) from None
    line(f"{target}  {target.stat().st_size:,} bytes, the state of {config.name} at {position}")


def restore(
    source: Annotated[Path, typer.Argument(help="What `greenline backup` has made.")],
    place: Annotated[Path, typer.Option("--dir", help="Where the new cluster's first node goes.")],
    me: Annotated[str | None, typer.Option("--me", help="NAME=HOST:PORT of it; without, a local cluster.")] = None,
) -> None:
    """Begin a new cluster with what is in a backup. It is another one: new keys, a new order; users stay."""
    if place.exists() and any(place.iterdir()):
        raise Misuse(f"{place} is not empty; a restored cluster is a new one, choose a new --dir")
    os.umask(OURS_ALONE)
    if me is None:
        data, names = (
            make(place, ("p",)).configs["p"].data,
            "greenline up -n 1 --dir {0}, then greenline join q --dir {0}",
        )
    else:
        name, equals, address = me.partition("=")
        if not equals:
            raise Misuse(f"--me {me}: write for example --me p=10.0.0.1:7400")
        try:
            found(place, {name: address}, name, None)
        except (CannotJoin, ValueError) as mistake:
            raise Misuse(str(mistake)) from None
        data, names = place / DATA, "greenline node --dir {0}, then greenline token --dir {0} for the others"
    try:
        position = begin_anew(source, data / DATABASE_DIRECTORY)
    except NoBackup as mistake:
        raise Misuse(str(mistake)) from None
    line(f"{place}  begins with what was at {position}")
    aside(f"next: {names.format(place)}")
