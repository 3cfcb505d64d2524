"""The engine's core: moves from state to state (figure 6.5; Amir & Tutu figure 4).

                RegConf                     all States                  end, quorum
    NonPrim ----------------> ExchangeStates ---------> ExchangeActions -----------> Construct
       ^                        ^    |                       |                         |    |
       |-------- TransConf -----+----'-----------------------'                TransConf|    | all CPCs
       '-------- end, no quorum |                                                      v    v
                                |<------ RegConf --------- No <-----------------------'   RegPrim
                                |<------ RegConf --------- Un <--- all CPCs --- No            | TransConf
                                '<------ RegConf --------- TransPrim <--- Bundle --- Un       |
                                                               ^------------------------------'

A meeting may also end inside a configuration, when somebody who was far behind comes near (`catching_up`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Halt, Ignored, SetTimer, Trace
from greenline.kernel.events import Answered, Downcall, Durable, Event, Start, TimerFired, Upcall
from greenline.kernel.ports import (
    Busy,
    Deliver,
    Ready,
    RegularConf,
    Sent,
    Service,
    TooLarge,
    TransitionalConf,
)
from greenline.replication import (
    construct,
    exchange_actions,
    exchange_states,
    forcing,
    invariants,
    no,
    nonprim,
    regprim,
    transprim,
    un,
)
from greenline.replication.answers import on_answer
from greenline.replication.applying import apply_greens, has_reached_basis, open_database
from greenline.replication.beside import (
    announce_procedures,
    close_if_left,
    on_fetch,
    on_line,
    say_what_is_seen,
    serve_fetches,
    serve_newcomers,
)
from greenline.replication.construct import Construct, voters
from greenline.replication.discarding import begin_anew_if_void, discard
from greenline.replication.exchange_actions import ExchangeActions
from greenline.replication.exchange_states import ExchangeStates
from greenline.replication.giving import on_pick, on_want
from greenline.replication.messages import Fetch, Line, Meeting, Pick, Want, decode
from greenline.replication.moves import (
    Move,
    ToConstruct,
    ToExchangeActions,
    ToExchangeStates,
    ToNo,
    ToNonPrim,
    ToRegPrim,
    ToTransPrim,
    ToUn,
)
from greenline.replication.no import No
from greenline.replication.nonprim import NonPrim
from greenline.replication.outbox import Outbox
from greenline.replication.port import Ask, Force, Reconfigure, Submit, Where
from greenline.replication.queries import ask_database, make_barrier, on_ask
from greenline.replication.recovery import LogRefused, base_of, recover
from greenline.replication.regprim import RegPrim
from greenline.replication.replica import Replica, append, force, on_durable
from greenline.replication.requests import (
    Generates,
    Requests,
    accepted,
    give_up_green,
    make_bundles,
    reconfigure,
    reply_to_quorum,
    submit,
)
from greenline.replication.server import Server
from greenline.replication.settings import Settings
from greenline.replication.told import Told
from greenline.replication.transprim import TransPrim
from greenline.replication.un import Un


@dataclass(slots=True)
class Boot:
    """Before Start, and for ever if the log is refused."""


Phase = NonPrim | ExchangeStates | ExchangeActions | Construct | No | Un | RegPrim | TransPrim


GRACE_S = 1.0


class Timer(StrEnum):
    LINE = "line"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Unwatched:
    """Nothing is to be done by our disk, or it was looked at a moment ago."""


@dataclass(frozen=True, slots=True)
class Watched:
    """This barrier must be done when the disk is looked at again."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Doubted:
    """It was not. We may have been stopped ourselves, and its end may be the next that we hear."""

    ticket: int


class Engine:
    def __init__(self, settings: Settings, birth: bytes = b"") -> None:
        """`birth` tells a newcomer from any other of its name: drawn anew for each life, kept from the first."""
        self.settings = settings
        self.birth = birth
        self.phase: Boot | Phase = Boot()
        self.is_line_due = False
        self.disk: Unwatched | Watched | Doubted = Unwatched()

    def handle(self, _: float, event: Event) -> list[Effect]:
        """Same events, same effects, always."""
        out: list[Effect] = []
        phase = self.phase
        if isinstance(phase, Boot):
            if not isinstance(event, Start):
                raise Impossible(phase, event, "the first event of a life is its start")
            self._boot(event, out)
        else:
            self._on_event(phase, event, out)
        if not isinstance(self.phase, Boot):
            self._settle(self.phase, out)
            invariants.check(self.phase)
        return out

    def _boot(self, start: Start, out: list[Effect]) -> None:
        """Recover what the log has, and ask the database where it stands (A.13)."""
        try:
            replica = recover(start.me, self.settings, start.records, self.birth)
        except LogRefused as error:
            out.append(Halt(str(error)))
            return
        if not start.records:
            append(replica, base_of(replica), out)
            out.extend(voters(replica.prim))
        if replica.is_new:
            out.append(Trace("newcomer"))
        digest = replica.digest.hex()
        prim = f"{replica.prim.prim_index}.{replica.prim.attempt_index}"
        out.append(Trace("recover", prim, position=replica.green, sub=replica.index, digest=digest))
        nowhere = Where(start.me, False, replica.prim.prim_index, (start.me,))
        server = Server(replica, Outbox(start.me, start.incarnation), Requests(nowhere))
        open_database(server.applying, replica.green, out)
        self.phase, _ = nonprim.enter(server, ToNonPrim(None, is_transitional=True), out)

    def _on_event(self, phase: Phase, event: Event, out: list[Effect]) -> None:
        server = phase.server
        match event:
            case Upcall(Deliver(_, _, payload)):
                self._on_deliver(phase, payload, out)
            case Upcall(TransitionalConf() | RegularConf() as conf):
                self._tell(phase, conf, out)
            case Upcall(Sent(message)):
                server.outbox.on_sent(message)
            case Upcall(Busy(message)):
                server.outbox.on_busy(message)
            case Upcall(Ready()):
                server.outbox.on_ready()
            case Upcall(TooLarge(message, limit)):
                out.append(
                    Halt(f"the port takes no message of more than {limit} bytes, and {message} has; bundle less")
                )
            case Downcall(Submit() as call):
                submit(server.replica, server.requests, call, out)
            case Downcall(Ask() as question):
                on_ask(server.replica, server.queries, question, isinstance(phase, RegPrim), out)
            case Downcall(Reconfigure() as call):
                reconfigure(server.replica, server.requests, call, out)
            case Downcall(Force() as call):
                self._force(phase, call, out)
            case Durable(ticket):
                on_durable(server.replica, ticket, out)
            case Answered(call, result):
                on_answer(phase, call, result, out)
            case TimerFired(Timer.LINE):
                self.is_line_due = False
                server.replica.line_wanted = server.replica.durable_green
            case TimerFired(Timer.DISK):
                self._look_at_disk(server.replica, out)
            case _:
                raise Impossible(phase, event)

    def _force(self, phase: Phase, call: Force, out: list[Effect]) -> None:
        if isinstance(phase, NonPrim):
            phase.on_force(call, out)
        else:
            forcing.refuse(call, f"this server is in {type(phase).__name__}; ask again when it is in NonPrim", out)

    def _on_deliver(self, phase: Phase, payload: bytes, out: list[Effect]) -> None:
        spoken = decode(payload)
        match spoken:
            case None:
                out.append(Ignored("no message of this protocol"))
            case Line():
                on_line(phase.server, spoken, out)
            case Fetch():
                on_fetch(phase.server, spoken)
            case Want():
                on_want(phase.server.giving, phase.server.replica.me, spoken)
            case Pick():
                on_pick(phase.server.giving, phase.server.replica.me, spoken)
            case _:
                self._tell(phase, spoken, out)

    def _tell(self, phase: Phase, told: Told, out: list[Effect]) -> None:
        move: Move | None = phase.handle(told, out)
        if move is not None:
            while move is not None:
                phase, move = _enter(phase.server, move, out)
            self.phase = phase
            phase.server.requests.where = _where(phase)

    def _settle(self, phase: Phase, out: list[Effect]) -> None:
        """What follows from any event: forced writes that are due, bundles, replies, work for port and database."""
        server = phase.server
        replica, requests, outbox = server.replica, server.requests, server.outbox
        if server.applying.basis is not None:
            self._on_restored(phase, out)
        if replica.has_left:
            close_if_left(server, out)
        if not server.has_announced:
            announce_procedures(server)
        if replica.roster.ending is not None:
            say_what_is_seen(server)
        if (server.giving.wants or server.giving.picks) and phase.generates in (Generates.SAFE, Generates.AGREED):
            serve_newcomers(server, phase.place, out)
        if requests.waiting or requests.accepting:
            make_bundles(replica, requests, outbox, phase.generates, out)
        if replica.green > replica.forced_green:
            force(replica, out)  # the green mark before the answer, at `local`; many share one
        apply_greens(replica, server.applying, out)
        if server.queries.are_waiting:
            make_barrier(replica, server.queries, outbox, _primary_meeting(phase), out)
            ask_database(replica, server.queries, server.applying, accepted(replica, requests), out)
        if replica.is_line_raised and not isinstance(phase, ExchangeStates | ExchangeActions):
            # In an exchange nothing is discarded: others rely on what our State says that we have.
            replica.is_line_raised = False
            reply_to_quorum(replica, requests, out)
            discard(replica, server.discarding, server.applying.durable, out)
        if replica.void_bytes >= self.settings.checkpoint_bytes:
            begin_anew_if_void(replica, out)
        self._announce(phase, out)
        if server.fetches and phase.generates in (Generates.SAFE, Generates.AGREED):
            serve_fetches(server, phase.place)
        if outbox.waiting:
            outbox.pump(replica.durable_ticket, out)
        if replica.barriers and isinstance(self.disk, Unwatched):
            self.disk = Watched(replica.barriers[0][0])
            out.append(SetTimer(Timer.DISK, self.settings.disk_patience_s))

    def _on_restored(self, phase: Phase, out: list[Effect]) -> None:
        """The database is a snapshot by now. In an exchange we are what we said, so then it waits."""
        server = phase.server
        if has_reached_basis(server.replica, server.applying):
            give_up_green(server.replica, server.requests, server.applying.applied, out)
        elif isinstance(phase, NonPrim):
            phase.on_restored(out)

    def _look_at_disk(self, replica: Replica, out: list[Effect]) -> None:
        """Others wait for what our disk holds back: one that hangs must not stop them."""
        disk = self.disk
        if isinstance(disk, Unwatched) or replica.durable_ticket >= disk.ticket:
            self.disk = Unwatched()
        elif isinstance(disk, Watched):
            self.disk = Doubted(disk.ticket)
            out.append(SetTimer(Timer.DISK, GRACE_S))
        else:
            patience = self.settings.disk_patience_s
            out.append(Halt(f"a forced write has not come to its end for {patience:g} s: the disk hangs; look at it"))

    def _announce(self, phase: Phase, out: list[Effect]) -> None:
        """Say our green line: at once where somebody waits for it, else when it has gone unsaid for a while."""
        replica = phase.server.replica
        line = replica.durable_green
        if line <= replica.announced:
            return
        is_wanted = replica.announced < replica.line_wanted  # each forced write brings it nearer, so each is told
        is_wanted |= line - replica.announced >= self.settings.line_bundles
        if is_wanted and phase.generates is not Generates.NOT_NOW:
            replica.announced = line
            phase.server.outbox.say(Line(replica.me, line), Service.AGREED)
        elif not self.is_line_due:
            self.is_line_due = True
            out.append(SetTimer(Timer.LINE, self.settings.line_interval_s))


def _where(phase: Phase) -> Where:
    replica = phase.server.replica
    here = phase.place.conf.members if phase.place is not None else (replica.me,)
    return Where(replica.me, isinstance(phase, RegPrim), replica.prim.prim_index, here)


def _primary_meeting(phase: Phase) -> Meeting | None:
    return phase.place.meeting if isinstance(phase, RegPrim) else None


def _enter(server: Server, move: Move, out: list[Effect]) -> tuple[Phase, Move | None]:
    match move:
        case ToNonPrim():
            return nonprim.enter(server, move, out)
        case ToExchangeStates():
            return exchange_states.enter(server, move, out)
        case ToExchangeActions():
            return exchange_actions.enter(server, move, out)
        case ToConstruct():
            return construct.enter(server, move, out)
        case ToNo():
            return no.enter(server, move)
        case ToUn():
            return un.enter(server, move)
        case ToRegPrim():
            return regprim.enter(server, move)
        case ToTransPrim():
            return transprim.enter(server, move)
