"""The admin port of real nodes: what it says, what it lets nobody do, and what it does when the node has stopped."""

from __future__ import annotations

import asyncio
import io
import json
import resource
import socket
from pathlib import Path

import msgspec
import pytest

from greenline.kernel.ports import Deliver
from greenline.node import keyfile
from greenline.node.admin import MOST_BYTES, MOST_CONNECTIONS
from greenline.node.config import LogFormat, load
from greenline.node.envelope import credential
from greenline.node.logs import Logger
from greenline.node.rotation import Rotation, Step, sealed
from greenline.node.status import Status
from tests.node.places import key_file, node_file
from tests.node.services import Running, play, until

pytestmark = pytest.mark.slow

LOCAL = "local = true"


def both(place: Path, more: str = LOCAL) -> list[Path]:
    """Files for p and q, who know each other."""
    p = node_file(place, "p", more)
    config = load(p)
    q = place / "q.toml"
    text = p.read_text().replace('name = "p"', 'name = "q"').replace("data-p", "data-q")
    free = node_file(place, "x", members="x")
    assert config.admin is not None
    other = load(free).admin
    assert other is not None
    free.unlink()
    q.write_text(text.replace(f"127.0.0.1:{config.admin[1]}", f"127.0.0.1:{other[1]}").replace("cluster.key", "q.key"))
    key_file(place, name="q.key")
    return [p, q]


def members(node: Running) -> tuple[str, ...]:
    status = node.service.life.status
    return status.in_configuration if status.is_ready else ()


def delivered(node: Running) -> list[str]:
    return [told.payload.decode() for told in node.told if isinstance(told, Deliver)]


def heard(node: Running) -> int:
    """Packets that have arrived, and were not lost to a cut."""
    status = node.service.life.status
    return status.packets_in - status.refused.get("cut off", 0)


def test_a_node_tells_how_it_is_to_people_and_to_programs(tmp_path: Path) -> None:
    async def story(p: Running, q: Running) -> None:
        await until(lambda: members(p) == members(q) == ("p", "q"))
        assert (await p.post("/say", b'{"text": "hello"}')).status == 202
        await until(lambda: delivered(q) == ["hello"] and delivered(p) == ["hello"])

        status = msgspec.json.decode((await p.get("/status")).body, type=Status)
        assert (status.name, status.phase, status.incarnation) == ("p", "Operational", 1)
        assert (status.delivered, status.sent, status.oddities) == (1, 1, [])
        assert status.members["q"].is_in
        assert (status.keys, status.current_key, status.cluster) == ((1,), 1, None)
        assert status.packets_in > 0
        assert status.bytes_out > 0
        assert status.forced_writes > 0
        assert (await p.get("/ready")).status == 200

        metrics = (await p.get("/metrics")).body.decode()
        assert "greenline_messages_delivered_total 1.0" in metrics
        assert 'greenline_member_in{member="q"} 1.0' in metrics
        assert "# HELP greenline_forced_writes_total Forced writes of the log." in metrics

        events = [each["event"] for each in p.logged]
        assert events[:2] == ["listening", "configuration"]

    play(both(tmp_path), story)


def test_a_cut_and_its_healing_over_http(tmp_path: Path) -> None:
    async def story(p: Running, q: Running) -> None:
        await until(lambda: members(p) == members(q) == ("p", "q"))
        assert (await p.post("/cut", b'{"names": ["q"]}')).status == 200
        assert (await q.post("/cut", b'{"names": ["p"]}')).status == 200
        await until(lambda: members(p) == ("p",) and members(q) == ("q",))
        assert (await p.json("/status"))["cut_off"] == ["q"]
        assert "there is no 'z'; name some of p q" in (await p.post("/cut", b'{"names": ["z"]}')).error
        await p.post("/heal")
        await q.post("/heal")
        await until(lambda: members(p) == members(q) == ("p", "q"))

    play(both(tmp_path), story)


@pytest.mark.parametrize(("ways", "oddity"), [("in", "does not hear q"), ("out", "does not speak to q")])
def test_a_network_that_is_cut_one_way_only(tmp_path: Path, ways: str, oddity: str) -> None:
    """Nobody is in a configuration with whom it does not hear; the other way packets arrive as before."""

    async def story(p: Running, q: Running) -> None:
        await until(lambda: members(p) == members(q) == ("p", "q"))
        assert (await p.post("/cut", msgspec.json.encode({"names": ["q"], "ways": ways}))).status == 200
        await until(lambda: members(p) == ("p",) and members(q) == ("q",))

        status = msgspec.json.decode((await p.get("/status")).body, type=Status)
        assert (status.cut_off, status.oddities) == ((), [oddity])
        deaf, hearing = (p, q) if ways == "in" else (q, p)
        silence, before = heard(deaf), heard(hearing)
        await until(lambda: heard(hearing) > before + 5)
        assert heard(deaf) == silence
        await p.post("/heal")
        await until(lambda: members(p) == members(q) == ("p", "q"))

    play(both(tmp_path), story)


def test_who_has_no_credential_changes_nothing_and_bad_input_is_answered(tmp_path: Path) -> None:
    async def story(p: Running) -> None:
        for path in ("/say", "/cut", "/heal", "/keys"):
            for by in ("", "wrong", credential(b"x" * 32)):
                answer = await p.post(path, b"{}", by=by)
                assert (answer.status, "needs the credential" in answer.error) == (401, True)
        for body in (b"", b"[]", b'{"text": "\\ud800"}', b"\xff", b'{"text": 1}', b'{"txt": "x"}'):
            answer = await p.post("/say", body)
            assert (answer.status, 'send {"text": "hello"}' in answer.error) == (400, True)
        answer = await p.post("/say", b"x" * (MOST_BYTES + 1))
        assert (answer.status, "send less" in answer.error) == (413, True)
        answer = await p.get("/nothing")
        assert (answer.status, "there is no GET /nothing; there is GET /status" in answer.error) == (404, True)
        assert (await p.get("/say")).status == 405
        answer = await p.post("/join", b"garbage")
        assert (answer.status, "was not made by `greenline init`" in answer.error) == (403, True)
        assert (await p.post("/keys", b"garbage")).status == 409
        assert p.config.admin is not None
        with socket.create_connection(p.config.admin) as rude:
            rude.sendall(b"\x00" * 100 + b"\r\n\r\n")
        assert (await p.get("/status")).status == 200

    play([node_file(tmp_path, "p", LOCAL)], story)


def test_a_node_that_is_not_of_a_local_cluster_is_not_cut(tmp_path: Path) -> None:
    async def story(p: Running) -> None:
        for path in ("/say", "/cut", "/heal"):
            answer = await p.post(path)
            assert (answer.status, "this is no node of a local cluster" in answer.error) == (403, True)

    play([node_file(tmp_path)], story)


def step(p: Running, which: Step, key: bytes = b"n" * 32, number: int = 2) -> bytes:
    """The step that fits what p has now."""
    kept = p.service.life.kept
    assert kept is not None
    ring = kept.keyring
    rotation = Rotation(to="p", current=ring.current, changes=kept.changes, step=which, number=number, key=key)
    return sealed(rotation, ring.keys[ring.current])


def test_a_recorded_step_of_a_rotation_is_refused_and_the_file_follows_each_step(tmp_path: Path) -> None:
    async def story(p: Running) -> None:
        assert p.config.key_file is not None
        assert "still seals here" in (await p.post("/keys", step(p, Step.FORGET))).error
        assert "was not accepted here yet" in (await p.post("/keys", step(p, Step.USE))).error
        accept = step(p, Step.ACCEPT)
        assert (await p.post("/keys", accept)).is_good
        assert keyfile.read(p.config.key_file).keyring.keys.keys() == {1, 2}
        assert "not for the keys that p has now" in (await p.post("/keys", accept)).error
        assert "another key 2 already" in (await p.post("/keys", step(p, Step.ACCEPT, b"o" * 32))).error
        assert (await p.post("/keys", step(p, Step.ACCEPT))).is_good, "the same again, from the present state, is well"
        assert (await p.post("/keys", step(p, Step.USE))).is_good
        assert (await p.post("/keys", step(p, Step.FORGET))).is_good
        kept = keyfile.read(p.config.key_file)
        assert (kept.keyring.keys, kept.keyring.current, kept.changes) == ({2: b"n" * 32}, 2, 3)
        assert "not sealed with p's current key 2" in (await p.post("/keys", accept)).error
        assert [each["step"] for each in p.events("key rotated")] == ["accept", "use", "forget"]

    play([node_file(tmp_path)], story)


def test_a_node_whose_disk_fails_says_so_and_begins_again_when_it_is_well(tmp_path: Path) -> None:
    path = node_file(tmp_path, members="p")

    async def story(p: Running) -> None:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # from now on every write to a file fails
        try:
            await until(lambda: p.service.life.status.stopped is not None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        answer = await p.get("/ready")
        assert (answer.status, "p has stopped: the disk failed: " in answer.error) == (503, True)
        assert (await p.json("/status"))["phase"] == "Stopped"
        await until(lambda: members(p) == ("p",))
        assert [each["next_try_s"] for each in p.events("stopped")] == [1.0]
        assert len(p.events("restarted")) == 1

    play([path], story)


def test_a_second_node_with_one_name_is_seen_by_the_others(tmp_path: Path) -> None:
    """An operator copied q's file to another machine: p knows q by more than its name."""
    p, q = both(tmp_path)

    async def story(first: Running, second: Running) -> None:
        await until(lambda: members(first) == members(second) == ("p", "q"))
        await second.stop()
        other = tmp_path / "other.toml"
        other.write_text(q.read_text().replace("data-q", "data-other"))
        impostor = Running(load(other))
        try:
            await until(lambda: bool(first.events("another node uses the name")))
            assert any("another node uses the name q" in odd for odd in first.service.life.status.oddities)
        finally:
            await impostor.stop()

    play([p, q], story)


def test_a_node_that_stopped_for_another_reason_stays_so_and_says_what_to_do(tmp_path: Path) -> None:
    async def story(p: Running) -> None:
        await until(lambda: members(p) == ("p",))
        p.service.life.node.stopped = "impossible: ring: told by a test"
        await until(lambda: bool(p.events("stopped")))
        assert "keep " in p.events("stopped")[0]["remedy"]
        answer = await p.get("/ready")
        assert (answer.status, "p has stopped: impossible" in answer.error) == (503, True)
        assert "not taken: p is not running" in (await p.post("/say", b'{"text": "x"}')).error
        assert "greenline_stopped 1.0" in (await p.get("/metrics")).body.decode()

    play([node_file(tmp_path, "p", LOCAL, members="p")], story)


def test_a_log_is_for_people_or_for_programs() -> None:
    for format_, wanted in ((LogFormat.JSON, '"event": "listening"'), (LogFormat.CONSOLE, "[info     ] listening")):
        stream = io.StringIO()
        Logger("p", format_, stream).info("listening", address="127.0.0.1:1")
        assert wanted in stream.getvalue()
        assert stream.getvalue().count("\n") == 1


def test_what_is_refused_is_logged_once_with_its_reason(tmp_path: Path) -> None:
    async def story(p: Running) -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as stranger:
            for _ in range(20):
                stranger.sendto(b"garbage", p.config.addresses["p"])
        await until(lambda: bool(p.events("refused")))
        await until(lambda: sum(p.service.life.status.refused.values()) >= 20)
        assert len(p.events("refused")) == 1
        assert json.loads((await p.get("/status")).body)["refused"] == {"dropped by the kernel": 20}

    play([node_file(tmp_path)], story)


def test_who_holds_many_connections_keeps_nobody_out(tmp_path: Path) -> None:
    async def story(p: Running) -> None:
        await until(lambda: members(p) == ("p",))
        assert p.config.admin is not None
        held = [await asyncio.open_connection(*p.config.admin) for _ in range(3 * MOST_CONNECTIONS)]
        try:
            assert (await p.get("/ready")).status == 200
        finally:
            for _, writer in held:
                writer.close()

    play([node_file(tmp_path, members="p")], story)
