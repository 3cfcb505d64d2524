"""A local cluster: a directory of nodes on this machine, each in a process of its own that nobody needs to watch.

A node is found by its files: its configuration, its lock, its admin port. So every command can be given from any
terminal, and what one has started another can stop.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from greenline.cli.ports import free_ports
from greenline.cli.say import Misuse
from greenline.kernel.identities import ProcId, proc_id
from greenline.kernel.statements import Member
from greenline.node import keyfile
from greenline.node.calls import Answer, NoAnswer, call
from greenline.node.config import FILE, BadConfig, Checked, Stored, Tracing, load, written
from greenline.node.envelope import credential
from greenline.node.faults import Ways
from greenline.node.keyfile import BadKeyFile, Kept, new_key
from greenline.node.lock import holder
from greenline.node.sealing import Keyring
from greenline.node.status import Status
from greenline.node.transport import Address

PLACE = Path("greenline-local")
STARTS_WITHIN_S = 30.0
GATHERS_WITHIN_S = 5.0
STOPS_WITHIN_S = 5.0
_PAUSE_S = 0.02


class Local:
    """The nodes whose files are in one directory."""

    def __init__(self, place: Path) -> None:
        self.place = place
        paths = sorted(place.glob("*.toml"))
        if not paths:
            raise Misuse(f"there is no cluster in {place}; start one with `greenline up --dir {place}`")
        self.configs = {path.stem: _loaded(path) for path in paths}
        self.names = tuple(self.configs)
        self._children: dict[ProcId, int] = {}
        """The processes that this one has started."""

    # Processes.

    def pid(self, name: ProcId) -> int | None:
        return holder(self._config(name).data)

    def log(self, name: ProcId) -> Path:
        return self.place / f"{name}.log"

    def start_all(self, names: Collection[ProcId] | None = None) -> list[Misuse]:
        """Those, or those of these, that do not run yet; then what went wrong."""
        wanted = self.names if names is None else sorted(names)
        with self._door():
            for name in wanted:
                if self.pid(name) is None:
                    self._spawn(name)
            return [failure for name in wanted if (failure := self._failure(name)) is not None]

    def restart(self, name: ProcId) -> Status:
        with self._door():
            if self.pid(name) is not None:
                raise Misuse(f"{name} runs already; kill it first")
            self._spawn(name)
            return self._wait_for(name)

    @contextmanager
    def _door(self) -> Iterator[None]:
        """One at a time starts nodes here, or stops them: who stops all would not see one that is just starting."""
        file = os.open(self.place / ".door", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def _spawn(self, name: ProcId) -> None:
        """Start it, in a session of its own: it lives on when this terminal is closed."""
        command = [sys.executable, "-m", "greenline.cli.node", str(self._config(name).path)]
        log = os.open(self.log(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._children[name] = os.posix_spawn(
                sys.executable,
                command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, nothing, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                ],
                setsid=True,
                setsigdef=[signal.SIGCHLD],
            )
        finally:
            os.close(log)
            os.close(nothing)

    def _has_failed(self, name: ProcId) -> bool:
        """It was started from here, and is gone."""
        try:
            return name in self._children and os.waitpid(self._children[name], os.WNOHANG) != (0, 0)
        except ChildProcessError:
            return True

    def _failure(self, name: ProcId) -> Misuse | None:
        try:
            self._wait_for(name)
        except Misuse as failure:
            return failure
        return None

    def _wait_for(self, name: ProcId) -> Status:
        """Until it answers; or what it said instead."""
        waits_for(lambda: isinstance(self.status(name), Status) or self._has_failed(name), STARTS_WITHIN_S)
        status = self.status(name)
        if not isinstance(status, Status):
            said = self.log(name).read_text(errors="replace").splitlines()[-1:] or ["nothing"]
            raise Misuse(f"{name} has not started; the last that it said: {said[0]}; see {self.log(name)}")
        return status

    def wait_for_one_configuration(self) -> bool:
        """Until all are in one, if they come to that soon: what is said then is told by all."""

        def are_together() -> bool:
            found = [self.status(name) for name in self.names]
            return all(isinstance(each, Status) and each.in_configuration == self.names for each in found)

        return waits_for(are_together, GATHERS_WITHIN_S)

    def kill(self, name: ProcId) -> None:
        """kill -9."""
        pid = self.pid(name)
        if pid is None:
            raise Misuse(f"{name} is down already; `greenline restart {name}` starts it")
        os.kill(pid, signal.SIGKILL)
        waits_for(lambda: self.pid(name) is None, STOPS_WITHIN_S)

    def stop_all(self) -> None:
        """Whoever started them."""
        with self._door():
            for number in (signal.SIGTERM, signal.SIGKILL):
                for pid in self._processes():
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                if waits_for(lambda: not self._processes(), STOPS_WITHIN_S):
                    return

    def _processes(self) -> set[int]:
        """Those that run, and those of ours that have not come to it yet."""
        # Some may have come since we looked: `greenline join` in another terminal.
        running = {holder(_loaded(path).data) for path in self.place.glob("*.toml")}
        ours = {pid for name, pid in self._children.items() if not self._has_failed(name)}
        return ours | {pid for pid in running if pid is not None}

    # Requests.

    def status(self, name: ProcId) -> Status | NoAnswer:
        config = self._config(name)
        assert config.admin is not None
        try:
            return msgspec.json.decode(call(config.admin, "GET", "/status", timeout=1.0).body, type=Status)
        except NoAnswer as silence:
            return silence
        except msgspec.DecodeError:
            return NoAnswer(f"somebody else answers at {name}'s admin port")

    def say(self, name: ProcId, text: str) -> None:
        self._post(name, "/say", {"text": text})

    def cut(self, text: str) -> list[ProcId]:
        """The network between the sides is cut; then who is down, and so was not told."""
        sides = self._sides(text)
        apart = {}
        for name in self.names:
            mine = next((side for side in sides if name in side), {name})
            apart[name] = [other for other in self.names if other not in mine]
        return self._everywhere("/cut", lambda name: {"names": apart[name]})

    def cut_one_way(self, text: str) -> list[ProcId]:
        """A side does not hear those before it, and is heard by them. Who is on no side hears all."""
        sides = self._sides(text)
        unheard: dict[ProcId, list[ProcId]] = {name: [] for name in self.names}
        for number, side in enumerate(sides):
            for name in side:
                unheard[name] = sorted(set().union(*sides[:number]))
        return self._everywhere("/cut", lambda name: {"names": unheard[name], "ways": Ways.IN})

    def _sides(self, text: str) -> list[set[ProcId]]:
        sides = [set(side.split()) for side in text.split("|")]
        if len(sides) < 2 or set().union(*sides) - set(self.names) or not all(sides):
            raise Misuse(f"cannot cut {text!r}; write for example: {self.names[0]} | {' '.join(self.names[1:])}")
        for one, side in enumerate(sides):
            for other in sides[one + 1 :]:
                if side & other:
                    raise Misuse(f"cannot cut {text!r}: {sorted(side & other)[0]} is on both sides; write it once")
        return sides

    def heal(self) -> list[ProcId]:
        return self._everywhere("/heal", lambda _: {})

    def _everywhere(self, path: str, body: Callable[[ProcId], object]) -> list[ProcId]:
        down = [name for name in self.names if self.pid(name) is None]
        for name in self.names:
            if name not in down:
                self._post(name, path, body(name))
        return down

    def _post(self, name: ProcId, path: str, body: object) -> Answer:
        config = self._config(name)
        assert config.admin is not None
        try:
            answer = call(config.admin, "POST", path, msgspec.json.encode(body), credential=_credential(config))
        except NoAnswer as silence:
            raise Misuse(f"{name} is down: {silence}; `greenline restart {name}` starts it") from None
        if not answer.is_good:
            raise Misuse(f"{name}: {answer.error}")
        return answer

    def _config(self, name: ProcId) -> Checked:
        if name not in self.configs:
            raise Misuse(f"there is no {name!r} in {self.place}; there is {' '.join(self.names)}")
        return self.configs[name]


def make(
    place: Path,
    names: tuple[ProcId, ...],
    database: Stored = Stored.SQLITE,
    trace: Tracing = Tracing.FULL,
    *,
    faults: bool = False,
) -> Local:
    """Keys and configurations; what is there already stays. `faults`: disks may be made to fail."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        if (place / FILE).exists():
            raise Misuse(f"{place} holds a node that `greenline init` or a token has made; choose another --dir")
        there = sorted(path.stem for path in place.glob("*.toml"))
        if there and there != sorted(names):
            raise Misuse(
                f"{place} holds a cluster of {' '.join(there)}; ask for {len(there)} nodes, or for another --dir"
            )
        if not there:
            also = f'trace = "{trace}"\n' + ("faults = true\n" if faults else "")
            _write_files(place, names, also + f'database = "{database}"\n')
    except OSError as error:
        raise Misuse(f"cannot make the directory {place}: {error.strerror}; choose another --dir") from None
    return Local(place)


def add(local: Local, name: ProcId) -> Member:
    """The files of one more node, which the others are still to be told of; then where it will be."""
    if name in local.configs:
        raise Misuse(f"there is a {name} in {local.place} already; choose a name that the cluster has never had")
    try:
        proc_id(name)
    except ValueError as error:
        raise Misuse(str(error)) from None
    template = next(iter(local.configs.values()))
    if template.database is Stored.NONE or template.key_file is None:
        raise Misuse("only a cluster with a database, and a key, can be joined while it runs")
    first = next(iter(local.configs))
    known = _tables(local)
    taken = {at[1] for table in known.values() for at in table.values()}
    address, admin, clients = (f"127.0.0.1:{port}" for port in free_ports(3, taken))
    keyfile.write(local.place / f"{name}.key", Kept(keyfile.read(template.key_file).keyring))
    text = (local.place / f"{first}.toml").read_text()
    tables = {title: {each: written(at) for each, at in table.items()} for title, table in known.items()}
    for title, at in (("members", address), ("admins", admin), ("clients", clients)):
        tables[title][name] = at
    founders = ", ".join(f'"{each}"' for each in template.engine.servers)
    also = "".join(re.findall(r"^(?:trace|faults) = .*\n", text, re.MULTILINE))
    # In one go: other commands may be reading all files of this directory just now.
    keyfile.write_private(
        local.place / f"{name}.toml",
        f'name = "{name}"\ndata = "data/{name}"\nkey = "{name}.key"\nadmin = "{admin}"\nlocal = true\n'
        f"{also}founders = [{founders}]\n{_as_tables(tables)}",
    )
    return Member(name, address, admin, clients)


def _tables(local: Local) -> dict[str, dict[ProcId, Address]]:
    """Where everybody is, as the files of all of them say."""
    found: dict[str, dict[ProcId, Address]] = {"members": {}, "admins": {}, "clients": {}}
    for config in local.configs.values():
        found["members"] |= config.addresses
        found["admins"] |= config.admins
        found["clients"] |= config.clients
    for name, config in local.configs.items():
        assert config.admin is not None
        found["admins"][name] = config.admin
        found["clients"][name] = config.clients[name]
    return found


def _as_tables(tables: dict[str, dict[ProcId, str]]) -> str:
    return "".join(
        f"\n[{title}]\n" + "".join(f'{name} = "{at}"\n' for name, at in table.items())
        for title, table in tables.items()
    )


def _write_files(place: Path, names: tuple[ProcId, ...], also: str) -> None:
    key = new_key()
    ports = iter(free_ports(3 * len(names)))
    members, admins, clients = ({name: f"127.0.0.1:{next(ports)}" for name in names} for _ in range(3))
    tables = _as_tables({"members": members, "admins": admins, "clients": clients})
    for name in names:
        # Each has a key file of its own, as on machines of their own: a rotation writes them one by one.
        keyfile.write(place / f"{name}.key", Kept(Keyring({1: key}, 1)))
        (place / f"{name}.toml").write_text(
            f'name = "{name}"\ndata = "data/{name}"\nkey = "{name}.key"\nadmin = "{admins[name]}"\n'
            f"local = true\n{also}{tables}"
        )


def _loaded(path: Path) -> Checked:
    try:
        config = load(path)
    except BadConfig as mistake:
        raise Misuse(str(mistake)) from None
    if config.admin is None or not config.is_local:
        raise Misuse(
            f"{path} is not of a local cluster: it has no admin port, or no local = true; choose another --dir"
        )
    return config


def _credential(config: Checked) -> str | None:
    """Of the key that seals now: a rotation may have changed the file since it was read."""
    if config.key_file is None:
        return None
    try:
        ring = keyfile.read(config.key_file).keyring
    except BadKeyFile as mistake:
        raise Misuse(str(mistake)) from None
    return credential(ring.keys[ring.current])


def waits_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Look again and again, for so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True
