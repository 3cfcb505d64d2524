"""Small executions of the adversary, and what can go wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from random import Random

from greenline.kernel.evidence import WORLD, Row
from greenline.kernel.ports import Service
from greenline.simulation.plan import Plan, names_for
from greenline.simulation.play import play
from greenline.simulation.requests import draw_requests

SERVICES = (Service.BASIC, Service.CAUSAL, Service.AGREED, Service.SAFE, Service.SAFE)
SECONDS = 0.6


def small_execution(seed: int) -> list[Row]:
    """A legal execution of two to four processes, some dozens of events long."""
    chance = Random(f"small/{seed}")
    names = names_for(chance.randint(2, 4))
    requests = draw_requests(chance, names, SECONDS, SERVICES)[: chance.randint(2, 12)]
    return play(Plan(core="adversary", seed=seed, names=names, horizon=SECONDS, requests=requests)).rows


def corrupted(rows: list[Row], seed: int) -> list[Row]:
    """The same with one to three mistakes in it; the rows of each life are numbered anew, mostly."""
    chance = Random(f"corrupted/{seed}")
    rows = [copy(row) for row in rows]
    for _ in range(chance.choice((1, 1, 2, 3))):
        rows = chance.choice(MISTAKES)(rows, chance)
    return rows if chance.random() < 0.05 else renumbered(rows)


def renumbered(rows: list[Row]) -> list[Row]:
    places: dict[tuple[str, int], int] = {}
    for row in rows:
        life = row.process, row.incarnation
        row.local_index = places.get(life, 0)
        places[life] = row.local_index + 1
    return rows


def _some(rows: list[Row], chance: Random, *kinds: str) -> Row | None:
    found = [row for row in rows if row.process != WORLD and (not kinds or row.kind in kinds)]
    return chance.choice(found) if found else None


def _place(rows: list[Row], row: Row) -> int:
    return next(place for place, each in enumerate(rows) if each is row)


def dropped(rows: list[Row], chance: Random) -> list[Row]:
    row = _some(rows, chance)
    return [each for each in rows if each is not row]


def duplicated(rows: list[Row], chance: Random) -> list[Row]:
    row = _some(rows, chance)
    if row is not None:
        rows.insert(chance.randrange(_place(rows, row), len(rows)) + 1, copy(row))
    return rows


def swapped(rows: list[Row], chance: Random) -> list[Row]:
    """Two neighbours in one process's order change places."""
    row = _some(rows, chance)
    if row is not None:
        mine = [each for each in rows if (each.process, each.incarnation) == (row.process, row.incarnation)]
        if len(mine) > 1:
            first = chance.randrange(0, len(mine) - 1)
            a, b = _place(rows, mine[first]), _place(rows, mine[first + 1])
            rows[a], rows[b] = rows[b], rows[a]
    return rows


def moved(rows: list[Row], chance: Random) -> list[Row]:
    """An event is said to have happened in another configuration."""
    row, other = _some(rows, chance, "send", "deliver", "crash"), _some(rows, chance, "regular", "transitional")
    if row is not None and other is not None:
        row.conf = other.conf
    return rows


def of_another(rows: list[Row], chance: Random) -> list[Row]:
    """A message is said to be another one: another sender's, or another of the same."""
    row, other = _some(rows, chance, "send", "deliver"), _some(rows, chance, "send", "deliver", "generate")
    if row is not None and other is not None:
        row.message = other.message
    return rows


def by_another(rows: list[Row], chance: Random) -> list[Row]:
    """An event is said to have befallen another process."""
    row, other = _some(rows, chance, "send", "deliver"), _some(rows, chance)
    if row is not None and other is not None:
        row.process, row.incarnation = other.process, other.incarnation
    return rows


def otherwise_promised(rows: list[Row], chance: Random) -> list[Row]:
    """A message is said to have another service, or none."""
    row = _some(rows, chance, "generate", "deliver")
    if row is not None:
        row.service = chance.choice(("basic", "causal", "agreed", "safe", "SAFE", None))
    return rows


def emptied(rows: list[Row], chance: Random) -> list[Row]:
    """Something that a row should say is missing."""
    row = _some(rows, chance, "regular", "transitional", "send", "deliver", "generate")
    if row is not None:
        setattr(row, chance.choice(("members", "conf", "message")), None)
    return rows


def of_others(rows: list[Row], chance: Random) -> list[Row]:
    """A configuration is said to have other members."""
    row = _some(rows, chance, "regular", "transitional")
    if row is not None:
        members = set((row.members or "").split()) ^ {chance.choice("pqrs")}
        changed = " ".join(sorted(members))
        everywhere = chance.random() < 0.5
        conf = row.conf
        for each in rows:
            if each is row or (everywhere and each.kind == row.kind and each.conf == conf):
                each.members = changed
    return rows


def of_another_kind(rows: list[Row], chance: Random) -> list[Row]:
    row = _some(rows, chance, "regular", "transitional")
    if row is not None:
        row.kind = "transitional" if row.kind == "regular" else "regular"
    return rows


def later(rows: list[Row], chance: Random) -> list[Row]:
    """An event is said to have happened much later, or much earlier, in the same life."""
    row = _some(rows, chance)
    if row is not None:
        rows = [each for each in rows if each is not row]
        rows.insert(chance.randrange(0, len(rows) + 1), row)
    return rows


def unquiet(rows: list[Row], chance: Random) -> list[Row]:
    """The end is missing: nobody knows whether the run was over."""
    end = chance.randrange(len(rows) // 2, len(rows) + 1)
    return [row for row in rows[:end] if row.kind != "quiet"]


MISTAKES: tuple[Callable[[list[Row], Random], list[Row]], ...] = (
    dropped,
    duplicated,
    swapped,
    moved,
    of_another,
    by_another,
    otherwise_promised,
    emptied,
    of_others,
    of_another_kind,
    later,
    unquiet,
)
