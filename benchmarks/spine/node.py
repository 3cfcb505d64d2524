"""One node of the spine in a process of its own: clients at a TCP port, the journal over the Ring, a log.

Clients send messages, each behind its length, as many as they like; the answer is how many more of them are done.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import struct
import sys
from collections import deque
from pathlib import Path
from typing import Any

from benchmarks.spine.journal import Among, Journal, Kept, Records, Submit
from greenline.kernel.router import Layer
from greenline.kernel.scribe import Depth
from greenline.node.acquaintance import Acquaintance
from greenline.node.driver import Node
from greenline.node.fitting import fit
from greenline.node.log import Log
from greenline.node.sealing import Keyring
from greenline.node.transport import Link
from greenline.ring.core import RingCore
from greenline.ring.messages import AnyMessage, Ceiling, RegularToken
from greenline.trace.stream import SUFFIX, TraceWriter

LENGTH = struct.Struct(">I")
LARGEST_BUNDLE = 120_000
AT_ONCE = 16
"""Bundles of this node that are under way."""


class Hub:
    """Packs what clients ask for into bundles, and answers them."""

    def __init__(self, node: Node | None = None) -> None:
        self.node: Any = node
        self.kept = 0
        self._waiting: deque[tuple[Client, int, bytes]] = deque()
        self._under_way: deque[list[tuple[Client, int]]] = deque()

    def take(self, client: Client, count: int, messages: bytes) -> None:
        self._waiting.append((client, count, messages))

    def pump(self) -> None:
        waiting = self._waiting
        while waiting and len(self._under_way) < AT_ONCE:
            parts: list[bytes] = [b""]
            owners: list[tuple[Client, int]] = []
            size = total = 0
            while waiting and size + len(waiting[0][2]) <= LARGEST_BUNDLE:
                client, count, messages = waiting.popleft()
                parts.append(messages)
                owners.append((client, count))
                size += len(messages)
                total += count
            parts[0] = LENGTH.pack(total)
            self._under_way.append(owners)
            self.node.ask(Submit(b"".join(parts)))

    def tell(self, upcall: Any) -> None:
        match upcall:
            case Kept(_, bundle, is_ours):
                self.kept += LENGTH.unpack_from(bundle)[0]
                if is_ours:
                    for client, count in self._under_way.popleft():
                        client.answer(count)
                    asyncio.get_running_loop().call_soon(self.pump)
            case Among(members):
                print(json.dumps({"members": members}), flush=True)


class Client(asyncio.Protocol):
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._rest = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def answer(self, count: int) -> None:
        self._transport.write(LENGTH.pack(count))

    def data_received(self, data: bytes) -> None:
        """Whole messages to the hub, in pieces that fit a bundle."""
        data = self._rest + data if self._rest else data
        begin = at = count = 0
        last = len(data) - LENGTH.size
        unpack = LENGTH.unpack_from
        while at <= last:
            end = at + LENGTH.size + unpack(data, at)[0]
            if end > len(data):
                break
            if end - begin > LARGEST_BUNDLE:
                self._hub.take(self, count, data[begin:at])
                begin, count = at, 0
            at = end
            count += 1
        if count:
            self._hub.take(self, count, data[begin:at])
            self._hub.pump()
        self._rest = data[at:]


async def serve(name: str, plan: dict[str, Any]) -> None:
    addresses = {each: (host, port) for each, (host, port) in plan["addresses"].items()}
    place = Path(plan["place"]) / name
    place.mkdir(parents=True, exist_ok=True)
    link = Link(mtu=plan["mtu"])
    ring = RingCore(fit(plan["ring"], name, addresses, link))
    layers = [
        Layer("journal", 2, Journal(), int, Records),
        Layer("ring", 1, ring, AnyMessage, Ceiling, (RegularToken,)),
    ]
    hub = Hub()
    acquaintance = Acquaintance(place / "acquaintance", name)
    log = Log(place / "log", plan["delay"])
    keyring = Keyring({1: bytes.fromhex(plan["key"])}, 1)
    writer = TraceWriter(place / f"{name}-{os.getpid()}{SUFFIX}", "spine") if plan["trace"] else None
    hub.node = node = Node(
        name,
        addresses,
        layers,
        log,
        keyring,
        acquaintance=acquaintance,
        link=link,
        tell=hub.tell,
        trace=writer.add if writer else lambda _: None,
        flush=writer.flush if writer else lambda: None,
        depth=Depth.FULL if writer else Depth.CONFIGURATIONS,
    )
    loop = asyncio.get_running_loop()
    node.start()
    server = await loop.create_server(lambda: Client(hub), *plan["clients"][name])
    over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    begun_used = begun_kept = 0.0

    def mark() -> None:
        nonlocal begun_used, begun_kept
        begun_used, begun_kept = _cpu_seconds(), hub.kept

    loop.add_signal_handler(signal.SIGUSR1, mark)
    loop.add_signal_handler(signal.SIGUSR2, lambda: print(json.dumps({"so_far": hub.kept}), flush=True))
    await over.wait()
    said = {
        "kept": hub.kept - begun_kept,
        "cpu": _cpu_seconds() - begun_used,
        "refused": node.refused,
        "traffic": [node.traffic.packets_in, node.traffic.packets_out, node.traffic.forced_writes],
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "ignored": node.router.ignored,
        "stopped": node.stopped,
    }
    print(json.dumps(said), flush=True)
    server.close()
    node.close()
    if writer:
        writer.close()


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    if len(sys.argv) > 3:
        import cProfile

        cProfile.run("asyncio.run(serve(sys.argv[1], json.loads(sys.argv[2])))", sys.argv[3])
    else:
        asyncio.run(serve(sys.argv[1], json.loads(sys.argv[2])))
