"""Aggregate what a Project computes without the Project."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Aggregate, Plan, Project, Source, TimeWindow
from headrace.expressions.tree import (
    Column,
    Expression,
    Literal,
    expressions_of,
    transform_call,
    transform_columns,
    walk,
)


def merge_project_into_aggregate(plan: Plan) -> Plan:
    """Put the expressions of a Project below an Aggregate into its keys and arguments.

    Before: `SELECT k, SUM(p) FROM (SELECT auction AS k, price AS p FROM bid WINDOW(NOW)) GROUP BY k`
    After: `SELECT auction AS k, SUM(price) FROM bid WINDOW(NOW) GROUP BY auction`

    Over a stream or its window, which have no column that nobody reads; a Project that takes out columns
    stays. Not where an expression would be computed more than once, nor where one can fail, or other rows
    would.
    """
    match plan:
        case Aggregate(input=Project(input=Source() | TimeWindow() as below, items=items)):
            inner = [expression for _, expression in items]
            outer = [key for _, key in plan.keys]
            outer += [part for _, call in plan.aggregates for part in expressions_of(call)]
            if not _mergeable(inner, outer):
                return plan
            return replace(
                plan,
                input=below,
                keys=tuple((name, _merged(key, inner)) for name, key in plan.keys),
                aggregates=tuple(
                    (name, transform_call(call, lambda part: _merged(part, inner)))
                    for name, call in plan.aggregates
                ),
            )
        case _:
            return plan


def _merged(expression: Expression, inner: list[Expression]) -> Expression:
    return transform_columns(expression, lambda one: inner[one.index])


def _mergeable(inner: list[Expression], outer: list[Expression]) -> bool:
    uses = Counter(part.index for item in outer for part in walk(item) if isinstance(part, Column))
    return all(
        isinstance(part, Column | Literal) or (uses[place] <= 1 and not can_fail(part))
        for place, part in enumerate(inner)
    )
