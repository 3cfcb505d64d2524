"""Sites with kernels' network stacks of their own: one network namespace each, and a wire between them.

    with Lab("p q r", seed=7) as lab:
        node = subprocess.Popen(lab.command("p", ["greenline", "node", "p.toml"]))
        lab.everywhere(Faults(delay=0.01, loss=0.02))
        lab.cut("p | q r")
        lab.heal()

The far ends of all links are in a namespace of their own, the hub, that is joined to nothing else: no frame leaves the
lab, the machine's own interfaces and filters stay as they are, and deleting the namespaces deletes everything.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Self

import msgspec

from tests.lab.faults import CALM, Answer, Change, Counters, Faults

ROOT = Path(__file__).parents[2]
NAMESPACES = Path("/run/netns")
SYSCTL = Path("/proc/sys/net")
CLONE_NEWNET = 0x4000_0000
PREFIX = "greenline-lab"
PATIENCE_S = 10.0

_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count()


class Wire(Enum):
    """KERNEL is fast and can only be cut into sides; EMULATED does all that `Faults` can say, in user space."""

    KERNEL = "kernel"
    EMULATED = "emulated"


class Lab:
    """Namespaces, links and the bridge exist between `with` and its end, whatever happens inside.

    Processes belong to whoever started them: one that is still running at the end has lost its network.
    """

    def __init__(self, sites: str, wire: Wire = Wire.EMULATED, *, mtu: int = 1500, seed: object = 0) -> None:
        self.sites = sites.split()
        if not 1 <= len(set(self.sites)) == len(self.sites) <= 250:
            raise ValueError(f"sites = {sites!r}; give 1 to 250 different names")
        if bad := [site for site in self.sites if not re.fullmatch(r"[a-z0-9]{1,12}", site)]:
            raise ValueError(f"no name for a site: {bad}; use up to 12 small letters and digits")
        if not 1280 <= mtu <= 65_535:
            raise ValueError(f"mtu = {mtu}; IPv6 needs at least 1280, and a link has at most 65535")
        self.wire = wire
        self.addresses = {site: (f"10.77.0.{i}", f"fd77::{i:x}") for i, site in enumerate(self.sites, 1)}
        self._mtu = mtu
        self._seed = seed
        self._hub = f"{PREFIX}-{os.getpid()}-{next(_numbers)}"
        self._cuts: set[tuple[str, str]] = set()
        self._end = contextlib.ExitStack()

    def __enter__(self) -> Self:
        sweep()
        with contextlib.ExitStack() as undo:
            undo.callback(self._remove)
            self._make_sites()
            self._wait_for_links()
            if self.wire is Wire.KERNEL:
                self._plug([self.sites])
            else:
                self._bridge = undo.enter_context(self._started_bridge())
                self._told()
            self._end = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    def command(self, site: str, argv: list[str]) -> list[str]:
        """The command as it runs at that site. `ip` becomes the program: its pid and its signals are the program's."""
        return ["ip", "netns", "exec", self._namespace(site), *argv]

    @contextlib.contextmanager
    def inside(self, site: str) -> Iterator[None]:
        """This thread is at that site: sockets that it opens stay there, also when it has left."""
        with _visiting(self._namespace(site)):
            yield

    def link(self, a: str, b: str, faults: Faults, *, one_way: bool = False) -> None:
        """What befalls frames from a to b and, unless `one_way`, from b to a. It replaces what was said before."""
        self._known([a, b])
        self._change([(a, b, faults)] if one_way else [(a, b, faults), (b, a, faults)])

    def everywhere(self, faults: Faults) -> None:
        self._change([(*pair, faults) for pair in self._pairs()])

    def cut(self, sides: str) -> None:
        """ "p q | r s": nobody hears the other side. Whoever is not named is alone. It replaces the cuts before it.

        A site on two sides hears both; the kernel's wire cannot do that.
        """
        groups = [self._known(side.split()) for side in sides.split("|")]
        if self.wire is Wire.KERNEL:
            if sum(map(len, groups)) > len(set().union(*groups)):
                raise ValueError(f"{sides!r} has a site on two sides; that needs Wire.EMULATED")
            self._plug(groups)
        else:
            together = {(a, b) for side in groups for a in side for b in side}
            self._cut({pair for pair in self._pairs() if pair not in together})

    def one_way(self, senders: str, receivers: str) -> None:
        """Nothing goes from these to those any more; the other direction stays as it is."""
        pairs = itertools.product(self._known(senders.split()), self._known(receivers.split()))
        self._cut(self._cuts | {(a, b) for a, b in pairs if a != b})

    def heal(self) -> None:
        """End the cuts; links stay as slow and lossy as they are."""
        if self.wire is Wire.KERNEL:
            self._plug([self.sites])
        else:
            self._cut(set())

    def calm(self) -> None:
        """End the cuts and all faults."""
        self.heal()
        if self.wire is Wire.EMULATED:
            self.everywhere(CALM)

    def counters(self, sender: str | None = None, receiver: str | None = None) -> Counters:
        """Of all links, or of those from this sender, to this receiver. An overrun has no link, and is in each."""
        answer = self._asked(Change())
        chosen = (
            counters for a, b, counters in answer.links if sender in (None, _site(a)) and receiver in (None, _site(b))
        )
        return sum(chosen, Counters(overrun=answer.overrun))

    def _pairs(self) -> Iterator[tuple[str, str]]:
        return itertools.permutations(self.sites, 2)

    def _known(self, names: list[str]) -> list[str]:
        if strangers := [name for name in names if name not in self.addresses]:
            raise ValueError(f"no site is called {' or '.join(strangers)}; there are {' '.join(self.sites)}")
        return names

    def _namespace(self, site: str) -> str:
        self._known([site])
        return f"{self._hub}-{site}"

    def _make_sites(self) -> None:
        _ip("netns", [f"add {name}" for name in self._names()])
        with _visiting(self._hub):
            # The hub has no voice: no address of its own, and no say in what is bridged.
            for name in ("default", "all"):
                (SYSCTL / "ipv6/conf" / name / "disable_ipv6").write_text("1")
            for path in SYSCTL.glob("bridge/bridge-nf-call-*"):
                path.write_text("0")
        for number, site in enumerate(self.sites, 1):
            self._make_site(site, f"02:77:00:00:00:{number:02x}")

    def _make_site(self, site: str, mac: str) -> None:
        namespace = self._namespace(site)
        peer = f"peer name eth0 mtu {self._mtu} address {mac} netns {namespace}"
        _ip("link", [f"add {_port(site)} mtu {self._mtu} type veth {peer}", f"set {_port(site)} up"], self._hub)
        with _visiting(namespace):
            # There is no router to ask for, and nobody else can have our addresses: do not wait a second to be sure.
            for name in ("accept_dad", "accept_ra", "router_solicitations"):
                (SYSCTL / "ipv6/conf/eth0" / name).write_text("0")
        if self.wire is Wire.EMULATED:
            # The kernel would hand over many datagrams as one frame, to be lost as one; so let it divide them before.
            _ip("link", ["set eth0 gso_max_segs 1"], namespace)
        _ip("link", ["set lo up", "set eth0 up"], namespace)
        v4, v6 = self.addresses[site]
        _ip("address", [f"add {v4}/24 dev eth0", f"add {v6}/64 dev eth0 nodad"], namespace)
        _ip("route", ["add 224.0.0.0/4 dev eth0"], namespace)

    def _names(self) -> list[str]:
        return [self._hub, *(self._namespace(site) for site in self.sites)]

    def _remove(self) -> None:
        _delete([name for name in self._names() if (NAMESPACES / name).exists()])

    def _plug(self, sides: list[list[str]]) -> None:
        """Each side has a bridge in the kernel, and so has each site that is on none.

        Sites move one after the other; between the first and the last, some of one side do not hear each other.
        """
        named = set().union(*sides)
        sides = sides + [[site] for site in self.sites if site not in named]
        with _visiting(self._hub):
            there = {name for _, name in socket.if_nameindex()}
        missing = [name for name in map(_side, range(len(sides))) if name not in there]
        # Without snooping a multicast goes to everybody, as on the emulated wire.
        lines = [f"add {name} mtu {self._mtu} type bridge forward_delay 0 mcast_snooping 0" for name in missing]
        lines += [f"set {name} up" for name in missing]
        lines += [f"set {_port(site)} master {_side(number)}" for number, side in enumerate(sides) for site in side]
        _ip("link", lines, self._hub)

    def _wait_for_links(self) -> None:
        """The kernel finds out by and by that a link is up; until then no bridge takes it and IPv6 does not use it."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_up():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the links of the lab are not up after {PATIENCE_S:g} s")
            time.sleep(0.002)

    def _is_up(self) -> bool:
        shown = subprocess.run(["ip", "-netns", self._hub, "-json", "link"], capture_output=True, check=True).stdout
        links = msgspec.json.decode(shown, type=list[_Shown])
        is_up = all(link.operstate == "UP" for link in links if link.ifname != "lo")
        return is_up and all(map(self._can_bind, self.sites))

    def _can_bind(self, site: str) -> bool:
        with self.inside(site), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((self.addresses[site][1], 0))
            except OSError:
                return False
            return True

    @contextlib.contextmanager
    def _started_bridge(self) -> Iterator[subprocess.Popen[bytes]]:
        argv = [sys.executable, "-m", "tests.lab.bridge", str(self._seed), *map(_port, self.sites)]
        command = ["ip", "netns", "exec", self._hub, *argv]
        pipe = subprocess.PIPE
        # In a process group of its own, so that an interrupted test can still end in an orderly network.
        with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, process_group=0) as bridge:
            try:
                yield bridge
            finally:
                bridge.kill()

    def _cut(self, cuts: set[tuple[str, str]]) -> None:
        self._asked(Change(cuts=[(_port(a), _port(b)) for a, b in sorted(cuts)]))
        self._cuts = cuts

    def _change(self, links: list[tuple[str, str, Faults]]) -> None:
        self._asked(Change(links=[(_port(a), _port(b), faults) for a, b, faults in links]))

    def _asked(self, change: Change) -> Answer:
        if self.wire is Wire.KERNEL:
            raise ValueError("the kernel's wire has no faults and no counters, only cut and heal; use Wire.EMULATED")
        assert self._bridge.stdin is not None
        self._bridge.stdin.write(msgspec.json.encode(change) + b"\n")
        self._bridge.stdin.flush()
        return self._told()

    def _told(self) -> Answer:
        assert self._bridge.stdout is not None
        line = self._bridge.stdout.readline()
        if not line:
            raise RuntimeError("the bridge of the lab has died; its last words are on stderr")
        return msgspec.json.decode(line, type=Answer)


@functools.cache
def why_not() -> str | None:
    """Why there can be no lab here, and what to do; None if there can."""
    if shutil.which("ip") is None:
        return "the network lab needs the `ip` command: install iproute2"
    if os.geteuid() != 0:
        return "the network lab makes network namespaces: run the tests as root"
    # Only rights are tried here: where they are given, a lab that cannot be made is a failure and no reason to skip.
    trial = f"{PREFIX}-{os.getpid()}-{next(_numbers)}"
    try:
        _ip("netns", [f"add {trial}"])
        _ip("link", ["add left type veth peer name right", "add bridge type bridge"], trial)
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.split())
        return f"no network namespaces, veth pairs or bridges here ({said}): run on a machine that allows them"
    finally:
        _delete([trial])
    return None


def sweep() -> None:
    """Remove what a killed run has left: the namespaces of processes that are no more."""
    found = [(path.name, re.match(rf"{PREFIX}-(\d+)-", path.name)) for path in NAMESPACES.glob(f"{PREFIX}-*")]
    _delete([name for name, match in found if match and not Path("/proc", match[1]).exists()])


@contextlib.contextmanager
def _visiting(namespace: str) -> Iterator[None]:
    with Path("/proc/thread-self/ns/net").open() as home, (NAMESPACES / namespace).open() as there:
        _enter(there.fileno())
        try:
            yield
        finally:
            _enter(home.fileno())


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"cannot enter a network namespace: {os.strerror(ctypes.get_errno())}")


def _ip(what: str, lines: list[str], namespace: str | None = None) -> None:
    """Many `ip` commands about one kind of thing as one process, since a lab is made for each test."""
    command = ["ip", *(["-netns", namespace] if namespace else []), "-batch", "-"]
    batch = "".join(f"{what} {line}\n" for line in lines)
    subprocess.run(command, input=batch, text=True, capture_output=True, check=True)


def _delete(namespaces: list[str]) -> None:
    for name in namespaces:
        # Another run may be sweeping at the same time; all that matters is that it is gone.
        gone = subprocess.run(["ip", "netns", "delete", name], capture_output=True, text=True)
        if (NAMESPACES / name).exists():
            raise OSError(f"the namespace {name} cannot be deleted: {gone.stderr.strip()}")


class _Shown(msgspec.Struct):
    """What we read of `ip -json link`."""

    ifname: str
    operstate: str


def _side(number: int) -> str:
    return f"side{number}"


def _port(site: str) -> str:
    return f"to-{site}"


def _site(port: str) -> str:
    return port.removeprefix("to-")
