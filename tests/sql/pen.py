"""A pen that writes SQL by chance: what it picks, the odd values it knows, and how values get into a statement.

A value is written as a mark. When a statement is finished its marks become literals or parameters, in the order in
which they stand, so that whoever writes a piece need not know where in the statement it will be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import TypeVar

from greenline.kernel.statements import Statement, Value

_MARK = re.compile("\x01([0-9]+)\x02")
T = TypeVar("T")

MOST_KEYS = 40
INTEGERS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 17, -1, -5, 100, 255, 65536, 2**31, -(2**40), 2**53 + 1)
HUGE = (2**63 - 1, -(2**63), 2**62)
REALS = (0.0, 0.5, 1.0, 1.5, -2.25, 3.0, 0.1, 1e3, -1e-300, 1e308, 123456789.125, float("inf"))
TEXTS = (
    *("", "a", "b", "B", "abc", "ABC", "Abc", "abc  ", "  abc", "x_y", "100%", "it's", 'say "hi"', "1", "1.0", "-7"),
    *(
        " 12abc",
        "0x10",
        "1e3",
        "9223372036854775808",
        "naïve",
        "straße",
        "ÄÖ",
        "日本語",
        "🦊",
        "e\u0301",
        "a\nb",
        "a\tb",
    ),
    *("a\x00b", "[1,2]", '{"k":1}', "null", "NULL", "true", "*", "a*b?", "[a-c]", "z" * 40, "\\", "--", ";", "\ufeff"),
)
BLOBS = (b"", b"\x00", b"abc", b"ABC", b"\x00\x01\x02", bytes(range(16)), "ß".encode(), b"12")
DOCUMENTS = ("{}", "[]", "[1,2,3]", '{"k":1}', '{"k":[1,2,{"m":null}],"t":"x"}', '"s"', "7", "null", "[1.5,true,false]")


class Style(Enum):
    """How values get into a statement."""

    LITERAL = "literal"
    POSITIONAL = "?"
    NUMBERED = "?1"
    NAMED = ":name"


class Pen:
    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._values: list[Value] = []

    # Chance.

    def below(self, limit: int) -> int:
        return self._rng.randrange(limit)

    def between(self, least: int, most: int) -> int:
        return self._rng.randint(least, most)

    def is_lucky(self, one_in: float) -> bool:
        return self._rng.random() * one_in < 1

    def pick(self, options: Sequence[T]) -> T:
        return self._rng.choice(options)

    def weighted(self, weights: dict[T, float]) -> T:
        return self._rng.choices(list(weights), list(weights.values()))[0]

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        count = min(self._rng.randint(least, most), len(options))
        return self._rng.sample(options, count)

    # Values.

    def value(self, type_: str = "ANY") -> str:
        """A mark for an odd value, of this type as a rule."""
        return self.mark(self.odd(type_))

    def mark(self, value: Value) -> str:
        self._values.append(value)
        return f"\x01{len(self._values) - 1}\x02"

    def odd(self, type_: str) -> Value:
        if self.is_lucky(14):
            return None
        if type_ == "ANY" or self.is_lucky(25):
            type_ = self.pick(("INTEGER", "REAL", "TEXT", "BLOB"))
        match type_:
            case "INTEGER":
                return self.pick(HUGE) if self.is_lucky(25) else self.pick(INTEGERS)
            case "REAL":
                return self.pick(REALS)
            case "TEXT":
                return self.pick(TEXTS)
            case "BLOB":
                return self.pick(BLOBS)
        raise ValueError(type_)

    # Statements.

    def statement(self, sql: str, style: Style | None = None) -> Statement:
        """The text with its marks replaced. Some values stay literals, unless a style is demanded."""
        chosen = style or self.pick((Style.LITERAL, Style.LITERAL, *Style))
        keeps_some = style is None and self.is_lucky(3)
        values: list[Value] = []

        def replaced(match: re.Match[str]) -> str:
            value = self._values[int(match.group(1))]
            if chosen is Style.LITERAL or (keeps_some and self.is_lucky(2)):
                return literal(value)
            values.append(value)
            return {Style.POSITIONAL: "?", Style.NUMBERED: f"?{len(values)}"}.get(chosen, f":p{len(values)}")

        text = _MARK.sub(replaced, sql)
        if chosen is Style.NAMED:
            return Statement(text, {f"p{number}": value for number, value in enumerate(values, 1)})
        return Statement(text, tuple(values))

    def likes_of(self, parameters: tuple[Value, ...]) -> tuple[Value, ...]:
        """Other values of the same types, for the same statement."""
        return tuple(self._like(each) if self.is_lucky(1.5) else each for each in parameters)

    def _like(self, value: Value) -> Value:
        is_perhaps_a_key = isinstance(value, int) and 0 < value <= MOST_KEYS
        return self.between(1, MOST_KEYS) if is_perhaps_a_key else self.odd(type_of(value))


def type_of(value: Value) -> str:
    return {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}.get(type(value), "ANY")


def literal(value: Value) -> str:
    """As SQL writes it. A text with a zero in it cannot be written, and is made from its bytes."""
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"x'{value.hex()}'"
        case str() if "\x00" in value:
            return f"CAST(x'{value.encode().hex()}' AS TEXT)"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case float() if value in (float("inf"), float("-inf")):
            return "9e999" if value > 0 else "-9e999"
        case int() if value == -(2**63):
            return "(-9223372036854775807 - 1)"
    return repr(value)


def quoted(name: str) -> str:
    return name if re.fullmatch(r"(?!order$)[a-z][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
