"""Verdicts: what an audit came to, of whichever engine; for the command, the report, and as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from greenline.pipeline.report_counts import Counts
from greenline.spec.judge import Broken, Rule

SCHEMA = pa.schema(
    [
        ("rule", pa.string()),
        ("claim", pa.string()),
        ("run", pa.string()),
        ("because", pa.string()),
        ("witness", pa.string()),
    ]
)


@dataclass(frozen=True)
class Verdict:
    """What one rule says."""

    rule: Rule
    broken: list[Broken]
    """The first violations, in a fixed order."""
    count: int
    """Of all of them."""
    seconds: float

    def __add__(self, other: Verdict) -> Verdict:
        """Of other runs."""
        broken, count = self.broken + other.broken, self.count + other.count
        return Verdict(self.rule, broken, count, self.seconds + other.seconds)

    def at_most(self, most: int) -> Verdict:
        return replace(self, broken=self.broken[:most])


@dataclass(frozen=True)
class Verdicts:
    engine: str
    place: str
    counts: Counts
    verdicts: list[Verdict]
    preparing: float
    """Seconds for what rules have in common: tables, the certificate of order."""
    seconds: float
    """In all."""

    @property
    def broken(self) -> list[Verdict]:
        return [each for each in self.verdicts if each.count]

    def only(self, is_one: Callable[[Broken], bool]) -> Verdicts:
        """Of the violations that are kept, those."""
        verdicts = [
            replace(each, broken=some, count=len(some))
            for each in self.verdicts
            for some in [[one for one in each.broken if is_one(one)]]
        ]
        return replace(self, verdicts=verdicts)

    def at_most(self, most: int) -> Verdicts:
        """With so many violations of each rule; all of them are still counted."""
        return replace(self, verdicts=[each.at_most(most) for each in self.verdicts])

    def write(self, path: Path) -> None:
        """A table of broken rules with their witnesses, one row a violation; Parquet. Whole, whenever it is read."""
        rows = [
            {
                "rule": each.rule,
                "claim": verdict.rule.claim,
                "run": each.run,
                "because": each.because,
                "witness": json.dumps(each.witness, default=str),
            }
            for verdict in self.broken
            for each in verdict.broken
        ]
        with whole(path) as aside:
            pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), aside)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write what is then put in its place: whoever watches the file sees all of it, or the one before it. What
    is there and no file, a device, say, is written itself."""
    there = path.resolve()
    if there.exists() and not there.is_file():
        yield there
        return
    aside = there.with_name(there.name + ".part")
    try:
        yield aside
        aside.replace(there)
    finally:
        aside.unlink(missing_ok=True)
