"""The plans of rows with aggregates over their frames: joins with a window, windows over rows, or places."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Aggregate, Join, OverRows, Plan, Project, TimeWindow, TopK, column
from headrace.algebra.nulls import null_safe_key
from headrace.expressions.tree import AggregateCall, Column, Expression, expressions_of, transform_call
from headrace.language.binding.over.frames import Frame, Lasting, Places, Rows, SoFar, Whole
from headrace.schema import unique_names
from headrace.time import Duration


def with_frame(plan: Plan, frame: Frame, calls: list[AggregateCall]) -> Plan:
    """The plan's rows, each with the aggregates over its frame after its columns."""
    width = len(plan.schema)
    parts = [part for call in calls for part in expressions_of(call)]
    sorts = [key.expression for key in frame.order] if isinstance(frame, Places) else []
    places_by = (*frame.keys, *sorts)
    hidden = [part for part in dict.fromkeys((*parts, *places_by)) if can_fail(part) or part in places_by]
    hidden = [part for part in hidden if not isinstance(part, Column)]
    wide = _with_columns(plan, hidden)
    places = {part: column(wide, width + number) for number, part in enumerate(hidden)}
    calls = [transform_call(call, lambda part: places.get(part, part)) for call in calls]
    keys = [places.get(key, key) for key in frame.keys]
    names = unique_names([*wide.schema.names, *(call.function.lower() for call in calls)])
    named = tuple(zip(names[len(wide.schema) :], calls, strict=True))
    columns = tuple(key for key in keys if isinstance(key, Column))
    match frame:
        case Places(order=order, ranking=ranking):
            moved = (replace(key, expression=places.get(key.expression, key.expression)) for key in order)
            result: Plan = TopK(wide, columns, tuple(moved), number=names[-1], ranking=ranking)
        case Rows(first=first, last=last):
            result = OverRows(wide, columns, first, last, named)
        case SoFar():
            result = OverRows(wide, columns, None, 0, named, peers=True)
        case Lasting(size=size):
            result = _joined(wide, size, keys, named)
        case Whole():
            result = _joined(wide, None, keys, named)
        case _:
            assert_never(frame)
    kept = [*range(width), *range(len(result.schema) - len(calls), len(result.schema))]
    if len(kept) == len(result.schema):
        return result
    chosen = unique_names([result.schema[place].name for place in kept])
    return Project(
        result, tuple((name, column(result, place)) for name, place in zip(chosen, kept, strict=True))
    )


def _joined(
    plan: Plan, size: Duration | None, keys: list[Expression], named: tuple[tuple[str, AggregateCall], ...]
) -> Plan:
    """Each row joined with the aggregate of its partition's window, or of the whole partition.

    A join takes NULL as equal to nothing, and a partition does not: keys are compared as a value that is not
    NULL, and whether it is.
    """
    parts = [part for key in keys for part in null_safe_key(key)]
    wide = _with_columns(plan, parts)
    matched = [column(wide, len(plan.schema) + place) for place in range(len(parts))]
    window = wide if size is None else TimeWindow(wide, size)
    grouped = Aggregate(window, tuple((key.name, key) for key in matched), named)
    equalities = tuple((key, column(grouped, place)) for place, key in enumerate(matched))
    names = unique_names([*wide.schema.names, *grouped.schema.names])
    return Join(wide, grouped, equalities, None, tuple(names))


def _with_columns(plan: Plan, parts: list[Expression]) -> Plan:
    if not parts:
        return plan
    names = unique_names([*plan.schema.names, *("key" for _ in parts)])
    items = [(field.name, column(plan, place)) for place, field in enumerate(plan.schema)]
    return Project(plan, (*items, *zip(names[len(items) :], parts, strict=True)))
