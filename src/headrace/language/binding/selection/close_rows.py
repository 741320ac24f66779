"""Subqueries about rows that are close in time to those around them, such as counts of what follows each.

Where conditions say how far the rows of the subquery are at most from the row around it, it is answered when
all of them are there, once, as an outer join within an interval is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from headrace.algebra.nodes import Plan, column
from headrace.algebra.predicates import conjuncts
from headrace.algebra.streams import is_stream, moved_later, remembered, so_far
from headrace.errors import LanguageError
from headrace.expressions.tree import Column, Expression, transform_columns
from headrace.language.binding.ages import tells_instant
from headrace.language.binding.columns import OuterColumn
from headrace.language.binding.related import apart_of
from headrace.language.binding.scalars.context import Context
from headrace.language.binding.scalars.scalars import bind_scalar
from headrace.language.binding.scope import BoundTable, Scope
from headrace.language.binding.subqueries.predicates import parts_of
from headrace.language.dialect import Nested
from headrace.language.syntax import SelectQuery


def as_far_as_needed(
    query: SelectQuery, rows: Plan, read: Sequence[int], tables: BoundTable, scope: Scope
) -> tuple[Plan, Plan]:
    """The rows around a subquery when it can be answered, and the rows of its FROM that it needs then.

    Args:
        query: the subquery.
        rows: the rows around it.
        read: the columns of these that it reads; rows of other instants must differ in them.
        tables: its FROM.
        scope: the columns of FROM, with those around it.
    """
    timed = tells_instant((column(rows, place) for place in read), rows)
    if is_stream(rows) and is_stream(tables.plan) and timed:
        apart = apart_of(rows, tables.plan, _conditions(query, scope, len(rows.schema)))
        if apart.before is not None:
            both = None if apart.after is None else apart.before + apart.after
            return moved_later(rows, apart.before), remembered(tables.plan, both)
    return so_far(rows), so_far(tables.plan)


def _conditions(query: SelectQuery, scope: Scope, width: int) -> Iterator[Expression]:
    """The conditions of WHERE over the row around a subquery and, after it, one of its own."""

    def moved(part: Column) -> Column:
        if isinstance(part, OuterColumn):
            return Column(part.index, part.name, part.type)
        return Column(part.index + width, part.name, part.type)

    for node in () if query.where is None else parts_of(query.where):
        if node.find(Nested) is None:
            with suppress(LanguageError):
                for part in conjuncts(bind_scalar(node, Context(scope, "WHERE"))):
                    yield transform_columns(part, moved)
