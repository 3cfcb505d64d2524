"""The schema of a trace: the columns of `kernel.evidence.Row`, with the run in front.

run           the execution; rows of different runs have nothing to do with each other
process       who, or `*` for what befalls the run as a whole
incarnation   which life of the process
local_index   the place in the process's own order, from 0 without gaps in each life
time          the process's own clock, in seconds; for people, it proves nothing
kind          what happened (`kernel.evidence`)
layer         the core that it passed
conf          the configuration that the process is in; of a configuration event: the new one
message       `sender:incarnation:number`
service       basic, causal, agreed, safe
colour        red, yellow, green, white
position, sub a place in an order: the provider's (deliver), the global one (green)
members       of a configuration, sorted, with blanks between
digest        of a payload, a state or a run
detail        for people
"""

from __future__ import annotations

import pyarrow as pa

from greenline.kernel.evidence import Row

VERSION = 1

COLUMNS = ("run", *Row.__struct_fields__)

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("process", pa.string()),
        ("incarnation", pa.int64()),
        ("local_index", pa.int64()),
        ("time", pa.float64()),
        ("kind", pa.string()),
        ("layer", pa.string()),
        ("conf", pa.string()),
        ("message", pa.string()),
        ("service", pa.string()),
        ("colour", pa.string()),
        ("position", pa.int64()),
        ("sub", pa.int64()),
        ("members", pa.string()),
        ("digest", pa.string()),
        ("detail", pa.string()),
    ],
    metadata={b"greenline.trace.version": str(VERSION).encode()},
)

assert tuple(SCHEMA.names) == COLUMNS, "the schema and the row have drifted apart"
