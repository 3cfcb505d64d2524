"""How often passwords may be wrong: time is handed in."""

from __future__ import annotations

import pytest

from greenline.node import guesses
from greenline.node.guesses import OF_A_HOST, OF_A_USER, WITHIN_S, Guesses

HERE, THERE = "10.0.0.1", "10.0.0.2"


def spend(kept: Guesses, host: str, user: str, times: int, now: float = 0.0) -> None:
    for _ in range(times):
        assert kept.wait_s(host, user, now) == 0
        kept.pay(host, user, now)


def test_a_user_at_a_host_has_so_many_and_others_keep_theirs() -> None:
    kept = Guesses()
    spend(kept, HERE, "ann", OF_A_USER)

    assert kept.wait_s(HERE, "ann", 0) == pytest.approx(WITHIN_S / OF_A_USER)
    assert kept.wait_s(HERE, "bob", 0) == 0
    assert kept.wait_s(THERE, "ann", 0) == 0


def test_a_host_has_so_many_whomever_it_says_to_be() -> None:
    kept = Guesses()
    for number in range(OF_A_HOST):
        spend(kept, HERE, f"u{number}", 1)

    assert kept.wait_s(HERE, "another", 0) == pytest.approx(WITHIN_S / OF_A_HOST)
    assert kept.wait_s(THERE, "another", 0) == 0


def test_they_come_back_one_by_one_and_not_more_than_there_were() -> None:
    kept = Guesses()
    spend(kept, HERE, "ann", OF_A_USER)
    one = WITHIN_S / OF_A_USER

    assert kept.wait_s(HERE, "ann", 0.9 * one) > 0
    spend(kept, HERE, "ann", 1, now=one)
    assert kept.wait_s(HERE, "ann", one) == pytest.approx(one)
    spend(kept, HERE, "ann", OF_A_USER, now=100 * one)
    assert kept.wait_s(HERE, "ann", 100 * one) > 0


def test_who_was_right_has_lost_nothing_and_is_not_remembered() -> None:
    kept = Guesses()
    for now in range(1000):
        spend(kept, HERE, "ann", 1, float(now) / 1000)
        kept.give_back(HERE, "ann", float(now) / 1000)
    assert len(kept) == 0


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
    ],
)
def test_a_site_of_ipv6_is_one_host(one: str, other: str, are_one: bool) -> None:
    kept = Guesses()
    spend(kept, one, "ann", OF_A_USER)
    assert (kept.wait_s(other, "ann", 0) > 0) == are_one


def test_many_hosts_take_no_more_room_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "_MOST_KEPT", 100)
    kept = Guesses()
    for number in range(1000):
        spend(kept, f"10.0.{number // 256}.{number % 256}", "ann", 1)
    assert len(kept) == 100
