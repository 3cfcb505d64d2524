"""Sealing: every packet between nodes is encrypted and authenticated with the cluster's key, and counts once.

    version 1 | kind 1 | key 1 | incarnation 4 | life 8 | uid 8 | counter 8 | name 1 + n | ciphertext and tag

Each life of each sender has a key of its own, derived from the cluster's (a keyed hash of its name, its incarnation and
eight random bytes drawn for that life), so a counter that begins at 1 with every life never repeats under one key, not
even if a machine was copied. The header is authenticated with the rest; and so is, without travelling, the name of the
receiver of what is for one only: nobody can hand a token to somebody else. The uid says which node this is, for ever:
one that takes a member's name is not believed (`acquaintance`).

A receiver keeps the highest counter of each sender and a window behind it, so a packet that was recorded and is sent
again is refused, whether it belongs to a configuration or not. Whoever has just begun a life has seen nothing yet, and
so believes nobody: it challenges each sender with a number of its own, and hears it from the answer on. A recorded
answer answers an older challenge.

What remains: who can keep packets from arriving can also delay them, by less than the window; that is a slow network.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from greenline.kernel.identities import ProcId, proc_id

VERSION = 2
KEY_BYTES = 32
UID_BYTES = 8
LIFE_BYTES = 8
TAG_BYTES = 16
WINDOW = 4096
"""How far a packet may be behind the newest of its sender: more than any network reorders in one breath."""
_WHOLE_WINDOW = (1 << WINDOW) - 1
CHALLENGE_BYTES = 16
_HEADER = struct.Struct(">BBBI8s8sQB")
_COUNTER_AT = 23
_BEFORE_COUNTER = bytes(4)
"""A nonce has twelve bytes, and the counter eight."""
_NO_KEY = 0
"""The number of no key: what is sealed with it is neither encrypted nor authenticated."""


class Kind(IntEnum):
    TO_ALL = 1
    """A frame of the router's, for whoever hears it."""
    TO_ONE = 2
    """A frame for one receiver, as all that follows is."""
    CHALLENGE = 3
    """To somebody whom its sender has not met in this life: a number to be sent back."""
    ANSWER = 4
    IMPOSTOR = 5
    """To somebody who speaks under the name of another: its uid."""


class Keyring(msgspec.Struct, frozen=True):
    """The cluster's keys by number: one to seal with, and while keys are rotated the one before or after it."""

    keys: dict[int, bytes]
    current: int

    def __post_init__(self) -> None:
        if self.current not in self.keys:
            raise ValueError(f"key {self.current} should seal, but there is no such key")
        for number, key in self.keys.items():
            if not 1 <= number <= 255:
                raise ValueError(f"a key has a number from 1 to 255, and this one has {number}")
            if len(key) != KEY_BYTES:
                raise ValueError(f"a cluster key has {KEY_BYTES} bytes, and key {number} has {len(key)}")


MOST_MEMBERS = 256


class Refused(Exception):
    """A packet that is not opened; the message is the reason by which it is counted."""


class Impostor(Refused):
    """An authentic packet of a node that is not the one whom we know by this name."""

    def __init__(self, name: ProcId, uid: bytes) -> None:
        super().__init__("somebody else of that name")
        self.name = name
        self.uid = uid


class Unmet(Refused):
    """An authentic packet of somebody who has not answered our challenge yet."""

    def __init__(self, name: ProcId) -> None:
        super().__init__("not met yet")
        self.name = name


class Unknown(Refused):
    """An authentic packet under a name that we do not know."""

    def __init__(self, name: ProcId) -> None:
        super().__init__("a member that we did not know")
        self.name = name


class Met(msgspec.Struct, frozen=True, array_like=True):
    """What is remembered of another node, also in our next life."""

    uid: bytes
    incarnation: int


class Opened(NamedTuple):
    sender: ProcId
    kind: int
    frame: bytes
    is_met: bool = True
    """Has its sender answered our challenge?"""


def overhead(name: ProcId) -> int:
    """Bytes that sealing adds to what this node says."""
    return _HEADER.size + len(name) + TAG_BYTES


def claimed_sender(packet: bytes) -> bytes:
    """The name that a packet bears, which nobody has checked."""
    length_at = _HEADER.size - 1
    return packet[_HEADER.size :][: packet[length_at]] if len(packet) > length_at else b""


def _derived(key: bytes, name: ProcId, incarnation: int, life: bytes) -> AESGCM:
    # A keyed hash and no slower scheme: whoever floods us with lives that nobody has costs us one each.
    whose = name.encode() + b"\x00" + incarnation.to_bytes(8, "big") + life
    return AESGCM(hashlib.blake2b(whose, key=key, digest_size=KEY_BYTES, person=b"greenline packet").digest())


class Sealer:
    """Seals the packets of one life."""

    def __init__(self, keyring: Keyring | None, me: ProcId, incarnation: int, uid: bytes) -> None:
        self._me = proc_id(me)
        self._incarnation = incarnation
        self._uid = uid
        self._life = secrets.token_bytes(LIFE_BYTES)
        self._counter = 0
        self.rekey(keyring)

    def rekey(self, keyring: Keyring | None) -> None:
        """The same life goes on with another key; counters go on as well."""
        self._cipher: AESGCM | None = None
        number = _NO_KEY
        if keyring is not None:
            number = keyring.current
            self._cipher = _derived(keyring.keys[number], self._me, self._incarnation, self._life)
        header = _HEADER.pack(VERSION, Kind.TO_ALL, number, self._incarnation, self._life, self._uid, 0, len(self._me))
        self._before, self._after = header[:_COUNTER_AT], header[_COUNTER_AT + 8 :] + self._me.encode()

    def seal(self, frame: bytes) -> bytes:
        """For everybody."""
        self._counter += 1
        counter = self._counter.to_bytes(8, "big")
        header = self._before + counter + self._after
        return header + self._encrypted(counter, frame, header)

    def seal_for(self, to: ProcId, frame: bytes, kind: Kind = Kind.TO_ONE) -> bytes:
        self._counter += 1
        counter = self._counter.to_bytes(8, "big")
        header = self._before[:1] + bytes((kind,)) + self._before[2:] + counter + self._after
        return header + self._encrypted(counter, frame, header + to.encode())

    def _encrypted(self, counter: bytes, frame: bytes, bound: bytes) -> bytes:
        if self._cipher is None:
            return frame
        return self._cipher.encrypt(_BEFORE_COUNTER + counter, frame, bound)


@dataclass(slots=True)
class _Sender:
    """What a receiver knows of one sender's present life."""

    name: ProcId
    incarnation: int
    life: bytes
    ciphers: dict[int, AESGCM] = field(default_factory=dict)
    highest: int = 0
    """What it said before it answered us counts as seen."""
    unseen: int = 0
    """A bit for each counter behind the highest that has not come: mostly none, so mostly nothing to shift."""

    def check(self, counter: int) -> None:
        behind = self.highest - counter
        if behind >= 0 and not self.unseen >> behind & 1:
            raise Refused("seen before")

    def note(self, counter: int) -> None:
        ahead = counter - self.highest
        if ahead == 1 and not self.unseen:
            self.highest = counter
        elif ahead > 0:
            passed_over = (1 << min(ahead, WINDOW)) - 2
            self.unseen = (self.unseen << min(ahead, WINDOW) | passed_over) & _WHOLE_WINDOW
            self.highest = counter
        else:
            self.unseen &= ~(1 << -ahead)


class Opener:
    """Opens packets of the cluster's members, each once."""

    def __init__(
        self,
        keyring: Keyring | None,
        me: ProcId,
        members: frozenset[ProcId],
        met: Mapping[ProcId, Met],
        meet: Callable[[ProcId, Met], None] = lambda _, __: None,
    ) -> None:
        """`meet` is told of each new life of a member, to be remembered."""
        self.challenge = secrets.token_bytes(CHALLENGE_BYTES)
        """What somebody must send back before we hear it."""
        self._me = me.encode()
        self.introduce(members)
        self._senders: dict[bytes, _Sender] = {}
        self._ways: dict[bytes, tuple[_Sender, AESGCM, int]] = {}
        """For what everybody hears of those whom we know, by all that comes before the counter: nearly all packets."""
        self._met = met
        self._meet = meet
        self.rekey(keyring)

    def introduce(self, members: frozenset[ProcId]) -> None:
        """These are heard from now on."""
        self._members = {name.encode(): name for name in members if name.encode() != self._me}

    def rekey(self, keyring: Keyring | None) -> None:
        """From now on these keys open; what was seen is not forgotten."""
        self._keys = None if keyring is None else dict(keyring.keys)
        self._ways.clear()
        for sender in self._senders.values():
            sender.ciphers.clear()

    def open(self, packet: bytes) -> Opened:
        """Who sent it, and what; or the reason why not."""
        way = self._ways.get(packet[:_COUNTER_AT])
        if way is None:
            return self._open_slowly(packet)
        sender, cipher, end = way
        number = packet[_COUNTER_AT : _COUNTER_AT + 8]
        counter = int.from_bytes(number, "big")
        sender.check(counter)
        try:
            frame = cipher.decrypt(_BEFORE_COUNTER + number, packet[end:], packet[:end])
        except (InvalidTag, ValueError):
            raise Refused("not authentic") from None
        sender.note(counter)
        return Opened(sender.name, Kind.TO_ALL, frame)

    def _open_slowly(self, packet: bytes) -> Opened:
        if len(packet) < _HEADER.size:
            raise Refused("too short")
        version, kind, number, incarnation, life, uid, counter, length = _HEADER.unpack_from(packet)
        if version != VERSION:
            raise Refused("another version")
        end = _HEADER.size + length
        header = packet[:end]
        label = header[_HEADER.size :]
        sender = self._senders.get(label)
        if sender is None or sender.life != life:
            return self._open_first(label, kind, number, Met(uid, incarnation), life, counter, packet[end:], header)
        sender.check(counter)
        frame = self._decrypted(sender, number, counter, packet[end:], header)
        sender.note(counter)
        if kind == Kind.TO_ALL and number in sender.ciphers:
            self._ways[header[:_COUNTER_AT]] = sender, sender.ciphers[number], end
        return Opened(sender.name, kind, frame)

    def _open_first(
        self,
        label: bytes,
        kind: int,
        number: int,
        claim: Met,
        life: bytes,
        counter: int,
        sealed: bytes,
        header: bytes,
    ) -> Opened:
        """From a life that we have not met: nothing is believed of it but that it answers us."""
        name = self._members.get(label)
        if name is None:
            raise self._stranger(label, number, claim, life, counter, sealed, header)
        newcomer = _Sender(name, claim.incarnation, life)
        frame = self._decrypted(newcomer, number, counter, sealed, header)
        known = self._met.get(name)
        if known is not None and known.uid != claim.uid:
            raise Impostor(name, claim.uid)
        present = self._senders.get(label)
        lived = present.incarnation + 1 if present is not None else known.incarnation if known is not None else 0
        if claim.incarnation < lived:
            raise Refused("an earlier life")
        if kind in (Kind.CHALLENGE, Kind.IMPOSTOR):  # a recorded one does no harm
            return Opened(name, kind, frame, is_met=False)
        if kind != Kind.ANSWER or not hmac.compare_digest(frame, self.challenge):
            raise Unmet(name)
        newcomer.highest = counter
        self._senders[label] = newcomer
        self._ways.clear()
        if claim != known:
            self._meet(name, claim)
        return Opened(name, kind, frame)

    def _stranger(
        self, label: bytes, number: int, claim: Met, life: bytes, counter: int, sealed: bytes, header: bytes
    ) -> Refused:
        """Nobody whom we know. Who has the cluster's key is of the cluster, and came when we were away."""
        if label == self._me:
            return Refused("our own")
        if self._keys is None or len(self._members) >= MOST_MEMBERS:
            return Refused("not a member")
        try:
            name = proc_id(label.decode())
            self._decrypted(_Sender(name, claim.incarnation, life), number, counter, sealed, header)
        except ValueError:
            return Refused("not a member")
        return Unknown(name)

    def _decrypted(self, sender: _Sender, number: int, counter: int, sealed: bytes, header: bytes) -> bytes:
        cipher = sender.ciphers.get(number)
        if cipher is None:
            if (number == _NO_KEY) != (self._keys is None):
                raise Refused("not encrypted, but we are" if number == _NO_KEY else "encrypted, but we are not")
            if self._keys is None:
                return sealed
            key = self._keys.get(number)
            if key is None:
                raise Refused("an unknown key")
            cipher = _derived(key, sender.name, sender.incarnation, sender.life)
        if len(sealed) < TAG_BYTES:
            raise Refused("too short")
        try:
            bound = header if header[1] == Kind.TO_ALL else header + self._me
            frame = cipher.decrypt(_BEFORE_COUNTER + counter.to_bytes(8, "big"), sealed, bound)
        except InvalidTag:
            raise Refused("not authentic") from None
        sender.ciphers[number] = cipher
        return frame
