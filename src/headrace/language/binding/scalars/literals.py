"""Literals: the text of numbers, DATEs and TIMESTAMPs to their values, and of lists of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from headrace.errors import LanguageError, Position
from headrace.expressions.coercion import literal
from headrace.expressions.tree import Literal
from headrace.language.long_lists import literals_of
from headrace.language.text import SourceText


def read_number(text: str, suffix: str) -> int | float | Decimal:
    """Spark's numbers: 10 and 10L are BIGINT, 1.5 and 1.5BD DECIMAL, 1E3 and 1.5D DOUBLE.

    Args:
        text: the digits.
        suffix: L, D, BD in upper case, or nothing.

    Raises:
        LanguageError: it is not a number; without a position.
    """
    try:
        if suffix == "D" or ("E" in text.upper() and suffix != "BD"):
            return float(text)
        if suffix == "L" or (text.isdecimal() and suffix != "BD"):
            return int(text)
        return Decimal(text)
    except (ValueError, InvalidOperation):
        raise LanguageError(f"{text}{suffix} is not a valid number") from None


def read_moment(text: str, *, is_date: bool) -> date | datetime:
    """The value of `DATE '...'` and `TIMESTAMP '...'`; without an offset the time is UTC.

    Raises:
        LanguageError: it is not a date or a time; without a position.
    """
    try:
        if is_date:
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        shape = "2024-01-31" if is_date else "2024-01-31 12:00:00"
        kind = "DATE" if is_date else "TIMESTAMP"
        raise LanguageError(f"'{text}' is not a valid {kind}", hint=f"write {kind} '{shape}'") from None


def read_list(written: str, position: Position) -> tuple[Literal, ...]:
    """The constants of a long list.

    Args:
        written: the text of the list.
        position: where it starts.

    Raises:
        LanguageError: a literal has no value, or one that is too large; with its position.
    """
    found: list[Literal] = []
    for text, offset in literals_of(written):
        try:
            found.append(literal(_value(text)))
        except LanguageError as error:
            place = SourceText(written, position).position(offset)
            raise LanguageError(error.message, position=place, hint=error.hint) from None
    return tuple(found)


def _value(text: str) -> object:
    """What a literal means: a number that may have a sign, a text, a constant or a point in time."""
    if text[0] == "'":
        return text[1:-1]
    if text[0] == "-":
        return -read_number(text[1:], "")
    if text[0].isdecimal():
        return read_number(text, "")
    word, _, quoted = text.partition("'")
    if quoted:
        return read_moment(quoted[:-1], is_date=word.strip().upper() == "DATE")
    return {"NULL": None, "TRUE": True, "FALSE": False}[word.upper()]
