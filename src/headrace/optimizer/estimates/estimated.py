"""A query of which rows may be left out: the plan that estimates its answer, with bounds beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from headrace.algebra.nodes import (
    Aggregate,
    Filter,
    Istream,
    Join,
    LargestWeight,
    Lifetime,
    Plan,
    Project,
    Rstream,
    Source,
    TimeWindow,
    Union,
    WindowBounds,
    column,
    with_inputs,
)
from headrace.algebra.properties import sources_of
from headrace.algebra.tunings.loss import Loss
from headrace.expressions.coercion import make_try_cast
from headrace.expressions.functions.functions import literal, make_case, resolve
from headrace.expressions.tree import Column, Expression, columns_of, transform_columns
from headrace.optimizer.estimates.clusters import ClusterSums
from headrace.optimizer.estimates.deviations import ONE, ZERO, Dual, dual_of, times
from headrace.optimizer.estimates.monotone import CHANGES, refused, refused_call, refused_node
from headrace.optimizer.estimates.sizes import sizes_in
from headrace.optimizer.estimates.totals import EstimateSums, parts_of
from headrace.optimizer.estimates.weighed import Weigher
from headrace.optimizer.estimates.weighed_rows import KeptSpan
from headrace.schema import BIGINT, DOUBLE, unique_names

_ARITHMETIC: Final = "bounds are known of +, -, *, / and casts of estimates alone"
_ROWS: Final = "its answer is the rows themselves"
_SAMPLE: Final = "leave out LOSS TOLERANT or WITHIN; for a part of the rows write FROM s SAMPLE(10)"
_ON_ESTIMATES: Final = "a condition may be true of an estimate, and not of the answer"


@dataclass(frozen=True)
class _Asked:
    """A condition on groups.

    Attributes:
        predicate: it, over the same columns as the answer's items.
    """

    predicate: Expression


_Above = _Asked | WindowBounds | Rstream | Istream
"""The nodes, other than projections, that may be above groups."""


def estimated(plan: Plan, optimized: Plan, loss: Loss) -> Plan:
    """The plan that estimates a query's answer of the rows that are kept.

    Behind each column of estimates are two with its bounds, which are NULL where too few rows are kept. Where
    none is left out, all three have the exact answer.

    Args:
        plan: the query's, as it was written: with all columns of its streams.
        optimized: the same, optimized.
        loss: what it says of loss.

    Raises:
        LanguageError: it has something of which nothing can be estimated.
    """
    sources = {name: _whole(plan, name) for name in {source.name for source in sources_of(plan)}}
    if not sources:
        raise refused("a query without streams", "there is nothing to leave out", loss.position)
    answer = _read(optimized, loss)
    for _, call in answer.groups.aggregates:
        if (error := refused_call(call, loss.position)) is not None:
            raise error
    return _Writing.of(answer, Weigher(sources, loss)).plan()


def _whole(plan: Plan, name: str) -> Source:
    """A stream with all columns that a plan has of it."""
    return max((one for one in sources_of(plan) if one.name == name), key=lambda one: len(one.schema))


@dataclass(frozen=True)
class _Answer:
    """An answer as groups, and what is made of them.

    Attributes:
        groups: the groups.
        above: the nodes above them, the lowest first; predicates are over the same columns as the items.
        items: the answer's columns, over those of the groups and, behind these, the start and the end of the
            window.
    """

    groups: Aggregate
    above: tuple[_Above, ...]
    items: tuple[tuple[str, Expression], ...]

    @property
    def width(self) -> int:
        """The number of columns of the groups."""
        return len(self.groups.schema)

    def is_estimate(self, expression: Expression) -> bool:
        """Whether something is computed of aggregates."""
        return any(len(self.groups.keys) <= place < self.width for place in columns_of(expression))

    def over(self, expression: Expression) -> Expression:
        """An expression over the answer, over the groups."""
        return transform_columns(expression, lambda part: self.items[part.index][1])

    def under(self, node: _Above) -> _Answer:
        """The answer with a node above it."""
        return replace(self, above=(*self.above, node))


def _read(plan: Plan, loss: Loss) -> _Answer:
    """The answer of a plan, from its aggregate on."""
    match plan:
        case Aggregate(schema=schema):
            items = tuple((field.name, column(plan, place)) for place, field in enumerate(schema))
            return _Answer(plan, (), items)
        case Project(items=items):
            below = _read(plan.input, loss)
            return replace(below, items=tuple((name, below.over(part)) for name, part in items))
        case Filter(predicate=predicate):
            below = _read(plan.input, loss)
            asked = below.over(predicate)
            if below.is_estimate(asked):
                raise refused("HAVING or WHERE on an estimate", _ON_ESTIMATES, loss.position)
            return below.under(_Asked(asked))
        case WindowBounds():
            below = _read(plan.input, loss)
            bounds = zip(plan.schema.fields[-2:], (below.width, below.width + 1), strict=True)
            added = tuple((field.name, Column(place, field.name, field.type)) for field, place in bounds)
            return replace(below.under(plan), items=(*below.items, *added))
        case Istream() | Rstream():
            below = _read(plan.input, loss)
            if isinstance(plan, Istream) and not _shows_windows(below):
                raise refused("ISTREAM", CHANGES, loss.position)
            return below.under(plan)
        case Source() | TimeWindow() | Lifetime() | Join() | Union():
            raise refused("a query without COUNT, SUM or AVG", _ROWS, loss.position, _SAMPLE)
        case _:
            raise refused_node(plan, loss.position)


def _shows_windows(answer: _Answer) -> bool:
    """Whether an answer has a bound of a window, so that all its rows are new with every window."""
    return any(isinstance(part, Column) and part.index >= answer.width for _, part in answer.items)


@dataclass(frozen=True)
class _Writing:
    """An estimated answer that is put together.

    How many sums there are is known last, so that the columns behind them have places below 0 at first.

    Attributes:
        answer: the answer.
        weigher: puts weights to rows.
        groups: the groups of weighed rows, without sums.
        span: the window.
        sizes: the names of the sizes by which rows are kept.
        totals: the sums.
    """

    answer: _Answer
    weigher: Weigher
    groups: Aggregate
    span: KeptSpan
    sizes: tuple[str, ...]
    totals: EstimateSums

    @staticmethod
    def of(answer: _Answer, weigher: Weigher) -> _Writing:
        """An answer, with weights to its rows."""
        rows = weigher.weighed(answer.groups.input, sizes_in(call for _, call in answer.groups.aggregates))
        groups = replace(answer.groups, input=rows.plan, aggregates=(), settled=True)
        keys = len(groups.keys)
        by_key, by_size = ClusterSums(rows.plan, keys), EstimateSums(rows.plan, keys, bool(rows.sizes))
        totals = by_key if rows.clustered else by_size
        return _Writing(answer, weigher, groups, rows.span, rows.sizes, totals)

    @property
    def loss(self) -> Loss:
        """The clause of the query about loss."""
        return self.weigher.loss

    def plan(self) -> Plan:
        """The plan, with bounds beside estimates.

        Estimates and how far their bounds are away are computed first, since both bounds need them.
        """
        inner: list[tuple[str, Expression]] = []
        beside: list[int] = []
        for name, expression in self.answer.items:
            value = self._of_totals(expression)
            inner.append((name, value))
            more = (
                (*self._spread(expression, value), *self._least(expression))
                if self.answer.is_estimate(expression)
                else ()
            )
            inner += zip((f"{name}_at", f"{name}_width", f"{name}_least"), more, strict=False)
            beside.append(len(more))
        groups = self.totals.grouped(self.groups)
        streams, text = self.weigher.streams, self.loss.text
        base: Plan = LargestWeight(groups, streams, text, (), *self.span, self.sizes)
        width = len(groups.schema)
        for node in self.answer.above:
            if isinstance(node, _Asked):
                base = Filter(base, _placed(self._of_totals(node.predicate), width))
            else:
                base = with_inputs(node, (base,))
        names = unique_names([name for name, _ in inner])
        values = Project(
            base, tuple((name, _placed(part, width)) for name, (_, part) in zip(names, inner, strict=True))
        )
        return _with_bounds(values, [name for name, _ in self.answer.items], beside)

    def _of_totals(self, expression: Expression) -> Expression:
        """An expression over the groups, over keys and sums."""
        return transform_columns(expression, self._of_column)

    def _of_column(self, part: Column) -> Expression:
        keys, width = len(self.groups.keys), self.answer.width
        if part.index < keys:
            return part
        if part.index >= width:
            return self._of_constant(part)
        _, call = self.answer.groups.aggregates[part.index - keys]
        return self.totals.typed(call, _LARGEST)

    def _of_constant(self, part: Column) -> Column:
        """A column of the answer that holds no estimate, at its place above the groups."""
        if part.index < self.answer.width:
            return part
        return replace(part, index=_BOUNDS[part.index - self.answer.width])

    def _spread(self, expression: Expression, value: Expression) -> tuple[Expression, Expression]:
        """An estimate before it is rounded, and how far its bounds are away (DOUBLEs).

        How far is 0 where no row is left out. Both are NULL where too few are kept.
        """
        dual = dual_of(transform_columns(expression, self._of_constant), self._dual)
        if dual is None or not (value.type in (BIGINT, DOUBLE) or pa.types.is_decimal(value.type)):
            raise refused("what is computed of an estimate", _ARITHMETIC, self.loss.position)
        variance = times(self.totals.variance(dual), self.totals.unseen(dual, _LARGEST))
        width = times(literal(self.loss.deviations), resolve("SQRT", (variance,)))
        exact, enough = resolve("=", (_LARGEST, ONE)), self.totals.enough(dual)
        at = make_case(((exact, ZERO), (enough, dual.value)), None)
        return at, make_case(((exact, ZERO), (enough, width)), None)

    def _least(self, expression: Expression) -> tuple[Expression, ...]:
        """The least that an answer is, for certain: of a COUNT the rows that are kept (a BIGINT)."""
        match expression:
            case Column(index=place) if len(self.groups.keys) <= place < self.answer.width:
                first, *others = parts_of(self.answer.groups.aggregates[place - len(self.groups.keys)][1])
                return () if others or first.value is not None else (self.totals.kept(first),)
            case _:
                return ()

    def _dual(self, place: int) -> Dual | None:
        keys = len(self.groups.keys)
        if not keys <= place < self.answer.width:
            return None
        parts = parts_of(self.answer.groups.aggregates[place - keys][1])
        return self.totals.mean(parts) if len(parts) > 1 else self.totals.whole(parts[0])


def _with_bounds(values: Plan, names: list[str], beside: list[int]) -> Plan:
    """The answer's columns, each that has bounds with them behind it.

    Args:
        values: the estimates; behind each that has bounds itself before it is rounded, how far these are
            away, and maybe what it is at least.
        names: the names of the answer's columns.
        beside: how many columns are behind each.
    """
    items: list[tuple[str, Expression]] = []
    place = 0
    for name, more in zip(names, beside, strict=True):
        value = column(values, place)
        items.append((name, value))
        place += 1
        if more:
            at, width = column(values, place), column(values, place + 1)
            exact = resolve("=", (width, ZERO)), value
            low, high = (_bound(sign, at, width, value.type) for sign in "-+")
            if more > 2:
                known = resolve("IS NOT NULL", (low,))
                low = make_case(((known, resolve("GREATEST", (low, column(values, place + 2)))),), None)
            items += [
                (f"{name}_{side}", make_case((exact,), bound))
                for side, bound in (("low", low), ("high", high))
            ]
            place += more
    chosen = unique_names([name for name, _ in items])
    return Project(values, tuple(zip(chosen, (part for _, part in items), strict=True)))


def _bound(sign: str, at: Expression, width: Expression, dtype: pa.DataType) -> Expression:
    """A bound of the answer's type, away from it in the direction of the sign; NULL where it does not fit."""
    bound = resolve(sign, (at, width))
    if dtype not in (BIGINT, DOUBLE):
        return make_try_cast(bound, dtype)
    fits = resolve("<", (resolve("ABS", (bound,)), literal(_TOO_LARGE if dtype == BIGINT else math.inf)))
    if dtype == BIGINT:
        bound = resolve("FLOOR" if sign == "-" else "CEIL", (bound,))
    return make_case(((fits, bound),), None)


_TOO_LARGE: Final = 2.0**63
"""A number that no BIGINT is, nor is it rounded to one."""
_LARGEST: Final = Column(-1, "largest_weight", DOUBLE)
_BOUNDS: Final = (-2, -3)
"""The places of the start and the end of the window, before those are known."""


def _placed(expression: Expression, width: int) -> Expression:
    """An expression with the places of the columns behind those of groups, of which there are so many."""
    return transform_columns(
        expression, lambda part: replace(part, index=width - 1 - part.index) if part.index < 0 else part
    )
