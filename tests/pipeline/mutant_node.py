"""`greenline node` whose ring has a mistake: `python -m tests.pipeline.mutant_node MUTANT FILE ...`.

The product knows nothing of it: the mistake is put into this process before the node begins.
"""

from __future__ import annotations

import sys

from greenline.cli.main import run
from greenline.node import life
from greenline.ring.core import RingCore
from greenline.simulation.mutants.ring import MUTANTS


def main() -> None:
    mutant = MUTANTS[sys.argv.pop(1)]
    setattr(life, "RingCore", lambda settings: mutant.wrap(RingCore(settings)))  # noqa: B010  (mypy takes it for a class)
    sys.argv.insert(1, "node")
    run()


if __name__ == "__main__":
    main()
