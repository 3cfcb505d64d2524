"""`greenline init` makes a cluster on its first machine, `greenline token` prints how another joins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greenline.cli.node import PLACE
from greenline.cli.say import Misuse, as_json, aside, line
from greenline.node.bootstrap import JOINED_FILE, CannotJoin, found
from greenline.node.config import FILE, BadConfig, address_of, load
from greenline.node.invitation import BadToken, Invitations, Token

EXAMPLE = """\b
Example:
  greenline init p=10.0.0.1:7400 q=10.0.0.2:7400 r=10.0.0.3:7400 --me p
"""

_Json = Annotated[bool, typer.Option("--json", help="For programs.")]


def init(
    members: Annotated[list[str], typer.Argument(help="The initial set: NAME=HOST:PORT of each.")],
    me: Annotated[str, typer.Option("--me", help="Which of them this machine is.")],
    admin: Annotated[
        str | None, typer.Option("--admin", help="HOST:PORT for HTTP; otherwise its own port + 100.")
    ] = None,
    place: Annotated[Path, typer.Option("--dir", help="Where its files go.")] = PLACE,
    wants_json: _Json = False,
) -> None:
    """Make a cluster: its key, the first node's files, and a token with which the others join. Once, on one machine."""
    try:
        token = found(place, _table(members), me, None if admin is None else address_of("--admin", admin))
    except (CannotJoin, BadToken, ValueError) as mistake:
        raise Misuse(str(mistake)) from None
    except OSError as error:
        raise Misuse(f"cannot write to {place}: {error.strerror}; choose another --dir") from None
    if wants_json:
        _print(token, wants_json)
        return
    aside(f"the cluster {token.cluster} is made. On this machine:")
    line(f"greenline node --dir {place}")
    aside("and on the others, within a day (the token is as good as the key: keep it to yourself):")
    for name in sorted(each.partition("=")[0] for each in members):
        if name != me:
            line(f"greenline node --join {token} --name {name}")


def token(
    place: Annotated[Path, typer.Option("--dir", help="The first node's directory.")] = PLACE,
    wants_json: _Json = False,
) -> None:
    """Print a new token with which others join; it holds for a day. On the first node."""
    try:
        config = load(place / FILE)
        if config.cluster is None or config.admin is None:
            raise Misuse(
                f"{config.path} was not made by `greenline init`, so nobody can join with a token; copy its files"
            )
        if not (place / JOINED_FILE).exists():
            raise Misuse(f"{place} is not the first node's; print a token where `greenline init` was run")
        made = Invitations(place).invite(config.cluster, config.admin)
    except (BadConfig, BadToken) as mistake:
        raise Misuse(str(mistake)) from None
    except OSError as error:
        raise Misuse(f"cannot write to {place}: {error.strerror}; run this as the node's user") from None
    _print(made, wants_json)


def _table(members: list[str]) -> dict[str, str]:
    table: dict[str, str] = {}
    for text in members:
        name, equals, address = text.partition("=")
        if not equals:
            raise Misuse(f"{text!r} names no address; write for example p=10.0.0.1:7400")
        if name in table:
            raise Misuse(f"{name} is named twice; give each member its own name")
        table[name] = address
    return table


def _print(token: Token, wants_json: bool) -> None:
    if wants_json:
        as_json({"token": str(token), "cluster": token.cluster, "expires": token.expires})
    else:
        line(token)
