"""What each phase does with what it hears: served, or ignored by name; and what cannot be stops the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from greenline.kernel.codec import Codec
from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored, Upcall, Withdraw
from greenline.kernel.events import Answered, Downcall, Durable, Received, Start, TimerFired
from greenline.kernel.identities import ConfId, MessageId, ProcId
from greenline.kernel.ports import Busy, Deliver, Multicast, Ready, Service, TooLarge
from greenline.ring import core as ring_core
from greenline.ring.core import RingCore
from greenline.ring.form import is_sound
from greenline.ring.memory import count_in, remember
from greenline.ring.messages import (
    MOST_NAMES,
    AnyMessage,
    AttemptJoin,
    ConfRecord,
    Echo,
    Foreign,
    FormToken,
    Hurry,
    Join,
    Probe,
    Regular,
    RegularToken,
    Seat,
)
from greenline.ring.pace import Pace
from greenline.ring.packing import Queue, Unpacking
from greenline.ring.processor import Timer
from greenline.ring.settings import Settings
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.stage import processor
from greenline.simulation.subjects import RING, ring_with
from greenline.simulation.tampering import ALWAYS

CODEC: Codec[Any] = Codec(1, AnyMessage)
PHASES = ("Operational", "Gather", "Commit", "Form", "EVS")


def caught_in(phase: str, name: ProcId = "q") -> Cluster:
    """A ring of p and q that is about to be joined by r, at the moment when this one is in that phase."""
    ring = Cluster("p q r", 3, RING).partition("p q | r").settle()
    if phase != "Operational":
        who = "p" if phase in ("Gather", "Commit") else name
        ring.heal().wait_until(lambda: ring[who].phase == phase)
    return ring


def tell(ring: Cluster, to: ProcId, message: Any, sender: ProcId) -> set[str]:
    """Hand it a packet; the reasons for which something was ignored then."""
    before = len(ring.rows)
    ring.world[to].arrive(sender, CODEC.encode(message))
    return {row.detail or "" for row in ring.rows[before:] if row.kind == "ignored" and row.process == to}


def old_join(failed: tuple[ProcId, ...] = ()) -> Join:
    return Join(1, 0, ConfId(1, "p"), False, 1, (("p", 1), ("q", 1)), failed)


def stale(message: str) -> Callable[[Cluster, ProcId], Any]:
    """A message that has no place in the configuration that the processor is in."""
    other = ConfId(1, "zz")
    made: dict[str, Callable[[Cluster, ProcId], Any]] = {
        "attempt join": lambda *_: AttemptJoin(1, 0, other, False, 0.0, 0.0, ()),
        "join": lambda *_: old_join(),
        "absurd": lambda *_: AttemptJoin(1, 2**40, other, False, 0.0, 0.0, ()),
        "foreign": lambda *_: Foreign(other, "s"),
        "hurry": lambda *_: Hurry(other),
        "token": lambda *_: RegularToken(other, 5),
        "packet": lambda *_: Regular(other, "p", 1, 1, Service.SAFE, 1, 1, 1, b"\x90"),
        "form": lambda *_: FormToken(ConfId(99, "p"), 1, (("p", 1),), (Seat("q", 1, other),), 0, ()),
        "second form": lambda *_: FormToken(ConfId(99, "p"), 2, (("p", 1),), (Seat("q", 1, other),), 0, ()),
    }
    return made[message]


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    "message", ["attempt join", "join", "absurd", "foreign", "hurry", "token", "packet", "form", "second form"]
)
def test_what_has_no_place_here_is_ignored_by_name_and_changes_nothing(phase: str, message: str) -> None:
    name = "p" if phase in ("Gather", "Commit") else "q"
    sender = "q" if name == "p" else "p"
    ring = caught_in(phase, name)
    assert tell(ring, name, stale(message)(ring, name), sender), "a reason is named"
    assert ring[name].phase == phase
    ring.settle()
    assert ring.broken_rules() == []


@pytest.mark.parametrize("phase", PHASES)
def test_what_our_own_layers_cannot_say_stops_the_node(phase: str) -> None:
    name = "p" if phase in ("Gather", "Commit") else "q"
    ring = caught_in(phase, name)
    router = ring.world[name].router
    assert router is not None
    with pytest.raises(Impossible, match=phase):
        router.layers[0].core.handle(0.0, Answered(1, None))


def test_a_life_begins_with_its_start_and_then_waits_for_the_disk() -> None:
    core = RingCore()
    with pytest.raises(Impossible, match="the first event of a life is its start"):
        core.handle(0.0, Durable(1))
    core.handle(0.0, Start("p", 1))
    assert core.handle(0.0, Received(Hurry(ConfId(1, "q")), "q")) == [Ignored("I am starting")]
    assert core.handle(0.0, Downcall(Multicast(MessageId("p", 1, 1), Service.SAFE, b"x"))) == []
    with pytest.raises(Impossible, match="Starting"):
        core.handle(0.0, Answered(1, None))
    told = [effect.payload for effect in core.handle(0.0, Durable(1)) if isinstance(effect, Upcall)]
    assert [type(each).__name__ for each in told] == ["RegularConf", "Sent", "Deliver"]


def test_who_uses_my_name_is_not_heard() -> None:
    ring = Cluster("p q", 0, RING).settle()
    assert tell(ring, "p", Hurry(ConfId(1, "p")), "p") == {"from somebody who uses my name"}


def test_a_full_port_is_busy_and_then_ready_again() -> None:
    ring = Cluster("p q r", 0, ring_with(Settings(most_queued=10))).settle().partition("p | q r")
    for number in range(30):
        ring["p"].multicast(str(number), Service.SAFE)
    told = [type(each) for each in ring.world["p"].app.told]
    assert Busy in told
    assert Ready not in told
    ring.settle()
    assert Ready in [type(each) for each in ring.world["p"].app.told]
    assert ring["p"].delivered == [str(number) for number in range(30)]
    assert ring.broken_rules() == []


def test_a_port_is_also_full_by_bytes_but_takes_one_message_of_any_size_it_allows() -> None:
    queue = Queue(Settings(most_queued_bytes=100, largest_message=1000, packet_bytes=1000))
    out: list[Effect] = []

    def call(number: int, size: int) -> Multicast:
        return Multicast(MessageId("p", 1, number), Service.SAFE, b"x" * size)

    assert not queue.queue_up(call(1, 10)), "nobody waits yet, so somebody may have to be woken"
    assert queue.put(call(1, 900), out), "alone it fits"
    assert not queue.queue_up(call(2, 10))
    assert not queue.put(call(2, 10), out)
    assert not queue.put(call(2, 1001), out)
    assert not queue.queue_up(call(2, 1)), "it is busy: nothing is taken, however small"
    assert not queue.put(call(2, 1), out)
    told = [effect.payload for effect in out if isinstance(effect, Upcall)]
    second = MessageId("p", 1, 2)
    assert told == [Busy(second), TooLarge(second, 1000), Busy(second)]
    queue.next_parcel()
    queue.relieve(out)
    assert [*told, Ready()] == [effect.payload for effect in out if isinstance(effect, Upcall)]
    assert queue.put(call(2, 50), out)
    assert not queue.queue_up(call(3, 1001)), "too large is too large, behind others as well"
    assert not queue.put(call(3, 900), out)
    queue.next_parcel()
    queue.relieve(out)
    assert queue.put(call(3, 900), out), "it was said to be ready when there was room for what had been refused"


def test_a_message_that_is_too_large_is_refused_and_was_never_generated() -> None:
    ring = Cluster("p q", 0, ring_with(Settings(largest_message=10))).settle()
    ring["p"].multicast("x" * 11)
    assert {row.kind for row in ring.rows if row.message} == {"busy"}


def test_a_packet_that_cannot_be_opened_is_passed_over() -> None:
    """Everybody has the same bytes, so everybody passes over the same packet."""
    out: list[Effect] = []
    broken = Regular(ConfId(1, "p"), "p", 1, 1, Service.SAFE, 1, 1, 1, b"\xc1")
    Unpacking().deliver(broken, out)
    assert out == [Ignored("a packet that cannot be opened")]


def test_the_parts_of_a_message_are_put_together_and_the_last_gives_it_its_place() -> None:
    queue = Queue(Settings(packet_bytes=15))
    out: list[Effect] = []
    queue.put(Multicast(MessageId("p", 1, 7), Service.SAFE, b"abcdefghijklmnopqrstuvwxyz"), out)
    unpacking = Unpacking()
    for seq in range(10, 13):
        parcel = queue.next_parcel()
        packet = Regular(
            ConfId(1, "p"), "p", 1, seq, parcel.service, parcel.first, parcel.part, parcel.parts, parcel.body
        )
        assert packet.is_safe == (seq == 12)
        unpacking.deliver(packet, out)
    assert out == [Upcall(Deliver(MessageId("p", 1, 7), Service.SAFE, b"abcdefghijklmnopqrstuvwxyz", 12, 0))]
    assert not queue.waiting


def test_somebody_with_another_key_idea_of_the_world_is_out_of_reach() -> None:
    """A packet so far ahead that we would have to keep thousands is not kept; it can be asked for later."""
    ring = Cluster("p q", 0, RING).settle()
    conf_id = processor(ring, "p").ring.conf_id
    far = Regular(conf_id, "q", 1, 1 << 20, Service.SAFE, 1, 1, 1, b"\x90")
    assert tell(ring, "p", far, "q") == {"a packet that is out of reach"}
    token = RegularToken(conf_id, 1 << 20, seq=0, aru=5)
    assert tell(ring, "p", token, "q") == {"a token that nobody could have sent"}


def test_a_token_for_a_ring_of_one_is_consumed() -> None:
    ring = Cluster("p q", 0, RING).partition("p | q").settle()
    conf_id = processor(ring, "p").ring.conf_id
    assert tell(ring, "p", RegularToken(conf_id, 1), "q") == {"a ring of one has no token"}


@pytest.mark.parametrize("phase", ["Gather", "Commit"])
def test_a_join_of_an_earlier_life_is_ignored_while_gathering_and_agreeing(phase: str) -> None:
    ring = Cluster("p q r", 0, RING).partition("p q | r").settle()
    ring.crash("r").restart("r").heal().lose(Join, frm="r", to="p", times=3)
    ring.wait_until(lambda: ring["p"].phase == phase)
    counter = processor(ring, "r").my_counter
    old = Join(1, counter, ConfId(1, "r"), True, 1, (("p", 1), ("r", 1)), ())
    assert tell(ring, "p", old, "r") == {"it speaks of an earlier life"}
    ring.settle()
    assert ring.broken_rules() == []


def test_who_has_given_us_up_is_not_gathered() -> None:
    ring = caught_in("Gather", "p")
    counter = processor(ring, "r").my_counter
    join = Join(1, counter, processor(ring, "r").ring.conf_id, True, 9, (("p", 1), ("r", 1)), ("p",))
    assert tell(ring, "p", join, "r") == {"it has given me up"}
    ring.settle()
    assert ring.broken_rules() == []


@pytest.mark.slow
@pytest.mark.parametrize("slowness", [30.0, 300.0, 1000.0, 2000.0, 4000.0, 8000.0])
def test_a_slow_disk_delays_a_ring_and_breaks_nothing(slowness: float) -> None:
    """A counter that is not on disk yet is not used: what depends on it waits, or is withdrawn and tried again."""
    ring = Cluster("p q r", int(slowness), RING).settle()
    ring.partition("p | q r").settle()
    ring.crash("p").restart("p").settle()
    ring.world["q"].disk.slowness = ring.world["r"].disk.slowness = slowness
    ring.heal()
    for _ in range(4):
        ring.wait(0.15).partition("p | q | r").wait(0.15).heal()
    ring.world["q"].disk.slowness = ring.world["r"].disk.slowness = 1.0
    ring.settle()
    assert ring["q"].history[-1] == "{p q r}"
    assert ring.broken_rules() == []


def test_names_from_the_network_are_remembered_up_to_a_bound() -> None:
    memory: dict[ProcId, int] = {}
    for number in range(MOST_NAMES + 10):
        remember(memory, f"n{number}", number)
    assert len(memory) == MOST_NAMES
    assert "n0" not in memory
    count_in(memory, "one more", 1)
    assert "one more" not in memory
    count_in(memory, f"n{MOST_NAMES}", 10_000)
    assert memory[f"n{MOST_NAMES}"] == 10_000


def test_the_counters_of_an_earlier_life_are_not_used_again() -> None:
    out: list[Effect] = []
    first = ring_core.start(Start("p", 1), Settings(), Queue(Settings()), out)
    records = tuple(effect.record for effect in out if hasattr(effect, "record"))
    second = ring_core.start(Start("p", 2, records), Settings(), Queue(Settings()), [])
    assert second.processor.my_counter > records[0].counter >= first.processor.my_counter


def test_a_probe_of_a_member_that_went_on_tells_us_so() -> None:
    ring = Cluster("p q r", 0, RING).settle()
    known = processor(ring, "q").my_counter
    ring.world["q"].arrive("p", CODEC.encode(Probe(1, known, 0.0, 0.0, ())))
    assert ring["q"].phase == "Operational", "its representative, alive and well"
    ring.world["q"].arrive("p", CODEC.encode(Probe(1, known + 1, 0.0, 0.0, ())))
    assert ring["q"].phase == "Gather"
    ring.settle()
    assert ring.broken_rules() == []


def test_a_form_token_that_has_forgotten_who_made_it_is_refused() -> None:
    ring = caught_in("Form", "p")
    router = ring.world["p"].router
    assert router is not None
    token = router.layers[0].core.phase.token  # type: ignore[attr-defined]
    seats = (*token.memb_list, Seat("r", 1, processor(ring, "r").ring.conf_id))
    forgetful = FormToken(token.form_id, 1, token.join_list, seats, len(seats), ())
    assert tell(ring, "p", forgetful, "r") == {"a Form token that makes no sense"}
    ring.settle()
    assert ring.broken_rules() == []


def test_a_ring_of_one_is_not_formed_by_a_token() -> None:
    ring = Cluster("p q", 0, RING).settle()
    mine = processor(ring, "q").ring.conf_id
    alone = FormToken(ConfId(9, "q"), 1, (("q", 1),), (Seat("q", 1, mine),), 0, ())
    assert tell(ring, "q", alone, "p") == {"a Form token that is not for me"}


def test_a_clock_that_is_set_back_measures_nothing_and_breaks_no_ring() -> None:
    ring = Cluster("p q r", 0, RING).settle()
    before = ring["q"].history
    ring["p"].multicast("x", Service.SAFE)
    ring.wait(0.001)
    ring.world["p"].set_clock(-100.0, 1.0)
    ring.wait(1.0)
    ring.world["p"].set_clock(-50.0, 1.0)
    ring.settle()
    assert ring["q"].history == [*before, "x"]
    assert ring.broken_rules() == []


def test_who_was_far_away_and_is_gone_does_not_slow_down_those_who_are_here() -> None:
    pace = Pace(Settings(), "p")
    pace.hears("z", Probe(1, 1, 5.0, 0.0, (Echo("p", 0.0, 0.0),)), 0.8)
    assert pace.rtt == 0.8
    pace.echoes(10.0)
    assert pace.rtt == 0.8, "it may come back"
    pace.echoes(60.0)
    assert pace.rtt == Settings().first_rtt


def test_names_that_a_join_gives_up_count_only_where_they_are_counted() -> None:
    ring = caught_in("Commit", "p")
    conf_id = processor(ring, "r").ring.conf_id
    counter = processor(ring, "r").my_counter
    for number in range(20):
        crowd = tuple(f"n{number}-{place}" for place in range(250))
        ring.world["p"].arrive(
            "r", CODEC.encode(Join(1, counter, conf_id, True, 50 + number, (("p", 1), ("r", 1)), crowd))
        )
    router = ring.world["p"].router
    assert router is not None
    assert len(getattr(router.layers[0].core.phase, "failed", ())) <= 3
    ring.settle()
    assert ring.broken_rules() == []


def test_settings_that_cannot_work_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="packet_bytes = 5 is not between 8 and 65000"):
        Settings(packet_bytes=5)
    with pytest.raises(ValueError, match="probe = 0 is not between"):
        Settings(probe=0.0)


def test_what_was_generated_while_a_ring_was_formed_in_vain_is_said_alone() -> None:
    ring = Cluster("p q", 0, RING).lose(FormToken, times=ALWAYS)
    ring.wait_until(lambda: ring["p"].phase == "Form")
    ring["p"].multicast("x", Service.SAFE)
    ring.wait_until(lambda: ring["p"].phase == "Gather").wait(0.001)
    assert ring["p"].delivered == ["x"]
    ring.let_be().settle()
    assert ring.broken_rules() == []


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["Gather", "Commit"])
def test_who_fails_to_receive_is_left_behind_also_while_membership_changes(phase: str) -> None:
    settings = Settings(fail_to_receive=4)
    ring = Cluster("p q r s", 0, ring_with(settings)).partition("p q r | s").settle()
    ring.heal().lose(Join, frm="s", times=ALWAYS).wait_until(lambda: ring["p"].phase == phase)
    ring.lose(Regular, to="r", times=ALWAYS)
    ring["q"].multicast("x", Service.SAFE)
    ring.wait_until(lambda: "r" in getattr(_phase(ring, "p"), "failed", ()))
    ring.let_be().settle()
    assert ring["q"].history[-1] in ("{p q r s}", "x")
    assert ring.broken_rules() == []


def _phase(ring: Cluster, name: ProcId) -> object:
    router = ring.world[name].router
    assert router is not None
    return router.layers[0].core.phase


def test_a_form_token_that_no_honest_member_could_have_sent_makes_no_sense() -> None:
    ring = Cluster("p q", 0, RING).settle()
    mine = processor(ring, "q")
    conf_id = mine.ring.conf_id
    both = (("p", 1), ("r", 1))
    seats = (Seat("p", 1, conf_id), Seat("q", 1, conf_id))

    def record(**changes: Any) -> ConfRecord:
        fields: dict[str, Any] = {"highest_seq": 0, "aru": 0, "holes": (), "trans_set": ("p",)}
        fields.update(changes)
        return ConfRecord(conf_id, ("p",), **fields)

    def token(**changes: Any) -> FormToken:
        fields: dict[str, Any] = {"join_list": both, "memb_list": seats, "visited": 1, "confs_list": (record(),)}
        fields.update(changes)
        return FormToken(ConfId(9, "p"), 1, **fields)

    assert is_sound(mine, token())
    assert not is_sound(mine, token(memb_list=(*seats, seats[0]))), "somebody is in it twice"
    assert not is_sound(mine, token(visited=3)), "it has been where nobody sits"
    assert not is_sound(mine, token(memb_list=seats[::-1])), "its maker is not the first"
    assert not is_sound(mine, token(join_list=(("q", 1), ("r", 1)))), "its maker did not join"
    assert not is_sound(mine, token(join_list=(("p", 1),))), "nobody to form a ring with"
    assert not is_sound(mine, token(confs_list=(record(highest_seq=3, holes=((2, 1),)),))), "a hole inside out"
    assert not is_sound(mine, token(confs_list=(record(highest_seq=1, holes=((2, 2),)),))), "a hole beyond the end"
    assert not is_sound(mine, token(confs_list=(record(highest_seq=1 << 40),))), "more than anybody can have said"
    assert not is_sound(mine, token(confs_list=(record(aru=5, highest_seq=5),))), "we know that we do not have it"
    assert not is_sound(mine, token(confs_list=(record(trans_set=("s",)),))), "s was no member"


@pytest.mark.parametrize("phase", PHASES)
def test_a_barrier_may_become_durable_in_any_phase(phase: str) -> None:
    name = "p" if phase in ("Gather", "Commit") else "q"
    ring = caught_in(phase, name)
    router = ring.world[name].router
    assert router is not None
    ticket = processor(ring, name).ceiling_ticket + 1
    router.layers[0].core.handle(ring.world[name].clock(), Durable(ticket))
    assert processor(ring, name).durable_ticket == ticket


def test_a_form_token_that_waits_for_the_disk_is_withdrawn_when_it_is_given_up() -> None:
    ring = caught_in("Form")
    router = ring.world["q"].router
    assert router is not None
    processor(ring, "q").ceiling_ticket += 1
    effects = router.layers[0].core.handle(ring.world["q"].clock(), TimerFired(Timer.FORM_LOSS, 0))
    assert Withdraw(processor(ring, "q").ceiling_ticket) in effects


def test_a_counter_that_is_not_on_disk_is_not_installed_alone() -> None:
    ring = Cluster("p q", 0, RING).settle().partition("p | q")
    ring.wait_until(lambda: ring["q"].phase == "Gather")
    router = ring.world["q"].router
    assert router is not None
    processor(ring, "q").ceiling_ticket += 1
    ring.wait(0.5)
    assert ring["q"].phase == "Commit", "it waits for the disk, however long that takes"
    effects = router.layers[0].core.handle(ring.world["q"].clock(), Durable(processor(ring, "q").ceiling_ticket))
    told = [effect.payload for effect in effects if isinstance(effect, Upcall)]
    assert [type(each).__name__ for each in told] == ["TransitionalConf", "RegularConf"]
