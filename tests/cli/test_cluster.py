"""The commands for clusters: a local one from other terminals, a real one by init and join, a key that is rotated."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from greenline.cli.local import Local, make
from greenline.cli.ports import free_ports
from greenline.node import keyfile
from greenline.node.calls import call
from greenline.node.config import Stored, written
from greenline.node.envelope import credential
from greenline.node.rotation import Rotation, Step, sealed
from greenline.node.sealing import Keyring
from greenline.node.status import Status
from tests.cli.command import Greenline
from tests.node.places import node_file

pytestmark = pytest.mark.slow

PATIENCE_S = 40.0


def until(condition: Callable[[], bool], said: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, said()
        time.sleep(0.02)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """A running local cluster of three, as `greenline up` would start it; each test leaves it whole."""
    cluster = make(tmp_path_factory.mktemp("cluster") / "local", ("p", "q", "r"), Stored.NONE)
    try:
        assert cluster.start_all() == []
        until(lambda: confs(cluster) == {"p q r"}, lambda: confs(cluster))
        yield cluster
    finally:
        cluster.stop_all()
        assert not any(cluster.pid(name) for name in cluster.names)


def confs(cluster: Local) -> set[str]:
    """The members of each one's configuration; of those that are up."""
    found = [cluster.status(name) for name in cluster.names]
    return {" ".join(each.in_configuration) if each.is_ready else "" for each in found if isinstance(each, Status)}


@pytest.mark.slow
def test_a_local_cluster_from_another_terminal(greenline: Greenline, local: Local) -> None:
    place = ("--dir", local.place)
    answer = greenline("status", *place)
    assert answer.status == 0
    assert re.search(r"^p +up +1 +Operational +\w\.\d+ \{p q r\} +0 +0\.0", answer.out, re.MULTILINE), answer.out

    assert greenline("cut", "p q | r", *place).out == "cut p q | r\n"
    until(lambda: confs(local) == {"p q", "r"})
    assert "cut off from p q" in greenline("status", *place).out
    assert greenline("heal", *place).out == "healed\n"
    until(lambda: confs(local) == {"p q r"})
    assert greenline("cut", "p q | r", "--one-way", *place).out == "cut p q | r, one way\n"
    until(lambda: confs(local) == {"p q", "r"})
    assert re.search("^r .* does not hear p q$", greenline("status", *place).out, re.MULTILINE)
    greenline("heal", *place)
    until(lambda: confs(local) == {"p q r"})

    assert greenline("kill", "r", *place).out == "r  killed\n"
    until(lambda: confs(local) == {"p q"})
    answer = greenline("status", "--json", *place)
    assert answer.status == 0, "a node that is down is no error"
    assert (answer.json["r"]["up"], answer.json["p"]["up"]) == (False, True)
    answer = greenline("cut", "p | q r", *place)
    assert "r is down; it comes back with the whole network" in answer.err
    greenline("heal", *place)
    assert "r is down already; `greenline restart r` starts it" in greenline("kill", "r", *place).err
    answer = greenline("rotate-key", *place)
    assert (answer.status, "nothing was changed: not reached: r (no answer" in answer.err) == (2, True)
    assert greenline("restart", "r", *place).out == "r  up, in its life 2\n"
    assert "r runs already; kill it first" in greenline("restart", "r", *place).err
    until(lambda: confs(local) == {"p q r"})


@pytest.mark.slow
def test_a_key_is_rotated_while_the_cluster_runs_and_what_was_interrupted_is_finished(
    greenline: Greenline, local: Local
) -> None:
    place = ("--dir", local.place)
    assert greenline("rotate-key", *place).out == "key 2 seals; p q r have forgotten the old one\n"
    files = [local.place / f"{name}.key" for name in local.names]
    assert len({keyfile.read(path).keyring.keys[2] for path in files}) == 1

    os.kill(local.pid("q") or 0, signal.SIGSTOP)  # it is there, and answers nobody
    answer = greenline("rotate-key", *place)
    os.kill(local.pid("q") or 0, signal.SIGCONT)
    assert "nothing was changed: not reached: q (no answer from" in answer.err
    assert [sorted(keyfile.read(path).keyring.keys) for path in files] == [[2], [2], [2]]

    # As if the one who rotated had been killed after p had accepted the new key.
    goal = keyfile.Kept(Keyring({2: keyfile.read(files[0]).keyring.keys[2], 3: b"3" * 32}, 3))
    keyfile.write(local.place / "p.key.next", goal)
    ports = [word for name in local.names for word in ("--at", written(local.configs[name].admins[name]))]
    answer = greenline("rotate-key", *ports, "--key", files[0], "--json")
    assert "finishing a rotation that was interrupted" in answer.err
    assert answer.json == {"key": 3, "members": ["p", "q", "r"]}
    assert [keyfile.read(path).keyring.keys for path in files] == [{3: b"3" * 32}] * 3
    assert not (local.place / "p.key.next").exists()

    until(lambda: confs(local) == {"p q r"})
    local.say("p", "sealed with the new one")
    until(lambda: all("p: sealed with the new one" in local.log(name).read_text() for name in local.names))

    # As if it had been begun on q's machine, which has the new key now; p's machine has not.
    old = keyfile.read(files[1])
    step = Rotation(to="q", current=3, changes=old.changes, step=Step.ACCEPT, number=4, key=b"4" * 32)
    at_q, key = local.configs["q"].admins["q"], old.keyring.keys[3]
    assert call(at_q, "POST", "/keys", sealed(step, key), credential=credential(key)).is_good
    answer = greenline("rotate-key", *place)
    assert "nothing was changed: q have other keys than" in answer.err
    answer = greenline("rotate-key", *ports, "--key", files[1])
    assert "finishing a rotation that was interrupted" in answer.err
    assert [keyfile.read(path).keyring.keys for path in files] == [{4: b"4" * 32}] * 3

    answer = greenline("rotate-key", *ports[:4], "--key", files[0])
    assert "nothing was changed: r would be left behind; name their ports with --at, too" in answer.err


@pytest.mark.slow
def test_three_machines_by_init_and_join(greenline: Greenline, tmp_path: Path) -> None:
    ports = free_ports(4)
    members = [f"{name}=127.0.0.1:{port}" for name, port in zip("pqr", ports, strict=False)]
    admin = f"127.0.0.1:{ports[3]}"
    answer = greenline("init", *members, "--me", "p", "--admin", admin, "--dir", tmp_path / "p")
    assert answer.status == 0, answer.err
    here, on_q, _ = answer.out.splitlines()
    assert here == f"greenline node --dir {tmp_path / 'p'}"
    token = on_q.split()[3]
    assert on_q == f"greenline node --join {token} --name q"
    assert "already; run it with" in greenline("init", *members, "--me", "p", "--dir", tmp_path / "p").err
    assert "no answer from" in greenline("node", "--join", token, "--name", "q", "--dir", tmp_path / "q").err
    assert "the token is garbled" in greenline("node", "--join", token[:-2], "--name", "q").err

    greenline_ = [sys.executable, "-m", "greenline.cli.main", "node"]
    nodes = [started([*greenline_, "--dir", str(tmp_path / "p")])]
    try:
        until(lambda: greenline("status", "--at", admin, "--json").json[admin]["up"])
        fresh = greenline("token", "--dir", tmp_path / "p").out.strip()
        for name, each in (("q", token), ("r", fresh)):
            nodes.append(started([*greenline_, "--join", each, "--name", name, "--dir", str(tmp_path / name)]))
        until(lambda: greenline("status", "--at", admin, "--json").json[admin]["in_configuration"] == ["p", "q", "r"])
        answer = greenline("rotate-key", "--dir", tmp_path / "r")
        assert answer.out == "key 2 seals; p q r have forgotten the old one\n", answer.err
    finally:
        for node in nodes:
            node.terminate()
        ends = [node.communicate(timeout=PATIENCE_S) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0, 0], ends
    logs = [json.loads(line) for line in ends[0][1].decode().splitlines()]
    assert [each["name"] for each in logs if each["event"] == "joined"] in (["q", "r"], ["r", "q"])


def started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_what_cannot_be_is_one_clear_line(greenline: Greenline, tmp_path: Path) -> None:
    nowhere = ("--dir", tmp_path / "nowhere")
    assert "there is no cluster in" in greenline("heal", *nowhere).err
    assert "or ask a node with --at HOST:PORT" in greenline("status", *nowhere).err
    assert "--at = 'x' has no port" in greenline("status", "--at", "x").err
    assert "--at and --key go together" in greenline("rotate-key", "--key", "k").err
    assert "--join needs --name and no file" in greenline("node", "--join", "x").err
    assert "names no address; write for example p=10.0.0.1:7400" in greenline("init", "p", "--me", "p").err
    assert "p is named twice" in greenline("init", "p=1.1.1.1:1", "p=1.1.1.1:2", "--me", "p").err
    assert "has no port" in greenline("init", "p=1.1.1.1", "--me", "p").err
    node_file(tmp_path, members="p q")
    assert "is not of a local cluster" in greenline("heal", "--dir", tmp_path).err
    cluster = make(tmp_path / "local", ("p", "q"), Stored.NONE)
    place = ("--dir", cluster.place)
    for sides in ("p", "p | z", "p |"):
        assert f"cannot cut {sides!r}; write for example: p | q" in greenline("cut", sides, *place).err
    assert "p is on both sides; write it once" in greenline("cut", "p | p q", *place).err
    assert "there is no 'z' in" in greenline("kill", "z", *place).err
    assert greenline("status", *place).status == 0
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "greenline.toml").touch()
    assert "holds a node that `greenline init`" in greenline("up", "-n", 1, "--dir", tmp_path / "real").err
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "choose another --dir" in greenline("up", "-n", 2, "--dir", blocked).err
    assert "choose another --dir" in greenline("init", "p=127.0.0.1:1", "--me", "p", "--dir", blocked).err
