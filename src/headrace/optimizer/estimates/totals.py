"""The sums over kept rows of which estimates and their bounds are made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations_with_replacement
from typing import Final

import pyarrow as pa

from headrace.algebra.nodes import Aggregate, Plan, column
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.functions.functions import literal, make_case, make_cast, resolve
from headrace.expressions.tree import AggregateCall, Column, Expression
from headrace.optimizer.estimates.deviations import ONE, ZERO, Dual, plus, quotient, times
from headrace.schema import BIGINT, DOUBLE

LEAST_ROWS: Final = 10
"""Of so many kept rows that stand for others there are bounds: a sum of fewer is not normally distributed."""
TINY: Final = 1e-300
"""A divisor in the place of 0."""
_ROUNDED: Final = 2.0**-50
"""By no more than this part of it a sum of two numbers is rounded, of which one was rounded before."""
UNSEEN: Final = 3.0
"""A variance is reckoned with so many rows more, of the largest weight and as large as the larger ones are.

Of a few rows that may be missing, where the share becomes smaller or values are not alike, none may be kept.
"""


@dataclass(frozen=True)
class Part:
    """A COUNT or a SUM.

    Attributes:
        value: what a row adds; None for 1.
        condition: which rows add something, or None for all.
        type: the type of the answer.
    """

    value: Expression | None
    condition: Expression | None
    type: pa.DataType


def parts_of(call: AggregateCall) -> tuple[Part, ...]:
    """The one sum that an aggregate is; of AVG the sum and the count."""
    condition, value = call.condition, call.argument
    if value is not None:
        given = resolve("IS NOT NULL", (value,))
        condition = given if condition is None else resolve("AND", (condition, given))
    count = Part(None, condition, BIGINT)
    if call.function == "COUNT" or value is None:
        return (count,)
    if call.function == "SUM":
        return (Part(value, condition, call.type),)
    return (Part(make_cast(value, DOUBLE), condition, DOUBLE), count)


@dataclass
class EstimateSums:
    """Collects the aggregates that are needed, each once.

    Attributes:
        rows: the weighed rows.
        keys: how many columns of the groups come before those of the sums.
        by_size: whether large rows are kept more often.
        calls: the sums so far.
    """

    rows: Plan
    keys: int
    by_size: bool = False
    calls: dict[AggregateCall, int] = field(default_factory=dict)
    parts: dict[Part, int] = field(default_factory=dict)

    def grouped(self, groups: Aggregate) -> Aggregate:
        """Groups of the rows with these sums.

        Args:
            groups: the groups of the rows, without sums.
        """
        return replace(groups, aggregates=self.named())

    def named(self) -> tuple[tuple[str, AggregateCall], ...]:
        """The aggregates with names."""
        return tuple((f"total{place}", call) for call, place in self.calls.items())

    def number(self, part: Part) -> int:
        """The number of a sum."""
        return self.parts.setdefault(part, len(self.parts))

    @property
    def weight(self) -> Expression:
        """The weight of a kept row, which it stands for (a DOUBLE)."""
        return column(self.rows, len(self.rows.schema) - 2)

    @property
    def count(self) -> Expression:
        """The number of equal rows of its instant that it is (a BIGINT)."""
        return column(self.rows, len(self.rows.schema) - 1)

    @property
    def more(self) -> Expression:
        """The number of others that it stands for: w - 1."""
        return resolve("-", (self.weight, ONE))

    @property
    def spread(self) -> Expression:
        """The part that it adds to a variance: w (w - 1)."""
        return times(self.weight, self.more)

    def kept(self, part: Part) -> Expression:
        """The sum over the rows that are kept, of the type that the answer has: without a row's equals.

        So it does not overflow where the exact sum does not, and is that where all rows are kept.
        """
        total = self._sum(self.count if part.value is None else part.value, part.condition)
        return resolve("COALESCE", (total, literal(0))) if part.value is None else total

    def missing(self, part: Part) -> Expression:
        """The estimated sum over the others: their equals, and those that are not kept (a DOUBLE)."""
        if part.value is None:
            return self._double(times(self.more, make_cast(self.count, DOUBLE)), part.condition)
        others = resolve("-", (times(self.weight, make_cast(self.count, DOUBLE)), ONE))
        return self._double(times(others, make_cast(part.value, DOUBLE)), part.condition)

    def whole(self, part: Part) -> Dual:
        """The estimated sum over all rows, with itself as its only derivative."""
        return Dual(self._estimate(part), {self.number(part): ONE})

    def _estimate(self, part: Part) -> Expression:
        return plus(make_cast(self.kept(part), DOUBLE), self.missing(part))

    def mean(self, parts: tuple[Part, ...]) -> Dual:
        """The quotient of a sum and a count."""
        return quotient(*map(self.whole, parts))

    def typed(self, call: AggregateCall, largest: Expression) -> Expression:
        """An estimated aggregate, of the type that it has without loss; NULL where that is too small.

        The exact answer may fit where the estimate does not.

        Args:
            call: the aggregate.
            largest: the largest weight: where it is 1, the answer is the aggregate of the rows.
        """
        parts, exact = parts_of(call), resolve("=", (largest, ONE))
        if len(parts) > 1:
            some = resolve(">", (self.whole(parts[1]).value, ZERO))
            mean = make_cast(self.mean(parts).value, call.type)
            return make_case(((exact, self._exact(call)), (some, mean)), None)
        (part,) = parts
        missing = self.missing(part)
        if call.type == BIGINT:
            missing = resolve("ROUND", (missing,))
        kept = self.kept(part)
        total = make_cast(resolve("+", (kept, make_cast(missing, call.type))), call.type)
        # A COUNT always fits: a row stands for a million at most.
        if part.value is None or call.type == DOUBLE:
            return make_case(((exact, kept),), total)
        fits = _both(_fits(missing, call.type), _fits(self._estimate(part), call.type))
        return make_case(((exact, kept), (fits, total)), None)

    def variance(self, dual: Dual) -> Expression:
        """The estimated variance of what is computed of estimates (a DOUBLE)."""
        parts = {number: part for part, number in self.parts.items()}
        total: Expression = ZERO
        for one, other in combinations_with_replacement(sorted(dual.slopes), 2):
            slopes = times(dual.slopes[one], dual.slopes[other])
            both = times(slopes, self._covariance(parts[one], parts[other]))
            total = plus(total, both if one == other else times(literal(2.0), both))
        return resolve("GREATEST", (total, ZERO))

    def enough(self, dual: Dual) -> Expression:
        """Whether enough rows are kept that stand for others, so that there are bounds.

        Of a SUM only rows count that add something: a value that is 0 says nothing of those that are not.
        """
        several = resolve(">", (self.weight, ONE))
        found: dict[Expression, None] = {}
        for part in self._of(dual):
            conditions = [one for one in (part.condition, several) if one is not None]
            if part.value is not None:
                conditions.append(resolve("<>", (part.value, literal(0))))
            condition = reduce(lambda left, right: resolve("AND", (left, right)), conditions)
            rows = self._column(replace(resolve_aggregate("COUNT", None), condition=condition))
            found[resolve(">=", (rows, literal(LEAST_ROWS)))] = None
        return reduce(lambda left, right: resolve("AND", (left, right)), found)

    def unseen(self, dual: Dual, largest: Expression) -> Expression:
        """By what factor a variance is larger with some rows more of the largest weight (a DOUBLE)."""
        parts = {number: part for part, number in self.parts.items()}
        factors = tuple(
            times(self._more_of(parts[number], largest), self._size(parts[number]))
            for number in sorted(dual.slopes)
        )
        return plus(ONE, factors[0] if len(factors) == 1 else resolve("GREATEST", factors))

    def _more_of(self, part: Part, largest: Expression) -> Expression:
        """So many rows more are reckoned with, times what their weight adds to a variance (a DOUBLE)."""
        if self._by_size(part):
            return times(literal(UNSEEN), self._rarer(largest))
        return times(literal(UNSEEN), times(largest, resolve("-", (largest, ONE))))

    def _by_size(self, part: Part) -> bool:
        """Whether rows are kept more often that add much to a sum."""
        return self.by_size and part.value is not None

    def _size(self, part: Part) -> Expression:
        """The part that the larger of the kept rows would add to a variance (a DOUBLE)."""
        variance = self._covariance(part, part)
        if part.value is None:
            return resolve("/", (ONE, resolve("GREATEST", (variance, literal(TINY)))))
        square = times(self._amount(part), self._amount(part))
        fourth = times(self.spread, times(square, square))
        if self._by_size(part):
            fourth = times(times(self.spread, square), times(self.spread, square))
        squared = resolve("GREATEST", (times(variance, variance), literal(TINY)))
        return resolve("/", (self._double(fourth, part.condition), squared))

    def _rarer(self, largest: Expression) -> Expression:
        """The factor by which a row of usual size may add more to a variance than those kept (a DOUBLE).

        It is more than once where the share was larger in most of a window than it is in the rest.
        """
        half = times(literal(0.5), resolve("-", (largest, ONE)))
        usual = times(half, plus(ONE, half))
        spreads = self._double(self.spread, None)
        squares = self._double(times(self.spread, self.spread), None)
        present = resolve("/", (squares, resolve("GREATEST", (spreads, literal(TINY)))))
        times_as_much = resolve("/", (usual, resolve("GREATEST", (present, literal(TINY)))))
        return resolve("GREATEST", (times_as_much, ONE))

    def _of(self, dual: Dual) -> list[Part]:
        parts = {number: part for part, number in self.parts.items()}
        return [parts[number] for number in sorted(dual.slopes)]

    def _covariance(self, one: Part, other: Part) -> Expression:
        amount = times(self._amount(one), self._amount(other))
        conditions = dict.fromkeys(part.condition for part in (one, other) if part.condition is not None)
        both: Expression | None = None
        for condition in conditions:
            both = condition if both is None else resolve("AND", (both, condition))
        return self._double(times(self.spread, amount), both)

    def _amount(self, part: Part) -> Expression:
        """The sum that a row adds with its equals (a DOUBLE)."""
        count = make_cast(self.count, DOUBLE)
        return count if part.value is None else times(count, make_cast(part.value, DOUBLE))

    def _exact(self, call: AggregateCall) -> Column:
        """An aggregate of the rows as they came."""
        return self._column(call)

    def _sum(self, value: Expression, condition: Expression | None) -> Column:
        return self._column(replace(resolve_aggregate("SUM", value), condition=condition))

    def _double(self, value: Expression, condition: Expression | None) -> Expression:
        """A sum of DOUBLEs over the rows that stand for others; 0 where there is none."""
        several = resolve(">", (self.weight, ONE))
        condition = several if condition is None else resolve("AND", (condition, several))
        return resolve("COALESCE", (self._sum(value, condition), ZERO))

    def _column(self, call: AggregateCall) -> Column:
        place = self.calls.setdefault(call, len(self.calls))
        return Column(self.keys + place, f"total{place}", call.type)


def _fits(number: Expression, dtype: pa.DataType) -> Expression:
    """Whether a number (a DOUBLE) fits a type for certain, BIGINT or DECIMAL, rounded as it may be."""
    most = 2.0**63 if dtype == BIGINT else 10.0 ** (dtype.precision - dtype.scale)
    return resolve("<", (resolve("ABS", (number,)), literal(most * (1 - _ROUNDED))))


def _both(left: Expression, right: Expression) -> Expression:
    return resolve("AND", (left, right))
