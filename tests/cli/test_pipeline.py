from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenline.cli import submit
from greenline.pipeline import progress, session
from greenline.pipeline.progress import Progress
from tests.cli.command import Greenline
from tests.node.databases import databases


@pytest.fixture(scope="module")
def spark() -> Iterator[None]:
    """Whatever session the command makes is ended: others want one of their own."""
    yield
    session.stop()


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_a_log_becomes_tables_that_can_be_asked_and_a_file_becomes_rows(greenline: Greenline, tmp_path: Path) -> None:
    into, file = tmp_path / "into", tmp_path / "people.csv"
    file.write_text("id,name\n1,ann\n2,bob\n3,\n")
    with databases(tmp_path / "cluster", "p") as local:
        where = ("--dir", local.place)
        loaded = greenline("pipeline", "load", file, "--table", "person", "--create", *where, "--json")
        assert loaded.status == 0, loaded.err
        assert loaded.json["rows"] == 3
        ran = greenline("pipeline", "run", *where, "--into", into, "--json")
        assert ran.status == 0, ran.err
        before = ran.json["archived"]
        assert ran.json["rows"]["person"] == 3
        assert ran.json["verified"] == ran.json["written"] == before

        assert greenline("sql", *where, "UPDATE person SET name = 'amy' WHERE id = 1").status == 0
        ran = greenline("pipeline", "run", *where, "--into", into)
        assert "person" in ran.out
        assert "equal to a replica at" in ran.out
        ids = greenline("pipeline", "load", file, "--table", "person", "--create", *where)
        assert ids.status == 2
        assert "there is a table person already: without --create" in ids.err
    # The cluster is gone; what was archived is there.
    assert "amy" in greenline("pipeline", "show", "person", "--into", into).out
    shown = greenline("pipeline", "show", "person", "--into", into, "--at", before, "--json").json
    assert [(row["id"], row["name"]) for row in shown] == [(1, "ann"), (2, "bob"), (3, None)]
    few = greenline("pipeline", "show", "person", "--into", into, "--limit", 2)
    assert len(few.out.splitlines()) == 1 + 2
    assert "the first 2 rows: --limit shows more" in few.err
    lives = greenline("pipeline", "show", "person", "--into", into, "--history", "--json").json
    assert [row["_valid_to"] is None for row in lives if row["id"] == 1] == [False, True]
    assert greenline("pipeline", "run", "--archived", "--into", into).status == 0

    typo = greenline("pipeline", "run", "--archived", "--into", tmp_path / "typo")
    assert typo.status == 2
    assert "nothing was ever archived in" in typo.err

    status = greenline("pipeline", "status", "--into", into)
    assert status.status == 0
    assert status.out.startswith("ended")
    assert "greenline_pipeline_lag_seconds 0.0" in greenline("pipeline", "status", "--into", into, "--prometheus").out

    unknown = greenline("pipeline", "show", "people", "--into", into)
    assert unknown.status == 2
    assert "there is no table people" in unknown.err
    late = greenline("pipeline", "show", "person", "--into", into, "--at", 10**6)
    assert late.status == 2
    assert "not after 1000000" in late.err


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (("run", "--dir", "nowhere"), "there is no node in nowhere"),
        (("run", "--at", "127.0.0.1:1"), "--at needs --user"),
        (("status", "--into", "nowhere"), "nothing was ever run into nowhere"),
        (("show", "t", "--at", "1", "--history"), "ask one of them"),
        (("load", "nothing.csv", "--table", "t"), "there is no nothing.csv"),
        (("run", "--files", "here", "--at", "127.0.0.1:1"), "give one of them"),
        (("run", "--archived", "--base", "nothing.db"), "there is no nothing.db: `greenline backup` makes"),
    ],
)
def test_a_misuse_is_told_before_spark_is_started(
    greenline: Greenline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], because: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    answer = greenline("pipeline", *words)
    assert answer.status == 2
    assert because in answer.err


def test_without_the_extra_it_says_how_to_get_it(
    greenline: Greenline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    answer = greenline("pipeline", "run", "--archived", "--into", tmp_path)
    assert answer.status == 2
    assert "pip install greenline[spark]" in answer.err


@pytest.mark.parametrize(
    ("state", "age", "status", "word"),
    [("running", 0.0, 0, "running"), ("running", 60.0, 3, "killed"), ("failed", 0.0, 1, "failed")],
)
def test_the_status_tells_who_runs_from_who_was_killed_or_failed(
    greenline: Greenline, tmp_path: Path, state: str, age: float, status: int, word: str
) -> None:
    progress.write(tmp_path, Progress(state=state, because="why", updated=time.time() - age, order=9, archived=7))
    answer = greenline("pipeline", "status", "--into", tmp_path)
    assert (answer.status, answer.out.split()[0]) == (status, word)
    assert "7 of 9 positions" in answer.out


@pytest.mark.slow
def test_the_file_for_spark_submit_is_the_same_command() -> None:
    answer = subprocess.run(
        [sys.executable, submit.__file__, "run", "--help"], capture_output=True, text=True, check=True
    )
    assert "greenline pipeline run" in answer.stdout
