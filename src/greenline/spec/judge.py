"""The judge: runs rules over a trace, in-process on DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa


@dataclass(frozen=True)
class Rule:
    name: str
    """Folder and file: `noticeboard/2_read_once`."""
    claim: str
    """What must hold, as the first comment of the file says it."""
    sql: str

    @property
    def title(self) -> str:
        """For people: `noticeboard 2 read once`."""
        return self.name.replace("/", " ").replace("_", " ")


@dataclass(frozen=True)
class Broken:
    """One row that breaks a rule."""

    rule: str
    run: str
    because: str
    witness: dict[str, Any]

    def __str__(self) -> str:
        seen = ", ".join(f"{name} {value}" for name, value in self.witness.items())
        return f"{self.rule.replace('/', ' ').replace('_', ' ')}: {self.because} ({seen})"


@cache
def rules_in(folder: str) -> tuple[Rule, ...]:
    """The rules of one folder of the specification, in the order of their names."""
    place = resources.files("greenline.spec").joinpath(folder)
    if not place.is_dir():
        raise ValueError(f"the specification has no folder {folder!r}")
    files = sorted((each for each in place.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return tuple(_rule(f"{folder}/{each.name.removesuffix('.sql')}", each.read_text()) for each in files)


def _rule(name: str, sql: str) -> Rule:
    comment = [line.removeprefix("--").strip() for line in sql.splitlines() if line.startswith("--")]
    return Rule(name, " ".join(comment), sql)


class Judge:
    """Keeps a connection, so that judging a small trace costs its queries and no more."""

    def __init__(self, folders: Iterable[str]) -> None:
        self.rules = tuple(rule for folder in folders for rule in rules_in(folder))
        self._connection = duckdb.connect(":memory:", config={"threads": "1"})

    def broken(self, trace: pa.Table) -> list[Broken]:
        """Every violation in the trace, rule by rule, each rule's in a fixed order."""
        self._connection.register("trace", trace)
        return [each for rule in self.rules for each in self._broken(rule)]

    def _broken(self, rule: Rule) -> list[Broken]:
        result = self._connection.execute(rule.sql)
        names = [column[0] for column in result.description or ()]
        rows = sorted(result.fetchall(), key=repr)
        return [_broken_row(rule, dict(zip(names, row, strict=True))) for row in rows]


def _broken_row(rule: Rule, row: dict[str, Any]) -> Broken:
    run, because = row.pop("run"), row.pop("because")
    return Broken(rule.name, run, because, row)


def by_run(violations: Sequence[Broken]) -> dict[str, list[Broken]]:
    found: dict[str, list[Broken]] = {}
    for each in violations:
        found.setdefault(each.run, []).append(each)
    return found
