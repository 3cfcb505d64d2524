"""The writer: the one thread that changes the database. Bundles are applied in the open transaction, and committed.

A transaction cannot be split, and the engine may commit no further than the log has it. So a commit takes place when
all that was applied may be committed; under load more is applied in the meantime, so once a transaction is
old, or somebody waits for its end, nothing more is applied in it: the permission for all comes within one forced
write. Whoever needs the state between two transactions (a base for an overlay, a snapshot) waits for that too.

Other threads put jobs here and read where it stands. If anything fails that is nobody's outcome it is broken, for good.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import apsw

from greenline.database.procedures import Lacking
from greenline.database.sqlite import basis, opening
from greenline.database.sqlite.broken import Broken, is_mistake
from greenline.database.sqlite.bundles import BEGIN, Bundles
from greenline.database.sqlite.connection import OURS
from greenline.database.sqlite.determinism import Moment
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.tables import stands
from greenline.kernel.database import Answer, Applied, Apply, Commit, Committed, Opened, Refused

Done = Callable[[Answer], None]
Job = Callable[[], None]


class Writer:
    def __init__(self, path: Path, limits: Limits, on_broken: Callable[[Broken], None], base: str = "") -> None:
        """Raises `Unusable`. `on_broken` is told once, from some thread."""
        self._path = path
        self._limits = limits
        self._on_broken = on_broken
        self._base = base
        self._jobs: SimpleQueue[Job | tuple[Apply | Commit, Done] | None] = SimpleQueue()
        self._held: deque[tuple[Apply, Done]] = deque()
        """To be applied in the next transaction."""
        self._commits: list[tuple[int, Done]] = []
        """Asked for, while more was applied than may be committed."""
        self._waiting: list[Callable[[apsw.Connection], None]] = []
        """For the end of the transaction."""
        self._began = 0.0
        self.on_commit: list[Callable[[int], None]] = []
        self.broken: Broken | None = None
        self._open()
        self._thread = Thread(target=self._work, name="greenline-writer", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        self._moment = Moment()
        self._connection = opening.writer(self._path, self._moment, self._limits, self._base)
        self._bundles = Bundles(self._connection, self._moment, self._limits)
        self.position = self.committed = self._bundles.position
        self.durable = self._bundles.position
        """It was opened with a checkpoint: what it has is on the disk."""

    # From any thread.

    def ask(self, request: Apply | Commit, done: Done) -> None:
        self._jobs.put((request, done))

    def put(self, job: Job) -> None:
        """Run this in the writer's thread, whether a transaction is open or not."""
        self._jobs.put(job)

    def between(self, run: Callable[[apsw.Connection], None]) -> None:
        """Run this in the writer's thread when no transaction is open: all that was applied is committed then."""
        self._jobs.put(lambda: self._wait(run))

    def when_committed(self, position: int, call: Job) -> None:
        """Call this as soon as this position is committed: at once, or in the writer's thread."""
        if self.committed >= position:
            call()
        else:
            self.between(lambda _: call())

    def replace(self, swap: Job, then: Job) -> None:
        """Put another file in the place of this one while it is closed; what was open is gone."""
        self._jobs.put(lambda: self._replace(swap, then))

    def on_break(self, what: str, error: Exception) -> None:
        """The database has failed, as was found here or by somebody else, while doing this."""
        if self.broken is None:
            self.broken = Broken(f"{what}: {str(error) or type(error).__name__}", is_mistake(error))
            self._on_broken(self.broken)

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    # In the thread.

    def _work(self) -> None:
        jobs = self._jobs
        while (job := jobs.get()) is not None:
            if self.broken is None:
                self._do(job)
        try:
            self._connection.close()  # what is open is rolled back
        except apsw.Error as error:
            self.on_break("the database cannot be closed", error)

    def _do(self, job: Job | tuple[Apply | Commit, Done]) -> None:
        try:
            if not isinstance(job, tuple):
                job()
            elif isinstance(job[0], Apply):
                self._on_apply(job[0], job[1])
            else:
                self._on_commit(job[0].position, job[1])
        except Exception as error:  # noqa: BLE001  # whatever it is, it is no outcome
            self.on_break("the database has failed", error)

    def _on_apply(self, request: Apply, done: Done) -> None:
        if self._held or self._is_to_be_committed():
            self._held.append((request, done))
        else:
            done(self._apply(request))

    def _is_to_be_committed(self) -> bool:
        if self.position == self.committed:
            return False
        return bool(self._waiting) or time.monotonic() - self._began > self._limits.transaction_seconds

    def _apply(self, request: Apply) -> Answer:
        position = request.position
        if position != self.position + 1:
            return Refused(f"bundle {position} after {self.position}: one would be skipped or repeated")
        if not self._connection.in_transaction:
            self._connection.execute(BEGIN, prepare_flags=OURS)
            self._began = time.monotonic()
        try:
            replies = self._bundles.apply(position, request.bundle, request.system)
        except Lacking as error:
            return Refused(str(error))
        self.position = position
        return Applied(position, self._bundles.outcomes, replies)

    def _on_commit(self, position: int, done: Done) -> None:
        if not self.committed <= position <= self.position:
            done(Refused(f"commit {position}: {self.committed} is committed, and {self.position} applied"))
        elif position == self.committed:
            done(Committed(position, self.durable))
        else:
            self._commits.append((position, done))
            if position == self.position:
                self._commit()

    def _commit(self) -> None:
        self._connection.execute("COMMIT", prepare_flags=OURS)
        self._bundles.committed()
        self.committed = self.position
        for hook in self.on_commit:
            hook(self.committed)
        self._answer_commits()
        self._go_on()

    def _answer_commits(self) -> None:
        commits, self._commits = self._commits, []
        for _, done in commits:
            done(Committed(self.committed, self.durable))

    def _go_on(self) -> None:
        """No transaction is open: those who waited for that, then what was held."""
        waiting, self._waiting = self._waiting, []
        for run in waiting:
            run(self._connection)
        while self._held and not self._is_to_be_committed():
            request, done = self._held.popleft()
            done(self._apply(request))

    def _wait(self, run: Callable[[apsw.Connection], None]) -> None:
        if self.position == self.committed:
            run(self._connection)
        else:
            self._waiting.append(run)

    def _replace(self, swap: Job, then: Job) -> None:
        self._answer_commits()
        self._connection.close()
        swap()
        self._open()
        then()
        self._go_on()

    @property
    def due(self) -> int:
        """In the thread: the position once all that waits to be applied is."""
        return self.position + len(self._held)

    def opened(self) -> Opened:
        """In the thread: where it stands."""
        said = stands(self._connection)
        return Opened(self.position, self._bundles.outcomes, self.durable, basis.read(self._path.parent, said.basis))

    @property
    def bundles(self) -> Bundles:
        """For the thread: what is applied."""
        return self._bundles
