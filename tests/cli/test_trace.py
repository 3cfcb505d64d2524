"""`greenline trace` and the rest of the command."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from greenline.trace.stream import TraceWriter
from tests.cli.command import Greenline
from tests.trace.rows import history


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Two runs in one directory."""
    for run in ("one", "two"):
        with TraceWriter(tmp_path / f"{run}.trace", run) as writer:
            writer.extend(history("p.1 start\np.1 generate p:1:1 basic\n* quiet"))
    return tmp_path


def test_show_lists_the_runs(greenline: Greenline, traces: Path) -> None:
    answer = greenline("trace", "show", traces)
    assert answer.status == 0
    assert "one   p   3 rows\n  generate 1  quiet 1  start 1" in answer.out
    runs = greenline("trace", "show", traces, "--json").json["runs"]
    assert runs[1] == {"run": "two", "processes": ["p"], "kinds": {"generate": 1, "quiet": 1, "start": 1}}


def test_story_tells_one_run(greenline: Greenline, traces: Path) -> None:
    answer = greenline("trace", "story", traces, "--run", "two")
    assert answer.status == 0
    assert "0001  p                multicasts p:1:1, basic" in answer.out
    assert "multicasts" not in greenline("trace", "story", traces, "--run", "two", "--until", 0).out


@pytest.mark.parametrize("name", ["run.svg", "run.html"])
def test_diagram_draws_one_run(greenline: Greenline, traces: Path, name: str) -> None:
    answer = greenline("trace", "diagram", traces / "one.trace", "--output", traces / name)
    assert answer.status == 0
    assert "<svg" in (traces / name).read_text()


def test_parquet_is_made_from_streams(greenline: Greenline, traces: Path) -> None:
    answer = greenline("trace", "parquet", traces)
    assert answer.status == 0
    assert (traces / "one.parquet").exists()
    again = greenline("trace", "parquet", traces)
    assert again.status == 2
    assert "holds no stream" in again.err


def test_what_simulate_leaves_can_be_told(greenline: Greenline, tmp_path: Path) -> None:
    greenline("simulate", "noticeboard", "--seeds", "0:2", "--trace", tmp_path / "t")
    answer = greenline("trace", "story", tmp_path / "t", "--run", "noticeboard-calm-3-1")
    assert answer.status == 0
    assert "quiet: nothing has changed" in answer.out


@pytest.mark.parametrize("what", ["show", "story", "diagram", "parquet"])
@pytest.mark.parametrize(
    ("name", "contents", "said"),
    [
        ("a.trace", b"this is not a trace", "is not a trace"),
        ("a.trace", b"\x67\x02\x01\x00\x00\x00\x01\x12\x4f" + b"\0" * 30, "written by another version"),
        ("a.parquet", b"PAR1", "no whole Parquet file"),
        ("a.txt", b"", "holds no trace"),
        (None, b"", "does not exist"),
    ],
    ids=["noise", "version", "parquet", "nothing", "nowhere"],
)
def test_what_is_no_trace_is_one_clear_message(
    greenline: Greenline, tmp_path: Path, what: str, name: str | None, contents: bytes, said: str
) -> None:
    place = tmp_path / "nowhere"
    if name is not None:
        (tmp_path / name).write_bytes(contents)
        place = tmp_path
    if what == "parquet" and name == "a.parquet":
        said = "holds no stream"
    answer = greenline("trace", what, place)
    assert answer.status == 2
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_wrong_run_or_output_is_one_clear_message(greenline: Greenline, traces: Path) -> None:
    for words, said in [
        (["story", traces], "holds 2 runs; name one with --run (one, two)"),
        (["story", traces, "--run", "three"], "has no run 'three'"),
        (["diagram", traces, "--run", "one", "--output", "x.png"], "is an .svg or an .html file"),
        (["diagram", traces, "--run", "one", "--output", "/proc/x.svg"], "cannot write /proc/x.svg"),
    ]:
        answer = greenline("trace", *words)
        assert answer.status == 2
        assert said in answer.err


def test_the_command_explains_itself(greenline: Greenline) -> None:
    assert "simulate" in greenline("--help").out
    assert "0 all is well, 1 a rule is broken, 2 misuse, 3 a run is stuck" in greenline("--help").out
    assert "greenline simulate noticeboard --nodes 5" in greenline("simulate", "--help").out
    assert greenline("--version").out.startswith("greenline 0.")


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_failure() -> None:
    command = Path(sys.executable).with_name("greenline")
    words = [str(command), "simulate", "noticeboard", "--seeds", "3", "--story"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        writer.stdout.close()
        assert writer.stderr.read() == ""
    assert writer.returncode == 141


@pytest.mark.slow
def test_an_interrupt_ends_the_command_and_its_workers() -> None:
    command = Path(sys.executable).with_name("greenline")
    words = [str(command), "simulate", "noticeboard", "--seeds", "0:100000", "--profile", "storm", "--workers", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, preexec_fn=_heed_interrupts) as running:
        workers = children_of(running.pid, wanted=2)
        running.send_signal(signal.SIGINT)
        _, talk = running.communicate()
    assert running.returncode == 130
    assert "Traceback" not in talk
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def _heed_interrupts() -> None:
    """Whoever runs the tests in the background may have told them to ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def children_of(process: int, wanted: int) -> list[int]:
    """Its children, once there are so many (beside the one that watches over their resources)."""
    while True:
        found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        workers = [int(each) for each in found if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]
        if len(workers) == wanted:
            return workers


@pytest.mark.slow
def test_the_installed_command_is_the_same() -> None:
    command = Path(sys.executable).with_name("greenline")
    ended = subprocess.run([command, "simulate", "nobody"], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("greenline: there is no protocol 'nobody'")
