"""A node's files in a directory of a test, and free ports for them."""

from __future__ import annotations

from pathlib import Path

from greenline.cli.ports import free_ports

KEY = "ab" * 32


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
        f'name = "{name}"\ndata = "data-{name}"\nkey = "cluster.key"\nadmin = "127.0.0.1:{ports[-1]}"\n'
        f'database = "none"\n{more}\n'
        f"[members]\n{table}\n"
    )
    return path
