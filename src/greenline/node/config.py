"""Configuration: a `greenline.toml`, checked before anything is opened. A mistake is one line that says what to do.

name = "p"                      # which of the members this is
data = "data/p"                 # where its log and its traces live
key = "cluster.key"             # a file with the cluster's key; or, in so many words: insecure = true
admin = "10.0.0.1:7500"         # optional: status, metrics and administration over HTTP
trace = "off"                   # or "configurations", or "full"
log_format = "console"          # or "json"; without it: console on a terminal, json elsewhere
local = false                   # true: a toy on one machine, whose network may be cut over HTTP
faults = false                  # true: and whose disk may be made to fail; it is a little slower
cluster = "5f0c9a1e2b3d4c5f"    # written by `greenline init`
database = "sqlite"             # or "none": group communication alone
tls = "required"                # or "off": clients are spoken to in clear
web = "10.0.0.1:7700"           # optional: HTTP/JSON for clients
founders = ["p", "q", "r"]      # whose cluster it was in the beginning; without it: all members

[members]
p = "10.0.0.1:7400"
q = "10.0.0.2:7400"
r = "10.0.0.3:7400"             # or all of them IPv6: "[fd00::3]:7400"

[admins]                        # optional: whose admin port is not its own port + 100
p = "10.0.0.1:7500"

[clients]                       # optional: whose port for clients is not its own port + 200
p = "10.0.0.1:7600"

[link]                          # optional
multicast = "239.1.2.3:7400"    # one datagram to everybody
interface = "eth0"
mtu = 1500                      # otherwise the kernel is asked

[ring]                          # optional: what greenline.ring.settings offers
window = 128

[engine]                        # optional: what greenline.replication.settings offers
retain_at_most = 1_000_000

[limits]                        # optional: what a client may ask for
query_seconds = 30
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from greenline.database.sqlite.limits import OF_A_SITE
from greenline.database.sqlite.limits import Limits as DatabaseLimits
from greenline.kernel.identities import ProcId, proc_id
from greenline.kernel.scribe import Depth
from greenline.node import keyfile
from greenline.node.edge import Limits
from greenline.node.keyfile import Kept
from greenline.node.transport import Address, Link
from greenline.replication.settings import Settings as EngineSettings
from greenline.ring.settings import Reach, Settings

FILE = "greenline.toml"
LARGEST_PORT = 65_535
ADMIN_PORT_ABOVE = 100
"""Where the admin port is, as seen from a member's own, unless something else is said."""
CLIENT_PORT_ABOVE = 200
"""The same for clients."""
BUNDLE_BYTES = 1 << 20
"""What a bundle holds, and so the longest action."""
FAR = 64
"""Bundles: of large ones fewer may be exchanged, or written anew, while everybody waits."""
WHITE, WHITE_BYTES = 10_000, 16 << 20
"""Bundles that are kept for who reads the order: so many, if they are small. Somebody who wants more says how many."""
_HIGHEST_MTU = 65_535
_LEAST_MTU = 576


class BadConfig(Exception):
    """What is wrong, in which file, and what would be right."""


class Tracing(StrEnum):
    """How much of a life is written down beside the log."""

    OFF = "off"
    CONFIGURATIONS = "configurations"
    FULL = "full"

    @property
    def depth(self) -> Depth:
        return Depth.FULL if self is Tracing.FULL else Depth.CONFIGURATIONS


class LogFormat(StrEnum):
    CONSOLE = "console"
    JSON = "json"


class Stored(StrEnum):
    """What stands behind the engine."""

    SQLITE = "sqlite"
    NONE = "none"
    """No engine either: the node offers the group communication port and nothing else."""


class Tls(StrEnum):
    REQUIRED = "required"
    OFF = "off"


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The file as it is written."""

    name: str
    members: dict[str, str]
    data: str
    key: str | None = None
    insecure: bool = False
    admin: str | None = None
    admins: dict[str, str] = {}
    trace: Tracing = Tracing.OFF
    log_format: LogFormat | None = None
    local: bool = False
    faults: bool = False
    cluster: str | None = None
    database: Stored = Stored.SQLITE
    tls: Tls = Tls.REQUIRED
    web: str | None = None
    founders: list[str] | None = None
    clients: dict[str, str] = {}
    link: dict[str, Any] = {}
    ring: dict[str, Any] = {}
    engine: dict[str, Any] = {}
    limits: dict[str, Any] = {}


class _LinkTable(msgspec.Struct, frozen=True):
    multicast: str | None = None
    interface: str | None = None
    mtu: int | None = None


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The file as it is meant, with what it refers to."""

    path: Path
    name: ProcId
    addresses: dict[ProcId, Address]
    data: Path
    key_file: Path | None
    kept: Kept | None
    """The keys in it; none of both: packets are neither encrypted nor authenticated."""
    admin: Address | None
    admins: dict[ProcId, Address]
    """Where each member's admin port is, as far as can be known here."""
    trace: Tracing
    log_format: LogFormat | None
    is_local: bool
    has_faults: bool
    """Its disk may be made to fail."""
    cluster: str | None
    link: Link
    ring: dict[str, Any]
    """What was chosen of greenline.ring.settings, within its bounds; the rest is fitted to the network."""
    database: Stored
    tls: Tls
    web: Address | None
    clients: dict[ProcId, Address]
    """Where each member listens for clients."""
    engine: EngineSettings
    limits: Limits
    """What clients may take of the node."""
    of_database: DatabaseLimits

    @property
    def home(self) -> Path:
        """Where the file is, and what belongs to it."""
        return self.path.parent


_EXAMPLE = {"name": 'name = "p"', "data": 'data = "data"', "members": '[members] and p = "10.0.0.1:7400" below it'}

_T = TypeVar("_T")


def load(path: Path) -> Checked:
    try:
        raw = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadConfig(f"cannot read {path}: {error.strerror}; name a file that is there") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} is no TOML: {error}; put text in quotes, and a table's name in brackets") from None
    try:
        for name, example in _EXAMPLE.items():
            if name not in raw:
                _refuse_unknown(raw, NodeConfig.__struct_fields__, "")
                raise ValueError(f"{name} is missing; write {example}")
        return _checked(_converted(raw, NodeConfig, ""), path)
    except ValueError as error:
        raise BadConfig(f"{path}: {error}") from None


def address_of(where: str, text: str) -> Address:
    """An address as people write it; `where` they wrote it comes back in the complaint."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not (port.isascii() and port.isdecimal()) or not 0 < int(port) <= LARGEST_PORT:
        raise ValueError(f"{where} = {text!r} has no port between 1 and {LARGEST_PORT}; write 10.0.0.1:7400")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"{where} = {text!r} is no address; write 10.0.0.1:7400 or [fd00::1]:7400") from None
    return host, int(port)


def written(address: Address) -> str:
    """An address as people read it."""
    host, port = address[0], address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def usual_admin(address: Address) -> Address:
    """Where a member's admin port is unless something else is said."""
    return _beside(address, ADMIN_PORT_ABOVE)


def usual_clients(address: Address) -> Address:
    """Where a member listens for clients unless something else is said."""
    return _beside(address, CLIENT_PORT_ABOVE)


def _beside(address: Address, distance: int) -> Address:
    host, port = address[0], address[1]
    return host, port + distance if port + distance <= LARGEST_PORT else port - distance


def members_of(table: dict[str, str], where: str = "members.") -> dict[ProcId, Address]:
    """Names and addresses, each of them good and no address twice."""
    addresses = {proc_id(name): address_of(f"{where}{name}", text) for name, text in table.items()}
    taken: dict[Address, ProcId] = {}
    families = {ipaddress.ip_address(host).version for host, _ in addresses.values()}
    if len(families) > 1:
        raise ValueError("some members have IPv4 addresses and some IPv6: they could not hear each other; use one kind")
    for name, address in sorted(addresses.items()):
        where_to = ipaddress.ip_address(address[0])
        if where_to.is_unspecified or where_to.is_multicast:
            raise ValueError(
                f"{where}{name} = {written(address)!r} is nobody's address; write the one others reach it at"
            )
        if address in taken:
            raise ValueError(f"members {taken[address]} and {name} have one address; give each its own")
        taken[address] = name
    return addresses


def _checked(raw: NodeConfig, path: Path) -> Checked:
    addresses = members_of(raw.members)
    if raw.name not in addresses:
        names = ", ".join(sorted(addresses))
        raise ValueError(f"name = {raw.name!r} is none of the members {names}; add it to [members]")
    admin = None if raw.admin is None else address_of("admin", raw.admin)
    admins = {name: usual_admin(address) for name, address in addresses.items()}
    admins |= _of_members(raw.admins, "admins", addresses)
    clients = {name: usual_clients(address) for name, address in addresses.items()}
    clients |= _of_members(raw.clients, "clients", addresses)
    if admin is not None:
        admins[raw.name] = admin
    _refuse_unknown(raw.limits, [*Limits.__struct_fields__, *OF_A_SITE], "limits.")
    link = _link(raw.link)
    key_file = _key_file(raw, path.parent)
    return Checked(
        path=path,
        name=raw.name,
        addresses=addresses,
        data=path.parent / raw.data,
        key_file=key_file,
        kept=None if key_file is None else keyfile.read(key_file),
        admin=admin,
        admins=admins,
        trace=raw.trace,
        log_format=raw.log_format,
        is_local=raw.local,
        has_faults=raw.local and raw.faults,
        cluster=raw.cluster,
        link=link,
        ring=_ring(raw.ring, link),
        database=raw.database,
        tls=raw.tls,
        web=None if raw.web is None else address_of("web", raw.web),
        clients=clients,
        engine=_engine(raw, addresses),
        limits=_converted(_some(raw.limits, Limits), Limits, "limits."),
        of_database=_converted(_some(raw.limits, DatabaseLimits), DatabaseLimits, "limits."),
    )


def _of_members(table: dict[str, str], where: str, addresses: dict[ProcId, Address]) -> dict[ProcId, Address]:
    for name in table:
        if name not in addresses:
            raise ValueError(f"{where}.{name} is none of the members {', '.join(sorted(addresses))}; remove it")
    return {name: address_of(f"{where}.{name}", text) for name, text in table.items()}


def _key_file(raw: NodeConfig, here: Path) -> Path | None:
    if raw.key is not None and raw.insecure:
        raise ValueError("there is a key, and insecure = true; remove one of them")
    if raw.key is None and not raw.insecure:
        raise ValueError('key is missing; write key = "cluster.key", or insecure = true to run without one')
    return None if raw.key is None else here / raw.key


def _link(table: dict[str, Any]) -> Link:
    raw = _converted(table, _LinkTable, "link.")
    multicast = None if raw.multicast is None else address_of("link.multicast", raw.multicast)
    if multicast is not None and not ipaddress.ip_address(multicast[0]).is_multicast:
        raise ValueError(f"link.multicast = {raw.multicast!r} is no multicast group; write 239.1.2.3:7400")
    if raw.mtu is not None and not _LEAST_MTU <= raw.mtu <= _HIGHEST_MTU:
        raise ValueError(f"link.mtu = {raw.mtu} is not between {_LEAST_MTU} and {_HIGHEST_MTU}")
    return Link(multicast=multicast, interface=raw.interface, mtu=raw.mtu)


def _ring(table: dict[str, Any], link: Link) -> dict[str, Any]:
    try:
        reach = _converted(table, Settings, "ring.").reach
    except ValueError as error:
        raise ValueError(f"[ring] {error}") from None
    if "reach" in table and (reach is Reach.MULTICAST) != (link.multicast is not None):
        raise ValueError(f"[ring] reach = '{reach}' does not go with [link]; remove it: link.multicast decides")
    return table


OURS = frozenset({"servers", "salt", "procedures", "voting"})
"""Settings of the engine that are not chosen in [engine]."""


def _engine(raw: NodeConfig, addresses: dict[ProcId, Address]) -> EngineSettings:
    founders = sorted(addresses) if raw.founders is None else sorted(set(raw.founders))
    known = [each.name for each in fields(EngineSettings) if each.name not in OURS]
    _refuse_unknown(raw.engine, known, "engine.")
    ours = {"servers": founders, "salt": raw.cluster or "", "bundle_bytes": BUNDLE_BYTES}
    ours["far"] = FAR
    if "retain_after_white" not in raw.engine:
        ours |= {"retain_after_white": WHITE, "retain_white_bytes": WHITE_BYTES}
    try:
        return msgspec.convert(ours | raw.engine, EngineSettings)
    except msgspec.ValidationError as error:
        raise ValueError(_plainly(str(error), "engine.")) from None


def _some(table: dict[str, Any], of: type[msgspec.Struct]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name in of.__struct_fields__}


def _converted(table: dict[str, Any], into: type[_T], where: str) -> _T:
    _refuse_unknown(table, getattr(into, "__struct_fields__", ()), where)
    try:
        return msgspec.convert(table, into)
    except msgspec.ValidationError as error:
        raise ValueError(_plainly(str(error), where)) from None


def _refuse_unknown(table: dict[str, Any], known: Iterable[str], where: str) -> None:
    for name in sorted(set(table) - set(known)):
        close = get_close_matches(name, known, 1)
        remedy = f"is it {where}{close[0]}?" if close else f"there is {', '.join(known)}"
        raise ValueError(f"there is no setting {where}{name}; {remedy}")


_KINDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "object": "a table"}


def _plainly(complaint: str, where: str) -> str:
    """What msgspec says, in the words of the file."""
    found = re.fullmatch(r"(.*?)(?: - at `\$\.?(.*)`)?", complaint)
    said, place = (found[1], found[2] or "") if found else (complaint, "")
    place = place.replace("[...]", "").strip(".")
    wrong = re.fullmatch(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`", said)
    if wrong:
        wanted, given = (_KINDS.get(kind, kind) for kind in wrong.groups())
        return f"{where}{place} should be {wanted}, and is {given}"
    value = re.fullmatch(r"Invalid enum value '(.*)'", said)
    if value:
        return f"{where}{place} = {value[1]!r} is none of its values; {_choices(place)}"
    return f"{where}{place}: {said}" if place else said


def _choices(place: str) -> str:
    kinds: dict[str, type[StrEnum]] = {
        "trace": Tracing,
        "log_format": LogFormat,
        "reach": Reach,
        "database": Stored,
        "tls": Tls,
    }
    return "write " + " or ".join(f'"{each}"' for each in kinds[place])
