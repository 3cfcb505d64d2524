"""What all tests share: the time budget of each area, and the renewal of golden conversations."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
_spent: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="write the golden conversations anew")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes longer than two seconds; left out of `make check`")
    config.addinivalue_line("markers", "long: Spark, or minutes; run by `make soak CORE=pipeline`")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    parts = Path(report.nodeid.split("::")[0]).parts
    area = parts[1] if len(parts) > 2 else "tests"
    _spent[area] += report.duration  # type: ignore[assignment]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    budgets = re.findall(r"^\| ([\w, ]+) \|.*\| (\d+) \|$", (TESTS / "README.md").read_text(), re.MULTILINE)
    allowed = {area.strip(): int(seconds) for areas, seconds in budgets for area in areas.split(",")}
    terminalreporter.section("time budget (tests/README.md)")
    for area, seconds in sorted(_spent.items()):
        over = "   OVER" if seconds > allowed.get(area, 5) else ""
        terminalreporter.write_line(f"{area:<14}{seconds:7.1f} of {allowed.get(area, 5):>4} s{over}")
