"""How calls with patterns are typed: regular expressions, parts of texts, how points in time are written."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import LanguageError
from headrace.expressions.coercion import literal, make_cast
from headrace.expressions.functions.time_rules import from_unix, instant
from headrace.expressions.functions.typing_rules import strings
from headrace.expressions.patterns import grouped, reading, time_parts, unusual_class
from headrace.expressions.tree import Arguments, Call, Expression, Literal
from headrace.schema import BIGINT, BOOLEAN, DATE, STRING, TIMESTAMP, UNKNOWN, sql_type


def regexp_like(name: str, arguments: Arguments) -> Expression:
    """REGEXP_LIKE: whether a regular expression is found in a text."""
    text, pattern = strings(name, arguments)
    check_regex(name, pattern)
    return Call(name, (text, pattern), BOOLEAN)


def regexp_extract(name: str, arguments: Arguments) -> Expression:
    """REGEXP_EXTRACT: the first place where a regular expression is found, or a group of it."""
    text, pattern = strings(name, arguments[:2])
    regex = check_regex(name, pattern)
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


def regexp_replace(name: str, arguments: Arguments) -> Expression:
    """REGEXP_REPLACE(text, pattern, replacement): what is found replaced, `$1` by the first group."""
    text, pattern, replacement = strings(name, arguments)
    regex = check_regex(name, pattern)
    if not isinstance(replacement, Literal):
        raise LanguageError(f"the replacement of {name} must be a string constant")
    groups = 0 if regex is None else grouped(regex).groups
    parts = re.findall(r"\\.|\$(\d)", str(replacement.value or ""), re.DOTALL)
    wanted = [int(digit) for digit in parts if digit]
    if any(number > groups for number in wanted):
        raise LanguageError(
            f"the pattern of {name} has no group {max(wanted)}", hint="write \\\\$ for a dollar sign"
        )
    return Call(name, (text, pattern, replacement), STRING)


def regexp_count(name: str, arguments: Arguments) -> Expression:
    """REGEXP_COUNT(text, pattern): how often it is found."""
    text, pattern = strings(name, arguments)
    check_regex(name, pattern)
    return Call(name, (text, pattern), BIGINT)


def check_regex(name: str, pattern: Expression) -> str | None:
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
    return Call("DATE_FORMAT", (moment, pattern), STRING)


def to_timestamp(name: str, arguments: Arguments) -> Expression:
    """TO_TIMESTAMP(text), a CAST, or TO_TIMESTAMP(text, pattern)."""
    if len(arguments) == 1:
        return make_cast(arguments[0], TIMESTAMP)
    text, pattern = strings(name, arguments)
    if not isinstance(pattern, Literal):
        raise LanguageError(f"the pattern of {name} must be a string constant")
    if isinstance(pattern.value, str):
        try:
            reading(pattern.value)
        except ValueError as error:
            raise LanguageError(
                f"the pattern of {name} has {error}, which is not known",
                hint="yyyy, MM, dd, HH, mm, ss, SSS, XXX and others are; other letters are put in quotes",
            ) from None
    return Call("TO_TIMESTAMP", (text, pattern), TIMESTAMP)


def to_date(name: str, arguments: Arguments) -> Expression:
    """TO_DATE(text), a CAST, or TO_DATE(text, pattern)."""
    return make_cast(arguments[0] if len(arguments) == 1 else to_timestamp(name, arguments), DATE)


_SECONDS_PATTERN: Final = "yyyy-MM-dd HH:mm:ss"


def unix_timestamp(name: str, arguments: Arguments) -> Expression:
    """UNIX_TIMESTAMP: the seconds since 1970-01-01 UTC of a point in time, or of a text of a pattern."""
    moment = arguments[0]
    if moment.type in (STRING, UNKNOWN):
        pattern = arguments[1] if len(arguments) > 1 else literal(_SECONDS_PATTERN)
        moment = to_timestamp(name, (moment, pattern))
    micros = Call("UNIX_MICROS", (instant(name, moment),), BIGINT)
    return Call("DIV", (micros, literal(10**6)), BIGINT)


def from_unixtime(name: str, arguments: Arguments) -> Expression:
    """FROM_UNIXTIME: seconds since 1970-01-01 UTC as a text."""
    (count,) = (make_cast(part, BIGINT) if part.type == UNKNOWN else part for part in arguments[:1])
    pattern = arguments[1] if len(arguments) > 1 else literal(_SECONDS_PATTERN)
    return date_format(name, (from_unix("TIMESTAMP_SECONDS", (count,)), pattern))
