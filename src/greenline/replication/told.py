"""What a state is told through the group communication port."""

from __future__ import annotations

from greenline.kernel.ports import RegularConf, TransitionalConf
from greenline.replication.messages import (
    CPC,
    Barrier,
    Bundle,
    Declined,
    Manifest,
    Near,
    Override,
    Piece,
    Retrans,
    Segment,
    State,
)

Meant = State | Retrans | CPC | Near | Segment | Barrier | Manifest | Declined | Piece | Override
"""For one meeting, and void in any other."""
Told = Bundle | Meant | TransitionalConf | RegularConf
