"""Flow control: how much may be said on a visit (5.2.1 `fcc`, 5.3).

Any answer is correct; a good one keeps receivers from drowning, lets those with much to say share what those with
little leave, and holds what everybody must keep below a bound when one receiver is slow or deaf.
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.ring.messages import RegularToken
from greenline.ring.settings import Settings

TOO_MANY_REPEATS = 0.02
"""Of a rotation's packets: beyond it somebody is drowning."""


@dataclass(slots=True)
class Allowance:
    """What is left to say on this visit."""

    packets: int
    bytes: int
    said: int = 0
    said_bytes: int = 0

    def spend(self, size: int) -> None:
        self.packets -= 1
        self.bytes -= size
        self.said += 1
        self.said_bytes += size

    @property
    def is_spent(self) -> bool:
        return self.packets <= 0 or self.bytes <= 0


@dataclass(slots=True)
class Flow:
    """One processor's part of it, in one configuration."""

    settings: Settings
    personal: int
    """Packets a visit: grows while others keep up, shrinks when they do not."""
    my_fcc: int = 0
    my_fcc_bytes: int = 0
    """What we said on the last visit: it leaves the window on this one."""
    my_backlog: int = 0
    calm_visits: int = 0

    def allow(self, token: RegularToken, waiting: int) -> Allowance:
        """Repeats and news together; at least one of either, so that nobody starves and every hole is filled."""
        settings = self.settings
        self._adapt(token, waiting)
        others = max(0, token.fcc - self.my_fcc)
        packets = min(self.personal, settings.window - others)
        backlog = max(0, token.backlog - self.my_backlog)
        if backlog + waiting > settings.window:
            packets = min(packets, settings.window * waiting // (backlog + waiting))
        room = settings.window_bytes - max(0, token.fcc_bytes - self.my_fcc_bytes)
        return Allowance(max(1, packets), max(1, room))

    @property
    def farthest(self) -> int:
        """Who is farther ahead of us than this has another idea of flow control, or none: it will be asked again."""
        return 8 * (self.settings.outstanding + self.settings.window)

    def ahead(self, token: RegularToken) -> int:
        """How many new numbers may be given away: `seq` stays within reach of `aru`."""
        return self.settings.outstanding - (token.seq - token.aru)

    def _adapt(self, token: RegularToken, waiting: int) -> None:
        """Up by one while others keep up, down by half when they do not."""
        repeats = sum(request.last - request.first + 1 for request in token.rtr)
        if repeats > TOO_MANY_REPEATS * token.fcc or token.seq - token.aru > self.settings.outstanding // 2:
            if self.calm_visits:
                self.personal = max(1, self.settings.personal // 4, self.personal // 2)
            self.calm_visits = 0
            return
        self.calm_visits += 1
        if waiting and self.calm_visits > 2:
            self.personal = min(self.personal + 1, self.settings.window // 2)

    def settle(
        self, token_fcc: int, token_bytes: int, backlog: int, spent: Allowance, waiting: int
    ) -> tuple[int, int, int]:
        """The counts as the token takes them on: our last visit leaves them, this one enters."""
        fcc = max(0, token_fcc - self.my_fcc) + spent.said
        fcc_bytes = max(0, token_bytes - self.my_fcc_bytes) + spent.said_bytes
        total = max(0, backlog - self.my_backlog) + waiting
        self.my_fcc, self.my_fcc_bytes, self.my_backlog = spent.said, spent.said_bytes, waiting
        return fcc, fcc_bytes, total
