"""`greenline audit`: rules over traces, with the witness, the because, and the command that shows the story."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from greenline.cli import audit
from greenline.pipeline.following import follow
from greenline.trace.stream import TraceWriter
from tests.cli.command import Greenline
from tests.spec.test_evs_rules import PAIR, changed
from tests.trace.rows import history


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A good run and one in which p loses its own message."""
    place = tmp_path / "traces"
    place.mkdir()
    for run, text in (("good", PAIR), ("bad", changed(("p.1 deliver p:1:2 safe", "")))):
        with TraceWriter(place / f"{run}.trace", run) as writer:
            writer.extend(history(text))
    return place


def test_a_violation_is_explained(greenline: Greenline, traces: Path) -> None:
    answer = greenline("audit", traces)
    assert answer.status == 1
    assert "evs 3 self delivery: Specification 3." in answer.out
    assert "  bad: process p, message p:1:2, conf p.2" in answer.out
    assert "    because it went on to another configuration without it" in answer.out
    assert f"the story: greenline trace story {traces} --run bad" in answer.out


def test_a_program_gets_a_count_and_the_seconds_of_every_rule(greenline: Greenline, traces: Path) -> None:
    answer = greenline("audit", traces, "--json")
    assert answer.status == 1
    rules = {each["rule"]: each for each in answer.json["rules"]}
    assert rules["evs/3_self_delivery"]["broken"] == 1
    assert rules["evs/3_self_delivery"]["witnesses"][0]["run"] == "bad"
    assert rules["evs/7_2_safe_configuration"]["broken"] == 0
    assert all(each["seconds"] >= 0 for each in rules.values())
    assert answer.json["runs"] == 2


def test_rules_can_be_chosen(greenline: Greenline, traces: Path) -> None:
    answer = greenline("audit", traces, "--rules", "evs/7_1_safe_delivery, run", "--json")
    assert answer.status == 0
    names = [each["rule"] for each in answer.json["rules"]]
    assert names == ["evs/7_1_safe_delivery", "run/1_nothing_impossible", "run/2_everybody_is_up"]


@pytest.mark.slow
def test_a_trace_is_judged_by_what_it_holds(greenline: Greenline, tmp_path: Path) -> None:
    greenline("simulate", "noticeboard", "--seeds", "0:2", "--trace", tmp_path / "t")
    answer = greenline("audit", tmp_path / "t", "--json")
    assert answer.status == 0
    assert {each["rule"].split("/")[0] for each in answer.json["rules"]} == {"run", "noticeboard"}


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            "nowhere",
            "the specification has no folder 'nowhere'; it has access, evs, noticeboard, provider, replication, run",
        ),
        ("evs/9", "no rule 'evs/9'; it has evs/0_1"),
        ("..", "the specification has no folder '..'; it has access"),
        (",", "--rules , names none"),
    ],
)
def test_a_rule_that_does_not_exist_is_one_clear_message(
    greenline: Greenline, traces: Path, rules: str, said: str
) -> None:
    answer = greenline("audit", traces, "--rules", rules)
    assert answer.status == 2
    assert said in answer.err


def test_a_verdict_is_told_though_its_report_cannot_be_written(greenline: Greenline, traces: Path) -> None:
    """As when the disk is full; here the name is too long for what is written aside."""
    answer = greenline("audit", traces, "--rules", "evs/3", "--report", traces / ("a" * 254))
    assert "evs 3 self delivery                                  BROKEN      1" in answer.out
    assert answer.status == 1
    assert "what was to be kept could not be written" in answer.err
    (traces / "bad.trace").unlink()
    assert greenline("audit", traces, "--rules", "evs/3", "--report", traces / ("a" * 254)).status == 4


def test_a_table_that_would_be_a_part_of_the_trace_is_refused(greenline: Greenline, traces: Path) -> None:
    answer = greenline("audit", traces, "--table", traces / "broken.parquet")
    assert answer.status == 2
    assert "it would be a part of the trace in" in answer.err


def test_nothing_is_written_over_the_trace_or_over_each_other(greenline: Greenline, tmp_path: Path) -> None:
    trace, page = tmp_path / "a.trace", tmp_path / "page"
    with TraceWriter(trace, "run") as writer:
        writer.extend(history("p.1 start"))
    before = trace.read_bytes()
    for words, said in (
        (("--table", trace), "it is the trace itself"),
        (("--report", tmp_path / "." / "a.trace"), "it is the trace itself"),
        (("--table", page, "--report", page), "cannot both be"),
    ):
        answer = greenline("audit", trace, *words)
        assert answer.status == 2
        assert said in answer.err
    assert trace.read_bytes() == before
    answer = greenline("audit", tmp_path, "--work", tmp_path)
    assert "they would be a part of the trace" in answer.err


def test_a_name_in_a_trace_does_not_reach_the_terminal_as_an_order(greenline: Greenline, tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "a.trace", "\x1b]0;mine\x07\x9b2J") as writer:
        writer.extend(history("q.1 deliver p:1:1 safe"))
    answer = greenline("audit", tmp_path)
    assert answer.status == 1
    assert "\\x1b]0;mine\\x07\\x9b2J" in answer.out
    assert not {"\x1b", "\x07", "\x9b"} & set(answer.out)


def test_what_every_provider_of_the_port_promises_is_judged_without_being_asked(
    greenline: Greenline, tmp_path: Path
) -> None:
    with TraceWriter(tmp_path / "a.trace", "run") as writer:
        writer.extend(history("p.1 start\np.1 regular p.1 p\np.1 generate p:1:1 safe\n* quiet"))
    answer = greenline("audit", tmp_path, "--json")
    assert {each["rule"] for each in answer.json["rules"] if each["broken"]} >= {"provider/3_generated_is_sent"}


def test_more_processes_than_rules_look_at_are_refused_in_words(greenline: Greenline, tmp_path: Path) -> None:
    many = " ".join(f"n{number}" for number in range(257))
    with TraceWriter(tmp_path / "a.trace", "run") as writer:
        writer.extend(history(f"n1.1 start\nn1.1 regular n1.1 {many}"))
    answer = greenline("audit", tmp_path)
    assert answer.status == 2
    assert "a configuration of 257 processes; rules look at 256" in answer.err


def test_a_sigterm_leaves_nothing_behind(traces: Path, tmp_path: Path) -> None:
    words = ["audit", str(traces), "--rules", "evs/3", "--engine", "duckdb", "--follow"]
    aside = tmp_path / "temporary"
    aside.mkdir()
    command = [sys.executable, "-m", "greenline.cli.main", *words]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=dict(os.environ, TMPDIR=str(aside))
    ) as following:
        assert following.stderr is not None
        assert "judged in" in following.stderr.readline()
        following.terminate()
        rest = following.stderr.read()
    assert "judged twice" in rest
    assert following.returncode == 4
    assert list(aside.iterdir()) == []


def test_what_is_a_link_stays_one(greenline: Greenline, traces: Path, tmp_path: Path) -> None:
    (tmp_path / "here.html").symlink_to(tmp_path / "there.html")
    for kept in (tmp_path / "here.html", Path("/dev/null")):
        assert greenline("audit", traces, "--rules", "evs/3", "--report", kept).status == 1
    assert (tmp_path / "here.html").is_symlink()
    assert "1 of 1 rules broken" in (tmp_path / "there.html").read_text()
    assert Path("/dev/null").is_char_device()


def test_who_follows_says_in_the_end_whether_it_could_be_judged(
    greenline: Greenline, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def until_ctrl_c(*meanwhile: Callable[[], object]) -> None:
        """After each round something else; then Ctrl-C."""
        left = list(meanwhile)

        def wait(_: float) -> None:
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr(audit, "follow", partial(follow, wait=wait))

    words = ("audit", traces, "--rules", "evs/3", "--follow")
    until_ctrl_c(lambda: None)
    answer = greenline(*words, "--json", "--report", traces / "audit.html")
    assert answer.status == 1
    assert answer.json["rule"] == "evs/3_self_delivery"
    assert "it went on to another configuration" in (traces / "audit.html").read_text()

    until_ctrl_c(lambda: (traces / "bad.trace").write_bytes(b"noise"))
    answer = greenline(*words)
    assert "it is read again" in answer.err
    assert answer.status == 4, "what it read last it could not judge"
    (traces / "bad.trace").unlink()
    until_ctrl_c()
    answer = greenline(*words, "--report", traces / "early.html")
    assert answer.status == 4, "what one reading finds may be the cut's"
    assert "nothing of it is sure" in answer.err
    assert not (traces / "early.html").exists()


def test_a_master_is_of_spark(greenline: Greenline, traces: Path) -> None:
    answer = greenline("audit", traces, "--engine", "duckdb", "--master", "local[1]")
    assert answer.status == 2
    assert "--master is Spark's" in answer.err


def test_what_is_no_trace_is_one_clear_message(greenline: Greenline, tmp_path: Path) -> None:
    answer = greenline("audit", tmp_path / "nowhere")
    assert answer.status == 2
    assert "does not exist" in answer.err


@pytest.mark.slow
def test_runs_of_several_protocols_are_each_judged_by_their_own_rules(greenline: Greenline, tmp_path: Path) -> None:
    greenline("simulate", "noticeboard", "--seeds", "0:2", "--trace", tmp_path / "mixed" / "n")
    greenline("simulate", "adversary", "--seeds", "0:2", "--trace", tmp_path / "mixed" / "a")
    answer = greenline("audit", tmp_path / "mixed")
    assert answer.status == 0
    assert "4 runs" in answer.out


def test_a_trace_without_rows_is_not_well(greenline: Greenline, tmp_path: Path) -> None:
    TraceWriter(tmp_path / "empty.trace", "run").close()
    answer = greenline("audit", tmp_path)
    assert answer.status == 2
    assert "nothing to judge" in answer.err


def test_a_rule_may_be_named_by_its_number(greenline: Greenline, traces: Path) -> None:
    answer = greenline("audit", traces, "--rules", "evs/3", "--json")
    assert [each["rule"] for each in answer.json["rules"]] == ["evs/3_self_delivery"]


def test_a_report_for_people_is_one_file(greenline: Greenline, traces: Path, tmp_path: Path) -> None:
    answer = greenline("audit", traces, "--rules", "evs/3", "--report", tmp_path / "audit.html")
    assert answer.status == 1
    page = (tmp_path / "audit.html").read_text()
    assert "1 of 1 rules broken" in page
    assert "because it went on to another configuration without it" in page
    assert "<svg" in page


def test_a_report_that_cannot_be_written_is_said_before_the_work(greenline: Greenline, tmp_path: Path) -> None:
    answer = greenline("audit", tmp_path, "--report", tmp_path / "nowhere" / "audit.html")
    assert answer.status == 2
    assert "nowhere/audit.html: there is no directory" in answer.err
    answer = greenline("audit", tmp_path, "--table", tmp_path / "nowhere" / "broken.parquet")
    assert "nowhere/broken.parquet: there is no directory" in answer.err
    answer = greenline("audit", tmp_path, "--report", tmp_path)
    assert answer.status == 2
    assert "it is a directory, and a file is to be named" in answer.err
    answer = greenline("audit", tmp_path, "--work", tmp_path / "nowhere")
    assert "nowhere: there is no such directory" in answer.err


def test_a_trace_that_has_no_configurations_is_reported_as_well(greenline: Greenline, tmp_path: Path) -> None:
    storm = ("--nodes", 5, "--seeds", "0:20", "--profile", "storm", "--mutant", "delivers-before-its-barrier")
    assert greenline("simulate", "noticeboard", *storm, "--trace", tmp_path / "broken").status == 1
    table, page = tmp_path / "broken.parquet", tmp_path / "audit.html"
    answer = greenline("audit", tmp_path / "broken", "--table", table, "--report", page)
    assert answer.status == 1, answer.err
    assert "read, and is forgotten" in page.read_text()
    assert table.stat().st_size
