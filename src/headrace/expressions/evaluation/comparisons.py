"""Comparisons and tests over columns. NaN equals NaN and is larger than every other number, as in Spark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.expressions.evaluation.values import (
    Datum,
    Kernel,
    KernelResult,
    fine,
    is_constant,
    rows_of,
    spread,
)
from headrace.expressions.tree import Call, Literals
from headrace.history import normalise_column, ordered_codes
from headrace.nested import is_nested
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP

Comparison = Callable[[Datum, Datum], Datum]

_PLAIN: Final[dict[str, Comparison]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

_WITH_NAN: Final[dict[str, Comparison]] = {
    "=": lambda left, right: _nan_equal(left, right),
    "<>": lambda left, right: pc.invert(_nan_equal(left, right)),
    "<": lambda left, right: _nan_less(left, right),
    "<=": lambda left, right: pc.invert(_nan_less(right, left)),
    ">": lambda left, right: _nan_less(right, left),
    ">=": lambda left, right: pc.invert(_nan_less(left, right)),
}


def compare(operator: str, left: Datum, right: Datum) -> Datum:
    """The comparison of two data of one type, NULL where one of them is."""
    if is_nested(left.type):
        return _compare_nested(operator, left, right)
    table = _WITH_NAN if left.type == DOUBLE and (_has_nan(left) or _has_nan(right)) else _PLAIN
    return table[operator](left, right)


def _compare_nested(operator: str, left: Datum, right: Datum) -> Datum:
    """ARRAYs and STRUCTs by their first difference; NULL within them is equal to NULL, and comes first."""
    count = 1 if is_constant(left) and is_constant(right) else rows_of((left, right))
    columns = [spread(left, count), spread(right, count)]
    codes = pa.array(ordered_codes(normalise_column(pa.concat_arrays(columns))))
    valid = pc.and_(pc.is_valid(columns[0]), pc.is_valid(columns[1]))
    compared = _PLAIN[operator](codes.slice(0, count), codes.slice(count))
    result = pc.if_else(valid, compared, pa.scalar(None, BOOLEAN))
    return result[0] if is_constant(left) and is_constant(right) else result


def _has_nan(datum: Datum) -> bool:
    found = pc.is_nan(datum)
    return bool((found if is_constant(found) else pc.any(found)).as_py())


def _nan_equal(left: Datum, right: Datum) -> Datum:
    return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _nan_less(left: Datum, right: Datum) -> Datum:
    return pc.or_(pc.less(left, right), pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


def _compare(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(compare(call.function, *arguments))


def _is_not_distinct(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    left, right = arguments
    nulls = pc.and_(pc.is_null(left), pc.is_null(right))
    return fine(pc.or_(pc.fill_null(compare("=", left, right), False), nulls))


def _between(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    value, low, high = arguments
    return fine(pc.and_kleene(compare(">=", value, low), compare("<=", value, high)))


def _in(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    value, *candidates = arguments
    listed = call.arguments[-1]
    if isinstance(listed, Literals):
        return fine(_in_array(value, listed.array))
    if value.type in _LISTABLE and all(map(is_constant, candidates)) and not is_constant(value):
        return fine(_in_array(value, pa.array(candidates, value.type)))
    return fine(reduce(pc.or_kleene, (compare("=", value, candidate) for candidate in candidates)))


_LISTABLE: Final = (BIGINT, DOUBLE, STRING, DATE, TIMESTAMP)
"""The types that Arrow looks up in a set."""


def _in_array(value: pa.Array, candidates: pa.Array) -> pa.Array:
    """One look-up however many candidates there are."""
    listed = candidates.drop_null()
    if value.type == DOUBLE:
        value, listed = _one_form(value), _one_form(listed)
    found = pc.is_in(value, value_set=listed)
    if len(listed) < len(candidates):
        found = pc.if_else(found, found, pa.scalar(None, BOOLEAN))
    return found if value.null_count == 0 else pc.if_else(value.is_null(), pa.scalar(None, BOOLEAN), found)


def _one_form(values: pa.Array) -> pa.Array:
    """The same DOUBLEs; Arrow looks them up by their bits, and 0 and NaN have several representations."""
    values = pc.add(values, 0.0)
    return pc.if_else(pc.is_nan(values), math.nan, values) if _has_nan(values) else values


def _greatest(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(reduce(lambda best, other: _better(best, other, compare("<", best, other)), arguments))


def _least(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(reduce(lambda best, other: _better(best, other, compare("<", other, best)), arguments))


def _better(best: Datum, other: Datum, other_wins: Datum) -> Datum:
    return pc.if_else(pc.or_(pc.fill_null(other_wins, False), pc.is_null(best)), other, best)


def _is_null(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(pc.is_null(arguments[0]))


def _is_not_null(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(pc.is_valid(arguments[0]))


def _not(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(pc.invert(arguments[0]))


KERNELS: Final[dict[str, Kernel]] = {
    **dict.fromkeys(_PLAIN, _compare),
    "IS NOT DISTINCT FROM": _is_not_distinct,
    "BETWEEN": _between,
    "IN": _in,
    "GREATEST": _greatest,
    "LEAST": _least,
    "IS NULL": _is_null,
    "IS NOT NULL": _is_not_null,
    "NOT": _not,
}
"""The predicates, and the functions that choose by comparison."""
