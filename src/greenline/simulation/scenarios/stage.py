"""The stage: where a scenario is played, by the right protocol or by one with a seeded bug."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from traceback import extract_tb
from typing import Any

from greenline.kernel.identities import ProcId, in_order
from greenline.replication.replica import Replica
from greenline.replication.settings import Settings as EngineSettings
from greenline.ring.core import RingCore, Unborn
from greenline.ring.evs import EVS
from greenline.ring.processor import Processor
from greenline.ring.settings import Settings
from greenline.simulation.cluster import Cluster, Stuck, broken_rules
from greenline.simulation.load import replica_of
from greenline.simulation.mutants.mutant import Wrapped
from greenline.simulation.network import Latency
from greenline.simulation.scripted import Scripted, over_script
from greenline.simulation.subjects import engine_with, ring_with
from greenline.spec.judge import Broken


class Stage:
    """Makes the clusters of one scenario; when it is over, none of them may have broken a rule."""

    def __init__(self, mutant: str | None = None) -> None:
        self.mutant = mutant
        self.clusters: list[Cluster] = []
        self.forgiven: frozenset[str] = frozenset()
        """Rules that a story breaks on purpose: who is refused stays down, who is given an old disk has forgotten."""

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

    def engine(
        self,
        names: str,
        seed: int = 0,
        latency: Latency | None = None,
        down: str = "",
        newcomers: str = "",
        **settings: Any,
    ) -> Cluster:
        """Replicas over the Ring; settings that are not named are the product's. Newcomers arrive when it is said."""
        cluster = Cluster(names, seed, engine_with(**settings), latency, self.mutant, down, newcomers)
        self.clusters.append(cluster)
        return cluster

    def script(
        self,
        names: str,
        odd: dict[ProcId, dict[str, Any]] | None = None,
        down: str = "",
        newcomers: str = "",
        **settings: Any,
    ) -> Scripted:
        """Replicas over a medium that does what the scenario says, each alone at first; `odd` ones differ in these."""

        def of(me: ProcId, everybody: tuple[ProcId, ...]) -> EngineSettings:
            return EngineSettings(**{"servers": in_order(everybody), **settings, **(odd or {}).get(me, {})})

        cluster = Scripted(names, over_script(of), self.mutant, down, newcomers)
        self.clusters.append(cluster)
        return cluster.settle()

    def broken_rules(self) -> list[Broken]:
        """Of clusters of one protocol."""
        (broken,) = judged_together([self])
        return broken


def judged_together(stages: Sequence[Stage]) -> list[list[Broken]]:
    """What each has broken, of scenarios of one protocol: to judge many takes hardly longer than to judge one."""
    clusters = [cluster for stage in stages for cluster in stage.clusters]
    found = broken_rules(clusters[0].subject.rules, clusters) if clusters else []
    owners = [stage for stage in stages for _ in stage.clusters]
    broken: dict[int, list[Broken]] = {id(stage): [] for stage in stages}
    for each in found:
        owner = owners[int(each.run.rpartition("-")[2])]
        if each.rule not in owner.forgiven:
            broken[id(owner)].append(each)
    return [broken[id(stage)] for stage in stages]


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
    (wrong,) = what_goes_wrong_in([(scenario, mutant)])
    return wrong


def what_goes_wrong_in(played: Sequence[tuple[Scenario, str | None]]) -> list[str | None]:
    """The same of several of one protocol, judged together."""
    stages, wrongs = zip(*(_play(*each) for each in played), strict=True)
    return [broken[0].rule if broken else wrong for wrong, broken in zip(wrongs, judged_together(stages), strict=True)]


def _play(scenario: Scenario, mutant: str | None) -> tuple[Stage, str | None]:
    """What is to be judged, and what is wrong if no rule is broken."""
    stage = Stage(mutant)
    try:
        scenario.play(stage)
    except Stuck:
        stage.clusters.clear()
        return stage, "stuck"
    except (AssertionError, TypeError, ValueError) as error:  # somebody is asked who has stopped, perhaps
        is_over = _is_over(stage)
        return stage, f"the claim {scenario.name}: {_what(error)}" if is_over else "stuck"
    return stage, None


def _what(error: Exception) -> str:
    """What was claimed: in words, if there are any, or else as it stands in the scenario."""
    return str(error).split("\n", 1)[0] or str(extract_tb(error.__traceback__)[-1].line)


def _is_over(stage: Stage) -> bool:
    """A claim is not kept. Is there a deeper reason, a broken rule? That is judged once nothing disturbs any more."""
    stage.forgiven |= {"run/2_everybody_is_up"}
    del stage.clusters[:-1]
    (cluster,) = stage.clusters
    try:
        cluster.let_be().heal().settle()
        if not all(process.is_up for process in cluster.world.processes.values()):
            cluster.heal().settle()  # without those who have stopped since
    except Stuck:
        stage.clusters.clear()
    return bool(stage.clusters)


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


def replica(cluster: Cluster, name: ProcId) -> Replica:
    return replica_of(cluster.world, name)


def order(cluster: Cluster, name: ProcId) -> list[str]:
    """The global order, as far as it knows it and keeps it."""
    return list(map(str, replica(cluster, name).order))


def reds(cluster: Cluster, name: ProcId) -> list[str]:
    return list(map(str, replica(cluster, name).reds()))


def yellows(cluster: Cluster, name: ProcId) -> list[str]:
    """Its yellow list, if it is complete."""
    yellow = replica(cluster, name).yellow
    return list(map(str, yellow.ids)) if yellow.is_valid else []


def marks(cluster: Cluster, name: ProcId, bundle: str) -> list[str]:
    """The colours that it gave a bundle, in all its lives: "red NonPrim", "green OR-3 ExchangeActions"."""
    return [
        f"{row.colour} {row.detail}"
        for row in cluster.rows
        if row.kind == "mark" and row.process == name and row.message == bundle
    ]


def told(cluster: Cluster, name: ProcId, kind: str) -> list[str]:
    """What it said of itself in rows of this kind: "0.1 {p q r} valid try", "2.1 {p q r}"."""
    return [
        " ".join([f"{row.position}.{row.sub} {{{row.members}}}", *([row.detail] if row.detail else [])])
        for row in cluster.rows
        if row.kind == kind and row.process == name
    ]


def states(cluster: Cluster, name: ProcId) -> list[str]:
    """The states that its engine went through, in all its lives."""
    return [
        str(row.detail) for row in cluster.rows if row.kind == "phase" and row.layer == "engine" and row.process == name
    ]


def are_in(cluster: Cluster, state: str, names: str) -> bool:
    return all(cluster[name].state == state for name in names.split())


def ends_as_one(cluster: Cluster) -> None:
    """The trouble is over: all who are left are in one primary component, with one order and one database."""
    cluster.let_be().heal().settle()
    living = cluster.living
    assert are_in(cluster, "RegPrim", " ".join(living)), "all are in the primary component"
    assert len({cluster[name].database for name in living}) == 1, "all databases are equal"
    assert not any(reds(cluster, name) for name in living), "nothing is red any more"


def power_fails(cluster: Cluster, names: str, keep: float = 0.0) -> None:
    """They die together, and so much of what they had not forced is on their disks all the same."""
    for name in names.split():
        cluster.crash(name, keep=keep)


def power_returns(cluster: Cluster, names: str) -> None:
    for name in names.split():
        cluster.restart(name)
    cluster.settle()
