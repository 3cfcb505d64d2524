"""`greenline rotate-key`: a new key for the cluster, while it runs.

Three steps, each taken by all members before the next: all accept the new key, all seal with it, all forget the old.
The new key is kept beside the old until the end, so that a rotation that was interrupted is finished by the next.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greenline.cli.cluster import everybody, statuses
from greenline.cli.node import PLACE
from greenline.cli.say import Misuse, as_json, aside, line
from greenline.kernel.identities import ProcId
from greenline.node import keyfile
from greenline.node.calls import NoAnswer, call
from greenline.node.config import FILE, BadConfig, address_of, load
from greenline.node.envelope import credential
from greenline.node.keyfile import HIGHEST_NUMBER, BadKeyFile, Kept, new_key
from greenline.node.rotation import Rotation, Step, sealed
from greenline.node.sealing import Keyring
from greenline.node.status import Status
from greenline.node.transport import Address

EXAMPLES = """\b
Examples:
  greenline rotate-key --dir greenline
  greenline rotate-key --at 10.0.0.1:7500 --at 10.0.0.2:7500 --key cluster.key
"""


def rotate_key(
    place: Annotated[Path, typer.Option("--dir", help="A directory of a node, or of a local cluster.")] = PLACE,
    at: Annotated[list[str] | None, typer.Option("--at", help="Admin ports, HOST:PORT; of all members.")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="The cluster's key file, with --at.")] = None,
    wants_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Give the cluster a new key while it runs. All members must be up; what was interrupted is finished."""
    if bool(at) != (key is not None):
        raise Misuse("--at and --key go together: where all members are, and the file with their key")
    try:
        admins = {text: address_of("--at", text) for text in at} if at else everybody(place)
        path = key or _key_file(place)
        rotator = _Rotator(admins, path)
        number = rotator.run()
    except (BadConfig, BadKeyFile, ValueError) as mistake:
        raise Misuse(str(mistake)) from None
    except OSError as error:
        raise Misuse(f"cannot write beside {error.filename}: {error.strerror}; run this as the node's user") from None
    if wants_json:
        as_json({"key": number, "members": sorted(rotator.members)})
    else:
        line(f"key {number} seals; {' '.join(sorted(rotator.members))} have forgotten the old one")


def _key_file(place: Path) -> Path:
    path = place / FILE
    if not path.exists():
        path = next(iter(sorted(place.glob("*.toml"))), path)
    found = load(path).key_file
    if found is None:
        raise Misuse(f"{path} runs without a key (insecure = true); there is nothing to rotate")
    return found


class _Rotator:
    def __init__(self, admins: dict[str, Address], path: Path) -> None:
        self._path = path
        self._next = path.with_name(f"{path.name}.next")
        self._admins = admins
        self.members: dict[ProcId, Address] = {}

    def run(self) -> int:
        states = self._all_states()
        self.members = {state.name: self._admins[where] for where, state in states.items()}
        self._refuse_strangers(states)
        goal = self._goal(states)
        number = goal.current
        for step in Step:
            for where, state in self._all_states().items():
                if not _is_done(step, state, number):
                    self._take(step, where, state, goal)
        if keyfile.read(self._path).keyring.keys.keys() != {number}:
            # Nobody's file was this one (--key with a copy): then it is ours to renew.
            keyfile.write(self._path, Kept(Keyring({number: goal.keys[number]}, number)))
        self._next.unlink(missing_ok=True)
        return number

    def _goal(self, states: dict[str, Status]) -> Keyring:
        """The keys during the rotation, the new one as the current; from an interrupted one, if there is."""
        if self._next.exists():
            aside(f"finishing a rotation that was interrupted ({self._next})")
            return keyfile.read(self._next).keyring
        mine = keyfile.read(self._path).keyring
        if len(mine.keys) > 1:
            aside(f"finishing a rotation that was interrupted ({self._path})")
            return Keyring(mine.keys, self._newest(mine))
        begun = sorted(state.name for state in states.values() if state.keys != (mine.current,))
        if begun:
            # A key of our own would have the number of theirs, and some would seal what others cannot open.
            raise Misuse(
                f"nothing was changed: {' '.join(begun)} have other keys than {self._path}: a rotation was begun "
                f"elsewhere; finish it with the key file of {begun[0]}"
            )
        number = mine.current % HIGHEST_NUMBER + 1
        goal = Keyring(mine.keys | {number: new_key()}, number)
        keyfile.write(self._next, Kept(goal))
        return goal

    def _newest(self, ring: Keyring) -> int:
        newest = [number for number in ring.keys if _before(number) in ring.keys]
        if len(newest) != 1:
            raise Misuse(f"{self._path} has keys that no rotation leaves; keep the current one only, on every member")
        return newest[0]

    def _all_states(self) -> dict[str, Status]:
        found = statuses(self._admins)
        silent = [f"{where} ({each})" for where, each in found.items() if isinstance(each, NoAnswer)]
        if silent:
            was = "the rotation waits" if self._next.exists() else "nothing was changed"
            raise Misuse(f"{was}: not reached: {', '.join(silent)}; start it, and rotate again")
        return {where: each for where, each in found.items() if isinstance(each, Status)}

    def _refuse_strangers(self, states: dict[str, Status]) -> None:
        missing = sorted({name for state in states.values() for name in state.members} - set(self.members))
        if missing:
            raise Misuse(
                f"nothing was changed: {' '.join(missing)} would be left behind; name their ports with --at, too"
            )

    def _take(self, step: Step, where: str, state: Status, goal: Keyring) -> None:
        mine = goal.keys.get(state.current_key or 0)
        if mine is None:
            raise Misuse(
                f"{state.name} seals with key {state.current_key}, which {self._path} does not have; check the file"
            )
        rotation = Rotation(
            to=state.name,
            current=state.current_key or 0,
            changes=state.key_changes,
            step=step,
            number=goal.current,
            key=goal.keys[goal.current],
        )
        try:
            answer = call(self._admins[where], "POST", "/keys", sealed(rotation, mine), credential=credential(mine))
        except NoAnswer as silence:
            raise Misuse(f"the rotation waits: {state.name} was not reached: {silence}; rotate again") from None
        if not answer.is_good:
            raise Misuse(f"the rotation waits: {state.name} refuses: {answer.error}")


def _before(number: int) -> int:
    """The number of the key before this one."""
    return (number - 2) % HIGHEST_NUMBER + 1


def _is_done(step: Step, state: Status, number: int) -> bool:
    match step:
        case Step.ACCEPT:
            return number in state.keys
        case Step.USE:
            return state.current_key == number
        case Step.FORGET:
            return state.keys == (number,)
