"""The database port, with a real SQLite behind it and a core that speaks through `Call` in the simulator."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b

from greenline.kernel.actions import Outcome, Verdict
from greenline.kernel.core import Chance
from greenline.kernel.database import (
    DATABASE,
    Answer,
    Applied,
    Apply,
    Ask,
    Commit,
    Committed,
    Open,
    Opened,
    Refused,
)
from greenline.kernel.effects import Append, Barrier, Call, Effect
from greenline.kernel.events import Answered, Downcall, Durable, Event, Upcall
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Multicast, Service
from greenline.kernel.router import Layer
from greenline.simulation.world import World
from tests.simulation.echo import Word


class Ledger:
    """As small an adapter as there can be: a bundle is one row, and knows its position."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.execute("CREATE TABLE ledger (position INTEGER PRIMARY KEY, entry BLOB NOT NULL)")
        self.committed = 0

    @property
    def position(self) -> int:
        (position,) = self.db.execute("SELECT coalesce(max(position), 0) FROM ledger").fetchone()
        return int(position)

    def answer(self, request: Ask) -> Answer:
        match request:
            case Open():
                return self._opened()
            case Apply(position, bundle):
                return self._apply(position, b"".join(bundle))
            case Commit(position):
                self.committed = position
                return Committed(position, position)
            case _:
                return Refused("a ledger does no more")

    def _apply(self, position: int, bundle: bytes) -> Answer:
        if position != self.position + 1:
            return Refused(f"bundle {position} after {self.position}: one would be skipped or repeated")
        self.db.execute("INSERT INTO ledger VALUES (?, ?)", (position, bundle))
        return Applied(position, self._digest(), (Outcome(Verdict.DONE, b"1 row"),))

    def _opened(self) -> Opened:
        return Opened(self.position, self._digest(), self.committed)

    def _digest(self) -> bytes:
        return blake2b(repr(self.db.execute("SELECT * FROM ledger ORDER BY 1").fetchall()).encode()).digest()


class Clerk:
    """A core that enters what it is asked to at once, the commit gated on the record: log before data."""

    phase = None

    def __init__(self) -> None:
        self.position = 0

    def handle(self, now: float, event: Event) -> list[Effect]:
        match event:
            case Downcall(Multicast() as entry):
                self.position += 1
                apply = Call(self.position, DATABASE, Apply(self.position, (entry.payload,)))
                commit = Call(-self.position, DATABASE, Commit(self.position), gate=self.position)
                return [apply, Append(Word(entry.payload)), Barrier(self.position), commit]
            case Durable(ticket):
                return [Upcall(("durable", ticket))]
            case Answered(_, result):
                return [Upcall(result)]
        return []


def test_a_commit_waits_for_its_record_and_its_answer_comes_back() -> None:
    def build(me: ProcId, everybody: tuple[ProcId, ...], chance: Chance) -> list[Layer]:
        return [Layer("clerk", 1, Clerk(), Word, Word)]

    ledger = Ledger()
    world = World(("p",), "0", build, ports={DATABASE: lambda name, ask: (ledger.answer(ask.request), 0.01)})
    world["p"].start()
    world.run_until(0.1)

    world["p"].multicast(b"one", Service.SAFE)
    assert ledger.position == 1, "it is applied as soon as it is asked for"
    assert ledger.committed == 0, "and nothing is committed before its record is forced"
    world.run_until(0.2)
    assert ledger.committed == 1
    durable, applied, committed = world["p"].app.told
    assert durable == ("durable", 1)
    assert isinstance(applied, Applied)
    assert applied.position == 1
    assert committed == Committed(1, durable=1)


def test_an_adapter_neither_skips_nor_repeats() -> None:
    ledger = Ledger()
    assert ledger.answer(Open()) == Opened(0, ledger._digest(), durable=0)
    assert isinstance(ledger.answer(Apply(1, (b"one",))), Applied)
    assert isinstance(ledger.answer(Apply(1, (b"one",))), Refused)
    assert isinstance(ledger.answer(Apply(3, (b"three",))), Refused)
