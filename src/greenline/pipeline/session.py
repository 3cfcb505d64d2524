"""The Spark session: the one way to get it, silently, on this machine or on a master that was named.

A process has one session at a time. Logging is off unless SPARK_CONF_DIR names a configuration of your own: what goes
wrong is raised, and said once.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from greenline.pipeline import java
from greenline.pipeline.java import NoSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = f"local[{os.cpu_count() or 1},4]"
"""All cores of this machine; a task that fails is tried four times, as on a cluster."""

_MASTERS = re.compile(
    r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]"
    r"|spark://[^,/]+:\d+(,[^,/]+:\d+)*|yarn|k8s://.+"
)

_MEMORY = re.compile(r"(\d+)([kmgt])b?", re.IGNORECASE)
_LEAST_MEMORY = 512 << 20
"""With a little less Spark does not start."""
_FAR_BEYOND = 4
"""So many times what there is Java does not even promise; a little more than there is may never be used."""

PATTERN = re.compile(r"[*?\[\]{}\\]")
"""What Spark takes for a pattern, in the name of a file or a directory."""

CONNECT_S = 3.0
_OUT_OF_MEMORY = 52
"""With this status Spark ends then."""
ENDS_S = 5.0
"""Whoever gets no answer from Java waits so long for it to end."""
EXECUTORS_S = 90.0
"""A busy machine takes its time to start Java."""

_SILENT = """\
rootLogger.level = off
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
"""
"""Without an appender Spark takes logging for not configured; without a level of its own the gateway raises it."""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.python.filterPushdown.enabled": "true",
}

IN_SMALL_PIECES = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}
"""For who does little at a time, again and again: Java is warm after a few of them. What it does not do is to go on
making its code faster, which takes the processors for the better part of a minute, and pays where there is much."""


def check(master: str | None = None, memory: str = "2g") -> None:
    """Is all there that a session would need? It takes a second: whoever has much to do before it asks first."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise NoSpark("pyspark is not installed: pip install greenline[spark]") from None
    _let_go_of_lost()
    if SparkSession.getActiveSession() is not None:
        return
    _check_master(master)
    _check_memory(memory)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        java.find()


def spark(
    name: str, *, master: str | None = None, memory: str = "2g", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The session of this process, made now if there is none.

    `memory` is the driver's, which on this machine does the work as well. Under `spark-submit` its master and
    memory hold, unless one is named here.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise NoSpark("pyspark is not installed: pip install greenline[spark]") from None
    _let_go_of_lost()
    if (running := SparkSession.getActiveSession()) is not None:
        return _reused(running, master, settings or {})

    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    asked = master if master or is_submitted else LOCAL
    _check_master(asked)
    if not is_submitted:
        _check_memory(memory)
    chosen = _SETTINGS if is_submitted else {**_SETTINGS, "spark.driver.memory": memory}
    builder = SparkSession.builder.appName(name)
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    if asked is not None:
        builder = builder.master(asked)
    with nullcontext() if is_submitted else _environment(asked or LOCAL) as place, _interrupts_later():
        if place is not None:
            builder = builder.config("spark.sql.warehouse.dir", str(place / "warehouse"))  # not where we happen to be
        try:
            session = builder.getOrCreate()
        except Exception as error:  # noqa: BLE001  (whatever Java, py4j or Spark say of it)
            reason = _first_line(error)
            stop()
            raise NoSpark(f"Spark does not start on {asked}: {reason}") from None
    _await_executors(session)
    _register_source(session)
    _silence()
    return session


def why_a_pattern(place: Path) -> str | None:
    """Then Spark takes others as well, or in its place, and says nothing of it."""
    found = PATTERN.search(str(place))
    return f"Spark takes {found[0]} in the name of a file for a pattern: rename {place}" if found else None


def why_not_read(file: Path) -> str | None:
    if file.name[:1] in ("_", "."):
        return f"Spark passes over files whose names begin with {file.name[0]}: rename {file}"
    return why_a_pattern(file)


def stop() -> None:
    """End the session, and the Java beneath it, so that the next may have another master or more memory."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway, process = SparkContext._gateway, _java()
    if process is not None and process.poll() is not None:  # there is nobody who could be told
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        SparkContext._active_spark_context = None
    else:
        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()
        if gateway is None or process is None:
            return
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    assert process.stdin is not None, "Java goes on for as long as it is open"
    process.stdin.close()
    process.wait()


def _java() -> subprocess.Popen[bytes] | None:
    """The one that this process has started."""
    from pyspark import SparkContext

    return getattr(SparkContext._gateway, "proc", None)


def _let_go_of_lost() -> None:
    if (process := _java()) is not None and process.poll() is not None:
        stop()


def why_lost(error: Exception) -> str | None:
    """Java has ended by itself, or was killed: then what Spark says is only that nobody answers, or that its
    context was shut down. The next session has another one."""
    if "pyspark" not in sys.modules:
        return None
    from py4j.protocol import Py4JError, Py4JJavaError

    process = _java()
    if process is None:
        return None
    is_silence = isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)
    is_likely = is_silence or "context was shut down" in str(error).lower()
    try:
        status = process.wait(timeout=ENDS_S if is_likely else 0.0)
    except subprocess.TimeoutExpired:
        return None
    stop()
    if status == _OUT_OF_MEMORY:
        return "Spark had too little memory, and has ended: give it more (on this machine, --memory)"
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"the Java that Spark runs in {how}: was this machine short of memory?"


def _reused(session: SparkSession, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    has = session.sparkContext.master
    if master is not None and master != has:
        raise NoSpark(f"this process has a Spark session on {has} already: stop it before one on {master} is made")
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def _check_master(master: str | None) -> None:
    """Is it one, and is somebody there? Spark itself would try for a minute, and then say that it was stopped."""
    if master is None:
        return
    if not _MASTERS.fullmatch(master):
        raise NoSpark(f"{master} is no Spark master: local[2], spark://HOST:PORT, yarn and k8s://HOST:PORT are")
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
        except (OSError, OverflowError, UnicodeError) as error:
            reasons.append(f"{address}: {error}")
        else:
            return
    raise NoSpark(f"nobody answers at {master} ({'; '.join(reasons)}): is the master up, and is that its address?")


def _check_memory(memory: str) -> None:
    """Java would end at once, and what it says of it goes nowhere."""
    asked = _MEMORY.fullmatch(memory)
    if asked is None:
        raise NoSpark(f"{memory} is no amount of memory for Spark: write 3g, or 2500m")
    amount = int(asked[1]) << {"k": 10, "m": 20, "g": 30, "t": 40}[asked[2].lower()]
    has = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if not _LEAST_MEMORY <= amount <= _FAR_BEYOND * has:
        raise NoSpark(f"{memory} is no memory for Spark: 512m is the least, and this machine has {has >> 20}m")


@contextmanager
def _environment(master: str) -> Iterator[Path]:
    """What Spark's own scripts read before there is a configuration, while they do; and a place that goes with us."""
    place = Path(tempfile.mkdtemp(prefix="greenline-spark-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "conf").mkdir()
    (place / "conf" / "log4j2.properties").write_text(_SILENT)
    before = dict(os.environ)
    os.environ["JAVA_HOME"] = str(java.home(java.find(), place / "java"))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_CONF_DIR", str(place / "conf"))
    if _is_here(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        yield place
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """A Ctrl-C while Java starts would leave it behind, since nobody has it in hand yet. And PySpark's own handler is
    not kept: whoever has one wants it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if seen:
        stop()
        raise KeyboardInterrupt


def _is_here(master: str) -> bool:
    return master.startswith("local") or "//127." in master or "//localhost" in master


def _await_executors(session: SparkSession) -> None:
    """A master without workers, or whose workers are too small, would let the first job wait for ever."""
    context = session.sparkContext
    master = context.master or ""
    if not master.startswith(("spark://", "local-cluster")):
        return
    until = time.monotonic() + EXECUTORS_S
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver counts as one
        if time.monotonic() > until:
            stop()
            raise NoSpark(
                f"{master} gave no executor within {EXECUTORS_S:.0f} s: its workers are missing, busy, or have less"
                " memory than spark.executor.memory (1g unless set)"
            )
        time.sleep(0.1)


def _register_source(session: SparkSession) -> None:
    """`format("greenline")`: the ordered log as a source, a replicated table as a sink."""
    from greenline.pipeline.source import Narrowing

    session.dataSource.register(Narrowing)


def _silence() -> None:
    """What a query failed of is raised. PySpark would also log it, with where in Java that was."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _first_line(error: Exception) -> str:
    """Of a Java exception, its message and not its stack."""
    cause = getattr(error, "java_exception", None)
    said = str(cause.getMessage() if cause is not None else error)
    return said.strip().splitlines()[0] if said.strip() else type(error).__name__
