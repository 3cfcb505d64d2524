"""The database on real nodes: partitions, deaths, disks that fail, replicas that come and go."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from greenline.cli.local import Local, add
from greenline.cli.reach import reach
from greenline.client import Colour, NotSupportedError, Unauthorised
from greenline.kernel.identities import ProcId
from greenline.node.calls import call
from greenline.node.config import written
from greenline.node.envelope import credential
from greenline.node.status import Status
from greenline.replication.standing import Standing
from tests.node.databases import client, databases, until, until_alone, until_primary

pytestmark = pytest.mark.slow


async def digests(local: Local) -> set[tuple[int, bytes]]:
    """Of all replicas, each once it has what the strict order has."""
    found = set()
    for name in local.names:
        async with client(local, name) as db:
            await db.query("SELECT 1")
            stands = await db.digests()
            found.add((stands.position, stands.state))
    return found


def test_both_sides_of_a_partition_go_on_and_nothing_accepted_is_lost(tmp_path: Path) -> None:
    async def before(local: Local) -> None:
        async with client(local) as db:
            await db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
            await db.execute("INSERT INTO notes (text) VALUES ('together')")

    async def apart(local: Local) -> None:
        async with client(local, "r") as lonely, client(local, "p") as many:
            await lonely.query("SELECT 1", consistency="weak")
            accepted = await lonely.execute("INSERT INTO notes (text) VALUES ('from r')", wait="accepted")
            assert accepted.colour is Colour.RED
            green = await many.execute("INSERT INTO notes (text) VALUES ('from p')")
            assert green.colour is Colour.GREEN
            texts = "SELECT text FROM notes ORDER BY id"
            assert (await lonely.query(texts, consistency="weak")).rows == (("together",),)
            dirty = await lonely.query(texts, consistency="dirty")
            assert (dirty.rows, dirty.colour) == ((("together",), ("from r",)), Colour.RED)
            assert not dirty.component.is_primary
            assert (await many.query(texts)).rows == (("together",), ("from p",))
            local.heal()
            done = await accepted.green()
            assert done.last_id == 3
            assert (await many.query(texts)).rows == (("together",), ("from p",), ("from r",))
            order = [bundle async for told in many.log(last=done.position) for bundle in told.bundles]
            made = [(each.bundle.creator, each.made_in) for each in order[-2:]]
            said = [(name, made_in.members, made_in.is_primary) for name, made_in in made if made_in is not None]
            assert said == [("p", ("p", "q"), True), ("r", ("r",), False)], "the log tells where it was accepted"

    with databases(tmp_path, "p q r") as local:
        asyncio.run(before(local))
        local.cut("p q | r")
        until_primary(local, "p q")
        until_alone(local, "r")
        asyncio.run(apart(local))
        until_primary(local, "p q r")
        assert len(asyncio.run(digests(local))) == 1


def test_after_a_total_crash_all_is_there_and_status_says_who_is_awaited(tmp_path: Path) -> None:
    async def fill(local: Local) -> None:
        async with client(local) as db:
            await db.execute("CREATE TABLE t (a)")
            await db.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(500)])

    async def count(local: Local) -> int:
        async with client(local) as db:
            return int((await db.query("SELECT count(*) FROM t")).rows[0][0])

    with databases(tmp_path, "p q r") as local:
        asyncio.run(fill(local))
        for name in local.names:
            local.kill(name)
        local.restart("q")
        until(lambda: bool(_standing(local, "q").awaited))
        assert set(_standing(local, "q").awaited) <= {"p", "r"}
        local.restart("p")
        local.restart("r")
        until_primary(local, "p q r")
        assert asyncio.run(count(local)) == 500


def test_a_client_whose_replica_dies_goes_on_elsewhere_and_every_row_is_there_once(tmp_path: Path) -> None:
    async def insert(local: Local) -> None:
        async with client(local) as db:
            await db.execute("CREATE TABLE t (a INTEGER)")
            writing = asyncio.create_task(db.batch([("INSERT INTO t VALUES (?)", (n,)) for n in range(3000)]))
            while (await db.query("SELECT count(*) FROM t", consistency="weak")).rows == ((0,),):
                await asyncio.sleep(0)
            assert db.component is not None
            await asyncio.to_thread(local.kill, db.component.server)
            assert all(each.error is None for each in await writing)
            rows = (await db.query("SELECT count(*), count(DISTINCT a) FROM t")).rows
            assert rows == ((3000, 3000),)

    with databases(tmp_path, "p q r") as local:
        asyncio.run(insert(local))


@pytest.mark.parametrize("what", ["log", "database"])
def test_a_full_disk_stops_a_replica_which_says_why_and_comes_back(tmp_path: Path, what: str) -> None:
    async def write(local: Local, row: int) -> None:
        async with client(local, "p") as db:
            await db.execute("INSERT INTO t VALUES (?)", (row,))

    async def create(local: Local) -> None:
        async with client(local, "p") as db:
            await db.execute("CREATE TABLE t (a)")

    with databases(tmp_path, "p q r") as local:
        asyncio.run(create(local))
        post(local, "r", "/faults", {what: "full"})
        asyncio.run(write(local, 1))
        until(lambda: "disk failed" in (status(local, "r").stopped or ""))
        asyncio.run(write(local, 2))
        post(local, "r", "/faults", {})
        until_primary(local, "p q r")
        assert len(asyncio.run(digests(local))) == 1


def test_replicas_come_and_go_while_the_cluster_runs(tmp_path: Path) -> None:
    async def fill(local: Local) -> None:
        async with client(local, "p") as db:
            await db.execute("CREATE TABLE t (a)")
            await db.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(300)])

    async def count(local: Local, name: ProcId) -> int:
        async with client(local, name) as db:
            return int((await db.query("SELECT count(*) FROM t")).rows[0][0])

    with databases(tmp_path, "p q r") as local:
        asyncio.run(fill(local))
        assert "is a replica" in greenline("join", "s", "--dir", tmp_path)
        bigger = Local(tmp_path)
        try:
            assert asyncio.run(count(bigger, "s")) == 300
            assert "has left" in greenline("leave", "p", "--dir", tmp_path)
            until(lambda: "has left the cluster for good" in (status(bigger, "p").stopped or ""))
            until_primary(bigger, "q r s")
            bigger.kill("r")
            assert "is removed" in greenline("remove", "r", "--dead", "--dir", tmp_path)
            until_primary(bigger, "q s")
            assert asyncio.run(count(bigger, "q")) == 300
            assert "not a replica of this cluster any more" in greenline("restart", "r", "--dir", tmp_path)
        finally:
            local.stop_all()
        assert [bigger.pid(name) for name in bigger.names] == [None] * 4, "also one that came while others looked"


def test_what_a_database_holds_is_for_its_node_to_read(tmp_path: Path) -> None:
    with databases(tmp_path, "p") as local:
        greenline("backup", str(tmp_path / "copy.db"), "--dir", tmp_path)
        kept = [path for path in (tmp_path / "copy.db", *local.configs["p"].data.rglob("*")) if path.is_file()]
        assert any(path.name == "greenline.db" for path in kept)
        assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_a_leaver_that_dies_before_it_is_let_go_is_let_go_when_it_is_back(tmp_path: Path) -> None:
    """It has left, and the others may need it: so it is started again, and has to come to its end."""
    with databases(tmp_path, "p q r s") as local:
        command = [sys.executable, "-m", "greenline.cli.main", "leave", "s", "--dir", str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as leaving:
            until(lambda: "s" in status(local, "s").gone)
            local.kill("s")
            local.restart("s")
            said, _ = leaving.communicate()
        assert "may be stopped" in said
        until_primary(local, "p q r")

        local.kill("s")
        local.restart("s")
        until(lambda: status(local, "s").left is not None)
        until_primary(local, "p q r")


def test_a_leave_is_answered_though_the_leaver_was_asked_and_dies_first(tmp_path: Path) -> None:
    """It is alone, so what it is asked is not ordered before it is killed; then the others are asked."""

    async def story(local: Local) -> None:
        at_s = msgspec.structs.replace(reach(tmp_path), addresses=written(local.configs["s"].clients["s"]))
        async with at_s.connected() as db:
            asked = asyncio.create_task(db.admin.leave("s"))
            await db.query("SELECT 1", consistency="weak")
            local.kill("s")
            await asked

    with databases(tmp_path, "p q r s") as local:
        local.cut("p q r | s")
        until_alone(local, "s")
        asyncio.run(story(local))
        until_primary(local, "p q r")
        local.heal()
        local.restart("s")
        until(lambda: status(local, "s").left is not None)
        until_primary(local, "p q r")


def test_whoever_has_the_key_is_heard_though_nobody_was_told_of_it(tmp_path: Path) -> None:
    """As by a replica that was away when another one came."""
    with databases(tmp_path, "p") as local:
        add(local, "q")
        both = Local(tmp_path)
        try:
            both.restart("q")
            until_primary(both, "p q")
            assert set(status(both, "p").members) == {"p", "q"}
        finally:
            both.stop_all()


def test_users_are_let_in_by_their_password_and_stopped_at_their_role(tmp_path: Path) -> None:
    async def story(local: Local) -> None:
        async with client(local) as db:
            await db.execute("CREATE TABLE t (a)")
            await db.admin.create_user("ann", "tulip", "read")
        with pytest.raises(Unauthorised):
            async with client(local, account=("ann", "rose")):
                pass
        async with client(local, account=("ann", "tulip")) as ann:
            assert (await ann.query("SELECT count(*) FROM t")).rows == ((0,),)
            with pytest.raises(Unauthorised, match="role"):
                await ann.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(NotSupportedError, match="for nodes to read"):
                await ann.query("SELECT verifier FROM greenline_users")
            by_the_back_door = (
                "SELECT * FROM greenline_users FULL JOIN (SELECT NULL AS verifier WHERE 0) USING (verifier)"
            )
            with pytest.raises(NotSupportedError, match="for nodes to read"):
                await ann.query(by_the_back_door)
            with pytest.raises(NotSupportedError, match="for nodes to read"):
                await ann.query(by_the_back_door, consistency="dirty")
            assert (await ann.query("SELECT * FROM greenline_roles")).rows == (("ann", "read"),)

    with databases(tmp_path, "p q r") as local:
        asyncio.run(story(local))


def greenline(*words: object) -> str:
    """What the command says; it must succeed."""
    command = [sys.executable, "-m", "greenline.cli.main", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def status(local: Local, name: ProcId) -> Status:
    found = local.status(name)
    assert isinstance(found, Status), found
    return found


def _standing(local: Local, name: ProcId) -> Standing:
    found = status(local, name).standing
    assert found is not None
    return found


def post(local: Local, name: ProcId, path: str, body: object) -> None:
    config = local.configs[name]
    assert config.admin is not None
    assert config.kept is not None
    key = config.kept.keyring.keys[config.kept.keyring.current]
    answer = call(config.admin, "POST", path, msgspec.json.encode(body), credential=credential(key))
    assert answer.is_good, json.loads(answer.body)
