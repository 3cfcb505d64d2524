"""Checkpoints: a core's records are renewed as a whole or not at all, and what nobody needs any more is let go."""

from __future__ import annotations

import pytest

from greenline.kernel.codec import CodecError, Garbled, Log
from greenline.kernel.effects import Append, Barrier, Checkpoint, Effect, Upcall
from greenline.kernel.events import Start
from greenline.kernel.orders import Cut, Discard, Force, Order, Stop, Tell, Write
from greenline.kernel.recovery import KERNEL, Life, Renewal
from greenline.kernel.router import Layer, Router
from tests.kernel.tally import Added, Latest, Tally, latest_layer, reading, tally_layer
from tests.kernel.test_router import Puppet, Word, does, without_rows


class Machine:
    """A router on a disk that is only bytes; each force is done at once, unless somebody holds it back."""

    def __init__(self, *layers: Layer, log: bytes = b"") -> None:
        self.log = log
        self.begins = 0
        """What was discarded in this life."""
        self.told: list[object] = []
        self.discards: list[int] = []
        self.is_held = False
        self.keeps_all = False
        """It never carries a discard out."""
        self.forcing = 0
        self.router = Router("p", ["p", "q"], list(layers))
        self.carry_out(self.router.boot(0.0, log))

    def carry_out(self, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case Cut(at):
                    self.log = self.log[:at]
                case Write(frame):
                    self.log += frame
                case Discard(before):
                    self.discards.append(before)
                    if not self.keeps_all:
                        self.log, self.begins = self.log[before - self.begins :], before
                case Tell(payload):
                    self.told.append(payload)
                case Force(number):
                    self.forcing = number
        if self.forcing and not self.is_held:
            number, self.forcing = self.forcing, 0
            self.carry_out(self.router.forced(0.0, number))

    def poke(self) -> None:
        self.carry_out(self.router.ask(0.0, "count"))

    def answer(self, position: int) -> None:
        """Some event for the core at this position."""
        self.carry_out(self.router.answered(0.0, position, 0, None))

    def hold(self) -> None:
        """Forced writes take until `release`."""
        self.is_held = True

    def release(self) -> None:
        self.is_held = False
        self.carry_out([])


def puppets(count: int, log: bytes = b"") -> tuple[Machine, list[Puppet]]:
    cores = [Puppet() for _ in range(count)]
    layers = [Layer(f"core{number}", number + 1, core, Word, Word) for number, core in enumerate(cores)]
    return Machine(*layers, log=log), cores


def do(machine: Machine, core: Puppet, position: int, *effects: Effect) -> None:
    does(core, *effects)
    machine.answer(position)


def words(*texts: str) -> tuple[Word, ...]:
    return tuple(map(Word, texts))


def had(core: Puppet) -> tuple[Word, ...]:
    (start,) = (event for event in core.events if isinstance(event, Start))
    return start.records


def ends(log: bytes) -> list[int]:
    """Where its frames end."""
    return [frame.end for frame in Log(log)]


# What a checkpoint says.


@pytest.mark.parametrize("after", [(), ("after",)])
@pytest.mark.parametrize("renewed", [(), ("one",), ("one", "two", "three")])
def test_a_checkpoint_replaces_what_was_appended_before_it(renewed: tuple[str, ...], after: tuple[str, ...]) -> None:
    machine, (core,) = puppets(1)
    appended = [Append(word) for word in words("before", "and before")]
    do(machine, core, 0, *appended, Checkpoint(words(*renewed)), *map(Append, words(*after)))

    _, (again,) = puppets(1, machine.log)
    assert again.events == [Start("p", 2, words(*renewed, *after))]


def test_the_records_of_other_cores_stay() -> None:
    machine, (top, bottom) = puppets(2)
    do(machine, bottom, 1, Append(Word("mine")), Barrier(1))
    do(machine, top, 0, Append(Word("old")), Checkpoint(words("new")), Barrier(1))
    do(machine, bottom, 1, Append(Word("mine, too")), Barrier(2))

    _, (top, bottom) = puppets(2, machine.log)
    assert (had(top), had(bottom)) == (words("new"), words("mine", "mine, too"))


def test_what_is_gated_on_a_checkpoint_leaves_when_it_is_durable_and_then_the_log_is_discarded() -> None:
    machine, (core,) = puppets(1)
    do(machine, core, 0, Append(Word("old")), Barrier(1))
    here = len(machine.log)
    machine.hold()
    do(machine, core, 0, Checkpoint(words("new")), Barrier(2), Upcall("promised", gate=2))
    assert machine.told == []
    assert machine.discards == []

    machine.release()
    assert machine.told == ["promised"]
    assert machine.discards == [here]


def test_nothing_is_discarded_by_a_force_that_was_under_way_already() -> None:
    machine, (core,) = puppets(1)
    machine.hold()
    do(machine, core, 0, Append(Word("old")), Barrier(1))
    do(machine, core, 0, Checkpoint(words("new")), Barrier(2))
    assert not any(isinstance(order, Discard) for order in machine.router.forced(1.0, 2)), "it covers the old one only"
    assert any(isinstance(order, Discard) for order in machine.router.forced(1.0, 3))


def test_nothing_is_discarded_without_a_barrier_and_the_next_one_makes_up_for_it() -> None:
    machine, (core,) = puppets(1)
    do(machine, core, 0, Append(Word("old")), Checkpoint(words("new")))
    do(machine, core, 0, Checkpoint(words("newer")))
    assert machine.discards == []
    do(machine, core, 0, Barrier(1))
    assert len(machine.discards) == 1, "both were durable, and the later place counts"
    assert had(puppets(1, machine.log)[1][0]) == words("newer")


def test_a_record_that_cannot_be_written_leaves_no_half_of_a_renewal() -> None:
    machine, (core,) = puppets(1)
    before = machine.log
    does(core, Checkpoint((Word("fine"), object())))
    (stop,) = without_rows(machine.router.answered(0.0, 0, 0, None))
    assert isinstance(stop, Stop)
    assert machine.log == before


# Crashes.


def test_any_prefix_of_the_log_recovers_to_the_old_records_or_to_the_new_ones() -> None:
    """A crash leaves any byte of what was not forced; then life goes on from there, and dies again, and goes on."""
    machine = Machine(tally_layer(Tally(every=3, shares=4)), latest_layer(Latest()))
    machine.hold()  # so that nothing is discarded either
    for _ in range(8):
        machine.poke()
    log = machine.log
    first_life = ends(log)[0]
    seen = set()
    for length in range(first_life, len(log) + 1):
        tally = Tally(every=3, shares=4)
        again = Machine(tally_layer(tally), latest_layer(Latest()), log=log[:length])
        seen.add(tally.number)
        number = tally.number
        again.poke()

        third = Tally()
        Machine(tally_layer(third), latest_layer(Latest()), log=again.log)
        assert third.number == number + 1, "what was torn is cut off, and no part of what was written next"
    assert seen == set(range(len(seen)))
    assert max(seen) >= 6, "two checkpoints"


def test_a_renewal_that_is_not_whole_is_cut_off_with_all_that_it_has_written() -> None:
    machine, (core,) = puppets(1)
    machine.hold()
    do(machine, core, 0, Append(Word("old")), Barrier(1))
    do(machine, core, 0, Checkpoint(words("a", "b", "c")))
    *_, renewal_at, renewal_ends, a, b, c = [0, *ends(machine.log)]
    assert c == len(machine.log)
    for end in (renewal_ends, a, a + 1, b, c - 1):
        again, (core,) = puppets(1, machine.log[:end])
        assert had(core) == words("old")
        assert again.log[:renewal_at] == machine.log[:renewal_at]
        assert ends(again.log)[-1] == renewal_at + len(KERNEL.encode(Life(2))), "the next life is written in its place"


def test_a_renewal_with_something_else_among_its_frames_is_damage() -> None:
    machine, (core,) = puppets(1)
    frame = Layer("core", 1, core, Word, Word).disk.encode(Word("x"))
    other = Layer("other", 2, core, Word, Word).disk.encode(Word("x"))
    for stranger in (other, KERNEL.encode(Life(1))):
        with pytest.raises(Garbled, match="where 1 was expected"):
            puppets(2, machine.log + KERNEL.encode(Renewal(1, 2)) + frame + stranger + frame)
    with pytest.raises(CodecError, match="channel 9, which no core"):
        puppets(1, machine.log + KERNEL.encode(Renewal(9, 0)))


def test_a_log_that_has_lost_its_beginning_is_not_taken_for_a_first_life() -> None:
    machine, (core,) = puppets(1)
    do(machine, core, 0, Append(Word("x")))
    with pytest.raises(CodecError, match="its beginning is lost"):
        puppets(1, machine.log[ends(machine.log)[0] :])


# What is let go.


def test_what_others_need_is_said_again_before_the_log_is_discarded() -> None:
    tally, latest = Tally(every=2), Latest()
    machine = Machine(tally_layer(tally), latest_layer(latest))
    for _ in range(9):
        machine.poke()
    assert machine.begins > 0

    tally, latest = Tally(every=2), Latest()
    again = Machine(tally_layer(tally), latest_layer(latest), log=machine.log)
    assert again.router.incarnation == 2
    assert (tally.number, latest.number) == (9, 2), "its first life said 1, this one the next"


def test_any_part_of_what_may_go_can_go() -> None:
    """Real logs let go of whole segments: what is left begins anywhere before the place, and says the same."""
    machine = Machine(tally_layer(Tally(every=3)), latest_layer(Latest()))
    machine.keeps_all = True
    for _ in range(20):
        machine.poke()
    assert len(machine.discards) == 6
    places = [place for place in [0, *ends(machine.log)] if place <= machine.discards[-1]]
    assert places[-1] == machine.discards[-1]
    for place in places:
        tally, latest = Tally(), Latest()
        again = Machine(tally_layer(tally), latest_layer(latest), log=machine.log[place:])
        assert (again.router.incarnation, tally.number, latest.number) == (2, 20, 2)


def test_a_core_without_checkpoints_keeps_the_log_from_its_oldest_record() -> None:
    machine, (top, bottom) = puppets(2)
    do(machine, top, 0, Append(Word("1")), Barrier(1))
    oldest = len(machine.log)
    do(machine, bottom, 1, Append(Word("for ever")), Barrier(1))
    for number in range(2, 6):
        do(machine, top, 0, Checkpoint(words(str(number))), Barrier(number))
    assert machine.discards == [oldest], "up to there, and no further"

    again, (top, bottom) = puppets(2, machine.log)
    assert (had(top), had(bottom)) == (words("5"), words("for ever"))
    do(again, top, 0, Checkpoint(words("6")), Barrier(1))
    assert again.discards == [], "also in the next life"
    do(again, bottom, 1, Checkpoint(()), Barrier(1))
    do(again, top, 0, Checkpoint(words("7")), Barrier(2))
    assert len(again.discards) == 2
    assert [had(core) for core in puppets(2, again.log)[1]] == [words("7"), ()]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ([Append(Word("a")), Append(Word("b"))], "a b"),
        ([Append(Word("x")), Checkpoint(words("a", "b")), Append(Word("c"))], "a b c"),
        ([Append(Word("x")), Checkpoint(()), Append(Word("a")), Append(Word("b"))], "a b"),
    ],
)
def test_what_a_core_wrote_in_one_life_is_kept_for_it_in_the_next(written: list[Effect], kept: str) -> None:
    machine, cores = puppets(2)
    do(machine, cores[1], 1, *written, Barrier(1))
    for life in range(3):
        do(machine, cores[0], 0, Checkpoint(words(str(life))), Barrier(2))
        machine, cores = puppets(2, machine.log)
        assert [had(core) for core in cores] == [words(str(life)), words(*kept.split())]


def test_a_core_that_has_emptied_its_disk_keeps_nothing() -> None:
    machine, (top, bottom) = puppets(2)
    do(machine, bottom, 1, Append(Word("old")), Checkpoint(()), Barrier(1))
    for number in range(1, 4):
        here = len(machine.log) + machine.begins
        do(machine, top, 0, Checkpoint(words(str(number))), Barrier(number))
        assert machine.discards[-1] == here
    again, (top, bottom) = puppets(2, machine.log)
    assert (had(top), had(bottom)) == (words("3"), ())
    do(again, top, 0, Checkpoint(words("4")), Barrier(1))
    assert again.discards != []


def test_a_last_record_is_said_again_by_lives_that_have_nothing_to_add() -> None:
    def live(log: bytes, *effects: Effect) -> tuple[Machine, Puppet]:
        top, bottom = Puppet(), Puppet()
        layers = Layer("top", 1, top, Word, Word), Layer("bottom", 2, bottom, Word, Word, only_last_record=True)
        machine = Machine(*layers, log=log)
        do(machine, bottom, 1, *effects)
        do(machine, top, 0, Checkpoint(words("new")), Barrier(1))
        assert machine.discards != []
        return machine, bottom

    machine, _ = live(b"", Append(Word("first")), Append(Word("last")), Barrier(1))
    for _ in range(3):
        machine, bottom = live(machine.log)
        assert had(bottom) == words("last")


def test_two_cores_with_checkpoints_let_go_of_what_neither_needs() -> None:
    machine, cores = puppets(2)
    said = [0, 0]
    sizes = []
    for number in range(1, 60):
        which = number % 3 % 2  # one of them twice as often
        said[which] = number
        do(machine, cores[which], which, Checkpoint(words(*[str(number)] * which)), Append(Word("+")), Barrier(number))
        sizes.append(len(machine.log))
        if number > 2:
            expected = [words(*[str(said[each])] * each, "+") for each in range(2)]
            assert [had(core) for core in puppets(2, machine.log)[1]] == expected
    assert max(sizes[20:]) <= max(sizes[:20]) + 10, "bounded"
    assert machine.discards == sorted(set(machine.discards)), "each order says something new"


def test_a_core_of_which_only_the_last_record_counts_needs_no_checkpoint() -> None:
    core = Puppet()
    machine = Machine(Layer("core", 1, core, Word, Word, only_last_record=True))
    does(core, Checkpoint(()))
    assert "append it" in str(machine.router.answered(0.0, 0, 0, None)[-1])


def test_lives_that_end_after_each_checkpoint_find_the_tally_where_it_was() -> None:
    """Boot, count, discard, die: a hundred times, and the log is as short as ever."""
    log, number, longest = b"", 0, 0
    for life in range(1, 101):
        tally = Tally(every=4)
        machine = Machine(tally_layer(tally), latest_layer(Latest()), log=log)
        assert (tally.number, machine.router.incarnation) == (number, life)
        for _ in range(life % 5):
            machine.poke()
            number += 1
        log = machine.log
        longest = max(longest, len(log))
    assert longest < 1000


def test_a_mixture_would_be_found() -> None:
    """The reading that these tests rely on refuses what must never be."""
    with pytest.raises(AssertionError, match="comes next"):
        reading((Added(1), Added(3)))
