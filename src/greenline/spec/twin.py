"""The twin: the rules of Extended Virtual Synchrony once more, in plain Python, slow and obvious (thesis 4.1).

It is written from the thesis and not from the SQL, quantifier by quantifier, and is cubic where the thesis is. It
judges small traces only, and says which rules are broken; its purpose is to disagree with the SQL if either is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from greenline.kernel.evidence import WORLD, Row

CONFS = ("regular", "transitional")
SPOKEN = ("generate", "send", "deliver")
KINDS = ("start", *SPOKEN, *CONFS, "crash", "halt")
SERVICES = ("basic", "causal", "agreed", "safe")


@dataclass(frozen=True, eq=False)
class Event:
    """One event; two events are the same only if they are one."""

    process: str
    life: int
    index: int
    kind: str
    conf: str | None
    message: str | None
    service: str | None
    members: tuple[str, ...]

    @property
    def is_conf(self) -> bool:
        return self.kind in CONFS


class Execution:
    """The events of one run, and the words in which the specification speaks of them."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.is_quiet = any(row.kind == "quiet" for row in rows)
        events = [
            Event(
                row.process,
                row.incarnation,
                row.local_index,
                "crash" if row.kind == "halt" else row.kind,
                (row.conf or "") if row.kind in CONFS else row.conf,
                (row.message or "") if row.kind in SPOKEN else row.message,
                row.service,
                tuple((row.members or "").split()),
            )
            for row in rows
            if row.process != WORLD and row.kind in KINDS
        ]
        self.processes = sorted({event.process for event in events})
        self.of = {
            process: sorted(
                (event for event in events if event.process == process),
                key=lambda e: (e.life, e.index, e.kind, e.message or "~", e.conf or "~"),
            )
            for process in self.processes
        }
        self.events = [event for process in self.processes for event in self.of[process]]
        self.place = {event: place for process in self.processes for place, event in enumerate(self.of[process])}

    def all(self, *kinds: str) -> Iterator[Event]:
        return (event for event in self.events if event.kind in kinds)

    def lives(self) -> Iterator[list[Event]]:
        for process in self.processes:
            for life in sorted({event.life for event in self.of[process]}):
                yield [event for event in self.of[process] if event.life == life]

    @cached_property
    def conf_steps(self) -> list[tuple[Event, Event]]:
        """Configurations that directly follow each other in one life."""
        return [step for life in self.lives() for step in pairwise(event for event in life if event.is_conf)]

    @cached_property
    def confs(self) -> dict[str | None, tuple[str, tuple[str, ...]]]:
        """Kind and members of each configuration; where processes disagree, the least of each."""
        found: dict[str | None, list[Event]] = {}
        for event in self.all(*CONFS):
            found.setdefault(event.conf, []).append(event)
        return {
            conf: (min(e.kind for e in same), min((" ".join(e.members), e.members) for e in same)[1])
            for conf, same in found.items()
        }

    @cached_property
    def reg(self) -> dict[str | None, str | None]:
        """reg(c) for every configuration that somebody delivered."""
        candidates: dict[str | None, list[str]] = {conf: [] for conf in self.confs}
        for event in self.all("regular"):
            candidates[event.conf].append(event.conf or "")
        for before, event in self.conf_steps:
            if event.kind == "transitional" and before.kind == "regular":
                candidates[event.conf].append(before.conf or "")
        return {conf: min(found) if found else None for conf, found in candidates.items()}

    def family(self, event: Event) -> str | None:
        return self.reg.get(event.conf)

    def kind(self, conf: str | None) -> str | None:
        return self.confs[conf][0] if conf in self.confs else None

    def members(self, conf: str | None) -> tuple[str, ...]:
        return self.confs[conf][1] if conf in self.confs else ()

    @cached_property
    def service(self) -> dict[str | None, str | None]:
        """What was promised when it was generated; of one that nobody generated, what its deliveries say."""
        found: dict[str | None, str | None] = {}
        for message in {event.message for event in self.events if event.message is not None}:
            same = [event for event in self.events if event.message == message and event.service]
            generated = [event.service or "" for event in same if event.kind == "generate"]
            found[message] = min(generated or [event.service or "" for event in same], default=None)
        return found

    def counter(self, process: str) -> int:
        """The highest counter of a regular configuration that it has delivered, in any life."""
        return max((_counter(e.conf) or 0 for e in self.of.get(process, []) if e.kind == "regular"), default=0)

    def is_past(self, process: str, conf: str | None) -> bool:
        """Counters rise, so who is past a configuration never installs it."""
        counter = _counter(conf)
        return counter is not None and self.counter(process) >= counter

    def is_agreed(self, event: Event) -> bool:
        return self.service.get(event.message) in ("agreed", "safe")

    def before(self, one: Event, other: Event) -> bool:
        """In one process: does it come before?"""
        return one.process == other.process and self.place[one] < self.place[other]

    def delivers(self, process: str, message: str | None, family: str | None) -> list[Event]:
        return [
            event
            for event in self.of.get(process, [])
            if event.kind == "deliver" and event.message == message
            if family is not None and self.family(event) == family
        ]

    def crashes_in(self, process: str, family: str | None, life: int | None = None) -> bool:
        """crash_p(com_p(c)), in some life, or in this one."""
        return any(
            event.kind == "crash" and family is not None and self.family(event) == family
            for event in self.of.get(process, [])
            if life is None or event.life == life
            if self._was_in(process, event.life, family)
        )

    def _was_in(self, process: str, life: int, family: str | None) -> bool:
        return any(e.is_conf and e.life == life and self.family(e) == family for e in self.of.get(process, []))

    def has_left(self, process: str, family: str | None, life: int) -> bool:
        """Was it in the family in this life, and did it deliver another configuration after?"""
        confs = [event for event in self.of.get(process, []) if event.life == life and event.is_conf]
        mine = [event for event in confs if family is not None and self.family(event) == family]
        return bool(mine) and confs[-1] is not mine[-1]

    def lives_of(self, process: str) -> set[int]:
        return {event.life for event in self.of.get(process, [])}

    def is_up(self, process: str) -> bool:
        """At the end of the trace, as far as it tells."""
        lives = self.lives_of(process)
        return not lives or not any(e.kind == "crash" and e.life == max(lives) for e in self.of[process])

    # The precedes relation and logical time.

    @cached_property
    def first_send(self) -> dict[str | None, Event]:
        found: dict[str | None, Event] = {}
        for event in self.all("send"):
            found.setdefault(event.message, event)
        return found

    def has_cycle(self, same: Callable[[Event], object], with_basic: bool = False) -> bool:
        """Do the events wait for each other, if those that are `same` happen together?

        A basic message carries no causality; that it is sent before it is delivered is asked only `with_basic`.
        """
        spoken = [event for event in self.events if event.kind not in ("start", "generate")]
        edges: dict[object, set[object]] = {same(event): set() for event in spoken}
        for process in self.processes:
            mine = [event for event in self.of[process] if event in edges or event.kind not in ("start", "generate")]
            for one, other in pairwise(mine):
                edges[same(one)].add(same(other))
        for event in self.all("deliver"):
            if event.message in self.first_send and (with_basic or self.service.get(event.message) != "basic"):
                edges[same(self.first_send[event.message])].add(same(event))
        return _has_cycle(edges)

    @cached_property
    def precedes_is_cyclic(self) -> bool:
        return self.has_cycle(lambda event: event, with_basic=True)

    @cached_property
    def cuts_are_cyclic(self) -> bool:
        return self.has_cycle(lambda event: ("conf", event.conf) if event.is_conf else event)

    @cached_property
    def order_is_cyclic(self) -> bool:
        def same(event: Event) -> object:
            if event.is_conf:
                return ("conf", event.conf)
            if event.kind == "deliver" and self.is_agreed(event):
                return ("message", event.message)
            return event

        return self.has_cycle(same)


def _has_cycle(edges: dict[object, set[object]]) -> bool:
    """Take away what nothing points to, as long as there is something."""
    left = dict(edges)
    while left:
        pointed_to = {target for targets in left.values() for target in targets}
        free = [node for node in left if node not in pointed_to]
        if not free:
            return True
        for node in free:
            del left[node]
    return False


def number_in(text: str) -> int | None:
    """Digits, of ASCII, and no more of them than a number has in SQL."""
    found = int(text) if text.isascii() and text.isdigit() else None
    return found if found is not None and found < 1 << 63 else None


def _counter(conf: str | None) -> int | None:
    parts = (conf or "").split(".")
    return number_in(parts[1]) if len(parts) > 1 else None


def _parts(message: str | None) -> list[str]:
    """Sender, life and number, as far as the name has them."""
    return [*(message or "").split(":"), "", ""][:3]


# The rules, each as the thesis puts it: True if it is broken.


def rows_are_numbered(x: Execution) -> bool:
    lives = {(row.process, row.incarnation) for row in x.rows}
    return any(
        sorted(row.local_index for row in x.rows if (row.process, row.incarnation) == life)
        != list(range(sum((row.process, row.incarnation) == life for row in x.rows)))
        for life in lives
    )


def a_life_begins_and_ends(x: Execution) -> bool:
    for life in x.lives():
        if life[0].kind != "start" or [event.kind for event in life].count("start") != 1:
            return True
        crashes = [event for event in life if event.kind == "crash"]
        if crashes and crashes[0] is not life[-1]:
            return True
        if not crashes and life[0].life != max(x.lives_of(life[0].process)):
            return True
    return False


def a_message_is_its_senders(x: Execution) -> bool:
    for event in x.all("generate", "send"):
        sender, life, _ = _parts(event.message)
        if (event.process, str(event.life)) != (sender, life):
            return True
        generated = [e for e in x.all("generate") if e.message == event.message]
        if len(generated) > 1:
            return True
        if event.kind == "send" and not (generated and x.before(generated[0], event)):
            return True
    return False


def one_service(x: Execution) -> bool:
    said: dict[str | None, list[str | None]] = {}
    for event in x.all("generate", "deliver"):
        said.setdefault(event.message, []).append(event.service)
    return any(len(set(services)) > 1 or services[0] not in SERVICES for services in said.values())


def rows_are_complete(x: Execution) -> bool:
    return any(not event.conf or not event.members for event in x.all(*CONFS)) or any(
        not event.message for event in x.all(*SPOKEN)
    )


def spec_1_1(x: Execution) -> bool:
    return x.precedes_is_cyclic


def spec_1_2(x: Execution) -> bool:
    places = [(event.process, event.life, event.index) for event in x.events]
    return len(places) != len(set(places))


def spec_1_3(x: Execution) -> bool:
    return any(
        not any(
            send.message == event.message and send.conf == x.family(event)
            for send in x.all("send")
            if x.family(event) is not None
        )
        for event in x.all("deliver")
    )


def spec_1_4(x: Execution) -> bool:
    sent = [event.message for event in x.all("send")]
    delivered = [(event.process, event.message) for event in x.all("deliver")]
    return (
        len(sent) != len(set(sent))
        or len(delivered) != len(set(delivered))
        or any(x.kind(event.conf) != "regular" for event in x.all("send"))
    )


def spec_2_1(x: Execution) -> bool:
    def last_conf(process: str) -> str | None:
        if process not in x.of or not x.is_up(process):
            return None
        confs = [e.conf for e in x.of[process] if e.is_conf and e.life == max(x.lives_of(process))]
        return confs[-1] if confs else None

    return x.is_quiet and any(
        last_conf(p) is not None and any(last_conf(q) != last_conf(p) for q in x.members(last_conf(p)))
        for p in x.processes
    )


def spec_2_2(x: Execution) -> bool:
    for life in x.lives():
        conf: str | None = None
        has_crashed = False
        for event in life:
            if event.is_conf:
                conf = event.conf
            elif event.kind in ("send", "deliver", "crash"):
                if has_crashed or event.conf != conf or (event.kind != "crash" and conf is None):
                    return True
                has_crashed = event.kind == "crash"
    return False


def spec_2_3_and_2_4(x: Execution) -> bool:
    return not x.precedes_is_cyclic and x.cuts_are_cyclic


def spec_3(x: Execution) -> bool:
    return any(
        x.has_left(send.process, x.family(send), send.life)
        and not x.crashes_in(send.process, x.family(send), send.life)
        and not x.delivers(send.process, send.message, x.family(send))
        for send in x.all("send")
    )


def spec_4(x: Execution) -> bool:
    def delivered(conf: Event) -> set[str | None]:
        return {
            e.message for e in x.of[conf.process] if e.kind == "deliver" and e.conf == conf.conf and e.life == conf.life
        }

    return any(
        p.process != q.process
        and (p.conf, p_next.conf) == (q.conf, q_next.conf)
        and _of_moves(x, p, p_next, delivered) != _of_moves(x, q, q_next, delivered)
        for p, p_next in x.conf_steps
        for q, q_next in x.conf_steps
    )


def _of_moves(
    x: Execution, here: Event, there: Event, delivered: Callable[[Event], set[str | None]]
) -> set[str | None]:
    """What a process delivered in a configuration, in every life in which it went on to the next in the same way."""
    found: set[str | None] = set()
    for one, other in x.conf_steps:
        if (one.process, one.conf, other.conf) == (here.process, here.conf, there.conf):
            found |= delivered(one)
    return found


def spec_5(x: Execution) -> bool:
    def carries(event: Event, conf: str | None) -> bool:
        is_spoken = event.kind in ("send", "deliver") and event.conf == conf
        return is_spoken and x.service.get(event.message) not in ("basic", None)

    for conf in (conf for conf in x.confs if x.kind(conf) == "regular"):
        events = [event for event in x.events if carries(event, conf)]
        sends = [event for event in events if event.kind == "send"]
        reached: dict[Event, set[Event]] = {event: set() for event in events}
        changed = True
        while changed:  # the transitive closure, step by step
            changed = False
            for one in events:
                for other in events:
                    is_direct = x.before(one, other) or (
                        one.kind == "send" and other.kind == "deliver" and one.message == other.message
                    )
                    if is_direct and not {other, *reached[other]} <= reached[one]:
                        reached[one] |= {other, *reached[other]}
                        changed = True
        for m in sends:
            for later in (event for event in reached[m] if event.kind == "send" and event.message != m.message):
                for r in x.processes:
                    ours, theirs = x.delivers(r, m.message, conf), x.delivers(r, later.message, conf)
                    if theirs and not (ours and x.before(ours[0], theirs[0])):
                        return True
    return False


def spec_6_1(x: Execution) -> bool:
    return x.precedes_is_cyclic


def spec_6_2(x: Execution) -> bool:
    return not x.precedes_is_cyclic and x.order_is_cyclic


def spec_6_3(x: Execution) -> bool:
    agreed = [e for e in x.all("deliver") if x.is_agreed(e) and x.family(e) is not None]
    for m in agreed:
        for later in agreed:
            if not (x.before(m, later) and x.family(m) == x.family(later)):
                continue
            for mine in agreed:
                sender = _parts(m.message)[0]
                was_sent = any(
                    s.process == sender and s.message == m.message and s.conf == x.family(mine) for s in x.all("send")
                )
                if (
                    mine.message == later.message
                    and x.family(mine) == x.family(m)
                    and sender in x.members(mine.conf)
                    and was_sent
                    and not x.delivers(mine.process, m.message, x.family(mine))
                ):
                    return True
    return False


def spec_7_1(x: Execution) -> bool:
    for event in x.all("deliver"):
        if x.service.get(event.message) != "safe":
            continue
        family = x.family(event)
        for q in x.members(event.conf):
            if x.delivers(q, event.message, family) or x.crashes_in(q, family):
                continue
            moved_on = any(x.has_left(q, family, life) for life in x.lives_of(q))
            was_there = any(e.is_conf and family is not None and x.family(e) == family for e in x.of.get(q, []))
            moved_on = moved_on or (not was_there and x.is_past(q, family))
            if moved_on or x.is_quiet or not x.is_up(q):
                return True
    return False


def spec_7_2(x: Execution) -> bool:
    return any(
        not any(e.process == q and e.conf == event.conf for e in x.all(*CONFS))
        and (x.is_quiet or not x.is_up(q) or x.is_past(q, event.conf))
        for event in x.all("deliver")
        if x.service.get(event.message) == "safe" and x.kind(event.conf) == "regular"
        for q in x.members(event.conf)
    )


def vs_1(x: Execution) -> bool:
    return any(event.process not in event.members for event in x.all(*CONFS))


def vs_2(x: Execution) -> bool:
    return any(
        one.conf == other.conf and (one.kind, one.members) != (other.kind, other.members)
        for one in x.all(*CONFS)
        for other in x.all(*CONFS)
    )


def vs_3(x: Execution) -> bool:
    for process in x.processes:
        for one, other in pairwise(event for event in x.of[process] if event.kind == "regular"):
            first, second = _counter(one.conf), _counter(other.conf)
            if first is not None and second is not None and second <= first:
                return True
    return False


def vs_4(x: Execution) -> bool:
    firsts = [next((event for event in life if event.is_conf), None) for life in x.lives()]
    return any(first is not None and (first.kind != "regular" or first.members != (first.process,)) for first in firsts)


def vs_5(x: Execution) -> bool:
    if any(one.kind == other.kind for one, other in x.conf_steps):
        return True
    for conf in x.confs:
        before = {one.conf for one, other in x.conf_steps if other.conf == conf and other.kind == "transitional"}
        after = {other.conf for one, other in x.conf_steps if one.conf == conf and one.kind == "transitional"}
        if len(before) > 1 or len(after) > 1:
            return True
    return False


def _routes(x: Execution) -> list[tuple[Event, Event, Event]]:
    """c, T, d as a process went through them."""
    return [
        (old, trans, new)
        for old, trans in x.conf_steps
        for again, new in x.conf_steps
        if again is trans and trans.kind == "transitional"
    ]


def vs_6(x: Execution) -> bool:
    routes = _routes(x)
    arrivals = [
        (trans.process, next((o.conf for o, t in x.conf_steps if t is trans), None), new.conf)
        for trans, new in x.conf_steps
        if trans.kind == "transitional"
    ]
    for old, trans, new in routes:
        members = x.members(trans.conf)
        if not set(members) <= set(x.members(old.conf)) & set(x.members(new.conf)):
            return True
        for process, came_from, arrived_in in arrivals:
            if arrived_in == new.conf and (process in members) != (came_from == old.conf):
                return True
    return False


def vs_7(x: Execution) -> bool:
    def delivered(conf: Event) -> tuple[set[str | None], list[str | None]]:
        events = [e for e in x.of[conf.process] if e.kind == "deliver" and e.conf == conf.conf and e.life == conf.life]
        return {e.message for e in events}, [e.message for e in events if x.is_agreed(e)]

    routes = _routes(x)
    return any(
        [event.conf for event in one] == [event.conf for event in other]
        and (delivered(one[0]), delivered(one[1])) != (delivered(other[0]), delivered(other[1]))
        for one in routes
        for other in routes
    )


def vs_8(x: Execution) -> bool:
    return any(x.kind(event.conf) == "transitional" for event in x.all("send"))


def vs_9(x: Execution) -> bool:
    sequences: dict[str | None, list[list[str | None]]] = {}
    for life in x.lives():
        for conf in x.confs:
            if x.kind(conf) == "regular":
                mine = [e.message for e in life if e.kind == "deliver" and e.conf == conf and x.is_agreed(e)]
                sequences.setdefault(conf, []).append(mine)
    return any(one[: len(other)] != other[: len(one)] for same in sequences.values() for one in same for other in same)


def vs_10(x: Execution) -> bool:
    return any(
        x.kind(event.conf) == "transitional"
        and x.family(event) is not None
        and x.members(event.conf) == x.members(x.family(event))
        for event in x.all("deliver")
    )


def vs_11(x: Execution) -> bool:
    for life in x.lives():
        own = [
            _parts(event.message)
            for event in life
            if event.kind == "deliver" and _parts(event.message)[0] == event.process
            if x.service.get(event.message) not in ("basic", None)
        ]
        for one, other in pairwise(own):
            before, after = number_in(one[2]), number_in(other[2])
            if one[1] == other[1] and before is not None and after is not None and after <= before:
                return True
    return False


RULES: dict[str, Callable[[Execution], bool]] = {
    "evs/0_1_rows_are_numbered": rows_are_numbered,
    "evs/0_2_a_life_begins_and_ends": a_life_begins_and_ends,
    "evs/0_3_a_message_is_its_senders": a_message_is_its_senders,
    "evs/0_4_one_service": one_service,
    "evs/0_5_rows_are_complete": rows_are_complete,
    "evs/1_1_precedes_is_an_order": spec_1_1,
    "evs/1_2_a_process_is_a_sequence": spec_1_2,
    "evs/1_3_delivered_was_sent": spec_1_3,
    "evs/1_4_once": spec_1_4,
    "evs/2_1_who_ends_together": spec_2_1,
    "evs/2_2_in_the_configuration_it_is_in": spec_2_2,
    "evs/2_3_after_for_all": spec_2_3_and_2_4,
    "evs/2_4_before_for_all": spec_2_3_and_2_4,
    "evs/3_self_delivery": spec_3,
    "evs/4_failure_atomicity": spec_4,
    "evs/5_causal_delivery": spec_5,
    "evs/6_1_order_respects_precedes": spec_6_1,
    "evs/6_2_at_one_logical_time": spec_6_2,
    "evs/6_3_no_holes": spec_6_3,
    "evs/7_1_safe_delivery": spec_7_1,
    "evs/7_2_safe_configuration": spec_7_2,
    "evs/vs_01_self_inclusion": vs_1,
    "evs/vs_02_one_configuration": vs_2,
    "evs/vs_03_counters_rise": vs_3,
    "evs/vs_04_alone_at_first": vs_4,
    "evs/vs_05_regular_and_transitional_alternate": vs_5,
    "evs/vs_06_transitional_members": vs_6,
    "evs/vs_07_together_all_the_way": vs_7,
    "evs/vs_08_nothing_sent_in_transition": vs_8,
    "evs/vs_09_a_prefix_of_one_order": vs_9,
    "evs/vs_10_a_merge_loses_nothing": vs_10,
    "evs/vs_11_own_messages_in_order": vs_11,
}


def broken(rows: list[Row]) -> set[str]:
    """The rules of Extended Virtual Synchrony that the rows of one run break."""
    execution = Execution(rows)
    return {name for name, is_broken in RULES.items() if is_broken(execution)}
