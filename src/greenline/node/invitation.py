"""Invitations: the token that a person carries from the first node to another, and what the first keeps of it.

A token is one string to copy: where the first node is, which cluster, a secret that both derive the join's key from,
and until when. It is as good as the cluster's key until it expires, so it travels the way a key would.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import time
import tomllib
from pathlib import Path

import msgspec
from crc32c import crc32c

from greenline.node.keyfile import write_private
from greenline.node.transport import Address

FILE = "join.toml"
LASTS_S = 24 * 3600.0
SECRET_BYTES = 32
_PREFIX = "gl1-"


class BadToken(Exception):
    """Why the token is of no use, and what to do."""


class Token(msgspec.Struct, frozen=True, array_like=True):
    cluster: str
    admin: Address
    secret: bytes
    expires: int

    def __str__(self) -> str:
        record = msgspec.msgpack.encode(self)
        check = crc32c(record).to_bytes(4, "big")
        return _PREFIX + base64.urlsafe_b64encode(record + check).decode().rstrip("=")

    def check_time(self, now: float) -> None:
        if now >= self.expires:
            day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.expires))
            raise BadToken(f"the token expired on {day}; print a new one with `greenline token` on the first node")


def token_of(text: str) -> Token:
    """What a person pasted."""
    garbled = BadToken("the token is garbled; copy all of it, from gl1- to its last letter")
    text = text.strip()
    if not text.startswith(_PREFIX):
        raise garbled
    body = text.removeprefix(_PREFIX)
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        token = msgspec.msgpack.decode(data[:-4], type=Token)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise garbled from None
    if crc32c(data[:-4]).to_bytes(4, "big") != data[-4:] or len(token.secret) != SECRET_BYTES:
        raise garbled
    return token


class Invitations:
    """The secrets of the tokens that still hold, in a file for their owner's eyes."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def invite(self, cluster: str, admin: Address, lasts: float = LASTS_S) -> Token:
        """A new token; those that have expired are forgotten."""
        token = Token(cluster, admin, secrets.token_bytes(SECRET_BYTES), int(time.time() + lasts))
        alive = {**self._alive(), token.secret: token.expires}
        lines = [
            f'[[invitation]]\nsecret = "{secret.hex()}"\nexpires = {expires}\n' for secret, expires in alive.items()
        ]
        write_private(self._path, "\n".join(lines))
        return token

    def secrets(self) -> list[bytes]:
        """Of the tokens that hold now; read anew each time, because `greenline token` writes while the node runs."""
        return list(self._alive())

    def _alive(self) -> dict[bytes, int]:
        try:
            found = msgspec.convert(tomllib.loads(self._path.read_text()), _Page).invitation
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, msgspec.ValidationError) as error:
            raise BadToken(f"cannot read {self._path}: {error}; remove it, and print a new token") from None
        return {bytes.fromhex(each.secret): each.expires for each in found if each.expires > time.time()}


class _Invitation(msgspec.Struct, frozen=True):
    secret: str
    expires: int


class _Page(msgspec.Struct, frozen=True):
    invitation: list[_Invitation]
