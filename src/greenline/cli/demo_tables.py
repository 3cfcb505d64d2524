"""The demo's tables: its ordered log through Spark, and what comes of it beside what the replicas have."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from greenline.cli.demo_proof import Books, Entry, Part
from greenline.cli.local import Local
from greenline.pipeline import session
from greenline.pipeline.java import NoSpark

NAME = "tables"
_KEPT = """
[engine]
retain_after_white = 1000000
"""


def keep_the_log(place: Path) -> Local:
    """The cluster in this place, which is to start: its log is read from the beginning when the show is over."""
    for path in place.glob("*.toml"):
        path.write_text(path.read_text() + _KEPT)
    return Local(place)


async def tables(place: Path, into: Path, books: Books) -> Part:
    """Of the cluster in this place. Who has no Spark is told how to get it."""
    begun = time.monotonic()
    try:
        found, against = await asyncio.to_thread(_rebuilt, place, into, books)
    except NoSpark as reason:
        return Part(NAME, f"not made: {reason}", is_open=True)
    return Part(NAME, f"{found}, {time.monotonic() - begun:.0f} s", against)


def _rebuilt(place: Path, into: Path, books: Books) -> tuple[str, list[str]]:
    spark = session.spark("greenline demo", memory="1g")
    from greenline.pipeline.expectations import Unexpected
    from greenline.pipeline.follower import Differs
    from greenline.pipeline.reading import NotRead
    from greenline.pipeline.running import Running, told

    try:
        with Running(spark, into, told({"at": str(place)})) as work:
            ended = work.run()
            accounts = work.tables.current("account").select("id", "balance").collect()
            ledger = work.tables.current("ledger").select("client", "number", "source", "target", "amount").collect()
    except (Unexpected, Differs, NotRead) as error:
        return "the log did not become tables", [str(error)]
    finally:
        session.stop()
    rows = sum(ended.rows.values())
    found = f"{ended.archived:,} positions into {rows:,} rows, equal to a replica at {ended.verified:,}"
    return found, against(Books({row[0]: row[1] for row in accounts}, [Entry(*row) for row in ledger]), books)


def against(rebuilt: Books, books: Books) -> list[str]:
    """What a replica has, and the tables have not, or otherwise."""
    different = [
        f"account {account} has {rebuilt.balances.get(account)} in the tables, and {balance} at a replica"
        for account, balance in books.balances.items()
        if rebuilt.balances.get(account) != balance
    ]
    one, other = (sorted(each.entries, key=lambda entry: (entry.client, entry.number)) for each in (rebuilt, books))
    return different + ([] if one == other else [f"the ledger has {len(one)} rows, and {len(other)} at a replica"])
