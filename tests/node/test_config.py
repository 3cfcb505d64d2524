"""Every mistake in a node's file is one line that names the file, the key and the remedy."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from pathlib import Path

import pytest

from greenline.cli.ports import free_ports
from greenline.kernel.codec import seal
from greenline.kernel.scribe import Depth
from greenline.node.acquaintance import Acquaintance
from greenline.node.config import BadConfig, Tracing, load, usual_admin, written
from greenline.node.log import Log
from greenline.node.service import Service
from tests.node.places import KEY, key_file, node_file

TEXT = """name = "p"
data = "data"
key = "cluster.key"
admin = "127.0.0.1:7500"
[members]
p = "127.0.0.1:1"
q = "127.0.0.1:2"
[link]
[ring]
"""


def mistake(path: Path) -> str:
    with pytest.raises(BadConfig) as said:
        load(path)
    assert "\n" not in str(said.value)
    return str(said.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "p"', 'name = "x"', "name = 'x' is none of the members p, q; add it to [members]"),
        ('name = "p"', 'nam = "p"', "there is no setting nam; is it name?"),
        ('name = "p"', 'name = "p"\nzzz = 1', "there is no setting zzz; there is name, members, data, key"),
        ('name = "p"', "", 'name is missing; write name = "p"'),
        ('name = "p"', "name = 1", "name should be text, and is a whole number"),
        ('name = "p"', "name = p", "is no TOML: Invalid value (at line 1, column 8); put text in quotes"),
        ('p = "127.0.0.1:1"', "p = 1", "members should be text, and is a whole number"),
        ('p = "127.0.0.1:1"', '"p.1" = "127.0.0.1:1"', "'p.1' cannot name a process: use 1 to 32 letters"),
        ("127.0.0.1:1", "localhost:1", "members.p = 'localhost:1' is no address; write 10.0.0.1:7400"),
        ("127.0.0.1:1", "127.0.0.1", "members.p = '127.0.0.1' has no port between 1 and 65535"),
        ("127.0.0.1:1", "127.0.0.1:99999", "has no port between 1 and 65535"),
        ("127.0.0.1:2", "127.0.0.1:1", "members p and q have one address; give each its own"),
        ("127.0.0.1:2", "[::1]:2", "some members have IPv4 addresses and some IPv6"),
        ("127.0.0.1:2", "0.0.0.0:2", "is nobody's address"),
        ("127.0.0.1:2", "224.0.0.1:2", "is nobody's address"),
        ("127.0.0.1:7500", "here", "admin = 'here' has no port between 1 and 65535"),
        ("cluster.key", "other.key", "cannot read the key file"),
        ("cluster.key", "p.toml", "holds no key; it should be 64 hexadecimal digits"),
        ('key = "cluster.key"', "", 'key is missing; write key = "cluster.key", or insecure = true'),
        ('name = "p"', 'name = "p"\ninsecure = true', "there is a key, and insecure = true; remove one of them"),
        ('name = "p"', 'name = "p"\ntrace = "much"', "trace = 'much' is none of its values; write \"off\" or"),
        ('name = "p"', 'name = "p"\nlog_format = "xml"', 'write "console" or "json"'),
        ('name = "p"', 'name = "p"\nlocal = "yes"', "local should be true or false, and is text"),
        ("[link]", '[link]\nmulticast = "10.0.0.1:7"', "link.multicast = '10.0.0.1:7' is no multicast group"),
        ("[link]", "[link]\nmtu = 100", "link.mtu = 100 is not between 576 and 65535"),
        ("[link]", "[link]\nmut = 1500", "there is no setting link.mut; is it link.mtu?"),
        ("[link]", '[admins]\nz = "127.0.0.1:7"\n[link]', "admins.z is none of the members p, q; remove it"),
        ("[ring]", "[ring]\nprobe = 0.0", "[ring] probe = 0 is not between 0.001 and 600"),
        ("[ring]", "[ring]\nspeed = 1", "[ring] there is no setting ring.speed; there is reach, packet_bytes"),
        ("[ring]", "[ring]\nwindw = 1", "[ring] there is no setting ring.windw; is it ring.window?"),
        ("[ring]", '[ring]\nreach = "multicast"', "[ring] reach = 'multicast' does not go with [link]"),
    ],
)
def test_a_mistake_in_the_file_is_one_clear_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    key_file(tmp_path)
    path = tmp_path / "p.toml"
    path.write_text(TEXT)
    path.chmod(0o600)
    assert load(path).addresses == {"p": ("127.0.0.1", 1), "q": ("127.0.0.1", 2)}
    assert TEXT.count(old) == 1
    path.write_text(TEXT.replace(old, new))
    found = mistake(path)
    assert said in found
    assert str(tmp_path) in found


def test_what_is_not_said_has_a_good_value(tmp_path: Path) -> None:
    key_file(tmp_path)
    path = tmp_path / "p.toml"
    path.write_text(
        TEXT.replace("[link]", '[link]\nmulticast = "239.1.2.3:7400"').replace("127.0.0.1:2", "127.0.0.2:65500")
    )
    config = load(path)
    assert config.link.multicast == ("239.1.2.3", 7400)
    assert config.admins == {"p": ("127.0.0.1", 7500), "q": ("127.0.0.2", 65400)}
    assert (config.trace, config.is_local, config.log_format) == (Tracing.OFF, False, None)
    assert Tracing.FULL.depth is Depth.FULL
    assert config.kept is not None
    assert config.kept.keyring.keys == {1: bytes.fromhex(KEY)}
    assert written(usual_admin(("10.0.0.1", 7400))) == "10.0.0.1:7500"


def test_running_without_a_key_is_asked_for_by_name(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(TEXT.replace('key = "cluster.key"', "insecure = true"))
    assert load(path).kept is None


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    assert "none.toml: No such file or directory; name a file that is there" in mistake(tmp_path / "none.toml")


# What only shows when it is opened.


def cannot_start(path: Path) -> str:
    async def start() -> None:
        Service(load(path))

    with pytest.raises(BadConfig) as said:
        asyncio.run(start())
    assert "\n" not in str(said.value)
    return str(said.value)


def test_an_address_in_use_is_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = node_file(tmp_path)
    config = load(path)
    assert config.admin is not None
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind(config.addresses["p"])
        assert "(UDP): it is in use; is another node running there?" in cannot_start(path)
    with socket.socket() as other:
        other.bind(config.admin)
        other.listen()
        assert "cannot listen at admin = '127.0.0.1:" in cannot_start(path)

    async def start() -> None:
        Service(load(path)).close()

    asyncio.run(start())


def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    path = node_file(tmp_path)
    text = path.read_text()
    path.write_text(text.replace('p = "127.0.0.1', 'p = "192.0.2.1'))
    assert "is no address of this machine; check `name` and [members]" in cannot_start(path)
    path.write_text(text.replace('admin = "127.0.0.1', 'admin = "192.0.2.1'))
    assert "choose a free port of this machine" in cannot_start(path)


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    path = node_file(tmp_path)
    (tmp_path / "data-p").write_text("a file is in the way")
    assert "is not writable: " in cannot_start(path)


def test_a_log_of_something_else_is_one_clear_line(tmp_path: Path) -> None:
    path = node_file(tmp_path)
    (tmp_path / "data-p").mkdir()
    Acquaintance(tmp_path / "data-p" / "acquaintance", "p")
    log = Log(tmp_path / "data-p" / "log")
    log.contents()
    log.write(seal(9, b"of no core that a node has"))
    done = threading.Event()
    log.force(lambda _: done.set())
    assert done.wait(10.0)
    log.close()

    async def start() -> None:
        await Service(load(path)).run()

    with pytest.raises(BadConfig, match=r"cannot begin from .*data-p/log: .*channel 9.*; bring it back from a copy"):
        asyncio.run(start())


def test_one_directory_has_one_node(tmp_path: Path) -> None:
    first = node_file(tmp_path)

    async def start() -> None:
        service = Service(load(first))
        port = free_ports(1)[0]
        other = tmp_path / "other.toml"
        other.write_text(first.read_text().replace(f":{load(first).addresses['p'][1]}", f":{port}"))
        with pytest.raises(BadConfig, match=rf"another node runs on .*data-p \(pid {os.getpid()}\); stop it first"):
            Service(load(other))
        service.close()

    asyncio.run(start())
