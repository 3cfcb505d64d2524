"""The report of an audit, and the scenes in it: what a person sees of a violation."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from greenline.kernel.evidence import Row
from greenline.pipeline.report import SHOWN, page, shown_of, write_report
from greenline.pipeline.report_counts import Counts, counted
from greenline.pipeline.report_scene import MOST_ROWS, Scene, identity, scene, scenes
from greenline.pipeline.report_trace import of_spark, of_table
from greenline.pipeline.verdicts import Verdict, Verdicts
from greenline.spec.judge import Broken, Judge, rules_named
from greenline.trace.diagram import OMITTED
from greenline.trace.tables import to_table
from tests.spec.test_evs_rules import PAIR, changed
from tests.trace.rows import history, trace

JUDGE = Judge(("evs",))
RULES = rules_named(("evs/1_4", "evs/3", "evs/7_1"))
BEGUN = datetime(2026, 1, 2, tzinfo=UTC)
LACKING = changed(("q.1 deliver p:1:1 safe", ""))
TWICE = changed(("p.1 deliver p:1:1 safe", "p.1 deliver p:1:1 safe\np.1 deliver p:1:1 safe"))


def judged(table: pa.Table, place: str = "traces") -> Verdicts:
    JUDGE.prepare(table)
    found = [(rule, JUDGE.broken_by(rule)) for rule in RULES]
    verdicts = [Verdict(rule, broken, len(broken), 0.25) for rule, broken in found]
    return Verdicts("duckdb", place, counted(of_table(table)), verdicts, 0.125, 1.5)


def reported(table: pa.Table, place: str = "traces") -> str:
    audit = judged(table, place)
    return "\n".join(page(audit, BEGUN, scenes(of_table(table), shown_of(audit))))


def broken_by(table: pa.Table, rule: str) -> Broken:
    return next(each for each in JUDGE.broken(table) if each.rule == f"evs/{rule}")


def marked_in(seen: Scene) -> list[str]:
    return [f"{row.process} {row.kind} {row.message or row.conf}" for row in seen.rows if seen.is_marked(row)]


class Tags(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        self.links |= {value or "" for name, value in attributes if name in ("href", "src")}


def test_a_report_says_what_ran_and_what_each_rule_says_of_it() -> None:
    text = reported(trace(PAIR, LACKING))
    audit = judged(trace(PAIR, LACKING))
    broken = audit.broken
    assert f"{len(broken)} of {len(RULES)} rules broken" in text
    assert "47 events of 2 runs, judged by DuckDB in 1.5 s" in text
    assert "2026-01-02" in text
    for rule in RULES:
        assert rule.title in text
    assert text.count(">holds<") == len(RULES) - len(broken)
    assert text.count(">250 ms<") == len(RULES)
    assert text.count("<article") == len(shown_of(audit))
    assert ">125 ms<" in text, "what rules have in common"
    assert "because it moved on without it" in text


def test_a_report_of_a_good_trace_says_so_in_its_first_line() -> None:
    text = reported(trace(PAIR))
    assert f"<h1>All {len(RULES)} rules hold</h1>" in text
    assert "<svg" not in text


def test_what_a_violation_is_about_is_marked_in_the_diagram_and_in_the_story() -> None:
    text = reported(trace(TWICE))
    article = text[text.index('id="evs-1_4_once"') :].partition("</article>")[0]
    assert 'class="ring"' in article
    assert '<text class="name accused" x="14"' in article
    assert re.search(r'<span class="is-marked">p .*delivers p:1:1 p:1:1, safe</span>', article)
    assert "greenline trace story traces --run run0" in article


def test_a_report_needs_no_network_and_runs_no_script() -> None:
    text = reported(trace(LACKING))
    seen = Tags(text)
    assert not seen.tags & {"script", "link", "img", "iframe", "object", "image", "use", "base"}
    assert all(link.startswith("#") for link in seen.links)
    assert "url(" not in text


HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>&\u202e\x00\x1b[31m'


def test_whatever_a_trace_says_stays_text() -> None:
    rows = history(LACKING)
    for row in rows:
        row.message = None if row.message is None else HOSTILE + row.message
        row.detail = HOSTILE
    table = to_table([("</style><script>" + HOSTILE, rows), ("x" * 100_000, history(LACKING))])
    text = reported(table, HOSTILE)
    clean = Tags(reported(trace(LACKING)))
    seen = Tags(text)
    assert seen.tags == clean.tags
    assert seen.attributes <= clean.attributes
    assert not {"\u202e", "\x00", "\x1b"} & set(text)
    assert "\\x1b[31m" in text
    assert len(text) < 400_000


def test_a_rule_that_is_broken_often_shows_some_and_counts_all() -> None:
    audit = judged(trace(LACKING))
    many = [replace(each, broken=each.broken * 9, count=5_000_000) for each in audit.broken[:1]]
    text = "\n".join(page(replace(audit, verdicts=many), BEGUN, scenes(of_table(trace(LACKING)), [])))
    assert text.count("<article") == SHOWN
    assert "</a> 5,000,000</td>" in text
    assert "and 4,999,997 more" in text


def test_a_report_replaces_the_one_before_it_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "audit.html"
    write_report(path, judged(trace(PAIR)), BEGUN, of_table(trace(PAIR)))
    before = path.read_text()
    assert before.endswith("</html>\n")

    def fails(sql: str, values: object) -> pa.Table:
        raise RuntimeError("the trace is gone")

    with pytest.raises(RuntimeError, match="gone"):
        write_report(path, judged(trace(LACKING)), BEGUN, fails)
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["audit.html"]


def test_a_delivery_that_is_missing_is_seen_by_those_who_had_the_message() -> None:
    """The event is not there to be marked: what is, is the message elsewhere, and who lacks it."""
    table = trace(LACKING)
    seen = scene(of_table(table), broken_by(table, "7_1_safe_delivery"))
    assert marked_in(seen) == ["p generate p:1:1", "p send p:1:1", "p deliver p:1:1"]
    assert seen.accused == {"q"}


def test_a_row_that_a_witness_names_is_marked_alone() -> None:
    table = trace(PAIR)
    broken = Broken("evs/x", "run0", "of that", {"process": "q", "incarnation": 1, "local_index": 3, "conf": "p.2"})
    assert marked_in(scene(of_table(table), broken)) == ["q regular p.2"]


def test_what_is_said_of_a_position_is_told_from_what_is_said_of_its_bundles_elsewhere() -> None:
    marks = "p.1 mark p#1 red RegPrim\np.1 mark p#1 green 1 OR RegPrim\nq.1 mark q#1 green 1 OR RegPrim\np.1 commit 1"
    broken = Broken("replication/x", "run0", "two have it", {"position": 1, "one": "p#1", "other": "q#1"})
    seen = scene(of_table(trace(marks)), broken)
    assert [row.colour for row in seen.rows if seen.is_marked(row)] == ["green", "green"]


def test_a_violation_that_names_nothing_in_the_trace_shows_where_it_ended() -> None:
    broken = Broken("replication/x", "run0", "two totals were told", {"one": "12", "other": "13"})
    seen = scene(of_table(trace(PAIR)), broken)
    assert seen.rows[-1].kind == "quiet"
    assert not marked_in(seen)


def test_rows_that_are_there_twice_are_shown_twice() -> None:
    rows = history(PAIR)
    twice = rows[-2]
    rows.append(twice)
    table = to_table([("run0", rows)])
    seen = scene(of_table(table), broken_by(table, "0_1_rows_are_numbered"))
    assert [identity(row) for row in seen.rows].count(identity(twice)) == 2


def long_run() -> list[Row]:
    """The pair, with thousands of messages between what p says first and what it says last."""
    chatter = "\n".join(
        f"p.1 generate p:1:{number} agreed\np.1 send p:1:{number}\np.1 deliver p:1:{number} agreed"
        f"\nq.1 deliver p:1:{number} agreed\np.1 membership for who debugs it"
        for number in range(3, 1003)
    )
    return history(PAIR.replace("p.1 generate p:1:2 safe", f"{chatter}\np.1 generate p:1:2 safe"))


def test_a_scene_of_a_long_run_is_short_and_says_what_is_left_out() -> None:
    table = to_table([("long", long_run())])
    broken = Broken("evs/x", "long", "of both", {"process": "q", "message": "p:1:1", "last_message": "p:1:2"})
    seen = scene(of_table(table), broken)
    assert len(seen.rows) <= 2 * MOST_ROWS
    assert {"p:1:1", "p:1:2"} <= {row.message for row in seen.rows}
    assert OMITTED in [row.kind for row in seen.rows]
    assert "membership" not in [row.kind for row in seen.rows]


def test_a_scene_begins_with_where_everybody_stood() -> None:
    table = to_table([("long", long_run())])
    seen = scene(of_table(table), Broken("evs/x", "long", "it", {"process": "q", "message": "p:1:500"}))
    first = [(row.process, row.kind, row.conf) for row in seen.rows[:3]]
    assert first == [("p", "regular", "p.2"), ("q", "regular", "p.2"), ("*", OMITTED, None)]


def test_what_is_asked_often_is_fetched_once() -> None:
    asked: list[str] = []
    table = trace(PAIR, LACKING)
    whole = of_table(table)

    def select(sql: str, values: object) -> pa.Table:
        asked.append(sql)
        return whole(sql, values)  # type: ignore[arg-type]

    broken = broken_by(table, "7_1_safe_delivery")
    scene_of = scenes(select, [broken, broken])
    before = len(asked)
    assert scene_of(broken) == scene(whole, broken)
    assert (before, len(asked)) == (2, 2)


def test_counts_are_of_what_happened() -> None:
    assert counted(of_table(trace(PAIR, "p.1 start\np.1 regular p.1 p\np.1 crash\n* quiet"))) == Counts(
        events=28,
        runs=2,
        processes=3,
        most_in_a_run=2,
        lives=3,
        configurations=6,
        merges=1,
        splits=1,
        crashes=1,
        messages=3,
        deliveries=5,
        actions=0,
    )


@pytest.mark.long
def test_spark_is_asked_the_same_and_answers_the_same(spark: SparkSession, tmp_path: Path) -> None:
    run = "it's \\' ? a run"
    table = to_table([(run, history(TWICE)), ("long", long_run())])
    pq.write_table(table, tmp_path / "trace.parquet")
    spark.read.parquet(str(tmp_path / "trace.parquet")).createOrReplaceTempView("trace")
    here, there = of_table(table), of_spark(spark)
    assert counted(there) == counted(here)
    broken = Broken("evs/x", run, "of that", {"process": "p", "incarnation": 1, "local_index": 8, "position": 7})
    assert scene(there, broken) == scene(here, broken)
