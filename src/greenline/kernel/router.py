"""The router: composes the cores of a node, and keeps the promises that the contract makes to them.

The same router runs in the simulator and in a node. It carries effects between neighbours, turns messages
into frames and back, holds gated outputs until their barrier is durable, lets pending barriers share one
forced write, has discarded what checkpoints leave to nobody, drops timers that were cancelled or set anew, owns
the node's incarnation, and writes the trace of what passes the group communication port. It does no I/O: it
answers every input with orders.

A life goes Booting -> Running -> Stopped; Booting lasts until the new incarnation is durable.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import NoneType
from typing import Any

import msgspec

from greenline.kernel import evidence
from greenline.kernel.codec import KERNEL_CHANNEL, Codec, CodecError, unseal_one
from greenline.kernel.core import Core, Impossible
from greenline.kernel.effects import (
    Append,
    Barrier,
    Broadcast,
    Call,
    CancelTimer,
    Checkpoint,
    Halt,
    Ignored,
    Send,
    SetTimer,
    Trace,
    Withdraw,
)
from greenline.kernel.events import Answered, Downcall, Durable, Event, Received, Start, TimerFired, Upcall
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Arm, Ask, Cut, Disarm, Discard, Force, Order, Record, Stop, Tell, Transmit, Write
from greenline.kernel.ports import Busy, Multicast, RegularConf, TooLarge, TransitionalConf
from greenline.kernel.recovery import KERNEL, Life, Past, Renewal, recover
from greenline.kernel.scribe import Depth, Scribe

DISK_FAILED = "the disk failed: "
"""How the reason begins for which a node stops when its disk does."""


class Layer:
    """One core in its place: its name, its channel, and what the router keeps for it."""

    __slots__ = (
        "channel",
        "conf",
        "core",
        "disk",
        "durable",
        "generations",
        "held",
        "last",
        "last_frame",
        "last_ticket",
        "name",
        "oldest",
        "only_last_record",
        "phase",
        "wire",
    )

    def __init__(
        self,
        name: str,
        channel: int,
        core: Core,
        messages: Any,
        records: Any,
        last: tuple[type[Any], ...] = (),
        *,
        only_last_record: bool = False,
    ) -> None:
        """`last`: messages that are handed over after all others that came in one go (a token behind its packets).

        `only_last_record`: each record replaces the one before it, so the log is not kept for this core's sake. A
        core of which that is not true keeps the log from its oldest record on, until it makes a checkpoint.
        """
        if channel == KERNEL_CHANNEL:
            raise ValueError(f"channel {KERNEL_CHANNEL} is the kernel's own; give {name} another")
        self.name = name
        self.channel = channel
        self.core = core
        self.last = last
        self.wire: Codec[Any] = Codec(channel, messages)
        self.disk: Codec[Any] = Codec(channel, records)
        self.phase: type[object] | None = None
        self.conf: str | None = None
        """The configuration that this core has given last, or was given: what its next event happens in."""
        self.generations: dict[Hashable, int] = {}
        self.held: dict[int, list[Any]] = {}
        """Outputs behind barriers that are not durable yet, by ticket."""
        self.durable = 0
        self.last_ticket = 0
        self.only_last_record = only_last_record
        self.last_frame: bytes | None = None
        """Of a core with `only_last_record`: what is written again before the log is discarded."""
        self.oldest: int | None = None
        """Of any other: where the oldest record is that it needs, once all that is written is durable."""

    def recall(self, past: Past) -> tuple[Any, ...]:
        """What it is told when it starts."""
        if not self.only_last_record:
            self.oldest = past.oldest
            return tuple(past.records)
        for record in past.records[-1:]:
            self.last_frame = self.disk.encode(record)
        return tuple(past.records[-1:])


class Booting(msgspec.Struct, frozen=True):
    incarnation: int
    records: tuple[tuple[Any, ...], ...]
    """What the disk had, layer by layer."""


class Running(msgspec.Struct, frozen=True):
    pass


class Stopped(msgspec.Struct, frozen=True):
    reason: str


class Router:
    """A node's cores, the topmost first. Feed it one input at a time and carry out what it orders, in order."""

    def __init__(self, me: ProcId, peers: Iterable[ProcId], layers: Sequence[Layer], depth: Depth = Depth.FULL) -> None:
        self.me = me
        self.introduce(peers)
        self.layers = layers
        self.scribe = Scribe(me, depth)
        self.life: Booting | Running | Stopped | None = None
        self.incarnation = 0
        self.ignored: Counter[str] = Counter()
        """What was refused or dropped, by reason."""
        self._generation = 0
        self._forces = 0
        self._forcing: list[tuple[int, int]] = []
        self._waiting: list[tuple[int, int]] = []
        self._by_channel = {layer.channel: position for position, layer in enumerate(layers)}
        if len(self._by_channel) < len(layers):
            raise ValueError("two cores of a node share a channel: each needs its own")
        self._end = 0
        """Where the log ends, written or still to be: a place, as the orders count them."""
        self._discards: deque[tuple[int, int]] = deque()
        """Which force makes which place the first that is needed."""
        self._discarded = 0
        self._last_names: tuple[ProcId, ...] = ()
        self._last_others: tuple[ProcId, ...] = ()
        self._agenda: deque[tuple[int, Event]] = deque()
        self._orders: list[Order] = []
        self._now = 0.0

    # Inputs. Each returns the orders to carry out before the next input.

    def boot(self, now: float, log: bytes) -> list[Order]:
        """Begin a life from what the disk had. Nothing else happens until its incarnation is durable."""
        assert self.life is None, "a router lives once"
        self._now = now
        found = recover(log, {layer.channel: layer.disk for layer in self.layers})
        self.incarnation = found.incarnation + 1
        self.life = Booting(self.incarnation, tuple(layer.recall(found.pasts[layer.channel]) for layer in self.layers))
        self._end = found.end
        if found.is_torn:
            self._orders.append(Cut(found.end))
        self._write(KERNEL.encode(Life(self.incarnation)))
        self._force()
        return self._take_orders()

    def received(self, now: float, sender: ProcId, datagram: bytes) -> list[Order]:
        """A datagram from a peer. What is not for us, or not well-formed, is dropped and counted."""
        return self.received_together(now, ((sender, datagram),))

    def received_together(self, now: float, datagrams: Iterable[tuple[ProcId, bytes]]) -> list[Order]:
        """Datagrams that came in one go, in their order, but for those that their core wants last."""
        if type(self.life) is not Running:
            return []
        self._now = now
        last: list[tuple[int, Received]] = []
        for sender, datagram in datagrams:
            try:
                frame = unseal_one(datagram)
                position = self._by_channel.get(frame.channel)
                if position is None:
                    raise CodecError(f"channel {frame.channel} is no core's of this node")
                layer = self.layers[position]
                message = layer.wire.decode(frame)
            except CodecError as error:
                self.ignored[type(error).__name__] += 1
                self._note(evidence.DROPPED, None, detail=f"from {sender}: {error}")
                continue
            if type(message) in layer.last:
                last.append((position, Received(message, sender)))
            else:
                self._step(position, Received(message, sender))
                if self._agenda:
                    self._drain()
                if self._is_over():
                    return self._take_orders()
        for position, event in last:
            self._agenda.append((position, event))
            self._drain()
        return self._take_orders()

    def fire(self, now: float, position: int, timer: Hashable, generation: int) -> list[Order]:
        """A timer's time has come; if it was cancelled or set anew meanwhile, nothing happens."""
        layer = self.layers[position]
        if type(self.life) is not Running or layer.generations.get(timer) != generation:
            return []
        self._now = now
        del layer.generations[timer]
        self._run(position, TimerFired(timer, generation))
        return self._take_orders()

    def forced(self, now: float, number: int) -> list[Order]:
        """All that was written before `Force(number)` is durable: open the gates, in the order of the barriers."""
        if type(self.life) is Stopped:
            return []
        assert number == self._forces, f"force {number} reported, but {self._forces} is under way"
        self._now = now
        if type(self.life) is Booting:
            self._begin(self.life)
            self._drain()
            return self._take_orders()
        reached, self._forcing = self._forcing, []
        for position, ticket in reached:
            if type(self.life) is Stopped:
                break
            layer = self.layers[position]
            layer.durable = ticket
            self._carry_out(position, layer.held.pop(ticket, ()))
            self._agenda.append((position, Durable(ticket)))
        if self._waiting and type(self.life) is Running:
            self._force()
        self._drain()
        if self._discards:
            self._discard(number)
        return self._take_orders()

    def answered(self, now: float, position: int, call: int, result: Any) -> list[Order]:
        """A port outside has answered."""
        if type(self.life) is not Running:
            return []
        self._now = now
        self._run(position, Answered(call, result))
        return self._take_orders()

    def ask(self, now: float, payload: Any) -> list[Order]:
        """The application calls down to the topmost core."""
        if type(self.life) is not Running:
            raise RuntimeError(f"{self.me} is not running, so it takes no calls; wait until it has started")
        self._now = now
        self._run(0, Downcall(payload))
        return self._take_orders()

    def introduce(self, peers: Iterable[ProcId]) -> None:
        """All whom a broadcast reaches from now on."""
        self.peers = tuple(sorted(set(peers) - {self.me}))

    def witnessed(self, now: float, port: str, kind: str, **columns: Any) -> Row | None:
        """A port outside did something for this node: a row of evidence, in its place among the node's own.

        It is for whoever drives this node to write down at once: all orders before it have been carried out.
        """
        if type(self.life) is not Running:
            return None
        return self.scribe.outside(now, port, kind, **columns)

    def disk_failed(self, now: float, reason: str) -> list[Order]:
        """A write or a forced write failed: it is never retried, nothing that waits for it ever leaves."""
        return self.halt(now, f"{DISK_FAILED}{reason}")

    def halt(self, now: float, reason: str) -> list[Order]:
        """Whoever drives this node cannot go on."""
        if type(self.life) is Stopped:
            return []
        self._now = now
        self._halt(reason)
        return self._take_orders()

    # The loop: an event to a core, its effects in order, then the next event that they caused.

    def _run(self, position: int, event: Event) -> None:
        self._agenda.append((position, event))
        self._drain()

    def _drain(self) -> None:
        agenda = self._agenda
        while agenda and type(self.life) is Running:
            position, event = agenda.popleft()
            self._step(position, event)

    def _step(self, position: int, event: Event) -> None:
        layer = self.layers[position]
        if type(event) is Upcall and isinstance(event.payload, RegularConf | TransitionalConf):
            layer.conf = str(event.payload.conf.conf_id)
        try:
            effects = layer.core.handle(self._now, event)
            if type(event) is Downcall and type(event.payload) is Multicast:
                call = event.payload
                refused = any(type(each) is Upcall and _refuses(each.payload, call) for each in effects)
                self._write_down(self.scribe.generated(self._now, layer.name, layer.conf, call, refused))
            phase = type(layer.core.phase)
            if phase is not layer.phase and phase is not NoneType:
                layer.phase = phase
                self._note(evidence.PHASE, layer, detail=phase.__name__)
            if not effects:
                return
        except Impossible as error:
            self._halt(f"{evidence.IMPOSSIBLE}{layer.name}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever else a core raises is our own mistake too: the node stops
            self._halt(f"{evidence.IMPOSSIBLE}{layer.name}: {type(error).__name__}: {error}")
        else:
            self._carry_out(position, effects)

    def _carry_out(self, position: int, effects: Iterable[Any]) -> None:
        """Effects in order, until one of them stops the node; one that breaks the contract does."""
        try:
            for effect in effects:
                _CARRY_OUT[type(effect)](self, position, effect)
                if type(self.life) is Stopped:
                    return
        except Exception as error:  # noqa: BLE001 - as above
            self._halt(f"{evidence.IMPOSSIBLE}{self.layers[position].name}: {type(error).__name__}: {error}")

    def _is_over(self) -> bool:
        return type(self.life) is Stopped

    def _take_orders(self) -> list[Order]:
        orders, self._orders = self._orders, []
        return orders

    def _begin(self, boot: Booting) -> None:
        self.life = Running()
        self.scribe.begin(boot.incarnation)
        self._note(evidence.START, None)
        for position in reversed(range(len(self.layers))):
            self._agenda.append((position, Start(self.me, boot.incarnation, boot.records[position])))

    def _halt(self, reason: str) -> None:
        assert type(self.life) is not Stopped, "a node stops once"
        if type(self.life) is not Booting:  # a life whose incarnation is not durable has no rows: it never was
            self._note(evidence.HALT, None, detail=reason)
        self._agenda.clear()
        self.life = Stopped(reason)
        self._orders.append(Stop(reason))

    def _note(self, kind: str, layer: Layer | None, detail: str | None = None) -> None:
        """A row about this node, or about one of its cores."""
        name, conf = (None, self.scribe.conf) if layer is None else (layer.name, layer.conf)
        self._write_down(self.scribe.note(self._now, kind, name, conf, detail))

    def _write_down(self, row: Row | None) -> None:
        if row is not None:
            self._orders.append(Record(row))

    # What each effect comes to.

    def _waits(self, position: int, effect: Send | Broadcast | Call | Downcall | Upcall) -> bool:
        """Hold an output whose barrier is not durable yet."""
        gate = effect.gate
        layer = self.layers[position]
        if gate is None or gate <= layer.durable:
            return False
        assert gate <= layer.last_ticket, f"{layer.name} gates on ticket {gate}, for which it asked no barrier"
        layer.held.setdefault(gate, []).append(effect)
        return True

    def _send(self, position: int, effect: Send) -> None:
        if effect.gate is None or not self._waits(position, effect):
            self._orders.append(Transmit((effect.to,), self.layers[position].wire.encode(effect.message)))

    def _broadcast(self, position: int, effect: Broadcast) -> None:
        if effect.gate is None or not self._waits(position, effect):
            to = self.peers if effect.to is None else self._others(effect.to)
            if effect.but:
                to = tuple(name for name in to if name not in effect.but)
            self._orders.append(Transmit(to, self.layers[position].wire.encode(effect.message)))

    def _others(self, names: tuple[ProcId, ...]) -> tuple[ProcId, ...]:
        """These without us; the same ones are asked for packet by packet."""
        if names is not self._last_names:
            self._last_names = names
            self._last_others = tuple(name for name in names if name != self.me)
        return self._last_others

    def _set_timer(self, position: int, effect: SetTimer) -> None:
        self._generation += 1
        self.layers[position].generations[effect.timer] = self._generation
        self._orders.append(Arm(position, effect.timer, self._generation, effect.after))

    def _cancel_timer(self, position: int, effect: CancelTimer) -> None:
        if self.layers[position].generations.pop(effect.timer, None) is not None:
            self._orders.append(Disarm(position, effect.timer))

    def _append(self, position: int, effect: Append) -> None:
        layer = self.layers[position]
        frame = layer.disk.encode(effect.record)
        if layer.oldest is None:
            if layer.only_last_record:
                layer.last_frame = frame
            else:
                layer.oldest = self._end
        self._end += len(frame)
        self._orders.append(Write(frame))

    def _checkpoint(self, position: int, effect: Checkpoint) -> None:
        """Say again what others need from before this place, then renew: what stands before it can go."""
        layer = self.layers[position]
        assert not layer.only_last_record, f"{layer.name} needs its last record only: append it"
        frames = [layer.disk.encode(record) for record in effect.records]  # all, before any of them is written
        here = self._end
        self._write(KERNEL.encode(Life(self.incarnation)))
        for each in self.layers:
            if each.last_frame is not None:
                self._write(each.last_frame)
        layer.oldest = self._end if frames else None
        self._write(KERNEL.encode(Renewal(layer.channel, len(frames))))
        for frame in frames:
            self._write(frame)
        # The next force makes this durable, and with it every renewal before it that `oldest` counts on.
        needed = min([here, *(each.oldest for each in self.layers if each.oldest is not None)])
        self._discards.append((self._forces + 1, needed))

    def _write(self, frame: bytes) -> None:
        self._end += len(frame)
        self._orders.append(Write(frame))

    def _discard(self, number: int) -> None:
        """What the checkpoints that this force has made durable leave to nobody."""
        needed = self._discarded
        while self._discards and self._discards[0][0] <= number:
            _, needed = self._discards.popleft()
        if needed > self._discarded and type(self.life) is Running:
            self._discarded = needed
            self._orders.append(Discard(needed))

    def _barrier(self, position: int, effect: Barrier) -> None:
        layer = self.layers[position]
        assert effect.ticket > layer.last_ticket, f"{layer.name} used ticket {effect.ticket} before"
        layer.last_ticket = effect.ticket
        self._waiting.append((position, effect.ticket))
        if not self._forcing:
            self._force()

    def _force(self) -> None:
        """One forced write for all barriers that wait by now; those that come meanwhile share the next."""
        self._forcing, self._waiting = self._waiting, []
        self._forces += 1
        self._orders.append(Force(self._forces))

    def _withdraw(self, position: int, effect: Withdraw) -> None:
        self.layers[position].held.pop(effect.gate, None)

    def _call(self, position: int, effect: Call) -> None:
        if not self._waits(position, effect):
            self._orders.append(Ask(position, effect.call, effect.port, effect.request))

    def _downcall(self, position: int, effect: Downcall) -> None:
        if not self._waits(position, effect):
            below = position + 1
            assert below < len(self.layers), f"there is no core below {self.layers[position].name}"
            self._agenda.append((below, Downcall(effect.payload)))

    def _upcall(self, position: int, effect: Upcall) -> None:
        if effect.gate is not None and self._waits(position, effect):
            return
        payload = effect.payload
        layer = self.layers[position]
        if isinstance(payload, RegularConf | TransitionalConf):
            layer.conf = str(payload.conf.conf_id)
        self._write_down(self.scribe.passed(self._now, layer.name, layer.conf, payload))
        if position:
            self._agenda.append((position - 1, Upcall(payload)))
        else:
            self._orders.append(Tell(payload))

    def _trace(self, position: int, effect: Trace) -> None:
        layer = self.layers[position]
        self._write_down(self.scribe.witness(self._now, layer.name, layer.conf, effect))

    def _ignored(self, position: int, effect: Ignored) -> None:
        self.ignored[effect.reason] += 1
        self._note(evidence.IGNORED, self.layers[position], detail=effect.reason)

    def _halted(self, position: int, effect: Halt) -> None:
        self._halt(f"{self.layers[position].name}: {effect.reason}")


def _refuses(answer: Any, call: Multicast) -> bool:
    """Does the provider of the port say that it has not taken this message?"""
    return isinstance(answer, Busy | TooLarge) and answer.message == call.message


_CARRY_OUT: dict[type[Any], Callable[[Router, int, Any], None]] = {
    Send: Router._send,
    Broadcast: Router._broadcast,
    SetTimer: Router._set_timer,
    CancelTimer: Router._cancel_timer,
    Append: Router._append,
    Checkpoint: Router._checkpoint,
    Barrier: Router._barrier,
    Withdraw: Router._withdraw,
    Call: Router._call,
    Downcall: Router._downcall,
    Upcall: Router._upcall,
    Trace: Router._trace,
    Ignored: Router._ignored,
    Halt: Router._halted,
}
