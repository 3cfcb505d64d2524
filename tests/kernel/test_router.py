"""The router keeps the promises that the contract makes to a core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from greenline.kernel import evidence
from greenline.kernel.codec import CodecError, seal
from greenline.kernel.core import Impossible
from greenline.kernel.effects import (
    Append,
    Barrier,
    Broadcast,
    Call,
    CancelTimer,
    Effect,
    Halt,
    Ignored,
    Send,
    SetTimer,
    Trace,
    Withdraw,
)
from greenline.kernel.events import Answered, Downcall, Durable, Event, Received, Start, TimerFired, Upcall
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ConfId, Configuration, MessageId, TransId
from greenline.kernel.orders import Arm, Ask, Cut, Disarm, Force, Order, Record, Stop, Tell, Transmit, Write
from greenline.kernel.ports import Busy, Deliver, Multicast, RegularConf, Sent, Service, TransitionalConf
from greenline.kernel.router import Layer, Router
from greenline.kernel.scribe import Depth


class Word(msgspec.Struct, frozen=True, tag=True):
    text: str


class Idle:
    """A phase."""


class Active:
    """Another phase."""


class Late(msgspec.Struct, frozen=True, tag=True):
    number: int


class Puppet:
    """A core that does what the test tells it to, and remembers what it was told."""

    def __init__(self) -> None:
        self.phase: object = Idle()
        self.events: list[Event] = []
        self.next: Callable[[Event], list[Effect]] = lambda event: []

    def handle(self, now: float, event: Event) -> list[Effect]:
        self.events.append(event)
        return self.next(event)


def running(*cores: Puppet, log: bytes = b"", depth: Depth = Depth.FULL) -> tuple[Router, list[Order]]:
    """A router that has booted, and the orders of its start."""
    layers = [Layer(f"core{n}", n + 1, core, Word, Word) for n, core in enumerate(cores)]
    router = Router("p", ["p", "q", "r"], layers, depth)
    router.boot(0.0, log)
    return router, router.forced(0.1, 1)


def does(puppet: Puppet, *effects: Effect) -> None:
    """At the next event, and then nothing more."""

    def once(event: Event) -> list[Effect]:
        puppet.next = lambda _: []
        return list(effects)

    puppet.next = once


def poke(router: Router) -> list[Order]:
    """Some event, so that the puppet does what it was told."""
    return router.ask(1.0, "poke")


def rows(orders: list[Order]) -> list[Row]:
    return [order.row for order in orders if isinstance(order, Record)]


def without_rows(orders: list[Order]) -> list[Order]:
    return [order for order in orders if not isinstance(order, Record)]


# Lives.


def test_a_life_begins_only_when_its_incarnation_is_durable() -> None:
    core = Puppet()
    router = Router("p", ["q"], [Layer("core", 1, core, Word, Word)])

    write, force = router.boot(0.0, b"")
    assert isinstance(write, Write)
    assert force == Force(1)
    assert router.received(0.0, "q", b"too early") == []
    assert core.events == []

    orders = router.forced(0.1, 1)
    assert core.events == [Start("p", 1, ())]
    assert [row.kind for row in rows(orders)] == ["start", "phase"]


def test_the_next_life_has_the_next_incarnation_and_what_the_disk_had() -> None:
    core = Puppet()
    router = Router("p", ["q"], [Layer("core", 1, core, Word, Word)])
    log = b"".join(order.frame for order in router.boot(0.0, b"") if isinstance(order, Write))
    router.forced(0.0, 1)
    does(core, Append(Word("kept")))
    log += b"".join(order.frame for order in poke(router) if isinstance(order, Write))

    again = Puppet()
    running(again, log=log)
    assert again.events == [Start("p", 2, (Word("kept"),))]


def test_a_log_with_records_of_a_core_that_is_not_there_is_refused() -> None:
    router = Router("p", [], [Layer("core", 1, Puppet(), Word, Word)])
    with pytest.raises(CodecError, match="channel 9, which no core"):
        router.boot(0.0, seal(9, b""))


def test_cores_start_from_the_lowest() -> None:
    top, bottom = Puppet(), Puppet()
    bottom.next = lambda event: [Upcall("I am here")] if isinstance(event, Start) else []
    running(top, bottom)
    assert top.events == [Start("p", 1, ()), Upcall("I am here")]


def test_the_kernels_channel_is_its_own() -> None:
    with pytest.raises(ValueError, match="the kernel's own"):
        Layer("core", 0, Puppet(), Word, Word)


# Messages.


def test_what_is_sent_arrives_decoded_with_its_sender() -> None:
    core, peer = Puppet(), Puppet()
    router, _ = running(core)
    there, _ = running(peer)
    does(core, Send("q", Word("hello")), Broadcast(Word("all")), Broadcast(Word("some"), to=("p", "r")))

    sent = without_rows(poke(router))
    assert [order.to for order in sent if isinstance(order, Transmit)] == [("q",), ("q", "r"), ("r",)]

    first = sent[0]
    assert isinstance(first, Transmit)
    there.received(2.0, "p", first.frame)
    assert peer.events[-1] == Received(Word("hello"), "p")


@pytest.mark.parametrize("noise", [b"", b"noise", seal(1, b"\xc1"), seal(99, b""), seal(1, b"\x80") + b"x"])
def test_a_datagram_that_is_no_message_is_dropped_and_counted(noise: bytes) -> None:
    core = Puppet()
    router, _ = running(core)
    orders = router.received(1.0, "q", noise)
    assert [row.kind for row in rows(orders)] == ["dropped"]
    assert sum(router.ignored.values()) == 1
    assert core.events == [Start("p", 1, ())]


# Gates and barriers.


def test_a_gated_output_leaves_when_its_barrier_is_durable_and_before_the_core_hears_of_it() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Append(Word("w")), Barrier(1), Send("q", Word("w"), gate=1), Upcall("done", gate=1))

    write, force = without_rows(poke(router))
    assert isinstance(write, Write)
    assert force == Force(2)

    transmit, tell = without_rows(router.forced(2.0, 2))
    assert isinstance(transmit, Transmit)
    assert tell == Tell("done")
    assert core.events[-1] == Durable(1)


def test_an_output_behind_a_durable_barrier_leaves_at_once() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Barrier(1))
    poke(router)
    router.forced(2.0, 2)
    does(core, Upcall("late", gate=1))
    assert without_rows(poke(router)) == [Tell("late")]


def test_a_withdrawn_output_never_leaves_but_the_barrier_completes() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Barrier(1), Upcall("stale", gate=1))
    poke(router)
    does(core, Withdraw(1))
    poke(router)
    assert without_rows(router.forced(2.0, 2)) == []
    assert core.events[-1] == Durable(1)


def test_barriers_that_are_pending_together_share_one_forced_write() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Barrier(1))
    assert without_rows(poke(router)) == [Force(2)]
    for ticket in (2, 3, 4):
        does(core, Barrier(ticket), Upcall(ticket, gate=ticket))
        assert without_rows(poke(router)) == [], "the force under way may not cover what came after it"

    assert without_rows(router.forced(2.0, 2)) == [Force(3)]
    assert without_rows(router.forced(3.0, 3)) == [Tell(2), Tell(3), Tell(4)]
    assert core.events[-3:] == [Durable(2), Durable(3), Durable(4)]


@pytest.mark.parametrize(
    "mistake", [[Upcall("x", gate=1)], [Barrier(1), Barrier(1)], [Send("q", object())]], ids=["gate", "ticket", "wire"]
)
def test_a_core_that_breaks_the_contract_halts_the_node(mistake: list[Effect]) -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, *mistake)
    stop = poke(router)[-1]
    assert isinstance(stop, Stop)
    assert stop.reason.startswith(evidence.IMPOSSIBLE)


def test_a_disk_that_fails_halts_the_node_and_nothing_gated_ever_leaves() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Barrier(1), Upcall("promise", gate=1))
    poke(router)
    orders = router.disk_failed(2.0, "no space left")
    assert [row.detail for row in rows(orders)] == ["the disk failed: no space left"]
    assert isinstance(orders[-1], Stop)
    assert router.forced(3.0, 2) == []
    assert router.disk_failed(3.0, "again") == []


# Timers.


def test_a_timer_fires_with_the_generation_it_was_set_with() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, SetTimer("tick", 0.5))
    (arm,) = without_rows(poke(router))
    assert isinstance(arm, Arm)
    router.fire(1.5, 0, "tick", arm.generation)
    assert core.events[-1] == TimerFired("tick", arm.generation)


def test_a_timer_that_was_set_anew_or_cancelled_does_not_fire() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, SetTimer("tick", 0.5), SetTimer("tick", 0.9), SetTimer("tock", 0.1), CancelTimer("tock"))
    orders = without_rows(poke(router))
    first, second, tock = [order for order in orders if isinstance(order, Arm)]
    assert orders[-1] == Disarm(0, "tock")
    before = len(core.events)
    assert router.fire(1.5, 0, "tick", first.generation) == []
    assert router.fire(1.5, 0, "tock", tock.generation) == []
    assert len(core.events) == before
    router.fire(1.9, 0, "tick", second.generation)
    assert router.fire(1.9, 0, "tick", second.generation) == [], "it fired already"
    assert len(core.events) == before + 1


def test_what_came_in_one_go_is_handed_over_in_order_but_for_what_its_core_wants_last() -> None:
    core = Puppet()
    layer = Layer("core", 1, core, Word | Late, Word, last=(Late,))
    router = Router("p", ["p", "q", "r"], [layer])
    router.boot(0.0, b"")
    router.forced(0.1, 1)
    frames = [layer.wire.encode(each) for each in (Word("a"), Late(1), Word("b"), Late(2), Word("c"))]
    before = len(core.events)
    router.received_together(1.0, [("q", frame) for frame in (*frames[:2], b"garbage", *frames[2:])])
    said = [event.message for event in core.events[before:] if isinstance(event, Received)]
    assert said == [Word("a"), Word("b"), Word("c"), Late(1), Late(2)]
    assert sum(router.ignored.values()) == 1


# Composition.


def test_calls_go_between_neighbours_in_order() -> None:
    top, bottom = Puppet(), Puppet()
    router, _ = running(top, bottom)
    does(top, Downcall("first"), Downcall("second"))
    bottom.next = lambda event: [Upcall(f"heard {event.payload}")] if isinstance(event, Downcall) else []
    poke(router)
    assert bottom.events[1:] == [Downcall("first"), Downcall("second")]
    assert top.events[2:] == [Upcall("heard first"), Upcall("heard second")]


def test_a_downcall_below_the_lowest_core_is_impossible() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Downcall("nobody"))
    stop = poke(router)[-1]
    assert isinstance(stop, Stop)
    assert "no core below" in stop.reason


def test_a_call_to_a_port_outside_is_answered_later() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Call(5, "database", "how much?"))
    assert without_rows(poke(router)) == [Ask(0, 5, "database", "how much?")]
    router.answered(2.0, 0, 5, "much")
    assert core.events[-1] == Answered(5, "much")


def test_a_node_that_is_not_running_takes_no_calls() -> None:
    router = Router("p", [], [Layer("core", 1, Puppet(), Word, Word)])
    with pytest.raises(RuntimeError, match="not running"):
        router.ask(0.0, "hello?")


# Impossible.


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Impossible(Idle(), Durable(3), "nothing was forced"), "Durable(ticket=3) in Idle, nothing was forced"),
        (AssertionError("delivered past a hole"), "AssertionError: delivered past a hole"),
        (KeyError("conf"), "KeyError: 'conf'"),
    ],
)
def test_what_a_core_cannot_explain_halts_the_node_with_the_evidence(error: Exception, said: str) -> None:
    def fail(event: Event) -> list[Effect]:
        raise error

    core = Puppet()
    router, _ = running(core)
    core.next = fail
    orders = poke(router)
    assert rows(orders)[-1].detail == f"impossible: core0: {said}"
    assert isinstance(orders[-1], Stop)
    assert router.received(2.0, "q", b"") == []


def test_a_core_that_halts_stops_what_it_asked_for_after() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Halt("cannot go on"), Upcall("more"))
    orders = poke(router)
    assert orders[-1] == Stop("core0: cannot go on")


# The trace of the port.


def test_the_router_writes_what_passes_the_port() -> None:
    core = Puppet()
    router, _ = running(core)
    conf = Configuration(ConfId(1, "p"), ("p", "q"))
    trans = Configuration(TransId(ConfId(1, "p"), ConfId(2, "p")), ("p",))
    message = MessageId("p", 1, 1)

    does(core, Upcall(RegularConf(conf)))
    (row,) = rows(poke(router))
    assert (row.kind, row.conf, row.members) == ("regular", "p.1", "p q")

    does(core, Upcall(Sent(message)))
    generated, sent = rows(router.ask(1.0, Multicast(message, Service.SAFE, b"x")))
    assert (generated.kind, generated.message, generated.service) == ("generate", "p:1:1", "safe")
    assert (sent.kind, sent.message, sent.conf) == ("send", "p:1:1", "p.1")

    does(core, Upcall(TransitionalConf(trans)), Upcall(Deliver(message, Service.SAFE, b"x", seq=9, sub=2)))
    moved, delivered = rows(poke(router))
    assert (moved.kind, moved.conf, moved.members) == ("transitional", "p.1>p.2", "p")
    assert (delivered.kind, delivered.message, delivered.conf) == ("deliver", "p:1:1", "p.1>p.2")
    assert (delivered.position, delivered.sub, delivered.digest) == (9, 2, generated.digest)


def test_rows_are_numbered_without_gaps_in_each_life() -> None:
    core = Puppet()
    router, started = running(core)
    does(core, Ignored("one"), Ignored("two"))
    assert [row.local_index for row in rows(started) + rows(poke(router))] == [0, 1, 2, 3]


def test_a_refused_message_was_not_generated() -> None:
    core = Puppet()
    router, _ = running(core)
    message = MessageId("p", 1, 1)
    does(core, Upcall(Busy(message)))
    orders = router.ask(1.0, Multicast(message, Service.SAFE, b"x"))
    assert [row.kind for row in rows(orders)] == ["busy"]
    assert without_rows(orders) == [Tell(Busy(message))]


def test_a_gated_delivery_is_traced_when_it_happens() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Barrier(1), Upcall(Deliver(MessageId("q", 1, 1), Service.AGREED, b"x"), gate=1))
    assert rows(poke(router)) == []
    assert [row.kind for row in rows(router.forced(2.0, 2))] == ["deliver"]


def test_a_core_may_bear_witness_but_not_write_evidence() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Trace("green", message=MessageId("p", 1, 1), colour="green", position=7, sub=0, members=("p",)))
    (row,) = rows(poke(router))
    assert (row.kind, row.message, row.colour, row.position, row.members) == ("green", "p:1:1", "green", 7, "p")

    does(core, Trace("deliver"))
    assert "may not write evidence" in str(poke(router)[-1])


def test_a_change_of_phase_is_seen_without_the_cores_help() -> None:
    core = Puppet()
    router, started = running(core)
    assert [row.detail for row in rows(started) if row.kind == "phase"] == ["Idle"]

    def become_active(event: Event) -> list[Effect]:
        core.phase = Active()
        return []

    core.next = become_active
    assert [row.detail for row in rows(poke(router))] == ["Active"]
    assert rows(poke(router)) == []


def test_a_trace_can_be_turned_down_to_configurations() -> None:
    core = Puppet()
    router, _ = running(core, depth=Depth.CONFIGURATIONS)
    conf: Any = RegularConf(Configuration(ConfId(1, "p"), ("p",)))
    does(core, Upcall(conf), Upcall(Deliver(MessageId("q", 1, 1), Service.AGREED, b"x")), Ignored("nothing"))
    assert [row.kind for row in rows(poke(router))] == ["regular"]
    assert router.ignored["nothing"] == 1


def test_what_a_core_says_is_of_the_configuration_that_it_knows() -> None:
    """The port has moved on to c2 in the same step, but the user above has not heard of it yet."""
    top, bottom = Puppet(), Puppet()
    router, _ = running(top, bottom)
    one, two = (RegularConf(Configuration(ConfId(number, "p"), ("p",))) for number in (1, 2))
    top.next = lambda event: [Trace("green")] if event == Upcall("m") else []
    does(bottom, Upcall(one))
    router.answered(1.0, 1, 0, None)
    does(bottom, Upcall("m"), Upcall(two))
    seen = [(row.kind, row.conf) for row in rows(router.answered(1.0, 1, 0, None))]
    assert seen == [("regular", "p.2"), ("green", "p.1")]


def test_members_are_written_in_order() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Upcall(RegularConf(Configuration(ConfId(1, "p"), ("r", "p", "q")))))
    assert rows(poke(router))[0].members == "p q r"


def test_a_torn_log_is_cut_before_anything_is_written() -> None:
    core = Puppet()
    router = Router("p", [], [Layer("core", 1, core, Word, Word)])
    (life,) = (order.frame for order in router.boot(0.0, b"") if isinstance(order, Write))
    again = Router("p", [], [Layer("core", 1, Puppet(), Word, Word)])
    cut, write, force = again.boot(0.0, life + life[:5])
    assert cut == Cut(len(life))
    assert isinstance(write, Write)
    assert force == Force(1)


def test_two_cores_cannot_share_a_channel() -> None:
    with pytest.raises(ValueError, match="share a channel"):
        Router("p", [], [Layer("a", 1, Puppet(), Word, Word), Layer("b", 1, Puppet(), Word, Word)])


def test_a_life_that_never_began_leaves_no_row() -> None:
    router = Router("p", [], [Layer("core", 1, Puppet(), Word, Word)])
    router.boot(0.0, b"")
    assert router.disk_failed(0.1, "bad luck") == [Stop("the disk failed: bad luck")]


def test_busy_is_about_the_message_that_was_refused() -> None:
    core = Puppet()
    router, _ = running(core)
    does(core, Upcall(Busy(MessageId("p", 1, 7))))
    orders = router.ask(1.0, Multicast(MessageId("p", 1, 8), Service.SAFE, b"x"))
    assert [row.kind for row in rows(orders)] == ["generate"]


def test_a_node_that_halts_forgets_what_it_was_about_to_do() -> None:
    top, bottom = Puppet(), Puppet()
    router, _ = running(top, bottom)
    does(bottom, Upcall("first"), Upcall("second"))
    top.next = lambda event: [Halt("enough")] if event == Upcall("first") else []
    router.answered(1.0, 1, 0, None)
    assert Upcall("second") not in top.events
