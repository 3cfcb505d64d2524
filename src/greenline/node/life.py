"""A node's life on a machine: made from a checked configuration, watched, and begun again when its disk has failed.

The driver decides nothing and neither does this: a node that stopped because something impossible happened stays
stopped, and says so. Only a failed disk is worth another try: what was not forced has not been promised to anybody.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from greenline import __version__
from greenline.database.sqlite.adapter import VERSION, Sqlite
from greenline.database.sqlite.broken import Unusable
from greenline.database.witness import rows_of
from greenline.kernel.codec import CodecError
from greenline.kernel.database import DATABASE, Committed
from greenline.kernel.identities import Configuration, MessageId, ProcId
from greenline.kernel.ports import Busy, Deliver, Multicast, RegularConf, Sent, Service, TooLarge
from greenline.kernel.router import DISK_FAILED, Layer
from greenline.node import keyfile, rotation
from greenline.node.acquaintance import Acquaintance, Damaged
from greenline.node.bootstrap import PAGE, CannotJoin, Door
from greenline.node.config import BadConfig, Checked, Stored, Tracing, written
from greenline.node.desk import Desk
from greenline.node.driver import Node
from greenline.node.faults import Faults, FaultyFiles, FaultyLog, Severed, Ways
from greenline.node.fitting import fit
from greenline.node.keyfile import Kept
from greenline.node.lock import DataLock, Locked
from greenline.node.log import DiskFailed, Log, LogDamaged
from greenline.node.logs import Logger, Refusals
from greenline.node.members import Members
from greenline.node.pace import Pace
from greenline.node.status import Member, Status
from greenline.node.traces import Traces
from greenline.replication.core import Engine
from greenline.replication.messages import Record
from greenline.replication.port import Where
from greenline.ring.core import RingCore
from greenline.ring.messages import AnyMessage, Ceiling, RegularToken

DATABASE_DIRECTORY = "database"
"""In the data directory."""
FIRST_TRY_S = 1.0
LONGEST_TRY_S = 60.0


class NotTaken(Exception):
    """What was said is not on its way: why, and what to do."""


class Life:
    """One configured node. Make it in a running event loop, `start` it, `look` after it now and then, `close` it."""

    def __init__(self, config: Checked, log: Logger, tell: Callable[[Any], None]) -> None:
        self.config = config
        self.kept: Kept | None = config.kept
        self.log = log
        self._told = tell
        self._refusals = Refusals(log)
        self._strangers: dict[ProcId, str] = {}
        self._traces = Traces(config, log)
        self._said = 0
        self._refused_now = ""
        self._delivered = self._sent = 0
        self._deliveries, self._sendings = Pace(), Pace()
        self._configuration: Configuration | None = None
        self._where: Where | None = None
        self._began = time.monotonic()
        self._stopped: str | None = None
        self._is_open = False
        self._database: Sqlite | None = None
        self.members = Members(config, log)
        self._faults = Faults()
        self._files = FaultyFiles(self._faults)
        self.desk = Desk(config.name) if config.database is Stored.SQLITE else None
        """Where clients ask, if there is something to ask for."""
        self.connected: Callable[[], int] = lambda: 0
        """How many of them there are."""
        self._try_after = FIRST_TRY_S
        self._try_at = float("inf")
        self._tried_at = float("-inf")
        self._lock = _locked(config)
        try:
            self._acquaintance = Acquaintance(config.data / PAGE, config.name)
            self.door = Door(config, self._acquaintance.uid)
            self.node = self._made()
        except (OSError, Damaged, DiskFailed, ValueError, Unusable) as error:
            self._lock.close()
            raise BadConfig(_because(error, config)) from None

    # Beginning and end.

    def start(self) -> None:
        try:
            self.node.start()
        except (OSError, CodecError, LogDamaged) as error:
            raise BadConfig(_log_unread(error, self.config)) from None
        self.log.info(
            "listening",
            address=written(self.config.addresses[self.config.name]),
            admin=None if self.config.admin is None else written(self.config.admin),
            sealed=self.kept is not None,
        )

    def close(self) -> None:
        """Stop taking, flush, let go. What was forced stays."""
        self._close_node()
        self._lock.close()

    def _made(self) -> Node:
        config = self.config
        addresses = dict(self.members.known.addresses)
        settings = fit(config.ring, config.name, addresses, config.link)
        layers = [Layer("ring", 1, RingCore(settings), AnyMessage, Ceiling, (RegularToken,), only_last_record=True)]
        ports = {}
        engine = Engine(config.engine, self._acquaintance.uid)
        if self.desk is not None:
            layers.insert(0, Layer("engine", 2, engine, None, Record))
            self._database = self._opened_database()
            ports[DATABASE] = self._database.ask
        log = FaultyLog(config.data / "log", self._faults) if config.has_faults else Log(config.data / "log")
        try:
            node = Node(
                config.name,
                addresses,
                layers,
                log,
                None if self.kept is None else self.kept.keyring,
                acquaintance=self._acquaintance,
                link=config.link,
                ports=ports,
                watch=self._watch,
                on_unknown=lambda name, address: self.members.overhear(self.desk, self.node, name, address),
                tell=self._tell,
                trace=self._traces.add,
                flush=self._traces.flush,
                depth=config.trace.depth,
            )
        except OSError:
            log.close()
            self._close_database()
            raise
        if self.desk is not None:
            self.desk.begin(engine, ports[DATABASE], node)
        self._is_open = True
        return node

    def _close_node(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        with suppress(OSError, DiskFailed):  # a disk that has failed fails here, too
            self.node.close()
        if self.desk is not None:
            self.desk.end()
        self._close_database()
        self._traces.close()

    def _opened_database(self) -> Sqlite:
        base = self._files.name if self.config.has_faults else ""
        return Sqlite(self.config.data / DATABASE_DIRECTORY, self.config.of_database, base)

    def _close_database(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    # What passes the port.

    def say(self, text: bytes) -> MessageId:
        """Multicast it, safe."""
        if self._stopped is not None or not self.node.is_running:
            raise NotTaken(f"{self.config.name} is not running; wait until it is ready")
        if self.desk is not None:
            raise NotTaken(f"{self.config.name} replicates a database; speak SQL to it, or run it with database = none")
        message = MessageId(self.config.name, self.node.router.incarnation, self._said + 1)
        self._said += 1
        self._refused_now = ""
        self.node.ask(Multicast(message, Service.SAFE, text))
        if self._refused_now:
            raise NotTaken(self._refused_now)
        return message

    def _tell(self, upcall: Any) -> None:
        if self.desk is not None:
            self.desk.tell(upcall)
        match upcall:
            case RegularConf(conf):
                self._configuration = conf
                self.log.info("configuration", id=str(conf.conf_id), members=list(conf.members))
            case Deliver():
                self._delivered += 1
            case Sent():
                self._sent += 1
            case Busy() | TooLarge():
                self._said -= 1  # its number is free again
                self._refused_now = "too much is waiting, or it is too large"
        self._told(upcall)

    def _watch(self, request: Any, answer: Any) -> None:
        """What the database did."""
        if self.config.trace is Tracing.FULL:
            self.node.witness(DATABASE, rows_of(request, answer))
        if isinstance(answer, Committed) and self.desk is not None:
            self.desk.look()

    # What an administrator may do.

    def cut(self, names: frozenset[ProcId], ways: Ways = Ways.BOTH) -> None:
        """From now on do not hear these, or do not speak to them, or neither; nobody: heal."""
        strangers = names - set(self.members.known.addresses)
        if strangers:
            members = " ".join(sorted(self.members.known.addresses))
            raise NotTaken(f"there is no {sorted(strangers)[0]!r}; name some of {members}")
        self.node.severed = Severed.of(names - {self.config.name}, ways)
        self.log.info("cut off", members=sorted(names - {self.config.name}), ways=ways.value)

    def fail(self, wanted: Faults) -> None:
        """Let the disk fail in these ways from now on, or no more."""
        if not self.config.has_faults:
            raise NotTaken("no disk fails on demand here; write faults = true beside local = true, and start it again")
        self._faults.log, self._faults.database = wanted.log, wanted.database
        self.log.warning("the disk is to fail", log=wanted.log, database=wanted.database)

    def rotate(self, body: bytes) -> Kept:
        """One step of a rotation: on disk first, so that no later life lacks a key that others use."""
        if self.kept is None or self.config.key_file is None:
            raise rotation.RotationRefused(
                f"{self.config.name} runs without a key (insecure = true); give it one first"
            )
        step = rotation.opened(body, self.kept, self.config.name)
        after = rotation.taken(step, self.kept)
        if after != self.kept:
            try:
                keyfile.write(self.config.key_file, after)
            except OSError as error:
                why = f"cannot write {self.config.key_file}: {error.strerror}; make it writable, and rotate again"
                raise rotation.RotationRefused(why) from None
            self.kept = after
            if self._is_open:
                self.node.rekey(after.keyring)
            self.log.info(
                "key rotated", step=step.step.value, keys=sorted(after.keyring.keys), current=after.keyring.current
            )
        return after

    async def admit(self, body: bytes) -> bytes:
        """The cluster's files for whoever holds a token. Where a newcomer is, all are told in the order."""
        if self.config.cluster is None:
            raise CannotJoin(
                "this node was not made by `greenline init`, so nobody can join it; copy its files instead"
            )
        envelope, request = self.door.opened(body)
        self.door.let_in(request, self.members.known)
        if request.place is not None:
            await self.members.appoint(self.desk, request.place)
            self.members.introduce(self.node, request.place)
        self.log.info("joined", name=request.name)
        return self.door.answer(envelope, request, self.members.known, self.kept)

    # Watching.

    def look(self, now: float) -> None:
        """What has changed since the last look; call it a few times a second."""
        self._deliveries.note(now, self._delivered)
        self._sendings.note(now, self._sent)
        self._refusals.look(now, self.node.refused)
        for name, seen in sorted(self.node.strangers.items()):
            if self._strangers.get(name) != seen:
                self._strangers[name] = seen
                self.log.warning("another node uses the name", name=name, seen=seen)
        if self.desk is not None:
            self._note_component(self.desk.where)
            self.members.learn(self.desk, self.node)
        if self._is_open and self.desk is not None and self.desk.left is not None:
            self._on_left(self.desk.left)
        elif self._is_open and self.node.stopped is not None:
            self._on_stopped(now, self.node.stopped)
        elif self._stopped is not None and now >= self._try_at:
            self._begin_again(now)
        elif self._is_open and self.node.is_running and self._stopped is not None:
            self._stopped = None
            self.log.info("restarted", incarnation=self.node.router.incarnation)
        elif self._is_open and self.node.is_running and now - self._tried_at > LONGEST_TRY_S:
            self._try_after = FIRST_TRY_S

    def _note_component(self, where: Where) -> None:
        if where != self._where:
            self._where = where
            kind = "in the primary component" if where.is_primary else "in a non-primary component"
            self.log.info(kind, members=list(where.members), primary=where.prim_index)

    def _on_left(self, position: int) -> None:
        """Nobody needs it any more: it is in nobody's way from now on, and stays up to say so."""
        self._stopped = f"it has left the cluster for good, at {position}; stop it, and remove its files"
        self._close_node()
        self.log.info("left", position=position)

    def _on_stopped(self, now: float, reason: str) -> None:
        self._stopped = reason
        self._configuration = None
        self._said = 0
        self._close_node()
        if reason.startswith(DISK_FAILED):
            self._wait(now)
            self.log.error("stopped", reason=reason, next_try_s=self._try_at - now)
        else:
            self.log.error(
                "stopped", reason=reason, remedy=f"keep {self.config.data} for a report, then start it again"
            )

    def _wait(self, now: float) -> None:
        self._try_at = now + self._try_after
        self._try_after = min(2 * self._try_after, LONGEST_TRY_S)

    def _begin_again(self, now: float) -> None:
        """From what the disk has; the old node is gone."""
        self._try_at, self._tried_at = float("inf"), now
        severed = self.node.severed
        try:
            self.node = self._made()
            self.node.severed = severed
            self.node.start()
        except (OSError, DiskFailed, Unusable) as error:
            self._close_node()
            self._wait(now)
            self.log.error("not restarted", reason=str(error), next_try_s=self._try_at - now)
        except (CodecError, LogDamaged) as error:
            self._close_node()
            self.log.error("not restarted", reason=_log_unread(error, self.config))

    @property
    def configuration(self) -> Configuration | None:
        return self._configuration if self.desk is None else self.desk.configuration

    @property
    def status(self) -> Status:
        node, config, conf = self.node, self.config, self.configuration
        phase = type(node.router.layers[-1].core.phase).__name__
        is_in = () if conf is None else conf.members
        gone = () if self.desk is None else self.desk.gone
        ring = None if self.kept is None else self.kept.keyring
        traffic, severed = node.traffic, node.severed
        return Status(
            name=config.name,
            cluster=config.cluster,
            version=__version__,
            uid=self._acquaintance.uid.hex(),
            incarnation=node.router.incarnation,
            uptime=time.monotonic() - self._began,
            phase="Stopped" if self._stopped is not None else phase,
            is_ready=self._stopped is None and node.is_running and conf is not None and phase == "Operational",
            configuration=None if conf is None else str(conf.conf_id),
            in_configuration=is_in,
            members={
                name: Member(written(address), name in is_in, written(self.members.known.admins[name]))
                for name, address in sorted(self.members.known.addresses.items())
                if name not in gone
            },
            delivered=self._delivered,
            sent=self._sent,
            delivered_rate=round(self._deliveries.rate, 1),
            sent_rate=round(self._sendings.rate, 1),
            packets_in=traffic.packets_in,
            packets_out=traffic.packets_out,
            bytes_in=traffic.bytes_in,
            bytes_out=traffic.bytes_out,
            forced_writes=traffic.forced_writes,
            refused=dict(sorted(node.refused.items())),
            ignored=dict(sorted(node.router.ignored.items())),
            strangers=dict(node.strangers),
            keys=() if ring is None else tuple(sorted(ring.keys)),
            current_key=None if ring is None else ring.current,
            key_changes=0 if self.kept is None else self.kept.changes,
            stopped=self._stopped,
            cut_off=tuple(sorted(severed.deaf_to & severed.mute_to)),
            deaf_to=tuple(sorted(severed.deaf_to - severed.mute_to)),
            mute_to=tuple(sorted(severed.mute_to - severed.deaf_to)),
            is_local=config.is_local,
            standing=None if self.desk is None else self.desk.standing,
            left=None if self.desk is None else self.desk.left,
            gone=gone,
            clients=self.connected(),
            sqlite="" if self.desk is None else VERSION,
        )


def _locked(config: Checked) -> DataLock:
    try:
        config.data.mkdir(parents=True, exist_ok=True)
        return DataLock(config.data)
    except Locked as error:
        raise BadConfig(str(error)) from None
    except (OSError, ValueError) as error:
        where = f"{config.path}: data = {str(config.data)!r}"
        why = error.strerror if isinstance(error, OSError) else error
        raise BadConfig(f"{where} is not writable: {why}; choose another directory, or its owner") from None


def _because(error: OSError | Damaged | DiskFailed | ValueError | Unusable, config: Checked) -> str:
    if not isinstance(error, OSError):
        return f"{config.path}: {error}"
    address = written(config.addresses[config.name])
    match error.errno:
        case errno.EADDRINUSE:
            return f"cannot listen at {address} (UDP): it is in use; is another node running there?"
        case errno.EADDRNOTAVAIL:
            where = f"{config.path}: members.{config.name} = {address!r}"
            return f"{where} is no address of this machine; check `name` and [members]"
        case _ if error.filename is not None:
            return f"cannot open {error.filename}: {error.strerror}; look at `data` in {config.path}"
        case _:
            why = error.strerror or error
            return f"cannot listen at {address} (UDP): {why}; check [members] and [link] in {config.path}"


def _log_unread(error: Exception, config: Checked) -> str:
    remedy = "bring it back from a copy, or give this node a new name, in [members] of every file"
    return f"cannot begin from {config.data / 'log'}: {error}; {remedy}"
