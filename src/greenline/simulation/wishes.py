"""Wishes: what the text of a request asks of replicas. A client gives the numbers, as only it knows them.

| text                              | what it asks                                                            |
|-----------------------------------|-------------------------------------------------------------------------|
| `s1/ append l1 7 ; s1/ read l1`   | actions of the client s1, in one submission                             |
| `s1~ add c1 5`                    | a relaxed action                                                        |
| `s1? read l1`                     | a query                                                                 |
| `s1? outcome`                     | what became of the oldest request that it waits for                     |
| `s1/ write r1 9 if r1`            | reads r1, then writes it if it is still the same                        |
| `s1/ write r1 9 if r1 or again`   | the same, and once more with what it is then                            |
| `activate deposit 2`              | an operator: from here on this version is called                        |
| `expire 20`                       | an operator: sessions that were not used in so many positions are over  |

A number after the sign (`s1/4 append l1 7`) is a label for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from greenline.replication.port import Level, Reads
from greenline.simulation.requests import Request

BETWEEN = " ; "
"""Between the operations of one submission."""
OUTCOME = "outcome"


@dataclass(frozen=True)
class Update:
    """Actions that are submitted together."""

    client: str
    bodies: tuple[str, ...]
    level: Level
    is_relaxed: bool = False


@dataclass(frozen=True)
class Lookup:
    client: str
    body: str
    reads: Reads
    is_patient: bool = True


@dataclass(frozen=True)
class Revision:
    """Read a register and write it, if it is still what was read: `times` times, until it is."""

    client: str
    register: str
    value: int
    reads: Reads
    level: Level
    times: int = 1


@dataclass(frozen=True)
class Activation:
    name: str
    version: int


@dataclass(frozen=True)
class Expiry:
    """Of what is older than the last so many positions."""

    behind: int


Wish = Update | Lookup | Revision | Activation | Expiry
TIMES = 3
"""How often a client that is set on writing a register tries."""


def wish_of(request: Request) -> Wish:
    """What a request asks of replicas; it raises `ValueError` if it is nothing."""
    text, level = request.text, request.level or Level.LOCAL
    if found := _ACTIVATE.fullmatch(text):
        return Activation(found[1], int(found[2]))
    if found := _EXPIRE.fullmatch(text):
        return Expiry(int(found[1]))
    if found := _REVISION.fullmatch(text):
        times = TIMES if found[4] else 1
        return Revision(found[1], found[2], int(found[3]), request.reads or Reads.WEAK, level, times)
    if found := _QUERY.fullmatch(text):
        return Lookup(found[1], found[2], request.reads or Reads.STRICT, request.is_patient)
    parts = [_ACTION.fullmatch(part) for part in text.split(BETWEEN)]
    found_all = [part for part in parts if part is not None]
    if len(found_all) < len(parts) or len({(part[1], part[2]) for part in found_all}) != 1:
        raise ValueError(f"{text!r} asks nothing of a replica; write it like 's1/4 append l1 7'")
    return Update(found_all[0][1], tuple(part[3] for part in found_all), level, found_all[0][2] == "~")


_CLIENT = r"([\w-]+)"
_ACTION = re.compile(rf"{_CLIENT}([/~])\d{{0,15}} (\S.*)")
_QUERY = re.compile(rf"{_CLIENT}\?\d{{0,15}} (\S.*)")
_REVISION = re.compile(rf"{_CLIENT}/\d{{0,15}} write (r\d+) (\d{{1,9}}) if \2( or again)?")
_ACTIVATE = re.compile(r"activate (\w+) (\d{1,9})")
_EXPIRE = re.compile(r"expire (\d{1,9})")
