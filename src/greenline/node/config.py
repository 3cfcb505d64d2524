"""Configuration: a `greenline.toml`, checked before anything is opened. A mistake is one line that says what to do.

name = "p"                      # which of the members this is
data = "data/p"                 # where its log and its traces live
key = "cluster.key"             # a file with the cluster's key: 64 hexadecimal digits

[members]
p = "10.0.0.1:7400"
q = "10.0.0.2:7400"
r = "[fd00::3]:7400"

[ring]                          # optional: what greenline.ring.settings offers
packet_bytes = 1300
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import msgspec

from greenline.kernel.identities import ProcId, proc_id
from greenline.node.driver import Address
from greenline.node.sealing import KEY_BYTES
from greenline.ring.settings import Settings


class BadConfig(Exception):
    """What is wrong, in which file, and what would be right."""


class NodeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it is written."""

    name: str
    members: dict[str, str]
    data: str
    key: str
    ring: dict[str, Any] = {}


class Checked(msgspec.Struct, frozen=True):
    """The file as it is meant, with what it refers to."""

    name: ProcId
    addresses: dict[ProcId, Address]
    data: Path
    key: bytes
    ring: Settings


def load(path: Path) -> Checked:
    try:
        raw = msgspec.toml.decode(path.read_bytes(), type=NodeConfig)
    except OSError as error:
        raise BadConfig(f"cannot read {path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise BadConfig(f"{path}: {error}") from None
    try:
        return _checked(raw, path.parent)
    except ValueError as error:
        raise BadConfig(f"{path}: {error}") from None


def _checked(raw: NodeConfig, here: Path) -> Checked:
    addresses = {proc_id(name): _address(name, text) for name, text in raw.members.items()}
    if raw.name not in addresses:
        raise ValueError(
            f"name = {raw.name!r} is none of the members {', '.join(sorted(addresses))}; add it to [members]"
        )
    taken: dict[Address, ProcId] = {}
    for name, address in sorted(addresses.items()):
        if address in taken:
            raise ValueError(f"members {taken[address]} and {name} have one address; give each its own")
        taken[address] = name
    try:
        ring = msgspec.convert(raw.ring, Settings)
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"[ring] {error}") from None
    unknown = sorted(set(raw.ring) - set(Settings.__struct_fields__))
    if unknown:
        raise ValueError(f"[ring] has no setting {unknown[0]!r}; there is {', '.join(Settings.__struct_fields__)}")
    return Checked(raw.name, addresses, here / raw.data, read_key(here / raw.key), ring)


def _address(name: ProcId, text: str) -> Address:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"members.{name} = {text!r} is no address; write 10.0.0.1:7400 or [fd00::1]:7400") from None
    if not colon or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"members.{name} = {text!r} has no port between 1 and 65535")
    return host, int(port)


def read_key(path: Path) -> bytes:
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise ValueError(f"cannot read the key file {path}: {error.strerror}") from None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError(f"{path} holds no key; it should be {2 * KEY_BYTES} hexadecimal digits")
    return key
