"""Ordering, token, flow control and packets: what befalls a ring whose members stay the same."""

from __future__ import annotations

from functools import partial
from random import Random

from greenline.kernel.ports import Service
from greenline.ring.messages import AttemptJoin, Hurry, Join, Probe, Regular, RegularToken
from greenline.ring.settings import Settings
from greenline.simulation.scenarios.stage import Stage, catalogue, configurations, processor, repeats
from greenline.simulation.tampering import ALWAYS, Where

SAFE, AGREED = Service.SAFE, Service.AGREED
SIXTEEN = "p q r s t u v w x y z a b c d e"
SMALL = Settings(packet_bytes=8)
"""One message a packet."""
HOP_S = 0.001
LONGEST_WAIT_S = 0.13
"""For a token that is sent again: the idle one's timeout, and three rotations."""


def ring_01(stage: Stage) -> None:
    """A ring of one delivers safe messages at once; when a second boots, nothing is left for the transition."""
    ring = stage.ring("p q", down="q").wait(0.1)
    said = [f"m{n}" for n in range(100)]
    for text in said:
        ring["p"].multicast(text, SAFE)
    assert ring["p"].history == ["{p}", *said], "at once"

    ring.start("q").settle()
    assert ring["p"].history == ["{p}", *said, "({p})", "{p q}"]


def ring_02(stage: Stage) -> None:
    """Sixteen processors that boot together become one ring in at most two attempts, with one order under load."""
    ring = stage.ring(SIXTEEN).wait(1.0)
    assert {row.detail for row in ring.rows if row.kind == "phase"} >= {"Form", "EVS"}
    attempts = [row for row in ring.rows if row.kind == "phase" and row.process == "q" and row.detail == "Form"]
    assert len(attempts) <= 2
    for name in ring.names:
        for number in range(10):
            ring[name].multicast(f"{name}{number}", AGREED)
    ring.settle()
    assert len(ring["p"].delivered) == 160
    assert len({tuple(ring[name].delivered) for name in ring.names}) == 1, "one order"


def ring_03(stage: Stage) -> None:
    """One packet in twenty is lost: everything is delivered, nothing changes, and little is repeated."""
    ring = stage.ring(SIXTEEN, Settings(packet_bytes=80)).settle()
    chance = Random("RING-03")
    ring.lose(Regular, where=lambda _: chance.random() < 0.05, times=ALWAYS)
    for number in range(10_000):
        name = ring.names[number % 16]
        ring[name].multicast(str(number), SAFE if number % 3 else AGREED)
        if number % 500 == 499:
            ring.wait(0.05)
    ring.settle()
    packets = processor(ring, "p").ring.high_seq
    assert all(len(ring[name].delivered) == 10_000 for name in ring.names)
    assert len(configurations(ring, "p")) == 2, "no configuration change"
    lost = ring.world.network.counts["tampered with"]
    assert repeats(ring) <= 1.2 * lost + 0.08 * packets, "each loss costs about one repeat, and many lose the same"


def ring_04(stage: Stage) -> None:
    """Packets that come three times and out of order are delivered once, and nothing is asked for."""
    ring = stage.ring("p q r s", SMALL).settle()
    ring.copy(Regular, after=(0.0015, 0.003), times=ALWAYS)
    for number in range(50):
        ring["q"].multicast(str(number), AGREED)
    ring.settle()
    assert all(ring[name].delivered == [str(number) for number in range(50)] for name in ring.names)
    assert repeats(ring) == 0
    assert ring.ignored("a packet that I have")


def ring_05(stage: Stage) -> None:
    """A token that is lost once, at any hop, is sent again: no configuration change, and only a short wait."""
    for hop in "pqrs":
        for rotation in range(3):
            ring = stage.ring("p q r s", seed=rotation).settle()
            ring.lose(RegularToken, frm=hop, skip=rotation)
            ring["p"].multicast("x", SAFE)
            ring.wait(LONGEST_WAIT_S)
            assert all(ring[name].delivered == ["x"] for name in ring.names), "soon"
            ring.wait(2 * Settings().idle_hold)  # the one that is lost may be idle again
            assert repeats(ring, "token")
            assert len(configurations(ring, "p")) == 2, "no configuration change"
            ring.settle()


def ring_06(stage: Stage) -> None:
    """A hop that loses the token as often as it is sent costs exactly one change, of the same members."""
    ring = stage.ring("p q r s").settle()
    ring["q"].multicast("x", SAFE)
    ring.lose(RegularToken, frm="r", to="s", where=lambda token: token.conf_id.counter == 2, times=ALWAYS).settle()
    assert all(configurations(ring, name)[1:] == ["{p q r s}"] * 2 for name in ring.names)
    assert all(ring[name].delivered == ["x"] for name in ring.names)


def ring_07(stage: Stage) -> None:
    """A copy of the token, a hop, a rotation or three rotations late, is not served."""
    for late in (1, 4, 12):
        ring = stage.ring("p q r s").settle()
        ring.copy(RegularToken, frm="q", to="r", after=(late * HOP_S,), times=3)
        for name in ring.names:
            for number in range(30):
                ring[name].multicast(f"{name}{number}", AGREED)
        ring.settle()
        assert len({tuple(ring[name].delivered) for name in ring.names}) == 1
        assert ring.ignored("a token that I have seen")
        assert len(configurations(ring, "p")) == 2


def ring_08(stage: Stage) -> None:
    """A token that overtakes the messages of its sender: who waits a rotation before it asks, asks for nothing."""
    heard = []
    for grace in (1, 0):
        ring = stage.ring("p q r", Settings(packet_bytes=8, grace=grace)).settle()
        ring.delay(Regular, by=0.0015, times=ALWAYS)
        for number in range(10):
            ring["q"].multicast(str(number), AGREED)
        ring.settle()
        assert (repeats(ring) == 0) == bool(grace)
        heard.append(ring["r"].delivered)
    assert heard[0] == heard[1]


def ring_14(stage: Stage) -> None:
    """Who has a gap and says more does not raise aru over its gap."""
    ring = stage.ring("p q r", Settings(packet_bytes=8, grace=0)).settle()
    ring.lose(Regular, to="q", where=lambda packet: packet.seq == 1, times=2)
    ring["p"].multicast("m1", AGREED)
    for number in range(5):
        ring["q"].multicast(f"q{number}", AGREED)
    tokens = ring.watch(RegularToken, frm="q")
    ring.settle()
    first = next(token for token in tokens if token.seq == 6)
    assert (first.aru, first.aru_id) == (0, "q"), "its gap"
    assert all(ring[name].delivered == ["m1", "q0", "q1", "q2", "q3", "q4"] for name in ring.names)


def ring_15(stage: Stage) -> None:
    """Nobody delivers a safe message before the last member has it, however often others raise aru."""
    ring = stage.ring("p q r", Settings(packet_bytes=8, grace=0)).settle()
    ring.lose(Regular, to="p q r", where=lambda packet: packet.seq == 6, times=2)
    ring.lose(Regular, to="q", where=lambda packet: packet.seq == 6, times=3)
    for number in range(1, 11):
        ring["p"].multicast(f"m{number:02}", SAFE)
    for _ in range(400):
        ring.wait(0.0005)
        if processor(ring, "q").ring.my_aru < 6:
            assert all(len(ring[name].delivered) < 6 for name in ring.names), "q lacks the sixth"
    ring.settle()
    assert all(len(ring[name].delivered) == 10 for name in ring.names)


def ring_16(stage: Stage) -> None:
    """Two that lowered aru one after the other: when both have recovered it reaches seq again."""
    ring = stage.ring("p q r", Settings(packet_bytes=8, grace=0, fail_to_receive=ALWAYS)).settle()
    ring.lose(Regular, to="r", where=lambda packet: packet.seq == 4, times=1)
    ring.lose(Regular, to="q", where=lambda packet: packet.seq == 6, times=3)
    ring.lose(Regular, to="r", where=lambda packet: packet.seq == 6, times=4)
    for number in range(1, 9):
        ring["p"].multicast(f"m{number}", SAFE)
    ring.wait_until(lambda: all(len(ring[name].delivered) == 8 for name in ring.names), at_most=0.2).settle()


def ring_17(stage: Stage) -> None:
    """A member that cannot hear the one who always answers first gets its messages from another."""
    ring = stage.ring("p q r").settle()
    ring.lose(Regular, frm="q", to="p", times=ALWAYS)
    for number in range(50):
        ring["q"].multicast(str(number), AGREED)
    ring.wait_until(lambda: ring["p"].delivered == [str(number) for number in range(50)], at_most=0.3)
    assert len(configurations(ring, "p")) == 2, "no configuration change"
    ring.settle()


def ring_18(stage: Stage) -> None:
    """Fifteen lose the same two hundred packets: each is repeated once a rotation at most, and tokens stay small."""
    ring = stage.ring(SIXTEEN, Settings(packet_bytes=8, window=256, personal=200)).settle()
    ring.lose(Regular, where=lambda packet: packet.seq <= 200, times=200 * 15)
    sizes: list[int] = []
    ring.world.watch_packets = lambda _, to, frame: sizes.append(len(frame)) if len(to) == 1 else None
    for number in range(200):
        ring["p"].multicast(f"{number:03}", AGREED)
    ring.settle()
    assert all(len(ring[name].delivered) == 200 for name in ring.names)
    assert repeats(ring) <= 2 * 200
    assert max(sizes) < 1400


def ring_19(stage: Stage) -> None:
    """A packet that comes again after everybody has it is not kept, and not delivered."""
    ring = stage.ring("p q r").settle()
    ring.copy(Regular, after=(0.5,), times=ALWAYS)
    ring["p"].multicast("x", SAFE)
    ring.settle()
    assert all(ring[name].delivered == ["x"] for name in ring.names)
    assert all(not processor(ring, name).ring.store for name in ring.names)


def ring_20(stage: Stage) -> None:
    """A receiver that lacks one message for long, then most, slows everybody down; nobody keeps more than the bound."""
    settings = Settings(packet_bytes=8, outstanding=40, window=40, fail_to_receive=ALWAYS)
    ring = stage.ring("p q r", settings).settle()
    for number in range(1000):
        ring["p"].multicast(f"{number:03}", AGREED)
    chance = Random("RING-20")
    tokens = ring.watch(RegularToken)
    bad_times: tuple[Where, ...] = (lambda packet: packet.seq == 2, lambda _: chance.random() < 0.6)
    for where in bad_times:
        ring.lose(Regular, to="r", where=where, times=ALWAYS)
        for _ in range(500):
            ring.wait(0.002)
            kept = max(len(processor(ring, name).ring.store) for name in ring.names)
            assert kept <= settings.outstanding + settings.window, f"{kept} packets are kept"
        assert max(token.seq - token.aru for token in tokens) <= settings.outstanding
        ring.let_be()
    ring.settle()
    assert all(len(ring[name].delivered) == 1000 for name in ring.names), "nothing is lost"


def ring_21(stage: Stage) -> None:
    """Beside one who has a great deal to say, who has little says it within two rotations."""
    ring = stage.ring(SIXTEEN, Settings(packet_bytes=8, most_queued=100_000)).settle()
    for number in range(3000):
        ring["p"].multicast(f"{number % 1000:03}", AGREED)
    ring.wait(0.3)
    for name in ring.names[1:]:
        ring[name].multicast(f"!{name}", AGREED)
    visits = {name: processor(ring, name).ring.last_token_seq for name in ring.names[1:]}
    while waiting := [name for name in visits if processor(ring, name).queue.waiting]:
        ring.wait(0.001)
        for name in waiting:
            assert processor(ring, name).ring.last_token_seq - visits[name] <= 2 * 16
    ring.settle()


def ring_22(stage: Stage) -> None:
    """Who gets tokens but no messages is left behind, and the others do not try to join it again and again."""
    ring = stage.ring("p q r").settle()
    ring.lose(Regular, AttemptJoin, Join, Probe, to="p", times=ALWAYS)
    ring["q"].multicast("x", SAFE)
    ring.wait_until(lambda: ring["q"].delivered == ring["r"].delivered == ["x"]).wait(5.0)
    assert configurations(ring, "q")[-1] == configurations(ring, "r")[-1] == "{q r}"
    assert configurations(ring, "p")[-1] == "{p}"
    before = len(configurations(ring, "q"))
    ring.wait(20.0)
    assert len(configurations(ring, "q")) == before, "it does not flap"
    ring.let_be().heal().settle()


def ring_23(stage: Stage) -> None:
    """A lone sender wakes an idle ring; if its call is lost, its message goes when the token comes by itself."""
    ring = stage.ring("p q r").settle()
    ring["r"].multicast("quick", AGREED)
    ring.wait(0.010)
    assert ring["p"].delivered == ["quick"], "it did not wait for a timer"

    ring.wait(0.5).lose(Hurry, times=ALWAYS)
    ring["r"].multicast("slow", AGREED)
    ring.wait(Settings().idle_hold + 6 * HOP_S)
    assert ring["p"].delivered == ["quick", "slow"]
    ring.settle()


def ring_35(stage: Stage) -> None:
    """A token that comes just before it counts as lost changes nothing; one that comes just after is consumed."""
    for late, changes in ((-0.005, 0), (0.005, 1)):
        ring = stage.ring("p q r", Settings(retransmits=0)).settle()
        ring["p"].multicast("x", AGREED)
        ring.wait(0.001)
        loss = processor(ring, "q").pace.token_retransmit(is_held=False)
        ring.delay(RegularToken, frm="q", by=loss + late).settle()
        assert len(configurations(ring, "p")) == 2 + changes
        if changes:
            reasons = {row.detail for row in ring.rows if row.kind == "ignored"}
            assert reasons & {"the token of a ring that I gave up", "what I have of my old configuration is reported"}
        assert all(ring[name].delivered == ["x"] for name in ring.names)


def pack_01(stage: Stage) -> None:
    """Runs of safe and agreed messages share packets with their own kind only, and keep their order."""
    ring = stage.ring("p q").settle()
    packets = ring.watch(Regular)
    said = [f"{number:03}" for number in range(1000)]
    for number, text in enumerate(said):
        ring["p"].multicast(text, SAFE if number // 100 % 2 else AGREED)
    ring.settle()
    assert ring["q"].delivered == said
    assert 10 <= len(packets) <= 20, "a packet or two for each run of a hundred"


def pack_02(stage: Stage) -> None:
    """A message of which some parts were sent when the configuration changed is sent whole in the next one."""
    ring = stage.ring("p q r", Settings(packet_bytes=1000)).settle()
    large = "0123456789" * 5_000
    ring["p"].multicast(large, SAFE)
    ring.lose(RegularToken, frm="p", where=lambda token: token.seq > 0, times=5).settle()
    assert all(ring[name].history[2:] == ["{p q r}", "({p q r})", "{p q r}", large] for name in "pqr")


def pack_03(stage: Stage) -> None:
    """The place of a safe message in parts is that of its last one: it goes with the transitional configuration."""
    ring = stage.ring("p q r", Settings(packet_bytes=100)).settle()
    large = "0123456789" * 30
    ring["p"].multicast("before", AGREED)
    ring["p"].multicast(large, SAFE)
    ring.when(RegularToken, frm="p", where=lambda token: token.seq > 3, do=lambda: ring.partition("p q | r"))
    ring.settle()
    assert ring["q"].history[-4:] == ["before", "({p q})", large, "{p q}"]
    ring.heal().settle()


def pack_04(stage: Stage) -> None:
    """Who crashes after it passed the token and before it said the rest leaves holes; what came before is delivered."""
    ring = stage.ring("p q r", Settings(packet_bytes=8, accelerated=4)).settle()
    for number in range(10):
        ring["q"].multicast(f"m{number}", AGREED)
    soon = partial(ring.crash, "q", after_orders=1)
    ring.when(RegularToken, frm="q", where=lambda token: token.seq >= 10, do=soon, at_once=True)
    ring.wait(2.0)
    said = [f"m{number}" for number in range(6)]
    assert ring["p"].history[-9:] == ["{p q r}", *said, "({p r})", "{p r}"], "four came after the token, or never"
    assert ring["r"].history == ["{r}", "({r})", *ring["p"].history[-9:]]
    ring.let_be().restart("q").settle()


def pack_05(stage: Stage) -> None:
    """Who crashes in the middle of sending to one after the other: those who got it give it to the others."""
    ring = stage.ring("p q r s").settle()
    ring.lose(Regular, frm="p", to="r s", times=2, do=lambda: ring.crash("p") if ring.world["p"].is_up else None)
    ring["p"].multicast("x", AGREED)
    ring.wait(2.0)
    assert all("x" in ring[name].delivered for name in "qrs")
    ring.restart("p").settle()


def pack_06(stage: Stage) -> None:
    """The window in bytes keeps what is said in one rotation below what a receiver's buffer holds."""
    settings = Settings(packet_bytes=60_000, window_bytes=104_000, personal=20)
    ring = stage.ring("p q r", settings).settle()
    said: dict[int, int] = {}

    def count(_: str, to: tuple[str, ...], frame: bytes) -> None:
        if len(to) > 1:
            rotation = processor(ring, "p").ring.last_token_seq
            said[rotation] = said.get(rotation, 0) + len(frame)

    ring.world.watch_packets = count
    for number in range(60):
        ring["p"].multicast(f"{number:02}" + "x" * 25_000, AGREED)
    ring.settle()
    assert max(said.values()) <= settings.window_bytes + 2 * settings.packet_bytes
    assert len(ring["q"].delivered) == 60


def ring_46(stage: Stage) -> None:
    """A token that is late is sent again, but what was sent again does not go round for ever behind it."""
    for by in (0.03, 0.05, 0.09):
        ring = stage.ring("p q r").settle()
        ring.delay(RegularToken, frm="q", by=by)
        for number in range(300):
            ring["p"].multicast(str(number), AGREED)
            ring.wait(0.002)
        assert repeats(ring, "token") <= 8
        assert len(configurations(ring, "p")) == 2
        ring.settle()


SCENARIOS = catalogue(
    ring_01,
    ring_02,
    ring_03,
    ring_04,
    ring_05,
    ring_06,
    ring_07,
    ring_08,
    ring_14,
    ring_15,
    ring_16,
    ring_17,
    ring_18,
    ring_19,
    ring_20,
    ring_21,
    ring_22,
    ring_23,
    ring_35,
    pack_01,
    pack_02,
    pack_03,
    pack_04,
    pack_05,
    pack_06,
    ring_46,
)
