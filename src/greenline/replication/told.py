"""What a state is told through the group communication port."""

from __future__ import annotations

from greenline.kernel.ports import RegularConf, TransitionalConf
from greenline.replication.messages import CPC, Bundle, Near, Retrans, Segment, State

Told = Bundle | State | Retrans | CPC | Near | Segment | TransitionalConf | RegularConf
