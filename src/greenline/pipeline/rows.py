"""Rows: bundles of the order as columns, one row a bundle or one row an action.

What an action asks for (`rows_opened`) and what it came to (`rows_outcomes`) is shown as JSON. Nothing is lost:
`bundles` has every byte.

The component is the one that the origin was in when it took the action; so `NOT is_primary` is what was accepted
outside of the primary component. In which one it was ordered the order does not say: replicas learn of one place in
different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec
import pyarrow as pa

from greenline.access import wire
from greenline.kernel.actions import declared
from greenline.kernel.database import System
from greenline.kernel.statements import encode
from greenline.pipeline.rows_columns import counted, listed, places, whole
from greenline.pipeline.rows_opened import opened
from greenline.pipeline.rows_outcomes import Came, check, outcome_columns
from greenline.replication.port import BundleId, MadeIn

_COMPONENT = [
    pa.field("component", pa.string()),  # who was connected with the origin, itself among them: p q r
    pa.field("is_primary", pa.bool_()),  # that was the primary component
    pa.field("prim_index", pa.int64()),  # of the last primary component that the origin knew; its own, if it was one
]
BUNDLES = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("digest", pa.binary(), nullable=False),  # what the order comes to with it
        pa.field("origin", pa.string(), nullable=False),  # the server that made it
        pa.field("number", pa.int64(), nullable=False),  # among those of that server
        *_COMPONENT,
        pa.field("actions", pa.int32(), nullable=False),  # how many
        pa.field("content", pa.int64(), nullable=False),  # its checksum, as the digest has it
        pa.field("chunks", pa.list_(pa.field("element", pa.binary(), nullable=False)), nullable=False),
        pa.field("change", pa.binary(), nullable=False),  # of the cluster itself, or nothing
        pa.field("system", pa.binary(), nullable=False),  # what the database does here by itself
    ]
)

ACTIONS = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("sub", pa.int32(), nullable=False),
        pa.field("session", pa.string()),  # none, if it cannot be opened
        pa.field("number", pa.int64()),
        pa.field("is_relaxed", pa.bool_()),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("bundle", pa.int64(), nullable=False),  # its number among those of its origin
        *_COMPONENT,
        pa.field("kind", pa.string(), nullable=False),  # work, role, member, or garbled
        pa.field("time", pa.timestamp("us", tz="UTC")),  # when its client asked for it, by the client's clock
        pa.field("statements", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("parameters", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("verdict", pa.string()),  # none, as long as nobody has applied it
        pa.field("outcome", pa.string()),
        pa.field("is_again", pa.bool_()),  # it was decided at an earlier position
    ]
)

_system = msgspec.msgpack.Decoder(tuple[System, ...]).decode


def bundles_batch(bundles: Sequence[wire.Bundle], digests: Sequence[bytes]) -> pa.RecordBatch:
    """One row for each; `digests` are what the order comes to with each of them."""
    chunks = [bundle.actions for bundle in bundles]
    columns = [
        pa.array([bundle.position for bundle in bundles], pa.int64()),
        pa.array(digests, pa.binary()),
        pa.array([bundle.bundle.creator for bundle in bundles], pa.string()),
        pa.array([bundle.bundle.index for bundle in bundles], pa.int64()),
        *_components(bundles),
        pa.array([sum(map(declared, each)) for each in chunks], pa.int32()),
        pa.array([bundle.content for bundle in bundles], pa.int64()),
        listed(list(map(len, chunks)), pa.array(list(chain.from_iterable(chunks)), pa.binary())),
        pa.array([bundle.change for bundle in bundles], pa.binary()),
        pa.array([encode(bundle.system) for bundle in bundles], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BUNDLES)


def bundles_of(batch: pa.RecordBatch) -> list[wire.Bundle]:
    """What such rows were made from."""
    names = (
        "position",
        "origin",
        "number",
        "chunks",
        "change",
        "content",
        "system",
        *(each.name for each in _COMPONENT),
    )
    columns = [batch.column(name).to_pylist() for name in names]
    return [
        wire.Bundle(
            position, BundleId(origin, number), tuple(chunks), change, content, _system(system), _made_in(*there)
        )
        for position, origin, number, chunks, change, content, system, *there in zip(*columns, strict=True)
    ]


def _components(bundles: Sequence[wire.Bundle]) -> list[pa.Array]:
    found = [
        (None, None, None) if made_in is None else (" ".join(made_in.members), made_in.is_primary, made_in.prim_index)
        for made_in in (bundle.made_in for bundle in bundles)
    ]
    columns = zip(*found, strict=True) if found else ([] for _ in _COMPONENT)
    return [pa.array(list(column), field.type) for column, field in zip(columns, _COMPONENT, strict=True)]


def _made_in(component: str | None, is_primary: bool | None, prim_index: int | None) -> MadeIn | None:
    if component is None or is_primary is None or prim_index is None:
        return None
    return MadeIn(is_primary, prim_index, tuple(component.split()))


def actions_batch(bundles: Sequence[wire.Bundle], outcomes: Sequence[Came] | None = None) -> pa.RecordBatch:
    """One row for each action; `outcomes` are what those of each bundle came to, if somebody has applied them."""
    counts = [sum(map(declared, bundle.actions)) for bundle in bundles]
    rows = opened([chunk for bundle in bundles for chunk in bundle.actions])
    many = sum(counts)
    assert many == len(rows.numbers), "as many actions as chunks declare, garbled or not"
    if outcomes is not None:
        check(bundles, counts, outcomes)
    of, run = places(counts), places(rows.many)
    columns = [
        pa.array([bundle.position for bundle in bundles], pa.int64()).take(of),
        counted(counts),
        pa.array(rows.sessions, pa.string()).take(run),
        whole(rows.numbers),
        pa.array(rows.relaxed, pa.bool_()).take(run),
        pa.array([bundle.bundle.creator for bundle in bundles], pa.string()).take(of),
        pa.array([bundle.bundle.index for bundle in bundles], pa.int64()).take(of),
        *(column.take(of) for column in _components(bundles)),
        pa.array(rows.kinds, pa.string()).take(run),
        whole(rows.times).cast(pa.timestamp("us", tz="UTC")).take(run),
        listed(rows.counts, pa.array(rows.statements, pa.string())).take(run),
        listed(rows.parameter_counts, pa.array(rows.parameters, pa.binary()).cast(pa.string())),
        *outcome_columns(outcomes, many),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ACTIONS)
