"""Reaching a cluster from Spark: the options that say where it is and who asks, for the source and the sink alike.

Workers may be on other machines than the driver: all that they need travels with them, also the certificate.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import msgspec

from greenline.client import Client, connect
from greenline.client.connection import Account
from greenline.client.finding import Finder

PASSWORD = "GREENLINE_PASSWORD"
OPTIONS = ("at", "user", "password", "ca")


class BadOption(Exception):
    """An option that is missing, unknown or makes no sense: which, why, and what to write."""


class Reach(msgspec.Struct, frozen=True):
    addresses: str
    user: str
    password: str
    ca: str
    """The cluster's certificate itself, as text; empty: nothing is encrypted."""

    def connected(self, *, roams: bool = True, connect_timeout: float = 10.0) -> Client:
        """To be opened with `async with`."""
        with self._certificate() as ca:
            return connect(
                self.addresses,
                user=self.user,
                password=self.password,
                ca=ca,
                roams=roams,
                connect_timeout=connect_timeout,
            )

    def finder(self) -> Finder:
        """For who speaks to nodes without a client."""
        with self._certificate() as ca:
            return Finder(self.addresses, Account(self.user, self.password, ca))

    @contextmanager
    def _certificate(self) -> Iterator[Path | None]:
        """As a file, for as long as it takes to read it."""
        if not self.ca:
            yield None
            return
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(self.ca)
            file.flush()
            yield Path(file.name)

    def __repr__(self) -> str:
        return f"Reach({self.addresses!r}, {self.user!r})"


def reach(options: Mapping[str, str]) -> Reach:
    """`at`: addresses, with a user and a password; or a local cluster's directory: its operator if no user is named."""
    at = options.get("at", "").strip()
    if not at:
        raise BadOption('where is the cluster? option("at", "HOST:PORT,HOST:PORT"), or the directory of a local one')
    local = _local(Path(at)) if Path(at).is_dir() else None
    if local is not None and "user" not in options:
        return local
    user, password = options.get("user"), options.get("password") or os.environ.get(PASSWORD)
    if not user or password is None:
        raise BadOption(f'{at} asks who you are: option("user", ...) and option("password", ...), or ${PASSWORD}')
    if local is not None:
        return Reach(local.addresses, user, password, local.ca)
    return Reach(at, user, password, _read(Path(options["ca"])) if options.get("ca") else "")


def check_known(options: Mapping[str, str], known: Collection[str]) -> None:
    for name in options:
        if name.lower() not in known:
            near = get_close_matches(name.lower(), known, 1)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise BadOption(f"there is no option {name}: {meant}")


def _local(place: Path) -> Reach:
    # Here and not above: no worker needs what a node is made of, and each would take its time to import it.
    from greenline.pipeline.reaching_local import files_of

    return Reach(*files_of(place))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"the certificate {path} cannot be read: {error}") from None
