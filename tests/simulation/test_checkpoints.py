"""Checkpoints on simulated disks: crashes before every order and after any byte, in one life after the other."""

from __future__ import annotations

from random import Random

import pytest

from greenline.kernel.core import Chance
from greenline.kernel.identities import ProcId
from greenline.kernel.router import Layer
from greenline.simulation.agenda import Agenda
from greenline.simulation.disk import Disk
from greenline.simulation.faults import Crash
from greenline.simulation.world import World
from tests.kernel.tally import Latest, Tally, latest_layer, tally_layer

LONG = 1000.0


def tallies(seed: str) -> World:
    def build(me: ProcId, everybody: tuple[ProcId, ...], chance: Chance) -> list[Layer]:
        return [tally_layer(Tally(every=4, ticks=True)), latest_layer(Latest(ticks=0.017))]

    world = World(("p",), seed, build)
    world["p"].start()
    return world


def promised(world: World) -> int:
    """What the application was told of last."""
    return max((told[1] for told in world["p"].app.told if told[0] in ("began", "counted")), default=0)


def tally_of(world: World) -> Tally:
    router = world["p"].router
    assert router is not None, "it found a log that it could begin from"
    tally = router.layers[0].core
    assert isinstance(tally, Tally)
    return tally


@pytest.mark.parametrize("seed", range(6))
def test_what_was_promised_is_there_after_any_crash_and_the_log_stays_short(seed: int) -> None:
    """A storm of crashes and failures of one disk. The tally refuses records that are a mixture of checkpoints."""
    chance = Random(f"checkpoints {seed}")
    world = tallies(str(seed))
    longest = 0
    for _ in range(60):
        world.run_until(world.agenda.now + 0.01 + 0.1 * chance.random())
        tally = tally_of(world)
        if chance.random() < 0.2:
            world["p"].disk.failures.append("bad luck")
        crash = Crash(at=0, until=LONG, process="p", orders=chance.randrange(30), keep=chance.random(), tear=True)
        world.begin(crash)
        while world["p"].is_up:
            world.run_until(world.agenda.now + 0.001)
        last = promised(world)
        longest = max(longest, len(world["p"].disk.contents()))

        world["p"].disk.failures.clear()
        world.end(crash)
        world.run_until(world.agenda.now + 0.003)
        (began,) = (told[1] for told in world["p"].app.told if told[0] == "began")
        assert last <= began <= tally.number
    assert tally_of(world).number > 1000
    assert longest < 5000, "of more than fifty thousand bytes; a simulated disk takes its time with a discard"


def test_a_world_with_checkpoints_is_a_function_of_its_seed() -> None:
    worlds = [tallies("same"), tallies("same")]
    for world in worlds:
        world.run_until(0.5)
    one, other = worlds
    assert one.digest == other.digest
    assert one["p"].disk.contents() == other["p"].disk.contents()


# The disk.


def written(*frames: bytes) -> tuple[Agenda, Disk]:
    agenda = Agenda()
    disk = Disk(agenda, Random(1))
    for frame in frames:
        disk.write(frame)
    disk.force(lambda: None, lambda: None)
    agenda.step()
    return agenda, disk


def test_a_discard_takes_whole_frames_from_the_front_sooner_or_later() -> None:
    _, disk = written(b"aaa", b"bb", b"cccc", b"d")
    seen = {disk.contents()}
    for _ in range(30):
        disk.discard(8)
        seen.add(disk.contents())
    assert seen <= {b"aaabbccccd", b"bbccccd", b"ccccd"}
    assert disk.contents() == b"ccccd", "the place is in the middle of it"


def test_places_are_counted_from_where_a_life_began() -> None:
    _, disk = written(b"aaa", b"bb", b"cccc", b"d")
    for _ in range(30):
        disk.discard(3)
    for _ in range(30):
        disk.discard(5)
    assert disk.contents() == b"ccccd"

    disk.crash(keep=0.0, tear=False)
    assert disk.contents() == b"ccccd", "what was forced is not lost because something before it is gone"
    for _ in range(30):
        disk.discard(4)
    assert disk.contents() == b"d"


def test_a_discard_while_a_force_is_under_way_makes_nothing_else_durable() -> None:
    agenda, disk = written(b"aaa", b"bb", b"cccc")
    disk.write(b"forced")
    disk.force(lambda: None, lambda: None)
    for _ in range(30):
        disk.discard(5)
    disk.write(b"not forced")
    agenda.step()
    assert disk.contents() == b"ccccforcednot forced"
    disk.crash(keep=0.0, tear=False)
    assert disk.contents() == b"ccccforced"


def test_what_is_not_superseded_by_something_durable_is_never_discarded() -> None:
    _, disk = written(b"aaa")
    disk.write(b"bb")
    with pytest.raises(AssertionError, match="durable"):
        disk.discard(5)
