"""Counts: how much there is in a trace, of what."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.pipeline.report_trace import Select

_KINDS = "SELECT kind, count(*) AS events FROM trace GROUP BY kind"
_NAMES = """
SELECT count(*) AS processes, coalesce(max(in_run), 0) AS most_in_a_run, count(DISTINCT run) AS runs
FROM (SELECT run, process, count(*) OVER (PARTITION BY run) AS in_run
      FROM (SELECT DISTINCT run, process FROM trace WHERE process <> '*') named) numbered
"""
_CONFIGURATIONS = """
SELECT count(*) AS configurations FROM (SELECT DISTINCT run, conf FROM trace WHERE kind = 'regular') confs
"""
# A transitional configuration is named by what it leads from and to: p.1>p.2.
_TURNS = """
WITH turn AS (
    SELECT DISTINCT run, split_part(conf, '>', 1) AS old, split_part(conf, '>', 2) AS new
    FROM trace
    WHERE kind = 'transitional' AND conf LIKE '%>%'
)
SELECT (SELECT count(*) FROM (SELECT run, new FROM turn GROUP BY run, new HAVING count(*) > 1) m) AS merges,
       (SELECT count(*) FROM (SELECT run, old FROM turn GROUP BY run, old HAVING count(*) > 1) s) AS splits
"""


@dataclass(frozen=True)
class Counts:
    events: int
    runs: int
    processes: int
    """Of all runs; those of one run have nothing to do with those of another, whatever their names."""
    most_in_a_run: int
    lives: int
    configurations: int
    """Regular ones."""
    merges: int
    """Configurations to which processes came from different ones."""
    splits: int
    """Configurations from which processes went on to different ones."""
    crashes: int
    messages: int
    deliveries: int
    actions: int
    """That databases applied, each counted at every replica."""


def counted(select: Select) -> Counts:
    kinds = {row["kind"]: int(row["events"]) for row in select(_KINDS, ()).to_pylist()}
    (names,) = select(_NAMES, ()).to_pylist()
    (configurations,) = select(_CONFIGURATIONS, ()).to_pylist()
    (turns,) = select(_TURNS, ()).to_pylist()
    return Counts(
        events=sum(kinds.values()),
        lives=kinds.get("start", 0),
        crashes=kinds.get("crash", 0),
        messages=kinds.get("generate", 0),
        deliveries=kinds.get("deliver", 0),
        actions=kinds.get("apply", 0),
        **names,
        **configurations,
        **turns,
    )
