"""The Ring's core: moves from phase to phase (figure 5.2).

               foreign message,                    agreement                  rotation 2
               token loss         gather timeout   Form token                 of the Form token
Operational --------------> Gather ------------> Commit ------------> Form ------------> EVS
    ^  |                     |  ^                  |                   ^ |                | |
    |  '- Form token, to a non-representative -----+-------------------' '--- it is lost -' |
    |                        |  '---------------------------------------------------------- '
    '---- nobody is there ---'                     |                                        |
    '----------------------------------- alone ----'                                        |
    '-------------------------------------------------------- everybody has recovered ------'
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import CancelTimer, Effect, Ignored, Upcall
from greenline.kernel.events import Downcall, Durable, Event, Received, Start
from greenline.kernel.identities import ConfId
from greenline.kernel.ports import Multicast, RegularConf
from greenline.ring import commit, evs, form, gather, invariants, operational
from greenline.ring.commit import Commit
from greenline.ring.evs import EVS
from greenline.ring.flow import Flow
from greenline.ring.form import Form
from greenline.ring.gather import Gather
from greenline.ring.messages import Ceiling, Regular
from greenline.ring.moves import Cause, ToCommit, ToEVS, ToForm, ToGather
from greenline.ring.operational import Operational
from greenline.ring.pace import Pace
from greenline.ring.packing import Queue
from greenline.ring.processor import Processor, Ring
from greenline.ring.settings import Settings


@dataclass(slots=True)
class Unborn:
    """Before Start: there is nobody yet."""


@dataclass(slots=True)
class Starting:
    """The counter of our first configuration is on its way to disk: no later life may use it."""

    processor: Processor

    def handle(self, _: float, event: Event, out: list[Effect]) -> ToGather | None:
        processor = self.processor
        match event:
            case Durable(ticket):
                # A processor that recovers forms a singleton configuration and immediately shifts to Gather.
                processor.durable_ticket = ticket
                out.append(Upcall(RegularConf(processor.ring.conf)))
                return ToGather(Cause.STARTED)
            case Downcall(Multicast() as call):
                processor.queue.put(call, out)
            case Received():
                out.append(Ignored("I am starting"))
            case _:
                raise Impossible(self, event)
        return None


class RingCore:
    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.phase: Unborn | Starting | Operational | Gather | Commit | Form | EVS = Unborn()
        self._queue = Queue(self.settings)

    def handle(self, now: float, event: Event) -> list[Effect]:
        """Same events, same effects, always."""
        out: list[Effect] = []
        phase = self.phase
        if type(event) is Received:
            if type(phase) is Operational and type(event.message) is Regular and phase.keep(event.message, now):
                return out
        elif type(event) is Downcall and self._queue.queue_up(event.payload):
            return out
        if isinstance(phase, Unborn):
            if not isinstance(event, Start):
                raise Impossible(phase, event, "the first event of a life is its start")
            self.phase = start(event, self.settings, self._queue, out)
            return out
        if type(event) is Received and event.sender == phase.processor.me:
            return [Ignored("from somebody who uses my name")]
        move = phase.handle(now, event, out)
        while move is not None:
            processor = phase.processor
            out += [CancelTimer(timer) for timer in getattr(phase, "timers", ())]
            match move:
                case ToGather():
                    self.phase, move = gather.enter(processor, move, now, out), None
                case ToCommit():
                    self.phase = committing = commit.enter(processor, move, out)
                    move = committing.agreement(out)
                case ToForm():
                    self.phase, move = form.enter(processor, move, now, out), None
                case ToEVS():
                    self.phase, move = evs.enter(processor, move, out), None
                case _:
                    self.phase, move = operational.enter(processor, move, now, out), None
            phase = self.phase
        if not isinstance(phase, Starting):
            invariants.check(phase)
        return out


def start(event: Start, settings: Settings, queue: Queue, out: list[Effect]) -> Starting:
    """A singleton, with a counter that no earlier life has used."""
    used = max((record.counter for record in event.records if isinstance(record, Ceiling)), default=0)
    me = event.me
    ring = Ring(ConfId(used + 1, me), (me,), {me: event.incarnation}, me, Flow(settings, settings.personal))
    processor = Processor(
        me,
        event.incarnation,
        settings,
        queue,
        Pace(settings, me),
        ring,
        my_counter=used + 1,
        ceiling=used,
        my_obligation=frozenset({me}),
    )
    processor.secure(used + 1, out)
    return Starting(processor)
