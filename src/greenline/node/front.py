"""The front: where clients come in, as long as the process lives; lives of the node begin and end behind it."""

from __future__ import annotations

import ssl

from greenline.node.certificates import ca_pem, certify, server_context
from greenline.node.clients import Clients
from greenline.node.config import BadConfig, Tls, written
from greenline.node.descriptors import granted
from greenline.node.desk import Desk
from greenline.node.envelope import credential
from greenline.node.keyfile import Kept
from greenline.node.life import Life
from greenline.node.transport import Address
from greenline.node.users import Users
from greenline.node.web import web_app
from greenline.node.webserver import WebServer

CA_FILE = "ca.pem"
"""Beside the node's file: what clients are to trust. It is no secret."""


class Front:
    """Make it in a running event loop, open it, and close it in the end."""

    def __init__(self, life: Life, desk: Desk) -> None:
        self._life = life
        self._desk = desk
        self._kept: Kept | None = None
        self._tls: ssl.SSLContext | None = None
        limits = granted(life.config.limits, life.log)
        self._users = Users(desk, self._credential, limits)
        self.look()
        self.clients = Clients(desk, self._users, limits, self._tls)
        life.connected = lambda: self.clients.connected
        self._web: WebServer | None = None
        if life.config.web is not None:
            self._web = WebServer(web_app(desk, self._users, limits), limits, self._tls)

    async def open(self) -> None:
        """Raises `BadConfig`."""
        config = self._life.config
        address = config.clients[config.name]
        try:
            await self.clients.listen(address)
        except OSError as error:
            raise _cannot_listen(self._life, "[clients]", address, error) from None
        if self._web is not None and config.web is not None:
            try:
                self._web.open(config.web)
            except OSError as error:
                raise _cannot_listen(self._life, "web", config.web, error) from None

    def look(self) -> None:
        """Members may have come, and keys may have been rotated: certificates follow them."""
        self._desk.clients = {name: written(at) for name, at in self._life.members.known.clients.items()}
        kept, config = self._life.kept, self._life.config
        if kept is None or config.tls is Tls.OFF or kept == self._kept:
            return
        self._kept = kept
        ring = kept.keyring
        hosts = {at[0] for at in (config.addresses[config.name], config.clients[config.name], config.web) if at}
        if self._tls is None:
            self._tls = server_context(ring.keys[ring.current], config.name, hosts)
        else:
            certify(self._tls, ring.keys[ring.current], config.name, hosts)
        (config.home / CA_FILE).write_bytes(ca_pem(*(ring.keys[number] for number in sorted(ring.keys))))

    def _credential(self) -> str | None:
        kept = self._life.kept
        return None if kept is None else credential(kept.keyring.keys[kept.keyring.current])

    async def close(self) -> None:
        if self._web is not None:
            await self._web.close()
        await self.clients.close()
        self._users.close()


def _cannot_listen(life: Life, where: str, address: Address, error: OSError) -> BadConfig:
    what = f"{life.config.path}: cannot listen at {where} {written(address)}"
    return BadConfig(f"{what}: {error.strerror}; choose a free port of this machine")
