"""The sums of which estimates of a join of two streams are made: pairs of a key are kept together.

A key is kept or left out as a whole, so that what its pairs add is not independent. With w for the weight of
a pair, the share being the smaller one of its two rows, what pairs a and b of one key add to the variance of
a sum is estimated by (w_a w_b - max(w_a, w_b)) y_a y_b (Horvitz and Thompson). Of pairs of one weight that
is, over all of a key, (sum of w y) (sum of (w - 1) y), and of positive numbers no more if weights differ. So
two sums for each key do: of y and of (w - 1) y. The exact sums are over the pairs as they come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from headrace.algebra.nodes import Aggregate, Plan, Project, Union, column
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.functions.functions import literal, make_case, make_cast, resolve
from headrace.expressions.tree import AggregateCall, Column, Expression, Literal
from headrace.optimizer.estimates.deviations import ONE, ZERO, Dual, plus, times
from headrace.optimizer.estimates.totals import LEAST_ROWS, TINY, EstimateSums, Part
from headrace.schema import DOUBLE, unique_names


@dataclass
class ClusterSums(EstimateSums):
    """The sums where the last column of the rows is what their key has drawn.

    They are over the rows, and over one row more for each key: behind the columns of the rows it has those of
    the groups, and then of each sum that over the pairs of its key and that of what these stand for besides.
    """

    def grouped(self, groups: Aggregate) -> Aggregate:
        """Groups of the rows and the keys with these sums."""
        names = unique_names([*self.rows.schema.names, *groups.schema.names[: self.keys]])
        width = len(self.rows.schema)
        rows = [column(self.rows, place) for place in range(width)]
        keys = [part for _, part in groups.keys]
        added = unique_names([*names, *(f"of_key{place}" for place in range(2 * len(self.parts)))])
        nothing = [Literal(None, DOUBLE)] * (2 * len(self.parts))
        alone = Project(self.rows, tuple(zip(added, (*rows, *keys, *nothing), strict=True)))
        clusters = self._clusters(groups)
        nulls = [Literal(None, field.type) for field in self.rows.schema]
        # What a key has drawn lies between the groups and the sums, and is of no more use.
        places = [*range(self.keys), *range(self.keys + 1, len(clusters.schema))]
        taken = [column(clusters, place) for place in places]
        values = [*taken[: self.keys], *(resolve("COALESCE", (one, ZERO)) for one in taken[self.keys :])]
        together = Project(clusters, tuple(zip(added, (*nulls, *values), strict=True)))
        whole = Union((alone, together))
        by = tuple((name, column(whole, width + place)) for place, (name, _) in enumerate(groups.keys))
        return replace(groups, input=whole, keys=by, aggregates=self.named())

    def _clusters(self, groups: Aggregate) -> Plan:
        """The pairs that stand for others, by group and key; all else is as of a key that adds nothing."""
        several = resolve(">", (self.weight, ONE))
        drawn = column(self.rows, len(self.rows.schema) - 1)
        calls = [self._of_pairs(value, part, several) for part in self.parts for value in self._values(part)]
        sums = map("sum{}".format, range(len(calls)))
        names = unique_names([*(name for name, _ in groups.keys), "drawn", *sums])
        keys = (*(part for _, part in groups.keys), make_case(((several, drawn),), None))
        by, named = names[: len(keys)], names[len(keys) :]
        return Aggregate(
            self.rows,
            tuple(zip(by, keys, strict=True)),
            tuple(zip(named, calls, strict=True)),
            settled=True,
        )

    def _of_pairs(self, value: Expression, part: Part, several: Expression) -> AggregateCall:
        condition = several if part.condition is None else resolve("AND", (part.condition, several))
        return replace(resolve_aggregate("SUM", value), condition=condition)

    def _values(self, part: Part) -> tuple[Expression, Expression]:
        """The number that a pair adds to a sum, and what it stands for besides adds (DOUBLEs)."""
        value = ONE if part.value is None else make_cast(part.value, DOUBLE)
        return value, times(self.more, value)

    def _of_key(self, part: Part) -> tuple[Expression, Expression]:
        """The sum over the pairs of a key, and that of what they stand for besides (DOUBLEs)."""
        place = len(self.rows.schema) + self.keys + 2 * self.number(part)
        return Column(place, f"of_key{place}", DOUBLE), Column(place + 1, f"of_key{place + 1}", DOUBLE)

    def kept(self, part: Part) -> Expression:
        """The sum over the pairs that are kept, of the type that the answer has."""
        name = "COUNT" if part.value is None else "SUM"
        call = resolve_aggregate(name, part.value)
        return self._exact(replace(call, condition=part.condition))

    def _exact(self, call: AggregateCall) -> Column:
        """An aggregate of the pairs alone."""
        pair = resolve("IS NOT NULL", (self.weight,))
        condition = pair if call.condition is None else resolve("AND", (pair, call.condition))
        return self._column(replace(call, condition=condition))

    def missing(self, part: Part) -> Expression:
        """The estimated sum over the pairs that are not kept (a DOUBLE)."""
        _, others = self._of_key(part)
        return self._total(others)

    def enough(self, dual: Dual) -> Expression:
        """Whether enough keys are kept that stand for others, and add something to each sum."""
        found: dict[Expression, None] = {}
        for part in self._of(dual):
            _, others = self._of_key(part)
            call = replace(resolve_aggregate("COUNT", None), condition=resolve("<>", (others, ZERO)))
            found[resolve(">=", (self._column(call), literal(LEAST_ROWS)))] = None
        return reduce(lambda left, right: resolve("AND", (left, right)), found)

    def _size(self, part: Part) -> Expression:
        """The part that the larger of the kept keys would add to a variance (a DOUBLE)."""
        pairs, others = self._of_key(part)
        variance = self._covariance(part, part)
        fourth = self._total(times(times(plus(pairs, others), others), times(pairs, pairs)))
        return resolve("/", (fourth, resolve("GREATEST", (times(variance, variance), literal(TINY)))))

    def _covariance(self, one: Part, other: Part) -> Expression:
        (mine, more), (yours, further) = self._of_key(one), self._of_key(other)
        first = times(plus(mine, more), further)
        if one == other:
            return self._total(first)
        return self._total(times(literal(0.5), plus(first, times(plus(yours, further), more))))

    def _total(self, value: Expression) -> Expression:
        """A sum over the keys; 0 where there is none."""
        return resolve("COALESCE", (self._column(resolve_aggregate("SUM", value)), ZERO))
