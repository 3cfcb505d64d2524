"""The stage: where a scenario is played, by the right protocol or by one with a seeded bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from greenline.kernel.identities import ProcId
from greenline.ring.core import RingCore, Unborn
from greenline.ring.evs import EVS
from greenline.ring.processor import Processor
from greenline.ring.settings import Settings
from greenline.simulation.cluster import Cluster, Stuck, broken_rules
from greenline.simulation.mutants.mutant import Wrapped
from greenline.simulation.network import Latency
from greenline.simulation.subjects import RING, ring_with
from greenline.spec.judge import Broken


class Stage:
    """Makes the clusters of one scenario; when it is over, none of them may have broken a rule."""

    def __init__(self, mutant: str | None = None) -> None:
        self.mutant = mutant
        self.clusters: list[Cluster] = []

    def ring(
        self,
        names: str,
        settings: Settings | None = None,
        seed: int = 0,
        latency: Latency | None = None,
        down: str = "",
    ) -> Cluster:
        cluster = Cluster(names, seed, ring_with(settings or Settings()), latency, self.mutant, down)
        self.clusters.append(cluster)
        return cluster

    def broken_rules(self) -> list[Broken]:
        return broken_rules(RING.rules, self.clusters)


Play = Callable[[Stage], None]


@dataclass(frozen=True)
class Scenario:
    name: str
    claim: str
    play: Play


def catalogue(*plays: Play) -> dict[str, Scenario]:
    """By id: `ring_05` is RING-05, and its docstring is what it claims."""
    found = {}
    for play in plays:
        name = play.__name__.upper().replace("_", "-")
        found[name] = Scenario(name, " ".join((play.__doc__ or "").split()), play)
    return found


def what_goes_wrong(scenario: Scenario, mutant: str | None = None) -> str | None:
    """Play it: the rule that is broken, "stuck", or the claim that is not kept; None if all is well."""
    stage = Stage(mutant)
    try:
        scenario.play(stage)
    except Stuck:
        return "stuck"
    except AssertionError as error:
        return _deeper_reason(stage.clusters[-1]) or f"the claim {scenario.name}: {error}".split("\n", 1)[0]
    broken = stage.broken_rules()
    return broken[0].rule if broken else None


def _deeper_reason(cluster: Cluster) -> str | None:
    """A claim is not kept: is a rule broken as well, once the trouble is over?"""
    try:
        cluster.let_be().heal().settle()
    except Stuck:
        return "stuck"
    broken = [each.rule for each in cluster.broken_rules() if each.rule != "run/2_everybody_is_up"]
    return broken[0] if broken else None


# What a scenario may look at.


def processor(cluster: Cluster, name: ProcId) -> Processor:
    router = cluster.world[name].router
    assert router is not None, f"{name} is up"
    core = router.layers[0].core
    while isinstance(core, Wrapped):
        core = core.core
    assert isinstance(core, RingCore), "it runs a ring"
    assert not isinstance(core.phase, Unborn), "it was started"
    return core.phase.processor


def evs(cluster: Cluster, name: ProcId) -> EVS | None:
    """Its EVS phase, if it is in it."""
    router = cluster.world[name].router
    core = router.layers[0].core if router is not None else None
    while isinstance(core, Wrapped):
        core = core.core
    return core.phase if isinstance(core, RingCore) and isinstance(core.phase, EVS) else None


def configurations(cluster: Cluster, name: ProcId) -> list[str]:
    """The regular configurations of its present life, in order."""
    return [words for words in cluster[name].history if words.startswith("{")]


def repeats(cluster: Cluster, kind: str = "packet") -> int:
    """How often a packet, or the token, was sent again."""
    return sum(row.kind == "repeat" and (row.detail == "token") == (kind == "token") for row in cluster.rows)
