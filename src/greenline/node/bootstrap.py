"""Bootstrap: one machine names the initial set, the others join it with a token.

The first node writes its own files and waits at its admin port (`Door`). A joiner sends who it is, sealed under a key
that is derived from the token's secret, and gets the members, their addresses and the cluster's keys, sealed likewise.
Nothing secret travels in clear. Who has joined under which name is kept on the first node's disk: a name belongs to one
node.
"""

from __future__ import annotations

import json
import secrets
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from greenline.kernel.identities import ProcId
from greenline.kernel.statements import Member
from greenline.node import keyfile
from greenline.node.acquaintance import Acquaintance
from greenline.node.calls import NoAnswer, call
from greenline.node.config import FILE, Checked, members_of, usual_admin, usual_clients, written
from greenline.node.envelope import Envelope, NotAuthentic
from greenline.node.invitation import Invitations, Token
from greenline.node.keyfile import Kept, new_key, write_private
from greenline.node.sealing import Keyring
from greenline.node.status import Status
from greenline.node.transport import Address

PURPOSE = "greenline join"
KEY_FILE = "cluster.key"
JOINED_FILE = "joined.toml"
DATA = "data"
PAGE = "acquaintance"
_NONCE_BYTES = 16
_CLUSTER_BYTES = 8
_ASK_TIMEOUT_S = 1.0
_JOIN_TIMEOUT_S = 15.0


class CannotJoin(Exception):
    """Why not, and what to do."""


class _Refused(CannotJoin):
    """The first node has heard us, and does not want us."""


class JoinRequest(msgspec.Struct, frozen=True):
    name: str
    uid: bytes
    nonce: bytes
    place: Member | None = None
    """Where it will be, of one that is not in the initial set."""


class JoinAnswer(msgspec.Struct, frozen=True):
    cluster: str
    members: dict[str, str]
    admins: dict[str, str]
    kept: Kept | None
    multicast: str | None
    clients: dict[str, str] = {}
    founders: list[str] = []


class Known(msgspec.Struct, frozen=True):
    """Where the members are, as a node knows it now."""

    addresses: dict[ProcId, Address]
    admins: dict[ProcId, Address]
    clients: dict[ProcId, Address]


class Door:
    """Where the others join: on a node whose directory has invitations."""

    def __init__(self, config: Checked, uid: bytes) -> None:
        self._config = config
        self._uid = uid
        self._invitations = Invitations(config.home)
        self._path = config.home / JOINED_FILE

    def opened(self, body: bytes) -> tuple[Envelope, JoinRequest]:
        """Who asks to join, and with which token; only its secret opens the answer.

        Whoever recorded a request and plays it again gets an answer that only the token's secret opens, and it changes
        nothing here: the name was that uid's already.
        """
        for secret in self._invitations.secrets():
            envelope = Envelope(secret, PURPOSE)
            try:
                request = msgspec.msgpack.decode(envelope.open(body, _about(self._config.cluster)), type=JoinRequest)
            except (NotAuthentic, msgspec.DecodeError):
                continue
            return envelope, request
        raise CannotJoin("this token is unknown here, or it has expired; print a new one with `greenline token`")

    def answer(self, envelope: Envelope, request: JoinRequest, known: Known, kept: Kept | None) -> bytes:
        """The cluster, for one that was let in."""
        config = self._config
        assert config.cluster is not None, "a door belongs to a cluster"
        cluster = JoinAnswer(
            cluster=config.cluster,
            members={name: written(address) for name, address in known.addresses.items()},
            admins={name: written(address) for name, address in known.admins.items()},
            # A joiner's key file begins to count where ours is not: it is of one node.
            kept=None if kept is None else Kept(kept.keyring),
            multicast=None if config.link.multicast is None else written(config.link.multicast),
            clients={name: written(address) for name, address in known.clients.items()},
            founders=list(config.engine.servers),
        )
        return envelope.seal(msgspec.msgpack.encode(cluster), b"answer" + request.nonce)

    def let_in(self, request: JoinRequest, known: Known) -> None:
        """This name is that node's from now on. One that is not of the initial set says where it is."""
        name, uid, joined = request.name, request.uid.hex(), self.joined
        if name not in known.addresses and request.place is None:
            names = " ".join(sorted(known.addresses))
            raise CannotJoin(
                f"{name!r} is none of {names}; join with one of these names, or say where the new one is, with --at"
            )
        if name == self._config.name and request.uid != self._uid:
            raise CannotJoin(f"{name} is the first node itself; join with another name")
        if joined.get(name, uid) != uid:
            raise CannotJoin(
                f"another node has joined as {name} already; join with another name, or in the directory that it has"
            )
        if name not in joined:
            lines = [f"{each} = {json.dumps(whose)}\n" for each, whose in sorted((joined | {name: uid}).items())]
            write_private(self._path, "".join(lines))

    @property
    def joined(self) -> dict[ProcId, str]:
        """The uid of each that has joined."""
        try:
            return msgspec.convert(tomllib.loads(self._path.read_text()), dict[str, str])
        except FileNotFoundError:
            raise CannotJoin("this is not the first node; join where `greenline init` was run") from None
        except (OSError, ValueError, msgspec.ValidationError) as error:
            raise CannotJoin(f"the first node cannot read {self._path}: {error}; repair that file") from None


def found(place: Path, members: dict[str, str], me: ProcId, admin: Address | None) -> Token:
    """Make a cluster: its id, its key, the first node's files, and a token for the others."""
    addresses = members_of(members, "")
    if me not in addresses:
        raise CannotJoin(f"--me {me} is none of {' '.join(sorted(addresses))}; name this machine's")
    _refuse_second(place, None)
    at = admin or usual_admin(addresses[me])
    _ask_around({name: usual_admin(address) for name, address in addresses.items() if name != me})
    cluster = secrets.token_hex(_CLUSTER_BYTES)
    place.mkdir(parents=True, exist_ok=True)
    keyfile.write(place / KEY_FILE, Kept(Keyring({1: new_key()}, 1)))
    write_private(place / JOINED_FILE, "")
    token = Invitations(place).invite(cluster, at)
    admins = {name: written(usual_admin(address)) for name, address in addresses.items()} | {me: written(at)}
    _write_config(place, me, JoinAnswer(cluster, members, admins, None, None), has_key=True)
    return token


def join(token: Token, name: ProcId, place: Path, at: Address | None = None) -> Path:
    """Get the cluster's files for this name, unless they are here already; then where they are.

    `at`: where this node will be, if it is not of the initial set.
    """
    path = place / FILE
    if _refuse_second(place, token.cluster):
        return path
    token.check_time(time.time())
    (place / DATA).mkdir(parents=True, exist_ok=True)
    page = place / DATA / PAGE
    is_new = not page.exists()
    try:
        uid = Acquaintance(page, name).uid
        member = None if at is None else place_of(name, at)
        answer = _ask(token, JoinRequest(name, uid, secrets.token_bytes(_NONCE_BYTES), member))
    except _Refused:
        if is_new:
            page.unlink()  # it is not who it wanted to be; it may ask to be somebody else
        raise
    if answer.kept is not None:
        keyfile.write(place / KEY_FILE, answer.kept)
    _write_config(place, name, answer, has_key=answer.kept is not None)
    return path


def place_of(name: ProcId, at: Address) -> Member:
    """A member at this address, with its ports where they usually are."""
    return Member(name, written(at), written(usual_admin(at)), written(usual_clients(at)))


def _ask(token: Token, request: JoinRequest) -> JoinAnswer:
    envelope = Envelope(token.secret, PURPOSE)
    where = written(token.admin)
    try:
        body = envelope.seal(msgspec.msgpack.encode(request), _about(token.cluster))
        reply = call(token.admin, "POST", "/join", body, timeout=_JOIN_TIMEOUT_S)
    except NoAnswer as error:
        raise CannotJoin(f"{error}; is the first node running, and its admin port open to this machine?") from None
    if not reply.is_good:
        raise _Refused(f"{where} refuses: {reply.error}")
    try:
        # The answer opens with the request's nonce only: one that was recorded earlier is no answer to us.
        return msgspec.msgpack.decode(envelope.open(reply.body, b"answer" + request.nonce), type=JoinAnswer)
    except (NotAuthentic, msgspec.DecodeError):
        raise CannotJoin(f"what {where} answers is not sealed with this token; check who listens there") from None


def _about(cluster: str | None) -> bytes:
    """A request is to one cluster: its token opens no door of another."""
    return b"request" + (cluster or "").encode()


def _refuse_second(place: Path, cluster: str | None) -> bool:
    """Whether this very cluster is here; another one stays as it is."""
    path = place / FILE
    try:
        there = tomllib.loads(path.read_text()).get("cluster", "without an id")
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise CannotJoin(f"cannot read {path}: {error}; choose another --dir") from None
    if there == cluster:
        return True
    remedy = f"run it with `greenline node {path}`, or choose another --dir"
    raise CannotJoin(f"{place} holds a node of the cluster {there} already; {remedy}")


def _ask_around(admins: dict[ProcId, Address]) -> None:
    """Whether somebody whom we name is in a cluster; who does not answer is not."""

    def status(address: Address) -> Status | None:
        try:
            reply = call(address, "GET", "/status", timeout=_ASK_TIMEOUT_S)
            return msgspec.json.decode(reply.body, type=Status) if reply.is_good else None
        except (NoAnswer, msgspec.DecodeError):
            return None

    if not admins:
        return
    with ThreadPoolExecutor(len(admins)) as threads:
        answers = dict(zip(admins, threads.map(status, admins.values()), strict=True))
    for name, answer in sorted(answers.items()):
        if answer is not None:
            raise CannotJoin(
                f"{name} at {written(admins[name])} is in the cluster {answer.cluster or 'without an id'} already; "
                "join that one with a token, or stop it first"
            )


def _write_config(place: Path, me: ProcId, cluster: JoinAnswer, *, has_key: bool) -> None:
    """The node's file. Written last: where it is, the rest is, too."""
    members = members_of(cluster.members)
    lines = [
        f"name = {json.dumps(me)}",
        f"cluster = {json.dumps(cluster.cluster)}",
        f"data = {json.dumps(DATA)}",
        f"key = {json.dumps(KEY_FILE)}" if has_key else "insecure = true",
        f"admin = {json.dumps(cluster.admins[me])}",
        *([f"founders = {json.dumps(cluster.founders)}"] if cluster.founders else []),
        "\n[members]",
        *(f"{name} = {json.dumps(written(address))}" for name, address in sorted(members.items())),
    ]
    for title, table, usual in (("admins", cluster.admins, usual_admin), ("clients", cluster.clients, usual_clients)):
        unusual = {name: at for name, at in table.items() if at != written(usual(members[name]))}
        if unusual:
            lines += [f"\n[{title}]", *(f"{name} = {json.dumps(at)}" for name, at in sorted(unusual.items()))]
    if cluster.multicast is not None:
        lines += ["\n[link]", f"multicast = {json.dumps(cluster.multicast)}"]
    write_private(place / FILE, "\n".join(lines) + "\n")
