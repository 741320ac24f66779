"""The aggregate functions and the types of their results."""

from __future__ import annotations

import difflib
from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.expressions.coercion import MAX_DIGITS, is_decimal, is_numeric, make_cast
from headrace.expressions.tree import AggregateCall, Expression
from headrace.schema import BIGINT, DOUBLE, UNKNOWN, sql_type

AGGREGATES: Final[tuple[str, ...]] = ("AVG", "COUNT", "MAX", "MIN", "STDDEV", "SUM", "VARIANCE")
"""The names of the aggregate functions; STDDEV and VARIANCE are the sample forms."""

_SYNONYMS: Final = {
    "MEAN": "AVG",
    "STD": "STDDEV",
    "STDDEV_SAMP": "STDDEV",
    "VAR_SAMP": "VARIANCE",
}


def is_aggregate(name: str) -> bool:
    """Whether an aggregate function has that name, in upper case."""
    return name in AGGREGATES or name in _SYNONYMS


def resolve_aggregate(name: str, argument: Expression | None) -> AggregateCall:
    """A typed aggregate; `argument` is None for COUNT(*).

    SUM of BIGINT is BIGINT, and one that overflows ends its query. SUM of DECIMAL(p, s) is
    DECIMAL(min(38, p + 10), s). AVG, STDDEV and VARIANCE are DOUBLE.

    Raises:
        LanguageError: no such aggregate, or one that does not take such an argument; without a position.
    """
    name = _SYNONYMS.get(name, name)
    if name not in AGGREGATES:
        close = difflib.get_close_matches(name, AGGREGATES, n=2)
        hint = (
            f"did you mean {' or '.join(close)}?" if close else "the aggregates are " + ", ".join(AGGREGATES)
        )
        raise LanguageError(f"there is no aggregate {name}", hint=hint)
    if argument is None:
        if name != "COUNT":
            raise LanguageError(f"{name} takes an argument", hint="only COUNT takes *")
        return AggregateCall(name, None, BIGINT)
    if name == "COUNT":
        return AggregateCall(name, argument, BIGINT)
    if name in ("MIN", "MAX"):
        return AggregateCall(name, argument, argument.type)
    return _numeric(name, argument)


def _numeric(name: str, argument: Expression) -> AggregateCall:
    if argument.type == UNKNOWN:
        argument = make_cast(argument, DOUBLE)
    if not is_numeric(argument.type):
        raise LanguageError(
            f"{name} takes numbers, not {sql_type(argument.type)}",
            hint="CAST the argument, or use COUNT, MIN or MAX",
        )
    if name != "SUM":
        return AggregateCall(name, argument, DOUBLE)
    if is_decimal(argument.type):
        precision = min(MAX_DIGITS, argument.type.precision + 10)
        return AggregateCall(name, argument, pa.decimal128(precision, argument.type.scale))
    return AggregateCall(name, argument, argument.type)
