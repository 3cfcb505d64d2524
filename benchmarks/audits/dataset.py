"""The trace: simulated runs of eight processors, tiled with fresh identities; among them, runs with a mistake each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.spec.small import corrupted, renumbered

from greenline.kernel.evidence import Row
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import play
from greenline.simulation.subjects import RING
from greenline.spec.judge import Broken, Judge, by_run
from greenline.trace.schema import SCHEMA
from greenline.trace.tables import ROW_GROUP, to_table

PROCESSORS = 8
PLANTED = 20
SEEDS = range(24)
TRIED = 400
ROWS_A_FILE = 2_000_000
KINDS = frozenset({"start", "generate", "send", "deliver", "regular", "transitional", "crash", "halt", "quiet"})
"""What the rules of EVS speak of; the rest would only make the trace look longer."""


def make(place: Path, events: int) -> list[Broken]:
    """Write about so many events; returns what must be found in them, and nothing else."""
    runs = dict(_simulated())
    planted, expected = _planted(list(runs.values()))
    tile = to_table(runs.items())
    tiles = max(1, events // tile.num_rows)
    every = max(1, tiles // PLANTED)
    waiting = list(planted.items())
    writer, written = None, 0
    for number in range(tiles):
        if writer is None or written >= ROWS_A_FILE:
            if writer is not None:
                writer.close()
            writer, written = pq.ParquetWriter(place / f"part-{number:06}.parquet", SCHEMA), 0
        fresh = pc.binary_join_element_wise(tile.column("run"), str(number), "/")
        table = tile.set_column(0, SCHEMA.field("run"), fresh)
        due = [waiting.pop()] if waiting and number % every == 0 else []
        if number == tiles - 1:
            due, waiting = due + waiting, []
        table = pa.concat_tables([table, to_table(due)])
        writer.write_table(table, row_group_size=ROW_GROUP)
        written += table.num_rows
    if writer is not None:
        writer.close()
    return expected


def _simulated() -> Iterator[tuple[str, list[Row]]]:
    for profile in ("calm", "storm"):
        for seed in SEEDS:
            run = play(draw_plan(RING, seed, PROCESSORS, profile))
            yield run.plan.run, renumbered([copy(row) for row in run.rows if row.kind in KINDS])


def _planted(runs: Sequence[list[Row]]) -> tuple[dict[str, list[Row]], list[Broken]]:
    """Runs with one mistake or a few, each for a rule that no other of them is for, and all that these break."""
    tried = {f"planted {seed}": corrupted(runs[seed % len(runs)], seed) for seed in range(TRIED)}
    found = by_run(Judge(("evs",), threads=2).broken(to_table(tried.items())))
    chosen: dict[str, str] = {}
    for run, broken in sorted(found.items(), key=lambda item: (len({each.rule for each in item[1]}), item[0])):
        for rule in sorted({each.rule for each in broken} - set(chosen)):
            if run not in chosen.values() and len(chosen) < PLANTED:
                chosen[rule] = run
    assert len(chosen) == PLANTED, f"only {len(chosen)} rules are broken by {TRIED} mistakes"
    expected = [each for run in chosen.values() for each in found[run]]
    return {run: tried[run] for run in chosen.values()}, expected
