"""How a command reaches a cluster: by the files of one of its nodes, or by an address, a user and a password."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from greenline.cli.local import PLACE
from greenline.cli.say import Misuse
from greenline.client import Client, connect
from greenline.node.certificates import ca_pem
from greenline.node.config import FILE, BadConfig, Checked, Tls, load, written
from greenline.node.envelope import credential
from greenline.node.front import CA_FILE
from greenline.node.users import OPERATOR

PASSWORD = "GREENLINE_PASSWORD"

Place = Annotated[Path, typer.Option("--dir", help="Where a node's files live: then you are its operator.")]
At = Annotated[str | None, typer.Option("--at", help="HOST:PORT of some nodes, for clients, separated by commas.")]
User = Annotated[str | None, typer.Option("--user", help=f"With --at; the password is in ${PASSWORD}.")]
Ca = Annotated[Path | None, typer.Option("--ca", help="With --at: the cluster's certificate, from any node's ca.pem.")]


class Reach(msgspec.Struct, frozen=True):
    addresses: str
    user: str
    password: str
    ca: Path | None

    def connected(self, *, roams: bool = True) -> Client:
        """`roams`: to whatever replica is best, also to others than are named."""
        return connect(self.addresses, user=self.user, password=self.password, ca=self.ca, roams=roams)


def reach(place: Path = PLACE, at: str | None = None, user: str | None = None, ca: Path | None = None) -> Reach:
    if at is not None:
        password = os.environ.get(PASSWORD)
        if user is None or password is None:
            raise Misuse(f"--at needs --user, and its password in the environment as {PASSWORD}")
        return Reach(at, user, password, ca)
    configs = configs_in(place)
    addresses = {**configs[0].clients, **{config.name: config.clients[config.name] for config in configs}}
    return Reach(",".join(map(written, addresses.values())), OPERATOR, operator_password(configs[0]), ca_of(configs[0]))


def configs_in(place: Path) -> list[Checked]:
    """The nodes whose files are there."""
    paths = [place / FILE] if (place / FILE).exists() else sorted(place.glob("*.toml"))
    if not paths:
        raise Misuse(
            f"there is no node in {place}; start a cluster with `greenline up`, or say where one is with --dir or --at"
        )
    try:
        return [load(path) for path in paths]
    except BadConfig as mistake:
        raise Misuse(str(mistake)) from None


def operator_password(config: Checked) -> str:
    if config.kept is None:
        return ""
    ring = config.kept.keyring
    return credential(ring.keys[ring.current])


def ca_of(config: Checked) -> Path | None:
    """The certificate beside the node's files; it follows from the key, and is no secret."""
    if config.kept is None or config.tls is Tls.OFF:
        return None
    ring = config.kept.keyring
    path, pem = config.home / CA_FILE, ca_pem(*(ring.keys[number] for number in sorted(ring.keys)))
    if not path.exists() or path.read_bytes() != pem:
        path.write_bytes(pem)
    return path
