"""Who is who: passwords, certificates, and whoever only pretends to be a node."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from greenline.client import InterfaceError, Refused, Unauthorised, Unreachable
from tests.client.places import INSERT, TABLE, Stage, client, play, until
from tests.client.server import ca_file


def test_a_wrong_password_is_said_at_once() -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(Unauthorised, match="no user 'ada' with this password"):
            await client(await stage.server(), password="guess").open()  # noqa: S106
        with pytest.raises(Unauthorised):
            await client(await stage.server(), user="nobody").open()

    play(story)


def test_whoever_is_no_user_any_more_is_told_so() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        cable = await stage.cable(server)
        async with client(cable) as db:
            await db.execute(TABLE)
            stage.cluster.db.execute("DELETE FROM greenline_users")
            cable.cut()
            with pytest.raises(Exception, match="no user 'ada'"):
                await db.execute(INSERT, (1,))
            with pytest.raises(Unauthorised):
                await db.execute(INSERT, (1,))
            assert stage.written == []

    play(story)


def test_with_the_clusters_certificate_everything_is_encrypted_and_only_its_nodes_are_trusted(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server(has_tls=True)
        async with client(server, ca=ca_file(tmp_path)) as db:
            await db.execute(TABLE)
            await db.executemany(INSERT, [(number,) for number in range(1000)])
            assert stage.written == list(range(1000))
        with pytest.raises(Refused, match="no node of this cluster") as stranger:
            await client(server, ca=ca_file(tmp_path, b"x" * 32)).open()
        assert stranger.value.kind == "certificate"

    play(story)


def test_who_comes_without_tls_or_with_it_where_there_is_none_is_told_so(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(Refused, match="needs TLS"):
            await client(await stage.server(has_tls=True)).open()
        with pytest.raises(Unreachable):
            await client(await stage.server(), ca=ca_file(tmp_path), within=0.1).open()

    play(story)
    with pytest.raises(InterfaceError, match="cannot be read"):
        client(_At("p.example:1"), ca=tmp_path / "nothing")


def test_whoever_does_not_speak_the_protocol_is_no_node() -> None:
    async def story(stage: Stage) -> None:
        said = asyncio.Queue[bytes]()

        async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            words = await said.get()
            writer.write(words)
            with suppress(ConnectionError):
                await reader.read()
                writer.close()
                await writer.wait_closed()
            gone.append(words)

        gone: list[bytes] = []
        async with await asyncio.start_server(pretend, "127.0.0.1", 0) as pretender:
            host, port = pretender.sockets[0].getsockname()
            for words in (b"HTTP/1.1 400 Bad Request\r\n", b"\x00\x00\x00\x02\x91\x63", b"\xff" * 8):
                said.put_nowait(words)
                with pytest.raises(Unreachable, match="does not speak our protocol"):
                    await client(_At(f"{host}:{port}"), within=0.0).open()
            await until(lambda: len(gone) == 3)

    play(story)


class _At:
    def __init__(self, address: str) -> None:
        self.address = address
