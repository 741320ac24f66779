"""The types of calls with sketches."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.expressions.coercion import is_numeric, literal, make_cast
from headrace.expressions.evaluation.quantile_sketches import K
from headrace.expressions.evaluation.sketches import MOST_BITS
from headrace.expressions.functions.typing_rules import of_types
from headrace.expressions.tree import Arguments, Call, Expression, Literal
from headrace.schema import BIGINT, BINARY, DOUBLE, STRING, UNKNOWN, sql_type

FEWEST_BITS: Final = 4
BITS: Final = 12
"""A sketch has 2^12 hashes where nothing is said, as in Spark."""
FEWEST_K, MOST_K = 8, 65_535
"""Of a sketch of quantiles, as in DataSketches."""


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
    """A sketch of two: THETA_INTERSECTION, THETA_DIFFERENCE, KLL_SKETCH_MERGE_*."""
    return Call(name, _sketches(name, arguments), BINARY)


def estimated(name: str, arguments: Arguments) -> Expression:
    """A count: THETA_SKETCH_ESTIMATE(sketch), KLL_SKETCH_GET_N_*(sketch)."""
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


# --- sketches of quantiles ---------------------------------------------------------------------------------


def quantile_sketch(name: str, arguments: Arguments) -> Expression:
    """KLL_SKETCH_BIGINT and KLL_SKETCH_DOUBLE(ARRAY of values or sketches[, k])."""
    array, *k = arguments
    kinds = (pa.list_(_kind(name)), pa.list_(BINARY))
    becomes = _kind(name) == DOUBLE and pa.types.is_list(array.type) and is_numeric(array.type.value_type)
    if array.type not in (*kinds, pa.list_(UNKNOWN), UNKNOWN) and not becomes:
        raise LanguageError(
            f"{name} takes an ARRAY of {sql_type(_kind(name))}s or of sketches, not {sql_type(array.type)}",
            hint=f"write {name}(ARRAY(x, y)), or {name.replace('SKETCH', 'SKETCH_AGG')}(x) of rows",
        )
    array = array if array.type in kinds else make_cast(array, kinds[0])
    return Call(name, (array, *(k_of(name, one) for one in k)), BINARY)


def quantile_of(name: str, arguments: Arguments) -> Expression:
    """KLL_SKETCH_GET_QUANTILE_*(sketch, rank): of the type of the values."""
    sketch, rank = arguments
    return Call(name, (*_sketches(name, (sketch,)), _number(name, rank, DOUBLE, "the rank")), _kind(name))


def rank_of(name: str, arguments: Arguments) -> Expression:
    """KLL_SKETCH_GET_RANK_*(sketch, value)."""
    sketch, value = arguments
    return Call(name, (*_sketches(name, (sketch,)), _number(name, value, _kind(name), "the value")), DOUBLE)


def values_of(name: str, argument: Expression) -> Expression:
    """The value that KLL_SKETCH_AGG_BIGINT or KLL_SKETCH_AGG_DOUBLE takes of each row.

    Raises:
        LanguageError: it is no such number; without a position.
    """
    return _number(name, argument, _kind(name), "the value")


def k_of(name: str, k: Expression) -> Expression:
    """The size of a sketch of quantiles.

    Raises:
        LanguageError: it is no such constant; without a position.
    """
    value = k.value if isinstance(k, Literal) and k.type == BIGINT else None
    if not isinstance(value, int) or not FEWEST_K <= value <= MOST_K:
        raise LanguageError(
            f"the size of {name} is a whole number from {FEWEST_K} to {MOST_K}, the number of values",
            hint=f"leave it out for {K}, of which ranks are off by half a percent at most",
        )
    return k


def _kind(name: str) -> pa.DataType:
    return DOUBLE if name.endswith("_DOUBLE") else BIGINT


def _number(name: str, argument: Expression, dtype: pa.DataType, what: str) -> Expression:
    """A number as a BIGINT, which it has to be, or as a DOUBLE, which it becomes."""
    if argument.type in (dtype, UNKNOWN) or (dtype == DOUBLE and is_numeric(argument.type)):
        return make_cast(argument, dtype)
    raise LanguageError(
        f"{what} of {name} is a {'BIGINT' if dtype == BIGINT else 'number'}, not {sql_type(argument.type)}",
        hint=f"write {name.replace('_BIGINT', '_DOUBLE')}"
        if dtype == BIGINT and is_numeric(argument.type)
        else "take UNIX_MICROS of a TIMESTAMP, and CAST others",
    )
