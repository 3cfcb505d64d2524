"""The SQLite adapter: who answers what. Each request is answered once, from some thread of ours, or it is `Broken`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import apsw

from greenline.database.sqlite import tables
from greenline.database.sqlite.beside import Beside
from greenline.database.sqlite.broken import Broken
from greenline.database.sqlite.determinism import tell_local_time_in_utc
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.opening import Lock
from greenline.database.sqlite.readers import rows_of
from greenline.database.sqlite.writer import Writer
from greenline.kernel.codec import Garbled
from greenline.kernel.database import Answer, Apply, Ask, Commit, Open, Overlay, Query
from greenline.kernel.statements import Trial, request_of

Done = Callable[[Answer | Broken], None]
VERSION = apsw.sqlite_lib_version()
"""Of SQLite. It decides outcomes: the words of errors, and which rows a plan comes to first."""


class Sqlite:
    def __init__(self, directory: Path, limits: Limits = Limits(), base: str = "") -> None:  # noqa: B008
        """`base`: the name of the file system underneath; tests put one there that fails. Raises `Unusable`."""
        tell_local_time_in_utc()
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / tables.FILE
        self._limits = limits
        self._calls = count(1)
        self._asked: dict[int, Done] = {}
        """Who has no answer yet."""
        self._lock = Lock(directory)
        try:
            self._writer = Writer(self._path, limits, self._on_broken, base)
        except BaseException:
            self._lock.release()
            raise
        self._beside = Beside(self._path, self._writer, limits)

    def ask(self, request: Ask, done: Done) -> None:
        """From any thread; returns at once. Each is answered once, from some thread, also if it is `Broken`."""
        call = next(self._calls)
        self._asked[call] = done

        def tell(answer: Answer) -> None:
            waiting = self._asked.pop(call, None)
            if waiting is not None:
                waiting(answer)

        self._hand_on(request, tell)
        if self._writer.broken is not None:
            self._on_broken(self._writer.broken)

    def answer(self, request: Ask) -> Answer | Broken:
        """The same, waiting."""
        answers: SimpleQueue[Answer | Broken] = SimpleQueue()
        self.ask(request, answers.put)
        return answers.get()

    def close(self) -> None:
        self._beside.close()
        self._writer.close()
        self._beside.let_go()
        self._lock.release()

    @property
    def position(self) -> int:
        """Applied, committed or not."""
        return self._writer.position

    @property
    def committed(self) -> int:
        return self._writer.committed

    def _on_broken(self, broken: Broken) -> None:
        for call in list(self._asked):
            waiting = self._asked.pop(call, None)
            if waiting is not None:
                waiting(broken)

    def _hand_on(self, request: Ask, tell: Callable[[Answer], None]) -> None:
        writer = self._writer
        match request:
            case Apply() | Commit():
                writer.ask(request, tell)
            case Query():
                self._query(request, tell)
            case Open():
                writer.put(lambda: tell(writer.opened()))
            case Overlay(bundles):
                self._beside.lay_over(bundles)
                writer.put(lambda: tell(writer.opened()))
            case _:
                self._beside.ask(request, tell)

    def _query(self, query: Query, tell: Callable[[Answer], None]) -> None:
        writer, asked = self._writer, query.request
        if query.is_dirty:
            self._beside.dirty_query(asked, tell)
        elif isinstance(asked, bytes) and _is_trial(asked):
            writer.between(lambda _: tell(rows_of(writer.bundles, asked, writer.position, self._limits)))
        else:
            self._beside.query(asked, tell)


def _is_trial(asked: bytes) -> bool:
    """It is run where changes are possible, and undone."""
    try:
        return isinstance(request_of(asked), Trial)
    except Garbled:
        return False
