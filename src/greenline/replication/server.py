"""A server: the replica and what works beside its state. Every state has it; none has more of it than another."""

from __future__ import annotations

from dataclasses import dataclass, field

from greenline.kernel.identities import ConfId, Configuration, ProcId
from greenline.replication.applying import Applying
from greenline.replication.discarding import Discarding
from greenline.replication.giving import Giving
from greenline.replication.messages import Fetch, Meeting
from greenline.replication.outbox import Outbox
from greenline.replication.port import Force
from greenline.replication.queries import Queries
from greenline.replication.replica import Replica
from greenline.replication.requests import Requests


@dataclass(slots=True)
class Forcing:
    asked: Force | None = None
    """What our operator has asked for, until it is decided."""


@dataclass(slots=True)
class Server:
    replica: Replica
    outbox: Outbox
    requests: Requests
    queries: Queries = field(default_factory=Queries)
    applying: Applying = field(default_factory=Applying)
    discarding: Discarding = field(default_factory=Discarding)
    fetches: list[Fetch] = field(default_factory=list)
    """From those who are far behind, to be served when no exchange goes on."""
    giving: Giving = field(default_factory=Giving)
    forcing: Forcing = field(default_factory=Forcing)
    is_closed: bool = False
    """We have left, and whoever waited here was told."""
    has_seen: int = 0
    """We have said that we know of sessions that are to end since this position."""
    has_announced: bool = False
    """We have asked, in this life, that others know our procedures."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where we are: the configuration, and which of its meetings this is."""

    conf: Configuration
    meeting: Meeting

    @staticmethod
    def of(conf: Configuration) -> Place:
        """The first meeting of a regular configuration."""
        assert isinstance(conf.conf_id, ConfId)
        return Place(conf, Meeting(conf.conf_id))

    def next_meeting(self) -> Place:
        return Place(self.conf, Meeting(self.meeting.conf_id, self.meeting.round + 1))


@dataclass(frozen=True, slots=True)
class Met:
    """An exchange that found no quorum: who took part, and whose word would be needed for a component."""

    members: tuple[ProcId, ...]
    needed: tuple[ProcId, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """Those who hold a meeting together: all of the configuration but who is far behind."""

    place: Place
    members: tuple[ProcId, ...]
