"""Sessions as plainly as they can be written: the twin of the real ones, of dictionaries and sets."""

from __future__ import annotations

from dataclasses import dataclass, field

from greenline.kernel.actions import Action, born_at


@dataclass
class PlainSession:
    decided: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Where each number was decided."""
    relaxed: set[int] = field(default_factory=set)
    received: int = 0
    used: int = 0


class PlainSessions:
    def __init__(self, window: int) -> None:
        self.window = window
        self.horizon = 0
        self.sessions: dict[str, PlainSession] = {}
        self.runs: list[str] = []
        """What was executed, in order."""

    def expire(self, before: int) -> None:
        self.horizon = max(self.horizon, before)
        self.sessions = {name: each for name, each in self.sessions.items() if each.used >= self.horizon}

    def decide(self, action: Action, position: int, sub: int) -> str:
        """`done 3.0`, `again 3.0`, or why not."""
        is_known = action.session in self.sessions
        if not is_known and born_at(action.session) > position:
            return "early"
        if not is_known and born_at(action.session) < self.horizon:
            return "expired"
        session = self.sessions.get(action.session, PlainSession())
        said = self._relaxed(session, action) if action.is_relaxed else self._strict(session, action, (position, sub))
        if is_known or said in ("done", "again"):
            session.used = position
            self.sessions[action.session] = session
        if said == "done":
            self.runs.append(str(action))
        if action.is_relaxed:
            return said
        position, sub = session.decided.get(action.number, (0, 0)) if said in ("done", "again") else (0, 0)
        return f"{said} {position}.{sub}" if position else said

    def _strict(self, session: PlainSession, action: Action, here: tuple[int, int]) -> str:
        last = len(session.decided)
        session.received = max(session.received, min(action.received, last))
        if action.number <= session.received:
            return "released"
        if action.number in session.decided:
            return "again"
        if action.number != last + 1:
            return "early"
        if last - session.received >= self.window:
            return "crowded"
        session.decided[action.number] = here
        return "done"

    def _relaxed(self, session: PlainSession, action: Action) -> str:
        if action.number in session.relaxed:
            return "again"
        session.relaxed.add(action.number)
        return "done"
