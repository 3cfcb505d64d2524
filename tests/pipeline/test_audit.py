"""Audits on Spark and on DuckDB: the same verdicts, the same rows, whatever way a trace is laid out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from greenline.pipeline import audit, auditing_duckdb, auditing_spark
from greenline.pipeline.audit import Audit, NothingToJudge, Unreadable, Verdicts, opened
from greenline.pipeline.certifying import certified
from greenline.spec.certificate import SORTED_BY, STEPS, certificate
from greenline.spec.judge import Judge, rules_in, tables_of
from greenline.trace.schema import SCHEMA
from greenline.trace.stream import NotATrace
from greenline.trace.tables import to_table
from tests.pipeline.collection import everything
from tests.spec import test_access_rules as access
from tests.spec import test_replication_rules as replication
from tests.spec.small import corrupted, small_execution
from tests.spec.test_evs_rules import PAIR, changed
from tests.trace.rows import history, trace

FOLDERS = ("evs", "provider", "run", "noticeboard", "replication", "access")
LOST = changed(("p.1 deliver p:1:2 safe", ""))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A good run and one in which p loses its own message."""
    pq.write_table(trace(PAIR, LOST), tmp_path / "pair.parquet")
    return tmp_path


def judged(place: Path, engine: str, rules: Sequence[str] = ()) -> Verdicts:
    with opened(place, engine=engine) as it:
        return it.judge(rules)


def rows(found: Verdicts) -> dict[str, tuple[int, list[str]]]:
    return {each.rule.name: (each.count, [repr(one) for one in each.broken]) for each in found.verdicts}


def misnumbered(runs: int, name: str = "run") -> pa.Table:
    """Each run with a row at a wrong place: it breaks rule 0.1, which needs no tables, and so is asked at once."""
    wrong = history("p.1 start\np.1 regular p.1 p\np.1 generate p:1:1 safe")
    wrong[2].local_index = 3
    return to_table((f"{name}{number}", wrong) for number in range(runs))


@contextmanager
def nobodys_rights() -> Iterator[None]:
    """For as long as this lasts; root may read whatever it likes."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture(scope="module")
def steps() -> pa.Table:
    """Of good and bad executions, two of them with a cycle: what the certificate is made of."""
    good = {f"good {seed:03}": small_execution(seed) for seed in range(75, 100)}
    bad = {f"bad {seed:03}": corrupted(good[f"good {seed:03}"], seed) for seed in range(75, 100)}
    connection = duckdb.connect(":memory:")
    connection.register("trace", to_table((good | bad).items()))
    for name, sql in tables_of("evs"):
        connection.execute(f"CREATE TABLE {name} AS {sql}")
    return connection.sql(f"{STEPS} ORDER BY {', '.join(SORTED_BY)}").to_arrow_table()


@pytest.mark.parametrize("span", [1, 40, 100_000])
def test_a_run_may_be_read_as_a_stream_to_be_certified(steps: pa.Table, tmp_path: Path, span: int) -> None:
    """In row groups that end anywhere: what is found is what is found in memory."""
    pq.write_table(steps, tmp_path / "steps.parquet", row_group_size=17)
    streamed = pa.Table.from_batches(list(certified(tmp_path / "steps.parquet", span)))
    assert streamed.equals(certificate(steps))
    assert streamed.column("ord").null_count, "some run has a cycle"


@pytest.mark.long
def test_both_engines_find_the_same_rows_for_every_rule(spark: SparkSession, tmp_path: Path) -> None:
    """Hand-made traces and 200 simulated runs, every second one with mistakes, as one dataset, by all rules."""
    pq.write_table(everything(), tmp_path / "all.parquet")
    duckdb, on_spark = judged(tmp_path, "duckdb", FOLDERS), judged(tmp_path, "spark", FOLDERS)
    assert rows(duckdb) == rows(on_spark)
    assert duckdb.counts == on_spark.counts
    known = {rule.name for folder in FOLDERS for rule in rules_in(folder)}
    assert set(rows(duckdb)) == known
    held = known - {each.rule.name for each in duckdb.broken}
    assert held == set(), "every rule is broken by something"


def test_duckdb_certifies_a_large_trace_some_runs_after_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once would not fit into its memory; what is found does not depend on it."""
    bad = {f"bad {seed}": corrupted(small_execution(seed), seed) for seed in range(40)}
    pq.write_table(to_table(bad.items()), tmp_path / "runs.parquet")
    at_once = judged(tmp_path, "duckdb", ("evs",))
    monkeypatch.setattr(auditing_duckdb, "TOGETHER", 100)
    assert rows(judged(tmp_path, "duckdb", ("evs",))) == rows(at_once)
    assert "evs/6_2_at_one_logical_time" in {one.rule.name for one in at_once.broken}, "the certificate is asked"


@pytest.mark.long
@pytest.mark.parametrize(("runs", "bucket", "is_bucketed"), [(120, 1_000, True), (6, 15, False)])
def test_a_large_trace_is_laid_out_in_another_way_with_the_same_verdicts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int, bucket: int, is_bucketed: bool
) -> None:
    """Many runs in buckets, or a run that is longer than a bucket should be."""
    monkeypatch.setattr(auditing_spark, "SMALL", 0)
    monkeypatch.setattr(auditing_spark, "BUCKET", bucket)
    bad = {f"bad {seed}": corrupted(small_execution(seed), seed) for seed in range(runs)}
    pq.write_table(to_table(bad.items()), tmp_path / "runs.parquet")
    engine = auditing_spark.Spark(spark, [tmp_path / "runs.parquet"], tmp_path / "work")
    on_spark = Audit(engine, "runs").judge(("evs",))
    assert engine.is_bucketed == is_bucketed
    engine.close()
    assert rows(judged(tmp_path / "runs.parquet", "duckdb", ("evs",))) == rows(on_spark)
    assert on_spark.broken


def test_bundles_and_actions_have_digits_for_numbers_only(tmp_path: Path) -> None:
    """As DuckDB reads 12e0 it would be 12; Spark, and the twins, take it for none."""
    found = []
    for number in (r"#\1", r"#\1e0"):
        texts = [re.sub(r"#(\d+)", number, text) for text in replication.judged_together()]
        pq.write_table(to_table((str(n), history(text)) for n, text in enumerate(texts)), tmp_path / "odd.parquet")
        found.append(rows(judged(tmp_path, "duckdb", ("replication/00",)))["replication/00_rows_are_complete"][0])
    assert found[0] < found[1]


@pytest.mark.long
def test_odd_numbers_and_letters_are_the_same_for_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    texts = [*replication.judged_together(), *access.judged_together()]
    runs = [
        (f"{odd} {number}", history(re.sub(r"([#/]\d+)", rf"\1{odd}", text)))
        for odd in ("e0", ".0", "_0", "\\\\", "%")
        for number, text in enumerate(texts)
    ]
    pq.write_table(to_table(runs), tmp_path / "odd.parquet")
    folders = ("replication", "access")
    assert rows(judged(tmp_path, "duckdb", folders)) == rows(judged(tmp_path, "spark", folders))


ODD_NAMES = ("kind=start/x", "a[1]/x", "x?", "*/x", "_x", ".x", "x'y")
"""Each is a pattern, a column, or to be passed over, to one engine or the other."""


def write_oddly_named(place: Path) -> None:
    """With files that would be taken for them; each has a run with a mistake."""
    for number, name in enumerate(("a1/x", "xa", *ODD_NAMES)):
        path = place / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(misnumbered(1, f"{number}:"), path)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_is_judged_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    write_oddly_named(tmp_path)
    found = judged(tmp_path / f"{name}.parquet", "duckdb", ("evs/0_1",))
    assert (found.counts.runs, found.verdicts[0].count) == (1, 1)


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.long)])
def test_all_files_are_judged_whatever_they_are_called(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    write_oddly_named(tmp_path)
    if engine == "spark":
        request.getfixturevalue("spark")
    found = judged(tmp_path, engine, ("evs/0_1",))
    assert found.counts.runs == found.verdicts[0].count == 2 + len(ODD_NAMES)


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.long)])
def test_files_that_others_have_written_in_other_types_are_judged_together(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    """Engines take the types of one file for those of all, if they take them at all."""
    if engine == "spark":
        request.getfixturevalue("spark")
    retypes = [("local_index", pa.int32()), ("time", pa.float32()), ("detail", pa.null()), ("kind", pa.large_string())]
    for number, (column, kind) in enumerate(retypes):
        whole = misnumbered(1, f"{number}:")
        values = pa.nulls(len(whole)) if pa.types.is_null(kind) else whole.column(column).cast(kind)
        other = whole.set_column(whole.schema.get_field_index(column), column, values)
        pq.write_table(other.replace_schema_metadata(SCHEMA.metadata), tmp_path / f"{number}.parquet")
    pq.write_table(misnumbered(1, "ours"), tmp_path / "ours.parquet")
    assert judged(tmp_path, engine, ("evs/0_1",)).verdicts[0].count == len(retypes) + 1


def test_an_engine_that_sees_other_rows_than_there_are_is_not_believed(place: Path) -> None:
    with opened(place, engine="duckdb") as it:
        it._rows = 1
        with pytest.raises(Unreadable, match=r"duckdb sees \d+ rows of .*, where there are 1"):
            it.judge(("evs/0_1",))


def test_rows_without_a_place_are_not_judged(place: Path) -> None:
    whole = pq.read_table(place / "pair.parquet")
    index = whole.schema.get_field_index("local_index")
    holes = whole.set_column(index, "local_index", pa.array([None, *range(1, len(whole))], pa.int64()))
    pq.write_table(holes.replace_schema_metadata(SCHEMA.metadata), place / "pair.parquet")
    with pytest.raises(NotATrace, match="has 1 rows that lack a run, process, incarnation, local_index, time or kind"):
        judged(place, "duckdb")


def test_a_number_is_one_for_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB takes 9e3 and 0x10 for numbers, Spark does not: rules take digits only."""
    rows_of_run = [copy(row) for row in small_execution(75)]
    for row in rows_of_run:
        if row.conf:
            row.conf = re.sub(r"\.(\d+)", lambda found: f".{90 - int(found[1])}e3", row.conf, count=1)
    pq.write_table(to_table([("odd", rows_of_run)]), tmp_path / "runs.parquet")
    found = rows(judged(tmp_path, "duckdb", ("evs",)))
    assert found == rows(judged(tmp_path, "spark", ("evs",)))
    assert found["evs/vs_03_counters_rise"][0] == 0, "what is no number does not fall"


def test_what_breaks_a_rule_too_often_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(misnumbered(8), tmp_path / "runs.parquet")
    for engine in ("duckdb", "spark"):
        with audit.opened(tmp_path, engine=engine) as whole:
            (verdict,) = whole.judge(("evs/0_1",), most=3).verdicts
        assert verdict.count == 8
        assert [one.run for one in verdict.broken] == ["run0", "run1", "run2"]


def test_the_outcome_is_a_table(place: Path) -> None:
    found = judged(place, "duckdb")
    found.write(place / "broken.table")
    (row,) = [row for row in pq.read_table(place / "broken.table").to_pylist() if row["rule"] == "evs/3_self_delivery"]
    assert row["run"] == "run1"
    assert json.loads(row["witness"]) == {"process": "p", "message": "p:1:2", "conf": "p.2"}
    assert (found.counts.runs, found.counts.configurations, found.counts.merges) == (2, 10, 2)


def test_what_is_no_trace_is_told_before_an_engine_starts(place: Path) -> None:
    """Whichever is asked for; here there is no Spark that could be."""
    whole = (place / "pair.parquet").read_bytes()
    (place / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(NotATrace, match=r"cut.parquet is no whole Parquet file"):
        judged(place, "spark")

    later = pa.table(
        pq.read_table(place / "pair.parquet").columns, SCHEMA.with_metadata({"greenline.trace.version": "2"})
    )
    pq.write_table(later, place / "cut.parquet")
    with pytest.raises(NotATrace, match=r"has trace schema version 2; this Greenline reads version 1"):
        judged(place, "spark")

    (place / "empty").mkdir()
    with pytest.raises(NotATrace, match=r"empty holds no trace: no file in it ends in .trace or .parquet"):
        judged(place / "empty", "spark")


def test_a_trace_that_may_not_be_read_is_told_by_name(place: Path) -> None:
    with tempfile.TemporaryDirectory() as open_to_all:  # tmp_path is closed to others all the way up
        Path(open_to_all).chmod(0o755)
        secret = Path(open_to_all) / "pair.parquet"
        secret.write_bytes((place / "pair.parquet").read_bytes())
        secret.chmod(0)
        with nobodys_rights(), pytest.raises(NotATrace, match=r"pair.parquet may not be read by this user"):
            judged(secret, "duckdb")


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.long)])
def test_what_is_damaged_inside_is_one_clear_message(spark: SparkSession, place: Path, engine: str) -> None:
    whole = (place / "pair.parquet").read_bytes()
    damaged = bytearray(whole)
    damaged[4 : len(damaged) // 4] = bytes(len(damaged) // 4 - 4)
    (place / "cut.parquet").write_bytes(damaged)
    with pytest.raises(Unreadable, match=rf"{engine} could not judge .*: .*cut\.parquet is damaged"):
        judged(place, engine)

    pq.write_table(trace(), place / "cut.parquet")
    (place / "pair.parquet").unlink()
    with pytest.raises(NothingToJudge, match="has no rows"):
        judged(place, engine)


def test_small_audits_use_duckdb_by_themselves(place: Path) -> None:
    assert judged(place, "auto").engine == "duckdb"


@pytest.mark.long
def test_the_command_works_where_there_is_no_java_and_says_nothing_of_spark(tmp_path: Path) -> None:
    """Java from PyPI; nothing on stderr; a verdict."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for where in ("/usr/bin", "/bin"):
        for program in Path(where).iterdir():
            if program.name != "java" and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"} | {"PATH": str(programs)}
    command = [sys.executable, "-c", "from greenline.cli.main import run; run()", "audit", "--engine", "spark"]
    pq.write_table(misnumbered(1), tmp_path / "run.parquet")
    words = [str(tmp_path / "run.parquet"), "--rules", "evs/0_1,run"]
    ran = subprocess.run([*command, *words], env=environment, capture_output=True, text=True)
    assert ran.stderr == ""
    assert ran.returncode == 1
    assert "evs 0 1 rows are numbered                            BROKEN      1" in ran.stdout
    assert "run 1 nothing impossible                             holds" in ran.stdout


def test_history_is_told_apart_by_run(place: Path) -> None:
    broken = judged(place, "duckdb", ("evs",)).broken
    assert {one.run for each in broken for one in each.broken} == {"run1"}
    assert {each.rule.name for each in broken} == {
        each.rule for each in Judge(("evs",)).broken(to_table([("x", history(LOST))]))
    }
