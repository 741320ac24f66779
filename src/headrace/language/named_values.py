"""Values for the parameters of a text: `SELECT * FROM bid WHERE item = :item AND price > :least`.

A parameter is a token, and its value takes that token's place as one constant of the value's type, whatever
characters it has. Strings, comments and names that look like a parameter are left alone. What is defined with
values is kept with them, so that a store can read it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType

from headrace.errors import LanguageError, Position, UserError
from headrace.expressions.coercion import literal
from headrace.expressions.render import render
from headrace.language.dialect import Headrace
from headrace.language.long_lists import long_lists, tokenize
from headrace.language.text import SourceText
from headrace.suggestions import did_you_mean

ParameterValue = bool | int | float | Decimal | str | date | datetime | timedelta | None
"""What a parameter may be."""

_WORD: Final = re.compile(r"[^\W\d]\w*")
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_NUMBERS: Final = ((re.compile(r"-?(0|[1-9]\d*)"), int), (re.compile(r"-?\d+\.\d+"), Decimal))
_WORDS: Final = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class _Change:
    """A parameter in a text: where it was, and what is there now."""

    line: int
    column: int
    length: int
    written: str


@dataclass(frozen=True)
class ValuedText:
    """A text with values in the place of its parameters.

    Attributes:
        text: the text.
        changes: the parameters, from left to right.
    """

    text: str
    changes: tuple[_Change, ...] = ()

    @contextmanager
    def positions(self) -> Iterator[None]:
        """Give errors the places of the text with the parameters."""
        try:
            yield
        except LanguageError as error:
            if error.position is None or not self.changes:
                raise
            place = self._original(error.position)
            raise LanguageError(error.message, position=place, hint=error.hint) from None

    def _original(self, position: Position) -> Position:
        """Where something was before the values were there, which have no end of a line."""
        column = position.column
        for change in self.changes:
            if change.line != position.line or column <= change.column:
                continue
            column = max(column - len(change.written) + change.length, change.column)
        return Position(position.line, column)


def with_values(text: str, values: Mapping[str, ParameterValue] | None) -> ValuedText:
    """The text with a constant in the place of each `:name`.

    Args:
        text: SQL.
        values: the values by name; None leaves the text alone.

    Raises:
        LanguageError: a parameter has no value, or a value no parameter or no type.
    """
    if values is None:
        return ValuedText(text)
    source, pieces, end = SourceText(text), list[str](), 0
    written = {name: _written(name, value) for name, value in values.items()}
    changes, used = [], set[str]()
    for start, name in _parameters(text):
        if name not in written:
            raise _missing(name, source.position(start), values)
        used.add(name)
        place, length = source.position(start), len(name) + 1
        changes.append(_Change(place.line, place.column, length, written[name]))
        pieces += [text[end:start], written[name]]
        end = start + length
    for name in values:
        if name not in used:
            hint = did_you_mean(name, used) or "leave its value out"
            raise LanguageError(f"there is no parameter :{name} in the text", hint=hint)
    return ValuedText("".join([*pieces, text[end:]]), tuple(changes))


def value_of(text: str) -> tuple[str, ParameterValue]:
    """The name and the value of `name=value`, as a command line has it.

    A number, TRUE, FALSE, NULL, or a text in quotes is what it is in SQL; anything else is a text.

    Raises:
        UserError: there is no name or no value.
    """
    name, equals, value = text.partition("=")
    if not equals or not _WORD.fullmatch(name):
        raise UserError(f"'{text}' is not a parameter with its value", hint="write -D name=value")
    for pattern, kind in _NUMBERS:
        if pattern.fullmatch(value):
            return name, kind(value)
    if value.lower() in _WORDS:
        return name, _WORDS[value.lower()]
    quoted = len(value) > 1 and value[0] == value[-1] == "'"
    return name, value[1:-1] if quoted else value


def _parameters(text: str) -> Iterator[tuple[int, str]]:
    """The offsets and the names of a text's parameters."""
    try:
        tokens = tokenize(Headrace().tokenizer(), text, long_lists(text))
    except TokenError:
        # The parser says what is wrong with it.
        return
    for colon, name in pairwise(tokens):
        quoted = name.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        adjacent = colon.token_type == TokenType.COLON and name.start == colon.end + 1
        if adjacent and not quoted and (word := _WORD.match(text, name.start)):
            yield colon.start, word[0]


def check_value(name: str, value: object) -> None:
    """See that a value is one that a parameter may have.

    Raises:
        LanguageError: it is of another type, or a time without a zone.
    """
    if isinstance(value, datetime) and value.tzinfo is None:
        raise LanguageError(
            f"the value of :{name} has no time zone", hint="write datetime(..., tzinfo=timezone.utc)"
        )
    if value is not None and not isinstance(value, bool | int | float | Decimal | str | date | timedelta):
        kinds = "None, bool, int, float, Decimal, str, date, datetime or timedelta"
        message = f"the value of :{name} is of type {type(value).__name__}"
        raise LanguageError(message, hint=f"give {kinds}")


def parameters_in(text: str) -> frozenset[str]:
    """The names of a text's parameters."""
    return frozenset(name for _, name in _parameters(text))


def _written(name: str, value: Any) -> str:
    """A value as a constant; with blanks, since it may be next to a word or a sign."""
    check_value(name, value)
    if isinstance(value, timedelta):
        return f" INTERVAL '{value // timedelta(microseconds=1)}' MICROSECOND "
    constant = render(literal(value))
    if isinstance(value, str):
        constant = "".join(_ESCAPES.get(character, character) for character in constant)
    return f" ({constant}) " if constant.startswith("-") else f" {constant} "


def _missing(name: str, position: Position, values: Mapping[str, ParameterValue]) -> LanguageError:
    hint = (
        did_you_mean(name, values)
        or f"give it: parameters={{'{name}': ...}}, -D {name}=..., or \\set in the shell"
    )
    return LanguageError(f"the parameter :{name} has no value", position=position, hint=hint)
