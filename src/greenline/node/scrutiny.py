"""Scrutiny: what a client asks for is looked at once, here, before it is ordered. Databases see it everywhere.

It has to be quick: most of it is one look at a few bytes of every action. What only looks like an action is found by
the databases, and fails alike everywhere. But nothing that is ordered may be so deeply nested that it depends on the
reader whether it can be opened: only a long body can be, and those are opened here.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from greenline.access import wire
from greenline.kernel import statements
from greenline.kernel.actions import WINDOW, Action, Packed, Series, born_at, open_packed, pack_series, pack_singly
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import Inquiry, Statement, Trial
from greenline.node.edge import Declined, Desk, Limits

SESSION = re.compile(r"[A-Za-z0-9_.:-]{1,45}@[0-9]{1,18}")
_WORK = b"\x94\x01"
"""How the body of `Work` begins: an array of four, the first of which is its tag."""
_MOST_PARTS = 3
"""Of a statement."""
_SHALLOW_BYTES = 512
"""Whatever has no more bytes is not nested more deeply than any reader can follow."""
_REMEMBERED = 1024
_SCALARS = frozenset({int, float, str, bytes, type(None)})


class Scrutiny:
    """Of the updates of one client. Raises `Declined`."""

    def __init__(self, desk: Desk, limits: Limits) -> None:
        self._desk = desk
        self._limits = limits
        self._births: dict[str, int] = {}
        """Where the sessions that it has used begin."""

    def demand_sound(self, write: wire.Write) -> None:
        try:
            packed = open_packed(write.actions)
        except Garbled as error:
            raise Declined("malformed", f"the actions cannot be opened: {error}") from None
        self._demand_canonical(write.actions, packed)
        count = len(packed.tails) if isinstance(packed, Series) else len(packed)
        if count != write.count or not count:
            raise Declined("malformed", f"these are {count} actions, and should be {write.count}, at least one")
        if not isinstance(packed, Series):
            self._demand_each_sound(packed)
        elif _is_shallow(packed):
            self.demand_sound_session(packed.session)
        else:
            self._demand_each_sound(packed.actions)

    @staticmethod
    def _demand_canonical(actions: bytes, packed: Packed) -> None:
        """Nothing hides behind the last field of anything, and nothing that takes long to decide is short to send."""
        if isinstance(packed, Series):
            if len(packed.tails) > WINDOW:
                raise Declined("malformed", f"a session has at most {WINDOW} requests under way; send fewer at a time")
            again = pack_series(packed)
        else:
            if len(packed) > wire.MOST_ACTIONS:
                raise Declined("malformed", f"at most {wire.MOST_ACTIONS} actions are taken at a time; send fewer")
            again = pack_singly(packed)
        if again != actions:
            raise Declined("malformed", "the actions are packed otherwise than greenline.kernel.actions does")

    def _demand_each_sound(self, actions: tuple[Action, ...]) -> None:
        session: str | None = None
        most = self._limits.action_bytes
        for action in actions:
            if action.session != session:
                session = action.session
                self.demand_sound_session(session)
            body = action.body
            size = len(body)
            if size > most:
                raise Declined("too large", f"{action} has {size} bytes; at most {most} are taken")
            if (
                action.number < 1
                or action.reads
                or not body.startswith(_WORK)
                or (size > _SHALLOW_BYTES and not _is_plain_work(body))
            ):
                raise Declined("malformed", _what_is_wrong(action))

    def demand_sound_session(self, session: str) -> None:
        born = self._births.get(session)
        if born is None:
            born = self._born(session)
        if born > self._desk.durable_green:
            why = f"session {session} begins at position {born}, which this node has not reached"
            raise Declined("unavailable", f"{why}; ask another, or later", is_retriable=True)
        ending = self._desk.ending_before
        if ending is not None and born < ending:
            why = f"session {session} is about to end, with all that were named before position {ending}"
            raise Declined("ending", f"{why}; open a new one")

    def _born(self, session: str) -> int:
        if not SESSION.fullmatch(session):
            what = "a session is named like c7@1200: letters, digits or _.:- and the position that Welcome told"
            raise Declined("malformed", f"{session[:64]!r} names no session; {what}")
        if len(self._births) >= _REMEMBERED:
            self._births.clear()
        born = self._births[session] = born_at(session)
        return born


def _is_shallow(series: Series) -> bool:
    """All of them are short, and begin as they should."""
    longest = len(series.head) + max(map(len, series.tails))
    return series.first >= 1 and series.head.startswith(_WORK) and longest <= _SHALLOW_BYTES


def sound_request(read: wire.Read) -> bytes:
    """The query that this asks, if a database can answer it. Raises `Declined`."""
    if read.request is None:
        raise Declined("malformed", "a read asks either a request or the outcome of one; this asks nothing")
    try:
        request = statements.request_of(read.request)
    except Garbled as error:
        raise Declined("malformed", f"the query cannot be opened: {error}") from None
    if isinstance(request, Inquiry):
        raise Declined("malformed", "this is what nodes ask of themselves; send a Question")
    asked = request.work.statements if isinstance(request, Trial) else (request.statement,)
    if not all(_is_plain(each.parameters) for each in asked):
        raise Declined("malformed", "a parameter is none of int, float, str, bytes or None")
    return read.request


def is_trial(request: bytes) -> bool:
    """It runs where writes do, and so only for those who may write."""
    return isinstance(statements.request_of(request), Trial)


def _is_plain_work(body: bytes) -> bool:
    """Untyped: a type would let pass what follows after a statement's parts, however deep."""
    try:
        work = msgspec.msgpack.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        return False
    is_list = isinstance(work[3], list)
    return is_list and all(isinstance(each, list) and _is_plain_statement(each) for each in work[3])


def _is_plain_statement(parts: list[Any]) -> bool:
    try:
        statement = msgspec.convert(parts, Statement)
    except msgspec.ValidationError:
        return False
    return len(parts) <= _MOST_PARTS and _is_plain(statement.parameters)


def _is_plain(parameters: statements.Parameters) -> bool:
    values = parameters.values() if isinstance(parameters, dict) else parameters
    return _SCALARS.issuperset(map(type, values))


def _what_is_wrong(action: Action) -> str:
    if action.number < 1:
        return f"requests of a session are numbered from 1, and this one has {action.number}"
    if action.reads:
        return f"{action} says what it has read beside its statements; say it in them, as what each is expected to be"
    return f"{action} has a body that is no Work of plain statements; encode it with greenline.kernel.statements"
