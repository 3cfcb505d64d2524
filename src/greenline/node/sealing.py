"""Sealing: every packet between nodes is encrypted and authenticated with the cluster's key, and counts once.

    version 1 | key 1 | incarnation 4 | counter 8 | name 1 + n | ciphertext and tag

Each life of each sender has a key of its own, derived from the cluster's (HKDF over its name and incarnation), so a
counter that begins at 1 with every life never repeats under one key. The header is authenticated with the rest. A
receiver keeps, for each sender, the highest incarnation that it has seen and a window of the counters behind the
highest: a packet that was recorded and is sent again is refused, whether it belongs to a configuration or not.

What remains: a receiver that has just begun a life has seen nothing yet, and would take one recorded packet of each
sender's present or last life. `Opener.seen` can be kept on disk, and then only the present life's remains. The protocol
above refuses what belongs to an old configuration.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from greenline.kernel.identities import ProcId, proc_id

VERSION = 1
KEY_BYTES = 32
WINDOW = 4096
"""How far a packet may be behind the newest of its sender: more than any network reorders in one breath."""
_HEADER = struct.Struct(">BBIQB")
OVERHEAD = _HEADER.size + 32 + 16
"""Bytes that sealing adds, at most."""

Keys = dict[int, bytes]
"""The cluster's keys by number: one to seal with, and while keys are rotated the one before or after it."""


class Refused(Exception):
    """A packet that is not opened; the message is the reason by which it is counted."""


def _derived(key: bytes, name: ProcId, incarnation: int) -> AESGCM:
    info = b"greenline packet\x00" + name.encode() + b"\x00" + incarnation.to_bytes(8, "big")
    return AESGCM(HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=info).derive(key))


def check_key(key: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a cluster key has {KEY_BYTES} bytes, and this one has {len(key)}")
    return key


class Sealer:
    """Seals the packets of one life."""

    def __init__(self, keys: Keys, current: int, me: ProcId, incarnation: int) -> None:
        self._cipher = _derived(check_key(keys[current]), me, incarnation)
        self._current = current
        self._name = proc_id(me).encode()
        self._incarnation = incarnation
        self._counter = 0

    def seal(self, frame: bytes) -> bytes:
        self._counter += 1
        counter = self._counter
        header = _HEADER.pack(VERSION, self._current, self._incarnation, counter, len(self._name)) + self._name
        return header + self._cipher.encrypt(counter.to_bytes(12, "big"), frame, header)


@dataclass(slots=True)
class _Sender:
    """What a receiver knows of one sender's present life."""

    incarnation: int
    ciphers: dict[int, AESGCM] = field(default_factory=dict)
    highest: int = 0
    window: int = 0
    """A bit for each counter behind the highest that was seen, the lowest bit for the highest itself."""

    def is_fresh(self, counter: int) -> bool:
        behind = self.highest - counter
        return behind < 0 or (behind < WINDOW and not self.window >> behind & 1)

    def note(self, counter: int) -> None:
        behind = self.highest - counter
        if behind < 0:
            self.window = (self.window << -behind | 1) & ((1 << WINDOW) - 1) if -behind < WINDOW else 1
            self.highest = counter
        else:
            self.window |= 1 << behind


class Opener:
    """Opens packets of the cluster's members, each once."""

    def __init__(self, keys: Keys, members: frozenset[ProcId], seen: dict[ProcId, int] | None = None) -> None:
        self._keys = {number: check_key(key) for number, key in keys.items()}
        self._members = members
        self._senders: dict[ProcId, _Sender] = {}
        self._least = dict(seen or {})
        """The highest incarnation that earlier lives of ours have seen of each sender."""

    @property
    def seen(self) -> dict[ProcId, int]:
        """The highest incarnation of each sender: worth keeping on disk."""
        return self._least | {name: sender.incarnation for name, sender in self._senders.items()}

    def open(self, packet: bytes | memoryview) -> tuple[ProcId, bytes]:
        """Who sent it, and the frame; or the reason why not."""
        if len(packet) < _HEADER.size + 16:
            raise Refused("too short")
        version, number, incarnation, counter, length = _HEADER.unpack_from(packet)
        end = _HEADER.size + length
        if version != VERSION:
            raise Refused("another version")
        key = self._keys.get(number)
        if key is None:
            raise Refused("an unknown key")
        header = bytes(packet[:end])
        name = header[_HEADER.size :].decode("ascii", "replace")
        if name not in self._members:
            raise Refused("not a member")
        sender = self._senders.get(name)
        known = sender.incarnation if sender is not None else self._least.get(name, 0)
        if incarnation < known:
            raise Refused("an earlier life")
        if sender is None or incarnation > known:
            sender = _Sender(incarnation)  # believed only once the packet is authentic
        if not sender.is_fresh(counter):
            raise Refused("seen before")
        cipher = sender.ciphers.get(number)
        if cipher is None:
            cipher = _derived(key, name, incarnation)
        try:
            frame = cipher.decrypt(counter.to_bytes(12, "big"), bytes(packet[end:]), header)
        except InvalidTag:
            raise Refused("not authentic") from None
        sender.ciphers[number] = cipher
        sender.note(counter)
        self._senders[name] = sender
        return name, frame
