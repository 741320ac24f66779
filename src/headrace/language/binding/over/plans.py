"""The plans of rows with aggregates over their frames: joins with a window, windows over rows, or places."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Aggregate, Join, OverRows, Plan, Project, TimeWindow, TopK, column
from headrace.algebra.nulls import null_safe_key
from headrace.expressions.tree import AggregateCall, Column, Expression, expressions_of, transform_call
from headrace.language.binding.over.frames import Frame
from headrace.schema import unique_names


def with_frame(plan: Plan, frame: Frame, calls: list[AggregateCall]) -> Plan:
    """The plan's rows, each with the aggregates over its frame behind its columns."""
    width = len(plan.schema)
    parts = [part for call in calls for part in expressions_of(call)]
    sorts = [key.expression for key in frame.order]
    places_by = (*frame.keys, *sorts)
    hidden = [part for part in dict.fromkeys((*parts, *places_by)) if can_fail(part) or part in places_by]
    hidden = [part for part in hidden if not isinstance(part, Column)]
    wide = _with_columns(plan, hidden)
    places = {part: column(wide, width + number) for number, part in enumerate(hidden)}
    calls = [transform_call(call, lambda part: places.get(part, part)) for call in calls]
    keys = [places.get(key, key) for key in frame.keys]
    names = unique_names([*wide.schema.names, *(call.function.lower() for call in calls)])
    named = tuple(zip(names[len(wide.schema) :], calls, strict=True))
    if frame.order:
        columns = tuple(key for key in keys if isinstance(key, Column))
        order = tuple(
            replace(key, expression=places.get(key.expression, key.expression)) for key in frame.order
        )
        result: Plan = TopK(wide, columns, order, number=names[-1], ranking=frame.ranking)
    elif frame.rows:
        columns = tuple(key for key in keys if isinstance(key, Column))
        result = OverRows(wide, columns, frame.first, frame.last, named, frame.peers)
    else:
        wide, result = _joined(wide, frame, keys, named)
    kept = [*range(width), *range(len(result.schema) - len(calls), len(result.schema))]
    if len(kept) == len(result.schema):
        return result
    chosen = unique_names([result.schema[place].name for place in kept])
    return Project(
        result, tuple((name, column(result, place)) for name, place in zip(chosen, kept, strict=True))
    )


def _joined(
    plan: Plan, frame: Frame, keys: list[Expression], named: tuple[tuple[str, AggregateCall], ...]
) -> tuple[Plan, Plan]:
    """Each row joined with the aggregate of its partition's window.

    A join takes NULL as equal to nothing, and a partition does not: keys are compared as a value that is not
    NULL, and whether it is.
    """
    parts = [part for key in keys for part in null_safe_key(key)]
    wide = _with_columns(plan, parts)
    matched = [column(wide, len(plan.schema) + place) for place in range(len(parts))]
    window = wide if frame.size is None else TimeWindow(wide, frame.size)
    grouped = Aggregate(window, tuple((key.name, key) for key in matched), named)
    equalities = tuple((key, column(grouped, place)) for place, key in enumerate(matched))
    names = unique_names([*wide.schema.names, *grouped.schema.names])
    return wide, Join(wide, grouped, equalities, None, tuple(names))


def _with_columns(plan: Plan, parts: list[Expression]) -> Plan:
    if not parts:
        return plan
    names = unique_names([*plan.schema.names, *("key" for _ in parts)])
    items = [(field.name, column(plan, place)) for place, field in enumerate(plan.schema)]
    return Project(plan, (*items, *zip(names[len(items) :], parts, strict=True)))
