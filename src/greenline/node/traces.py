"""The traces of a node: a file for each life beside the log. One that cannot be written ends, and the node goes on."""

from __future__ import annotations

from pathlib import Path

from greenline.kernel.evidence import Row
from greenline.node.config import Checked, Tracing
from greenline.node.logs import Logger
from greenline.trace.stream import SUFFIX, NotATrace, TraceWriter, note_crash


class Traces:
    def __init__(self, config: Checked, log: Logger) -> None:
        self._config = config
        self._log = log
        self._writer: TraceWriter | None = None
        self._is_on = config.trace is not Tracing.OFF

    def add(self, row: Row) -> None:
        if not self._is_on:
            return
        try:
            if self._writer is None:
                # The first row of a life: only now is its number known, and durable.
                self._note_crash(row.incarnation - 1)
                self._writer = TraceWriter(self._path(row.incarnation), "cluster")
            self._writer.add(row)
        except OSError as error:
            self._give_up(error)

    def flush(self) -> None:
        try:
            if self._writer is not None:
                self._writer.flush()
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """The life is over; the next one has a file of its own."""
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.close()
        except OSError as error:
            self._give_up(error)

    def _path(self, incarnation: int) -> Path:
        return self._config.data / f"{self._config.name}-{incarnation}{SUFFIX}"

    def _note_crash(self, incarnation: int) -> None:
        """The life before this one has ended, however it did: its trace says so, or it could not be judged."""
        path = self._path(incarnation)
        try:
            if path.exists():
                note_crash(path)
        except NotATrace as error:
            self._log.warning("the trace of the last life cannot be read", because=str(error))

    def _give_up(self, error: OSError) -> None:
        self._is_on, self._writer = False, None
        self._log.error("the trace ends here", because=error.strerror, remedy="make room, and start the node again")
