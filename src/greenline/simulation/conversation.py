"""A golden conversation: a text file of what we did, and of all that followed.

    # A comment says what to watch.
    > start p q r
    p q r   begins as Alone
    > p multicasts "x"
    p -> *  Notice author=p life=1 number=1 service=basic text="x"

`converse` carries out the commands and writes the file anew; a test compares it with the one that is kept. Equal
lines of several processes are joined, in the order in which the first of them came.

| command                  | what it does                                              |
|--------------------------|-----------------------------------------------------------|
| `start p q r`            | a cluster; the first command                              |
| `hide Summary`           | leave out packets of this type from here on; also `show`  |
| `p multicasts "x"`       | also with a service: `p multicasts "x" safe`              |
| `partition p \\| q r`    | also `heal`, and `one way p -> q r`                       |
| `crash p`, `restart p`   | also `crash p after 3 orders`; `pause p`, `resume p`      |
| `wait 50 ms`, `settle`   | let time pass; until nothing changes                      |
"""

from __future__ import annotations

import re
from collections.abc import Callable

from greenline.kernel import evidence
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.simulation.cluster import Cluster
from greenline.simulation.packets import describe, opened
from greenline.simulation.subjects import NOTICEBOARD, Subject
from greenline.trace.story import tell

_HEARD = frozenset({evidence.PHASE, evidence.DELIVER, evidence.REGULAR, evidence.TRANSITIONAL, evidence.START})


def converse(script: str, subject: Subject = NOTICEBOARD) -> str:
    """The same script with the answers as they are today; what is no command or comment is replaced."""
    talk = _Conversation(subject)
    answered: list[str] = []
    for line in script.splitlines():
        if line.startswith("> "):
            answered += [line, *talk.carry_out(line[2:].strip())]
        elif line.startswith("#") or not line.strip():
            answered.append(line)
    return "\n".join(answered) + "\n"


class _Conversation:
    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._cluster: Cluster | None = None
        self._hidden: set[str] = set()
        self._said: list[tuple[str, str]] = []
        self._rows_told = 0
        self._phases: dict[tuple[str, str | None], str] = {}

    def carry_out(self, command: str) -> list[str]:
        for pattern, do in _COMMANDS:
            if found := re.fullmatch(pattern, command):
                self._said = []
                do(self, *found.groups())
                self._hear_rows()
                return _joined(self._said)
        raise ValueError(f"a conversation has no command {command!r}; see greenline.simulation.conversation")

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            raise ValueError("a conversation begins with: > start p q r")
        return self._cluster

    def start(self, names: str) -> None:
        self._cluster = Cluster(names, subject=self._subject)
        self._cluster.world.watch_packets = self._hear_packet
        self._cluster.wait(0.002 * self._subject.quiet_for)

    def hide(self, kind: str) -> None:
        self._hidden.add(kind)

    def show(self, kind: str) -> None:
        self._hidden.discard(kind)

    def multicast(self, name: ProcId, text: str, service: str | None) -> None:
        self.cluster[name].multicast(text, Service(service) if service else Service.BASIC)

    def crash(self, name: ProcId, orders: str | None) -> None:
        self.cluster.crash(name, after_orders=int(orders or 0))

    def _hear_packet(self, sender: ProcId, to: tuple[ProcId, ...], frame: bytes) -> None:
        self._hear_rows()
        message = opened(self.cluster.world, sender, frame)
        if type(message).__name__ not in self._hidden:
            everybody = len(to) == len(self.cluster.names) - 1 and len(to) > 1
            self._said.append((f"{sender} -> {'*' if everybody else ' '.join(to)}", describe(message)))

    def _hear_rows(self) -> None:
        rows = self._cluster.rows[self._rows_told :] if self._cluster else []
        self._rows_told += len(rows)
        for row in rows:
            if row.kind in _HEARD or row.kind == evidence.IGNORED or row.kind == evidence.HALT:
                self._said.append((row.process, self._words(row)))

    def _words(self, row: Row) -> str:
        if row.kind == evidence.PHASE:
            before = self._phases.get((row.process, row.layer))
            self._phases[row.process, row.layer] = row.detail or ""
            return f"{before} -> {row.detail}" if before else f"begins as {row.detail}"
        if row.kind == evidence.START:
            self._phases = {key: phase for key, phase in self._phases.items() if key[0] != row.process}
        (line,) = tell([row], everything=True)
        return line.text


def _joined(said: list[tuple[str, str]]) -> list[str]:
    """Equal words of several processes in one line, where the first of them spoke."""
    speakers: dict[tuple[str, int], list[str]] = {}
    for who, words in said:
        again = 0
        while who in speakers.get((words, again), ()):
            again += 1
        speakers.setdefault((words, again), []).append(who)
    width = max((len(_who(who)) for who in speakers.values()), default=0) + 2
    return [f"{_who(who):<{width}}{words}".rstrip() for (words, _), who in speakers.items()]


def _who(speakers: list[str]) -> str:
    return " ".join(sorted(speakers)) if " -> " not in speakers[0] else ", ".join(speakers)


_COMMANDS: tuple[tuple[str, Callable[..., object]], ...] = (
    (r"start ([\w -]+)", _Conversation.start),
    (r"hide (\w+)", _Conversation.hide),
    (r"show (\w+)", _Conversation.show),
    (r'(\w+) multicasts "(.*)"(?: (\w+))?', _Conversation.multicast),
    (r"partition (.+)", lambda talk, sides: talk.cluster.partition(sides)),
    (r"one way ([\w ]+) -> ([\w ]+)", lambda talk, senders, receivers: talk.cluster.one_way(senders, receivers)),
    (r"heal", lambda talk: talk.cluster.heal()),
    (r"crash (\w+)(?: after (\d+) orders)?", _Conversation.crash),
    (r"restart (\w+)", lambda talk, name: talk.cluster.restart(name)),
    (r"pause (\w+)", lambda talk, name: talk.cluster.pause(name)),
    (r"resume (\w+)", lambda talk, name: talk.cluster.resume(name)),
    (r"wait (\d+) ms", lambda talk, time: talk.cluster.wait(int(time) / 1000)),
    (r"settle", lambda talk: talk.cluster.settle()),
)
