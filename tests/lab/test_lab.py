"""The lab does to datagrams what it was asked to do, and nothing else."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import permutations

import pytest

from tests.lab.bridge import SO_RCVBUFFORCE
from tests.lab.faults import Counters, Faults
from tests.lab.sites import NAMESPACES, PREFIX, Lab, Wire, sweep, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

PORT = 7400
PATIENCE_S = 10.0
GROUPS = ("239.77.0.1", "ff05::77")
FAMILIES = (socket.AF_INET, socket.AF_INET6)
HEADERS = (20 + 8, 40 + 8)

# From linux/udp.h, linux/in.h and linux/in6.h; the socket module does not name them.
UDP_SEGMENT = 103
IP_MTU_DISCOVER = 10
IPV6_MTU_DISCOVER = 23
ALWAYS = 2


class People:
    """Somebody with a socket at each site, who can speak to one or to the group."""

    def __init__(self, lab: Lab, version: int) -> None:
        self.lab = lab
        self.version = version
        self._sockets = {site: self._opened(site) for site in lab.sites}

    def _opened(self, site: str) -> socket.socket:
        with self.lab.inside(site):
            end = socket.socket(FAMILIES[self.version], socket.SOCK_DGRAM)
            end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
            end.bind(("", PORT))
            group = socket.inet_pton(FAMILIES[self.version], GROUPS[self.version])
            index = socket.if_nametoindex("eth0")
        end.settimeout(PATIENCE_S)
        # Not in fragments: what is too large for the link is refused.
        if self.version == 0:
            end.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, ALWAYS)
            end.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + struct.pack("=4si", b"", index))
            end.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        else:
            end.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, ALWAYS)
            end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group + struct.pack("=i", index))
            end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
            end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 2)
        return end

    def __getitem__(self, site: str) -> socket.socket:
        return self._sockets[site]

    def say(self, sender: str, receiver: str, text: bytes) -> None:
        self[sender].sendto(text, (self.lab.addresses[receiver][self.version], PORT))

    def say_to_all(self, sender: str, text: bytes) -> None:
        self[sender].sendto(text, (GROUPS[self.version], PORT))

    def heard(self, site: str, last: bytes) -> list[bytes]:
        """All up to that one."""
        texts = [self[site].recv(65_536)]
        while texts[-1] != last:
            texts.append(self[site].recv(65_536))
        return texts

    def all_speak(self, word: bytes) -> None:
        for sender, receiver in permutations(self.lab.sites, 2):
            self.say(sender, receiver, b"%s %s" % (word, sender.encode()))

    def get_to_know(self) -> None:
        """Later silence then means that a datagram was stopped, and not that its receiver was looked for."""
        self.all_speak(b"hello")
        for site in self.lab.sites:
            assert {self[site].recv(100) for _ in self.lab.sites[1:]} == hello_to(site, self.lab)

    def leave(self) -> None:
        for each in self._sockets.values():
            each.close()


def hello_to(site: str, lab: Lab) -> set[bytes]:
    return {b"hello " + other.encode() for other in lab.sites if other != site}


@pytest.fixture(scope="module", params=Wire, ids=lambda wire: wire.value)
def both_wires(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with Lab("p q r s", request.param) as lab:
        yield lab


@pytest.fixture(params=(0, 1), ids=("v4", "v6"))
def people(request: pytest.FixtureRequest, both_wires: Lab) -> Iterator[People]:
    people = People(both_wires, request.param)
    people.get_to_know()
    yield people
    both_wires.calm()
    people.leave()


@pytest.fixture(scope="module")
def pair() -> Iterator[Lab]:
    with Lab("p q") as lab:
        yield lab


@pytest.fixture
def couple(pair: Lab) -> Iterator[People]:
    people = People(pair, 0)
    people.get_to_know()
    yield people
    pair.calm()
    people.leave()


def test_a_group_is_heard_by_everybody_else(people: People) -> None:
    people.say_to_all("q", b"all")
    assert [people.heard(site, b"all") for site in "prs"] == [[b"all"]] * 3


def test_a_cut_is_between_the_sides_and_nowhere_else(people: People) -> None:
    people.lab.cut("r | p q")
    people.all_speak(b"cut")
    people.say_to_all("p", b"cut all")
    people.lab.heal()
    people.all_speak(b"healed")

    # Each pair keeps its order, so what was stopped would have come before what was said after the healing.
    heard = {site: [people[site].recv(100) for _ in range(3)] for site in "rs"}
    assert {site: set(texts) for site, texts in heard.items()} == {
        "r": {b"healed p", b"healed q", b"healed s"},
        "s": {b"healed p", b"healed q", b"healed r"},
    }
    assert {people["p"].recv(100) for _ in range(4)} == {b"cut q", b"healed q", b"healed r", b"healed s"}
    assert {people["q"].recv(100) for _ in range(5)} == {b"cut p", b"cut all", b"healed p", b"healed r", b"healed s"}


def largest_passes_and_one_more_byte_does_not(people: People, mtu: int) -> None:
    text = os.urandom(mtu - HEADERS[people.version])
    people.say("p", "q", text)
    assert people["q"].recv(65_536) == text
    with pytest.raises(OSError, match="Message too long"):
        people.say("p", "q", text + b"x")


def test_the_largest_datagram_of_a_link_passes_whole(people: People) -> None:
    largest_passes_and_one_more_byte_does_not(people, 1500)


@pytest.mark.parametrize("wire", Wire)
def test_a_lab_can_have_large_frames(wire: Wire) -> None:
    with Lab("p q", wire, mtu=9000) as lab:
        people = People(lab, 0)
        largest_passes_and_one_more_byte_does_not(people, 9000)
        people.leave()


def test_datagrams_that_the_kernel_divides_arrive_one_by_one(people: People) -> None:
    text = os.urandom(10 * 1400 + 77)
    people["p"].setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1400)
    people.say("p", "q", text)
    assert [people["q"].recv(65_536) for _ in range(11)] == [text[at : at + 1400] for at in range(0, len(text), 1400)]


def test_each_of_the_divided_datagrams_has_its_own_luck(couple: People) -> None:
    """If the bridge saw one large frame, all of them would be lost, or none."""
    before = couple.lab.counters("p", "q").lost
    couple.lab.link("p", "q", Faults(loss=0.5))
    couple["p"].setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 100)
    couple.say("p", "q", bytes(40 * 100))
    couple.lab.calm()
    couple.say("p", "q", b"end")
    *heard, _ = couple.heard("q", b"end")
    assert 0 < len(heard) < 40
    assert len(heard) + couple.lab.counters("p", "q").lost - before == 40


def test_a_connection_carries_much_in_both_directions(pair: Lab) -> None:
    """TCP checks its sums, hands large pieces to the link, and its own acknowledgements come back."""
    text = os.urandom(2 << 20)
    with pair.inside("q"):
        server = socket.create_server(("", PORT))
    with pair.inside("p"):
        client = socket.create_connection((pair.addresses["q"][0], PORT), PATIENCE_S)
    taken, _ = server.accept()
    with server, client, taken:
        taken.setblocking(False)
        sent, back = 0, b""
        while len(back) < len(text):
            readable, writable, _ = select.select([taken], [client] if sent < len(text) else [], [], PATIENCE_S)
            assert readable or writable
            if writable:
                sent += client.send(text[sent : sent + 65_536])
            if readable:
                back += taken.recv(1 << 20)
    assert back == text


def test_one_way_the_other_way_is_open(couple: People) -> None:
    couple.lab.one_way("p", "q")
    couple.say("p", "q", b"stopped")
    couple.say("q", "p", b"open")
    assert couple.heard("p", b"open") == [b"open"]

    couple.lab.heal()
    couple.say("p", "q", b"healed")
    assert couple.heard("q", b"healed") == [b"healed"]


def test_a_site_on_two_sides_hears_both() -> None:
    with Lab("p q r") as lab:
        people = People(lab, 0)
        people.get_to_know()
        lab.cut("p q | q r")
        people.all_speak(b"cut")
        lab.heal()
        people.all_speak(b"healed")
        assert {people["p"].recv(100) for _ in range(3)} == {b"cut q", b"healed q", b"healed r"}
        assert {people["q"].recv(100) for _ in range(4)} == {b"cut p", b"cut r", b"healed p", b"healed r"}
        people.leave()


def test_a_delay_is_at_least_what_was_asked_and_keeps_the_order(couple: People) -> None:
    couple.lab.link("p", "q", Faults(delay=0.05), one_way=True)
    texts = [b"%d" % number for number in range(100)]
    start = time.monotonic()
    for text in texts:
        couple.say("p", "q", text)
    assert couple.heard("q", texts[-1]) == texts
    assert time.monotonic() - start >= 0.05


def test_what_is_under_way_is_not_overtaken_when_the_delay_ends(couple: People) -> None:
    couple.lab.link("p", "q", Faults(delay=0.05))
    couple.say("p", "q", b"slow")
    couple.lab.calm()
    couple.say("p", "q", b"fast")
    assert couple.heard("q", b"fast") == [b"slow", b"fast"]


def test_a_cut_takes_what_is_under_way(couple: People) -> None:
    couple.lab.link("p", "q", Faults(delay=60.0))
    couple.say("p", "q", b"under way")
    couple.lab.cut("p | q")
    couple.lab.calm()
    couple.say("p", "q", b"after")
    assert couple.heard("q", b"after") == [b"after"]


def numbers_heard(lab: Lab, faults: Faults, many: int) -> list[int]:
    """What q hears of so many numbered datagrams."""
    people = People(lab, 0)
    people.get_to_know()
    lab.link("p", "q", faults)
    for number in range(many):
        people.say("p", "q", b"%d" % number)
    lab.calm()
    people.say("p", "q", b"end")
    heard = [int(text) for text in people.heard("q", b"end")[:-1]]
    people.leave()
    return heard


def test_a_seed_decides_what_is_lost() -> None:
    heard = []
    for seed in (1, 1, 2):
        with Lab("p q", seed=seed) as lab:
            heard.append(numbers_heard(lab, Faults(loss=0.3), 2000))
            assert lab.counters().overrun == 0
            assert lab.counters("p", "q").lost == 2000 - len(heard[-1])
    assert heard[0] == heard[1] != heard[2]
    assert 1200 < len(heard[0]) < 1600
    assert heard[0] == sorted(set(heard[0]))


def test_some_come_twice(pair: Lab) -> None:
    before = pair.counters("p", "q").duplicated
    heard = numbers_heard(pair, Faults(duplicate=0.2), 500)
    assert sorted(set(heard)) == list(range(500))
    assert len(heard) - 500 == pair.counters("p", "q").duplicated - before
    assert 50 < len(heard) - 500 < 150


@pytest.mark.parametrize(
    "faults",
    [Faults(delay=0.02, reorder=0.2), Faults(reorder=0.2), Faults(delay=0.02, jitter=0.02)],
    ids=("skips its delay", "is held", "jitter"),
)
def test_some_overtake_others_and_none_is_lost(couple: People, faults: Faults) -> None:
    couple.lab.link("p", "q", faults)
    for number in range(500):
        couple.say("p", "q", b"%d" % number)
    heard = [int(couple["q"].recv(100)) for _ in range(500)]
    assert heard != sorted(heard)
    assert sorted(heard) == list(range(500))


def test_looking_for_a_neighbour_is_never_lost() -> None:
    """Nor does it draw from the chances; or each seed would be a different story on a busier day."""
    with Lab("p q") as lab:
        lab.everywhere(Faults(loss=1.0))
        people = People(lab, 0)
        people.say("p", "q", b"where are you?")
        deadline = time.monotonic() + PATIENCE_S
        while lab.counters("p", "q").lost == 0:
            assert time.monotonic() < deadline
        assert lab.counters("q", "p").forwarded > 0
        people.leave()


def test_signals_reach_a_program_at_its_site(pair: Lab) -> None:
    program = "import socket, sys; print(socket.if_nameindex(), flush=True); sys.stdin.read()"
    command = pair.command("p", [sys.executable, "-c", program])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert "eth0" in started.stdout.readline()
        started.terminate()
    assert started.returncode == -signal.SIGTERM


def left() -> list[str]:
    return [path.name for path in NAMESPACES.glob(f"{PREFIX}-{os.getpid()}-*")]


def accident(wire: Wire) -> None:
    before, links = left(), socket.if_nameindex()
    with Lab("p q", wire):
        assert len(left()) == len(before) + 3
        assert socket.if_nameindex() == links
        raise ZeroDivisionError


@pytest.mark.parametrize("wire", Wire)
def test_nothing_is_left_even_after_an_accident(wire: Wire) -> None:
    before, links = left(), socket.if_nameindex()
    with pytest.raises(ZeroDivisionError):
        accident(wire)
    assert left() == before
    assert socket.if_nameindex() == links


def test_what_a_killed_run_left_is_swept_away() -> None:
    program = (
        "import os, signal; from tests.lab.sites import Lab\n"
        "with Lab('p q') as lab: print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    pid = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip()
    assert len(list(NAMESPACES.glob(f"{PREFIX}-{pid}-*"))) == 3
    before = left()
    sweep()
    assert list(NAMESPACES.glob(f"{PREFIX}-{pid}-*")) == []
    assert left() == before


def test_a_mistake_is_told_with_what_would_work(pair: Lab) -> None:
    with pytest.raises(ValueError, match="no site is called x; there are p q"):
        pair.cut("p | x")
    with pytest.raises(ValueError, match="give one between 0 and 1"):
        Faults(loss=30)
    with pytest.raises(ValueError, match="up to 12 small letters"):
        Lab("p Q")
    with Lab("p q r", Wire.KERNEL) as lab:
        with pytest.raises(ValueError, match=r"use Wire\.EMULATED"):
            lab.everywhere(Faults(loss=0.1))
        with pytest.raises(ValueError, match=r"needs Wire\.EMULATED"):
            lab.cut("p q | q r")


def test_counters_add_up() -> None:
    assert Counters(1, 2, 3, 4, 5, 6) + Counters(forwarded=1, overrun=1) == Counters(2, 2, 3, 4, 5, 7)
