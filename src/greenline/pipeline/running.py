"""Running the pipeline: the order into the archive, the archive checked, the tables written. Once, or kept running.

Two threads work at a time. One follows the order (`follower`), lets go of Python while its database and its clerk work,
and checks what was archived. The other writes tables now and then: the longer that takes, the more seldom. A third
looks how far the order goes, so that the lag is known also while both are busy.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pyspark.sql import SparkSession

from greenline.database.sqlite.tables import FILE
from greenline.pipeline import follower as following
from greenline.pipeline import progress, tables_book
from greenline.pipeline.archive import Archive, locked
from greenline.pipeline.expectations import compare, of_database
from greenline.pipeline.follower import Follower, Stands
from greenline.pipeline.lag import Lag
from greenline.pipeline.pins import Pins
from greenline.pipeline.progress import Progress
from greenline.pipeline.reaching import BadOption, reach
from greenline.pipeline.reading import Order, OutOfReach, Replicas
from greenline.pipeline.session import why_a_pattern
from greenline.pipeline.source_files import LogFiles
from greenline.pipeline.tables import ARCHIVE, Tables
from greenline.pipeline.tables_inserting import forget_prepared
from greenline.pipeline.tables_writing import Unwritten, check_log, write

LOOK_S = 0.5
"""The order, and the archive, are looked at so often."""
SAY_S = 5.0
"""Whoever is busy says so so often: `progress.STALE_S` later it would be taken for killed."""
PATIENCE_S = 15.0
"""Who follows a stream tries again after that."""
LIMIT = 50_000
"""Positions that are followed before others have a word."""
WRITE_S = 0.5
"""So long after they were written tables are written again;"""
REST = 0.25
"""or, if that takes long, such a part of it: most of the time, so that there is little to be written each time;"""
DRAIN_S = 60.0
"""and by who has a long way to go so often,"""
INSERTS_S = 0.7
"""unless all that is to be written are inserts: each of them is written once, also by who does so often."""


LOCK = "tables.lock"


@dataclass(frozen=True)
class Told:
    """Whoever tells the order, and what its state is there, if they do."""

    order: Order
    stands: Stands | None = None


def told(options: Mapping[str, str]) -> Told | None:
    """By `at` (with `user`, `password`, `ca`) or `files`; None: only the archive. Raises `BadOption`, `NotRead`."""
    if options.get("at") and options.get("files"):
        raise BadOption("read either from a cluster or from the files of a node")
    if options.get("files"):
        return Told(LogFiles(Path(options["files"])))
    if not options.get("at"):
        return None
    reached = reach(options)
    replicas = Replicas(reached, PATIENCE_S)
    # Only administrators are told all that a state is made from.
    return Told(replicas, following.asks(reached) if replicas.role() == "admin" else None)


class Running:
    def __init__(
        self,
        spark: SparkSession,
        place: Path,
        told: Told | None,
        *,
        base: Path | None = None,
        tell: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        """Raises `InUse`, `NotRead`, `BadBook` or `Unusable`."""
        place = place.absolute()  # on other machines as well
        if why_a_pattern(place.resolve()):
            raise BadOption(
                f"Spark takes a part of the name of {place.resolve()} for a pattern: choose another directory"
            )
        self.place = place
        self._told = told
        self._tell = tell
        self._follower: Follower | None = None
        place.mkdir(parents=True, exist_ok=True)
        self._lock: int | None = locked(place, LOCK, "another pipeline writes the tables in")
        try:
            self._begin(spark, place, told, base)
        except BaseException:
            self.close()
            raise
        self._checked = self.tables.reached
        self._checking = threading.Lock()
        self._archived, self._written = Lag(), Lag()
        self._take_up(progress.read(place))
        self._unwritten = Unwritten(self.tables)
        self._wrote = time.monotonic()
        self._rest = WRITE_S
        self._is_draining = False
        self._verified = 0
        self._because = ""

    def _begin(self, spark: SparkSession, place: Path, told: Told | None, base: Path | None) -> None:
        self._pins = Pins(place / tables_book.ASIDE / "pins")
        self._pins.let_go()
        if told is None:
            if not (place / ARCHIVE).is_dir():
                raise BadOption(f"nothing was ever archived in {place}: say of which cluster that is to be done")
            forget_prepared(place / ARCHIVE)
        else:
            self._follower = Follower(
                Archive(place / ARCHIVE), told.order, stands=told.stands, base=base, prepares=True
            )
        self.tables = Tables(spark, place, self._pins)
        self._log = Tables(spark, place)
        """The same, for who checks what was archived while the others are written."""
        tables_book.remove_unused(place, self.tables.book)

    def _take_up(self, before: Progress | None) -> None:
        """Whoever is killed and started again, again and again, is as late as the first of them."""
        now, ago = time.monotonic(), max(0.0, time.time() - before.updated) if before is not None else 0.0
        if before is not None:
            self._archived.seen(before.order, now - ago - before.lag_seconds)
            self._written.seen(before.order, now - ago - before.written_lag_seconds)
        self._archived.reached(self._checked.position)
        self._written.reached(self.tables.book.position)

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def run(self, *, verifies: bool = True) -> Progress:
        """What the order has by now, into tables. Raises `Unexpected`, `NotRead`, `NotWritten` or `Differs`."""
        with self._accounted(), self._saying():
            if self._told is not None:
                goal = self._told.order.newest().position
                self._look(goal)
                self._is_draining = True
                self._beside(lambda enough: self._follow(goal, enough))
                if verifies and self._told.stands is not None:
                    self._verified = self._following.verify()
            self._advance(is_due=True)
            if verifies and self._told is not None:
                self.compare()
            tables_book.remove_unused(self.place, self.tables.book)
        return self._say("ended")

    def stream(self, is_over: threading.Event) -> Progress:
        """Until it is over. Raises what `run` does."""
        with self._accounted():
            if self._told is None:
                raise BadOption("there is nothing to follow: say where the cluster is")
            order = self._told.order
            looking = _Worker(lambda enough: self._keep_looking(order, enough))
            looking.start()
            try:
                self._beside(self._follow_on, is_over, looking)
            finally:
                looking.end()
            self._advance(is_due=True)
        return self._say("ended")

    # Following, and looking, in threads of their own.

    @property
    def _following(self) -> Follower:
        assert self._follower is not None, "whoever is told of an order follows it"
        return self._follower

    def _follow(self, goal: int, enough: threading.Event) -> None:
        while self._following.position < goal and not enough.is_set():
            self._following.advance(min(LIMIT, goal - self._following.position))
            self._check()

    def _follow_on(self, enough: threading.Event) -> None:
        """Also when the whole cluster is down for a while."""
        while not enough.is_set():
            before = self._following.position
            try:
                last = self._following.advance(LIMIT)
            except OutOfReach as silence:
                self._because = str(silence)
                continue
            self._because = ""
            self._check()
            if last < before + LIMIT:
                enough.wait(LOOK_S)  # who asks at once again and again writes many small segments

    def _keep_looking(self, order: Order, enough: threading.Event) -> None:
        while not enough.wait(LOOK_S):
            with suppress(OutOfReach):
                self._look(order.newest().position)
            self._say()

    def _look(self, newest: int) -> None:
        now = time.monotonic()
        for lag in (self._archived, self._written):
            lag.seen(newest, now)

    # Checking and writing.

    def _beside(
        self,
        follow: Callable[[threading.Event], None],
        is_over: threading.Event | None = None,
        looking: _Worker | None = None,
    ) -> None:
        """While somebody follows, and nobody has failed."""
        worker = _Worker(follow)
        worker.start()
        try:
            while worker.is_alive() and not (is_over is not None and is_over.is_set()):
                worker.join(self._pause())
                self._advance()
                if looking is not None and looking.error is not None:
                    raise looking.error
        finally:
            worker.end()
        if worker.error is not None:
            raise worker.error

    def _advance(self, *, is_due: bool = False) -> None:
        """What is archived by now is checked, and tables are written if it is time."""
        self._check()
        begun = time.monotonic()
        if is_due or self._is_due(begun - self._wrote):
            self._write()
            self._wrote = time.monotonic()
            self._rest = max(WRITE_S, REST * (self._wrote - begun))
        self._pins.let_go()
        self._say()

    def _pause(self) -> float:
        """Until what is archived is looked at again: less, if tables are to be written before."""
        due = self._wrote + self._rest - time.monotonic()
        return min(LOOK_S, due) if due > 0 else LOOK_S

    def _is_due(self, seconds: float) -> bool:
        """So long after tables were written last?"""
        if self._is_draining and seconds < DRAIN_S:
            return seconds >= INSERTS_S and self._unwritten.are_inserts(self._checked.position)
        return seconds >= self._rest

    def _check(self) -> None:
        """By whoever follows, as soon as something is archived; and by the other one, unless it writes."""
        log = self._log
        with self._checking:
            log.archive.refresh()
            self._checked = check_log(log, self._checked, log.archive.last)
        self._archived.reached(self._checked.position)

    def _write(self) -> None:
        checked = self._checked
        self.tables.archive.refresh()
        while self.tables.archive.last < checked.position:
            self.tables.archive.refresh()  # a directory that is listed while segments become one may end early
        book = write(self.tables, checked)
        self._unwritten = Unwritten(self.tables)
        self._written.reached(book.position)
        forget_prepared(self.tables.archive.path, book.position)
        tables_book.remove_unused(self.place, book)

    def compare(self) -> None:
        """The tables that were rebuilt, and the follower's database, which a replica's is equal to."""
        position, there = of_database(self.tables.archive.path / following.DATABASE / FILE)
        left_out = {name for name, table in self.tables.book.tables.items() if table.left_out}
        there = {name: each for name, each in there.items() if name not in left_out}
        compare(self.tables.fingerprints(position), there, position)

    # Saying so.

    @contextmanager
    def _saying(self) -> Iterator[None]:
        """That it runs, also while something takes long."""

        def say(enough: threading.Event) -> None:
            while not enough.wait(SAY_S):
                self._say()

        worker = _Worker(say)
        worker.start()
        try:
            yield
        finally:
            worker.end()

    @contextmanager
    def _accounted(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self._say("ended", "it was interrupted")
            raise
        except BaseException as error:
            with suppress(OSError):  # for the same reason, perhaps, which is to be told
                self._say("failed", str(error) or type(error).__name__)
            raise

    def _say(self, state: str = "", because: str = "") -> Progress:
        """Unless it is over, by whether anybody tells the order."""
        now, book, silence = time.monotonic(), self.tables.book, self._because
        said = Progress(
            state=state or ("waiting" if silence else "running"),
            because=because if state else silence,
            pid=os.getpid(),
            updated=time.time(),
            order=max(self._archived.newest, self._checked.position),
            archived=self._checked.position,
            written=book.position,
            lag_positions=self._archived.positions,
            lag_seconds=round(self._archived.seconds(now), 3),
            written_lag_seconds=round(self._written.seconds(now), 3),
            verified=self._verified,
            rows={name: table.rows for name, table in book.tables.items() if not table.left_out},
            left_out={name: table.left_out for name, table in book.tables.items() if table.left_out},
        )
        progress.write(self.place, said)
        self._tell(said)
        return said


class _Worker(threading.Thread):
    """A thread that can be told that it is enough, and whose error is kept."""

    def __init__(self, work: Callable[[threading.Event], None]) -> None:
        super().__init__(daemon=True)
        self.error: BaseException | None = None
        self._work = work
        self._enough = threading.Event()

    def run(self) -> None:
        try:
            self._work(self._enough)
        except BaseException as error:  # noqa: BLE001  (raised by who waits for it)
            self.error = error

    def end(self) -> None:
        self._enough.set()
        self.join()
