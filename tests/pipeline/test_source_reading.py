"""The order, read from a real cluster, from the files of a node, from two places: all of it, once, or an error."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from greenline.access.wire import Bundle
from greenline.cli.local import Local, make, waits_for
from greenline.pipeline.reaching import Reach, reach
from greenline.pipeline.reading import (
    BEGINNING,
    AnotherOrder,
    Both,
    Chain,
    Discarded,
    NotRead,
    Order,
    OutOfReach,
    Piece,
    Place,
    Replicas,
)
from greenline.pipeline.source_files import LogFiles
from greenline.replication.port import BundleId
from greenline.replication.replica import chained
from tests.node.databases import PATIENCE_S, client, databases

FEW, MANY = 20, 100_000
"""White bundles that nodes keep."""
WRITTEN, MIDDLE = 60, 45


def keeping(place: Path, names: str, white: int = MANY) -> AbstractContextManager[Local]:
    """A cluster whose nodes keep so many bundles that all of them have."""
    make(place, tuple(names.split()))
    for path in place.glob("*.toml"):
        path.write_text(f"{path.read_text()}\n[engine]\nretain_after_white = {white}\n")
    return databases(place, names)


def write(local: Local, many: int) -> None:
    async def story() -> None:
        async with client(local) as db:
            await db.execute("CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b TEXT)")
            for _ in range(many):
                await db.execute("INSERT INTO t (b) VALUES (?)", ("x" * 100,), level="memory")

    asyncio.run(story())


def positions(pieces: Iterator[Piece]) -> list[int]:
    return [bundle.position for piece in pieces for bundle in piece.bundles]


# By itself.


def orderly(first: int, last: int, before: Place = BEGINNING) -> Piece:
    """Some bundles, and what the order comes to with each."""
    bundles = [Bundle(position, BundleId("p", position), (), b"", position * 7) for position in range(first, last + 1)]
    digests: list[bytes] = []
    digest = before.digest
    for bundle in bundles:
        digest = chained(digest, bundle.bundle, bundle.content)
        digests.append(digest)
    return Piece(bundles, digests)


def test_what_continues_is_followed() -> None:
    whole = orderly(1, 6)
    chain = Chain(BEGINNING, "p")
    assert chain.follow(whole.bundles[:4], b"", whole.digests[3]).digests == whole.digests[:4]
    assert chain.follow(whole.bundles[4:], whole.digests[3], b"").digests == whole.digests[4:]
    assert chain.place == Place(6, whole.digests[5])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("hole", "told of position 4 where 3 was expected"),
        ("again", "told of position 2 where 3 was expected"),
        ("other before", "the order up to position 0 comes to"),
        ("other after", "the order up to position 6 comes to"),
        ("other bundle", "the order up to position 6 comes to"),
    ],
)
def test_what_does_not_continue_is_not_given_on(wrong: str, words: str) -> None:
    whole = orderly(1, 6)
    bundles, before, after = list(whole.bundles), BEGINNING.digest, whole.digests[-1]
    match wrong:
        case "hole":
            del bundles[2]
        case "again":
            bundles.insert(2, bundles[1])
        case "other before":
            before = whole.digests[0]
        case "other after":
            after = whole.digests[0]
        case "other bundle":
            bundles[2] = Bundle(3, BundleId("q", 3), (), b"", 21)
    with pytest.raises(AnotherOrder, match=words):
        Chain(BEGINNING, "p").follow(bundles, before, after)


class Part:
    """A part of an order. One from the beginning does not say what the order comes to before a piece: so archives."""

    def __init__(self, first: int, last: int, whole: Piece) -> None:
        self.first, self.last, self.whole = first, last, whole

    def newest(self) -> Place:
        return Place(self.last, self.whole.digests[self.last - 1])

    def places(self, positions: Sequence[int]) -> list[Place]:
        for each in positions:
            if not self.first - 1 <= each <= self.last:
                raise Discarded(f"{each} is not here")
        return [Place(each, self.whole.digests[each - 1] if each else BEGINNING.digest) for each in positions]

    def pieces(self, after: Place, last: int) -> Iterator[Piece]:
        if after.position < self.first - 1:
            raise Discarded(f"{after.position + 1} is not here")
        chain = Chain(after, "a part")
        before = self.places([after.position])[0].digest if self.first > 1 else b""
        yield chain.follow(self.whole.bundles[after.position : last], before, self.whole.digests[last - 1])


def test_an_archive_and_a_cluster_are_one_order() -> None:
    whole = orderly(1, 30)
    kept, rest = Part(1, 20, whole), Part(11, 30, whole)
    both: Order = Both(kept, rest)
    assert positions(both.pieces(BEGINNING, 30)) == list(range(1, 31))
    assert positions(both.pieces(Place(4), 7)) == [5, 6, 7]
    assert positions(both.pieces(Place(24), 30)) == list(range(25, 31))
    assert both.places([0, 15, 25]) == [BEGINNING, Place(15, whole.digests[14]), Place(25, whole.digests[24])]
    assert both.newest().position == 30

    assert positions(Both(Part(5, 20, whole), Part(1, 30, whole)).pieces(BEGINNING, 25)) == list(range(1, 26))
    with pytest.raises(Discarded):
        positions(Both(Part(1, 5, whole), rest).pieces(BEGINNING, 30))


def test_an_archive_of_another_cluster_is_not_continued() -> None:
    other = orderly(1, 20, Place(0, b"another beginning"))
    with pytest.raises(AnotherOrder, match="another cluster"):
        positions(Both(Part(1, 20, other), Part(1, 30, orderly(1, 30))).pieces(Place(0, b"another beginning"), 30))


# With real nodes.


def at(local: Local) -> Reach:
    return reach({"at": str(local.place)})


def test_a_range_is_read_from_whoever_is_there(tmp_path: Path) -> None:
    """A node dies in the middle of it, and another goes on; in the end all do, and their files tell the same."""
    with keeping(tmp_path, "p q r") as local:
        write(local, WRITTEN)
        replicas = Replicas(at(local))
        newest = replicas.newest()
        assert newest.position > WRITTEN
        one, other, beyond = replicas.places([0, MIDDLE, 10_000])
        assert (one, beyond) == (BEGINNING, Place(10_000))

        reading = replicas.pieces(Place(MIDDLE, other.digest), newest.position)
        found = [bundle for piece in reading for bundle in piece.bundles]
        assert [bundle.position for bundle in found] == list(range(MIDDLE + 1, newest.position + 1))
        with pytest.raises(AnotherOrder, match="another cluster"):
            positions(replicas.pieces(Place(MIDDLE, one.digest), WRITTEN))

        _try_the_door(local)

        for name in ("p", "q"):
            pid = local.pid(name)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            assert waits_for(lambda name=name: local.pid(name) is None, PATIENCE_S)  # type: ignore[misc]
            assert positions(replicas.pieces(BEGINNING, WRITTEN)) == list(range(1, WRITTEN + 1)), "the others have it"

        running = LogFiles(local.configs["r"].data)
        with pytest.raises(NotRead, match="a node runs on"):
            running.newest()
        with pytest.raises(OutOfReach, match=r"has told nothing for 0\.5 s"):
            positions(Replicas(at(local), patience=0.5).pieces(BEGINNING, 100_000))

        files = LogFiles(local.configs["p"].data / "log")
        before = [path.read_bytes() for path in sorted((local.configs["p"].data / "log").iterdir())]
        assert files.newest().position >= newest.position
        assert files.places([MIDDLE, 10_000]) == [other, Place(10_000)]
        again = [bundle for piece in files.pieces(other, newest.position) for bundle in piece.bundles]
        assert again == found
        with pytest.raises(NotRead, match="ends with position"):
            positions(files.pieces(BEGINNING, 100_000))
        assert before == [path.read_bytes() for path in sorted((local.configs["p"].data / "log").iterdir())]
        with pytest.raises(NotRead, match="cannot be read: there is no log in"):
            LogFiles(tmp_path / "nowhere").newest()

    with pytest.raises(OutOfReach, match="no node can be reached"):
        Replicas(at(local), patience=0.1).newest()


def _try_the_door(local: Local) -> None:
    """Who may read may read the log; who is not let in is told why, and no secret is told to anybody."""
    good, secret = at(local), "a secret of hers"

    async def appoint() -> None:
        async with client(local) as db:
            await db.admin.create_user("rita", secret, "read")

    asyncio.run(appoint())
    rita = Reach(good.addresses, "rita", secret, good.ca)
    assert positions(Replicas(rita).pieces(BEGINNING, 4)) == [1, 2, 3, 4]
    assert (Replicas(rita).role(), Replicas(good).role()) == ("read", "admin")
    with pytest.raises(NotRead, match="does not let rita in") as refused:
        Replicas(Reach(good.addresses, "rita", "guessed", good.ca)).newest()
    assert "guessed" not in str(refused.value)
    assert secret not in repr(rita)


def test_what_everybody_has_discarded_is_an_error_that_says_where_the_order_begins(tmp_path: Path) -> None:
    with keeping(tmp_path, "p q", FEW) as local:
        write(local, 4 * FEW)
        replicas, whole = Replicas(at(local)), at(local)
        each = [Replicas(msgspec.structs.replace(whole, addresses=one)) for one in whole.addresses.split(",")]
        assert len(each) == 2, "p and q"

        def is_discarded() -> bool:
            """By one as well as by the other, at any time."""
            write(local, 1)  # a line is told with what is said next
            return all(place.digest == b"" for one in each for place in one.places([1, FEW]))

        assert waits_for(is_discarded, PATIENCE_S)
        with pytest.raises(Discarded, match=r"position 1 is discarded .* kept from position \d+ on.*archive.*first"):
            positions(replicas.pieces(BEGINNING, 50))
        last = replicas.newest()
        assert positions(replicas.pieces(Place(last.position - 10), last.position))[-1] == last.position
