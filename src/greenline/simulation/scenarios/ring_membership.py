"""Membership: rings that break, merge, meet the dead and the deaf, and agree on who they are."""

from __future__ import annotations

from functools import partial

from greenline.kernel.ports import Service
from greenline.ring.messages import AttemptJoin, FormToken, Join, Probe, Regular, RegularToken
from greenline.ring.settings import Reach, Settings
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.ring_ordering import SIXTEEN
from greenline.simulation.scenarios.stage import Stage, catalogue, configurations, processor
from greenline.simulation.tampering import ALWAYS

SAFE, AGREED = Service.SAFE, Service.AGREED


def ends_together(cluster: Cluster, names: str) -> None:
    """All of them end in one configuration with exactly these members."""
    for name in names.split():
        assert configurations(cluster, name)[-1] == f"{{{' '.join(sorted(names.split()))}}}", f"where {name} ends"


def is_in(cluster: Cluster, phase: str, names: str) -> bool:
    return all(cluster[name].phase == phase for name in names.split())


def in_transition(cluster: Cluster) -> list[str]:
    """What was delivered in transitional configurations."""
    return [
        f"{row.message} at {row.process}" for row in cluster.rows if row.kind == "deliver" and ">" in (row.conf or "")
    ]


def entered(cluster: Cluster, name: str, phase: str) -> int:
    return sum(row.kind == "phase" and row.process == name and row.detail == phase for row in cluster.rows)


def ring_09(stage: Stage) -> None:
    """Three have agreed and the one that should form the ring dies: the other two form it without."""
    ring = stage.ring("p q r")
    ring.lose(FormToken, frm="p", times=ALWAYS, do=lambda: ring.crash("p") if ring.world["p"].is_up else None)
    ring.wait(0.5)
    ends_together(ring, "q r")
    assert configurations(ring, "q") == ["{q}", "{q r}"], "one commit timeout, no detour"
    ring.let_be().restart("p").settle()
    ends_together(ring, "p q r")


def ring_10(stage: Stage) -> None:
    """A Join that is lost at one receiver is said again: the same ring, and nobody is given up."""
    ring = stage.ring("p q r").lose(Join, frm="q", to="r").settle()
    assert all(configurations(ring, name) == [f"{{{name}}}", "{p q r}"] for name in ring.names)


def ring_11(stage: Stage) -> None:
    """p hears only old Joins of q and r, who have given it up since, and sends a Form token: they do not follow it."""
    ring = stage.ring("p q r", down="p").wait(0.020).start("p")
    ring.lose(Join, frm="p", times=ALWAYS)
    ring.delay(Join, frm="q r", to="p", where=lambda join: not join.failed, by=0.095, times=2)
    ring.lose(Join, frm="q r", to="p", times=ALWAYS)
    ring.lose(Join, frm="r", to="q", where=lambda join: bool(join.failed), times=2)
    ring.wait(0.4)
    assert entered(ring, "p", "Form"), "it believed that all had agreed"
    assert configurations(ring, "q")[:2] == ["{q}", "{q r}"], "q had given p up"
    assert configurations(ring, "r")[:2] == ["{r}", "{q r}"]
    ring.let_be().settle()
    ends_together(ring, "p q r")


def ring_12(stage: Stage) -> None:
    """A ring dies after its representative has spoken for it: whoever comes for himself is counted once."""
    ring = stage.ring("p q r s t u").partition("p q r | s t u").settle()
    ring.when(Join, frm="s", do=lambda: ring.lose(RegularToken, frm="s t u", to="s t u", times=12))
    ring.heal()
    ring["t"].multicast("x", SAFE)
    forms = ring.watch(FormToken)
    ring.settle()
    for token in forms:
        names = [seat.name for seat in token.memb_list]
        assert len(set(names)) == len(names), "each at most once"
    ends_together(ring, "p q r s t u")


def ring_13(stage: Stage) -> None:
    """The Form token of an attempt that was given up comes during the next one with the same members: it is dropped."""
    ring = stage.ring("p q r")
    ring.delay(FormToken, frm="p", by=0.4, times=8).settle()
    ends_together(ring, "p q r")
    reasons = {row.detail for row in ring.rows if row.kind == "ignored"}
    assert reasons & {
        "a Form token that I have not agreed to",
        "a Form token that is not for me",
        "the Form token of another ring",
        "I am still gathering",
    }


def ring_24(stage: Stage) -> None:
    """Two idle rings find each other when the network heals."""
    ring = stage.ring("p q r s t u").partition("p q r | s t u").settle()
    ring.heal().wait(1.0)
    ends_together(ring, "p q r s t u")
    ring.settle()


def ring_25(stage: Stage) -> None:
    """Only one that is no representative hears the other ring: it tells its own."""
    ring = stage.ring("p q r s t u").partition("p q r | s t u").settle()
    ring.lose(Probe, AttemptJoin, to="p", times=3).lose(Probe, to="q t u s", times=ALWAYS)
    ring.heal().wait(2.0)
    ends_together(ring, "p q r s t u")
    ring.let_be().settle()


def ring_26(stage: Stage) -> None:
    """Packets of an old ring, and of the negotiation before this one, that come late have no effect."""
    ring = stage.ring("p q r", Settings(packet_bytes=8)).settle()
    ring.copy(Regular, AttemptJoin, Join, RegularToken, after=(1.0,), times=ALWAYS)
    ring["p"].multicast("x", SAFE)
    ring.partition("p q | r").wait(0.3).heal().wait(0.6)
    ends_together(ring, "p q r")
    before = [len(configurations(ring, name)) for name in ring.names]
    gathers = [entered(ring, name, "Gather") for name in ring.names]
    ring.let_be().wait(1.2)
    assert [len(configurations(ring, name)) for name in ring.names] == before, "no configuration change"
    assert [entered(ring, name, "Gather") for name in ring.names] == gathers, "no Gather"
    ring.settle()


def ring_27(stage: Stage) -> None:
    """A late message of somebody who is dead: Gather, nobody answers, and back as if nothing had been."""
    ring = stage.ring("p q r", Settings(reach=Reach.MULTICAST)).settle()
    ring.copy(Regular, frm="r", after=(3.0,), times=1)
    ring["r"].multicast("x", AGREED)
    ring.wait(0.1).crash("r").wait(2.0)
    ends_together(ring, "p q")
    before = ring["p"].history
    gathers = entered(ring, "p", "Gather")
    ring.let_be().wait(2.0)
    assert entered(ring, "p", "Gather") > gathers, "a foreign message"
    assert ring["p"].history == before, "no configuration"
    ring.restart("r").settle()


def ring_28(stage: Stage) -> None:
    """The Form token always dies between r and s: attempts end, in rings that can be."""
    ring = stage.ring("p q r s t")
    ring.lose(FormToken, frm="r", to="s", times=ALWAYS).wait(6.0)
    before = [configurations(ring, name) for name in ring.names]
    assert all(entered(ring, name, "Form") <= 6 for name in ring.names), "one attempt is forgiven"
    for name in ring.names:
        order = processor(ring, name).ring.order
        assert ("r", "s") not in zip(order, order[1:] + order[:1], strict=True), "its token would die there too"
    ring.wait(10.0)
    assert [configurations(ring, name) for name in ring.names] == before, "it does not try for ever"
    ring.let_be().settle()
    ends_together(ring, "p q r s t")


def ring_29(stage: Stage) -> None:
    """r crashes and is back before anybody noticed: it comes from its new life, not from the old ring."""
    ring = stage.ring("p q r").settle()
    ring["q"].multicast("x", SAFE)
    ring.wait(0.0005).crash("r").wait(0.02).restart("r").settle()
    ends_together(ring, "p q r")
    assert "({p q})" in ring["p"].history, "r is not among those who came from the old ring"
    assert ring["r"].history[0] == "{r}"


def ring_30(stage: Stage) -> None:
    """A crash around any forced write of identities and counters: no identity is used twice."""
    for orders in range(8):
        for keep, tear in ((0.0, False), (0.0, True), (1.0, False)):
            ring = stage.ring("p q", seed=orders)
            ring.crash("p", after_orders=orders, keep=keep, tear=tear).wait(0.3)
            if not ring.world["p"].is_up:
                ring.restart("p")
            ring.wait(0.05).crash("p", keep=keep, tear=tear).restart("p").settle()
            ring["p"].multicast("x", SAFE)
            ring.settle()
            ends_together(ring, "p q")


def ring_31(stage: Stage) -> None:
    """A representative that comes back with its clock an hour behind: what was said in its earlier life is refused."""
    ring = stage.ring("p q r").settle()
    ring.copy(Regular, frm="p", after=(2.0,), times=ALWAYS)
    ring["p"].multicast("x", SAFE)
    ring.wait(0.1).crash("p").wait(0.5)
    ring.world["p"].set_clock(-3600.0, 1.0)
    ring.let_be().restart("p").wait(3.0)
    ends_together(ring, "p q r")
    ring["p"].multicast("y", SAFE)
    ring.settle()
    assert ring["q"].delivered == ["x", "y"]


def ring_32(stage: Stage) -> None:
    """p restarts five times in a second while rings merge."""
    ring = stage.ring("p q r s").partition("p q | r s").settle()
    ring.heal()
    for _ in range(5):
        ring.wait(0.1).crash("p").wait(0.1).restart("p")
    ring.settle()
    assert ring["p"].history[0] == "{p}"
    ends_together(ring, "p q r s")


def ring_33(stage: Stage) -> None:
    """p hears q and q never hears p: they try less and less, and nothing changes."""
    ring = stage.ring("p q r").partition("p r | q").settle()
    ring.heal().one_way("p r", "q")
    before = configurations(ring, "p")
    ring.wait(5.0)
    gathers = entered(ring, "p", "Gather")
    ring.wait(60.0)
    assert configurations(ring, "p") == before, "no configuration change"
    assert entered(ring, "p", "Gather") - gathers <= 12, "fewer and fewer attempts"
    ring.heal().settle()
    ends_together(ring, "p q r")


def ring_34(stage: Stage) -> None:
    """Inside a ring of four nothing goes from q to r: the ring breaks, and what follows is stable."""
    ring = stage.ring("p q r s").settle()
    ring.one_way("q", "r")
    ring["q"].multicast("x", SAFE)
    ring.wait(20.0)
    before = [configurations(ring, name) for name in ring.names]
    ring.wait(20.0)
    assert [configurations(ring, name) for name in ring.names] == before, "it does not flap"
    ring.heal().settle()
    ends_together(ring, "p q r s")


def ring_36(stage: Stage) -> None:
    """Three components of one, five and ten heal at once: one ring, in two steps at most, empty transitions."""
    ring = stage.ring(SIXTEEN).partition("p | q r s t u | v w x y z a b c d e").settle()
    steps = {name: len(configurations(ring, name)) for name in ring.names}
    ring.heal().settle()
    ends_together(ring, SIXTEEN)
    assert all(len(configurations(ring, name)) - steps[name] <= 2 for name in ring.names)
    assert not in_transition(ring)


def ring_37(stage: Stage) -> None:
    """Five alone and two rings heal while each ring loses a member: one ring of those who are there."""
    names = "a b c d e p q r s t u"
    ring = stage.ring(names).partition("a | b | c | d | e | p q r | s t u").settle()
    ring["q"].multicast("x", SAFE)
    ring["t"].multicast("y", SAFE)
    ring.crash("r").crash("u").heal().settle()
    ends_together(ring, "a b c d e p q s t")
    ring.restart("r").restart("u").settle()
    ends_together(ring, names)


def ring_38(stage: Stage) -> None:
    """A partition between any two steps of a merge: at each Attempt Join, Join and hop of the Form token."""
    for kind, hops in ((AttemptJoin, 2), (Join, 3), (FormToken, 8)):
        for skip in range(hops):
            ring = stage.ring("p q r s", seed=skip).partition("p q | r s").settle()
            ring["r"].multicast("x", SAFE)
            ring.heal().when(kind, skip=skip, do=partial(ring.partition, "p q | r s"))
            ring.settle()
            ends_together(ring, "p q")
            ends_together(ring, "r s")
            ring.let_be().heal().settle()
            ends_together(ring, "p q r s")


def ring_39(stage: Stage) -> None:
    """Two rings merge while the representative of one crashes, in each phase of it."""
    for phase in ("Gather", "Commit", "Form", "EVS"):
        ring = stage.ring("p q r s").partition("p q | r s").settle()
        ring["s"].multicast("x", SAFE)
        ring.heal().wait_until(partial(is_in, ring, phase, "r"))
        ring.crash("r").settle()
        ends_together(ring, "p q s")
        ring.restart("r").settle()
        ends_together(ring, "p q r s")


def ring_41(stage: Stage) -> None:
    """p and q hear each other, q and r do, p and r do not: a pair stays, and the third is tried less and less."""
    ring = stage.ring("p q r").settle().partition("p q | q r").wait(30.0)
    before = [len(configurations(ring, name)) for name in ring.names]
    ring.wait(30.0)
    assert all(len(configurations(ring, name)) - n <= 6 for name, n in zip(ring.names, before, strict=True))
    ring.wait_until(lambda: all(ring[name].phase == "Operational" for name in ring.names))
    assert sorted(len(configurations(ring, name)[-1].split()) for name in ring.names) == [1, 2, 2]
    ring.heal().settle()
    ends_together(ring, "p q r")


def ring_42(stage: Stage) -> None:
    """A ring of sixteen splits into four, heals pairwise, then all."""
    fours = ["p q r s", "t u v w", "x y z a", "b c d e"]
    ring = stage.ring(SIXTEEN).settle()
    for sides in (" | ".join(fours), f"{fours[0]} {fours[1]} | {fours[2]} {fours[3]}"):
        for name in ring.names:
            ring[name].multicast(name, SAFE)
        ring.partition(sides).settle()
        for side in sides.split(" | "):
            ends_together(ring, side)
    ring.heal().settle()
    ends_together(ring, SIXTEEN)


def ring_43(stage: Stage) -> None:
    """A partition that heals before the token counts as lost changes nothing, or little, and loses nothing."""
    ring = stage.ring("p q r s").settle()
    ring["q"].multicast("x", SAFE)
    ring.partition("p q | r s").wait(0.05).heal().settle()
    ends_together(ring, "p q r s")
    assert len(configurations(ring, "p")) <= 3
    assert all(ring[name].delivered == ["x"] for name in ring.names)


def ring_44(stage: Stage) -> None:
    """Two intact rings under load merge: neither loses its token before the Form token, and the transition is empty."""
    ring = stage.ring("p q r s t u v w", Settings(reach=Reach.MULTICAST)).partition("p q r s | t u v w").settle()
    healed = ring.world.agenda.now
    ring.heal()
    for number in range(60):
        for name in "pqtv":
            ring[name].multicast(f"{name}{number}", SAFE)
        ring.wait(0.004)
    ring.settle()
    ends_together(ring, "p q r s t u v w")
    for name in ring.names:
        assert len(configurations(ring, name)) == 3, "no ring broke before it merged"
    causes = [row.detail or "" for row in ring.rows if row.kind == "membership" and row.time > healed]
    assert not [cause for cause in causes if "lost" in cause]
    assert not in_transition(ring)


def ring_45(stage: Stage) -> None:
    """Who was stopped hears old news: that a companion is a representative. It is none any more, and stays."""
    for length in (0.2, 0.4, 0.8, 3.0):
        ring = stage.ring("p q r").settle()
        ring["q"].multicast("go round", SAFE)
        ring.pause("r").wait(length)
        ring.resume("r").settle()
        for name in "pq":
            assert configurations(ring, name)[-3:] == ["{p q r}", "{p q}", "{p q r}"], "they never parted"


SCENARIOS = catalogue(
    ring_09,
    ring_10,
    ring_11,
    ring_12,
    ring_13,
    ring_24,
    ring_25,
    ring_26,
    ring_27,
    ring_28,
    ring_29,
    ring_30,
    ring_31,
    ring_32,
    ring_33,
    ring_34,
    ring_36,
    ring_37,
    ring_38,
    ring_39,
    ring_41,
    ring_42,
    ring_43,
    ring_44,
    ring_45,
)
