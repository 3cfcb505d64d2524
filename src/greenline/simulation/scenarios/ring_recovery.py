"""Recovery: what a new ring delivers of the old configurations, whatever befalls it on the way (5.2.3)."""

from __future__ import annotations

from functools import partial

from greenline.kernel.ports import Service
from greenline.ring.messages import AttemptJoin, FormToken, Regular, RegularToken
from greenline.ring.settings import Settings
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.ring_membership import ends_together, is_in
from greenline.simulation.scenarios.stage import Stage, catalogue, configurations, evs, processor
from greenline.simulation.tampering import ALWAYS

SAFE, AGREED = Service.SAFE, Service.AGREED
SMALL = Settings(packet_bytes=8, grace=0)
"""One message a packet, and what is missing is asked for at once."""


def at_barrier(cluster: Cluster, name: str) -> bool:
    phase = evs(cluster, name)
    return phase is not None and phase.is_at_barrier


def evs_00(stage: Stage) -> None:
    """Figure 4.8: five safe messages, the losses, a partition, and exactly the deliveries of the figure."""
    ring = stage.ring("p q r s t", SMALL).partition("p q r | s t").settle()
    ring["s"].multicast("m'", SAFE)
    ring.settle()

    ring["p"].multicast("m1", SAFE)
    ring["q"].multicast("m2", SAFE)
    ring.lose(Regular, frm="q", to="p", where=lambda packet: packet.seq == 2)
    ring.when(RegularToken, frm="r", to="p", skip=1, do=lambda: ring["p"].multicast("m3", SAFE))
    ring.lose(Regular, frm="p", where=lambda packet: packet.seq == 3, times=ALWAYS)
    ring.when(RegularToken, frm="q", to="r", skip=2, do=lambda: ring["r"].multicast("m4", SAFE))
    ring.when(RegularToken, frm="r", to="p", skip=1, do=lambda: ring["p"].multicast("m5", SAFE))
    ring.lose(RegularToken, frm="p", to="q", where=lambda token: token.seq == 5, times=ALWAYS)
    ring.wait(0.015).partition("p | q r s t").settle()

    assert ring["p"].history[-8:] == ["{p q r}", "m1", "m2", "({p})", "m3", "m4", "m5", "{p}"]
    for name in "qr":
        assert ring[name].history[-6:] == ["{p q r}", "m1", "({q r})", "m2", "m4", "{q r s t}"]
    for name in "st":
        assert ring[name].history[-4:] == ["{s t}", "m'", "({s t})", "{q r s t}"]
    ring.let_be().heal().settle()


def evs_01(stage: Stage) -> None:
    """Somebody who has just begun meets a ring that has said a lot: the recovery ends in a few rotations."""
    ring = stage.ring("p q r", SMALL, down="p").settle()
    for number in range(20):
        ring["q"].multicast(f"m{number}", SAFE)
    ring.settle()
    tokens = ring.watch(RegularToken, frm="p")
    ring.start("p").wait_until(lambda: is_in(ring, "Operational", "p q r") and len(configurations(ring, "p")) == 2)
    assert len(tokens) <= 4
    ring.settle()


def evs_02(stage: Stage) -> None:
    """q sends a safe message that nobody else has: it is delivered in the transitional configuration of q alone."""
    ring = stage.ring("p q r", SMALL).settle()
    ring.lose(Regular, frm="q", times=ALWAYS)
    ring.when(RegularToken, frm="q", where=lambda token: token.seq == 1, do=partial(ring.partition, "q | p r"))
    ring["q"].multicast("m", SAFE)
    ring.settle()
    assert ring["q"].history[-4:] == ["{p q r}", "({q})", "m", "{q}"]
    assert "m" not in ring["p"].delivered
    ring.let_be().heal().settle()


def evs_03(stage: Stage) -> None:
    """Nobody installs before the last member has recovered, though the aru was at the barrier in between."""
    ring = stage.ring("p q r s t", SMALL).settle()
    for text in ("m1", "m2", "m3"):
        ring["t"].multicast(text, SAFE)
    ring.lose(Regular, to="r", where=lambda packet: packet.seq == 1, times=ALWAYS // 2)
    ring.lose(Regular, to="p", where=lambda packet: packet.seq == 2, times=ALWAYS // 2)
    ring.wait(0.004).crash("t").wait_until(lambda: is_in(ring, "EVS", "p q r s"))
    ring.let_be().lose(Regular, to="p", where=lambda packet: packet.seq == 2, times=3)
    while any(ring[name].phase == "EVS" for name in "pqrs"):
        if any(ring[name].phase == "Operational" for name in "pqrs"):
            recovering = [evs(ring, name) for name in "pqrs"]
            assert not any(phase.lacking() for phase in recovering if phase), "somebody installed before it had all"
        ring.wait(0.00025)
    ring.restart("t").settle()


def evs_04(stage: Stage) -> None:
    """The first safe message of a new ring, lost at one member, is not safe until that one has it."""
    ring = stage.ring("p q r", SMALL, down="p").settle()
    for number in range(20):
        ring["q"].multicast(f"m{number}", SAFE)
    ring.settle()
    ring.start("p").wait_until(lambda: is_in(ring, "Operational", "p q r") and len(configurations(ring, "p")) == 2)
    ring.lose(Regular, to="r", times=4)
    ring["p"].multicast("new", SAFE)
    for _ in range(200):
        ring.wait(0.00025)
        if not processor(ring, "r").ring.my_aru:
            assert all("new" not in ring[name].delivered for name in "pqr")
    ring.settle()
    assert all(ring[name].delivered[-1] == "new" for name in "pqr")


def evs_05(stage: Stage) -> None:
    """Two old configurations with equal numbers, one of them with a gap: each recovers its own."""
    ring = stage.ring("p q r s", SMALL).partition("p q | r s").settle()
    for name in "pr":
        for number in range(3):
            ring[name].multicast(f"{name}{number}", SAFE)
    ring.lose(Regular, to="s", where=lambda packet: packet.seq == 3, times=6)
    ring.heal().settle()
    assert ring["s"].delivered == ["r0", "r1", "r2"]
    assert ring["q"].delivered == ["p0", "p1", "p2"]
    ends_together(ring, "p q r s")


def evs_06(stage: Stage) -> None:
    """A message of one who is gone comes after its receiver has reported that nobody has it: nobody delivers it."""
    ring = stage.ring("p q r s", SMALL).settle()
    kept = ring.put_aside(Regular, frm="s", times=3)
    ring["s"].multicast("s1", AGREED)
    ring.when(RegularToken, frm="s", where=lambda token: token.seq == 1, do=partial(ring.crash, "s"))
    ring.wait_until(lambda: ring["q"].phase == "Form").hand_over(kept, "q")
    ring.wait_until(lambda: ring["q"].phase == "EVS").hand_over(kept, "q")
    ring.wait(1.0)
    assert all("s1" not in ring[name].delivered for name in "pqr")
    ring.restart("s").settle()


def evs_07(stage: Stage) -> None:
    """Who is not yet reached by the Form token goes on in the old ring: those who come with it deliver what it said."""
    ring = stage.ring("p q r s", SMALL).partition("p | q r s").settle()
    ring.lose(Regular, frm="s", where=lambda packet: packet.first == 3, times=2)
    ring.heal()
    for number in range(40):
        ring["s"].multicast(f"{number}", AGREED)
        ring.wait(0.002)
    ring.settle()
    for name in "qrs":
        assert ring[name].delivered == [str(number) for number in range(40)]
    ends_together(ring, "p q r s")


def with_a_hole(stage: Stage) -> Cluster:
    """p q r have lost s, whose message nobody has; a safe message of p comes after the hole. p q r begin to recover."""
    ring = stage.ring("p q r s", SMALL).settle()
    ring.lose(Regular, frm="s", times=ALWAYS)
    ring["s"].multicast("h", AGREED)
    ring.when(RegularToken, frm="s", where=lambda token: token.seq == 1, do=lambda: ring["p"].multicast("x", SAFE))
    ring.when(RegularToken, frm="r", where=lambda token: token.seq == 2, do=partial(ring.crash, "s"))
    return ring


def evs_08(stage: Stage) -> None:
    """p has installed, delivered its safe message after a hole, and vanished: q and r, who promised it, deliver it."""
    ring = with_a_hole(stage)
    ring.wait_until(lambda: at_barrier(ring, "q") and at_barrier(ring, "r") and ring["p"].phase == "Operational")
    assert ring["p"].history[-3:] == ["({p q r})", "x", "{p q r}"]
    assert is_in(ring, "EVS", "q r")
    ring.let_be().partition("p | q r").wait(3.0)
    for name in "qr":
        assert ring[name].history[-3:] == ["({q r})", "x", "{q r}"]
    ring.heal().restart("s").settle()


def evs_09(stage: Stage) -> None:
    """The same before r has recovered, so nobody can have installed: q and r agree, and p delivers what it said."""
    ring = with_a_hole(stage)
    ring.lose(Regular, frm="p q", to="r", times=ALWAYS)
    ring.wait_until(lambda: evs(ring, "r") is not None and ring["p"].phase == "EVS").wait(0.004)
    ring.partition("p | q r").wait(0.1).let_be().wait(3.0)
    assert ring["p"].history[-3:] == ["({p})", "x", "{p}"]
    assert ring["q"].delivered == ring["r"].delivered
    ring.heal().restart("s").settle()


def evs_10(stage: Stage) -> None:
    """The second rotation of the Form token is lost at each hop: nobody installs, and the next attempt succeeds."""
    for hop in "pqr":
        ring = stage.ring("p q r").partition("p q | r").settle()
        ring["q"].multicast("x", SAFE)
        ring.heal().lose(FormToken, frm=hop, where=lambda token: token.rotation == 2, times=20)
        ring.wait(0.4)
        assert all(configurations(ring, name)[-1] != "{p q r}" for name in "pqr"), "nobody installs"
        ring.let_be().settle()
        ends_together(ring, "p q r")


def evs_11(stage: Stage) -> None:
    """q knows that all have the message and delivers it in the regular configuration; p has it, and cannot know."""
    ring = stage.ring("p q r", SMALL).settle()
    ring["q"].multicast("m", SAFE)
    ring.wait_until(lambda: ring["q"].delivered == ring["r"].delivered == ["m"])
    assert ring["p"].delivered == []
    ring.partition("p | q r").settle()
    assert ring["p"].history[-3:] == ["({p})", "m", "{p}"]
    ring.heal().settle()


def evs_12(stage: Stage) -> None:
    """Nobody leaves: all safe messages are delivered in the old regular configuration, also those not yet confirmed."""
    ring = stage.ring("s t u", SMALL).partition("s t | u").settle()

    def say() -> None:
        for n in range(6):
            ring["s"].multicast(f"m{n}", SAFE)

    # Slow enough that the token does not come round twice before the merge: nothing is confirmed.
    ring.delay(RegularToken, frm="t", by=0.016, times=ALWAYS)
    ring.heal().when(AttemptJoin, frm="s", do=say).settle()
    for name in "st":
        said = [f"m{n}" for n in range(6)]
        assert ring[name].history[-9:] == ["{s t}", *said, "({s t})", "{s t u}"]


def evs_13(stage: Stage) -> None:
    """The token is lost in the installation round, at each hop, and the first to install has said five messages."""
    for hop in "pqr":
        ring = stage.ring("p q r").partition("p q | r").settle()
        ring["q"].multicast("x", SAFE)
        ring.heal().wait_until(partial(is_in, ring, "EVS", "p"))
        for number in range(5):
            ring["p"].multicast(f"n{number}", SAFE)
        ring.lose(RegularToken, frm=hop, where=lambda token: token.seq > 0, times=20)
        ring.wait(0.6).let_be().settle()
        ends_together(ring, "p q r")


def evs_14(stage: Stage) -> None:
    """The recovery always dies at the same hop, and not for the sake of the highest: attempts end all the same."""
    ring = stage.ring("p q r s").partition("p q | r s").settle()
    ring.lose(RegularToken, frm="q", to="r", times=ALWAYS).lose(RegularToken, frm="q", to="s", times=ALWAYS)
    ring.heal().wait(20.0)
    before = [len(configurations(ring, name)) for name in ring.names]
    ring.wait(20.0)
    grown = [len(configurations(ring, name)) - n for name, n in zip(ring.names, before, strict=True)]
    assert max(grown) <= 12, "it does not try for ever"
    ring.let_be().settle()
    ends_together(ring, "p q r s")


def cascade(stage: Stage) -> Cluster:
    """Six split three times, each time while they recover from the split before."""
    ring = stage.ring("p q r s t u", SMALL).settle()
    for name in ring.names:
        for number in range(4):
            ring[name].multicast(f"{name}{number}", SAFE)
    ring.lose(Regular, to="p r", where=lambda packet: packet.seq % 3 == 0, times=ALWAYS)
    ring.wait(0.006).partition("p q r s | t u").wait_until(lambda: is_in(ring, "EVS", "p q"))
    ring.partition("p q | r s | t u").wait(0.05).wait_until(lambda: is_in(ring, "EVS", "p q"))
    return ring.partition("p | q | r s | t u")


def evs_15(stage: Stage) -> None:
    """Three splits, each in the recovery of the one before."""
    ring = cascade(stage).let_be().settle()
    assert configurations(ring, "p")[-1] == "{p}"
    ring.heal().settle()
    ends_together(ring, "p q r s t u")


def evs_16(stage: Stage) -> None:
    """The same, and everything heals in the middle of it."""
    ring = cascade(stage).wait(0.1).let_be().heal().settle()
    ends_together(ring, "p q r s t u")


def evs_17(stage: Stage) -> None:
    """Three old configurations recover on one token, each its own losses."""
    ring = stage.ring("p q r s t u", SMALL).partition("p q | r s | t u").settle()
    for name in "prt":
        for number in range(6):
            ring[name].multicast(f"{name}{number}", SAFE)
    ring.lose(Regular, to="q", where=lambda packet: packet.seq in (2, 5), times=8)
    ring.lose(Regular, to="s", where=lambda packet: packet.seq in (1, 6), times=8)
    ring.lose(Regular, to="u", where=lambda packet: packet.seq == 4, times=8)
    ring.heal().settle()
    for pair in ("pq", "rs", "tu"):
        said = [f"{pair[0]}{number}" for number in range(6)]
        assert ring[pair[0]].delivered == ring[pair[1]].delivered == said
    ends_together(ring, "p q r s t u")


def evs_18(stage: Stage) -> None:
    """Two rings merge; q crashes when it has recovered and p has installed: the others go on."""
    ring = stage.ring("p q r s").partition("p q | r s").settle()
    ring["q"].multicast("x", SAFE)
    ring["s"].multicast("y", SAFE)
    ring.heal().wait_until(lambda: ring["p"].phase == "Operational" and ring["q"].phase == "EVS")
    assert ring["p"].delivered == ["x"]
    ring.crash("q").settle()
    ends_together(ring, "p r s")
    assert ring["r"].delivered == ring["s"].delivered == ["y"]
    ring.restart("q").settle()


def evs_19(stage: Stage) -> None:
    """A crash between any two steps of an installation is a crash in the configuration that was told last."""
    for orders in range(14):
        ring = stage.ring("p q r", SMALL, seed=orders).settle()
        for number in range(3):
            ring["q"].multicast(f"m{number}", SAFE)
        ring.wait(0.003).partition("p q | r").wait_until(partial(at_barrier, ring, "p"))
        ring.crash("p", after_orders=orders).wait(1.0)
        if not ring.world["p"].is_up:
            ring.restart("p")
        ring.heal().settle()
        ends_together(ring, "p q r")


def evs_20(stage: Stage) -> None:
    """After a hole only those who go together deliver what each of them said, parts of a message and all."""
    ring = stage.ring("p q r", Settings(packet_bytes=100, grace=0)).settle()
    large = "0123456789" * 25
    ring["p"].multicast("before", AGREED)
    ring.wait(0.0015).lose(Regular, frm="r", times=ALWAYS)
    ring["r"].multicast("hole", AGREED)

    def more() -> None:
        ring["q"].multicast("sure", SAFE)
        ring["q"].multicast(large, AGREED)

    ring.when(RegularToken, frm="r", where=lambda token: token.seq == 2, do=more)
    ring.when(RegularToken, frm="q", where=lambda token: token.seq > 2, do=partial(ring.crash, "r"))
    ring.wait(2.0)
    for name in "pq":
        assert ring[name].history[-5:] == ["before", "({p q})", "sure", large, "{p q}"]
    ring.let_be().restart("r").settle()


def evs_21(stage: Stage) -> None:
    """A repeat for those of our old configuration who went elsewhere is ignored where the number is a hole."""
    ring = stage.ring("p q r s", SMALL).settle()
    kept = ring.put_aside(Regular, frm="s", times=3)
    ring["s"].multicast("s1", SAFE)
    ring.when(RegularToken, frm="s", where=lambda token: token.seq == 1, do=partial(ring.partition, "p q | r s"))
    ring.wait_until(lambda: is_in(ring, "EVS", "p q")).hand_over(kept, "p q")
    ring.let_be().settle()
    assert ring["r"].delivered == ring["s"].delivered == ["s1"]
    assert ring["p"].delivered == ring["q"].delivered == []
    assert ring.ignored("of my old configuration, but a hole for my companions")
    ring.heal().settle()


def evs_22(stage: Stage) -> None:
    """Two hundred holes between two hundred messages: the Form token is still one datagram, and the rule holds."""
    ring = stage.ring("p q r", Settings(packet_bytes=8, grace=0, window=1000, personal=400, outstanding=1000)).settle()
    ring.lose(Regular, frm="r", where=lambda packet: packet.seq % 2 == 0, times=ALWAYS)
    for number in range(400):
        ring["r"].multicast(f"{number:03}", AGREED)
    ring.when(RegularToken, frm="r", where=lambda token: token.seq > 300, do=partial(ring.crash, "r"))
    sizes: list[int] = []
    ring.world.watch_packets = lambda _, __, frame: sizes.append(len(frame))
    ring.wait(3.0)
    assert max(sizes) <= 8192
    assert ring["p"].delivered == ring["q"].delivered == ["000"], "what comes after the first hole may depend on it"
    ring.let_be().restart("r").settle()


SCENARIOS = catalogue(
    evs_00,
    evs_01,
    evs_02,
    evs_03,
    evs_04,
    evs_05,
    evs_06,
    evs_07,
    evs_08,
    evs_09,
    evs_10,
    evs_11,
    evs_12,
    evs_13,
    evs_14,
    evs_15,
    evs_16,
    evs_17,
    evs_18,
    evs_19,
    evs_20,
    evs_21,
    evs_22,
)
