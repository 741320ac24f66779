"""The plans of rows with aggregates over their frames: OVER, joins with a whole partition, or places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from headrace.algebra.failure import can_fail
from headrace.algebra.frames import Frame
from headrace.algebra.kinds import JoinKind, Ranking
from headrace.algebra.nodes import (
    Aggregate,
    Join,
    OuterJoin,
    Over,
    Plan,
    Project,
    TimeWindow,
    TopK,
    column,
)
from headrace.algebra.nulls import null_safe_key
from headrace.expressions.functions import functions
from headrace.expressions.tree import (
    AggregateCall,
    Column,
    Expression,
    SortKey,
    expressions_of,
    transform_call,
    transform_columns,
)
from headrace.language.binding.over.frames import BoundedFrame, Ordered, PlaceFrame, Whole
from headrace.schema import unique_names


def with_frames(
    plan: Plan, keys: tuple[Expression, ...], calls: Sequence[tuple[Frame, AggregateCall]]
) -> Plan:
    """The plan's rows, each with aggregates over frames of its partition after its columns."""
    wide = _Wide.of(plan, keys, [call for _, call in calls])
    moved = [wide.call(call) for _, call in calls]
    columns = tuple(key for key in map(wide.part, keys) if isinstance(key, Column))
    frames = (frame for frame, _ in calls)
    return wide.without_hidden(
        Over(wide.plan, columns, tuple(zip(wide.names(moved), moved, frames, strict=True)))
    )


def with_bounded(plan: Plan, rows: Plan, scope: BoundedFrame, calls: Sequence[AggregateCall]) -> Plan:
    """The plan's rows, each with aggregates over what a window within bounds has at the row's instant.

    Args:
        plan: the rows; their columns begin with those of the window's.
        rows: the rows that the window is over, of an instant each.
        scope: the partition and the window.
        calls: the aggregates.
    """
    wide, framed = _Wide.of(plan, scope.keys, ()), _Wide.of(rows, scope.keys, calls)
    moved = [framed.call(call) for call in calls]
    keys, others = ([one.part(key) for key in scope.keys] for one in (wide, framed))
    window = TimeWindow(framed.plan, scope.largest, smallest=scope.smallest)
    named = tuple(zip(wide.names(moved), moved, strict=True))
    return wide.without_hidden(_joined(wide.plan, keys, named, window, others), len(calls))


def with_scope(plan: Plan, scope: Whole | PlaceFrame | Ordered, calls: Sequence[AggregateCall]) -> Plan:
    """The plan's rows, each with aggregates over its partition, or a part of that, or its place behind it."""
    sorts = [] if isinstance(scope, Whole) else [key.expression for key in scope.order]
    wide = _Wide.of(plan, (*scope.keys, *sorts), calls)
    keys = [wide.part(key) for key in scope.keys]
    moved = [wide.call(call) for call in calls]
    names = wide.names(moved)
    match scope:
        case PlaceFrame(order=order, ranking=ranking):
            columns = tuple(key for key in keys if isinstance(key, Column))
            by = tuple(replace(key, expression=wide.part(key.expression)) for key in order)
            return wide.without_hidden(TopK(wide.plan, columns, by, number=names[-1], ranking=ranking))
        case Ordered(order=order):
            by = tuple(replace(key, expression=wide.part(key.expression)) for key in order)
            joined = _around(wide.plan, keys, by, scope, tuple(zip(names, moved, strict=True)))
            return wide.without_hidden(joined, len(calls))
        case Whole():
            joined = _joined(wide.plan, keys, tuple(zip(names, moved, strict=True)))
            return wide.without_hidden(joined, len(calls))
        case _:
            assert_never(scope)


@dataclass(frozen=True)
class _Wide:
    """A plan with columns that calls read and that nobody sees: keys, sort keys, and what may fail.

    Attributes:
        input: the rows without them.
        plan: the rows with them.
        hidden: the columns that were added, by what they hold.
    """

    input: Plan
    plan: Plan
    hidden: dict[Expression, Column]

    @classmethod
    def of(cls, plan: Plan, keys: Sequence[Expression], calls: Sequence[AggregateCall]) -> _Wide:
        parts = [part for call in calls for part in expressions_of(call)]
        hidden = [part for part in dict.fromkeys((*parts, *keys)) if can_fail(part) or part in keys]
        hidden = [part for part in hidden if not isinstance(part, Column)]
        wide = _with_columns(plan, hidden)
        places = enumerate(hidden, len(plan.schema))
        return cls(plan, wide, {part: column(wide, place) for place, part in places})

    def part(self, expression: Expression) -> Expression:
        return self.hidden.get(expression, expression)

    def call(self, call: AggregateCall) -> AggregateCall:
        return transform_call(call, self.part)

    def names(self, calls: Sequence[AggregateCall]) -> list[str]:
        """Names for the columns that calls add."""
        taken = self.plan.schema.names
        return unique_names([*taken, *(call.function.lower() for call in calls)])[len(taken) :]

    def without_hidden(self, result: Plan, added: int | None = None) -> Plan:
        """The columns of the input and those that were added last; by default all that follow the plan's."""
        width = len(self.input.schema)
        added = len(result.schema) - len(self.plan.schema) if added is None else added
        kept = [*range(width), *range(len(result.schema) - added, len(result.schema))]
        if len(kept) == len(result.schema):
            return result
        names = unique_names([result.schema[place].name for place in kept])
        items = zip(names, kept, strict=True)
        return Project(result, tuple((name, column(result, place)) for name, place in items))


def _joined(
    plan: Plan,
    keys: list[Expression],
    named: tuple[tuple[str, AggregateCall], ...],
    window: Plan | None = None,
    its_keys: list[Expression] | None = None,
) -> Plan:
    """Each row joined with the aggregate of its whole partition, or of that of a window.

    A join takes NULL as equal to nothing, and a partition does not: keys are compared as a value that is not
    NULL, and whether it is.
    """
    wide, matched = _with_matched(plan, keys)
    content, its = (wide, matched) if window is None else _with_matched(window, its_keys or [])
    grouped = Aggregate(content, tuple((key.name, key) for key in its), named)
    equalities = tuple((key, column(grouped, place)) for place, key in enumerate(matched))
    names = unique_names([*wide.schema.names, *grouped.schema.names])
    return Join(wide, grouped, equalities, None, tuple(names))


def _with_matched(plan: Plan, keys: list[Expression]) -> tuple[Plan, list[Column]]:
    """A plan with columns by which keys are equal where NULL is, too; and these columns."""
    parts = [part for key in keys for part in null_safe_key(key)]
    wide = _with_columns(plan, parts)
    return wide, [column(wide, len(plan.schema) + place) for place in range(len(parts))]


def _around(
    plan: Plan,
    keys: list[Expression],
    order: tuple[SortKey, ...],
    scope: Ordered,
    named: tuple[tuple[str, AggregateCall], ...],
) -> Plan:
    """Each row with aggregates over the rows of some places around its own.

    Rows get their places, and a number that no two of a partition share. Each is joined with the rows of its
    frame, and the pairs of one row are aggregated.
    """
    columns = tuple(key for key in keys if isinstance(key, Column))
    place, number = unique_names([*plan.schema.names, "place", "number"])[-2:]
    numbered = TopK(plan, columns, order, number=place, ranking=scope.ranking)
    if scope.ranking is not Ranking.ROW_NUMBER:
        numbered = TopK(numbered, columns, order, number=number)
    parts = [part for key in keys for part in null_safe_key(key)]
    rows = _with_columns(numbered, parts)
    width = len(rows.schema)
    own = column(rows, len(plan.schema))
    matched = [column(rows, len(numbered.schema) + number) for number in range(len(parts))]
    equalities: tuple[tuple[Expression, Expression], ...] = tuple((part, part) for part in matched)
    residual = None
    if scope.first is not None and scope.first == scope.last:
        before = functions.resolve("-", (own, functions.literal(scope.first)))
        equalities = (*equalities, (before, own))
    else:
        residual = _within(scope, own, _moved(own, width))
    both = tuple(unique_names([*rows.schema.names, *rows.schema.names]))
    calls = [transform_call(call, lambda part: _moved(part, width)) for _, call in named]
    pairs: Plan
    if scope.has_own_row:
        pairs = Join(rows, rows, equalities, residual, both)
    else:
        # A row with an empty frame is beside NULLs, which no aggregate counts.
        pairs = OuterJoin(rows, rows, equalities, residual, both, JoinKind.LEFT)
        there = functions.resolve("IS NOT NULL", (_moved(own, width),))
        calls = [replace(call, condition=_and(call.condition, there)) for call in calls]
    listed = tuple((name, column(pairs, at)) for at, name in enumerate(numbered.schema.names))
    return Aggregate(pairs, listed, tuple(zip((name for name, _ in named), calls, strict=True)))


def _within(scope: Ordered, own: Expression, other: Expression) -> Expression | None:
    """Whether another place is in the frame of a place; None if all are."""
    bounds = [(">=", scope.first), ("<=", scope.last)]
    tests = [
        functions.resolve(operator, (other, functions.resolve("-", (own, functions.literal(before)))))
        for operator, before in bounds
        if before is not None
    ]
    return functions.resolve("AND", tuple(tests)) if len(tests) > 1 else next(iter(tests), None)


def _and(one: Expression | None, other: Expression) -> Expression:
    return other if one is None else functions.resolve("AND", (one, other))


def _moved(part: Expression, width: int) -> Expression:
    """An expression whose columns have come behind so many others."""
    return transform_columns(part, lambda one: replace(one, index=one.index + width))


def _with_columns(plan: Plan, parts: list[Expression]) -> Plan:
    if not parts:
        return plan
    names = unique_names([*plan.schema.names, *("key" for _ in parts)])
    items = [(field.name, column(plan, place)) for place, field in enumerate(plan.schema)]
    return Project(plan, (*items, *zip(names[len(items) :], parts, strict=True)))
