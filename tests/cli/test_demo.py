from __future__ import annotations

import copy
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from greenline.access.wire import Stands
from greenline.cli.demo_bank import ACCOUNTS, EACH, Bank, End, Transfer
from greenline.cli.demo_evidence import Witness
from greenline.cli.demo_proof import Books, Entry, digests, once, sums
from greenline.cli.demo_screen import Lines, Screen, bar, scale
from greenline.cli.demo_tables import against
from greenline.cli.demo_watch import Look, Seen, Watch
from greenline.cli.local import make
from greenline.replication.messages import Prim
from greenline.replication.port import Where
from greenline.replication.standing import Standing
from tests.cli.command import Greenline

MADE = [
    Transfer("p1", 1, 1, 2, 30, end=End.DONE),
    Transfer("r1", 1, 2, 3, 10, was_red=True, end=End.DONE),
    Transfer("r1", 2, 3, 4, 60, was_red=True, end=End.NO_MONEY),
]
"""What the tellers know."""


def books() -> Books:
    """As they should be after those."""
    balances = dict.fromkeys(range(1, ACCOUNTS + 1), EACH) | {1: 70, 2: 120, 3: 110}
    return Books(balances, [Entry("p1", 1, 1, 2, 30), Entry("r1", 1, 2, 3, 10)])


@pytest.mark.slow
def test_the_demo_proves_what_it_shows_and_keeps_its_files(greenline: Greenline, tmp_path: Path) -> None:
    answer = greenline("demo", "--dir", tmp_path, "--seconds", 1)
    assert answer.status == 0, answer.out + answer.err
    for part in ("sums", "digests", "once", "audit", "tables"):
        assert f"ok    {part}" in answer.out
    assert all(len(each) <= 80 for each in answer.out.splitlines() if str(tmp_path) not in each)
    assert "equal to a replica" in answer.out
    assert (tmp_path / "1" / "p.log").exists()

    kept = tmp_path / "1" / "evidence.parquet"
    assert "every rule holds" in greenline("audit", kept).out

    # The audit would have seen it: an answer that moved.
    rows = pq.read_table(kept).to_pylist()
    told = next(row for row in rows if row["kind"] == "return" and row["colour"] == "green")
    told["position"] += 1
    pq.write_table(type(pq.read_table(kept)).from_pylist(rows, schema=pq.read_schema(kept)), kept)
    answer = greenline("audit", kept, "--rules", "access/03")
    assert answer.status == 1
    assert told["message"] in answer.out


def test_a_ledger_that_is_what_the_tellers_were_told_proves_that_each_transfer_happened_once() -> None:
    assert once({"p": books(), "q": books()}, MADE).against == []


@pytest.mark.parametrize(
    ("spoil", "because"),
    [
        (lambda it: it.entries.append(it.entries[0]), "has p1's 1 2 times"),
        (lambda it: it.entries.pop(), "lacks r1's 1"),
        (lambda it: it.entries.append(Entry("r1", 2, 3, 4, 60)), "has r1's 2, not done"),
        (lambda it: it.balances.update({1: 40}), "account 1 has 40 at q, and by its ledger 70"),
    ],
)
def test_a_ledger_that_is_otherwise_does_not(spoil: object, because: str) -> None:
    spoilt = copy.deepcopy(books())
    assert callable(spoil)
    spoil(spoilt)
    assert any(because in each for each in once({"p": books(), "q": spoilt}, MADE).against)


@pytest.mark.parametrize("end", [End.OPEN, End.FAILED])
def test_a_transfer_that_was_not_answered_or_failed_for_no_reason_speaks_against_it(end: End) -> None:
    assert len(once({"p": books()}, [*MADE, Transfer("q1", 1, 5, 6, 1, end=end)]).against) == 1


def test_money_that_was_made_or_lost_at_one_replica_or_in_one_read_speaks_against_the_sums(tmp_path: Path) -> None:
    watch = Watch(make(tmp_path, ("p", "q")))
    assert sums({"p": books()}, watch).against == []
    poorer = Books(books().balances | {1: 69}, [])
    assert sums({"p": books(), "q": poorer}, watch).against == ["q has 1,199"]
    watch.wrong.append("a dirty read at q found 1,201 after 7")
    assert sums({"p": books()}, watch).against == watch.wrong


def test_replicas_whose_digests_differ_are_named() -> None:
    where = Where("p", True, 1, ("p", "q"))
    one, other = Stands(1, 7, b"order", b"state", where), Stands(1, 7, b"order", b"stale", where)
    assert digests({"p": one, "q": one}).against == []
    assert len(digests({"p": one, "q": other}).against) == 2


def test_tables_that_are_not_what_a_replica_has_are_held_against_them() -> None:
    assert against(books(), books()) == []
    poorer = Books(books().balances | {1: 69}, books().entries[:1])
    assert against(poorer, books()) == [
        "account 1 has 69 in the tables, and 70 at a replica",
        "the ledger has 1 rows, and 2 at a replica",
    ]


def looks(reds: int = 9) -> dict[str, Look]:
    """p and q without r, which is alone with what it has accepted."""
    prim = Prim(3, 1, ("p", "q"), (1, 1))
    many = Standing("RegPrim", prim, True, ("p", "q"), green=1612, white=1403)
    alone = Standing("NonPrim", prim, False, ("r",), green=1404, white=1403, reds=reds)
    seen, dirty = Seen(1200, 1522), Seen(1200, 1531)
    return {"p": Look(many, seen, seen), "q": Look(many, seen, seen), "r": Look(alone, seen, dirty)}


def test_the_screen_fits_into_eighty_columns_and_twenty_four_lines(tmp_path: Path) -> None:
    watch = Watch(make(tmp_path, ("p", "q", "r")))
    watch.looks = looks() | {"q": Look()}
    console = Console(width=80, height=24, force_terminal=False, record=True)
    screen = Screen(watch, Bank(Witness()), console)
    screen.close()
    screen.act(2, "the network is cut: p q | r", "p and q are a majority: they go on as before. " * 5)
    for _ in range(20):
        screen.happened("r alone has accepted a transfer, and keeps it on its disk until the network has healed again")
    console.print(screen.page())
    shown = console.export_text().splitlines()[-24:]
    assert len(shown) <= 24
    assert max(map(len, shown)) <= 80
    assert any(each.startswith("q   down") for each in shown)


def test_a_single_red_bundle_is_seen_and_nobodys_bar_is_longer_than_the_screen() -> None:
    for reds in (0, 1, 5000):
        now = looks(reds)
        bars = [bar(look.standing, *scale(now)).plain for look in now.values() if look.standing is not None]
        assert ("░" in bars[2]) is (reds > 0)
        assert max(map(len, bars)) <= 53


def test_without_a_terminal_each_thing_that_happens_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.act(1, "three replicas come up", "Each is a process.")
    lines.happened("p, q and r are up")
    assert capsys.readouterr().out.splitlines() == [
        "",
        "Act 1 of 5: three replicas come up",
        "  Each is a process.",
        "   0 s  p, q and r are up",
    ]
