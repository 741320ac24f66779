"""Statistics of series: the pairs that are correlated, each looked at by itself, and those of one series.

Numbers are doubles, added up in the order of time. So an answer is a function of the values alone, to the
last bit, and the operators have to give the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import combinations
from typing import Any, Final

from headrace.expressions.aggregates.pairs import PairRule
from headrace.expressions.tree import AggregateCall, Literal
from headrace.reference.contents import Payload, equal_form, order
from headrace.reference.times import instant_of

Pair = tuple[object, object, float, int]
"""Two series, the first one the smaller, their correlation, and how many steps the second one follows by."""

_SMALLEST_SHIFT: Final = -1000
"""Values are enlarged by a power of two up to that of 1000, beyond which there would be no double."""


def correlated_pairs(rule: PairRule, rows: Iterable[Payload]) -> tuple[Pair, ...]:
    """The pairs that are wanted, sorted by both series.

    A series has a value at a step where it has one or more that are finite numbers: their mean. Two series
    are correlated over the steps at which both have a value. Where one may follow the other, the lag counts
    with which they are correlated most; of several the one nearest to 0, and of two the positive one.

    Args:
        rule: which pairs are wanted.
        rows: each begins with the series, the instant and the value; a row with a NULL does not count.
    """
    series = _series_of(rule, rows)
    found = []
    for first, second in combinations(sorted(series, key=order), 2):
        best = _best(rule, series[first], series[second])
        if best is not None:
            found.append((first, second, *best))
    return tuple(found)


def _series_of(rule: PairRule, rows: Iterable[Payload]) -> dict[object, dict[int, float]]:
    """The means at the steps of each series."""
    values: dict[object, dict[int, list[float]]] = {}
    for key, at, value, *_ in rows:
        if key is None or at is None or not isinstance(value, float) or not math.isfinite(value):
            continue
        instant = instant_of(at) if isinstance(at, datetime) else at
        assert isinstance(instant, int)
        steps = values.setdefault(equal_form(key), {})
        steps.setdefault(instant // rule.step, []).append(value)
    means = {key: {step: _mean(found) for step, found in steps.items()} for key, steps in values.items()}
    return {
        key: {step: mean for step, mean in steps.items() if math.isfinite(mean)}
        for key, steps in means.items()
    }


def _mean(values: list[float]) -> float:
    total = 0.0
    for value in sorted(values):
        total += value
    return total / len(values)


def _best(rule: PairRule, first: dict[int, float], second: dict[int, float]) -> tuple[float, int] | None:
    best: tuple[float, int] | None = None
    for lag in sorted(range(-rule.lags, rule.lags + 1), key=lambda lag: (abs(lag), -lag)):
        steps = sorted(step for step in first if step + lag in second)
        if len(steps) < rule.fewest:
            continue
        found = correlation([first[step] for step in steps], [second[step + lag] for step in steps])
        if found is None or not _is_wanted(rule, found):
            continue
        if best is None or _score(rule, found) > _score(rule, best[0]):
            best = found, lag
    return best


def _is_wanted(rule: PairRule, found: float) -> bool:
    return (rule.above is not None and found > rule.above) or (rule.below is not None and found < rule.below)


def _score(rule: PairRule, found: float) -> float:
    """By which of two correlations is the one of more of it: on the side that is asked for, or on both."""
    if rule.below is None:
        return found
    return -found if rule.above is None else abs(found)


def correlation(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's correlation of two columns; None where one does not vary.

    It is the corrected two-pass formula (Chan, Golub and LeVeque, 1983), over values that are scaled by
    powers of two, so that no square is too large or too small.
    """
    count = len(left)
    one, other = _deviations(left), _deviations(right)
    sums, squares = [], []
    for part in (one, other):
        total = square = 0.0
        for value in part:
            total += value
            square += value * value
        sums.append(total)
        squares.append(square - total * total / count)
    if min(left) == max(left) or min(right) == max(right) or not min(squares) > 0:
        return None
    products = 0.0
    for x, y in zip(one, other, strict=True):
        products += x * y
    found = (products - sums[0] * sums[1] / count) / (math.sqrt(squares[0]) * math.sqrt(squares[1]))
    return max(-1.0, min(1.0, found))


def _deviations(values: Sequence[float]) -> list[float]:
    """The distances from the mean, the largest of them between 1/2 and 1."""
    scaled = _scaled(values)
    total = 0.0
    for value in scaled:
        total += value
    mean = total / len(scaled)
    return _scaled([value - mean for value in scaled])


def _scaled(values: Sequence[float]) -> list[float]:
    shift = max(math.frexp(max(map(abs, values)))[1], _SMALLEST_SHIFT)
    factor = math.ldexp(1.0, -shift)
    return [value * factor for value in values]


def of_sequence(call: AggregateCall, values: Sequence[Any]) -> float | None:
    """AUTOCORR, EWMA or EWM_STDDEV of values none of which is NULL; NaN where one is not finite."""
    (constant,) = call.others
    assert isinstance(constant, Literal)
    number: Any = constant.value
    if call.function == "AUTOCORR":
        if len(values) < number + 2:
            return None
        if not all(map(math.isfinite, values)):
            return math.nan
        return correlation(values[:-number], values[number:])
    if len(values) < (1 if call.function == "EWMA" else 2):
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    total = weight = squares = 0.0
    rest = 1.0 - number
    for value in values:
        total = total * rest + value
        weight = weight * rest + 1.0
        squares = squares * rest * rest + 1.0
    mean = total / weight
    if call.function == "EWMA":
        return mean
    spare = weight * weight - squares
    if spare <= 0:
        return None
    spread = 0.0
    for value in values:
        spread = spread * rest + (value - mean) * (value - mean)
    return 0.0 if min(values) == max(values) else math.sqrt(spread * weight / spare)


def shape_distance(values: Sequence[Any], pattern: Sequence[Any]) -> float | None:
    """The distance of the last values from a pattern of so many, by their shapes.

    Both are standardised: less their mean, in deviations of a population. Their Euclidean distance is from 0
    to twice the square root of their number. What does not vary is 0 from what does not either, and the
    square root of their number from anything else, as if half correlated (`stumpy`).

    Returns:
        None where a value is NULL, or there are too few; NaN where one is not finite.
    """
    count = len(pattern)
    if count < 2 or count > len(values) or None in (*values, *pattern):
        return None
    if not all(map(math.isfinite, (*values, *pattern))):
        return math.nan
    return _distance(values[len(values) - count :], pattern)


def discord(values: Sequence[Any], count: int) -> float | None:
    """The distance of so many last values from the run of as many before them that is most alike.

    A run counts that begins more than a quarter of their number before them.

    Returns:
        None where a value is NULL, or there are too few; NaN where one is not finite.
    """
    last = len(values) - count
    apart = -(-count // 4)
    runs = [values[start : start + count] for start in range(last) if last - start > apart]
    if count < 2 or not runs or None in values:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    return min(_distance(values[last:], run) for run in runs)


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    left, right = _standardised(one), _standardised(other)
    if left is None or right is None:
        return 0.0 if left is right else math.sqrt(len(one))
    total = 0.0
    for x, y in zip(left, right, strict=True):
        total += (x - y) * (x - y)
    return math.sqrt(total)


def _standardised(values: Sequence[float]) -> list[float] | None:
    numbers = [float(value) for value in values]
    if min(numbers) == max(numbers):
        return None
    parts = _deviations(numbers)
    total = square = 0.0
    for value in parts:
        total += value
        square += value * value
    square -= total * total / len(parts)
    if not square > 0:
        return None
    factor = math.sqrt(len(parts) / square)
    return [value * factor for value in parts]


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"SHAPE_DISTANCE": shape_distance, "DISCORD": discord}
"""Functions of ARRAYs of numbers; none of their arguments is NULL."""
