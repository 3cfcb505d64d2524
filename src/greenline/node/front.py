"""The front: where clients come in, as long as the process lives; lives of the node begin and end behind it."""

from __future__ import annotations

import msgspec

from greenline.node.certificates import ca_pem, server_context
from greenline.node.clients import Clients
from greenline.node.config import BadConfig, Tls, written
from greenline.node.desk import Desk
from greenline.node.edge import Limits
from greenline.node.envelope import credential
from greenline.node.keyfile import Kept
from greenline.node.life import Life
from greenline.node.users import Users

CA_FILE = "ca.pem"
"""Beside the node's file: what clients are to trust. It is no secret."""


class Front:
    """Make it in a running event loop, open it, and close it in the end. Both raise `BadConfig`."""

    def __init__(self, life: Life, desk: Desk) -> None:
        config = life.config
        self._life = life
        self._kept: Kept | None = None
        try:
            limits = msgspec.convert(config.limits, Limits)
        except msgspec.ValidationError as error:
            raise BadConfig(f"{config.path}: [limits] {error}") from None
        desk.clients = {name: written(address) for name, address in config.clients.items()}
        self._users = Users(desk, self._credential, limits)
        self.clients = Clients(desk, self._users, limits)

    async def open(self) -> None:
        config = self._life.config
        address = config.clients[config.name]
        try:
            self.look()
            await self.clients.listen(address)
        except OSError as error:
            where = f"{config.path}: cannot listen for clients at {written(address)}"
            raise BadConfig(f"{where}: {error.strerror}; choose a free port of this machine in [clients]") from None

    def look(self) -> None:
        """Keys may have been rotated: certificates follow them."""
        kept, config = self._life.kept, self._life.config
        if kept is None or config.tls is Tls.OFF or kept == self._kept:
            return
        self._kept = kept
        ring = kept.keyring
        hosts = {config.addresses[config.name][0], config.clients[config.name][0]}
        self.clients.tls = server_context(ring.keys[ring.current], config.name, hosts)
        (config.home / CA_FILE).write_bytes(ca_pem(*(ring.keys[number] for number in sorted(ring.keys))))

    def _credential(self) -> str | None:
        kept = self._life.kept
        return None if kept is None else credential(kept.keyring.keys[kept.keyring.current])

    async def close(self) -> None:
        await self.clients.close()
        self._users.close()
