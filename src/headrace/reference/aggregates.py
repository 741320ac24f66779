"""Aggregates of a group's rows: computed with rational numbers, and rounded once to the result's type."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from typing import Any, Final

import pyarrow as pa

from headrace.errors import ExecutionError
from headrace.expressions.aggregates.functions import REGRESSIONS, top_of
from headrace.expressions.aggregates.pairs import PairRule
from headrace.expressions.tree import AggregateCall, Literal, arguments_of
from headrace.expressions.user import UserAggregate
from headrace.reference.casts import EXACT
from headrace.reference.contents import Payload, equal_form, order
from headrace.reference.series import correlated_pairs, of_sequence
from headrace.schema import BIGINT


def aggregate(call: AggregateCall, rows: Iterable[Payload]) -> object:
    """The aggregate of a group.

    Args:
        call: what to compute.
        rows: for each row of the group for which the condition is true the values of `arguments_of(call)`.

    Raises:
        ExecutionError: a SUM is beyond its type.
    """
    rows = list(rows)
    if call.user is not None:
        return _of_user(call.user, [row for row in rows if None not in row])
    match call.function:
        case "COUNT" if call.argument is None:
            return len(rows)
        case "COUNT" if call.others:
            return len({equal_form(row) for row in rows if None not in row})
        case "FIRST" | "LAST":
            return _sorted(call, rows)[0 if call.function == "FIRST" else -1][0] if rows else None
        case "MODE" | "PERCENTILE_DISC" | "TOP_K":
            return _counted(call, [row for row in rows if row[0] is not None])
        case "CORRELATED_PAIRS":
            return correlated_pairs(PairRule.of(call), rows)
        case "ARRAY_AGG" | "AUTOCORR" | "EWMA" | "EWM_STDDEV":
            known = [row for row in rows if row[0] is not None]
            if call.function == "ARRAY_AGG":
                return _array(call, known)
            return of_sequence(call, [row[0] for row in _sorted(call, known)])
        case "CORR" | "COVAR_POP" | "COVAR_SAMP":
            return _covariation(call.function, [row for row in rows if None not in row])
        case function if function in REGRESSIONS:
            return _regression(function, [row for row in rows if None not in row])
    values = [row[0] for row in rows if row[0] is not None]
    if call.distinct:
        values = list({equal_form(value): value for value in values}.values())
    return _of_values(call, values)


def _of_user(user: UserAggregate, rows: list[Payload]) -> object:
    state = user.body.initialize()
    for row in rows:
        state = user.body.accumulate(state, *row)
    return user.body.evaluate(state)


def _of_values(call: AggregateCall, values: list[Any]) -> object:
    match call.function:
        case "COUNT":
            return len(values)
        case _ if not values:
            return None
        case "MIN":
            return min(values, key=order)
        case "MAX":
            return max(values, key=order)
        case "SUM":
            return _sum(values, call.type)
        case "AVG":
            return _average(values)
        case "PERCENTILE":
            return _percentile(call, values)
        case "VARIANCE" | "VAR_POP":
            return _variance(values, call.function == "VARIANCE", root=False)
        case "STDDEV" | "STDDEV_POP":
            return _variance(values, call.function == "STDDEV", root=True)
        case name:
            return _FOLDS[name](values)


_FOLDS: Final[dict[str, Callable[[list[Any]], object]]] = {
    "BOOL_AND": all,
    "BOOL_OR": any,
    "BIT_AND": partial(reduce, int.__and__),
    "BIT_OR": partial(reduce, int.__or__),
    "BIT_XOR": partial(reduce, int.__xor__),
}


def _counted(call: AggregateCall, rows: list[Payload]) -> object:
    """MODE or TOP_K, of several values the first in order; or the first by which enough have been counted."""
    values = [row[0] for row in _sorted(call, rows)]
    if call.function == "TOP_K":
        return _most_frequent(call, values)
    if not values:
        return None
    if call.function == "MODE":
        counts = Counter(map(equal_form, values))
        return max(values, key=lambda value: counts[equal_form(value)])
    (fraction,) = call.others
    assert isinstance(fraction, Literal)
    assert isinstance(fraction.value, float)
    return values[max(0, math.ceil(fraction.value * len(values)) - 1)]


def _most_frequent(call: AggregateCall, values: list[Any]) -> tuple[object, ...]:
    """The values that are there most often, of several the first ones in order, with how often."""
    counts: Counter[object] = Counter()
    first: dict[object, object] = {}
    for value in values:
        counts[equal_form(value)] += 1
        first.setdefault(equal_form(value), value)
    return tuple((first[form], number) for form, number in counts.most_common(top_of(call)))


def _array(call: AggregateCall, rows: list[Payload]) -> tuple[object, ...]:
    values = [row[0] for row in _sorted(call, rows)]
    return tuple({equal_form(value): value for value in values}.values() if call.distinct else values)


def _sorted(call: AggregateCall, rows: list[Payload]) -> list[Payload]:
    """The rows in the order of the call, those that are equal in it by the argument."""
    result = sorted(rows, key=lambda row: order(row[0]))
    width = len(arguments_of(call))
    for place, key in reversed(list(enumerate(call.order, width - len(call.order)))):
        result.sort(key=lambda row: order(row[place]), reverse=key.descending)
        result.sort(key=lambda row: (row[place] is None) != key.nulls_first)
    return result


def _percentile(call: AggregateCall, values: list[Any]) -> float:
    """Between the two values beside the place in question, as Spark's exact PERCENTILE interpolates."""
    (fraction,) = call.others
    assert isinstance(fraction, Literal)
    assert isinstance(fraction.value, float)
    ordered = sorted(values, key=order)
    place = fraction.value * (len(ordered) - 1)
    lower, upper = float(ordered[math.floor(place)]), float(ordered[math.ceil(place)])
    if lower == upper or math.floor(place) == math.ceil(place):
        return lower
    share = place - math.floor(place)
    return (1 - share) * lower + share * upper


def _sum(values: list[Any], dtype: pa.DataType) -> object:
    if isinstance(values[0], float):
        return _float_sum(values)
    total = sum(map(Fraction, values))
    if dtype == BIGINT:
        if not -(2**63) <= total < 2**63:
            raise ExecutionError("SUM overflows BIGINT")
        return int(total)
    units = total * 10**dtype.scale
    if abs(units) >= 10**dtype.precision:
        raise ExecutionError(f"SUM overflows DECIMAL({dtype.precision}, {dtype.scale})")
    return Decimal(int(units)).scaleb(-dtype.scale, EXACT)


def _average(values: list[Any]) -> float:
    if isinstance(values[0], float):
        return _float_sum(values) / len(values)
    return _rounded(sum(map(Fraction, values), Fraction(0)) / len(values))


def _float_sum(values: list[float]) -> float:
    odd = [value for value in values if not math.isfinite(value)]
    # All of them infinite on one side, or else NaN.
    return sum(odd) if odd else _rounded(sum(map(Fraction, values), Fraction(0)))


def _variance(values: list[Any], of_sample: bool, *, root: bool) -> float | None:
    """Variance, or its root."""
    if len(values) == 1 and of_sample:
        return None
    if not _all_finite(values):
        return math.nan
    numbers = list(map(Fraction, values))
    variance = _spread(numbers, numbers) / (len(values) - of_sample)
    return _rounded_root(variance) if root else _rounded(variance)


def _covariation(function: str, pairs: list[Any]) -> float | None:
    """CORR is NULL where one column does not vary, and COVAR_SAMP of a single pair."""
    if len(pairs) < (1 if function == "COVAR_POP" else 2):
        return None
    if not all(map(_all_finite, pairs)):
        return math.nan
    left, right = ([Fraction(pair[place]) for pair in pairs] for place in range(2))
    spread = _spread(left, right)
    if function != "CORR":
        return _rounded(spread / (len(pairs) - (function == "COVAR_SAMP")))
    variances = _spread(left, left) * _spread(right, right)
    if variances == 0:
        return None
    size = _rounded_root(spread * spread / variances)
    return -size if spread < 0 else size


def _regression(function: str, pairs: list[Any]) -> float | int | None:
    """A statistic of the line through points (y, x), of sums and means that are rounded once each."""
    if function == "REGR_COUNT":
        return len(pairs)
    if not pairs:
        return None
    if not all(map(_all_finite, pairs)):
        return math.nan
    y, x = ([Fraction(pair[place]) for pair in pairs] for place in range(2))
    height, width, both = (_rounded(_spread(*sides)) for sides in ((y, y), (x, x), (y, x)))
    means = _rounded(sum(y, Fraction(0))) / len(y), _rounded(sum(x, Fraction(0))) / len(x)
    plain = {
        "REGR_SYY": height,
        "REGR_SXX": width,
        "REGR_SXY": both,
        "REGR_AVGY": means[0],
        "REGR_AVGX": means[1],
    }
    if function in plain:
        return plain[function]
    if not width > 0:
        return None
    if function == "REGR_R2":
        found = _covariation("CORR", pairs)
        return 1.0 if height == 0 or found is None else found**2
    slope = both / width
    return slope if function == "REGR_SLOPE" else means[0] - slope * means[1]


def _spread(left: list[Fraction], right: list[Fraction]) -> Fraction:
    """The sum of the products of the distances from the means."""
    one, other = sum(left, Fraction(0)) / len(left), sum(right, Fraction(0)) / len(right)
    pairs = zip(left, right, strict=True)
    return sum(((x - one) * (y - other) for x, y in pairs), Fraction(0))


def _rounded(value: Fraction) -> float:
    """The nearest double, ties to even; an infinity beyond the largest one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _rounded_root(value: Fraction) -> float:
    """The nearest double to the square root of a number that is not negative."""
    if value == 0:
        return 0.0
    # The root gets 100 bits or more, and one more that is set if there is a rest, so that it is rounded once.
    places = 100 + max(0, (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 1)
    scaled = (value.numerator << 2 * places) // value.denominator
    root = math.isqrt(scaled)
    exact = root * root * value.denominator == value.numerator << 2 * places
    return _rounded(Fraction(2 * root + (not exact), 1 << places + 1))


def _all_finite(values: Iterable[Any]) -> bool:
    return not any(isinstance(value, float) and not math.isfinite(value) for value in values)
