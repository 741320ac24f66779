"""Patterns that are constants of a query: regular expressions, and how points in time are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_TOKENS: Final = re.compile(
    r"""\\Q.*?(?:\\E|\Z) | \\. | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\] | \(\?P?<\w+> | \(\?? | .""",
    re.DOTALL | re.VERBOSE,
)
"""Of a regular expression: a quotation, an escape, a class, the begin of a group, a character."""
_PLAIN_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|(?!&&)[^\]\\[])*\]", re.DOTALL)


@dataclass(frozen=True)
class GroupedPattern:
    """A regular expression whose groups have names, as Arrow wants them.

    Attributes:
        text: the whole of it is the group `g0`, and its own groups are `g1`, `g2` and so on.
        groups: how many groups of its own it has.
    """

    text: str
    groups: int


def grouped(pattern: str) -> GroupedPattern:
    """A regular expression of RE2's syntax with a name for each of its groups."""
    count, parts = 0, []
    for token in _TOKENS.findall(pattern):
        if token == "(" or token.startswith(("(?P<", "(?<")):
            count += 1
            token = f"(?P<g{count}>"
        parts.append(token)
    return GroupedPattern(f"(?P<g0>{''.join(parts)})", count)


def unusual_class(pattern: str) -> str | None:
    """A class of characters in a regular expression that other systems read as several, or None."""
    classes = (token for token in _TOKENS.findall(pattern) if token.startswith("[") and len(token) > 1)
    return next((found for found in classes if not _PLAIN_CLASS.fullmatch(found)), None)


@dataclass(frozen=True)
class TimePart:
    """A part of how a point in time is written, such as `MM`.

    Attributes:
        letter: which part; one of `TIME_PARTS`.
        count: how often the letter is repeated.
    """

    letter: str
    count: int


TIME_PARTS: Final = {
    "y": (1, 2, 4),
    "M": (1, 2, 3, 4),
    "d": (1, 2),
    "E": (1, 2, 3, 4),
    "H": (1, 2),
    "h": (1, 2),
    "m": (1, 2),
    "s": (1, 2),
    "S": (1, 2, 3, 4, 5, 6),
    "a": (1,),
}
"""The letters of a pattern for points in time, as Spark has them, and how often each may be repeated."""

_PIECES: Final = re.compile(
    r"(?P<quoted>'(?:[^']|'')*')|(?P<letters>([A-Za-z])\3*)|(?P<plain>[^A-Za-z'\[\]{}#])"
)


def time_parts(pattern: str, known: Mapping[str, tuple[int, ...]] = TIME_PARTS) -> tuple[TimePart | str, ...]:
    """A pattern such as `yyyy-MM-dd` as parts and the texts between them.

    Args:
        pattern: what is split.
        known: the letters of parts, and how often each may be repeated.

    Raises:
        ValueError: it has a part that is not known, which is its argument.
    """
    parts: list[TimePart | str] = []
    place = 0
    while place < len(pattern):
        piece = _PIECES.match(pattern, place)
        if piece is None:
            raise ValueError(pattern[place])
        place = piece.end()
        if quoted := piece["quoted"]:
            parts.append("'" if quoted == "''" else quoted[1:-1].replace("''", "'"))
        elif letters := piece["letters"]:
            if len(letters) not in known.get(letters[0], ()):
                raise ValueError(letters)
            parts.append(TimePart(letters[0], len(letters)))
        else:
            parts.append(piece["plain"])
    return tuple(parts)


_READ: Final = {
    "y": {1: r"(?P<year>[0-9]{1,4})", 2: "(?P<short>[0-9]{2})", 4: "(?P<year>[0-9]{4})"},
    "M": {1: "(?P<month>[0-9]{1,2})", 2: "(?P<month>[0-9]{2})", 3: "(?P<name>[A-Z][a-z]{2})"},
    "d": {1: "(?P<day>[0-9]{1,2})", 2: "(?P<day>[0-9]{2})"},
    "H": {1: "(?P<hour>[0-9]{1,2})", 2: "(?P<hour>[0-9]{2})"},
    "h": {1: "(?P<half>[0-9]{1,2})", 2: "(?P<half>[0-9]{2})"},
    "m": {1: "(?P<minute>[0-9]{1,2})", 2: "(?P<minute>[0-9]{2})"},
    "s": {1: "(?P<second>[0-9]{1,2})", 2: "(?P<second>[0-9]{2})"},
    "S": {count: f"(?P<fraction>[0-9]{{1,{count}}})" for count in range(1, 7)},
    "a": {1: "(?P<noon>AM|PM)"},
    "X": {3: "(?:Z|(?P<sign>[+-])(?P<zone_hour>[0-9]{2}):(?P<zone_minute>[0-9]{2}))"},
    "Z": {1: "(?P<sign>[+-])(?P<zone_hour>[0-9]{2})(?P<zone_minute>[0-9]{2})"},
}
"""How the parts of a point in time are found in a text, by letter and how often it is repeated."""


def reading(pattern: str) -> str:
    """The regular expression of RE2's syntax for texts that are written by a pattern such as `yyyy-MM-dd`.

    Its groups are named: year, or short for two digits of it; month, or name for three letters of it; day;
    hour, or half for one of twelve; minute, second, fraction, noon; sign, zone_hour and zone_minute of an
    offset.

    Raises:
        ValueError: it has a part that is not known or comes twice, which is its argument.
    """
    text, seen = "", set[str]()
    for part in time_parts(pattern, {**TIME_PARTS, "X": (3,), "Z": (1,)}):
        if isinstance(part, str):
            text += "".join(f"[{letter}]" if letter not in "^\\" else f"\\{letter}" for letter in part)
            continue
        if part.count not in _READ.get(part.letter, {}) or part.letter in seen:
            raise ValueError(part.letter * part.count)
        seen.add(part.letter)
        text += _READ[part.letter][part.count]
    if not seen:
        raise ValueError("no part")
    return rf"\A{text}\z"
