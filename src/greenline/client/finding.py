"""Finding a node: whoever is there, better one in a primary component. Nodes tell of each other."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable

from greenline.client.connection import Account, Connection, opened, parted
from greenline.client.errors import InterfaceError, Refused, Unreachable

ANSWER_WITHIN_S = 5.0
"""A node that does not welcome us by then is passed over; to check a password takes a node a quarter of a second."""


_HOPELESS = frozenset({"password", "role", "certificate", "version", "tls"})
"""Refusals that no further try will change."""


class Nobody(Exception):
    """No node takes us, or can be reached: what came of each."""

    def __init__(self, errors: list[Unreachable | Refused]) -> None:
        super().__init__(f"no node can be reached: {'; '.join(map(str, errors))}")
        self.refusals = [error for error in errors if isinstance(error, Refused)]
        hopeless = [refusal for refusal in self.refusals if refusal.kind in _HOPELESS]
        self.is_hopeless = bool(hopeless)
        """Somebody does not take us, and will not."""
        self.is_unanimous = len(hopeless) == len(errors)
        """Nor will anybody else: one who is behind might not know us yet."""

    @property
    def error(self) -> Unreachable | Refused:
        """For whoever does not try again."""
        return self.refusals[0] if self.refusals else Unreachable(str(self))


class Finder:
    def __init__(self, addresses: str, account: Account, roams: bool = True) -> None:
        given = [each.strip() for each in addresses.split(",") if each.strip()]
        if not given:
            raise InterfaceError("no address of a node was given: write host:port,host:port")
        for address in given:
            parted(address)
        self._account = account
        self._roams = roams
        self._context = account.context()
        self._addresses = random.sample(given, len(given))
        """Who is to be tried first, first. In no order to begin with, lest all clients are at one node."""

    async def find(self) -> Connection:
        """Try all of them, once. Raises `Nobody`."""
        welcome: list[Connection] = []
        errors: list[Unreachable | Refused] = []
        best: Connection | None = None
        try:
            for address in tuple(self._addresses):
                try:
                    welcome.append(await opened(address, self._account, self._context, ANSWER_WITHIN_S))
                except (Unreachable, Refused) as error:
                    errors.append(error)
                    self.put_last(address)
                    continue
                self._learn(welcome[-1].welcome.clients.values())
                if welcome[-1].welcome.where.is_primary:
                    best = welcome[-1]
                    return best
            best = next((each for each in welcome if not each.lost.done()), None)
        finally:
            for connection in welcome:
                if connection is not best:
                    connection.abandon("another node is better placed")
        if best is not None:
            return best
        raise Nobody(errors)

    async def find_primary(self, besides: str) -> Connection | None:
        """Somebody else, in a primary component."""
        for address in tuple(self._addresses):
            if address == besides:
                continue
            with contextlib.suppress(Unreachable, Refused):
                connection = await opened(address, self._account, self._context, ANSWER_WITHIN_S)
                if connection.welcome.where.is_primary:
                    return connection
                connection.abandon("it is in no primary component either")
        return None

    def put_last(self, address: str) -> None:
        if address in self._addresses:
            self._addresses.remove(address)
            self._addresses.append(address)

    def _learn(self, addresses: Iterable[str]) -> None:
        for address in sorted(addresses) if self._roams else ():
            if address not in self._addresses:
                with contextlib.suppress(InterfaceError):
                    parted(address)
                    self._addresses.append(address)
