"""A real standalone master with two workers, on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from greenline.pipeline import java

WORKERS = 2
PATIENCE_S = 60.0


@contextmanager
def cluster(cores: int = 1) -> Iterator[str]:
    """Its master's address, once it answers. Workers have so many cores each, whatever the machine has."""
    with tempfile.TemporaryDirectory(prefix="greenline-standalone-") as made, ExitStack() as stack:
        place = Path(made)
        environment = dict(
            os.environ,
            JAVA_HOME=str(java.home(java.find(), place / "java")),
            SPARK_HOME=str(Path(pyspark.__file__).parent),
            SPARK_LOCAL_IP="127.0.0.1",
            SPARK_WORKER_DIR=str(place / "work"),
        )
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        master = f"spark://127.0.0.1:{port}"
        at, sizes = ["--webui-port", "0", "--host"], ["--cores", str(cores), "--memory", "1g"]
        _start(stack, environment, place, "master.Master", [*at, "127.0.0.1", "--port", str(port)])
        _await(port)
        for number in range(1, WORKERS + 1):  # each a host of its own: Spark speculates on another host only
            _start(stack, environment, place, "worker.Worker", [*at, f"127.0.0.{number}", *sizes, master])
        yield master


def _start(stack: ExitStack, environment: dict[str, str], place: Path, what: str, words: list[str]) -> None:
    log = stack.enter_context((place / f"{what}.log").open("ab"))
    command = [str(Path(environment["SPARK_HOME"]) / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", *words]
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    stack.callback(process.wait)
    stack.callback(process.terminate)


def _await(port: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return
