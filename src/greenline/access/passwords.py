"""Passwords: what is kept of one is a verifier, from which nobody comes back to it but by guessing, slowly (scrypt).

A verifier is a text that says how it was made: `scrypt$16384$8$5$<salt>$<hash>`. So the cost may be raised, and old
verifiers hold. It is made by whoever knows the password, and is all that ever enters the order.
"""

from __future__ import annotations

import hmac
import re
from hashlib import scrypt

SALT_BYTES = 16
HASH_BYTES = 32
MOST_BYTES = 1024
"""Of a password."""
MOST_MEMORY = 64 << 20
_MOST_TURNS = 16

_VERIFIER = re.compile(r"scrypt\$([0-9]{1,7})\$([0-9]{1,2})\$([0-9]{1,2})\$([0-9a-f]{32})\$([0-9a-f]{64})")


def verifier(password: str, salt: bytes, *, n: int = 1 << 14, r: int = 8, p: int = 5) -> str:
    """What to keep of a password; `salt` is 16 random bytes, new for each. Takes a quarter of a second."""
    hashed = _hashed(password, salt, n, r, p)
    return f"scrypt${n}${r}${p}${salt.hex()}${hashed.hex()}"


def is_verifier(text: str) -> bool:
    """Can a password be checked against it, at a price that a node can pay?"""
    found = _VERIFIER.fullmatch(text)
    if found is None:
        return False
    n, r, p = (int(each) for each in found.groups()[:3])
    is_power = n >= 2 and n & (n - 1) == 0
    return is_power and r >= 1 and 1 <= p <= _MOST_TURNS and 128 * n * r <= MOST_MEMORY


def is_right(password: str, against: str) -> bool:
    """Takes as long as its verifier took."""
    found = _VERIFIER.fullmatch(against)
    if found is None or not is_verifier(against) or len(password.encode()) > MOST_BYTES:
        return False
    n, r, p = (int(each) for each in found.groups()[:3])
    return hmac.compare_digest(_hashed(password, bytes.fromhex(found[4]), n, r, p), bytes.fromhex(found[5]))


def _hashed(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=2 * MOST_MEMORY, dklen=HASH_BYTES)
