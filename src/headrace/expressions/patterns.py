"""Patterns that are constants of a query: regular expressions, and how points in time are written."""

from __future__ import annotations

import re
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


def time_parts(pattern: str) -> tuple[TimePart | str, ...]:
    """A pattern such as `yyyy-MM-dd` as parts and the texts between them.

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
            if len(letters) not in TIME_PARTS.get(letters[0], ()):
                raise ValueError(letters)
            parts.append(TimePart(letters[0], len(letters)))
        else:
            parts.append(piece["plain"])
    return tuple(parts)
