"""The stream survives kill -9, and says what is wrong with files that are no streams."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from greenline.kernel import evidence
from greenline.kernel.codec import seal
from greenline.kernel.evidence import Row
from greenline.trace import schema, stream
from greenline.trace.stream import NotATrace, TraceReader, TraceWriter, note_crash
from greenline.trace.tables import load, retyped, rows_in_parquet, to_parquet, trace_files
from tests.trace.rows import history

WRITER = """
import sys
from pathlib import Path
from greenline.kernel.evidence import Row
from greenline.trace.stream import TraceWriter

writer = TraceWriter(Path(sys.argv[1]), "killed", block_rows=100)
number = 0
while True:
    writer.add(Row("p", 1, number, 0.5 * number, "deliver", message=f"q:1:{number}"))
    number += 1
    if number % 100 == 0:
        print(number, flush=True)
"""


def rows_of(path: Path) -> list[tuple[str, Row]]:
    return [(block.run, row) for block in TraceReader(path) for row in block.rows]


def test_kill_9_loses_at_most_the_rows_that_were_not_flushed(tmp_path: Path) -> None:
    path = tmp_path / "node.trace"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        flushed = 0
        while flushed < 5000:
            flushed = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        flushed = max([flushed, *(int(line) for line in writer.stdout.read().split())])
    assert writer.returncode == -signal.SIGKILL

    parquet, count = to_parquet(path)

    assert count >= flushed
    assert load(parquet).column("local_index").to_pylist() == list(range(count)), "the rest is whole and in order"


def test_a_stream_cut_at_any_byte_gives_every_whole_block(tmp_path: Path) -> None:
    path = tmp_path / "whole.trace"
    with TraceWriter(path, "run", block_rows=3) as writer:
        writer.extend(history("p.1 start\n" * 9))
    whole = path.read_bytes()
    counts = []
    for length in range(len(whole) + 1):
        cut = tmp_path / "cut.trace"
        cut.write_bytes(whole[:length])
        reader = TraceReader(cut)
        try:
            counts.append(sum(len(block.rows) for block in reader))
        except NotATrace:
            counts.append(0)  # not even its head
    assert counts == sorted(counts)
    assert set(counts) == {0, 3, 6, 9}


def test_a_cut_off_block_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with TraceWriter(path, "run") as writer:
        writer.extend(history("p.1 start"))
    path.write_bytes(path.read_bytes()[:-3])
    reader = TraceReader(path)
    assert list(reader) == []
    assert "bytes of a body" in str(reader.cut_off)


def test_rows_come_back_as_they_were_and_under_their_run(tmp_path: Path) -> None:
    path = tmp_path / "two.trace"
    first, second = history("p.1 start\np.1 regular p.1 p q"), history("q.2 deliver p:1:1 safe")
    with TraceWriter(path, "one") as writer:
        writer.extend(first)
        writer.change_run("two")
        writer.extend(second)
    assert rows_of(path) == [*(("one", row) for row in first), *(("two", row) for row in second)]
    assert load(to_parquet(path)[0]).to_pylist() == load(path).to_pylist()


def test_an_empty_file_is_a_writer_killed_before_it_began(tmp_path: Path) -> None:
    path = tmp_path / "empty.trace"
    path.touch()
    assert list(TraceReader(path)) == []
    assert load(path).num_rows == 0


def test_a_writer_never_overwrites_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    TraceWriter(path, "run").close()
    with pytest.raises(FileExistsError):
        TraceWriter(path, "run")


def test_another_schema_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new.trace"
    with monkeypatch.context() as patch:
        patch.setattr(stream, "VERSION", schema.VERSION + 1)
        TraceWriter(path, "run").close()
    with pytest.raises(NotATrace, match="has schema version 2; this Greenline reads version 1"):
        list(TraceReader(path))


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (b"PAR1 or anything else", "is not a trace"),
        (b"\x67\x09\x01\x00\x00\x00\x01" + b"\xc1\x8a" + b"x" * 40, "written by another version"),
        (seal(2, b""), "it has no head"),
        (seal(1, b"\xc1"), "is damaged"),
        (seal(1, b"\x92\xa5other\x01"), "is not a trace but 'other'"),
        (seal(1, b"\x92\xafgreenline trace\x01") + seal(2, b"\xc1"), "is damaged"),
    ],
    ids=["noise", "version", "headless", "garbled head", "another format", "garbled block"],
)
def test_a_file_that_is_no_trace_is_refused_in_words(tmp_path: Path, contents: bytes, said: str) -> None:
    path = tmp_path / "odd.trace"
    path.write_bytes(contents)
    with pytest.raises(NotATrace, match=said):
        list(TraceReader(path))


def test_damage_in_the_middle_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with TraceWriter(path, "run", block_rows=1) as writer:
        writer.extend(history("p.1 start\np.1 crash"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(NotATrace, match="is damaged"):
        list(TraceReader(path))


def test_a_directory_prefers_parquet_to_the_stream_that_it_was_made_from(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with TraceWriter(tmp_path / f"{name}.trace", name) as writer:
            writer.extend(history("p.1 start"))
    to_parquet(tmp_path / "a.trace")
    assert [path.name for path in trace_files(tmp_path)] == ["a.parquet", "b.trace"]
    assert load(tmp_path).column("run").to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "contents", "said"),
    [("x.parquet", b"PAR1 cut off", "no whole Parquet file"), ("x.txt", b"hello", "is not a trace")],
)
def test_a_file_of_another_kind_is_refused_in_words(tmp_path: Path, name: str, contents: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(NotATrace, match=said):
        load(tmp_path / name)


def test_a_place_without_traces_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(NotATrace, match="holds no trace"):
        load(tmp_path)
    with pytest.raises(NotATrace, match="does not exist"):
        load(tmp_path / "nowhere")


def test_parquet_of_another_schema_is_refused_in_words(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    foreign = pa.table({"a": [1]})
    pq.write_table(foreign, tmp_path / "foreign.parquet")
    with pytest.raises(NotATrace, match="trace schema version none"):
        load(tmp_path / "foreign.parquet")
    pq.write_table(foreign.replace_schema_metadata(schema.SCHEMA.metadata), tmp_path / "columns.parquet")
    with pytest.raises(NotATrace, match="does not have the columns of a trace"):
        load(tmp_path / "columns.parquet")


def test_a_write_that_fails_leaves_the_file_whole(tmp_path: Path) -> None:
    """A file may grow no further than a limit; what was written before it is read, and half a block is not left."""
    path = tmp_path / "full.trace"
    writer = TraceWriter(path, "run", block_rows=1)
    writer.extend(history("p.1 start"))
    size = path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            writer.extend(history("p.1 crash"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert path.stat().st_size == size
    writer.close()
    assert [row.kind for _, row in rows_of(path)] == ["start", "crash"], "and it goes on when it can"


def test_a_stream_that_has_grown_is_read_in_place_of_its_old_parquet(tmp_path: Path) -> None:
    path = tmp_path / "node.trace"
    with TraceWriter(path, "run", block_rows=1) as writer:
        writer.extend(history("p.1 start"))
        to_parquet(path)
        writer.extend(history("p.1 crash"))
    long_ago = path.stat().st_mtime_ns - 10**9  # clocks say nothing: it may grow while it is converted
    os.utime(path, ns=(long_ago, long_ago))
    assert load(tmp_path).column("kind").to_pylist() == ["start", "crash"]


def test_a_conversion_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(b"noise")
    with pytest.raises(NotATrace):
        to_parquet(path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.trace"]


def test_parquet_with_holes_or_other_types_is_refused_in_words(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with TraceWriter(tmp_path / "a.trace", "run") as writer:
        writer.extend(history("p.1 start"))
    good = load(tmp_path / "a.trace")
    place = good.schema.get_field_index("process")
    for column, said in ((pa.array([None], pa.string()), "rows without process"), (None, "a column of another type")):
        bad = good.set_column(place, "process", column) if column is not None else good
        if column is None:
            bad = good.set_column(good.schema.get_field_index("time"), "time", pa.array(["noon"]))
        pq.write_table(bad.replace_schema_metadata(schema.SCHEMA.metadata), tmp_path / "bad.parquet")
        with pytest.raises(NotATrace, match=said):
            load(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    ("column", "kind"), [("local_index", "string"), ("position", "string"), ("run", "binary"), ("time", "int64")]
)
def test_a_column_of_another_type_is_refused_also_where_it_could_be_made_one_of_ours(
    tmp_path: Path, column: str, kind: str
) -> None:
    """Engines would compare texts where numbers are meant."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with TraceWriter(tmp_path / "a.trace", "run") as writer:
        writer.extend(history("p.1 start"))
    good = load(tmp_path / "a.trace")
    place = good.schema.get_field_index(column)
    bad = good.set_column(place, column, good.column(column).cast(pa.type_for_alias(kind)))
    pq.write_table(bad.replace_schema_metadata(schema.SCHEMA.metadata), tmp_path / "bad.parquet")
    with pytest.raises(NotATrace, match=f"of another type: {column} is {kind}, and should be"):
        rows_in_parquet(tmp_path / "bad.parquet")


def test_wider_and_narrower_numbers_and_columns_without_a_value_are_taken(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with TraceWriter(tmp_path / "a.trace", "run") as writer:
        writer.extend(history("p.1 start"))
    rows = load(tmp_path / "a.trace")
    for column, kind in (("local_index", pa.int32()), ("run", pa.large_string()), ("digest", pa.null())):
        values = pa.array([None], kind) if pa.types.is_null(kind) else rows.column(column).cast(kind)
        rows = rows.set_column(rows.schema.get_field_index(column), column, values)
    pq.write_table(rows.replace_schema_metadata(schema.SCHEMA.metadata), tmp_path / "other.parquet")
    assert rows_in_parquet(tmp_path / "other.parquet") == (1, False)
    retyped(tmp_path / "other.parquet", tmp_path / "ours.parquet")
    assert rows_in_parquet(tmp_path / "ours.parquet") == (1, True)
    assert pq.read_table(tmp_path / "ours.parquet").column("process").to_pylist() == ["p"]


def test_what_would_be_passed_over_in_a_directory_is_told(tmp_path: Path) -> None:
    """Whatever is not judged seems to hold."""
    elsewhere, place = tmp_path / "elsewhere", tmp_path / "place"
    for each in (elsewhere, place):
        each.mkdir()
        with TraceWriter(each / "a.trace", "run") as writer:
            writer.extend(history("p.1 start"))
    (place / "linked").symlink_to(elsewhere)
    (place / "itself").symlink_to(place)
    assert [path.relative_to(place).as_posix() for path in trace_files(place)] == ["a.trace", "linked/a.trace"]
    (place / "gone.trace").symlink_to(tmp_path / "nowhere")
    with pytest.raises(NotATrace, match=r"gone\.trace is no file, or a link to nothing"):
        trace_files(place)


def test_a_name_that_is_no_utf_8_is_refused_in_words(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / os.fsdecode(b"d\xff.trace"), "run") as writer:
        writer.extend(history("p.1 start"))
    for place in (tmp_path, writer.path):
        with pytest.raises(NotATrace, match="a name that is no UTF-8: rename it"):
            trace_files(place)


def test_a_number_too_large_for_a_trace_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with TraceWriter(path, "run") as writer:
        writer.add(Row("p", 2**63, 0, 0.0, "start"))
    with pytest.raises(NotATrace, match="a number that no trace has"):
        load(path)


def test_the_end_of_a_life_is_noticed_once_also_behind_half_a_block(tmp_path: Path) -> None:
    path = tmp_path / "p-1.trace"
    told = Row("p", 1, 0, 0.5, evidence.REGULAR, conf="p.1", members="p")
    with TraceWriter(path, "cluster") as writer:
        writer.add(told)
    path.write_bytes(path.read_bytes() + b"half a block"[:9])
    note_crash(path)
    note_crash(path)
    rows = [row for block in TraceReader(path) for row in block.rows]
    assert rows == [told, Row("p", 1, 1, 0.5, evidence.CRASH, conf="p.1")]
