"""The key file: the cluster's keys, for the eyes of one user.

Either 64 hexadecimal digits, which are key 1, or what a node writes once keys are rotated:

changes = 3                     # how often this file was changed by a rotation: an old step cannot be played again
current = 2                     # seals; the others only open

[keys]
1 = "…64 hexadecimal digits…"
2 = "…"
"""

from __future__ import annotations

import os
import re
import secrets
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from greenline.node.sealing import KEY_BYTES, Keyring

HIGHEST_NUMBER = 255
"""A key's number is one byte of every packet."""


class BadKeyFile(ValueError):
    """What is wrong with the file, and what would be right."""


class Kept(msgspec.Struct, frozen=True):
    """What a key file holds."""

    keyring: Keyring
    changes: int = 0


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def read(path: Path) -> Kept:
    try:
        mode = path.stat().st_mode
        text = path.read_text()
    except OSError as error:
        raise BadKeyFile(f"cannot read the key file {path}: {error.strerror}; name one in `key`") from None
    except UnicodeDecodeError:
        raise _holds_no_key(path) from None
    if mode & 0o077:
        raise BadKeyFile(f"others may read the key file {path}; chmod 600 {path}")
    if "=" not in text:
        return Kept(Keyring({1: _key(text.strip(), path)}, 1))
    return _kept(text, path)


def write(path: Path, kept: Kept) -> None:
    """All of it or nothing, and nobody else may read it."""
    keys = "".join(f'{number} = "{key.hex()}"\n' for number, key in sorted(kept.keyring.keys.items()))
    write_private(path, f"changes = {kept.changes}\ncurrent = {kept.keyring.current}\n\n[keys]\n{keys}")


def write_private(path: Path, text: str) -> None:
    """Replace a file in one go, forced, readable by its owner alone."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(file)
        beside.rename(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)  # the new name, too
    finally:
        os.close(directory)


def _kept(text: str, path: Path) -> Kept:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise _holds_no_key(path) from None
    keys, current, changes = found.get("keys"), found.get("current"), found.get("changes", 0)
    if not isinstance(keys, dict) or not isinstance(current, int) or not isinstance(changes, int):
        raise _holds_no_key(path)
    ring = {_number(name, path): _key(key, path) for name, key in keys.items()}
    if current not in ring:
        raise BadKeyFile(f"{path}: current = {current} is none of the keys {', '.join(sorted(keys))}; name one of them")
    return Kept(Keyring(ring, current), changes)


def _number(name: str, path: Path) -> int:
    if not name.isdecimal() or not 1 <= int(name) <= HIGHEST_NUMBER:
        raise BadKeyFile(f"{path}: a key is numbered from 1 to {HIGHEST_NUMBER}, and not {name!r}")
    return int(name)


def _key(text: Any, path: Path) -> bytes:
    if not isinstance(text, str) or not re.fullmatch(f"[0-9a-fA-F]{{{2 * KEY_BYTES}}}", text):
        raise _holds_no_key(path)
    return bytes.fromhex(text)


def _holds_no_key(path: Path) -> BadKeyFile:
    return BadKeyFile(f"{path} holds no key; it should be {2 * KEY_BYTES} hexadecimal digits")
