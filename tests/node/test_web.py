"""SQL over HTTP: the application as uvicorn runs it, on a real socket, with TLS."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from greenline.kernel.actions import WINDOW, Outcome, Verdict
from greenline.node.certificates import ca_pem, client_context, server_context
from greenline.node.edge import Limits
from greenline.node.envelope import credential
from greenline.node.guesses import OF_A_USER
from greenline.node.users import Users
from greenline.node.web import web_app
from greenline.node.webserver import WebServer
from greenline.replication.port import Refused, Unanswered
from tests.node.callers import KEY, PASSWORD, PATIENCE_S, cheap, until
from tests.node.desks import StubDesk


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    json: Any


class Site:
    """The HTTP port of a desk, and somebody who asks it."""

    def __init__(self, limits: Limits) -> None:
        self.desk = StubDesk()
        self.desk.appoint("ann", "admin", cheap(PASSWORD))
        self.desk.appoint("will", "write", cheap(PASSWORD))
        self.desk.appoint("rita", "read", cheap(PASSWORD))
        self.users = Users(self.desk, lambda: credential(KEY), limits)
        tls = server_context(KEY, "p", [])
        self.server = WebServer(web_app(self.desk, self.users, limits), limits, tls)
        self.address = self.server.open(("127.0.0.1", 0))
        self._trusted = client_context(ca_pem(KEY))

    async def post(self, path: str, body: object, by: str | None = "will") -> Answer:
        return await asyncio.to_thread(self._call, "POST", path, msgspec.json.encode(body), _basic(by))

    async def get(self, path: str, by: str | None = "will") -> Answer:
        return await asyncio.to_thread(self._call, "GET", path, b"", _basic(by))

    async def raw(self, method: str, path: str, body: bytes, header: str = "") -> Answer:
        return await asyncio.to_thread(self._call, method, path, body, header or _basic("will"))

    def _call(self, method: str, path: str, body: bytes, header: str, headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPSConnection(*self.address, context=self._trusted, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, headers or ({"Authorization": header} if header else {}))
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, told, json.loads(response.read()))
        finally:
            connection.close()


def _basic(user: str | None, password: str = PASSWORD) -> str:
    return "" if user is None else "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def play(story: Callable[[Site], Awaitable[None]], limits: Limits | None = None) -> None:
    async def live() -> None:
        site = Site(limits or Limits())
        try:
            await story(site)
        finally:
            await site.server.close()
            site.users.close()

    asyncio.run(live())


def test_sql_is_written_and_read() -> None:
    async def story(site: Site) -> None:
        insert = {"sql": "INSERT INTO t (text) VALUES (?)", "parameters": ["hello"]}
        done = await site.post("/sql", insert)
        assert done.status == 200
        assert (done.json["verdict"], done.json["colour"], done.json["level"]) == ("done", "green", "local")
        assert (done.json["position"], done.json["sub"], done.json["number"]) == (4, 0, 1)
        assert done.json["results"] == [{"changes": 1, "last_id": 1, "columns": [], "rows": []}]
        assert done.json["component"] == {"server": "p", "is_primary": True, "prim_index": 1, "members": ["p", "q"]}

        rows = await site.post("/sql", {"sql": "SELECT id, text FROM t"}, by="rita")
        assert (rows.status, rows.json["columns"], rows.json["rows"]) == (200, ["id", "text"], [[1, "hello"]])
        assert (rows.json["consistency"], rows.json["position"], rows.json["reds"]) == ("strict", 4, 0)

        weak = await site.post(
            "/sql", {"sql": "WITH x AS (SELECT 1) SELECT * FROM x", "consistency": "weak"}, by="rita"
        )
        assert (weak.status, weak.json["consistency"]) == (200, "weak")

    play(story)


def test_every_value_of_sql_comes_through_json() -> None:
    async def story(site: Site) -> None:
        given = [None, 1, -(2**63), 2**63 - 1, 0.5, "ü\0", {"base64": "AAH/"}, {"float": "inf"}, {"float": "-inf"}]
        sql = f"SELECT {', '.join('?' * len(given))}"
        rows = await site.post("/sql", {"sql": sql, "parameters": given})
        assert rows.json["rows"] == [given]
        named = await site.post("/sql", {"sql": "SELECT :a, :b", "parameters": {"a": True, "b": {"base64": ""}}})
        assert named.json["rows"] == [[1, {"base64": ""}]]

    play(story)


@pytest.mark.parametrize("bad", [2**63, [1], {"base64": "!"}, {"base64": "", "x": 1}, {"float": "nan"}, {}])
def test_values_that_sql_does_not_know_are_refused(bad: object) -> None:
    async def story(site: Site) -> None:
        no = await site.post("/sql", {"sql": "SELECT ?", "parameters": [bad]})
        assert (no.status, no.json["kind"], no.json["retriable"]) == (400, "malformed", False)

    play(story)


def test_a_named_update_can_be_asked_for_again_and_asked_after() -> None:
    async def story(site: Site) -> None:
        named = {"sql": "INSERT INTO t DEFAULT VALUES", "session": "shop-7@2", "number": 5, "received": 4}
        done = await site.post("/sql", named)
        assert (done.json["session"], done.json["number"]) == ("shop-7@2", 5)

        outcome = await site.get("/outcome?session=shop-7@2&number=5", by="rita")
        assert (outcome.status, outcome.json["verdict"], outcome.json["position"]) == (200, "done", 4)
        unknown = await site.get("/outcome?session=shop-7@2&number=6")
        assert (unknown.status, unknown.json["kind"]) == (404, "unknown")

        half = await site.post("/sql", named | {"number": None})
        assert (half.status, half.json["kind"]) == (400, "malformed")

    play(story)


def test_an_accepted_update_is_told_at_once_with_its_name() -> None:
    async def story(site: Site) -> None:
        site.desk.held = []
        taken = await site.post("/sql", {"sql": "INSERT INTO t DEFAULT VALUES", "wait": "accepted"})
        assert (taken.status, taken.json["colour"], taken.json["number"]) == (202, "accepted", 1)
        assert taken.json["session"].endswith("@3")
        site.desk.release()

    play(story)


def test_an_answer_that_does_not_come_leaves_the_name_to_ask_for() -> None:
    async def story(site: Site) -> None:
        site.desk.held = []
        late = await site.post("/sql", {"sql": "INSERT INTO t DEFAULT VALUES"})
        assert (late.status, late.json["kind"], late.json["retriable"]) == (504, "timeout", True)
        assert (late.json["number"], "@" in late.json["session"]) == (1, True)
        assert site.desk.forgotten == [1]
        site.desk.release()

        site.desk.refusal = Unanswered(0, "it leaves")
        lost = await site.post("/sql", {"sql": "INSERT INTO t DEFAULT VALUES"})
        assert (lost.status, lost.json["kind"], lost.json["number"]) == (503, "lost", 1)
        site.desk.refusal = Refused(0, "full")
        full = await site.post("/sql", {"sql": "SELECT 1"})
        assert (full.status, full.json["kind"], full.json["retriable"]) == (503, "unavailable", True)

    play(story, Limits(http_wait_s=0.2))


def test_a_batch_is_decided_one_by_one_and_a_transaction_as_one() -> None:
    async def story(site: Site) -> None:
        insert = {"sql": "INSERT INTO t (text) VALUES (?)", "parameters": ["same"]}
        batch = await site.post("/batch", {"statements": [insert, insert]})
        assert (batch.status, batch.json["number"]) == (200, 1)
        assert [each["verdict"] for each in batch.json["outcomes"]] == ["done", "failed"]
        assert batch.json["outcomes"][1]["retriable"] is False
        assert "UNIQUE" in batch.json["outcomes"][1]["error"]

        failed = await site.post("/transaction", {"statements": [{"sql": "SELECT 1"}, insert]})
        assert (failed.status, failed.json["verdict"], failed.json["statement"]) == (409, "failed", 1)
        two = await site.post("/transaction", {"statements": [{"sql": "SELECT 1"}, {"sql": "SELECT 2"}]})
        assert [each["rows"] for each in two.json["results"]] == [[[1]], [[2]]]

        none = await site.post("/batch", {"statements": []})
        many = await site.post("/batch", {"statements": [insert] * (WINDOW + 1)})
        assert (none.status, many.status) == (400, 400)

    play(story)


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(Verdict.EARLY, 409), (Verdict.CROWDED, 429), (Verdict.EXPIRED, 410), (Verdict.RELEASED, 410)],
)
def test_what_is_not_decided_is_told_with_what_to_do(verdict: Verdict, status: int) -> None:
    async def story(site: Site) -> None:
        site.desk.outcomes["c1@0", 1] = Outcome(verdict)
        told = await site.get("/outcome?session=c1@0&number=1")
        assert (told.status, told.json["kind"]) == (status, verdict)
        assert told.json["error"]

    play(story)


def test_roles_and_passwords_are_held_to() -> None:
    async def story(site: Site) -> None:
        insert = {"sql": "INSERT INTO t DEFAULT VALUES"}
        assert (await site.post("/sql", insert, by="rita")).status == 403
        assert (await site.post("/users", {"user": "zoe"}, by="will")).status == 403
        for header in ("", "Basic !", "Basic " + base64.b64encode(b"will").decode(), "Bearer no", _basic("will", "no")):
            no = await asyncio.to_thread(site._call, "POST", "/sql", b"{}", header)
            assert (no.status, no.json["kind"]) == (401, "password"), header
            assert no.headers["www-authenticate"].startswith("Basic")
        assert len(site.desk.log) == 3

    play(story)


def test_who_guesses_is_told_when_to_come_back_and_cannot_say_to_be_elsewhere() -> None:
    async def story(site: Site) -> None:
        def guess(number: int) -> Answer:
            headers = {"Authorization": _basic("will", f"guess {number}"), "X-Forwarded-For": f"10.9.9.{number}"}
            return site._call("GET", "/digest", b"", "", headers)

        told = [await asyncio.to_thread(guess, number) for number in range(OF_A_USER + 1)]
        assert [each.status for each in told] == [401] * OF_A_USER + [429]
        assert told[-1].headers["retry-after"] == "6"
        assert (await site.get("/digest")).status == 429, "also with the right one"
        assert (await site.get("/digest", by="ann")).status == 200

    play(story)


def test_the_operator_appoints_users_over_http() -> None:
    async def story(site: Site) -> None:
        zoe = json.dumps({"user": "zoe", "role": "write", "password": "secret"}).encode()
        done = await site.raw("POST", "/users", zoe, f"Bearer {credential(KEY)}")
        assert (done.status, done.json["user"], done.json["role"]) == (200, "zoe", "write")
        hers = _basic("zoe", "secret")
        assert (await site.raw("POST", "/sql", b'{"sql": "INSERT INTO t DEFAULT VALUES"}', hers)).status == 200

        gone = await site.post("/users", {"user": "zoe", "password": None}, by="ann")
        assert (gone.status, gone.json["role"]) == (200, None)
        assert (await site.raw("POST", "/sql", b'{"sql": "SELECT 1"}', hers)).status == 401
        assert (await site.post("/users", {"user": "zoe", "password": ""}, by="ann")).status == 400
        assert (await site.post("/users", {"user": "operator", "password": "x"}, by="ann")).status == 409

    play(story)


def test_the_order_is_shown_without_what_is_secret() -> None:
    async def story(site: Site) -> None:
        await site.post("/sql", {"sql": "INSERT INTO t (text) VALUES (?)", "parameters": [{"base64": "AA=="}]})
        await site.post("/users", {"user": "zoe", "role": "read", "password": "secret"}, by="ann")
        log = await site.get("/log?first=4", by="ann")

        (insert,) = log.json["bundles"][0]["actions"]
        assert (log.json["next"], log.json["bundles"][0]["bundle"]) == (6, "p#4")
        assert insert["statements"] == [{"sql": "INSERT INTO t (text) VALUES (?)", "parameters": [{"base64": "AA=="}]}]
        (appoints,) = log.json["bundles"][1]["actions"]
        assert (appoints["user"], appoints["role"], appoints["is_dropped"]) == ("zoe", "read", False)
        assert "scrypt" not in json.dumps(log.json)

        assert [each["position"] for each in (await site.get("/log?first=2&last=3")).json["bundles"]] == [2, 3]
        assert (await site.get("/log?first=6")).json == {"bundles": [], "next": 6}
        assert (await site.get("/log?first=x")).status == 400
        site.desk.low = 3
        assert (await site.get("/log?first=2")).status == 410

    play(story)


def test_digests_are_told_in_hexadecimal() -> None:
    async def story(site: Site) -> None:
        told = await site.get("/digest", by="rita")
        assert (told.json["position"], told.json["order"], told.json["state"]) == (3, b"order".hex(), b"state".hex())

    play(story)


@pytest.mark.parametrize("query", ["WITH w AS (SELECT 7) SELECT * FROM w", "-- why\nSELECT 7", "/* why */ VALUES (7)"])
def test_what_changes_nothing_is_a_query_however_it_begins(query: str) -> None:
    async def story(site: Site) -> None:
        told = await site.post("/sql", {"sql": query}, by="rita")
        assert (told.status, told.json["rows"]) == (200, [[7]])
        assert len(site.desk.log) == 3, "it is not ordered"

    play(story)


def test_what_changes_something_is_an_update_however_it_begins() -> None:
    async def story(site: Site) -> None:
        insert = {"sql": "WITH w AS (SELECT 7) INSERT INTO t (text) SELECT * FROM w"}
        assert (await site.post("/sql", insert, by="rita")).status == 403
        done = await site.post("/sql", insert)
        assert (done.status, done.json["verdict"], len(site.desk.log)) == (200, "done", 4)

    play(story)


def test_what_is_wrong_is_decided_by_the_order_for_those_who_may_ask_it() -> None:
    """A table that is not here yet may be there by then."""

    async def story(site: Site) -> None:
        wrong = {"sql": "WITH w AS (SELECT * FROM nowhere) SELECT * FROM w"}
        for by, status in (("will", 409), ("rita", 400)):
            told = await site.post("/sql", wrong, by=by)
            assert (told.status, "no such table" in told.json["error"]) == (status, True), by

    play(story)


@pytest.mark.parametrize("asked", ["", "?session=c1@0", "?number=1", "?session=c1@0&number=0", "?session=c1&number=1"])
def test_the_outcome_of_nothing_in_particular_is_not_asked_for(asked: str) -> None:
    async def story(site: Site) -> None:
        no = await site.get(f"/outcome{asked}")
        assert (no.status, no.json["kind"], "session=h1@7" in no.json["error"]) == (400, "malformed", True)

    play(story)


def test_nonsense_is_answered_with_what_to_do() -> None:
    async def story(site: Site) -> None:
        deep = b'{"sql": "SELECT ?", "parameters": ' + b"[" * 3000
        for body in (b"", b"{", b"[]", b'{"sql": 1}', b'{"sql": "x", "typo": 1}', deep, b"\xff"):
            no = await site.raw("POST", "/sql", body)
            assert (no.status, no.json["kind"]) == (400, "malformed"), body[:20]
        large = await site.raw("POST", "/sql", b" " * 5000)
        assert (large.status, large.json["kind"]) == (413, "too large")
        long = await site.post("/sql", {"sql": "INSERT INTO t (text) VALUES (?)", "parameters": ["x" * 2000]})
        assert (long.status, long.json["kind"]) == (413, "too large")
        failed = await site.post("/sql", {"sql": "SELECT nonsense"})
        assert (failed.status, "no such column" in failed.json["error"]) == (400, True)
        assert (await site.get("/nowhere")).status == 404
        assert (await site.get("/sql")).status == 405
        site.desk.is_open, site.desk.why_closed = False, "the disk is full"
        closed = await site.post("/sql", {"sql": "SELECT 1"})
        assert (closed.status, closed.json) == (503, {"error": "the disk is full", "kind": "closed", "retriable": True})

    play(story, Limits(http_bytes=4000, action_bytes=1000))


async def until_closed(site: Site, said: bytes) -> None:
    """Somebody says no more than this, inside TLS, and is hung up on."""
    reader, writer = await asyncio.open_connection(*site.address, ssl=client_context(ca_pem(KEY)))
    writer.write(said)
    with suppress(ConnectionError):
        assert await reader.read(1) == b""
    writer.transport.abort()


async def _is_hung_up_on(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        assert await reader.read(1) == b""


@pytest.mark.parametrize("said", [b"", b"POST /sql HT", b"POST /sql HTTP/1.1\r\nHost: p\r\n"])
def test_who_never_ends_a_request_is_hung_up_on(said: bytes) -> None:
    async def story(site: Site) -> None:
        await until_closed(site, said)

    play(story, Limits(hello_s=0.1))


def test_who_never_ends_a_body_is_told_and_who_waits_for_an_answer_is_not_hung_up_on() -> None:
    async def story(site: Site) -> None:
        reader, writer = await asyncio.open_connection(*site.address, ssl=client_context(ca_pem(KEY)))
        head = f"POST /sql HTTP/1.1\r\nHost: p\r\nAuthorization: {_basic('will')}\r\nContent-Length: 9\r\n\r\n"
        writer.write(head.encode())
        assert b"400" in await reader.readline()
        writer.transport.abort()

        site.desk.held = []
        asked = asyncio.create_task(site.post("/sql", {"sql": "SELECT 1"}))
        assert (await asked).status == 504, "after many looks whether it is idle"

    play(story, Limits(hello_s=0.05, http_wait_s=0.5))


def test_one_connection_too_many_is_closed() -> None:
    async def story(site: Site) -> None:
        trusted = client_context(ca_pem(KEY))
        kept = [await asyncio.open_connection(*site.address, ssl=trusted) for _ in range(2)]
        await until_closed(site, b"")
        for _, writer in kept:
            writer.transport.abort()

    play(story, Limits(http_connections=2))


def test_strangers_who_never_begin_a_handshake_are_bounded_and_others_come_in_after_them() -> None:
    """They say nothing, so that nobody but the listening socket knows of them; it has room for 2 + 64."""

    async def story(site: Site) -> None:
        mute = [await asyncio.open_connection(*site.address) for _ in range(80)]
        hung_up = [asyncio.create_task(_is_hung_up_on(reader)) for reader, _ in mute]
        await until(lambda: sum(each.done() for each in hung_up) == 80 - 66)
        for _, writer in mute:
            writer.transport.abort()
        await asyncio.wait(hung_up)
        assert (await site.get("/digest")).status == 200

    play(story, Limits(http_connections=2))


def test_http_in_clear_is_not_answered_where_there_is_tls() -> None:
    async def story(site: Site) -> None:
        reader, writer = await asyncio.open_connection(*site.address)
        writer.write(b"GET /digest HTTP/1.1\r\nHost: p\r\n\r\n")
        with suppress(ConnectionError):
            assert b"HTTP" not in await reader.read(100)
        writer.transport.abort()

    play(story)
