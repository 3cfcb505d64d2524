"""The certificate: a logical time for every event, computed from the trace alone (notes on thesis 4.1.6, "ord").

What must hold together is contracted to one node: all deliveries of a configuration (2.3, 2.4), all deliveries of
an agreed or safe message (6.2). A logical time exists exactly if the contracted graph of the processes' own orders
and of sending before delivering has no cycle. Since that graph is made of chains, it is merged like sorted lists, in
one pass. Whoever proposes a certificate need not be trusted: the rules 1.1, 2.3, 2.4, 6.1 and 6.2 verify it in SQL.

Three columns, from weak to strong: `before` respects the precedes relation, `cut` also delivers each configuration at
one time, `ord` each message as well. A basic message carries no causality, so only `before` asks that it was sent
before it is delivered. Where a graph has a cycle, its column is a time that fails at it. Where already the precedes
relation has one, nothing more can be said, and `cut` and `ord` are NULL.

The merge holds one step of every chain, and what is under way between them: it reads a run of any length as a stream.
Each step brings along how often its name occurs, so that nobody has to look ahead.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

CONF, SEND, AGREED, BASIC, OTHER = range(5)

STEPS = f"""
SELECT run, process, n, {CONF} AS sort, conf AS name, count(*) OVER (PARTITION BY run, conf) AS times, FALSE AS needs,
       kind, CAST(NULL AS STRING) AS message, conf, CAST(NULL AS STRING) AS family, CAST(NULL AS STRING) AS sender,
       CAST(NULL AS STRING) AS service
FROM conf_event
UNION ALL
SELECT run, process, n, {SEND} AS sort, message AS name, CASE WHEN is_first THEN deliveries ELSE 0 END AS times,
       FALSE AS needs, 'send' AS kind, message, conf, family, process AS sender, service
FROM sent
UNION ALL
SELECT run, process, n,
       CASE WHEN service IN ('agreed', 'safe') THEN {AGREED}
            WHEN service = 'basic' THEN {BASIC}
            ELSE {OTHER} END AS sort,
       message AS name, deliveries AS times, is_sent AS needs, 'deliver' AS kind, message, conf, family, sender, service
FROM delivered
UNION ALL
SELECT run, process, n, {OTHER} AS sort, '' AS name, 1 AS times, FALSE AS needs,
       kind, message, conf, CAST(NULL AS STRING) AS family, CAST(NULL AS STRING) AS sender, service
FROM event
WHERE kind = 'crash'
"""
"""What is merged, to be sorted by run, process and n: of a delivery or a configuration, how often there is one of its
name, and whether it needs to be sent; of a (first) sending, how many deliveries need it. The rest is carried along, so
that who verifies a time need not look up what has it."""

SORTED_BY = ("run", "process", "n")

CARRIED = ("kind", "message", "conf", "family", "sender", "service")

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("process", pa.string()),
        ("n", pa.int64()),
        *((name, pa.string()) for name in CARRIED),
        ("before", pa.int64()),
        ("cut", pa.int64()),
        ("ord", pa.int64()),
    ]
)

Step = tuple[int, str, int, bool]
"""Sort, name, times, needs."""

Key = TypeVar("Key")

Chains = Sequence[Iterator[Step]]
"""The steps of the processes of one run, each in its own order, the processes sorted."""


@dataclass
class Merged:
    times: list[array[int]]
    is_proof: bool = True
    """They prove an order of what was contracted."""
    is_order: bool = True
    """They do at least without cutting a need."""
    is_early: bool = False
    """A basic message is delivered before it is sent: they prove nothing of the precedes relation."""


Times = Sequence[Sequence[int]] | None
"""Of the steps of each chain, in its order; None if nothing can be said."""


def certificate(steps: pa.Table) -> pa.Table:
    """The table `certificate` of these steps: of whole runs, sorted, in memory."""
    runs, processes = steps.column("run"), steps.column("process")
    columns = [steps.column(name).to_pylist() for name in ("sort", "name", "times", "needs")]
    found: list[list[int | None]] = [[], [], []]
    for bounds in chains_by_run(runs, processes):
        parts = [[column[begin:end] for column in columns] for begin, end in bounds]
        times = times_of_a_run(lambda parts=parts: [zip(*part, strict=True) for part in parts])  # type: ignore[misc]
        for column, chains in zip(found, times, strict=True):
            if chains is None:
                column.extend([None] * (bounds[-1][1] - bounds[0][0]))
            else:
                for chain in chains:
                    column.extend(chain)
    arrays = [pa.array(column, pa.int64()) for column in found]
    carried = [steps.column(name) for name in ("run", "process", "n", *CARRIED)]
    return pa.Table.from_arrays([*carried, *arrays], schema=SCHEMA)


def chains_by_run(runs: pa.ChunkedArray, processes: pa.ChunkedArray) -> list[list[tuple[int, int]]]:
    """Where the chains of each run begin and end, in sorted rows."""
    run_ends = _ends(runs)
    bounds = pairwise([0, *sorted({*run_ends, *_ends(processes)})])
    by_run: list[list[tuple[int, int]]] = []
    begun = {0, *run_ends}
    for begin, end in bounds:
        if begin in begun:
            by_run.append([])
        by_run[-1].append((begin, end))
    return by_run


def _ends(column: pa.ChunkedArray) -> list[int]:
    """Where a stretch of equal values ends."""
    ends: list[int] = pc.run_end_encode(column.combine_chunks(), run_end_type=pa.int64()).run_ends.to_pylist()
    return ends


def times_of_a_run(chains: Callable[[], Chains]) -> tuple[Times, Times, Times]:
    """The three times of every step of one run, whose chains can be read several times."""
    order = _merge(chains(), (CONF, AGREED))
    if order.is_proof and not order.is_early:
        return order.times, order.times, order.times
    before = _merge(chains(), ())
    if not before.is_order:
        return before.times, None, None
    if order.is_proof:
        return before.times, order.times, order.times
    return before.times, _merge(chains(), (CONF,)).times, order.times


def _merge(chains: Chains, contracted: tuple[int, ...]) -> Merged:
    """Merge the chains: a node happens when it is next in every chain that has it, and what it needs has happened.

    If nothing is contracted, a basic message needs to be sent as well.
    """
    merged = Merged([array("q") for _ in chains])
    times = merged.times
    heads = [next(chain, None) for chain in chains]
    sent: dict[str, int] = {}
    """What was sent, and how many of its deliveries are still to come."""
    waiting: dict[str, list[int]] = {}
    arrived: dict[tuple[int, str], list[int]] = {}
    lost: dict[tuple[int, str], int] = {}
    """How many fell off a node, to break a cycle."""
    clock = 0
    ready = [chain for chain in reversed(range(len(heads))) if heads[chain] is not None]

    def happen(chain: int) -> None:
        """One step happens, now; its chain goes on, and so does whoever waited for it."""
        times[chain].append(clock)
        sort, name, count, needs = _next(heads, chain)
        heads[chain] = following = next(chains[chain], None)
        if following is not None:
            ready.append(chain)
        if sort == SEND:
            if count:
                sent[name] = count
                if name in waiting:
                    ready.extend(waiting.pop(name))
        elif needs and name in sent:
            if sent[name] == 1:
                del sent[name]
            else:
                sent[name] -= 1

    while True:
        while ready:
            chain = ready.pop()
            sort, name, count, needs = _next(heads, chain)
            if needs and name not in sent:
                if sort != BASIC or not contracted:
                    waiting.setdefault(name, []).append(chain)
                    continue
                merged.is_early = True
            if sort in contracted and count > 1:
                node = (sort, name)
                awaited = count - lost.get(node, 0)
                there = arrived.setdefault(node, [])
                there.append(chain)
                if len(there) == awaited:
                    clock += 1
                    for each in arrived.pop(node):
                        happen(each)
            else:
                clock += 1
                happen(chain)
        if not arrived and not waiting:
            return merged
        # A cycle. Let one step happen on its own: its node falls apart, or, if none can, a need is cut.
        merged.is_proof = False
        clock += 1
        if arrived:
            chain = _leave_first(arrived)
        else:
            merged.is_order = False
            chain = _leave_first(waiting)
        sort, name, _, _ = _next(heads, chain)
        lost[sort, name] = lost.get((sort, name), 0) + 1
        happen(chain)


def _next(heads: list[Step | None], chain: int) -> Step:
    step = heads[chain]
    assert step is not None, "only a chain that goes on is looked at"
    return step


def _leave_first(groups: dict[Key, list[int]]) -> int:
    """The first chain of all leaves its group."""
    key, group = min(groups.items(), key=lambda item: min(item[1]))
    chain = min(group)
    group.remove(chain)
    if not group:
        del groups[key]
    return chain
