"""Files that Spark would read otherwise than they are meant, and in silence: they are refused, and it is said why."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from greenline.pipeline import loading_files
from greenline.pipeline.reaching import BadOption


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"id,name\n1,caf\xe9\n", "is not UTF-8, near byte 13"),
        ("id,name\n".encode("utf-16"), "is not UTF-8, near byte 0"),
        (b"id,name\n" + 2_000_000 * b"1,a\n" + b"\xc3", "is not UTF-8, near byte 8,000,00"),
        (b'id,name\n1,"x\n2,b\n3,c\n', "cannot be read after its row 1, .* unexpected end of data"),
        (b"id,Name,name\n1,2,3\n", "more than one column Name"),
        (b"id,,c\n1,2,3\n", "has a column without a name, number 2"),
    ],
)
def test_what_would_be_read_otherwise_is_refused(data: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(data)
    with pytest.raises(BadOption, match=why):
        loading_files.check(file, "csv")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"id\n",
        "\ufeffid,größe\n1,2\n".encode(),
        b'id,name\n1,5" pipe\n2,b\n',
        b'id,name\n1,"a\rb,c"\n2,"one\ntwo"\n',
    ],
)
def test_what_is_meant_so_is_taken(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes(data)
    loading_files.check(tmp_path / "people.csv", "csv")
    loading_files.check(tmp_path, "csv")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'[\n{"id": 1}\n]\n', "does not have an object in each line"),
        (b'{"name": "caf\xe9"}\n', "is not UTF-8, near byte 13"),
    ],
)
def test_json_is_an_object_a_line(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "people.json").write_bytes(data)
    with pytest.raises(BadOption, match=why):
        loading_files.check(tmp_path, "json")
    for data in (b'\xef\xbb\xbf\n{"id": 1}\n', b'[{"id": 1}, {"id": 2}]\n', b""):
        (tmp_path / "people.json").write_bytes(data)
        loading_files.check(tmp_path, "json")


def test_parquet_files_of_other_columns_are_not_taken_for_one(tmp_path: Path) -> None:
    """Spark takes the columns of one of them, and the others' are gone."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [2]}), tmp_path / "2.parquet")
    loading_files.check(tmp_path, "parquet")
    for other in ({"a": [3], "b": ["x"]}, {"a": ["3"]}):
        pq.write_table(pa.table(other), tmp_path / "2.parquet")
        with pytest.raises(BadOption, match="do not have the same columns in the same order"):
            loading_files.check(tmp_path, "parquet")
    (tmp_path / "2.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BadOption, match=r"2\.parquet is no whole Parquet file"):
        loading_files.check(tmp_path, "parquet")


def test_a_directory_in_a_directory_would_be_passed_over(tmp_path: Path) -> None:
    for name in ("day=1", "day=2", "more", "_temporary", ".git"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.txt").touch()
    for name in ("day=1", "day=2", "_temporary"):
        (tmp_path / name / "README.txt").unlink()
        (tmp_path / name / "b.csv").write_text("id\n2\n")
    loading_files.check(tmp_path, "csv")
    (tmp_path / "more" / "b.csv").write_text("id\n3\n")
    with pytest.raises(BadOption, match="load more by itself"):
        loading_files.check(tmp_path, "csv")
    (tmp_path / "more" / "b.csv").unlink()
    (tmp_path / "day=2" / "b.csv").write_text("id,Day\n2,99\n")
    with pytest.raises(BadOption, match=r"has a column Day, and its directory's name is one"):
        loading_files.check(tmp_path, "csv")


def test_files_beside_directories_that_are_columns_would_be_passed_over(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "b.csv").write_text("id\n2\n")
    (tmp_path / "a.csv").write_text("id\n1\n")
    with pytest.raises(BadOption, match="do not have the same columns"):
        loading_files.check(tmp_path, "csv")


@pytest.mark.parametrize("name", ["x{1,2}", "we[i]rd"])
def test_a_directory_that_spark_takes_for_several_is_refused_whatever_is_in_it(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "part-0").write_text("id\n1\n")
    with pytest.raises(BadOption, match="for a pattern: rename"):
        loading_files.check(tmp_path / name, "csv")


def test_parquet_files_that_spark_reads_as_one_are_taken(tmp_path: Path) -> None:
    """By whomever they were written."""
    texts = pa.array(["x"])
    pq.write_table(pa.table({"a": [1], "b": texts}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": texts.cast(pa.large_string()), "a": [2]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"a": [3], "b": texts.dictionary_encode()}), tmp_path / "3.parquet")
    required = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    pq.write_table(pa.table({"a": [4], "b": texts}, required), tmp_path / "4.parquet")
    (tmp_path / "5.parquet").touch()
    loading_files.check(tmp_path, "parquet")


@pytest.mark.parametrize("name", ["_b.csv", ".b.csv", "b[1].csv", "b*.csv"])
def test_a_file_that_spark_passes_over_or_takes_for_several_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("id\n1\n")
    with pytest.raises(BadOption, match="rename"):
        loading_files.check(tmp_path / name, "csv")


def test_a_directory_is_looked_at_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,a\n")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "c.csv.gz").write_bytes(b"\x1f\x8b")
    loading_files.check(tmp_path, "csv")
    (tmp_path / "b.csv").write_text("name,id\nb,2\n")
    with pytest.raises(BadOption, match="do not have the same columns in the same order"):
        loading_files.check(tmp_path, "csv")
    (tmp_path / "b.csv").unlink()
    (tmp_path / "_b.csv").write_text("id,name\n2,b\n")
    with pytest.raises(BadOption, match=r"passes over .*_b\.csv"):
        loading_files.check(tmp_path, "csv")
