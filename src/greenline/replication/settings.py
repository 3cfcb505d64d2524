"""Settings of a replica. Those of `Voting` must be the same everywhere: they are part of the cluster's name."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from greenline.kernel.identities import ProcId, in_order, proc_id
from greenline.replication.port import Procedure, is_sound


@dataclass(frozen=True, slots=True)
class Voting:
    """Who counts how much in a quorum (dynamic linear voting, thesis 6.1.2)."""

    weights: tuple[tuple[ProcId, int], ...] = ()
    """Of those who do not weigh 1."""
    lower_bound: int = 0
    """A primary component weighs at least so much: it may only block, never permit."""

    def __post_init__(self) -> None:
        if any(weight < 0 for _, weight in self.weights):
            raise ValueError("a weight is 0 or more")
        if len(dict(self.weights)) < len(self.weights):
            raise ValueError("a server is given two weights")

    def of(self, server: ProcId) -> int:
        return dict(self.weights).get(server, 1)


LEAST = {
    "bundle_bytes": 1,
    "message_bytes": 1,
    "buffered": 1,
    "buffered_bytes": 1,
    "unordered": 1,
    "unordered_bytes": 1,
    "ongoing": 1,
    "unapplied": 1,
    "far": 1,
    "pieces": 1,
    "line_bundles": 1,
    "retain_after_white": 0,
    "retain_white_bytes": 0,
    "retain_at_most": 1,
    "retain_bytes": 1,
    "checkpoint_bytes": 0,
    "line_interval_s": 0,
    "disk_patience_s": 0,
}


@dataclass(frozen=True, slots=True)
class Settings:
    servers: tuple[ProcId, ...]
    """The founders. Who is not among them is a newcomer, and joins."""
    salt: str = ""
    """Tells clusters of the same names apart."""
    voting: Voting = field(default_factory=Voting)
    """Of the founders; weights change by ordered actions."""
    procedures: tuple[Procedure, ...] = ()
    """That this server's database has."""
    bundle_bytes: int = 60_000
    """A bundle is closed when it holds so many bytes of actions; one submission may not have more."""
    message_bytes: int = 60_000
    """A retransmission or a segment carries about so many."""
    buffered: int = 10_000
    """Submissions that may wait to be bundled; the next is refused."""
    buffered_bytes: int = 64 << 20
    """The same in bytes."""
    unordered: int = 100_000
    """Red bundles that a server keeps before it accepts no more: a partition may last, memory does not grow with it."""
    unordered_bytes: int = 256 << 20
    """The same in bytes."""
    ongoing: int = 256
    """Own bundles that may be on their way; submissions wait behind them."""
    unapplied: int = 256
    """Bundles that may be with the database at a time."""
    far: int = 1_000
    """Who lacks more green bundles, or has more red ones that the others lack, first catches up beside the exchange."""
    pieces: int = 8
    """Pieces for who is far behind that are under way at a time, each of about `message_bytes`."""
    disk_patience_s: float = 60.0
    """A forced write that takes longer has failed: others wait for what it holds back."""
    line_interval_s: float = 1.0
    """How long a green line may go unannounced while nothing is said."""
    line_bundles: int = 1_000
    """How many bundles a green line may go unannounced: who keeps up is not to be taken for somebody who is away."""
    retain_after_white: int = 1_000
    """White bundles that are kept all the same, for who reads the order."""
    retain_white_bytes: int = 1 << 30
    """The same in bytes of all that is kept, but never fewer than `far` bundles."""
    retain_at_most: int = 1_000_000
    """Green bundles that are kept for a server that stays away. Beyond, it is left behind: it needs a snapshot."""
    retain_bytes: int = 1 << 30
    """The same in bytes, but never fewer than `far` bundles."""
    checkpoint_bytes: int = 1 << 24
    """The log is begun anew when so much of it is void, and as much as what is still needed."""

    def __post_init__(self) -> None:
        if not self.servers or list(self.servers) != sorted(set(self.servers)):
            raise ValueError("the servers of a cluster are named once each, in order, and at least one")
        for server in self.servers:
            proc_id(server)
        strangers = {name for name, _ in self.voting.weights} - set(self.servers)
        if strangers:
            raise ValueError(f"weights are given to servers that do not exist: {' '.join(in_order(strangers))}")
        if not sum(map(self.voting.of, self.servers)):
            raise ValueError("nobody has any weight, so there can be no quorum")
        if sum(map(self.voting.of, self.servers)) < self.voting.lower_bound:
            raise ValueError(f"all servers together weigh less than the lower bound of {self.voting.lower_bound}")
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} is at least {least}")
        if not is_sound(self.procedures, tuple[Procedure, ...]):
            raise ValueError("a procedure has a name, a version of at least 1, and a digest")
        if self.retain_at_most < self.far:
            raise ValueError("retain_at_most is at least far: who is not far behind is given all that it lacks")

    @property
    def cluster(self) -> bytes:
        """Servers that were started with another set, other weights or another salt are strangers (GAP 34)."""
        weights = sorted((server, weight) for server, weight in self.voting.weights if weight != 1)
        text = f"{self.salt}/{' '.join(self.servers)}/{weights}/{self.voting.lower_bound}"
        return blake2b(text.encode(), digest_size=16).digest()
