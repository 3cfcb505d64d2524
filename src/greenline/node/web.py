"""SQL over HTTP and JSON: for programs that have no client library, and for people with curl.

POST /sql          {"sql": "INSERT INTO t VALUES (?)", "parameters": [1]}      an update, or a query
POST /batch        {"statements": [{"sql": ..., "parameters": [...]}, ...]}    each for itself, in this order
POST /transaction  the same, all or nothing
GET  /outcome      ?session=h1@7&number=1                                      what became of an update
GET  /log          ?first=1&last=100                                           the order, as far as it is there
GET  /digest                                                                   where this replica stands
POST /users        {"user": "ann", "role": "write", "password": "..."}         null: nobody any more

Whoever wants an update to happen once, come what may, names a session and a number, and asks for the same again until
there is an answer. Who names none is given one with every update; it is told also when the answer fails to come.
What changes nothing is a query, and not ordered: if its first word does not tell, the database does. `consistency` says
that it is one, whatever it looks like.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from greenline.access import wire
from greenline.access.passwords import MOST_BYTES, SALT_BYTES, verifier
from greenline.kernel.actions import WINDOW, Action, Outcome, OutcomeOf, Verdict, pack
from greenline.kernel.statements import Look, Question, Reply, Result, Role, Statement, Work, encode, reply_of
from greenline.node import webjson
from greenline.node.attendant import appointing
from greenline.node.edge import Declined, Desk, Discarded, Limits, Listener, Told, kind_of
from greenline.node.scrutiny import SESSION, Scrutiny, sound_request
from greenline.node.users import OPERATOR, Known, TooManyGuesses, Users
from greenline.replication.port import Accepted, Answer, Level, Reads, Refused, Replied, Unanswered

_READS = frozenset({"select", "values", "explain"})
_CHANGES = frozenset({"insert", "replace", "update", "delete", "create", "alter", "drop"})
"""First words that tell; WITH and comments do not."""
_STATUS = {
    "password": 401,
    "guesses": 429,
    "role": 403,
    "malformed": 400,
    "too large": 413,
    "discarded": 410,
    "ending": 410,
    "refused": 409,
    "timeout": 504,
}
"""Whatever else there is may be better elsewhere, or later: 503."""
_OPEN = frozenset({"lost", "timeout"})
"""It may have been done, or be done later: whoever asks again needs its name."""
_UNDECIDED = {
    Verdict.EARLY: (409, "requests of its session before it are not decided; ask for those first"),
    Verdict.CROWDED: (429, "too many outcomes are kept for its session; say with `received` what you have"),
    Verdict.EXPIRED: (410, "its session is over, and whether it was done is forgotten; use a new session"),
    Verdict.RELEASED: (410, "it was decided long ago, and its outcome was received"),
    Verdict.UNKNOWN: (404, "it is not decided so far"),
}
_THERE_IS = "POST /sql /batch /transaction /users, GET /outcome /log /digest"

_Handler = Callable[[Request], Awaitable[Response]]
_T = TypeVar("_T")


def web_app(desk: Desk, users: Users, limits: Limits | None = None) -> Starlette:
    return Web(desk, users, limits or Limits()).app


class Web:
    def __init__(self, desk: Desk, users: Users, limits: Limits) -> None:
        self._desk = desk
        self._users = users
        self._limits = limits
        self._scrutiny = Scrutiny(desk, limits)
        self.app = Starlette(
            routes=[
                Route("/sql", self._checked(self._sql), methods=["POST"]),
                Route("/batch", self._checked(self._batch), methods=["POST"]),
                Route("/transaction", self._checked(self._transaction), methods=["POST"]),
                Route("/outcome", self._checked(self._outcome), methods=["GET"]),
                Route("/log", self._checked(self._log), methods=["GET"]),
                Route("/digest", self._checked(self._digest), methods=["GET"]),
                Route("/users", self._checked(self._appoint), methods=["POST"]),
            ],
            exception_handlers={HTTPException: _elsewhere},
        )

    # What can be asked.

    async def _sql(self, request: Request, known: Known) -> Response:
        asked = _decoded(await self._body(request), webjson.Sql, '{"sql": "SELECT 1"}')
        statement = Statement(asked.sql, webjson.parameters_of(asked.parameters))
        if asked.consistency is not None or await self._is_query(statement, known):
            return await self._query(statement, asked.consistency or Reads.STRICT, asked.after)
        return await self._update(known, asked, [_work(statement)])

    async def _batch(self, request: Request, known: Known) -> Response:
        asked = _decoded(await self._body(request), webjson.Several, '{"statements": [{"sql": "..."}]}')
        if len(asked.statements) > WINDOW:
            raise Declined("malformed", f"a batch has at most {WINDOW} statements; send several, or one transaction")
        return await self._update(known, asked, [_work(each.statement) for each in asked.statements], is_batch=True)

    async def _transaction(self, request: Request, known: Known) -> Response:
        asked = _decoded(await self._body(request), webjson.Several, '{"statements": [{"sql": "..."}]}')
        return await self._update(known, asked, [_work(*(each.statement for each in asked.statements))])

    async def _outcome(self, request: Request, _: Known) -> Response:
        session, number = request.query_params.get("session", ""), _number(request, "number", None)
        if not SESSION.fullmatch(session) or not number:
            raise Declined("malformed", "name the update: /outcome?session=h1@7&number=1, as its answer had them")
        asked = OutcomeOf(session, number)
        told = await self._told(lambda listener: self._desk.ask(asked, Reads.STRICT, 0, True, listener))
        assert isinstance(told, Answer)
        assert told.outcome is not None
        return _outcome_response(told.outcome, {"session": session, "number": number})

    async def _log(self, request: Request, _: Known) -> Response:
        first, last = max(1, _number(request, "first", 1) or 1), _number(request, "last", None)
        try:
            found = self._desk.ordered(first, self._limits.log_bytes)
        except Discarded as error:
            raise Declined("discarded", str(error)) from None
        wanted = [each for each in found if last is None or each.position <= last]
        then = wanted[-1].position + 1 if wanted else first
        return _json(200, {"bundles": [webjson.bundle_json(each) for each in wanted], "next": then})

    async def _digest(self, _: Request, __: Known) -> Response:
        told: asyncio.Future[tuple[int, bytes, bytes]] = asyncio.get_running_loop().create_future()
        self._desk.digests(lambda *each: None if told.done() else told.set_result(each))
        position, order, state = await self._in_time(told)
        where = webjson.where_json(self._desk.where)
        return _json(200, {"position": position, "order": order.hex(), "state": state.hex(), "component": where})

    async def _appoint(self, request: Request, known: Known) -> Response:
        known.demand("admin")
        asked = _decoded(await self._body(request), webjson.User, '{"user": "ann", "role": "write", "password": "..."}')
        kept = "" if asked.password is None else await _verifier(asked.password)
        actions = appointing(Role(asked.user, asked.role, kept), self._desk)
        told = await self._told(lambda listener: self._desk.submit(actions, 1, Level.LOCAL, listener, tell_taken=False))
        assert isinstance(told, Replied)
        return _outcome_response(told.outcomes[0], {"user": asked.user, "role": asked.role if kept else None})

    # How it is asked.

    async def _is_query(self, statement: Statement, known: Known) -> bool:
        word = next(iter(statement.sql.split(maxsplit=1)), "").lower()
        if word in _READS or word in _CHANGES:
            return word in _READS
        asked = sound_request(wire.Read(1, encode(Look(statement))))
        told = await self._told(lambda listener: self._desk.ask(asked, Reads.WEAK, 0, True, listener))
        assert isinstance(told, Answer)
        match reply_of(told.rows):
            case Result(rows=((is_readonly,),)):
                return bool(is_readonly)
            case _:
                # It is wrong, or of a schema that is not here yet: the order will tell, for those who may ask it.
                return not known.may("write")

    async def _query(self, statement: Statement, reads: Reads, after: int) -> Response:
        asked = sound_request(wire.Read(1, encode(Question(_now(), secrets.randbits(63), statement))))
        told = await self._told(lambda listener: self._desk.ask(asked, reads, after, True, listener))
        assert isinstance(told, Answer)
        reply: Reply = reply_of(told.rows)
        place = {"position": told.position, "reds": told.reds, "consistency": told.reads}
        component = {"component": webjson.where_json(told.where)}
        if isinstance(reply, Result):
            return _json(200, webjson.result_json(reply) | place | component)
        return _json(400, webjson.failure_json(reply) | place | component)

    async def _update(
        self, known: Known, asked: webjson.Sql | webjson.Several, bodies: list[bytes], *, is_batch: bool = False
    ) -> Response:
        known.demand("write")
        if (asked.session is None) != (asked.number is None):
            raise Declined("malformed", "a session and a number go together; name both, or none")
        session = asked.session or f"h{secrets.token_hex(8)}@{self._desk.durable_green}"
        number = asked.number or 1
        actions = tuple(
            Action(session, number + each, body, received=asked.received) for each, body in enumerate(bodies)
        )
        write = wire.Write(1, len(actions), pack(actions), asked.level, asked.wait == "accepted")
        self._scrutiny.demand_sound(write)
        identity = {"session": session, "number": number}
        try:
            told = await self._told(
                lambda listener: self._desk.submit(
                    write.actions, write.count, write.level, listener, tell_taken=write.tell_taken
                ),
            )
        except Declined as no:
            return _refusal(no, identity if no.kind in _OPEN else {})
        if isinstance(told, Accepted):
            accepted = {"colour": "accepted", "bundle": str(told.bundle), "component": webjson.where_json(told.where)}
            return _json(202, identity | accepted)
        assert isinstance(told, Replied)
        place = {"colour": "green", "level": told.level, "component": webjson.where_json(told.where)}
        if not is_batch:
            return _outcome_response(told.outcomes[0], identity | place)
        outcomes = [_outcome_told(each)[1] for each in told.outcomes]
        return _json(200, identity | place | {"outcomes": outcomes})

    async def _told(self, ask: Callable[[Listener], int]) -> Told:
        """The first thing that the desk says to it. Raises `Declined` if that is no answer."""
        first: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        ticket = ask(lambda told: None if first.done() else first.set_result(told))
        try:
            told = await self._in_time(first)
        finally:
            if not first.done() or first.cancelled() or isinstance(first.result(), Accepted):
                self._desk.forget(ticket)
        if isinstance(told, Refused):
            raise Declined(kind_of(told), told.reason, is_retriable=told.is_retriable)
        if isinstance(told, Unanswered):
            raise Declined("lost", f"{told.reason}; ask for the same again, elsewhere", is_retriable=True)
        return told

    async def _in_time(self, answer: asyncio.Future[_T]) -> _T:
        try:
            async with asyncio.timeout(self._limits.http_wait_s):
                return await answer
        except TimeoutError:
            why = f"no answer within {self._limits.http_wait_s:g} s; what was asked for may still be done: ask again"
            raise Declined("timeout", why, is_retriable=True) from None

    # Who asks, and what.

    def _checked(self, handler: Callable[[Request, Known], Awaitable[Response]]) -> _Handler:
        """Whatever a caller can do wrong comes back as JSON."""

        async def answer(request: Request) -> Response:
            try:
                known = await self._known(request)
                if not self._desk.is_open:
                    raise Declined("closed", self._desk.why_closed, is_retriable=True)
                return await handler(request, known)
            except Declined as no:
                return _refusal(no)
            except ClientDisconnect:
                return Response(status_code=400)

        return answer

    async def _known(self, request: Request) -> Known:
        user, password = _credentials(request.headers.get("authorization", ""))
        judged: asyncio.Future[Known | Declined] = asyncio.get_running_loop().create_future()
        host = "" if request.client is None else request.client.host
        self._users.check(host, user, password, lambda told: None if judged.done() else judged.set_result(told))
        known = await judged
        if isinstance(known, Declined):
            raise known
        return known

    async def _body(self, request: Request) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.http_wait_s):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self._limits.http_bytes:
                        why = f"the body has more than {self._limits.http_bytes} bytes; send less"
                        raise Declined("too large", why)
        except TimeoutError:
            why = f"the body did not come within {self._limits.http_wait_s:g} s; nothing was done"
            raise Declined("malformed", why) from None
        return bytes(body)


def _credentials(header: str) -> tuple[str, str]:
    """Of `Basic`, anybody's; of `Bearer`, the operator's."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return OPERATOR, rest.strip()
    try:
        user, colon, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        user = colon = password = ""
    if scheme.lower() != "basic" or not colon:
        raise Declined("password", "say who you are: Authorization: Basic for a user, or Bearer with the credential")
    return user, password


async def _verifier(password: str) -> str:
    if not 1 <= len(password.encode()) <= MOST_BYTES:
        raise Declined("malformed", f"a password has 1 to {MOST_BYTES} bytes; null removes the user")
    return await asyncio.to_thread(verifier, password, secrets.token_bytes(SALT_BYTES))


def _work(*statements: Statement) -> bytes:
    return encode(Work(_now(), secrets.randbits(63), statements))


def _now() -> int:
    return time.time_ns() // 1000


def _number(request: Request, name: str, default: int | None) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(2**62))):
        raise Declined("malformed", f"{name} = {text[:20]!r} is no number")
    return int(text)


def _outcome_told(outcome: Outcome) -> tuple[int, dict[str, Any]]:
    place = {"verdict": outcome.verdict, "position": outcome.position, "sub": outcome.sub, "is_again": outcome.is_again}
    if outcome.verdict is Verdict.DONE:
        return 200, webjson.outcome_json(outcome)
    if outcome.verdict in _UNDECIDED:
        status, error = _UNDECIDED[outcome.verdict]
        return status, place | {
            "error": error,
            "kind": outcome.verdict,
            "retriable": outcome.verdict is Verdict.CROWDED,
        }
    if not outcome.is_whole:
        return 409, place | {
            "error": "it failed; why was too long to be kept",
            "kind": outcome.verdict,
            "retriable": False,
        }
    reply = reply_of(outcome.value)
    assert not isinstance(reply, Result)
    return 409, place | webjson.failure_json(reply)


def _outcome_response(outcome: Outcome, more: dict[str, Any]) -> Response:
    status, told = _outcome_told(outcome)
    return _json(status, told | more)


def _decoded(body: bytes, into: type[_T], example: str) -> _T:
    try:
        return msgspec.json.decode(body, type=into)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Declined("malformed", f"the body does not fit: {error}; send {example}") from None


def _refusal(no: Declined, more: dict[str, Any] | None = None) -> Response:
    told = {"error": no.reason, "kind": no.kind, "retriable": no.is_retriable}
    response = _json(_STATUS.get(no.kind, 503), told | (more or {}))
    if no.kind == "password":
        response.headers["WWW-Authenticate"] = 'Basic realm="greenline", charset="UTF-8"'
    if isinstance(no, TooManyGuesses):
        response.headers["Retry-After"] = str(math.ceil(no.wait_s))
    return response


def _json(status: int, value: object) -> Response:
    return Response(msgspec.json.encode(value) + b"\n", status, media_type="application/json")


async def _elsewhere(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = f"there is no {request.method} {request.url.path}; there is {_THERE_IS}"
    return _json(error.status_code, {"error": told, "kind": "malformed", "retriable": False})
