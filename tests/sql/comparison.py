"""Does Greenline say to a script what SQLite says to it, and is the same there in the end? If not, a short proof.

A script is a list of steps: an action, and what is done behind it. Steps can be left out and the rest still makes a
script, which is all that shrinking needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from greenline.kernel.statements import Failure, Statement, Value, encode
from tests.sql.pen import Pen
from tests.sql.plain import NOT_OF_SQLITE, Plain, Said, content_of

Content = dict[str, list[tuple[Value, ...]]]
Played = tuple[list[Said], Content]
"""What each action came to, and what there is in the end."""
TRIES = 300
UNTOLD = -1
"""The statement of a failure, if whoever tells of it does not say which it was."""


class Then(Enum):
    """What is done behind an action."""

    GO_ON = "go on"
    BUNDLE = "end the bundle"
    COMMIT = "end the bundle, commit"
    RESTART = "end the bundle, commit, close and open again"
    LOSE = "end the bundle, close without a commit, open again and apply again"

    # And what is done instead of it, if it is a query.
    ASK = "asked as a query, behind a commit"
    ASK_DIRTY = "asked as a dirty query, before what stands above is applied"


@dataclass(frozen=True, slots=True)
class Step:
    action: tuple[Statement, ...]
    then: Then

    def __str__(self) -> str:
        lines = (f"{each.sql}{f'   with {each.parameters!r}' if each.parameters else ''}" for each in self.action)
        return "\n  + ".join(lines) + (f"\n    -- {self.then.value}" if self.then is not Then.GO_ON else "")


Script = Sequence[Step]
Player = Callable[[Script], Played]


def one_by_one(actions: Sequence[tuple[Statement, ...]]) -> list[Step]:
    return [Step(action, Then.COMMIT) for action in actions]


def in_bundles(actions: Sequence[tuple[Statement, ...]], seed: int, restarts: bool = False) -> list[Step]:
    """Bundles and transactions of any size; with restarts now and then."""
    pen = Pen(seed)
    weights = {Then.GO_ON: 40.0, Then.BUNDLE: 3.0, Then.COMMIT: 1.0}
    if restarts:
        weights |= {Then.RESTART: 0.2, Then.LOSE: 0.2}
    return [Step(action, pen.weighted(weights)) for action in actions]


def with_queries(script: Script, are_queries: Sequence[bool], seed: int) -> list[Step]:
    """Those that only read are asked as queries, half of them dirty ones."""
    pen = Pen(seed)
    asked = {Then.ASK: 1.0, Then.ASK_DIRTY: 1.0}
    return [
        Step(step.action, pen.weighted(asked)) if is_query else step
        for step, is_query in zip(script, are_queries, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Difference:
    script: Script
    what: str

    def __str__(self) -> str:
        return "\n".join(("", *(f"> {step}" for step in self.script), self.what))


def plainly(script: Script) -> Played:
    plain = Plain()
    return [plain.run(step.action) for step in script], content_of(plain.db)


def difference(script: Script, play: Player) -> Difference | None:
    """The first one, with all that was done up to it."""
    (expected, expected_content), (got, got_content) = plainly(script), play(script)
    for place, (should, does) in enumerate(zip(expected, got, strict=True)):
        if not is_alike(should, does):
            return Difference(script[: place + 1], f"SQLite    {should}\nGreenline {does}")
    for name in sorted(expected_content.keys() | got_content.keys()):
        should_hold, holds = expected_content.get(name), got_content.get(name)
        if encode(should_hold) != encode(holds):
            return Difference(script, f"in {name}\nSQLite    {should_hold}\nGreenline {holds}")
    return None


def is_alike(expected: Said, got: Said) -> bool:
    """To the bit, so that 1, 1.0 and TRUE are three things. What SQLite was not asked, it has no words for."""
    if isinstance(expected, Failure) and isinstance(got, Failure):
        if got.statement not in (expected.statement, UNTOLD):
            return False
        return expected.code == NOT_OF_SQLITE or (expected.code, expected.message) == (got.code, got.message)
    return encode(expected) == encode(got)


def shortest(found: Difference, play: Player) -> Difference:
    """Leave out steps, many at a time and then few, while there is still a difference."""
    size, tries = len(found.script) // 2, 0
    while size and tries < TRIES:
        start = 0
        while start < len(found.script) and tries < TRIES:
            tries += 1
            shorter = difference([*found.script[:start], *found.script[start + size :]], play)
            if shorter:
                found = shorter
            else:
                start += size
        size //= 2
    return found


def assert_same(script: Script, play: Player) -> None:
    if found := difference(script, play):
        raise AssertionError(str(shortest(found, play)))
