"""What a reader of `format("greenline")` may ask for, and what is wrong with what it asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from greenline.pipeline import reaching
from greenline.pipeline.reaching import BadOption, Reach, check_known, reach
from greenline.pipeline.reading import PATIENCE_S

BUNDLES, ACTIONS, CHANGES = "bundles", "actions", "changes"
SCHEMAS = (BUNDLES, ACTIONS, CHANGES)
OPTIONS = (
    *reaching.OPTIONS,
    "files",
    "archive",
    "schema",
    "table",
    "first",
    "last",
    "per_partition",
    "per_batch",
    "patience",
)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    schema: str
    reach: Reach | None = None
    """A running cluster."""
    files: Path | None = None
    """Or the data directory of a node that does not run."""
    archive: Path | None = None
    table: str | None = None
    """The changes of this one only, in columns of its own."""
    first: int = 1
    last: int | None = None
    """Or as far as it goes."""
    per_partition: int = 1000
    """Positions that one task reads."""
    per_batch: int = 10_000
    """Positions of a micro-batch, at most."""
    patience: float = PATIENCE_S
    """Seconds that nobody may tell anything."""


def asked(options: Mapping[str, str]) -> Asked:
    """Raises `BadOption`."""
    check_known(options, OPTIONS)
    table = options.get("table")
    schema = options.get("schema", CHANGES if table else BUNDLES).lower()
    if schema not in SCHEMAS:
        raise BadOption(f"there is no schema {schema}: write one of {', '.join(SCHEMAS)}")
    if table and schema != CHANGES:
        raise BadOption(f"a table has changes, and no {schema}: leave out one of both options")
    files, archive = options.get("files"), options.get("archive")
    if files and options.get("at"):
        raise BadOption('read either from a cluster, by option("at"), or from the files of a node, by option("files")')
    if schema != BUNDLES and not archive:
        raise BadOption(
            f"{schema} are made by a follower, which applies the log to a database of its own and keeps what it finds: "
            'say where, by option("archive", DIRECTORY)'
        )
    found = Asked(
        schema=schema,
        reach=reach(options) if options.get("at") or not (files or archive) else None,
        files=Path(files).absolute() if files else None,  # on other machines as well
        archive=Path(archive).absolute() if archive else None,
        table=table,
        first=_positive(options, "first", 1),
        last=_positive(options, "last", 0) or None,
        per_partition=_positive(options, "per_partition", 1000),
        per_batch=_positive(options, "per_batch", 10_000),
        patience=float(_positive(options, "patience", int(PATIENCE_S))),
    )
    if found.last is not None and found.last < found.first - 1:
        raise BadOption(f"nothing stands between first={found.first} and last={found.last}")
    return found


def _positive(options: Mapping[str, str], name: str, usual: int) -> int:
    given = options.get(name)
    if given is None:
        return usual
    if not (given.isascii() and given.isdecimal()) or not 0 < int(given) < 1 << 63:
        raise BadOption(f'{name}={given!r} is no position or number: write option("{name}", "1") or more')
    return int(given)
