"""Ports of this machine for nodes that run beside each other.

A port that is free now may be somebody's a moment later: another cluster's that is made at the same time, or that of
any connection, since the system hands those out from above `LAST`. So they are taken from below, in blocks, and a block
is a process's own for as long as it lives: it holds the block's first port.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

FIRST, LAST = 12_288, 32_767
BLOCK = 64


def free_ports(count: int) -> list[int]:
    """Free for datagrams and for HTTP alike. Raises `OSError` if there are too few."""
    return [next(_ports) for _ in range(count)]


def _all() -> Iterator[int]:
    """From one block that nobody has after the other."""
    blocks = list(range(FIRST, LAST, BLOCK))
    random.shuffle(blocks)
    for block in blocks:
        guard = _bound(block)
        if guard is not None:
            _guards.append(guard)
            yield from (port for port in range(block + 1, block + BLOCK) if _is_free(port))
    raise OSError(f"no port is free between {FIRST} and {LAST}")


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
