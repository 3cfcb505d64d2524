"""TLS of one connection, in memory: sealed bytes in, plain bytes out, and the other way round.

asyncio's own keeps what it has sealed where its limits do not see it, and 256 KB for every client that says nothing.
Here the connection sees every byte, the first one as well: it says whether the caller speaks TLS at all.
"""

from __future__ import annotations

import ssl

HANDSHAKE = 0x16
"""The first byte of a TLS connection."""
_PIECE = 64 << 10


class Broken(Exception):
    """They do not agree, or what came was changed on the way: it is over. What is `leaving` says so to the peer."""


class Tls:
    """The side of the server."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.is_agreed = False
        """The handshake is done: plain bytes may be sent."""
        self.is_over = False
        """The peer has said that nothing more comes."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def opened(self, sealed: bytes) -> bytes:
        """What these bytes from the peer say, with those before. Afterwards something may be `leaving`.

        Raises `Broken`.
        """
        self._incoming.write(sealed)
        try:
            return self._read() if self.is_agreed or self._agree() else b""
        except ssl.SSLError as error:
            raise Broken(error.reason or str(error)) from None

    def seal(self, plain: bytes) -> None:
        """Only once it `is_agreed`."""
        left = memoryview(plain)
        while left:
            left = left[self._object.write(left) :]

    def leaving(self) -> bytes:
        """What is to be sent to the peer."""
        return self._outgoing.read()

    def _agree(self) -> bool:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.is_agreed = True
        return True

    def _read(self) -> bytes:
        pieces: list[bytes] = []
        try:
            while piece := self._object.read(_PIECE):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            return b"".join(pieces)
        except ssl.SSLZeroReturnError:
            pass
        self.is_over = True
        return b"".join(pieces)
