"""The noticeboard, told as stories."""

from __future__ import annotations

import pytest

from greenline.simulation.cluster import Cluster


def test_what_is_said_in_a_partition_reaches_everybody_after_it() -> None:
    """Nobody is turned away while the network is cut; nothing is lost when it heals."""
    board = Cluster("p q r", seed=11).settle()

    board.partition("p | q r").settle()
    board["p"].multicast("alone")
    board["q"].multicast("by two")
    board.settle()

    assert board["p"].delivered == ["alone"]
    assert board["q"].delivered == board["r"].delivered == ["by two"]

    board.heal().settle()

    assert board["p"].delivered == ["alone", "by two"]
    assert board["q"].delivered == board["r"].delivered == ["by two", "alone"]
    assert board.broken_rules() == []


def test_who_hears_nobody_is_alone_and_who_holds_the_same_is_level() -> None:
    board = Cluster("p q r").settle()
    assert {board[name].phase for name in "pqr"} == {"Level"}

    board.partition("p | q r").settle()
    assert board["p"].phase == "Alone"
    assert board["q"].phase == board["r"].phase == "Level"


def test_a_notice_travels_through_a_third_when_two_cannot_hear_each_other() -> None:
    """Overlapping sides: q hears both, p and r do not hear each other."""
    board = Cluster("p q r").settle()
    board.partition("p q | q r").settle()
    board["p"].multicast("through q")
    board.settle()
    assert board["r"].delivered == ["through q"]
    assert board.broken_rules() == []


def test_a_link_that_works_one_way_only_delays() -> None:
    board = Cluster("p q").settle()
    board.one_way("p", "q").settle()
    board["p"].multicast("into the void")
    board.settle()
    assert board["q"].delivered == []

    board.heal().settle()
    assert board["q"].delivered == ["into the void"]


def test_a_burst_is_read_in_the_order_in_which_it_was_written() -> None:
    board = Cluster("p q").settle()
    board.partition("p | q").settle()
    burst = [f"notice {number}" for number in range(60)]
    for text in burst:
        board["p"].multicast(text)
    board.settle()
    board.heal().settle()
    assert board["q"].delivered == burst
    assert board.broken_rules() == []


def test_a_port_with_too_much_on_its_way_to_disk_is_busy_and_then_ready_again() -> None:
    board = Cluster("p q").settle()
    board.world["p"].disk.slowness = 100.0
    for number in range(100):
        board["p"].multicast(str(number))
    assert "busy" in {row.kind for row in board.rows}

    board.settle()
    assert board["q"].delivered == [str(number) for number in range(100)]
    assert board.broken_rules() == []


def test_a_paused_process_catches_up() -> None:
    board = Cluster("p q r").settle()
    board.pause("r").wait(2.0)
    board["p"].multicast("while you were out")
    board.settle()
    assert board["r"].delivered == []
    board.resume("r").settle()
    assert board["r"].delivered == ["while you were out"]


def test_a_restarted_author_does_not_use_its_names_again() -> None:
    """Each life counts from 1, and the incarnation keeps the lives apart."""
    board = Cluster("p q").settle()
    board["p"].multicast("first life")
    board.settle()
    board.crash("p").settle()
    board.restart("p").settle()
    board["p"].multicast("second life")
    board.settle()
    assert board["q"].delivered == ["first life", "second life"]
    assert board["p"].delivered == ["first life", "second life"], "the first was read again from the disk"
    assert board.broken_rules() == []


def test_a_reader_does_not_forget_what_it_read_before_it_crashed() -> None:
    board = Cluster("p q").settle()
    board["p"].multicast("remember me")
    board.settle()
    board.partition("p | q").crash("q").settle()
    board.restart("q").settle()
    assert board["q"].delivered == ["remember me"], "from its own disk, as nobody else can be asked"


@pytest.mark.parametrize("orders", range(12))
@pytest.mark.parametrize(("keep", "tear"), [(0.0, False), (0.0, True), (1.0, False)], ids=["lost", "torn", "kept"])
@pytest.mark.parametrize("who", ["p", "q"], ids=["author", "reader"])
def test_a_crash_at_any_order_of_a_post_breaks_no_rule(who: str, orders: int, keep: float, tear: bool) -> None:
    """The crash comes before the n-th thing that the process does after the post was asked for."""
    board = Cluster("p q r", seed=orders).settle()
    board.crash(who, after_orders=orders, keep=keep, tear=tear)
    if board.world["p"].is_up:
        board["p"].multicast("x")
    board.wait(0.5).restart(who)
    board["r"].multicast("y")
    board.settle()
    assert board.broken_rules() == []
    assert "y" in board["p"].delivered
    assert set(board["p"].delivered) == set(board["q"].delivered) == set(board["r"].delivered)
