"""Orders for followers, made from statements: what three clients of a server `p` ask for, bundle by bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from greenline.access import wire
from greenline.kernel.actions import Action, pack
from greenline.kernel.database import System
from greenline.kernel.statements import Statement, Work, encode
from greenline.pipeline.reading import Chain, Discarded, Piece, Place
from greenline.replication.port import BundleId
from greenline.replication.replica import NO_ORDER, chained

NOW = 1_700_000_000_000_000
"""Position n is a microsecond and n seconds later."""
SECOND = 1_000_000


class Order:
    """It grows by `add`; what is up to `low` is told by nobody any more."""

    def __init__(self, salt: int = 0) -> None:
        """Orders of other salt are of other clusters."""
        self.low = 0
        self.bundles: list[wire.Bundle] = []
        self.digests = [NO_ORDER]
        self._salt = salt
        self._numbers: dict[str, int] = {}

    def __str__(self) -> str:
        return "the cluster"

    # What its clients ask for.

    def of(self, *sql: str) -> wire.Bundle:
        """Each an action of its own."""
        return self.bundle(*((Statement(each),) for each in sql))

    def bundle(self, *actions: tuple[Statement, ...], system: tuple[System, ...] = ()) -> wire.Bundle:
        position = len(self.bundles) + 1
        packed = [pack((self._action(each, place, position),)) for place, each in enumerate(actions)]
        return self._add(tuple(packed), system)

    def series(self, sql: str, rows: Iterable[tuple[object, ...]]) -> wire.Bundle:
        """Actions of one session, packed together."""
        position = len(self.bundles) + 1
        several = [self._action((Statement(sql, row),), 0, position) for row in rows]
        return self._add((pack(tuple(several)),), ())

    def _action(self, statements: tuple[Statement, ...], place: int, position: int) -> Action:
        session = f"c{place % 3}"
        number = self._numbers[session] = self._numbers.get(session, 0) + 1
        return Action(session, number, encode(Work(NOW + position * SECOND, 7, statements)), number - 1)

    def _add(self, packed: tuple[bytes, ...], system: tuple[System, ...]) -> wire.Bundle:
        position = len(self.bundles) + 1
        made = wire.Bundle(position, BundleId("p", position), packed, content=position + self._salt, system=system)
        self.bundles.append(made)
        self.digests.append(chained(self.digests[-1], made.bundle, made.content))
        return made

    # As `reading.Order`.

    def newest(self) -> Place:
        return Place(len(self.bundles), self.digests[-1])

    def places(self, positions: Sequence[int]) -> list[Place]:
        last = len(self.bundles)
        return [Place(each, self.digests[each] if self.low <= each <= last else b"") for each in positions]

    def pieces(self, after: Place, last: int, size: int = 7) -> Iterator[Piece]:
        chain = Chain(after, str(self))
        for first in range(after.position, last, size):
            if first < self.low:
                raise Discarded(f"position {first + 1} is discarded")
            end = min(first + size, last)
            yield chain.follow(self.bundles[first:end], self.digests[first], self.digests[end])


def lively(bundles: int, salt: int = 0) -> Order:
    """Rows that come, change and go, a table that is altered, and some of it fails."""
    order = Order(salt)
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b UNIQUE)")
    for number in range(2, bundles + 1):
        match number % 10:
            case 3:
                order.of(f"UPDATE t SET a = {number} WHERE id % 7 = {number % 7}", "DELETE FROM t WHERE id % 11 = 4")
            case 5:
                order.of(f"INSERT INTO t VALUES ({number * 100}, 0, 'taken'), (NULL, 1, 'taken')")
            case 7 if number % 100 == 47:
                order.of(f"ALTER TABLE t ADD COLUMN c{number}", f"UPDATE t SET c{number} = id")
            case _:
                rows = [(number, f"b{number}.{each}") for each in range(5)]
                order.series("INSERT INTO t (a, b) VALUES (?, ?)", rows)
    return order
