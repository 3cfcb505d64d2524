"""The certificate: a logical time for every event, computed from the trace alone (notes on thesis 4.1.6, "ord").

What must hold together is contracted to one node: all deliveries of a configuration (2.3, 2.4), all deliveries of
an agreed or safe message (6.2). A logical time exists exactly if the contracted graph of the processes' own orders
and of sending before delivering has no cycle. Since that graph is made of chains, it is merged like sorted lists, in
one pass. Whoever proposes a certificate need not be trusted: the rules 1.1, 2.3, 2.4, 6.1 and 6.2 verify it in SQL.

Three columns, from weak to strong: `before` respects the precedes relation, `cut` also delivers each configuration at
one time, `ord` each message as well. A basic message carries no causality, so only `before` asks that it was sent
before it is delivered. Where a graph has a cycle, its column is a time that fails at it. Where already the precedes
relation has one, nothing more can be said, and `cut` and `ord` are NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import duckdb
import pyarrow as pa

CONF, SEND, AGREED, BASIC, OTHER = range(5)

_EVENTS = f"""
SELECT e.run, e.process, e.n,
       CASE WHEN e.kind IN ('regular', 'transitional') THEN {CONF}
            WHEN e.kind = 'send' THEN {SEND}
            WHEN e.kind = 'deliver' AND m.service IN ('agreed', 'safe') THEN {AGREED}
            WHEN e.kind = 'deliver' AND m.service = 'basic' THEN {BASIC}
            ELSE {OTHER} END AS sort,
       dense_rank() OVER (ORDER BY e.run) AS run_number,
       dense_rank() OVER (ORDER BY e.run, e.process) AS chain,
       CASE WHEN e.kind IN ('regular', 'transitional') THEN dense_rank() OVER (ORDER BY e.run, e.conf) END
           AS conf_number,
       CASE WHEN e.kind IN ('send', 'deliver') THEN dense_rank() OVER (ORDER BY e.run, e.message) END AS message_number
FROM event e
LEFT JOIN message m ON m.run = e.run AND m.message = e.message
WHERE e.kind IN ('regular', 'transitional', 'send', 'deliver', 'crash')
ORDER BY e.run, e.process, e.n
"""

Times = list[int | None]


def certificate(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The table `certificate` for the tables `event` and `message` of this connection."""
    events = connection.sql(_EVENTS).to_arrow_table()
    sorts, runs, chains, confs, messages = (
        events.column(name).to_pylist() for name in ("sort", "run_number", "chain", "conf_number", "message_number")
    )
    before: Times = []
    cut: Times = []
    order: Times = []
    begin = 0
    for _, rows in groupby(runs):
        end = begin + sum(1 for _ in rows)
        part = slice(begin, end)
        times = _of_a_run(sorts[part], chains[part], confs[part], messages[part])
        for column, values in zip((before, cut, order), times, strict=True):
            column += values
        begin = end
    return pa.table(
        {
            "run": events.column("run"),
            "process": events.column("process"),
            "n": events.column("n"),
            "before": pa.array(before, pa.int64()),
            "cut": pa.array(cut, pa.int64()),
            "ord": pa.array(order, pa.int64()),
        }
    )


def _of_a_run(
    sorts: Sequence[int], chains: Sequence[int], confs: Sequence[int | None], messages: Sequence[int | None]
) -> tuple[Times, Times, Times]:
    """The three times of every event of one run."""
    first_send: dict[int | None, int] = {}
    for event, sort in enumerate(sorts):
        if sort == SEND:
            first_send.setdefault(messages[event], event)
    all_needs = [
        first_send.get(message) if sort != SEND and message is not None else None
        for sort, message in zip(sorts, messages, strict=True)
    ]
    needs = [None if sort == BASIC else need for sort, need in zip(sorts, all_needs, strict=True)]
    own = list(range(len(sorts)))
    cuts: list[object] = [("c", confs[event]) if sorts[event] == CONF else event for event in own]
    nodes: list[object] = [("m", messages[event]) if sorts[event] == AGREED else cuts[event] for event in own]

    order, is_proof, _ = _merge(chains, _numbered(nodes), needs)
    if is_proof and needs == all_needs:
        return order, order, order
    before, _, is_order = _merge(chains, own, all_needs)
    if is_order and is_proof:
        return before, order, order
    if not is_order:
        nothing: Times = [None] * len(sorts)
        return before, nothing, nothing
    cut, _, _ = _merge(chains, _numbered(cuts), needs)
    return before, cut, order


def _numbered(nodes: Sequence[object]) -> list[int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(node, len(numbers)) for node in nodes]


def _merge(chains: Sequence[int], nodes: Sequence[int], needs: Sequence[int | None]) -> tuple[Times, bool, bool]:
    """Merge the chains: a node happens when it is next in every chain that has it, and what it needs has happened.

    Returns the times, whether they prove an order, and whether they at least do without cutting a need.
    """
    ends: dict[int, int] = {}
    heads: dict[int, int] = {}
    for event, chain in enumerate(chains):
        heads.setdefault(chain, event)
        ends[chain] = event
    left = [0] * (max(nodes, default=-1) + 1)
    for node in nodes:
        left[node] += 1
    times: Times = [None] * len(nodes)
    arrived: dict[int, list[int]] = {}
    waiting: dict[int, list[int]] = {}
    clock = 0
    is_proof = is_order = True
    ready = sorted(heads, reverse=True)

    def happen(event: int) -> None:
        """One event happens, now; its chain goes on, and so does whoever waited for it."""
        times[event] = clock
        chain = chains[event]
        if event == ends[chain]:
            del heads[chain]
        else:
            heads[chain] = event + 1
            ready.append(chain)
        if event in waiting:
            ready.extend(waiting.pop(event))

    while heads:
        while ready:
            chain = ready.pop()
            event = heads[chain]
            need = needs[event]
            if need is not None and times[need] is None:
                waiting.setdefault(need, []).append(chain)
                continue
            node = nodes[event]
            if left[node] == 1:
                clock += 1
                left[node] = 0
                happen(event)
                continue
            there = arrived.setdefault(node, [])
            there.append(chain)
            if len(there) == left[node]:
                clock += 1
                left[node] = 0
                for each in arrived.pop(node):
                    happen(heads[each])
        if heads:
            # A cycle. Let one event happen on its own: its node falls apart, or, if none can, a need is cut.
            is_proof = False
            clock += 1
            if arrived:
                node, there = min(arrived.items(), key=lambda item: min(item[1]))
                chain = min(there)
                there.remove(chain)
                if not there:
                    del arrived[node]
                left[node] -= 1
            else:
                is_order = False
                need, blocked = min(waiting.items(), key=lambda item: min(item[1]))
                chain = min(blocked)
                blocked.remove(chain)
                if not blocked:
                    del waiting[need]
                left[nodes[heads[chain]]] -= 1
            happen(heads[chain])
    return times, is_proof, is_order
