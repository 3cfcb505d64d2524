"""Users: who somebody is, and what they may do, as the green state of this replica says.

Roles are ranked: who may write may read, and an administrator may do everything. `operator` is there from the
beginning, in no table: whoever has the cluster's key can derive its password (`envelope.credential`), and so appoint
the first user. A cluster without a key lets anybody be the operator: who runs so has asked for it.

Passwords are checked away from the loop, slowly on purpose, in threads that stand back for all others. One that was
right is remembered in this process, under a key that dies with it: a thousand connections of one user cost one check.
How often one may be wrong is bounded (`guesses`). Not for the operator: its password is as long as a key, and checking
it costs nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import os
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import blake2b

import msgspec

from greenline.access.passwords import HASH_BYTES, SALT_BYTES, is_right, is_verifier
from greenline.kernel.statements import Reply, Result, Role
from greenline.node.edge import Declined, Desk, Limits
from greenline.node.guesses import Guesses

OPERATOR = "operator"
RANKS = {"read": 0, "write": 1, "admin": 2}
USER = re.compile(r"[^\s:\x00-\x1f\x7f](?:[^:\x00-\x1f\x7f]{0,62}[^\s:\x00-\x1f\x7f])?")
"""No colon: HTTP could not carry it."""
_THREADS = 2
_STANDS_BACK = 10
"""How nice they are: where others want all the time there is, guesses get a tenth of it. At 19 they would get a
hundredth: then nobody is let in beside two busy processes, and one that is put off while it holds the interpreter's
lock holds up the loop."""
_REMEMBERED = 4096
_SHOWN = 64
"""Characters of a name that is none."""
_FIND = "SELECT role, verifier FROM greenline_users WHERE name = ?"
_FIND_ALL = "SELECT name, role, verifier FROM greenline_users WHERE name IN (SELECT value FROM json_each(?))"


class Known(msgspec.Struct, frozen=True):
    """Somebody who has shown who they are."""

    user: str
    role: str
    verifier: str
    """What the password was checked against: if that changes, so has the password."""

    def may(self, role: str) -> bool:
        return RANKS[self.role] >= RANKS[role]

    def demand(self, role: str) -> None:
        if not self.may(role):
            raise Declined("role", f"this needs the role {role!r}, and {self.user!r} has {self.role!r}")


class TooManyGuesses(Declined):
    def __init__(self, user: str, wait_s: float) -> None:
        why = f"too many wrong passwords have come from this host, or from it for {user!r}"
        super().__init__("guesses", f"{why}; try again in {math.ceil(wait_s)} s", is_retriable=True)
        self.wait_s = wait_s


Judged = Callable[[Known | Declined], None]


class Users:
    """Make it in a running event loop, and close it in the end. Everything is said on the loop's thread."""

    def __init__(self, desk: Desk, credential: Callable[[], str | None], limits: Limits | None = None) -> None:
        """`credential` says what the operator's password is at the moment, or None if there is no key."""
        self._desk = desk
        self._credential = credential
        self._most_checks = (limits or Limits()).password_checks
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="passwords", initializer=_stand_back)
        self._guesses = Guesses()
        self._secret = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, None] = OrderedDict()
        """Passwords that were right, as `_mark` has them, the latest last."""
        self._judging: dict[bytes, list[Callable[[bool], None]]] = {}

    @property
    def credential(self) -> str | None:
        """The operator's password."""
        return self._credential()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def check(self, host: str, user: str, password: str, told: Judged) -> None:
        """`host` is where it comes from."""
        if user == OPERATOR:
            told(self._operator(password))
        elif not USER.fullmatch(user):
            told(_wrong(user))
        elif (wait_s := self._guesses.wait_s(host, user, self._loop.time())) > 0:
            told(TooManyGuesses(user, wait_s))
        else:
            self._desk.look_up(_FIND, (user,), partial(self._on_found, host, user, password, told))

    def current(self, names: Iterable[str], told: Callable[[dict[str, Known]], None]) -> None:
        """What these users are by now; who is missing in the answer is nobody any more."""

        def on_found(reply: Reply) -> None:
            if isinstance(reply, Result):
                told(found | {name: Known(name, role, verifier) for name, role, verifier in reply.rows})

        found = {OPERATOR: Known(OPERATOR, "admin", self.credential or "")}
        self._desk.look_up(_FIND_ALL, (json.dumps(sorted(names)),), on_found)

    def _operator(self, password: str) -> Known | Declined:
        wanted = self.credential
        if wanted is not None and not hmac.compare_digest(password.encode(), wanted.encode()):
            return Declined("password", f"this is not the cluster's credential, which is the password of {OPERATOR!r}")
        return Known(OPERATOR, "admin", wanted or "")

    def _on_found(self, host: str, user: str, password: str, told: Judged, reply: Reply) -> None:
        if not isinstance(reply, Result):
            told(Declined("unavailable", f"users cannot be looked up: {reply}; try another node", is_retriable=True))
            return
        # Nobody learns from the time that it takes whether there is such a user.
        role, verifier = reply.rows[0] if reply.rows else ("", _nobodys_verifier())

        def on_judged(is_good: bool) -> None:
            told(Known(user, role, verifier) if is_good and role in RANKS else _wrong(user))

        def on_paid_for(is_good: bool) -> None:
            if is_good:
                self._guesses.give_back(host, user, self._loop.time())
            on_judged(is_good)

        mark = self._mark(password, verifier)
        if (wait_s := self._guesses.wait_s(host, user, self._loop.time())) > 0:
            told(TooManyGuesses(user, wait_s))
        elif mark in self._right:
            self._right.move_to_end(mark)
            on_judged(True)
        elif mark in self._judging:
            self._judging[mark].append(on_judged)
        elif len(self._judging) >= self._most_checks:
            told(Declined("busy", "too many passwords are being checked; try again in a second", is_retriable=True))
        else:
            self._guesses.pay(host, user, self._loop.time())
            self._judging[mark] = [on_paid_for]
            self._pool.submit(self._check_slowly, mark, password, verifier)

    def _check_slowly(self, mark: bytes, password: str, verifier: str) -> None:
        """In a thread of the pool."""
        is_good = is_right(password, verifier)
        with suppress(RuntimeError):  # the loop may be gone by now
            self._loop.call_soon_threadsafe(self._on_checked, mark, is_good)

    def _on_checked(self, mark: bytes, is_good: bool) -> None:
        if is_good:
            self._right[mark] = None
            if len(self._right) > _REMEMBERED:
                self._right.popitem(last=False)
        for on_judged in self._judging.pop(mark):
            on_judged(is_good)

    def _mark(self, password: str, verifier: str) -> bytes:
        """A verifier has a salt of its own, so that it stands for its user as well."""
        return blake2b(f"{verifier} {password}".encode(), key=self._secret, digest_size=32).digest()


def _wrong(user: str) -> Declined:
    return Declined("password", f"there is no user {user[:_SHOWN]!r} with this password")


def _stand_back() -> None:
    """In a thread of the pool, which has a niceness of its own on Linux."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _STANDS_BACK)


def demand_sound(change: Role) -> None:
    """Can there be such a user?"""
    if change.user == OPERATOR:
        raise Declined(
            "refused", f"{OPERATOR!r} comes with the cluster's key and cannot be changed; choose another name"
        )
    if not USER.fullmatch(change.user):
        raise Declined("malformed", "a user's name has 1 to 64 characters, no colon, and no blank at its ends")
    if change.verifier and not is_verifier(change.verifier):
        raise Declined("malformed", "this is no verifier of a password; make one with greenline.access.passwords")


def _nobodys_verifier() -> str:
    """Takes as long as anybody's, and no password fits."""
    return f"scrypt$16384$8$5${secrets.token_hex(SALT_BYTES)}${secrets.token_hex(HASH_BYTES)}"
