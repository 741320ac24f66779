"""The plans of rows with aggregates over their frames: OVER, joins with a whole partition, or places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from headrace.algebra.failure import can_fail
from headrace.algebra.frames import Frame
from headrace.algebra.nodes import Aggregate, Join, Over, Plan, Project, TopK, column
from headrace.algebra.nulls import null_safe_key
from headrace.expressions.tree import AggregateCall, Column, Expression, expressions_of, transform_call
from headrace.language.binding.over.frames import Places, Whole
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


def with_scope(plan: Plan, scope: Whole | Places, calls: Sequence[AggregateCall]) -> Plan:
    """The plan's rows, each with aggregates over its whole partition, or its place, after its columns."""
    sorts = [key.expression for key in scope.order] if isinstance(scope, Places) else []
    wide = _Wide.of(plan, (*scope.keys, *sorts), calls)
    keys = [wide.part(key) for key in scope.keys]
    moved = [wide.call(call) for call in calls]
    names = wide.names(moved)
    match scope:
        case Places(order=order, ranking=ranking):
            columns = tuple(key for key in keys if isinstance(key, Column))
            by = tuple(replace(key, expression=wide.part(key.expression)) for key in order)
            return wide.without_hidden(TopK(wide.plan, columns, by, number=names[-1], ranking=ranking))
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


def _joined(plan: Plan, keys: list[Expression], named: tuple[tuple[str, AggregateCall], ...]) -> Plan:
    """Each row joined with the aggregate of its whole partition.

    A join takes NULL as equal to nothing, and a partition does not: keys are compared as a value that is not
    NULL, and whether it is.
    """
    parts = [part for key in keys for part in null_safe_key(key)]
    wide = _with_columns(plan, parts)
    matched = [column(wide, len(plan.schema) + place) for place in range(len(parts))]
    grouped = Aggregate(wide, tuple((key.name, key) for key in matched), named)
    equalities = tuple((key, column(grouped, place)) for place, key in enumerate(matched))
    names = unique_names([*wide.schema.names, *grouped.schema.names])
    return Join(wide, grouped, equalities, None, tuple(names))


def _with_columns(plan: Plan, parts: list[Expression]) -> Plan:
    if not parts:
        return plan
    names = unique_names([*plan.schema.names, *("key" for _ in parts)])
    items = [(field.name, column(plan, place)) for place, field in enumerate(plan.schema)]
    return Project(plan, (*items, *zip(names[len(items) :], parts, strict=True)))
