"""Expressions, from templates: in braces stands what kind of expression goes there.

`{n}` a number, `{t}` a text, `{a}` anything, `{p}` a condition, `{c}` a column, `{v}` a value, `{i}` a small number in
digits, `{d}` a JSON document, `{s}` a subquery with one row, `{q}` one with one column. What builds texts cuts them
short: an update that doubles a text would else run for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tests.sql.model import Column, Table
from tests.sql.pen import DOCUMENTS, MOST_KEYS, Pen

Scope = Sequence[tuple[str, str]]
"""The columns that can be named, as they are written, with their types."""

NUMBERS = (
    *("({n} + {n})", "({n} - {n})", "({n} * {i})", "({n} / {n})", "({n} % {n})", "-{n}", "abs({n})", "round({n}, {i})"),
    *("({n} & {i})", "({n} | {i})", "({n} << {i})", "~{n}", "CAST({a} AS INTEGER)", "CAST({a} AS REAL)", "sign({n})"),
    *("length({a})", "instr({t}, {t})", "unicode({t})", "octet_length({a})", "CAST({t} AS NUMERIC)", "mod({n}, {i})"),
    *(
        "floor({n})",
        "ceil({n})",
        "sqrt(abs({n}))",
        "ln({i})",
        "json_array_length({d})",
        "max({n}, {n})",
        "min({n}, {n})",
    ),
    *(
        "({d} ->> '$[0]')",
        "iif({p}, {n}, {n})",
        "coalesce({n}, {i})",
        "nullif({n}, {n})",
        "(SELECT count(*) FROM ({q}))",
    ),
)
TEXTS = (
    *("substr({t} || {t}, 1, 30)", "lower({t})", "upper({t})", "trim({t})", "rtrim({t}, ' abc')", "ltrim({t}, '0')"),
    *("substr({t}, {i})", "substr({t}, -{i}, {i})", "substr(replace({t}, 'a', {v}), 1, 30)", "typeof({a})"),
    *("substr(quote({a}), 1, 30)", "substr(hex({a}), 1, 30)", "CAST({a} AS TEXT)", "char({i} + 64, 0x1F98A)"),
    *("substr(printf('%d|%s|%.2f|%q', {n}, {t}, {n}, {t}), 1, 40)", "json_type({d})", "json_extract({d}, '$.k')"),
    *("json_set({d}, '$.n', {n})", "json_remove({d}, '$.k')", "json_patch({d}, '{{\"z\":1}}')", "json({d})"),
    *("substr(json_array({n}, {t}), 1, 60)", "substr(json_object('k', {n}, 'm', {t}), 1, 60)", "({d} -> '$.k')"),
    *(
        "substr(concat({a}, '-', {a}), 1, 30)",
        "substr(concat_ws(',', {t}, {t}), 1, 30)",
        "substr(format('%5d', {n}), 1, 9)",
    ),
    *("CASE WHEN {p} THEN {t} ELSE {t} END", "CASE {a} WHEN {v} THEN {t} WHEN {v} THEN 'w' END", "ifnull({t}, 'none')"),
)
CONDITIONS = (
    *(
        "{n} < {n}",
        "{n} >= {i}",
        "{a} = {a}",
        "{a} <> {v}",
        "{a} IS {v}",
        "{a} IS NOT {a}",
        "{c} IS NULL",
        "{c} NOT NULL",
    ),
    *("{n} BETWEEN {i} AND {n}", "{c} IN ({v}, {v}, {v})", "{c} NOT IN ({v}, {n})", "{c} IN ({q})", "EXISTS ({q})"),
    *("{t} LIKE {t}", "{t} LIKE '%a%'", "{t} LIKE 'a!_%' ESCAPE '!'", "{t} GLOB '*[a-c]*'", "{t} NOT LIKE {v}"),
    *("{t} = {t} COLLATE NOCASE", "{t} = {v} COLLATE RTRIM", "{t} < {t} COLLATE BINARY", "NOT ({p})", "({p} AND {p})"),
    *(
        "({p} OR {p})",
        "json_valid({t})",
        "({n}, {n}) < ({i}, {n})",
        "{a} IS DISTINCT FROM {a}",
        "{n} > {s}",
        "likely({p})",
    ),
    *("typeof({a}) = 'text'", "{c} = {v}", "{c} > {v}", "{c} <= {v}"),
)
OTHERS = (
    *("CASE WHEN {p} THEN {a} WHEN {p} THEN {v} ELSE {a} END", "coalesce({a}, {a}, {v})", "nullif({a}, {v})", "{s}"),
    *(
        "ifnull({a}, {v})",
        "CAST({a} AS BLOB)",
        "zeroblob({i})",
        "substr({c}, 1, 3)",
        "{p}",
        "unhex('41')",
        "iif({p}, {v}, {a})",
    ),
    *("max({a}, {a})", "min({a}, {v})", "{c}", "{n}", "{t}"),
)
AGGREGATES = (
    *("count(*)", "count({c})", "count(DISTINCT {c})", "sum({n})", "total({n})", "avg({n})", "min({a})", "max({a})"),
    *(
        "substr(group_concat({c}, '/' ORDER BY {c}), 1, 50)",
        "sum({n}) FILTER (WHERE {p})",
        "count(*) FILTER (WHERE {p})",
    ),
    *(
        "substr(json_group_array({n} ORDER BY {n}), 1, 60)",
        "max(length({c}))",
        "string_agg(substr({t}, 1, 2), ',' ORDER BY {c})",
    ),
    *("median({i})", "percentile({i}, 50)"),
)
WINDOWS = (
    *("row_number()", "rank()", "dense_rank()", "ntile(3)", "lag({c})", "lead({c}, 2, {v})", "first_value({c})"),
    *("last_value({c})", "nth_value({c}, 2)", "sum(abs({i}))", "count(*)", "max({c})", "percent_rank()", "cume_dist()"),
)
FRAMES = (
    *("", "", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS UNBOUNDED PRECEDING", "RANGE CURRENT ROW"),
    *("GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
)

_SLOT = re.compile(r"(?<!\{)\{([a-z])\}(?!\})")


class Expressions:
    def __init__(self, pen: Pen, scope: Scope, subquery: Callable[[bool], str] | None = None) -> None:
        """`subquery(has_one_row)` writes one; without it, as in an index or a constraint, there are none."""
        self._pen = pen
        self._scope = scope
        self._subquery = subquery

    def number(self, depth: int = 2) -> str:
        return self._one(NUMBERS, depth, "INTEGER")

    def text(self, depth: int = 2) -> str:
        return self._one(TEXTS, depth, "TEXT")

    def anything(self, depth: int = 2) -> str:
        return self._one(OTHERS, depth, "ANY")

    def condition(self, depth: int = 2) -> str:
        if depth <= 0:
            return self.filled(self._pen.pick(("{c} = {v}", "{n} < {n}", "{c} IS NOT NULL", "{c} > {v}")), 0)
        return self.filled(self._without_queries(CONDITIONS), depth - 1)

    def aggregate(self) -> str:
        return self.filled(self._pen.pick(AGGREGATES), 0)

    def window(self) -> str:
        order = ", ".join(name for name, _ in self._pen.some(self._scope, 1, 2))
        partition = f"PARTITION BY {self.column()} " if self._pen.is_lucky(2) else ""
        call = self.filled(self._pen.pick(WINDOWS), 0)
        return f"{call} OVER ({partition}ORDER BY {order} {self._pen.pick(FRAMES)})"

    def column(self, type_: str = "ANY") -> str:
        fitting = [name for name, each in self._scope if type_ in (each, "ANY")] or [name for name, _ in self._scope]
        return self._pen.pick(fitting) if fitting else self._pen.value(type_)

    def filled(self, template: str, depth: int) -> str:
        return _SLOT.sub(lambda slot: self._slot(slot.group(1), depth), template).replace("{{", "{").replace("}}", "}")

    def _one(self, templates: Sequence[str], depth: int, type_: str) -> str:
        if depth <= 0 or self._pen.is_lucky(2.5):
            return self.column(type_) if self._pen.is_lucky(1.6) else self._pen.value(type_)
        return self.filled(self._without_queries(templates), depth - 1)

    def _without_queries(self, templates: Sequence[str]) -> str:
        template = self._pen.pick(templates)
        while not self._subquery and ("{q}" in template or "{s}" in template):
            template = self._pen.pick(templates)
        return template

    def _slot(self, kind: str, depth: int) -> str:
        match kind:
            case "n":
                return self.number(depth)
            case "t":
                return self.text(depth)
            case "a":
                return self.anything(depth)
            case "p":
                return self.condition(depth)
            case "c":
                return self.column()
            case "v":
                return self._pen.value()
            case "i":
                return str(self._pen.between(1, 9))
            case "d":
                return self._pen.mark(self._pen.pick(DOCUMENTS))
        assert self._subquery is not None, kind
        return f"({self._subquery(True)})" if kind == "s" else self._subquery(False)


def scope_of(table: Table, alias: str = "") -> list[tuple[str, str]]:
    return [(f"{alias}.{column.sql}" if alias else column.sql, column.type) for column in table.columns]


def fitting(pen: Pen, column: Column) -> str:
    """A value that fits a column, as a rule: a key is small, and a reference often leads somewhere."""
    if column.parent or (column.is_key and column.type == "INTEGER"):
        return pen.mark(None if pen.is_lucky(8) else pen.between(1, 12 if column.parent else MOST_KEYS))
    return pen.value(column.type)
