"""The types of calls with theta sketches."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.expressions.coercion import literal, make_cast
from headrace.expressions.evaluation.sketches import MOST_BITS
from headrace.expressions.functions.typing_rules import of_types
from headrace.expressions.tree import Arguments, Call, Expression, Literal
from headrace.schema import BIGINT, BINARY, DOUBLE, STRING, UNKNOWN, sql_type

FEWEST_BITS: Final = 4
BITS: Final = 12
"""A sketch has 2^12 hashes where nothing is said, as in Spark."""


def hashed(name: str, arguments: Arguments) -> Expression:
    """THETA_HASH(x)."""
    (argument,) = arguments
    if argument.type not in (BIGINT, DOUBLE, STRING, BINARY, UNKNOWN):
        raise LanguageError(
            f"{name} takes a BIGINT, a DOUBLE, a STRING or a BINARY, not {sql_type(argument.type)}",
            hint="CAST the value AS STRING",
        )
    return Call(name, (make_cast(argument, STRING) if argument.type == UNKNOWN else argument,), BIGINT)


def sketch(name: str, arguments: Arguments) -> Expression:
    """THETA_SKETCH(ARRAY of hashes or sketches[, bits])."""
    array, *bits = arguments
    kinds = (pa.list_(BIGINT), pa.list_(BINARY))
    if array.type not in (*kinds, pa.list_(UNKNOWN), UNKNOWN):
        raise LanguageError(
            f"{name} takes an ARRAY of hashes or of sketches, not {sql_type(array.type)}",
            hint=f"write {name}(ARRAY(THETA_HASH(x), THETA_HASH(y))), or THETA_SKETCH_AGG(x) of rows",
        )
    array = array if array.type in kinds else make_cast(array, kinds[0])
    return Call(name, (array, size_of(name, *bits)), BINARY)


def joined(name: str, arguments: Arguments) -> Expression:
    """THETA_UNION(sketch, sketch[, bits])."""
    return Call(name, (*_sketches(name, arguments[:2]), size_of(name, *arguments[2:])), BINARY)


def compared(name: str, arguments: Arguments) -> Expression:
    """THETA_INTERSECTION and THETA_DIFFERENCE of two sketches."""
    return Call(name, _sketches(name, arguments), BINARY)


def estimated(name: str, arguments: Arguments) -> Expression:
    """THETA_SKETCH_ESTIMATE(sketch)."""
    return Call(name, _sketches(name, arguments), BIGINT)


def size_of(name: str, bits: Expression | None = None) -> Expression:
    """The size of a sketch: the logarithm of the number of its hashes.

    Raises:
        LanguageError: it is no such constant; without a position.
    """
    if bits is None:
        return literal(BITS)
    value = bits.value if isinstance(bits, Literal) and bits.type == BIGINT else None
    if not isinstance(value, int) or not FEWEST_BITS <= value <= MOST_BITS:
        raise LanguageError(
            f"the size of {name} is a whole number from {FEWEST_BITS} to {MOST_BITS}, the logarithm of the "
            "number of hashes",
            hint=f"leave it out for {BITS}, which are 4,096 hashes",
        )
    return bits


def _sketches(name: str, arguments: Arguments) -> Arguments:
    return of_types(name, arguments, (BINARY,), "sketches, which are BINARY")
