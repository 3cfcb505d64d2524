"""Ports of this machine for nodes that run beside each other.

A port that is free now may be somebody's a moment later: another cluster's that is made at the same time, or that of
any connection, since the system hands those out from above `LAST`. So they are taken from below, in blocks, and a block
is a process's own for as long as it lives: it holds the block's first port.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Iterator
from itertools import islice

FIRST, LAST = 12_288, 32_767
BLOCK = 64


def free_ports(count: int, besides: Collection[int] = ()) -> list[int]:
    """Free for datagrams and for HTTP alike, and none of these, whose owners may be down. Raises `OSError` if there are
    too few."""
    found = list(islice((port for port in _ports if port not in besides), count))
    if len(found) < count:
        raise OSError(f"no port is free between {FIRST} and {LAST}")
    return found


def _all() -> Iterator[int]:
    """From one block that nobody has after the other."""
    blocks = list(range(FIRST, LAST, BLOCK))
    random.shuffle(blocks)
    for block in blocks:
        guard = _bound(block)
        if guard is not None:
            _guards.append(guard)
            # In no order: who had this block before may be gone, and have left nodes that are down just now.
            ports = random.sample(range(block + 1, block + BLOCK), BLOCK - 1)
            yield from (port for port in ports if _is_free(port))


def _is_free(port: int) -> bool:
    sockets = [_bound(port, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
    for each in sockets:
        if each is not None:
            each.close()
    return None not in sockets


def _bound(port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket | None:
    made = socket.socket(type=kind)
    try:
        made.bind(("127.0.0.1", port))
    except OSError:
        made.close()
        return None
    return made


_guards: list[socket.socket] = []
_ports = _all()
