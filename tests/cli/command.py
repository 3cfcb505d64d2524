"""The `greenline` command in this process, as a person would call it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from greenline.cli.main import run


@dataclass
class Answer:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Greenline:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: object) -> Answer:
        self._monkeypatch.setattr("sys.argv", ["greenline", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            run()
        out, err = self._capsys.readouterr()
        return Answer(int(ended.value.code or 0), out, err)
