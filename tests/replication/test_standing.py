"""Where a replica stands, for people who ask."""

from __future__ import annotations

import pytest

from greenline.replication.core import Engine
from greenline.replication.messages import Manifest
from greenline.replication.settings import Settings
from greenline.replication.standing import Standing, standing
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.stage import Stage, power_fails, replica
from greenline.simulation.scripted import Scripted


def of(cluster: Cluster, name: str) -> Standing:
    router = cluster.world[name].router
    assert router is not None
    engine = router.layers[0].core
    assert isinstance(engine, Engine)
    return standing(engine)


def primary(stage: Stage) -> Scripted:
    servers = stage.script("p q r").form("p q r").settle()
    servers["p"].submit("append l1 1")
    return servers.settle()


def test_before_its_start_it_stands_nowhere() -> None:
    assert standing(Engine(Settings(servers=("p",)))) == Standing("Boot")


def test_in_a_primary_component_nobody_is_awaited() -> None:
    found = of(primary(Stage()), "q")
    assert (found.state, found.is_primary, found.here, found.awaited) == ("RegPrim", True, ("p", "q", "r"), ())
    assert (found.green, found.reds, dict(found.green_lines)["q"]) == (1, 0, 1)


def test_a_minority_awaits_the_rest_of_the_last_primary_component() -> None:
    servers = primary(Stage()).form("p q | r").settle()
    servers["r"].submit("append l1 2")
    found = of(servers.settle(), "r")
    assert (found.state, found.awaited, found.reds) == ("NonPrim", ("p", "q"), 1)
    assert "no quorum" in found.because


def test_after_a_total_crash_it_says_who_was_not_met_yet() -> None:
    servers = primary(Stage())
    power_fails(servers, "p q r")
    servers.restart("p").settle()
    alone = of(servers, "p")
    assert (alone.awaited, alone.is_primary) == (("q", "r"), False)
    assert "nobody here knows what became of it" in alone.because

    servers.restart("q").settle().form("p q").settle()
    assert of(servers, "p").awaited == of(servers, "q").awaited == ("r",)

    servers.restart("r").settle().form("p q r").settle()
    assert of(servers, "p").is_primary


def test_who_is_left_behind_is_named_by_the_others_and_knows_that_it_is_far() -> None:
    servers = Stage().script("p q r", retain_after_white=0, retain_at_most=4, line_bundles=1, far=3)
    servers.form("p q r").settle().form("p q | r").settle()
    for number in range(12):
        servers["p"].submit(f"append l1 {number}")
        servers.settle()
    assert of(servers, "p").left_behind == ("r",)

    servers.form("p q r").hold("r", Manifest).settle()
    assert of(servers, "p").is_primary
    far = of(servers, "r")
    assert far.is_far
    assert not far.is_primary
    assert "being given a snapshot by p" in far.because

    servers.release().settle()
    assert of(servers, "r").is_primary
    assert of(servers, "p").left_behind == ()


@pytest.mark.parametrize(
    ("kept", "is_whole"), [(1 << 20, True), (2_000, False), (0, False)], ids=["enough", "some", "nothing"]
)
def test_white_bundles_are_kept_for_readers_up_to_so_many_bytes_but_never_fewer_than_far(
    kept: int, is_whole: bool
) -> None:
    far = 3
    servers = Stage().script("p q r", retain_white_bytes=kept, line_interval_s=0.01, line_bundles=1, far=far)
    servers.form("p q r").settle()
    for number in range(40):
        servers["p"].submit(f"append l1 {number} {'x' * 100}")
        servers.settle()
    p = replica(servers, "p")
    assert (p.low == 0) == is_whole
    assert p.live_bytes <= kept or len(p.order) == far
    assert len(p.order) >= far
