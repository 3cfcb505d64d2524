"""`greenline sql`: statements from the command line, or a simple shell."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Annotated, Any

import typer
from rich.table import Table

from greenline.cli.local import PLACE
from greenline.cli.reach import At, Ca, Place, User, reach
from greenline.cli.say import Misuse, Page, Status, as_json, aside, out
from greenline.client import Client, Colour, Error, Rows, Written
from greenline.kernel.statements import Result

EXAMPLES = """\b
Examples:
  greenline sql "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)"
  greenline sql "INSERT INTO t (name) VALUES ('ann')" "SELECT * FROM t"
  greenline sql --consistency dirty "SELECT count(*) FROM t"       also what is accepted, and not ordered yet
  greenline sql --wait accepted "INSERT INTO t (name) VALUES ('bob')"
  greenline sql                                                    a shell; .help tells the rest
"""
HELP = """\
A statement ends with a semicolon. Also:
  .consistency strict|session|weak|dirty    what queries may see, from now on
  .wait green|accepted                      what writes wait for
  .tables  .schema                          what there is
  .quit"""
_READS = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(SELECT|VALUES|EXPLAIN|PRAGMA|WITH)\b", re.IGNORECASE | re.DOTALL
)
SAYS_AFTER_S = 5.0
WAITS = "no answer so far: it takes long, or waits for a primary component (`greenline status`); Ctrl-C gives up"
_WIDE = 200
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_SCHEMA = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'greenline_%' ORDER BY rowid"


def sql(
    statements: Annotated[list[str] | None, typer.Argument(help="One after the other; none: a shell.")] = None,
    consistency: Annotated[str, typer.Option("--consistency", help="strict, session, weak or dirty.")] = "strict",
    wait: Annotated[str, typer.Option("--wait", help="green: ordered; accepted: safe at one replica.")] = "green",
    level: Annotated[str, typer.Option("--level", help="How durable: memory, local or quorum.")] = "local",
    timeout: Annotated[float | None, typer.Option("--timeout", help="Seconds to wait for an answer.")] = None,
    wants_json: Annotated[bool, typer.Option("--json", help="For programs: one object a statement.")] = False,
    place: Place = PLACE,
    at: At = None,
    user: User = None,
    ca: Ca = None,
) -> None:
    """Run SQL on a cluster: any live replica serves it."""
    shell = Shell(consistency, wait, level, timeout, wants_json)
    reached = reach(place, at, user, ca)

    async def run() -> bool:
        async with reached.connected() as db:
            return await shell.read(db) if statements is None else await shell.run_all(db, statements)

    try:
        if not asyncio.run(run()):
            raise typer.Exit(Status.BROKEN)
    except Error as error:
        raise Misuse(str(error)) from None


class Shell:
    """What somebody at a terminal has chosen, and what they are shown."""

    def __init__(
        self,
        consistency: str = "strict",
        wait: str = "green",
        level: str = "local",
        timeout: float | None = None,
        wants_json: bool = False,
    ) -> None:
        self.consistency = _one_of("--consistency", consistency, ("strict", "session", "weak", "dirty"))
        self.wait = _one_of("--wait", wait, ("green", "accepted"))
        self.level = _one_of("--level", level, ("memory", "local", "quorum"))
        self.timeout = timeout
        self._wants_json = wants_json

    async def run_all(self, db: Client, statements: list[str]) -> bool:
        """Stops at the first that fails."""
        for statement in statements:
            if not await self.run(db, statement):
                return False
        return True

    async def read(self, db: Client) -> bool:
        """What is typed, until its end."""
        if sys.stdin.isatty():
            aside("statements end with a semicolon; .help tells the rest")
        typed = ""
        while True:
            prompt = ("   ...> " if typed else "greenline> ") if sys.stdin.isatty() else ""
            try:
                typed += await asyncio.to_thread(input, prompt) + "\n"
            except EOFError:
                return not typed.strip() or await self.run(db, typed)
            if not typed.strip():
                typed = ""
            elif typed.lstrip().startswith("."):
                if not await self._command(db, typed.split()):
                    return True
                typed = ""
            elif typed.rstrip().endswith(";"):
                await self.run(db, typed)
                typed = ""

    async def _command(self, db: Client, words: list[str]) -> bool:
        """False: it is over."""
        try:
            match words:
                case [".quit" | ".exit"]:
                    return False
                case [".consistency", chosen]:
                    self.consistency = _one_of(".consistency", chosen, ("strict", "session", "weak", "dirty"))
                case [".wait", chosen]:
                    self.wait = _one_of(".wait", chosen, ("green", "accepted"))
                case [".tables"]:
                    await self.run(db, _TABLES)
                case [".schema"]:
                    await self.run(db, _SCHEMA)
                case _:
                    aside(HELP)
        except Misuse as mistake:
            aside(str(mistake))
        return True

    async def run(self, db: Client, statement: str) -> bool:
        """Who waits for long is told for what."""
        waiting = asyncio.get_running_loop().call_later(SAYS_AFTER_S, aside, WAITS)
        try:
            if _READS.match(statement):
                await self._query(db, statement)
            else:
                await self._write(db, statement)
        except Error as error:
            if self._wants_json:
                as_json({"error": str(error), "kind": error.kind or type(error).__name__, "position": error.position})
            else:
                aside(f"{error.kind or type(error).__name__}: {error}")
            return False
        finally:
            waiting.cancel()
        return True

    async def _query(self, db: Client, statement: str) -> None:
        try:
            rows = await db.query(statement, consistency=self.consistency, timeout=self.timeout)
        except Error as error:
            if "changes nothing" not in str(error):  # it begins like a query, and is none: WITH ... INSERT
                raise
            await self._write(db, statement)
            return
        if self._wants_json:
            as_json({"columns": rows.columns, "rows": _plain(rows.rows), **_about(rows)})
            return
        _show(rows.columns, rows.rows)
        beside = f", and {rows.reds} bundles that are not ordered yet" if rows.reds else ""
        kind = "primary" if rows.component.is_primary else "non-primary"
        aside(f"{len(rows)} rows, as of {rows.position}{beside}; at {rows.component.server}, {kind} component")

    async def _write(self, db: Client, statement: str) -> None:
        done = await db.execute(statement, wait=self.wait, level=self.level, timeout=self.timeout)
        if self._wants_json:
            as_json({**_outcome(done), **_about(done)})
            return
        server = "?" if done.component is None else done.component.server
        if done.colour is Colour.RED:
            aside(f"accepted, red: on the disk of {server}, and will be ordered ({done.session}/{done.number})")
            return
        if done.result.columns:
            _show(done.result.columns, done.result.rows)
        aside(f"{done.changes} rows changed; green at {done.position}.{done.sub}, {self.level}")


def _outcome(done: Written) -> dict[str, Any]:
    result: Result = done.result
    return {
        "changes": done.changes,
        "last_id": done.last_id,
        "columns": result.columns,
        "rows": _plain(result.rows),
        "session": done.session,
        "number": done.number,
    }


def _about(answer: Rows | Written) -> dict[str, Any]:
    where = answer.component
    component = None if where is None else {"primary": where.is_primary, "members": where.members}
    return {
        "colour": answer.colour.value,
        "position": answer.position,
        "server": None if where is None else where.server,
        "component": component,
    }


def _plain(rows: tuple[tuple[Any, ...], ...]) -> list[list[Any]]:
    return [[{"hex": value.hex()} if isinstance(value, bytes) else value for value in row] for row in rows]


def _show(columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, title in enumerate(columns):
        is_number = all(isinstance(row[place], int | float | None) for row in rows)
        table.add_column(title, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(_text(value) for value in row))
    page = out if out.is_terminal else Page(width=_WIDE, highlight=False, emoji=False)
    page.print(table, markup=False)


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"x'{value.hex()}'" if isinstance(value, bytes) else str(value)


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise Misuse(f"{option} {value}: choose {', '.join(choices[:-1])} or {choices[-1]}")
    return value
