"""`greenline demo`: a bank on three real replicas, through a partition, its healing and a crash; then the proof.

The replicas are processes of their own on this machine, as `greenline up` starts them. Everything is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from greenline.cli import demo_proof as proof
from greenline.cli import demo_screen
from greenline.cli.demo_bank import TOTAL, Bank, End, Teller
from greenline.cli.demo_evidence import Witness
from greenline.cli.demo_tables import keep_the_log, tables
from greenline.cli.demo_watch import Look, Stuck, Watch
from greenline.cli.local import Local, make
from greenline.cli.reach import reach
from greenline.cli.say import Misuse, Status, aside, heed_termination, line
from greenline.client import Client
from greenline.kernel.identities import ProcId
from greenline.node.config import written

NAMES = ("p", "q", "r")
TELLERS = 2
"""At each replica."""
SECONDS = 7.0
QUIET_LOOKS = 4
"""So often in a row everything is as it was: then nothing changes any more."""


def demo(
    place: Annotated[Path, typer.Option("--dir", help="Where it makes a directory of its own, and keeps it.")] = Path(
        "demo"
    ),
    seconds: Annotated[float, typer.Option("--seconds", min=0.5, help="How long each act goes on, about.")] = SECONDS,
) -> None:
    """A bank on three replicas: a partition with work on both sides, the healing, a kill -9, and the proof."""
    local = keep_the_log(make(_fresh(place), NAMES).place)
    heed_termination()
    try:
        parts = asyncio.run(_play(local, seconds))
    except Stuck as stuck:
        aside(f"greenline: {stuck}. The files are in {local.place}; {local.place}/*.log tell more")
        raise typer.Exit(Status.STUCK) from None
    finally:
        local.stop_all()
    _tell_what_next(local.place, parts)
    raise typer.Exit(Status.BROKEN if any(part.against for part in parts) else Status.OK)


async def _play(local: Local, seconds: float) -> list[proof.Part]:
    async with contextlib.AsyncExitStack() as stack:
        show = Show(local, seconds, stack)
        watching = asyncio.create_task(show.watch.run())
        try:
            await show.come_up()
            await show.part()
            await show.heal()
            await show.kill()
            return await show.prove()
        finally:
            show.screen.close()
            watching.cancel()


class Show:
    """The acts, one after the other."""

    def __init__(self, local: Local, seconds: float, stack: contextlib.AsyncExitStack) -> None:
        self._local = local
        self._seconds = seconds
        self._stack = stack
        self.watch = Watch(local)
        self._bank = Bank(Witness())
        self.screen = demo_screen.on(self.watch, self._bank)
        self._clients: dict[ProcId, Client] = {}

    async def come_up(self) -> None:
        self.screen.act(
            1,
            "three replicas come up, and a bank opens",
            "Each replica is a process with a disk of its own. A transfer changes two accounts and the ledger, as one"
            " action. All replicas apply all actions in one order, and answer when it is durable.",
        )
        failures = await asyncio.to_thread(self._local.start_all)
        if failures:
            raise failures[0]
        await self._until_primary(*NAMES)
        self.screen.happened("p, q and r are up, in one primary component")
        for name in NAMES:
            self._clients[name] = await self._client(name, roams=False)
        await self._bank.found(self._clients["p"])
        self.watch.read_at(self._clients)
        self.screen.happened(f"a bank of 12 accounts with 100 each: {TOTAL:,} in all, and none below 0")
        for name in NAMES:
            # Tellers of r stay at r whatever happens; the others go where they are served.
            for number in range(1, TELLERS + 1):
                Teller(self._bank, f"{name}{number}", name, await self._client(name, roams=name != "r"))
        self.screen.happened("two tellers at each replica begin to transfer money")
        await asyncio.sleep(self._seconds)
        self.screen.happened(f"{self._bank.count(End.DONE)} transfers are done; each was told so, green and durable")

    async def part(self) -> None:
        self.screen.act(
            2,
            "the network is cut: p q | r",
            "p and q are a majority: they go on as before. r alone cannot order anything, and turns nobody away: it"
            " accepts transfers (red), keeps them on its disk, and says so. Weak reads at r show the last state that"
            " all agreed on; dirty reads show its own reds on top.",
        )
        self._bank.witness.fault("the network is cut: p q | r")
        await asyncio.to_thread(self._local.cut, "p q | r")
        self.screen.happened("the network between p q and r is cut")
        await self._until_primary("p", "q")
        await self.watch.until("r is alone", lambda looks: _here(looks["r"]) == ("r",))
        self.screen.happened("p and q are the primary component now; r is alone, and not primary")
        await asyncio.sleep(1.5 * self._seconds)
        await self.watch.until("r has accepted something", lambda looks: _reds(looks["r"]) > 0)
        for name in ("p", "r"):
            look = self.watch.looks[name]
            if look.weak is not None and look.dirty is not None:
                self.screen.happened(
                    f"at {name} a weak read finds {look.weak.transfers} transfers, a dirty read"
                    f" {look.dirty.transfers}; both find {TOTAL:,}"
                )

    async def heal(self) -> None:
        self.screen.act(
            3,
            "the network heals, and the colours merge",
            "r learns what p and q have ordered, they learn what r has accepted. Red becomes green at one place of one"
            " order. Only now is decided what became of r's transfers: the money may be gone meanwhile.",
        )
        waiting = [each for each in self._bank.transfers if each.was_red and each.end is End.OPEN]
        self._bank.witness.healed("the network heals")
        await asyncio.to_thread(self._local.heal)
        self.screen.happened(f"the network is whole again; {len(waiting)} transfers at r wait for their outcomes")
        await self._until_primary(*NAMES)
        await self.watch.until("all of r's is decided", lambda _: all(each.end is not End.OPEN for each in waiting))
        done = sum(each.end is End.DONE for each in waiting)
        self.screen.happened(f"all are one primary component; of r's {len(waiting)}, {done} are done")
        if done < len(waiting):
            self.screen.happened(f"{len(waiting) - done} have failed: the account would have fallen below 0 (CHECK)")
        await asyncio.sleep(self._seconds / 2)

    async def kill(self) -> None:
        self.screen.act(
            4,
            "kill -9 of q, and its return",
            "What q had told anybody is durable. Its tellers ask others for what was not answered, under the same"
            " identities: whatever q had done of it is not done twice. When q is back, it takes what it missed.",
        )
        tellers = self._bank.of("q")
        self._bank.witness.fault("q is killed")
        await asyncio.to_thread(self._local.kill, "q")
        self.screen.happened("q is killed with kill -9, in the middle of its work")
        await self._until_primary("p", "r")
        await self.watch.until("q's tellers are elsewhere", lambda _: all(each.place != "q" for each in tellers))
        asked = {each.name: each.drawn for each in tellers}
        self.screen.happened("p and r go on; " + ", ".join(f"{each.name} is at {each.place} now" for each in tellers))
        await asyncio.sleep(self._seconds / 2)
        more = sum(each.drawn - asked[each.name] for each in tellers)
        self.screen.happened(f"q's tellers have gone on with {more} transfers without it; q is started again")
        status = await asyncio.to_thread(self._local.restart, "q")
        self._bank.witness.healed("q is up again")
        await self._until_primary(*NAMES)
        self.screen.happened(f"q is back in its life {status.incarnation}, and has caught up")
        await asyncio.sleep(self._seconds / 2)

    async def prove(self) -> list[proof.Part]:
        self.screen.act(
            5,
            "the proof",
            "The tellers stop, and every one of them gets its last answer. Then: is all the money there, are the"
            " replicas equal, did each transfer happen once, do the traces of all keep every rule of the"
            " specification, and does the ordered log, through Spark, make the same tables again?",
        )
        async with _patience(60, "every teller has its last answer"):
            await self._bank.close()
        self.screen.happened(f"all {len(self._bank.transfers)} transfers are answered")
        books = {name: await proof.books_at(name, db, self._bank) for name, db in self._clients.items()}
        async with _patience(60, "nothing changes any more"):
            await self._until_quiet()
        stands = {name: await db.digests() for name, db in self._clients.items()}
        self._bank.witness.ended(stands)
        self.screen.happened("the traces of all replicas, and what the tellers were told, are judged ...")
        trace = await asyncio.to_thread(
            self._bank.witness.with_traces_of, self._local.place / "data", _evidence(self._local.place)
        )
        found = [
            proof.sums(books, self.watch),
            proof.digests(stands),
            proof.once(books, self._bank.transfers),
            await proof.audit(trace),
        ]
        self.screen.happened("the ordered log goes through Spark, into tables ...")
        found.append(await tables(self._local.place, _tables(self._local.place), books["p"]))
        self.screen.close()
        line()
        for part in found:
            for each in part.lines():
                line(each)
        return found

    async def _client(self, name: ProcId, *, roams: bool) -> Client:
        address = written(self._local.configs[name].clients[name])
        only = msgspec.structs.replace(reach(self._local.place), addresses=address)
        return await self._stack.enter_async_context(only.connected(roams=roams))

    async def _until_primary(self, *members: ProcId) -> None:
        await self.watch.until(
            f"{' '.join(members)} are a primary component",
            lambda looks: all(looks[name].is_in_primary(*members) for name in members),
        )

    async def _until_quiet(self) -> None:
        """Everything is green everywhere, and stays as it is: then the traces are whole."""
        before: list[object] = []
        in_a_row = 0
        while in_a_row < QUIET_LOOKS:
            looks = await self.watch.next()
            now: list[object] = [look.standing for look in looks.values()]
            is_green = not any(map(_reds, looks.values()))
            in_a_row = in_a_row + 1 if is_green and now == before else 0
            before = now


def _here(look: Look) -> tuple[ProcId, ...]:
    return look.standing.here if look.standing is not None else ()


def _reds(look: Look) -> int:
    return look.standing.reds if look.standing is not None else 0


@contextlib.asynccontextmanager
async def _patience(seconds: float, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Stuck(f"after {seconds:g} s it is not so that {what}") from None


def _fresh(place: Path) -> Path:
    """A directory that no demo has used."""
    try:
        numbers = [int(each.name) for each in place.iterdir() if each.name.isdecimal()] if place.exists() else []
    except OSError as error:
        raise Misuse(f"cannot look into {place}: {error.strerror}; choose another --dir") from None
    return place / str(max(numbers, default=0) + 1)


def _evidence(place: Path) -> Path:
    return place / "evidence.parquet"


def _tables(place: Path) -> Path:
    return place / "tables"


def _tell_what_next(place: Path, parts: list[proof.Part]) -> None:
    left = ", ".join(part.name for part in parts if part.is_open)
    line()
    if any(part.against for part in parts):
        line("Something of it is NOT so: see above, and the files.")
    else:
        line(f"Everything but the {left} is proven." if left else "Everything is proven.")
    line(f"The files are kept in {place}: databases, logs, traces, tables. To go on:")
    line(f"  greenline audit {_evidence(place)}")
    if left:
        line(f"  greenline pipeline run --dir {place} --into {_tables(place)}, while that is up, once there is Spark")
    else:
        line(f"  greenline pipeline show account --history --into {_tables(place)}")
    line(f"  greenline up --dir {place}")
    line("and, from another terminal, while that runs:")
    line(f'  greenline sql --dir {place} "SELECT * FROM account"')
    line(f"  greenline status --dir {place}")
