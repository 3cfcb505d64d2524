"""`greenline simulate`, as a person and as a program use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenline.cli.verdicts import again
from greenline.simulation.plan import draw_plan
from greenline.simulation.subjects import SUBJECTS
from tests.cli.command import Greenline

WRONG = ("simulate", "noticeboard", "--nodes", 5, "--profile", "storm", "--mutant", "delivers-before-its-barrier")


@pytest.mark.slow
def test_a_program_gets_every_run_with_its_hash_and_counts(greenline: Greenline) -> None:
    answer = greenline("simulate", "noticeboard", "--nodes", 3, "--seeds", "5:9", "--profile", "storm", "--json")
    assert answer.status == 0
    assert [run["seed"] for run in answer.json["runs"]] == [5, 6, 7, 8]
    for run in answer.json["runs"]:
        assert run["broken"] == []
        assert run["end"] == "quiet"
        assert len(run["trace_hash"]) == 32
        assert run["counts"]["steps"] > 100


def test_a_person_gets_a_summary_and_a_verdict(greenline: Greenline) -> None:
    answer = greenline("simulate", "noticeboard", "--seeds", "0:3")
    assert answer.status == 0
    assert "noticeboard   3 processes   calm   3 runs" in answer.out
    assert answer.out.endswith("ok  no rule broken, every run fell quiet\n")


@pytest.mark.slow
def test_a_broken_rule_is_shown_with_its_witness_the_way_back_and_a_short_story(
    greenline: Greenline, tmp_path: Path
) -> None:
    answer = greenline(*WRONG, "--seeds", "0:20", "--trace", tmp_path / "traces")
    assert answer.status == 1
    assert "FAIL  noticeboard 4 nothing read is forgotten: it was read, and is forgotten in life" in answer.out
    assert "again: greenline simulate noticeboard --nodes 5 --profile storm --mutant" in answer.out
    assert "made short:" in answer.out

    (plan,) = (tmp_path / "traces").glob("*.plan.json")
    again = greenline("simulate", "noticeboard", "--plan", plan)
    assert again.status == 1
    assert "nothing read is forgotten" in again.out


@pytest.mark.slow
def test_the_command_that_is_printed_shows_the_failure_again(greenline: Greenline) -> None:
    failed = greenline(*WRONG, "--seeds", "0:20", "--no-shrink")
    (command,) = (line for line in failed.out.splitlines() if line.startswith("again: greenline "))
    again = greenline(*command.removeprefix("again: greenline ").split())
    assert again.status == 1
    assert "FAIL  noticeboard" in again.out
    assert "starts its life 1" in again.out


@pytest.mark.slow
def test_every_mutant_is_caught(greenline: Greenline) -> None:
    answer = greenline("simulate", "noticeboard", "--nodes", 5, "--mutants", "--json")
    assert answer.status == 0
    by = {each["name"]: each["by"] for each in answer.json["mutants"]}
    assert all(each["caught"] for each in answer.json["mutants"])
    assert by["iterates-over-a-set"] == "kernel/same_seed_same_trace"
    assert {"name", "caught", "seed", "scenario", "by", "mistake"} == set(answer.json["mutants"][0])
    assert len(by) == 3


def test_a_mutant_that_escapes_is_a_failure(greenline: Greenline) -> None:
    """Without faults, a missing barrier hurts nobody: the search must say that it found nothing."""
    answer = greenline("simulate", "noticeboard", "--nodes", 2, "--profile", "calm", "--mutants", "--tries", 2)
    assert answer.status == 1
    assert "NOT CAUGHT" in answer.out


def test_a_run_is_told_up_to_a_line(greenline: Greenline) -> None:
    answer = greenline("simulate", "noticeboard", "--seeds", 4, "--until", 5)
    lines = answer.out.splitlines()
    assert lines[0].startswith("seed 4   3 processes")
    assert lines[1].startswith("0000  ")
    assert lines[-1] == "ok  no rule broken, and the run fell quiet"
    assert len(lines) <= 8


def test_playing_twice_compares_two_processes(greenline: Greenline) -> None:
    answer = greenline("simulate", "noticeboard", "--seeds", "0:2", "--twice", "--json")
    assert answer.status == 0
    assert len(answer.json["runs"]) == 2


def test_a_soak_ends_when_its_time_is_up(greenline: Greenline) -> None:
    answer = greenline("simulate", "noticeboard", "--soak", 0.5)
    assert answer.status == 0
    assert "seeds an hour at this rate" in answer.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "there is no protocol 'nobody' to simulate; there is noticeboard"),
        (["noticeboard", "--profile", "windy"], "there is no profile 'windy'; choose one of calm, lossy, flapping"),
        (["noticeboard", "--seeds", "5:5"], "--seeds '5:5' names no seed"),
        (["noticeboard", "--seeds", "9:5"], "--seeds '9:5' names no seed"),
        (["noticeboard", "--seeds", "-3"], "names no seed"),
        (["noticeboard", "--seeds", "some"], "is no seed and no range; write 17, or 0:1000"),
        (["noticeboard", "--seeds", "1:2:3"], "is no seed and no range"),
        (["noticeboard", "--nodes", "1"], "--nodes 1: a simulation has 2 to 64 processes"),
        (["noticeboard", "--nodes", "1000"], "--nodes 1000: a simulation has 2 to 64 processes"),
        (["noticeboard", "--only", "loss,hail"], "there is no fault 'hail'; --only takes loss, duplication"),
        (["noticeboard", "--only", "arrival"], "--only arrival: in noticeboard nobody comes and goes"),
        (["noticeboard", "--mutant", "x-man"], "noticeboard has no mutant 'x-man'; it has delivers-before"),
        (["noticeboard", "--story", "--seeds", "0:5"], "a story is of one seed"),
        (["noticeboard", "--workers", "0"], "at least one must work"),
        (["noticeboard", "--soak", "0"], "say for how many seconds"),
        (["noticeboard", "--soak", "nan"], "say for how many seconds"),
        (["noticeboard", "--only", "loss", "--profile", "storm"], "or a profile of them, not both"),
        (["noticeboard", "--tries", "0", "--mutants"], "--tries 0"),
        (["noticeboard", "--plan", "/nowhere/plan.json"], "cannot read the plan /nowhere/plan.json: No such file"),
        (["noticeboard", "--trace", "/proc/nowhere"], "cannot make the directory /proc/nowhere"),
        (["noticeboard", "--turbo"], "No such option"),
        (["noticeboard", "--over", "ring"], "--over ring: noticeboard is simulated as it is; --over is for engine"),
        (["engine", "--over", "corosync"], "--over corosync: engine runs over adversary, ring"),
        (["noticeboard", "--nodes", "many"], "Invalid value for '--nodes'"),
        ([], "Missing argument 'CORE'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_misuse_is_one_clear_message_and_status_2(greenline: Greenline, words: list[str], said: str) -> None:
    answer = greenline("simulate", *words)
    assert answer.status == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""


def test_a_plan_that_is_none_is_refused(greenline: Greenline, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for contents, said in [
        ("{", "is no plan of a simulation"),
        ('{"core": "noticeboard"}', "is no plan of a simulation"),
        ('{"core": "nobody", "seed": 1, "names": ["p", "q"]}', "there is no protocol 'nobody'"),
        ('{"core": "noticeboard", "seed": 1, "names": ["p"]}', "2 to 64 processes"),
        ('{"core": "noticeboard", "seed": 1, "names": ["p", "p"]}', "two of its processes have one name"),
        ('{"core": "noticeboard", "seed": 1, "names": ["p", "*"]}', "is no plan of a simulation"),
        ('{"core": "noticeboard", "seed": 1, "names": ["p", "q"], "horizon": -1}', "is no plan of a simulation"),
        ('{"core": "noticeboard", "seed": 1, "names": ["p", "q"], "colour": 1}', "unknown field `colour`"),
        ('{"core": "noticeboard", "seed": 1, "names": ["p", "q"], "latency": {"kind": "gauss"}}', "is no plan"),
        (
            '{"core": "noticeboard", "seed": 1, "names": ["p", "q"], "schedule":'
            ' [{"type": "SlowDisk", "at": 0, "until": 1, "process": "p", "factor": 0}]}',
            "is no plan of a simulation",
        ),
        ('{"core": "noticeboard", "seed": 1, "names": ["p", "q"], "requests": [[]]}', "is no plan of a simulation"),
        (
            '{"core": "noticeboard", "seed": 1, "names": ["p", "q"], "requests":'
            ' [{"at": 1, "process": "x", "text": "", "service": "safe"}]}',
            "names a process that it does not have: x",
        ),
        (
            '{"core": "engine-over-ring", "seed": 1, "names": ["p", "q"], "requests":'
            ' [{"at": 1, "process": "p", "text": "m1", "service": "safe"}]}',
            "'m1' asks nothing of a replica; write it like 's1/4 append l1 7'",
        ),
    ]:
        path.write_text(contents)
        answer = greenline("simulate", "noticeboard", "--plan", path)
        assert answer.status == 2, contents
        assert said in answer.err
        assert "Traceback" not in answer.err


def test_traces_are_not_mixed_into_a_directory_that_has_some(greenline: Greenline, tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    answer = greenline("simulate", "noticeboard", "--trace", tmp_path)
    assert answer.status == 2
    assert "is not empty" in answer.err


def test_a_stuck_run_has_a_status_of_its_own(greenline: Greenline, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"core": "noticeboard", "seed": 1, "names": ["p", "q"], "most_steps": 0}')
    answer = greenline("simulate", "noticeboard", "--plan", path)
    assert answer.status == 3
    assert "STUCK" in answer.out
    assert f"again: greenline simulate noticeboard --plan {path}" in answer.out
    assert greenline("simulate", "noticeboard", "--plan", path, "--json").json["runs"][0]["end"] == "stuck"


@pytest.mark.slow
def test_a_program_is_told_what_broke(greenline: Greenline) -> None:
    answer = greenline(*WRONG, "--seeds", "0:20", "--json")
    assert answer.status == 1
    broken = [each for run in answer.json["runs"] for each in run["broken"]]
    assert {each["rule"].split("/")[0] for each in broken} == {"noticeboard"}
    assert all(each["because"] and each["witness"] for each in broken)


@pytest.mark.slow
def test_leaked_chance_is_found_without_being_asked_for_and_the_printed_command_shows_it(greenline: Greenline) -> None:
    words = ("--nodes", 5, "--profile", "storm", "--mutant", "iterates-over-a-set", "--seeds", "0:4")
    answer = greenline("simulate", "noticeboard", *words, "--no-shrink")
    assert answer.status == 1
    assert "FAIL  kernel same seed same trace" in answer.out
    (command,) = (line for line in answer.out.splitlines() if line.startswith("again: greenline "))
    again = greenline(*command.removeprefix("again: greenline ").split())
    assert again.status == 1
    assert "FAIL  kernel same seed same trace" in again.out


def test_nothing_is_replaced_by_pictures(greenline: Greenline, tmp_path: Path) -> None:
    """`p:100:1` is a message, and no emoji."""
    from greenline.kernel.evidence import Row
    from greenline.trace.stream import TraceWriter

    with TraceWriter(tmp_path / "a.trace", "run") as writer:
        writer.add(Row("p", 100, 0, 0.0, "generate", message="p:100:1"))
    assert "p:100:1" in greenline("trace", "story", tmp_path).out


def test_a_trace_whose_end_was_cut_off_is_read_with_a_word_about_it(greenline: Greenline, tmp_path: Path) -> None:
    from greenline.trace.stream import TraceWriter
    from tests.trace.rows import history

    path = tmp_path / "a.trace"
    with TraceWriter(path, "run", block_rows=1) as writer:
        writer.extend(history("p.1 start\np.1 crash"))
    path.write_bytes(path.read_bytes()[:-3])
    for what in ("show", "story", "parquet"):
        answer = greenline("trace", what, path)
        assert answer.status == 0
        assert "ends in a block that was cut off" in answer.err


@pytest.mark.slow
@pytest.mark.parametrize("over", ["adversary", "ring"])
def test_the_engine_is_simulated_over_what_is_asked_for(greenline: Greenline, over: str) -> None:
    answer = greenline("simulate", "engine", "--over", over, "--seeds", "0:1", "--json")
    assert answer.json["core"] == f"engine-over-{over}"
    assert answer.json["runs"][0]["run"] == f"engine-over-{over}-calm-3-0"
    assert answer.json["runs"][0]["counts"]["installs"] > 0


def test_the_engine_is_shown_again_by_the_command_that_is_printed() -> None:
    plan = draw_plan(SUBJECTS["engine-over-ring"], 7, 5, "storm")
    assert again(plan, False) == "greenline simulate engine --over ring --nodes 5 --profile storm --seeds 7 --story"
