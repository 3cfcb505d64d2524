"""Status: what a node says of itself to whoever asks, as JSON and as metrics."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from greenline.kernel.identities import ProcId
from greenline.replication.standing import Standing

EXPECTED = frozenset({"cut off", "not met yet", "not sent", "our own", "to nobody", "unreachable"})
"""Reasons for which packets are refused where nothing is wrong: a member is down or was cut off, multicast echoes."""


class Member(msgspec.Struct, frozen=True):
    """A member as the file names it, or the order since. Who has left is none."""

    address: str
    is_in: bool
    """It is in the present configuration."""
    admin: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    name: ProcId
    cluster: str | None
    version: str
    uid: str
    incarnation: int
    """Which of its lives this is."""
    uptime: float
    phase: str
    is_ready: bool
    configuration: str | None
    in_configuration: tuple[ProcId, ...]
    members: dict[ProcId, Member]
    delivered: int
    sent: int
    delivered_rate: float
    """Messages a second, over the last seconds."""
    sent_rate: float
    packets_in: int
    packets_out: int
    bytes_in: int
    bytes_out: int
    forced_writes: int
    refused: dict[str, int]
    ignored: dict[str, int]
    strangers: dict[ProcId, str]
    keys: tuple[int, ...]
    current_key: int | None
    key_changes: int
    stopped: str | None
    cut_off: tuple[ProcId, ...]
    """Whom it neither hears nor speaks to."""
    is_local: bool
    standing: Standing | None = None
    """Where its replica stands, if it has one."""
    gone: tuple[ProcId, ...] = ()
    """Replicas that have left, or were removed."""
    clients: int = 0
    """That are connected."""
    deaf_to: tuple[ProcId, ...] = ()
    """Whom it does not hear, and who may hear it."""
    mute_to: tuple[ProcId, ...] = ()
    """To whom it does not speak, and whom it may hear."""
    sqlite: str = ""
    """The version that its replica runs on, if it has one."""
    left: int | None = None
    """The position where it has left for good, once nobody needs it any more: it may be stopped."""

    @property
    def oddities(self) -> list[str]:
        """What an operator should look at, in words."""
        odd = [] if self.stopped is None else [f"stopped: {self.stopped}"]
        odd += [f"another node uses the name {name}: {seen}" for name, seen in sorted(self.strangers.items())]
        odd += [f"refused {count}: {why}" for why, count in sorted(self.refused.items()) if why not in EXPECTED]
        if self.cut_off:
            odd.append(f"cut off from {' '.join(self.cut_off)}")
        if self.deaf_to:
            odd.append(f"does not hear {' '.join(self.deaf_to)}")
        if self.mute_to:
            odd.append(f"does not speak to {' '.join(self.mute_to)}")
        if self.current_key is None:
            odd.append("runs without a key")
        if len(self.keys) > 1:
            odd.append(f"keys {' '.join(map(str, self.keys))}: a rotation is not finished")
        return odd

    @property
    def why_not_ready(self) -> str | None:
        if self.stopped is not None:
            return f"{self.name} has stopped: {self.stopped}"
        if self.configuration is None:
            return f"{self.name} has no configuration yet; it is starting"
        if not self.is_ready:
            return f"{self.name} is between configurations, in {self.phase}; ask again"
        return None


def unlike(nodes: Iterable[Status]) -> str | None:
    """What to know if they do not all run the same SQLite: it may not be the same database for ever."""
    versions: dict[str, list[ProcId]] = {}
    for node in nodes:
        if node.sqlite:
            versions.setdefault(node.sqlite, []).append(node.name)
    if len(versions) < 2:
        return None
    told = ", ".join(f"{version} at {' '.join(sorted(names))}" for version, names in sorted(versions.items()))
    why = "replicas may come to differ, in the words of errors and in rows that a plan chooses"
    return f"not the same SQLite everywhere ({told}): {why}; bring all to one version soon"
