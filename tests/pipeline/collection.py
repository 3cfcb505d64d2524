"""All good and breaking traces that the tests of the rules have, and simulated runs, as one dataset."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from greenline.kernel.evidence import Row
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import play
from greenline.simulation.subjects import ADVERSARY, ENGINE_OVER_RING, NOTICEBOARD, RING, Subject
from greenline.trace.tables import to_table
from tests.spec import test_access_rules as access
from tests.spec import test_evs_rules as evs
from tests.spec import test_noticeboard_rules as noticeboard
from tests.spec import test_provider_rules as provider
from tests.spec import test_replication_rules as replication
from tests.spec.small import corrupted
from tests.trace.rows import history

SIMULATED: tuple[tuple[Subject, int], ...] = ((RING, 60), (ADVERSARY, 60), (ENGINE_OVER_RING, 20), (NOTICEBOARD, 60))


def hand_made() -> Iterator[tuple[str, list[Row]]]:
    texts = [evs.PAIR, evs.together(), *(evs.changed(*changes) for _, changes, _ in evs.CASES)]
    texts += [*replication.judged_together(), *access.judged_together(), noticeboard.GOOD, noticeboard.FORGETFUL]
    texts += [noticeboard.UNREAD, provider.GOOD, "p.1 start\np.1 halt impossible: a mistake"]
    yield from ((f"hand {number}", history(text)) for number, text in enumerate(texts))
    for place in (1, 3):
        rows = history("p.1 start\np.1 regular p.1 p\np.1 generate p:1:1 safe")
        rows[2].local_index = place
        yield f"numbered {place}", rows


def simulated(share: float = 1.0) -> Iterator[tuple[str, list[Row]]]:
    """Each second one with mistakes in it."""
    for subject, runs in SIMULATED:
        for seed in range(round(runs * share)):
            run = play(draw_plan(subject, seed, 3, "storm" if seed % 4 < 2 else "calm"))
            yield run.plan.run, corrupted(run.rows, seed) if seed % 2 else run.rows


def everything(share: float = 1.0) -> pa.Table:
    return to_table([*hand_made(), *simulated(share)])
