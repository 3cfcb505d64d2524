"""Who holds up whom: several may want the same to stop, and each lets it go on only once."""

from __future__ import annotations

from threading import Event, Thread

from greenline.database.sqlite.holding import Hold

SOON = 10.0


def begun(work: object) -> Thread:
    thread = Thread(target=work, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_who_is_wanted_by_two_goes_on_after_both() -> None:
    hold, is_done = Hold(), Event()
    hold.no_more()
    assert hold.is_stopped(lambda: False)
    second = begun(hold.stop)

    def work() -> None:
        with hold.piece():
            is_done.set()

    working = begun(work)
    hold.go_on()
    second.join(SOON)
    assert not second.is_alive()
    assert hold.is_wanted, "the second has stopped it, though the first lets it go on"
    assert not is_done.is_set()

    hold.go_on()
    working.join(SOON)
    assert is_done.is_set()
    assert not hold.is_wanted


def test_who_was_let_go_on_when_closed_is_not_let_go_on_again() -> None:
    hold = Hold()
    hold.stop()
    hold.go_on()
    hold.go_on()
    with hold.piece():
        assert not hold.is_wanted


def test_who_gives_up_waiting_holds_up_nobody() -> None:
    hold = Hold()
    with hold.piece():
        hold.no_more()
        assert not hold.is_stopped(lambda: True)
    with hold.piece():
        assert not hold.is_wanted
