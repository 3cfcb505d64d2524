"""Pace: how long things take on this network, and so how long to wait for them.

Round trips are measured by echoes: who says who it is puts a stamp of its own clock on it, and tells whom it heard and
how long ago. Rotations are measured by the representative, and told in the token. Of the last few measurements the
second longest round trip counts: one that was spoilt by a stopped process changes nothing, and a network that became
slower is believed after two. Of rotations the median counts: new messages are signs of life while a ring slows down.

The inequalities between the timeouts: an answer is waited for longer than it takes there and back, a token longer than
two rotations before it is sent again, and it is sent again several times before it counts as lost. Who negotiates waits
as long as the slowest of those that it hears, or it would give up those who are in less of a hurry.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from greenline.kernel.identities import ProcId
from greenline.ring.memory import remember
from greenline.ring.messages import AttemptJoin, Echo, Probe
from greenline.ring.settings import Settings

REMEMBERED = 8
REMEMBERED_S = 30.0
"""Who was not heard for so long may be anywhere by now, and must not slow down those who are here."""
LONGEST_ROTATION = 64
"""In longest round trips."""
SLOWEST_CLOCK = 2
"""No clock runs so many times slower than another."""
FRESH_S = 1.0
"""Who was not heard for so long is not echoed: the echo is also the proof that we hear it now."""


@dataclass(slots=True)
class Pace:
    settings: Settings
    me: ProcId
    heard: dict[ProcId, tuple[float, float, float]] = field(default_factory=dict)
    """The last stamp of each processor, when we heard it, and the round trip that it has measured."""
    round_trips: dict[ProcId, deque[float]] = field(default_factory=dict)
    last_stamp: dict[ProcId, float] = field(default_factory=dict)
    """Which stamp of ours each processor echoed last: one stamp is one measurement."""
    measured_at: dict[ProcId, float] = field(default_factory=dict)
    """When each was measured last."""
    rotations: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    rotation: float = 0.0
    """How long the token of our ring, or of the one that we are forming, takes to come round; 0 if nobody knows."""

    def hears(self, sender: ProcId, message: AttemptJoin | Probe, now: float) -> bool:
        """Take the measurement, if there is one. Does the sender hear us?"""
        remember(self.heard, sender, (message.stamp, now, min(message.rtt, self.settings.longest_rtt)))
        for echo in message.echoes:
            if echo.name == self.me:
                took = now - echo.stamp - echo.age
                if echo.stamp != self.last_stamp.get(sender) and 0 <= took <= self.settings.longest_rtt:
                    remember(self.last_stamp, sender, echo.stamp)
                    measured = self.round_trips.get(sender, deque(maxlen=REMEMBERED))
                    measured.append(took)
                    remember(self.round_trips, sender, measured)
                    remember(self.measured_at, sender, now)
                return True
        return False

    def echoes(self, now: float) -> tuple[Echo, ...]:
        self._forget(now)
        return tuple(Echo(name, stamp, now - at) for name, (stamp, at, _) in sorted(self.heard.items()))

    def _forget(self, now: float) -> None:
        """Who was not heard lately is not echoed; how far away it was is remembered a while longer."""
        fresh = FRESH_S + 2 * self.measured
        self.heard = {name: heard for name, heard in self.heard.items() if 0 <= now - heard[1] <= fresh}
        for name in [name for name, at in self.measured_at.items() if not 0 <= now - at <= REMEMBERED_S]:
            del self.measured_at[name], self.round_trips[name], self.last_stamp[name]

    def rotated(self, took: float) -> None:
        """The representative has measured a rotation; none, if its clock was set back meanwhile."""
        if took < 0:
            return
        self.rotations.append(took)
        self.rotation = _median(self.rotations)

    def told(self, rotation: float) -> None:
        """The representative's measurement, from the token."""
        self.rotation = min(rotation, LONGEST_ROTATION * self.settings.longest_rtt)

    def joins(self, took: float) -> None:
        """A new ring turns at its own pace: the Form token has come round it once."""
        self.rotations.clear()
        self.rotated(took)

    def is_alone(self) -> None:
        """A ring of one does not turn."""
        self.rotations.clear()
        self.rotation = 0.0

    @property
    def measured(self) -> float:
        """The longest way there and back. A rotation reaches everybody, so it is no shorter than that."""
        round_trips = [_second_longest(each) for each in self.round_trips.values()]
        return max(self.settings.first_rtt, min(self.rotation, self.settings.longest_rtt), *round_trips)

    @property
    def rtt(self) -> float:
        """The same, as the slowest of us knows it."""
        return max([self.measured, *(rtt for _, _, rtt in self.heard.values())])

    # Timeouts.

    @property
    def gather(self) -> float:
        return 2 * self.rtt + 0.010

    @property
    def join_retransmit(self) -> float:
        return self.gather / 3

    @property
    def commit(self) -> float:
        return 3 * self.gather

    @property
    def form_retransmit(self) -> float:
        return 1.5 * self.rtt

    def form_loss(self, members: int) -> float:
        """Two rotations of hops, twice as long as they should take, and time to repeat some of them."""
        return 2 * members * self.rtt + 3 * self.form_retransmit

    @property
    def idle_hold(self) -> float:
        return self.settings.idle_hold

    def token_loss(self, is_held: bool) -> float:
        """As long as all the times take that it is sent again."""
        return self.token_retransmit(is_held) + self.settings.retransmits * self.token_retransmit(is_held=False)

    def token_retransmit(self, is_held: bool) -> float:
        """`is_held`: the representative of an idle ring holds it before it comes back, by a clock that may be slow."""
        held = SLOWEST_CLOCK * self.idle_hold if is_held else 0.0
        return max(self.settings.least_retransmit, 2 * self.rotation) + held


def _second_longest(measured: deque[float]) -> float:
    return sorted(measured)[-2] if len(measured) > 1 else measured[0]


def _median(measured: deque[float]) -> float:
    return sorted(measured)[(len(measured) - 1) // 2]
