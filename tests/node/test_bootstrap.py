"""A cluster is made on one machine and joined from the others; whoever should not get in is told why not."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from greenline.cli.ports import free_ports
from greenline.node import keyfile
from greenline.node.bootstrap import CannotJoin, found, join
from greenline.node.calls import call
from greenline.node.config import load, written
from greenline.node.envelope import Envelope
from greenline.node.invitation import BadToken, Invitations, Token, token_of
from greenline.node.transport import Address
from tests.node.services import Running, play, until

pytestmark = pytest.mark.slow


def cluster(place: Path, names: str = "p q r") -> tuple[Token, dict[str, str]]:
    """Made in place/p, with an admin port of its own choice."""
    each = names.split()
    ports = free_ports(len(each) + 1)
    members = {name: f"127.0.0.1:{port}" for name, port in zip(each, ports, strict=False)}
    return found(place / "p", members, "p", ("127.0.0.1", ports[-1])), members


def refused(act: Callable[[], object]) -> str:
    with pytest.raises((CannotJoin, BadToken)) as said:
        act()
    assert "\n" not in str(said.value)
    return str(said.value)


def test_a_token_is_one_string_and_a_garbled_one_is_known_before_anybody_is_asked() -> None:
    token = Token("cluster", ("10.0.0.1", 7500), b"s" * 32, 2_000_000_000)
    text = str(token)
    assert token_of(f" {text}\n") == token
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    other = "A" if text[20] != "A" else "B"
    broken = [text[:-1], text + "A", text[4:], text[:20] + other + text[21:], "", "gl1-", "gl1-é"]
    broken.append("gl1-" + base64.urlsafe_b64encode(b"\x90" * 9).decode())
    for each in broken:
        with pytest.raises(BadToken, match="the token is garbled; copy all of it"):
            token_of(each)


def test_the_others_join_and_are_one_cluster_with_one_key(tmp_path: Path) -> None:
    token, members = cluster(tmp_path)

    async def story(p: Running) -> None:
        for name in ("q", "r"):
            path = await asyncio.to_thread(join, token, name, tmp_path / name)
            assert path == tmp_path / name / "greenline.toml"
        await asyncio.to_thread(join, token, "q", tmp_path / "q")  # it is there already
        config = load(tmp_path / "q" / "greenline.toml")
        assert (config.name, config.cluster) == ("q", token.cluster)
        assert {name: written(address) for name, address in config.addresses.items()} == members
        assert config.admins["p"] == p.config.admin, "which is not where it usually is"
        assert config.kept == keyfile.read(tmp_path / "p" / "cluster.key")
        for secret in ("cluster.key", "greenline.toml"):
            assert (tmp_path / "q" / secret).stat().st_mode & 0o077 == 0
        joiners = [Running(load(tmp_path / name / "greenline.toml")) for name in ("q", "r")]
        try:
            everybody = [p, *joiners]
            await until(lambda: all(len(each.service.life.status.in_configuration) == 3 for each in everybody))
        finally:
            for each in joiners:
                await each.stop()
        assert [each["name"] for each in p.events("joined")] == ["q", "r"]

    play([tmp_path / "p" / "greenline.toml"], story)


def test_who_should_not_join_is_told_why(tmp_path: Path) -> None:
    token, _ = cluster(tmp_path)
    other = Token(token.cluster, token.admin, b"x" * 32, token.expires)
    old = Token(token.cluster, token.admin, token.secret, int(time.time()) - 1)

    def attempt(which: Token, name: str, place: str) -> str:
        return refused(lambda: join(which, name, tmp_path / place))

    async def story(p: Running) -> None:
        await asyncio.to_thread(join, token, "q", tmp_path / "q")
        await asyncio.to_thread(tell_all)

    def tell_all() -> None:
        assert "this token is unknown here, or it has expired" in attempt(other, "r", "r")
        assert "the token expired on 20" in attempt(old, "r", "r")
        assert "'z' is none of p q r; join with one of these names" in attempt(token, "z", "z")
        assert "p is the first node itself" in attempt(token, "p", "again")
        assert "another node has joined as q already; join with another name" in attempt(token, "q", "twin")
        stranger = Token("another", token.admin, token.secret, token.expires)
        assert f"holds a node of the cluster {token.cluster} already" in attempt(stranger, "q", "q")
        assert "this token is unknown here" in attempt(stranger, "r", "r")
        join(token, "r", tmp_path / "z")  # who was refused under one name may come under another

    play([tmp_path / "p" / "greenline.toml"], story)
    assert "no answer from http://127.0.0.1:" in attempt(token, "r", "late")


def test_an_answer_that_was_lost_is_given_again_and_who_joined_survives_a_restart(tmp_path: Path) -> None:
    token, _ = cluster(tmp_path)
    path = tmp_path / "p" / "greenline.toml"

    async def first(p: Running) -> None:
        await asyncio.to_thread(join, token, "q", tmp_path / "q")

    async def second(p: Running) -> None:
        (tmp_path / "q" / "greenline.toml").unlink()  # as if the answer had never come
        await asyncio.to_thread(join, token, "q", tmp_path / "q")
        assert "another node has joined as q already" in await asyncio.to_thread(
            lambda: refused(lambda: join(token, "q", tmp_path / "twin"))
        )

    play([path], first)
    play([path], second)


@contextmanager
def between(real: Address) -> Iterator[tuple[Address, list[bytes]]]:
    """Somebody on the way who records one conversation."""
    heard: list[bytes] = []
    door = socket.create_server(("127.0.0.1", 0))

    def relay() -> None:
        client, _ = door.accept()
        with client, socket.create_connection(real) as server:
            for source, sink in ((client, server), (server, client)):
                source.settimeout(0.5)
                try:
                    while data := source.recv(65_536):
                        heard.append(data)
                        sink.sendall(data)
                except TimeoutError:
                    continue

    thread = threading.Thread(target=relay)
    thread.start()
    yield door.getsockname(), heard
    thread.join()
    door.close()


def test_a_first_node_whose_own_files_are_damaged_says_so(tmp_path: Path) -> None:
    token, _ = cluster(tmp_path)

    async def story(p: Running) -> None:
        (tmp_path / "p" / "joined.toml").write_text("no toml at all")
        said = await asyncio.to_thread(lambda: refused(lambda: join(token, "q", tmp_path / "q")))
        assert "the first node cannot read" in said
        (tmp_path / "p" / "join.toml").unlink()
        (tmp_path / "p" / "join.toml").mkdir()
        said = await asyncio.to_thread(lambda: refused(lambda: join(token, "q", tmp_path / "q")))
        assert "remove it, and print a new token" in said

    play([tmp_path / "p" / "greenline.toml"], story)


def test_who_listens_on_the_way_learns_nothing_and_gains_nothing_by_repeating_it(tmp_path: Path) -> None:
    token, _ = cluster(tmp_path)

    async def story(p: Running) -> None:
        assert p.config.kept is not None
        with between(token.admin) as (there, heard):
            tapped = Token(token.cluster, there, token.secret, token.expires)
            await asyncio.to_thread(join, tapped, "q", tmp_path / "q")
        said = b"".join(heard)
        for secret in (p.config.kept.keyring.keys[1], token.secret, b"cluster", b"members"):
            assert secret not in said
        request = said[said.index(b"\r\n\r\n") + 4 : said.index(b"HTTP/1.1 200")]
        answer = await asyncio.to_thread(call, token.admin, "POST", "/join", request)
        assert answer.is_good
        assert p.config.kept.keyring.keys[1] not in answer.body
        assert list(p.service.life.door.joined) == ["q"]

    play([tmp_path / "p" / "greenline.toml"], story)


def test_somebody_else_at_the_first_nodes_port_is_not_believed(tmp_path: Path) -> None:
    door = socket.create_server(("127.0.0.1", 0))
    body = Envelope(b"x" * 32, "greenline join").seal(b"come in")

    def answer() -> None:
        client, _ = door.accept()
        with client:
            client.recv(65_536)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    thread = threading.Thread(target=answer)
    thread.start()
    token = Token("cluster", door.getsockname(), b"s" * 32, int(time.time()) + 100)
    assert "is not sealed with this token" in refused(lambda: join(token, "q", tmp_path))
    thread.join()
    door.close()


def test_a_second_bootstrap_is_refused_here_and_where_the_others_are(tmp_path: Path) -> None:
    token, members = cluster(tmp_path, "p q")
    assert f"holds a node of the cluster {token.cluster} already" in refused(
        lambda: found(tmp_path / "p", members, "p", None)
    )
    assert token.admin is not None
    usual = {"p": f"127.0.0.1:{token.admin[1] - 100}", "q": members["q"]}

    async def story(p: Running) -> None:
        said = await asyncio.to_thread(lambda: refused(lambda: found(tmp_path / "q", usual, "q", None)))
        assert f"p at {written(token.admin)} is in the cluster {token.cluster} already" in said
        assert not (tmp_path / "q").exists()

    play([tmp_path / "p" / "greenline.toml"], story)
    assert "--me z is none of p q" in refused(lambda: found(tmp_path / "z", members, "z", None))


def test_tokens_that_have_expired_are_forgotten_and_those_that_hold_are_kept(tmp_path: Path) -> None:
    invitations = Invitations(tmp_path)
    assert invitations.secrets() == []
    invitations.invite("cluster", ("10.0.0.1", 7500), lasts=-1.0)
    first = invitations.invite("cluster", ("10.0.0.1", 7500))
    second = invitations.invite("cluster", ("10.0.0.1", 7500))
    assert invitations.secrets() == [first.secret, second.secret]
    assert (tmp_path / "join.toml").stat().st_mode & 0o077 == 0
    (tmp_path / "join.toml").write_text("nonsense")
    with pytest.raises(BadToken, match="remove it, and print a new token"):
        invitations.secrets()


def test_only_the_first_node_lets_others_in(tmp_path: Path) -> None:
    token, _ = cluster(tmp_path)

    async def story(p: Running) -> None:
        (tmp_path / "p" / "joined.toml").unlink()  # what a node that has joined itself does not have
        said = await asyncio.to_thread(lambda: refused(lambda: join(token, "q", tmp_path / "q")))
        assert "this is not the first node; join where `greenline init` was run" in said

    play([tmp_path / "p" / "greenline.toml"], story)
