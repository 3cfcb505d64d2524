"""What the demo's tellers asked for and were told, as rows of a trace: by one clock, as rules want it.

The nodes write their own traces. With these rows beside them, the audit can compare what clients were told with what
every replica has done.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from greenline.access import wire
from greenline.client import Written
from greenline.client.asked import Identity
from greenline.database.witness import outcome_digest
from greenline.kernel import evidence
from greenline.kernel.actions import Outcome
from greenline.kernel.evidence import WORLD, Row
from greenline.kernel.identities import ProcId
from greenline.trace.tables import load, to_batch

RUN = "cluster"
"""As nodes call theirs."""
_LEVEL = "local"


class Witness:
    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._begun = time.monotonic()

    def call(self, request: str, at: ProcId) -> Row:
        """Somebody asks. Under which identity is known when it is answered: `name` it then."""
        return self._note(evidence.CALL, service=_LEVEL, members=at, detail=request)

    @staticmethod
    def name(call: Row, identity: Identity) -> None:
        call.message = str(identity)

    def accepted(self, identity: Identity, at: ProcId) -> None:
        self._note(evidence.RETURN, message=str(identity), service=_LEVEL, colour="red", members=at)

    def decided(self, written: Written, at: ProcId) -> None:
        if isinstance(written.outcome, Outcome):
            outcome = written.outcome
            self._note(
                evidence.RETURN,
                message=str(written.identity),
                service=written.level.value,
                colour="green",
                position=outcome.position,
                sub=outcome.sub,
                members=at,
                digest=outcome_digest(outcome),
                detail=outcome.verdict.value,
            )

    def fault(self, what: str) -> None:
        self._note(evidence.FAULT, detail=what)

    def healed(self, what: str) -> None:
        self._note(evidence.HEALED, detail=what)

    def ask_total(self, at: ProcId) -> None:
        self._note(evidence.CALL, message=f"{at}?1", service="strict", members=at, detail="total")

    def total(self, at: ProcId, position: int, total: int) -> None:
        told = {"colour": "green", "position": position, "sub": 0, "detail": str(total)}
        self._note(evidence.RETURN, message=f"{at}?1", service="strict", members=at, **told)

    def ended(self, finals: dict[ProcId, wire.Stands]) -> None:
        """Nothing changes any more; this is what each has come to."""
        for name, stands in finals.items():
            self._note(evidence.FINAL, members=name, position=stands.position, sub=0, digest=stands.state.hex())
        self._note(evidence.QUIET)

    def _note(self, kind: str, **columns: Any) -> Row:
        row = Row(WORLD, 0, len(self._rows), time.monotonic() - self._begun, kind, **columns)
        self._rows.append(row)
        return row

    def with_traces_of(self, nodes: Path, kept: Path) -> pa.Table:
        """All that is known of the run, kept in one file: what nodes do later changes nothing in it."""
        table = pa.concat_tables([load(nodes), pa.Table.from_batches([to_batch(RUN, self._rows)])])
        pq.write_table(table, kept)
        return table
