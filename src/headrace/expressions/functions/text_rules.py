"""How calls with STRINGs and ARRAYs are typed."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.expressions.coercion import make_cast
from headrace.expressions.functions.typing_rules import of_types, strings
from headrace.expressions.tree import Arguments, Call, Expression, Literal
from headrace.schema import BIGINT, BINARY, BOOLEAN, STRING, UNKNOWN


def like(name: str, arguments: Arguments) -> Expression:
    """LIKE with a constant pattern and perhaps a constant escape character."""
    text, *constants = strings(name, arguments)
    if not all(isinstance(part, Literal) for part in constants):
        raise LanguageError("the pattern of LIKE must be a string constant")
    pattern, escape = (*(part.value for part in constants if isinstance(part, Literal)), "\\")[:2]
    if not (escape is None or (isinstance(escape, str) and len(escape) == 1)):
        raise LanguageError("the ESCAPE of LIKE must be one character")
    if isinstance(pattern, str) and isinstance(escape, str):
        _check_pattern(pattern, escape)
    return Call(name, (text, *constants), BOOLEAN)


def _check_pattern(pattern: str, escape: str) -> None:
    index = 0
    while index < len(pattern):
        if pattern[index] == escape:
            index += 1
            if index == len(pattern) or pattern[index] not in ("_", "%", escape):
                raise LanguageError(
                    f"in the pattern '{pattern}' of LIKE, {escape} must be followed by %, _ or {escape}"
                )
        index += 1


def text(name: str, arguments: Arguments) -> Expression:
    """A function from STRINGs to a STRING."""
    return Call(name, strings(name, arguments), STRING)


def text_length(name: str, arguments: Arguments) -> Expression:
    """A function from a STRING to a BIGINT."""
    return Call(name, strings(name, arguments), BIGINT)


def text_test(name: str, arguments: Arguments) -> Expression:
    """A predicate over STRINGs."""
    return Call(name, strings(name, arguments), BOOLEAN)


def concat(name: str, arguments: Arguments) -> Expression:
    """|| and CONCAT, which join BINARYs, and take everything else as a STRING."""
    kinds = {part.type for part in arguments} - {UNKNOWN}
    if kinds == {BINARY}:
        return Call(name, tuple(make_cast(part, BINARY) for part in arguments), BINARY)
    return Call(name, tuple(make_cast(part, STRING) for part in arguments), STRING)


def substring(name: str, arguments: Arguments) -> Expression:
    """SUBSTRING(text, position [, length])."""
    (text,) = strings(name, arguments[:1])
    places = of_types(name, arguments[1:], (BIGINT,), "whole numbers for position and length")
    return Call(name, (text, *places), STRING)


def taking(types: tuple[pa.DataType, ...], result: pa.DataType) -> Callable[[str, Arguments], Expression]:
    """A function of STRINGs and BIGINTs; those at the end may be left out.

    Args:
        types: of its arguments, in order.
        result: the type of what it gives.
    """
    words = {STRING: "a STRING", BIGINT: "a whole number"}

    def rule(name: str, arguments: Arguments) -> Expression:
        typed = zip(arguments, types[: len(arguments)], strict=True)
        return Call(
            name, tuple(of_types(name, (part,), (want,), words[want])[0] for part, want in typed), result
        )

    return rule


def hexadecimal(name: str, arguments: Arguments) -> Expression:
    """HEX of a whole number, a STRING or a BINARY."""
    typed = of_types(name, arguments, (BIGINT, STRING, BINARY), "a whole number, a STRING or a BINARY")
    return Call(name, typed, STRING)


def concat_ws(name: str, arguments: Arguments) -> Expression:
    """CONCAT_WS(separator, x, ...), which passes over NULLs."""
    (separator,) = strings(name, arguments[:1])
    return Call(name, (separator, *(make_cast(part, STRING) for part in arguments[1:])), STRING)
