from __future__ import annotations

import pytest

from tests.cli.command import Greenline


@pytest.fixture
def greenline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Greenline:
    """The command; talk and data come back apart."""
    monkeypatch.setenv("COLUMNS", "200")
    return Greenline(monkeypatch, capsys)
