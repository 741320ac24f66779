"""How elements flow: how many there are per instant, how long they are valid, and which values they have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.predicates import conjuncts
from headrace.elements import Int64Array
from headrace.expressions.evaluation.evaluate import evaluate, predicate_mask
from headrace.expressions.tree import Call, Column, Expression, columns_of
from headrace.optimizer.cost.growth import ALL, Growth, codes_of, growth_of, together

_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
"""Each comparison with its operands in the other order."""

TYPICAL_SELECTIVITY: Final = 1 / 3
"""The part of rows that a filter lets through, where there is no sample to measure it on."""


@dataclass(frozen=True, eq=False)
class FlowSample:
    """Some rows of a stream that follow each other in time.

    Attributes:
        rows: n rows, in the order of their instants.
        instants: int64[n], when they begin to be valid.
        part: which part of the stream's rows of that time these are.
    """

    rows: pa.RecordBatch
    instants: Int64Array
    part: float = 1.0

    def flow(self, names: Sequence[str]) -> Flow:
        """The flow of the stream, with some of its columns."""
        return flow_of(replace(self, rows=self.rows.select(list(names))))

    def kept(self, predicate: Expression) -> FlowSample:
        """The rows for which a predicate is true."""
        mask = predicate_mask(evaluate(predicate, self.rows))
        return replace(self, rows=self.rows.filter(pa.array(mask)), instants=self.instants[mask])

    def projected(self, items: Sequence[tuple[str, Expression]]) -> FlowSample:
        """The rows with the values of expressions as columns; a value that cannot be computed is NULL."""
        values = [evaluate(expression, self.rows).values for _, expression in items]
        rows = pa.RecordBatch.from_arrays(values, names=[name for name, _ in items])
        return replace(self, rows=rows)

    def codes(self, keys: Sequence[Expression]) -> Int64Array:
        """int64[n]: equal numbers for equal values of the keys."""
        return codes_of([evaluate(key, self.rows).values for key in keys], len(self.instants))

    def codes_with(
        self, keys: Sequence[Expression], other: FlowSample, others: Sequence[Expression]
    ) -> tuple[Int64Array, Int64Array]:
        """int64[n] and int64[m]: equal numbers for equal values of keys, here and in another sample.

        As in a join NULL equals nothing.
        """
        mine, theirs = (
            [evaluate(key, sample.rows).values for key in wanted]
            for sample, wanted in ((self, keys), (other, others))
        )
        rows = len(self.instants)
        both = [pa.concat_arrays(pair) for pair in zip(mine, theirs, strict=True)]
        codes = codes_of(both, rows + len(other.instants))
        absent = np.zeros(len(codes), dtype=np.bool_)
        for values in both:
            absent |= np.asarray(values.is_null())
        return np.where(absent, -1, codes)[:rows], np.where(absent, -2, codes)[rows:]


@dataclass(frozen=True, eq=False)
class FlowCounts:
    """The counts of a stream of which no rows are at hand.

    Attributes:
        rate: rows per instant.
        values: of some columns how many different values they have. Those of others are taken to be all
            different.
    """

    rate: float
    values: Mapping[str, Growth] = field(default_factory=dict)

    def flow(self, names: Sequence[str]) -> Flow:
        """The flow of the stream, with some of its columns."""
        return Flow(self.rate, 1.0, 1.0, tuple(self.values.get(name, ALL) for name in names))


@dataclass(frozen=True, eq=False)
class Flow:
    """How the elements of a stream flow, on average.

    Attributes:
        rate: elements per instant: one over the thesis' d.
        lifetime: for how long one is valid (instants), infinite without end: the thesis' l.
        step: elements begin and end at multiples of it (instants): the thesis' g.
        values: per column how many different values there are.
        sample: some of the rows, or None where they are not known.
        is_open: whether it is not known yet when those end that are valid: never, or as soon as others come.
        is_replaced: whether each ends where another one of the same group begins.
        extremes: of columns that are the largest or the smallest of some rows the number of rows, by place;
            negative for the smallest.
    """

    rate: float
    lifetime: float
    step: float
    values: tuple[Growth, ...]
    sample: FlowSample | None = None
    is_open: bool = False
    is_replaced: bool = False
    extremes: Mapping[int, float] = field(default_factory=dict)

    @property
    def live(self) -> float:
        """How many elements are valid at an instant."""
        return self.rate * self.lifetime

    def growth(self, keys: Sequence[Expression]) -> Growth:
        """How many different values of some keys there are."""
        if self.sample is not None and len(self.sample.instants):
            return growth_of(self.sample.codes(keys))
        return together([self._growth_of(key) for key in keys])

    def among_first(self, keys: Sequence[Expression], most: float, rows: float) -> float:
        """How many of so many rows are left, if at most so many have the same values of some keys."""
        left = min(rows, most * self.growth(keys).at(rows))
        if self.sample is None or not len(self.sample.instants):
            return left
        return min(left, growth_of(self.sample.codes(keys), most).at(rows))

    def where(self, predicate: Expression) -> Flow:
        """The elements for which a predicate is true."""
        kept = None if self.sample is None else self.sample.kept(predicate)
        return replace(self, rate=self.rate * self.selectivity(predicate), sample=kept)

    def selectivity(self, predicate: Expression) -> float:
        """The part of the rows for which a predicate is true, as measured on the sample."""
        if self.sample is None or not len(self.sample.instants):
            found = [self._beyond(part) for part in conjuncts(predicate)]
            known = math.prod(part for part in found if part is not None)
            return known if None not in found else known * TYPICAL_SELECTIVITY
        some = int(np.count_nonzero(predicate_mask(evaluate(predicate, self.sample.rows))))
        return max(some, 0.5) / len(self.sample.instants)

    def _beyond(self, part: Expression) -> float | None:
        """The part of rows for which a comparison with the largest or smallest of others is true.

        Of n + 1 rows in random order one is the largest; so that many are not below the largest of n
        others. None for any other condition.
        """
        if not isinstance(part, Call) or part.function not in _TURNED:
            return None
        name, (one, other) = part.function, part.arguments
        if not isinstance(one, Column) or not isinstance(other, Column):
            return None
        if other.index not in self.extremes:
            one, other, name = other, one, _TURNED[name]
        if other.index not in self.extremes or one.index in self.extremes:
            return None
        rows = self.extremes[other.index]
        few = 1 / (abs(rows) + 1)
        return few if name == "=" or (name[0] == ">") == (rows > 0) else 1.0

    def at_once(self, keys: Sequence[Expression]) -> float:
        """How many different values of some keys there are at an instant for each row: at most one."""
        if self.sample is None or not len(self.sample.instants):
            return 1.0
        pairs = np.unique(np.stack([self.sample.codes(keys), self.sample.instants]), axis=1)
        return float(pairs.shape[1]) / len(self.sample.instants)

    def largest_part(self, keys: Sequence[Expression], pairs: Sequence[Expression]) -> float:
        """Which part of the different values of some expressions one value of the keys has at most.

        Args:
            keys: the keys, which are among the others.
            pairs: the expressions.
        """
        if self.sample is None or not len(self.sample.instants):
            return 1 / max(self.growth(keys).at(self.live), 1.0)
        _, first = np.unique(self.sample.codes(pairs), return_index=True)
        return float(np.bincount(self.sample.codes(keys)[first]).max() / len(first))

    def _growth_of(self, key: Expression) -> Growth:
        return together([self.values[index] for index in sorted(columns_of(key))])


def lasting(live: float, rate: float) -> float:
    """How long an element is valid, by how many are at an instant and come per instant (Little's law)."""
    return max(1.0, live / rate) if rate else 1.0


def flow_of(sample: FlowSample) -> Flow:
    """How a stream flows that comes from outside, by some of its rows."""
    rows = len(sample.instants)
    span = int(sample.instants[-1] - sample.instants[0]) + 1 if rows else 1
    names = sample.rows.schema.names
    values = tuple(growth_of(codes_of([sample.rows.column(place)], rows)) for place in range(len(names)))
    return Flow(rows / span, 1.0, 1.0, values, sample)
