"""Envelopes: bodies that travel over plain HTTP and may be read by one reader only.

Each purpose has a key of its own, derived from a shared one: what was sealed for one purpose opens for no other.
"""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from greenline.node.sealing import KEY_BYTES

_NONCE_BYTES = 12


class NotAuthentic(Exception):
    """Sealed with another key, for another purpose, about something else, or changed on the way."""


def derived(key: bytes, purpose: str) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=purpose.encode()).derive(key)


def credential(key: bytes) -> str:
    """What an administrator shows to a node: whoever has the cluster's key can derive it, and nobody can go back."""
    return derived(key, "greenline admin").hex()


class Envelope:
    """Seals and opens what two holders of one key say to each other for one purpose."""

    def __init__(self, key: bytes, purpose: str) -> None:
        self._cipher = AESGCM(derived(key, purpose))

    def seal(self, body: bytes, about: bytes = b"") -> bytes:
        """`about` is not sent; it opens only for who knows the same."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, body, about)

    def open(self, sealed: bytes, about: bytes = b"") -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about)
        except (InvalidTag, ValueError):
            raise NotAuthentic from None
