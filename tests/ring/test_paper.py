"""Section 5.2 of the thesis, sentence by sentence. Where we do something else, the test says what and why."""

from __future__ import annotations

from functools import partial

from greenline.kernel.ports import Service
from greenline.ring.messages import AttemptJoin, FormToken, Join, Regular, RegularToken
from greenline.ring.settings import Reach, Settings
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.ring_membership import entered
from greenline.simulation.scenarios.stage import configurations, evs, processor
from greenline.simulation.subjects import RING, ring_with
from greenline.simulation.tampering import ALWAYS

SAFE, AGREED = Service.SAFE, Service.AGREED
SMALL = ring_with(Settings(packet_bytes=8, grace=0))


def ring_of(names: str) -> Cluster:
    return Cluster(names, 52, SMALL).settle()


def fine(ring: Cluster) -> None:
    ring.settle()
    assert ring.broken_rules() == []


# 5.2.1 Message ordering.


def test_only_the_processor_in_possession_of_the_token_can_multicast() -> None:
    ring = ring_of("p q r")
    ring.lose(RegularToken, times=ALWAYS)
    ring["p"].multicast("wake", AGREED)
    packets = ring.watch(Regular, frm="q r")
    ring["q"].multicast("x", AGREED)
    ring["r"].multicast("y", AGREED)
    ring.wait(0.02)
    assert packets == [], "the token is on its way, and nobody has it"
    ring.let_be()
    fine(ring)


def test_the_token_goes_round_a_logical_ring_of_the_members() -> None:
    ring = ring_of("p q r")
    hops: list[tuple[str, str]] = []
    for sender, receiver in (("p", "q"), ("q", "r"), ("r", "p")):
        ring.when(RegularToken, frm=sender, to=receiver, do=partial(hops.append, (sender, receiver)))
    ring["p"].multicast("x", AGREED)
    ring.wait(0.01)
    assert hops == [("p", "q"), ("q", "r"), ("r", "p")]
    fine(ring)


def test_a_single_sequence_of_numbers_for_all_processors_places_a_total_order_on_messages_before_they_are_sent() -> (
    None
):
    ring = ring_of("p q r")
    packets = ring.watch(Regular, to="p q")
    for name in "pqr":
        for number in range(3):
            ring[name].multicast(f"{name}{number}", AGREED)
    fine(ring)
    numbers = sorted({(packet.seq, packet.sender) for packet in packets})
    assert [seq for seq, _ in numbers] == list(range(1, 10)), "one number, one message"
    assert ring["p"].delivered == ring["q"].delivered == ring["r"].delivered


def test_at_the_beginning_of_each_regular_configuration_seq_and_aru_are_zero() -> None:
    ring = ring_of("p q r")
    ring["p"].multicast("x", SAFE)
    ring.settle().partition("p q | r").settle()
    held = processor(ring, "q").ring
    assert (held.high_seq, held.my_aru, held.safe_line) == (0, 0, 0)
    fine(ring.heal())


def test_a_processor_that_lacks_messages_lowers_aru_to_my_aru() -> None:
    ring = ring_of("p q r")
    ring.lose(Regular, to="r", where=lambda packet: packet.seq == 2)
    tokens = ring.watch(RegularToken, frm="r")
    for number in range(3):
        ring["q"].multicast(f"m{number}", AGREED)
    ring.wait(0.0045)
    assert (tokens[0].seq, tokens[0].aru, tokens[0].aru_id) == (3, 1, "r")
    fine(ring)


def test_who_lowered_aru_sets_it_to_its_my_aru_when_the_token_returns_with_that_value() -> None:
    ring = ring_of("p q r")
    ring.lose(Regular, to="r", where=lambda packet: packet.seq == 2)
    tokens = ring.watch(RegularToken, frm="r")
    for number in range(3):
        ring["q"].multicast(f"m{number}", AGREED)
    ring.wait(0.02)
    assert next(token.aru for token in tokens if token.aru != 1) == 3
    fine(ring)


def test_if_seq_and_aru_are_equal_aru_advances_in_step_with_seq() -> None:
    ring = ring_of("p q r")
    tokens = ring.watch(RegularToken, frm="p")
    ring["p"].multicast("x", AGREED)
    assert (tokens[0].seq, tokens[0].aru) == (1, 1)
    fine(ring)


def test_messages_that_were_not_received_are_added_to_rtr_and_removed_by_who_repeats_them() -> None:
    """Departs: instead of a random choice among holders, who asks again names who should answer."""
    ring = ring_of("p q r")
    ring.lose(Regular, to="q", where=lambda packet: packet.seq == 1)
    tokens = {name: ring.watch(RegularToken, frm=name) for name in "qr"}
    ring["p"].multicast("x", AGREED)
    ring.wait(0.0045)
    (asked,) = tokens["q"][0].rtr
    assert (asked.first, asked.last) == (1, 1)
    assert tokens["r"][0].rtr == (), "r had it, so it repeated it"
    fine(ring)


def test_fcc_counts_what_all_have_multicast_in_the_last_rotation_repeats_included() -> None:
    ring = ring_of("p q r")
    ring.lose(Regular, to="q", where=lambda packet: packet.seq == 1)
    tokens = ring.watch(RegularToken, frm="r")
    ring["p"].multicast("x", AGREED)
    ring.wait(0.0035)
    assert tokens[0].fcc == 2, "p said it, and r repeated it"
    fine(ring)


def test_an_agreed_message_is_delivered_when_all_before_it_are() -> None:
    ring = ring_of("p q r")
    ring.lose(Regular, to="r", where=lambda packet: packet.seq == 1)
    for text in ("m1", "m2"):
        ring["q"].multicast(text, AGREED)
    ring.wait(0.0035)
    assert ring["p"].delivered == ["m1", "m2"], "at once"
    assert ring["r"].delivered == [], "m2 is there and waits for m1"
    fine(ring)
    assert ring["r"].delivered == ["m1", "m2"]


def test_a_safe_message_is_delivered_after_two_rotations_with_an_aru_that_high() -> None:
    """Departs: what counts is the aru that we released and the one that came back, not two releases of our own."""
    ring = ring_of("p q r")
    ring["p"].multicast("x", SAFE)
    ring.wait(0.0025)
    assert all(ring[name].delivered == [] for name in "pqr"), "all have it, and nobody knows"
    ring.wait(0.001)
    assert ring["p"].delivered == ["x"], "the token is back at p with aru 1"
    fine(ring)


def test_messages_that_are_safe_can_be_discarded() -> None:
    ring = ring_of("p q r")
    ring["p"].multicast("x", AGREED)
    ring.wait(0.0015)
    assert processor(ring, "q").ring.store
    fine(ring)
    assert not processor(ring, "q").ring.store


# 5.2.2 Membership.


def test_a_processor_that_recovers_forms_a_singleton_and_immediately_shifts_to_gather() -> None:
    ring = Cluster("p q", 52, SMALL, down="q").wait(0.005)
    assert ring["p"].history == ["{p}"]
    assert ring["p"].phase == "Gather"
    ring.start("q")
    fine(ring)


def test_a_non_representative_does_not_act_on_foreign_messages() -> None:
    """Departs: it tells its representative, which may not have heard them."""
    ring = Cluster("p q r", 52, ring_with(Settings(reach=Reach.MULTICAST))).partition("p q | r").settle()
    ring.lose(AttemptJoin, Join, to="p q", times=ALWAYS).heal().wait(0.15)
    assert entered(ring, "q", "Gather") == 1, "when it began"
    ring.let_be()
    fine(ring)


def test_the_representative_multicasts_an_attempt_join_when_it_hears_a_foreign_message() -> None:
    ring = Cluster("p q r", 52, SMALL).partition("p q | r").settle()
    said = ring.watch(AttemptJoin, frm="p", to="r")
    ring.heal().wait_until(lambda: ring["p"].phase == "Gather")
    assert said
    fine(ring)


def test_when_the_gather_timeout_expires_it_multicasts_a_join_with_those_it_has_collected() -> None:
    ring = Cluster("p q r", 52, SMALL).wait(0.005)
    joins = ring.watch(Join, frm="p", to="q")
    ring.wait_until(lambda: ring["p"].phase not in ("Gather", "Starting"))
    assert joins[0].reps == (("p", 1), ("q", 1), ("r", 1))
    assert joins[0].failed == ()
    fine(ring)


def test_agreement_is_reached_when_all_that_did_not_fail_have_said_exactly_the_same() -> None:
    ring = Cluster("p q r", 52, SMALL).lose(Join, frm="r", to="p", times=4)
    ring.wait(0.045)
    assert ring["p"].phase == "Commit", "r has not said so, as far as p knows"
    fine(ring)
    assert configurations(ring, "p") == ["{p}", "{p q r}"]


def test_a_needed_representative_that_counts_more_is_answered_with_the_union() -> None:
    ring = Cluster("p q r", 52, SMALL).lose(AttemptJoin, frm="r", to="p", times=ALWAYS)
    joins = ring.watch(Join, frm="p", to="q")
    ring.wait(0.1)
    assert ("r", 1) in joins[-1].reps, "p heard of r only through q's Join"
    ring.let_be()
    fine(ring)


def test_those_from_whom_no_join_came_before_the_commit_timeout_are_failed() -> None:
    ring = Cluster("p q r", 52, SMALL).lose(Join, frm="r", times=ALWAYS)
    joins = ring.watch(Join, frm="p", to="q")
    ring.wait_until(lambda: configurations(ring, "p")[1:] == ["{p q}"])
    assert joins[-1].failed == ("r",)
    ring.let_be()
    fine(ring)


def test_the_form_token_goes_along_the_representatives_in_increasing_order_each_followed_by_its_ring() -> None:
    """Figure 5.3."""
    ring = Cluster("p q r s t", 52, SMALL).partition("p q | r s | t").settle()
    tokens = ring.watch(FormToken)
    ring.heal()
    fine(ring)
    last = next(token for token in tokens if token.rotation == 2)
    assert [seat.name for seat in last.memb_list] == ["p", "q", "r", "s", "t"]
    assert [rep for rep, _ in last.join_list] == ["p", "r", "t"]


def test_having_entered_form_a_processor_consumes_the_token_of_the_old_ring() -> None:
    ring = Cluster("p q r", 52, SMALL).partition("p q | r").settle()
    ring.heal().wait_until(lambda: ring["p"].phase == "Form")
    conf_id = processor(ring, "p").ring.conf_id
    sent = ring.watch(RegularToken, frm="p")
    ring.wait(0.002)
    assert all(token.conf_id != conf_id for token in sent)
    fine(ring)


def test_the_representative_is_in_evs_after_one_rotation_and_everybody_after_the_second() -> None:
    ring = Cluster("p q r", 52, SMALL)
    ring.wait_until(lambda: ring["p"].phase == "EVS")
    assert ring["q"].phase == ring["r"].phase == "Form"
    ring.wait_until(lambda: ring["r"].phase == "EVS")
    assert all(len(configurations(ring, name)) == 1 for name in "pqr"), "nothing is installed yet"
    fine(ring)


def test_on_token_loss_a_processor_represents_itself_and_retains_its_conf_id() -> None:
    ring = ring_of("p q r")
    before = processor(ring, "q").ring.conf_id
    ring.lose(RegularToken, times=ALWAYS).wait_until(lambda: ring["q"].phase == "Gather")
    assert processor(ring, "q").represents == ("q",)
    assert processor(ring, "q").ring.conf_id == before
    ring.let_be()
    fine(ring)


def test_if_the_token_reaches_a_processor_that_has_determined_its_loss_it_is_consumed() -> None:
    ring = ring_of("p q r")
    kept = ring.put_aside(RegularToken, times=ALWAYS)
    ring.wait_until(lambda: ring["q"].phase == "Gather")
    sent = ring.watch(RegularToken, frm="q")
    ring.hand_over(kept, "q")
    assert ring.ignored("the token of a ring that I gave up")
    assert sent == []
    ring.let_be()
    fine(ring)


def test_after_the_loss_of_the_form_token_the_next_membership_cannot_include_the_highest() -> None:
    """Departs: the first loss is forgiven, and from the second on the highest is left out."""
    ring = Cluster("p q r s", 52, SMALL)
    ring.lose(FormToken, times=ALWAYS)
    joins = ring.watch(Join, frm="p", to="q")
    ring.wait(1.0)
    assert any("s" in join.failed for join in joins)
    ring.let_be()
    fine(ring)


def test_while_a_ring_is_being_formed_the_old_one_is_used_as_long_as_possible() -> None:
    ring = Cluster("p q r", 52, SMALL).partition("p q | r").settle()
    ring.heal().lose(Join, frm="r", to="p", times=2).wait_until(lambda: ring["p"].phase == "Commit")
    ring["q"].multicast("x", SAFE)
    ring.wait_until(lambda: ring["p"].delivered == ["x"])
    assert ring["p"].phase == "Commit"
    fine(ring)


# 5.2.3 Extended virtual synchrony.


def test_in_the_evs_state_a_processor_does_not_send_new_messages() -> None:
    ring = Cluster("p q r", 52, SMALL).partition("p q | r").settle()
    ring.heal().wait_until(lambda: ring["p"].phase == "EVS")
    packets = ring.watch(Regular, frm="p")
    ring["p"].multicast("x", AGREED)
    ring.wait_until(lambda: ring["p"].phase == "Operational" or bool(packets))
    assert ring["p"].phase == "Operational"
    fine(ring)
    assert ring["r"].delivered == ["x"], "it was sent in the new configuration"


def test_each_old_configuration_has_a_record_with_the_highest_number_the_holes_and_the_obligation_set() -> None:
    ring = ring_of("p q r s")
    ring.lose(Regular, frm="s", times=ALWAYS)
    ring["s"].multicast("h", AGREED)
    ring.when(RegularToken, frm="s", where=lambda token: token.seq == 1, do=lambda: ring.crash("s"))
    ring.wait_until(lambda: evs(ring, "p") is not None)
    phase = evs(ring, "p")
    assert phase is not None
    assert phase.record.highest_seq == 1
    assert phase.record.holes == ((1, 1),)
    assert phase.record.obligation_set == phase.record.trans_set == ("p", "q", "r")
    assert phase.barrier_seq == 2, "one plus the highest"
    ring.let_be().restart("s")
    fine(ring)


def test_lost_messages_are_recovered_over_the_new_ring_and_holes_have_place_holders() -> None:
    ring = ring_of("p q r s")
    ring.lose(Regular, to="p", where=lambda packet: packet.seq == 1, times=ALWAYS)
    ring["s"].multicast("m1", AGREED)
    ring["s"].multicast("m2", AGREED)
    ring.lose(Regular, frm="s", where=lambda packet: packet.seq == 2, times=ALWAYS)
    ring.wait(0.005).crash("s").wait_until(lambda: evs(ring, "p") is not None)
    phase = evs(ring, "p")
    assert phase is not None
    assert phase.lacking() == [1], "the second is a hole: nobody has it"
    ring.let_be().wait(1.0)
    assert ring["p"].delivered == ["m1"]
    ring.restart("s")
    fine(ring)


def test_steps_1_to_5_are_one_atomic_action() -> None:
    """In one event: the rest of the old configuration, the transitional one, its messages, and the new one."""
    ring = ring_of("p q r")
    ring["q"].multicast("m", SAFE)
    ring.wait_until(lambda: ring["q"].delivered == ["m"]).partition("p | q r")
    before = len(ring["p"].history)
    ring.wait_until(lambda: len(ring["p"].history) > before)
    assert ring["p"].history[before:] == ["({p})", "m", "{p}"]
    fine(ring.heal())


def test_a_failure_at_the_evs_state_takes_the_processor_back_to_gather_in_its_old_configuration() -> None:
    ring = Cluster("p q r", 52, SMALL).partition("p q | r").settle()
    old = processor(ring, "q").ring.conf_id
    ring.heal().wait_until(lambda: ring["q"].phase == "EVS")
    ring.lose(RegularToken, times=ALWAYS).wait_until(lambda: ring["q"].phase == "Gather")
    assert processor(ring, "q").ring.conf_id == old
    ring.let_be()
    fine(ring)


def test_who_had_recovered_everything_takes_the_obligation_set_over() -> None:
    ring = Cluster("p q r", 52, SMALL).partition("p q | r").settle()
    assert processor(ring, "q").my_obligation == {"q"}, "at first only itself"
    ring.heal().wait_until(lambda: ring["q"].phase == "EVS")
    ring.lose(RegularToken, times=ALWAYS).wait_until(lambda: ring["q"].phase == "Gather")
    assert processor(ring, "q").my_obligation == {"p", "q"}
    ring.let_be()
    fine(ring)


def test_the_subject_of_all_this_is_the_ring_that_is_simulated() -> None:
    assert RING.rules == SMALL.rules
