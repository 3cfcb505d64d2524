"""A node's files in a directory of a test, and free ports for them."""

from __future__ import annotations

import socket
from pathlib import Path

KEY = "ab" * 32


def free_ports(count: int) -> list[int]:
    """Free for datagrams and for HTTP alike."""
    held: list[socket.socket] = []
    ports: list[int] = []
    while len(ports) < count:
        stream, datagram = socket.socket(type=socket.SOCK_STREAM), socket.socket(type=socket.SOCK_DGRAM)
        held += [stream, datagram]
        stream.bind(("127.0.0.1", 0))
        try:
            datagram.bind(stream.getsockname())
        except OSError:
            continue
        ports.append(stream.getsockname()[1])
    for each in held:
        each.close()
    return ports


def key_file(place: Path, text: str = KEY, name: str = "cluster.key") -> Path:
    path = place / name
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def node_file(place: Path, name: str = "p", more: str = "", members: str = "p q") -> Path:
    """A file for one node, with an admin port."""
    key_file(place)
    names = members.split()
    ports = free_ports(len(names) + 1)
    table = "\n".join(f'{each} = "127.0.0.1:{port}"' for each, port in zip(names, ports, strict=False))
    path = place / f"{name}.toml"
    path.write_text(
        f'name = "{name}"\ndata = "data-{name}"\nkey = "cluster.key"\nadmin = "127.0.0.1:{ports[-1]}"\n{more}\n'
        f"[members]\n{table}\n"
    )
    return path
