"""The judge: runs rules over a trace, in-process on DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import duckdb
import pyarrow as pa

from greenline.spec.certificate import SORTED_BY, STEPS, certificate

CERTIFIED = frozenset({"evs"})
"""Folders whose rules verify a certificate of order."""

CERTIFICATE = "certificate"
"""The table of it: made of steps (`certificate.STEPS`), but not by SQL."""

RESTS_ON = {"access": ("replication",)}
"""Folders whose rules read the tables of others as well."""


@dataclass(frozen=True)
class Rule:
    name: str
    """Folder and file: `noticeboard/2_read_once`."""
    claim: str
    """What must hold, as the first comment of the file says it."""
    sql: str

    @property
    def folder(self) -> str:
        return self.name.split("/")[0]

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
    folders = {each.name: each for each in resources.files("greenline.spec").iterdir() if each.is_dir()}
    known = sorted(name for name in folders if not name.startswith("_"))
    if folder not in known:
        raise ValueError(f"the specification has no folder {folder!r}; it has {', '.join(known)}")
    return tuple(_rule(f"{folder}/{name}", sql) for name, sql in _sql_files(folders[folder]))


def rules_named(names: Iterable[str]) -> list[Rule]:
    """The rules of these names; a folder's name stands for all in it."""
    found: dict[str, Rule] = {}
    for name in names:
        folder, slash, _ = name.partition("/")
        matching = [
            rule for rule in rules_in(folder) if not slash or rule.name == name or rule.name.startswith(name + "_")
        ]
        if not matching:
            known = ", ".join(rule.name for rule in rules_in(folder))
            raise ValueError(f"the specification has no rule {name!r}; it has {known}")
        found.update((rule.name, rule) for rule in matching)
    return list(found.values())


def folders_by_run(trace: pa.Table) -> dict[str, tuple[str, ...]]:
    """Which rules fit each run: those of its protocol, and of what every provider of the port promises."""
    found: dict[str, set[str]] = {}
    kinds = trace.group_by(["run", "layer", "kind"]).aggregate([]).to_pylist()
    for row in kinds:
        folders = found.setdefault(row["run"], {"run"})
        if row["layer"] == "noticeboard":
            folders.add("noticeboard")
        elif row["layer"] == "engine":
            folders |= {"replication", "access"}
        elif row["kind"] in ("regular", "transitional", "send", "deliver"):
            folders |= {"evs", "provider"}
    return {run: tuple(sorted(folders)) for run, folders in found.items()}


@cache
def tables_of(folder: str) -> tuple[tuple[str, str], ...]:
    """The tables that the rules of a folder share, in the order in which they are made: name and query."""
    place = resources.files("greenline.spec").joinpath(folder).joinpath("tables")
    return tuple((name.split("_", 1)[1], sql) for name, sql in _sql_files(place)) if place.is_dir() else ()


def tables_needed(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """Of the tables that rules share, those that these read, and those that these are made of; in their order."""
    folders = dict.fromkeys(rule.folder for rule in rules)
    there = [
        table
        for folder in dict.fromkeys(each for folder in folders for each in (*RESTS_ON.get(folder, ()), folder))
        for table in (*tables_of(folder), *([(CERTIFICATE, STEPS)] if folder in CERTIFIED else ()))
    ]
    read = set().union(*(_read_by(rule.sql) for rule in rules))
    needed = []
    for name, sql in reversed(there):
        if name in read:
            read |= _read_by(sql)
            needed.append((name, sql))
    return needed[::-1]


def _read_by(sql: str) -> set[str]:
    """Tables that it names, its own common table expressions among them."""
    return set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", sql))


def _sql_files(place: Traversable) -> list[tuple[str, str]]:
    files = sorted((each for each in place.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return [(each.name.removesuffix(".sql"), each.read_text()) for each in files]


def _rule(name: str, sql: str) -> Rule:
    comment = [line.removeprefix("--").strip() for line in sql.splitlines() if line.startswith("--")]
    return Rule(name, " ".join(comment), sql)


class Judge:
    """Keeps a connection, so that judging a small trace costs its queries and no more."""

    def __init__(self, folders: Iterable[str], threads: int = 1) -> None:
        self._folders = tuple(folders)
        self.rules = tuple(rule for folder in self._folders for rule in rules_in(folder))
        needed = (each for folder in self._folders for each in (*RESTS_ON.get(folder, ()), folder))
        self._tables = tuple(dict.fromkeys(needed))
        self._connection = duckdb.connect(":memory:", config={"threads": str(threads)})

    def broken(self, trace: pa.Table) -> list[Broken]:
        """Every violation in the trace, rule by rule, each rule's in a fixed order."""
        self.prepare(trace)
        return [each for rule in self.rules for each in self.broken_by(rule)]

    def prepare(self, trace: pa.Table) -> None:
        """Make the tables that rules share."""
        self._connection.register("trace", trace)
        for folder in self._tables:
            for name, sql in tables_of(folder):
                self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
            if folder in CERTIFIED:
                steps = self._connection.sql(f"{STEPS} ORDER BY {', '.join(SORTED_BY)}").to_arrow_table()
                self._connection.register(CERTIFICATE, certificate(steps))

    def broken_by(self, rule: Rule) -> list[Broken]:
        result = self._connection.execute(rule.sql)
        names = [column[0] for column in result.description or ()]
        rows = sorted(result.fetchall(), key=repr)
        return [broken_row(rule, names, row) for row in rows]


def broken_row(rule: Rule, names: Sequence[str], row: Sequence[Any]) -> Broken:
    witness = dict(zip(names, row, strict=True))
    run, because = witness.pop("run"), witness.pop("because")
    return Broken(rule.name, run, because, witness)


def by_run(violations: Sequence[Broken]) -> dict[str, list[Broken]]:
    found: dict[str, list[Broken]] = {}
    for each in violations:
        found.setdefault(each.run, []).append(each)
    return found
