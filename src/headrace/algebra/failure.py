"""Which expressions can make a row fail, so that rewrites know what they may leave out.

A row whose expression fails is not a result but a dead letter. An expression that cannot fail may be dropped
when nobody reads it; one that can may not, or a row would appear that did not before.
"""

from __future__ import annotations

from typing import Final, assert_never

import pyarrow as pa

from headrace.expressions.aggregates.functions import ends_query
from headrace.expressions.tree import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Literals,
    children,
    expressions_of,
)
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING, UNKNOWN

_NAMES = """
    = <> < <= > >= IN BETWEEN AND OR NOT LIKE || CONCAT COALESCE GREATEST LEAST LENGTH UPPER LOWER TRIM LTRIM
    RTRIM REPLACE STARTSWITH ENDSWITH CONTAINS YEAR MONTH DAY HOUR MINUTE SECOND UNIX_MICROS
    REGEXP_LIKE REGEXP_EXTRACT GET_FIELD GET TRY_ELEMENT_AT SIZE ARRAY NAMED_STRUCT THETA_HASH
"""

NEVER_FAILING: Final = frozenset(_NAMES.split()) | {"IS NULL", "IS NOT NULL", "IS NOT DISTINCT FROM"}
"""Functions that have a result, or NULL, for all arguments; of the others it is not assumed."""

NEVER_FAILING_ON_DOUBLE: Final = frozenset({"+", "-", "*", "NEGATE", "ABS"})
"""Arithmetic that overflows to infinity on DOUBLEs."""

BIGINT_DIGITS: Final = 19
"""The most digits of a BIGINT."""


def can_fail(expression: Expression) -> bool:
    """Whether there may be a row on which the expression fails; true where it is not known."""
    if any(can_fail(part) for part in children(expression)):
        return True
    match expression:
        case Column() | Literal() | Literals() | Case():
            return False
        case Call(function=function, type=dtype):
            safe = function in NEVER_FAILING or (function in NEVER_FAILING_ON_DOUBLE and dtype == DOUBLE)
            return not safe
        case Cast(argument=argument, type=dtype):
            return not _holds_all(argument.type, dtype)
        case _:
            assert_never(expression)


def aggregate_can_fail(call: AggregateCall) -> bool:
    """Whether the aggregate may end its query, as an integer sum that overflows does, or make a row fail."""
    return ends_query(call) or any(map(can_fail, expressions_of(call)))


def _holds_all(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of the one type has a counterpart in the other."""
    if target == STRING or source == UNKNOWN:
        return True
    if target == DOUBLE:
        return source in (BIGINT, BOOLEAN) or bool(pa.types.is_decimal(source))
    if target == BIGINT:
        return bool(source == BOOLEAN)
    if not pa.types.is_decimal(target):
        return False
    whole = int(target.precision - target.scale)
    if source == BIGINT:
        return whole >= BIGINT_DIGITS
    decimal = pa.types.is_decimal(source)
    return bool(decimal and whole >= source.precision - source.scale and target.scale >= source.scale)
