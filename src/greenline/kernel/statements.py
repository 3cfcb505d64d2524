"""Statements: the bodies of SQL actions and queries, and what they come to, as clients and databases exchange them.

An action is one or more statements that happen together or not at all. All that would differ from replica to replica
comes with it: what time it is, and where chance begins. In between it is bytes, like every action's body.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from greenline.kernel.actions import digest_of
from greenline.kernel.codec import Garbled

Value = Any
"""What SQL knows: int, float, str, bytes or None. Anything else fails where it is used."""
Parameters = tuple[Value, ...] | dict[str, Value]
"""For `?`, in order; or for `:name`, by name."""
NOT_SAID = b""


class Statement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    sql: str
    parameters: Parameters = ()
    expected: bytes = NOT_SAID
    """What it came to when its client tried it (`Result.seen`): if it comes to something else, that is a conflict."""


class Work(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """What an ordered action does."""

    now: int
    """Microseconds since 1970, in UTC."""
    seed: int
    statements: tuple[Statement, ...]


class Role(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A user, and what they may do; or nobody any more, if there is no `verifier`. Only administrators ask for it."""

    user: str
    role: Annotated[str, msgspec.Meta(pattern="^(read|write|admin)$")]
    verifier: str
    """What a password is checked against; never the password."""


class Member(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Where a replica is reached. Only administrators ask for it."""

    name: str
    address: str
    admin: str
    clients: str


Body = Work | Role | Member


class Question(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A query: one statement that changes nothing."""

    now: int
    seed: int
    statement: Statement


class Trial(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """What would these come to, one after the other, from here? The last one's result is answered; all is undone.

    A statement that does not come to what it is `expected` to makes it a conflict.
    """

    work: Work


class Inquiry(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A query of the node's own: it may also read what passwords are checked against. Never taken from a client."""

    statement: Statement


class Look(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """Does this statement change nothing, so that it may be a query? One row with 1 or 0; it is not carried out."""

    statement: Statement


class Result(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """What one statement came to."""

    changes: int = 0
    last_id: int = 0
    """Of the last row that was inserted, or 0."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()

    @property
    def seen(self) -> bytes:
        """What a client that goes on from here relies on. Ids are provisional: who relies on one has it returned."""
        return digest_of(encode((self.changes, self.columns, self.rows)))


class Failure(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Why nothing came of it; nothing is changed."""

    code: int
    """SQLite's extended one, or one of ours."""
    kind: str
    """`ConstraintUnique`, ...: its name."""
    message: str
    statement: int = 0
    """Which of them failed, from 0."""


class Conflict(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """This statement came to something else than its client had seen."""

    statement: int


Reply = Result | Failure | Conflict
"""To a query."""


Request = Question | Trial | Inquiry | Look

encode = msgspec.msgpack.Encoder().encode
_BODIES: msgspec.msgpack.Decoder[Body] = msgspec.msgpack.Decoder(Body)
_REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_REPLIES: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_RESULTS: msgspec.msgpack.Decoder[tuple[Result, ...]] = msgspec.msgpack.Decoder(tuple[Result, ...])
_T = TypeVar("_T")


def body_of(action: bytes) -> Body:
    return _decoded(_BODIES, action, "the body of no action")


def request_of(query: bytes) -> Request:
    return _decoded(_REQUESTS, query, "no query")


def reply_of(rows: bytes) -> Reply:
    """What the answer to a query says; and an `Outcome.value`, if its verdict is failed or conflict."""
    return _decoded(_REPLIES, rows, "no reply")


def results_of(value: bytes) -> tuple[Result, ...]:
    """What the `Outcome.value` of an action that was done says, one for each of its statements."""
    return _decoded(_RESULTS, value, "no results") if value else ()


def _decoded(decoder: msgspec.msgpack.Decoder[_T], data: bytes, what: str) -> _T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise Garbled(f"this is {what}: {error}") from None
