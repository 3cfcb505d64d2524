"""Commit: the representatives agree on who they are (5.2.2). While our old ring is alive, it goes on.

Each says in a Join whom it counts and whom it has given up; both sets only grow. There is agreement when all that are
counted and not given up have said exactly the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from greenline.kernel.effects import Broadcast, Effect, Ignored, SetTimer
from greenline.kernel.events import Durable, Event, Received, TimerFired
from greenline.kernel.identities import ConfId, ProcId, in_order
from greenline.ring import form, installation, membership
from greenline.ring.gather import latest, old_ring_goes_on
from greenline.ring.memory import count_in
from greenline.ring.messages import AttemptJoin, Foreign, FormToken, Join, Probe
from greenline.ring.moves import ToCommit, ToForm, ToOperational
from greenline.ring.processor import Processor, Timer


@dataclass(slots=True)
class Commit:
    processor: Processor
    reps: dict[ProcId, int]
    failed: set[ProcId]
    joins: dict[ProcId, Join]
    """The latest Join of each other representative."""
    tried: set[ProcId]
    excused: set[ProcId] = field(default_factory=set)
    """Failed as representatives, because they follow us."""

    timers: ClassVar = (Timer.COMMIT, Timer.JOIN_RETRANSMIT)

    @property
    def needed(self) -> tuple[ProcId, ...]:
        """Those whose agreement is needed; the first of them will be the representative of the new ring."""
        return in_order(self.reps.keys() - self.failed)

    @property
    def given_up(self) -> set[ProcId]:
        """The failed among the representatives: a subset of them, as the thesis says, and what a Join tells."""
        return self.reps.keys() & self.failed

    def handle(self, now: float, event: Event, out: list[Effect]) -> ToForm | ToOperational | None:
        processor = self.processor
        match event:
            case Received(Join() as join, sender):
                return self._on_join(join, sender, out)
            case Received(AttemptJoin() as message, sender):
                return self._on_attempt_join(message, sender, now, out)
            case Received(FormToken() as token):
                return self._on_form(token, out)
            case Received(Probe() as message, sender):
                membership.hear(processor, sender, message, now)
            case Received(Foreign()):
                out.append(Ignored("strangers come later: I am agreeing"))
            case TimerFired(Timer.COMMIT):
                return self._on_commit_timeout(out)
            case TimerFired(Timer.JOIN_RETRANSMIT):
                self._send_join(out)
            case Durable(ticket):
                processor.durable_ticket = ticket
                return self.agreement(out)
            case _:
                laggard = old_ring_goes_on(self, processor, now, event, out)
                if laggard is not None and laggard not in self.failed:
                    self.failed.add(laggard)
                    self.renew(out)
        return None

    def _on_join(self, join: Join, sender: ProcId, out: list[Effect]) -> ToForm | ToOperational | None:
        processor = self.processor
        if not membership.heed(processor, sender, join, out):
            return None
        if sender not in self.reps or sender in self.failed:
            out.append(Ignored("a Join of somebody whom I do not need: a later merge"))
            return None
        if join.incarnation < self.reps[sender] or dict(join.reps).get(processor.me) not in (
            None,
            processor.incarnation,
        ):
            out.append(Ignored("it speaks of an earlier life"))
            return None
        known = self.joins.get(sender)
        self.joins[sender] = latest(known, join)
        if known is not None and self.joins[sender] is known:
            out.append(Ignored("a Join that was overtaken"))
            return None
        if processor.me in join.failed:
            # It will never agree to a set with us in it, so we cannot wait for it.
            self.failed.add(sender)
            self.renew(out)
        elif self.adopt(sender, join):
            self.renew(out)
        return self.agreement(out)

    def adopt(self, sender: ProcId, join: Join) -> bool:
        """The union of its sets and ours: somebody we need will never agree to less. Have ours grown?"""
        before = dict(self.reps), set(self.failed)
        self.reps[sender] = join.incarnation
        for name, incarnation in join.reps:
            if name != self.processor.me:
                count_in(self.reps, name, incarnation)
        self.failed |= self.reps.keys() & join.failed
        self.excuse_followers()
        return before != (self.reps, self.failed)

    def excuse_followers(self) -> None:
        """Whom we represent will not answer for itself: it counts as failed among the representatives, and follows us.

        Somebody may take it for one: a processor that was stopped hears what was said long ago (not in the thesis).
        """
        processor = self.processor
        lives = processor.ring.incarnations
        followers = {name for name in processor.represents if self.reps.get(name) == lives[name]}
        self.excused |= followers - self.failed - {processor.me}
        self.failed |= self.excused

    def _on_attempt_join(
        self, message: AttemptJoin, sender: ProcId, now: float, out: list[Effect]
    ) -> ToForm | ToOperational | None:
        processor = self.processor
        membership.hear(processor, sender, message, now)
        if not membership.heed(processor, sender, message, out):
            return None
        if sender in self.reps and message.incarnation > self.reps[sender]:
            # It has crashed and is back: its earlier life will not answer any more.
            self.reps[sender] = message.incarnation
            self.joins.pop(sender, None)
            self.renew(out)
            return self.agreement(out)
        out.append(Ignored("an Attempt Join comes too late for this agreement"))
        return None

    def _on_form(self, token: FormToken, out: list[Effect]) -> ToForm | None:
        """The agreement's Form token; one of an older agreement does not fit our latest Join."""
        if not self.is_agreed_form(token) or not form.is_my_turn(self.processor, token):
            out.append(Ignored("a Form token that I have not agreed to"))
            return None
        return form.agree(self.processor, token, left_out=self.failed - self.excused)

    def is_agreed_form(self, token: FormToken) -> bool:
        return token.join_list == tuple((name, self.reps[name]) for name in self.needed)

    def agreement(self, out: list[Effect]) -> ToForm | ToOperational | None:
        """If all that are needed have said what we say: form the ring, or wait for the Form token of who does."""
        processor = self.processor
        needed = self.needed
        if not all(self._agrees(name) for name in needed):
            return None
        if needed == (processor.me,):
            return self._alone(out)
        if needed[0] != processor.me:
            return None
        counter = 1 + max(processor.my_counter, *(self.joins[name].counter for name in needed[1:]))
        join_list = tuple((name, self.reps[name]) for name in needed)
        empty = FormToken(ConfId(counter, processor.me), 1, join_list, (), 0, ())
        return form.agree(processor, empty, left_out=self.failed - self.excused)

    def _agrees(self, name: ProcId) -> bool:
        if name == self.processor.me:
            return True
        join = self.joins.get(name)
        return (
            join is not None
            and join.incarnation == self.reps[name]
            and dict(join.reps) == self.reps
            and set(join.failed) == self.given_up
        )

    def _alone(self, out: list[Effect]) -> ToOperational | None:
        """Nobody is left: our ring goes on if it is intact, or we are the next ring."""
        processor = self.processor
        if not processor.ring.is_alive:
            counter = processor.my_counter + 1
            if processor.secure(counter, out) is not None:
                return None  # a later life must know the counter first; Durable brings us back here
            installation.install_alone(processor, counter, out)
        return ToOperational(frozenset(self.tried | set(self.reps)))

    def _on_commit_timeout(self, out: list[Effect]) -> ToForm | ToOperational | None:
        """Give up those who have not said what is needed: a Join like ours, or, having agreed, the Form token."""
        needed = self.needed
        silent = {name for name in needed if not self._agrees(name)}
        if not silent and needed[0] != self.processor.me:
            silent = {needed[0]}
        self.failed |= silent
        self.renew(out)
        return self.agreement(out)

    def renew(self, out: list[Effect]) -> None:
        """Our sets have grown: say so, and give everybody time to answer."""
        self.processor.join_seq += 1
        self._send_join(out)
        out.append(SetTimer(Timer.COMMIT, self.processor.pace.commit))

    def _send_join(self, out: list[Effect]) -> None:
        processor = self.processor
        reps = tuple((name, self.reps[name]) for name in in_order(self.reps))
        join = Join(
            processor.incarnation,
            processor.my_counter,
            processor.ring.conf_id,
            processor.ring.is_alive,
            processor.join_seq,
            reps,
            in_order(self.given_up),
        )
        out.append(Broadcast(join))
        out.append(SetTimer(Timer.JOIN_RETRANSMIT, processor.pace.join_retransmit))


def enter(processor: Processor, move: ToCommit, out: list[Effect]) -> Commit:
    commit = Commit(processor, dict(move.reps), set(move.failed), dict(move.joins), set(move.tried))
    for name, join in move.joins.items():
        if name not in commit.failed:
            commit.adopt(name, join)
    commit.excuse_followers()
    commit.renew(out)
    return commit
