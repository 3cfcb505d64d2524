"""The audit of traces that grow: what two readings find is told, once; what only the cut has made is not."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from greenline.pipeline.following import Round, follow
from greenline.pipeline.report_trace import Select
from greenline.pipeline.verdicts import Verdicts
from greenline.trace.stream import NotATrace, TraceWriter
from greenline.trace.tables import trace_files
from tests.spec.test_evs_rules import PAIR
from tests.trace.rows import history


class Nodes:
    """p and q, each with a trace of its own, that get on while the auditor waits."""

    def __init__(self, place: Path, *turns: str) -> None:
        self._writers = {name: TraceWriter(place / f"{name}.trace", "cluster") for name in "pq"}
        rows = history("\n".join(turns))
        self._turns = []
        for turn in turns:
            count = len(turn.strip().splitlines())
            self._turns.append(rows[:count])
            rows = rows[count:]
        self.go_on(0.0)

    def go_on(self, _: float) -> None:
        for row in self._turns.pop(0) if self._turns else []:
            self._writers[row.process].extend([row])
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


def told(place: Path, nodes: Nodes, rounds: int) -> list[list[str]]:
    following = follow(place, rules=("evs",), engine="duckdb", wait=nodes.go_on)
    seen: list[Round] = [next(following) for _ in range(rounds)]
    nodes.close()
    return [[each.rule for each in one.confirmed] for one in seen]


def up_to(line: str) -> str:
    return PAIR[: PAIR.index(line)].strip()


def test_what_the_other_file_does_not_have_yet_is_no_violation(tmp_path: Path) -> None:
    """q has delivered what p's file will have sent a moment later."""
    early = up_to("p.1 generate p:1:1 safe") + "\nq.1 deliver p:1:1 safe"
    nodes = Nodes(tmp_path, early, "p.1 generate p:1:1 safe\np.1 send p:1:1\np.1 deliver p:1:1 safe")
    assert told(tmp_path, nodes, 3) == [[], [], []]


def test_a_violation_that_goes_on_growing_is_told_once(tmp_path: Path) -> None:
    again = "q.1 deliver p:1:1 safe"
    nodes = Nodes(tmp_path, f"{up_to(again)}\n{again}\n{again}", again, again, again)
    rounds = told(tmp_path, nodes, 4)
    assert ["evs/1_4_once" in each for each in rounds] == [False, True, False, False]


def test_what_is_sure_is_kept_as_a_table_and_a_report_round_after_round(tmp_path: Path) -> None:
    twice = "q.1 deliver p:1:1 safe\nq.1 deliver p:1:1 safe"
    nodes = Nodes(tmp_path, up_to("q.1 deliver p:1:1 safe"), twice)
    kept: list[dict[str, int]] = []

    def keep(found: Verdicts, begun: datetime, select: Select) -> None:
        assert begun.tzinfo is not None
        assert select("SELECT count(*) AS rows FROM trace", ()).num_rows == 1
        kept.append({each.rule.name: each.count for each in found.broken})

    following = follow(tmp_path, rules=("evs",), engine="duckdb", keep=keep, wait=nodes.go_on)
    for _ in range(4):
        next(following)
    nodes.close()
    assert [each.get("evs/1_4_once", 0) for each in kept] == [0, 1, 1], "the first reading is sure of nothing"


def test_what_the_cut_makes_does_not_hide_what_is_sure(tmp_path: Path) -> None:
    """Each time b has delivered thousands that nobody has sent yet, other ones; and z, one that nobody ever sends."""
    sure = "z.1 deliver z:1:1 safe"

    class Busy(Nodes):
        times = 0

        def go_on(self, _: float) -> None:
            super().go_on(_)
            self.times += 1
            rows = [f"b.1 deliver a:{self.times}:{number} safe" for number in range(1_500)]
            with TraceWriter(tmp_path / f"b-{self.times}.trace", "cluster") as writer:
                writer.extend(history("\n".join(rows)))
            (tmp_path / f"b-{self.times - 1}.trace").unlink(missing_ok=True)

    nodes = Busy(tmp_path, "p.1 start")
    with TraceWriter(tmp_path / "z.trace", "cluster") as writer:
        writer.extend(history(sure))
    following = follow(tmp_path, rules=("evs/1_3",), engine="duckdb", wait=nodes.go_on)
    first, second = next(following), next(following)
    nodes.close()
    assert first.confirmed == []
    assert [each.witness["process"] for each in second.confirmed] == ["z"]


def test_a_trace_without_rows_is_waited_for_and_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "p.trace").touch()

    def wait(_: float) -> None:
        waited.append(1)
        if len(waited) == 3:
            with TraceWriter(tmp_path / "q.trace", "run") as writer:
                writer.extend(history("q.1 start"))

    waited: list[int] = []
    assert next(follow(tmp_path, engine="duckdb", report=said.append, wait=wait)).verdicts.counts.events == 1
    assert len(said) == 1
    assert "nothing to judge yet" in said[0]


def test_a_disk_that_is_full_for_a_while_is_no_reason_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, said = Nodes(tmp_path, up_to("q.1 deliver p:1:1 safe")), list[str]()

    def report(words: str) -> None:
        said.append(words)
        monkeypatch.setattr("tempfile.tempdir", None)

    following = follow(tmp_path, rules=("evs/3",), engine="duckdb", report=report, wait=lambda _: None)
    next(following)
    monkeypatch.setattr("tempfile.tempdir", "/proc/self/nowhere")  # nothing can be made there
    assert next(following).verdicts.counts.runs == 1
    nodes.close()
    assert len(said) == 1
    assert "it is read again" in said[0]


def test_a_file_that_is_just_begun_is_read_the_next_time(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, up_to("q.1 deliver p:1:1 safe"))
    begun, said = tmp_path / "new.parquet", list[str]()

    def wait(_: float) -> None:
        if not said and not begun.exists():
            begun.write_bytes(b"PAR1 and the rest to come")
        else:
            begun.unlink(missing_ok=True)

    following = follow(tmp_path, rules=("evs",), engine="duckdb", report=said.append, wait=wait)
    rounds = [next(following) for _ in range(2)]
    nodes.close()
    assert [each.verdicts.counts.runs for each in rounds] == [1, 1]
    assert len(said) == 1
    assert "new.parquet is no whole Parquet file" in said[0]


def test_a_file_that_is_taken_away_meanwhile_is_no_reason_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, said = Nodes(tmp_path, up_to("q.1 deliver p:1:1 safe")), list[str]()
    following = follow(tmp_path, rules=("evs",), engine="duckdb", report=said.append, wait=lambda _: None)
    next(following)
    found = [*trace_files(tmp_path), tmp_path / "gone.trace"]
    monkeypatch.setattr(
        "greenline.pipeline.auditing.trace_files", lambda place: found if not said else trace_files(place)
    )
    assert next(following).verdicts.counts.runs == 1
    nodes.close()
    assert "gone.trace" in said[0]


def test_what_was_no_trace_to_begin_with_is_told_at_once() -> None:
    with pytest.raises(NotATrace, match="does not exist"):
        next(follow(Path("nowhere")))


def test_a_violation_is_told_once_when_it_is_sure(tmp_path: Path) -> None:
    twice = "q.1 deliver p:1:1 safe\nq.1 deliver p:1:1 safe"
    nodes = Nodes(tmp_path, up_to("q.1 deliver p:1:1 safe"), twice)
    first, second, third, fourth = told(tmp_path, nodes, 4)
    assert (first, second, fourth) == ([], [], [])
    assert "evs/1_4_once" in third
