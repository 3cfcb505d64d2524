"""The driver: carries out the router's orders on asyncio, one transport and the log. If you feel an `if` coming, it
belongs in a core.

There is no task, queue or future for a packet. Packets that came in one go are handed over together, and those that
leave together go down together.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from greenline.kernel import evidence
from greenline.kernel.database import Broken
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Arm, Ask, Cut, Disarm, Discard, Force, Order, Record, Stop, Tell, Transmit, Write
from greenline.kernel.router import Layer, Router, Running
from greenline.kernel.scribe import Depth
from greenline.node.acquaintance import Acquaintance
from greenline.node.faults import Severed
from greenline.node.log import DiskFailed, Log
from greenline.node.sealing import (
    VERSION,
    Impostor,
    Keyring,
    Kind,
    Met,
    Opener,
    Refused,
    Sealer,
    Unknown,
    Unmet,
    claimed_sender,
)
from greenline.node.transport import Address, Link, Traffic, Transport

COURTESY_S = 0.020
"""How often at most somebody is challenged, or told that it is an impostor."""

EARLY_S = 0.005
"""An alarm may come so much too early, and is then set for the rest: dearer than a new one to an idle node, which
sleeps in between, and cheaper to a busy one."""

_QUICK = (Arm, Disarm, Record)
"""What is done before packets leave, so that more of them leave together."""

Port = Callable[[Any, Callable[[Any], None]], None]
"""A port outside: it takes a request, and somebody to tell the answer to, from any thread."""


class Node:
    """One process's cores on a real network. Make it in a running event loop."""

    def __init__(
        self,
        me: ProcId,
        addresses: dict[ProcId, Address],
        layers: Sequence[Layer],
        log: Log,
        keyring: Keyring | None,
        *,
        acquaintance: Acquaintance,
        link: Link | None = None,
        ports: Mapping[str, Port] | None = None,
        watch: Callable[[Any, Any], None] = lambda _, __: None,
        on_unknown: Callable[[ProcId, Address], None] = lambda _, __: None,
        tell: Callable[[Any], None] = lambda _: None,
        trace: Callable[[Row], None] = lambda _: None,
        flush: Callable[[], None] = lambda: None,
        depth: Depth = Depth.FULL,
    ) -> None:
        self.me = me
        self.router = Router(me, addresses, layers, depth)
        self.stopped: str | None = None
        self.severed = Severed()
        """Whom it does not hear, and to whom it does not speak: a local cluster's partition."""
        self.strangers: dict[ProcId, str] = {}
        """Names under which somebody else has spoken, and who."""
        self._addresses = addresses
        self._link = link or Link()
        self._log = log
        self._keyring = keyring
        self._acquaintance = acquaintance
        self._ports = dict(ports or {})
        self._on_unknown = on_unknown
        """Told of an authentic packet under a name that nobody has introduced, and where it came from."""
        self._watch = watch
        """Told of every request to a port, and its answer."""
        self._answers: deque[tuple[Ask, Any]] = deque()
        """From ports outside, to be taken in by the loop."""
        self._tell = tell
        self._trace = trace
        self._flush = flush
        """Called before a packet leaves: what others may come to rely on is in the trace of a node that is killed."""
        self._loop = asyncio.get_running_loop()
        self._opener = Opener(keyring, me, frozenset(addresses), acquaintance.met, self._meet)
        self._sealer: Sealer | None = None
        self._is_closed = False
        self._timers: dict[tuple[int, Hashable], tuple[float, int]] = {}
        """When each timer is due, and its generation."""
        self._alarms: dict[tuple[int, Hashable], asyncio.TimerHandle] = {}
        """What will look at it. A timer is set anew with every token: only now and then that costs a new alarm."""
        self._courtesies: dict[Hashable, float] = {}
        self._batch: list[tuple[ProcId, bytes]] = []
        self._orders: deque[Order] = deque()
        self._is_performing = False
        self._transport = Transport(addresses[me], self._link, VERSION)
        for source in self._transport.sockets:
            self._loop.add_reader(source, self._on_readable, source)

    # Life.

    def start(self) -> None:
        """Begin a life from what the log has."""
        self._perform(self.router.boot(time.monotonic(), self._log.contents()))

    @property
    def is_running(self) -> bool:
        return isinstance(self.router.life, Running) and not self._is_closed

    @property
    def refused(self) -> Counter[str]:
        """Packets that were not opened or not sent, by reason."""
        refused = self._transport.refused
        if not self._is_closed and (dropped := self._transport.dropped()):
            refused["dropped by the kernel"] = dropped
        return refused

    @property
    def traffic(self) -> Traffic:
        return self._transport.traffic

    def ask(self, payload: Any) -> None:
        """The application calls down to the topmost core; also while it is being told something."""
        if not self.is_running:
            raise RuntimeError(f"{self.me} is not running, so it takes no calls; wait until it has started")
        self._perform(self.router.ask(time.monotonic(), payload))

    def soon(self, callback: Callable[[], None]) -> None:
        """On the loop; from any thread."""
        with suppress(RuntimeError):  # the loop may be gone by now
            self._loop.call_soon_threadsafe(callback)

    def witness(self, port: str, rows: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Rows of evidence about what a port outside did for this node, all of one moment."""
        now = time.monotonic()
        for kind, columns in rows:
            row = self.router.witnessed(now, port, kind, **columns)
            if row is not None:
                self._trace(row)

    def introduce(self, addresses: dict[ProcId, Address]) -> None:
        """More members than were known when it was made, in the same life."""
        self._addresses.update(addresses)
        self._opener.introduce(frozenset(self._addresses))
        self.router.introduce(self._addresses)

    def rekey(self, keyring: Keyring) -> None:
        """Other keys from now on, in the same life."""
        self._keyring = keyring
        self._opener.rekey(keyring)
        if self._sealer is not None:
            self._sealer.rekey(keyring)

    def close(self) -> None:
        """Stop here; what was forced stays."""
        if self._is_closed:
            return
        self._is_closed = True
        self.stopped = self.stopped or "closed"
        for alarm in self._alarms.values():
            alarm.cancel()
        for source in self._transport.sockets:
            self._loop.remove_reader(source)
        self._transport.close()
        self._log.close()

    # What befalls it.

    def _on_readable(self, source: socket.socket) -> None:
        self._transport.drain(source, self._open)
        batch, self._batch = self._batch, []
        if batch and self.stopped is None:
            self._perform(self.router.received_together(time.monotonic(), batch))

    def _open(self, packet: bytes, source: Address) -> None:
        if self.stopped is not None:
            return
        if self.severed.deaf_to and claimed_sender(packet).decode(errors="replace") in self.severed.deaf_to:
            self._transport.refused["cut off"] += 1  # before it is opened: nothing of it has arrived
            return
        try:
            sender, kind, frame, is_met = self._opener.open(packet)
        except Refused as reason:
            self._transport.refused[str(reason)] += 1
            self._on_refused(reason, source)
            return
        if kind in (Kind.TO_ALL, Kind.TO_ONE):
            self._batch.append((sender, frame))
        else:
            self._on_courtesy(sender, kind, frame, is_met)

    def _on_refused(self, reason: Refused, source: Address) -> None:
        match reason:
            case Unmet(name=name):
                self._challenge(name)
            case Impostor(name=name, uid=uid):
                self.strangers[name] = f"a node with uid {uid.hex()} at {source[0]}:{source[1]}"
                if self._is_due(uid):
                    self._send_one(Kind.IMPOSTOR, uid, name, source)
            case Unknown(name=name):
                self._on_unknown(name, source)

    def _meet(self, name: ProcId, met: Met) -> None:
        try:
            self._acquaintance.meet(name, met)
        except OSError as error:
            self._perform(self.router.disk_failed(time.monotonic(), f"{error.filename}: {error.strerror}"))

    def _on_courtesy(self, sender: ProcId, kind: int, frame: bytes, is_met: bool) -> None:
        """What nodes say to each other before the router's frames count."""
        if kind == Kind.CHALLENGE:
            if self._is_due((sender, frame)):
                self._send_one(Kind.ANSWER, frame, sender, self._addresses[sender])
            if not is_met:
                self._challenge(sender)
        elif kind == Kind.IMPOSTOR and frame == self._acquaintance.uid:
            self._perform(self.router.halt(time.monotonic(), another_uses(self.me, sender)))

    def _challenge(self, name: ProcId) -> None:
        if self._sealer is not None and self._is_due(name):
            self._send_one(Kind.CHALLENGE, self._opener.challenge, name, self._addresses[name])

    def _is_due(self, what: Hashable) -> bool:
        now = time.monotonic()
        is_due = now - self._courtesies.get(what, 0.0) >= COURTESY_S
        if is_due:
            self._courtesies[what] = now
        return is_due

    def _on_alarm(self, key: tuple[int, Hashable]) -> None:
        del self._alarms[key]
        due, generation = self._timers[key]
        now = time.monotonic()
        if now < due:
            self._alarms[key] = self._loop.call_later(due - now, self._on_alarm, key)
            return
        del self._timers[key]
        if self.stopped is None:
            self._perform(self.router.fire(now, *key, generation))

    def _report(self, number: int, failure: DiskFailed | None) -> None:
        """From the disk's thread."""
        with suppress(RuntimeError):  # the loop may be gone by now
            self._loop.call_soon_threadsafe(self._forced, number, failure)

    def _report_failure(self, failure: DiskFailed) -> None:
        """From the disk's thread, as well."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._disk_failed, failure)

    def _disk_failed(self, failure: DiskFailed) -> None:
        if self.stopped is None:
            self._perform(self.router.disk_failed(time.monotonic(), str(failure)))

    def _forced(self, number: int, failure: DiskFailed | None) -> None:
        if self.stopped is not None:
            return
        if failure is not None:
            self._disk_failed(failure)
            return
        self.traffic.forced_writes += 1
        if self._sealer is None:
            # The incarnation is durable before the first packet of a life.
            self._sealer = Sealer(self._keyring, self.me, self.router.incarnation, self._acquaintance.uid)
            for name in self.router.peers:
                self._challenge(name)
        self._perform(self.router.forced(time.monotonic(), number))

    def _answer(self, ask: Ask, answer: Any) -> None:
        """From a port's thread. What comes while the loop is about to look is taken with it."""
        is_first = not self._answers
        self._answers.append((ask, answer))
        if is_first:
            with suppress(RuntimeError):  # the loop may be gone by now
                self._loop.call_soon_threadsafe(self._take_answers)

    def _take_answers(self) -> None:
        """As many as there were: who comes while they are taken in calls again."""
        while self._answers:
            ask, answer = self._answers[0]
            if self.stopped is None:
                if isinstance(answer, Broken):
                    self._on_broken(answer)
                else:
                    self._watch(ask.request, answer)
                    self._perform(self.router.answered(time.monotonic(), ask.layer, ask.call, answer))
            self._answers.popleft()

    def _on_broken(self, broken: Broken) -> None:
        now = time.monotonic()
        if broken.is_mistake:
            self._perform(self.router.halt(now, f"{evidence.IMPOSSIBLE}{broken.reason}"))
        else:
            self._perform(self.router.disk_failed(now, broken.reason))

    # What it does.

    def _perform(self, orders: list[Order]) -> None:
        """One after the other. What comes of an order while it is carried out waits behind those before it."""
        self._orders.extend(orders)
        if self._is_performing:
            return
        self._is_performing = True
        try:
            self._perform_all()
        except Exception as error:  # noqa: BLE001 - half of what was ordered is not done: the node stops
            self._orders.clear()
            reason = f"what was ordered could not be done: {type(error).__name__}: {error}"
            self._orders.extend(self.router.halt(time.monotonic(), reason))
            self._perform_all()
        finally:
            self._is_performing = False

    def _perform_all(self) -> None:
        leaving: list[Transmit] = []
        while self._orders:
            order = self._orders.popleft()
            if type(order) is Transmit:
                if order.to:
                    leaving.append(order)
                continue
            if leaving and type(order) not in _QUICK:
                # Nobody waits for what we do with a delivery; but others wait for the token.
                self._send(leaving)
                leaving = []
            match order:
                case Arm(layer, timer, generation, after):
                    self._arm((layer, timer), generation, after)
                case Disarm(layer, timer):
                    self._disarm((layer, timer))
                case Record(row):
                    self._trace(row)
                case Tell(payload):
                    self._tell(payload)
                case Write(frame):
                    self._log.write(frame)
                case Force(number):
                    self._flush()  # a later life goes on from what is forced: the trace of this one tells of it
                    self._log.force(partial(self._report, number))
                case Discard(before):
                    self._log.discard(before, self._report_failure)
                case Stop(reason):
                    self.stopped = reason
                    self._orders.clear()
                case Cut():
                    raise AssertionError("a log of whole batches is never torn")
                case Ask():
                    self._flush()  # what a port makes durable is in the trace of a node that is killed
                    self._ports[order.port](order.request, partial(self._answer, order))
        if leaving:
            self._send(leaving)

    def _arm(self, key: tuple[int, Hashable], generation: int, after: float) -> None:
        due = time.monotonic() + after
        self._timers[key] = due, generation
        alarm = self._alarms.get(key)
        if alarm is not None:
            if 0 <= due - alarm.when() <= EARLY_S:
                return
            alarm.cancel()
        self._alarms[key] = self._loop.call_later(after, self._on_alarm, key)

    def _disarm(self, key: tuple[int, Hashable]) -> None:
        alarm = self._alarms.pop(key, None)
        if alarm is not None:
            alarm.cancel()
            del self._timers[key]

    def _send(self, leaving: list[Transmit]) -> None:
        """Runs of packets for the same receivers go down together."""
        sealer = self._sealer
        assert sealer is not None, "a life has begun"
        self._flush()
        packets: list[bytes] = []
        to = leaving[0].to
        for order in leaving:
            if order.to != to:
                self._hand_down(packets, to)
                packets, to = [], order.to
            packets.append(sealer.seal(order.frame) if len(to) > 1 else sealer.seal_for(to[0], order.frame))
        self._hand_down(packets, to)

    def _hand_down(self, packets: list[bytes], to: tuple[ProcId, ...]) -> None:
        if self._link.multicast is not None and to == self.router.peers and not self.severed.mute_to:
            self._transport.multicast(packets)
            return
        mute_to = self.severed.mute_to
        addresses = [self._addresses[name] for name in to if name in self._addresses and name not in mute_to]
        if len(addresses) < len(to):
            self._transport.refused["to nobody"] += len(packets) * (len(to) - len(addresses))
        self._transport.send(packets, addresses)

    def _send_one(self, kind: Kind, body: bytes, to: ProcId, at: Address) -> None:
        if self._sealer is not None and to not in self.severed.mute_to:
            self._transport.send([self._sealer.seal_for(to, body, kind)], (at,))


def another_uses(name: ProcId, teller: ProcId) -> str:
    return (
        f"{teller} knows another node by the name {name}: give this node a name of its own in [members],"
        f" or, if it has lost its data directory, a new one"
    )
