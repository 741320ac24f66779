"""How calls with patterns are typed: regular expressions, parts of texts, how points in time are written."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import LanguageError
from headrace.expressions.coercion import literal, make_cast
from headrace.expressions.patterns import grouped, time_parts, unusual_class
from headrace.expressions.tree import Call, Expression, Literal
from headrace.expressions.typing_rules import Arguments, instant, strings
from headrace.schema import BIGINT, BOOLEAN, STRING, UNKNOWN, sql_type


def regexp_like(name: str, arguments: Arguments) -> Expression:
    """REGEXP_LIKE: whether a regular expression is found in a text."""
    text, pattern = strings(name, arguments)
    _check_regex(name, pattern)
    return Call(name, (text, pattern), BOOLEAN)


def regexp_extract(name: str, arguments: Arguments) -> Expression:
    """REGEXP_EXTRACT: the first place where a regular expression is found, or a group of it."""
    text, pattern = strings(name, arguments[:2])
    regex = _check_regex(name, pattern)
    group = arguments[2] if len(arguments) > 2 else literal(1)
    number = group.value if isinstance(group, Literal) and group.type == BIGINT else None
    if not isinstance(number, int) or number < 0:
        raise LanguageError(f"the group of {name} must be a whole number from 0 on")
    groups = number if regex is None else grouped(regex).groups
    if number > groups:
        raise LanguageError(
            f"the pattern of {name} has no group {number}",
            hint="0 is the whole of what is found, 1 the first part in parentheses, which is the default",
        )
    return Call(name, (text, pattern, group), STRING)


def _check_regex(name: str, pattern: Expression) -> str | None:
    """The regular expression that a pattern is; None if it is NULL.

    Raises:
        LanguageError: it is not a constant, or not a regular expression that all systems read alike.
    """
    if not isinstance(pattern, Literal):
        raise LanguageError(f"the pattern of {name} must be a string constant")
    if not isinstance(pattern.value, str):
        return None
    try:
        pc.match_substring_regex(pa.array([""]), pattern.value)
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise LanguageError(
            f"the pattern of {name} is not a regular expression: {reason}",
            hint="the syntax is RE2's, without lookahead and references to groups; in a string, \\ is \\\\",
        ) from None
    if (found := unusual_class(pattern.value)) is not None:
        raise LanguageError(
            f"the pattern of {name} has {found}, which other systems read otherwise",
            hint="in a class of characters write \\\\[ for [, and & only once",
        )
    return pattern.value


def split_part(name: str, arguments: Arguments) -> Expression:
    """SPLIT_PART: a part of a text between delimiters, by its number."""
    texts, number = strings(name, arguments[:2]), arguments[2]
    if number.type not in (BIGINT, UNKNOWN):
        raise LanguageError(f"{name} takes a whole number of the part, not {sql_type(number.type)}")
    return Call(name, (*texts, make_cast(number, BIGINT)), STRING)


def date_format(name: str, arguments: Arguments) -> Expression:
    """DATE_FORMAT: a TIMESTAMP or DATE as a text, by a pattern such as yyyy-MM-dd."""
    moment = instant(name, arguments[0])
    (pattern,) = strings(name, arguments[1:])
    if not isinstance(pattern, Literal):
        raise LanguageError(f"the pattern of {name} must be a string constant")
    if isinstance(pattern.value, str):
        try:
            time_parts(pattern.value)
        except ValueError as error:
            raise LanguageError(
                f"the pattern of {name} has {error}, which is not known",
                hint="yyyy, MM, dd, HH, mm, ss, SSS and others are; other letters are put in quotes",
            ) from None
    return Call(name, (moment, pattern), STRING)
