"""A text cut into statements without parsing it, and what two of them have in common.

Most of what makes parsing slow is not needed to see that a text differs from another one in its constants
alone. What is hard to cut here, such as numbers with a fraction, stays part of the shape; where a text may
mean something else to the parser, it is not cut at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.errors import Position
from headrace.expressions.coercion import literal
from headrace.expressions.tree import Literal
from headrace.language.dialect import RESERVED
from headrace.language.long_lists import LONG_LIST
from headrace.language.syntax import QuerySyntax
from headrace.language.text import SourceText

_PART: Final = re.compile(
    rf"""
    {LONG_LIST}                         # all of it part of the shape
    | [A-Za-z_.][\w.]*+(?!')            # words, and numbers such as .5
    | (?P<number>\d{{1,18}})(?![\w.'])
    | \d[\w.]*+(?!')                    # other numbers
    | (?P<string>'[^'\\]*')(?!['\w])
    | --[^\r\n]*+
    | (?P<end>;)
    | (?P<odd>[^-\s()\[\]*,+/%<>=!|:] | /[*/])
    """,
    re.VERBOSE | re.ASCII,
)
"""What constants have to be distinguished from; `odd` is what may begin anything else."""

_START: Final = re.compile(r"(?:[ \t\r\n]++|--[^\r\n]*+)*+")
_CREATE: Final = re.compile(
    r"CREATE[ \t\r\n]+QUERY[ \t\r\n]+(?P<name>[A-Za-z_]\w*)[ \t\r\n]+AS[ \t\r\n]+(?=SELECT\b)",
    re.IGNORECASE | re.ASCII,
)
_SELECT: Final = re.compile(r"SELECT\b", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Constant:
    """A constant in a piece.

    Attributes:
        text: as it is written.
        offset: where it is in the piece.
    """

    text: str
    offset: int

    @property
    def value(self) -> Literal:
        """What it means in an expression."""
        return literal(self.text[1:-1] if self.text[0] == "'" else int(self.text))


@dataclass(frozen=True)
class Piece:
    """The text of a SELECT or a CREATE QUERY that has a plain name.

    Attributes:
        source: the text that it is a part of.
        start, end: where it is in that text.
        name: what it names the query, if it is a CREATE QUERY.
        shape: the text of the SELECT with a mark for each constant.
        constants: what is in the place of the marks.
        query: the syntax tree, once it has been parsed.
    """

    source: SourceText
    start: int
    end: int
    name: str | None
    shape: str
    constants: tuple[Constant, ...]
    query: QuerySyntax | None = None

    @property
    def text(self) -> str:
        """The text itself."""
        return self.source.text[self.start : self.end]

    @property
    def body(self) -> str:
        """The text of the SELECT, without comments behind it."""
        text = self.text
        create = _CREATE.match(text)
        comments = {match.end(): match.start() for match in _PART.finditer(text) if match[0].startswith("--")}
        end = len(text)
        while (end := len(text[:end].rstrip())) in comments:
            end = comments[end]
        return text[0 if create is None else create.end() : end]

    @property
    def position(self) -> Position:
        """Where it starts."""
        return self.source.position(self.start)


@dataclass(frozen=True)
class Other:
    """The text of another statement, or of none."""

    text: str
    position: Position


def pieces_of(text: str) -> list[Piece | Other] | None:
    """The statements of a text, or None where it takes a parser to find them."""
    source = SourceText(text)
    pieces: list[Piece | Other] = []
    start, constants = 0, list[Constant]()
    for match in _PART.finditer(text):
        match match.lastgroup:
            case "odd":
                return None
            case "end":
                pieces.append(_piece(source, start, match.start(), constants))
                start, constants = match.end(), []
            case "number" | "string":
                constants.append(Constant(match[0], match.start()))
    return [*pieces, _piece(source, start, len(text), constants)]


def _piece(source: SourceText, start: int, end: int, constants: list[Constant]) -> Piece | Other:
    text = source.text
    begin = _START.match(text, start, end)
    assert begin is not None
    start = begin.end()
    create = _CREATE.match(text, start, end)
    query = start if create is None else create.end()
    reserved = create is not None and create["name"].upper() in RESERVED
    if reserved or _SELECT.match(text, query, end) is None:
        return Other(text[start:end], source.position(start))
    shape = "".join(_marked(text, query, end, constants))
    found = tuple(Constant(part.text, part.offset - start) for part in constants)
    return Piece(source, start, end, create and create["name"], shape, found)


def _marked(text: str, start: int, end: int, constants: list[Constant]) -> Iterator[str]:
    for constant in constants:
        yield text[start : constant.offset]
        yield _STRING if constant.text[0] == "'" else _NUMBER
        start = constant.offset + len(constant.text)
    yield text[start:end].rstrip(" \t\r\n")


_NUMBER: Final = "\0"
_STRING: Final = "\1"
"""Marks that are in no text that is cut, since they are odd."""
