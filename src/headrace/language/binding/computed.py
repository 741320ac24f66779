"""Computed columns of CREATE STREAM: expressions over the columns of its input."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import LanguageError
from headrace.expressions.tree import Column, Expression
from headrace.language.binding.scalars.context import Context, located
from headrace.language.binding.scalars.scalars import bind_scalar
from headrace.language.binding.scope import Scope, ScopeTable
from headrace.language.statements.streams import ComputedColumn
from headrace.schema import Schema, check_column


def bind_computed(computed: Sequence[ComputedColumn], columns: Schema) -> tuple[tuple[str, Expression], ...]:
    """The names and expressions of computed columns.

    Args:
        computed: they, as written.
        columns: those of the input, which are all that they can refer to.

    Raises:
        LanguageError: an unknown name, a wrong type, or a column that the input has already.
    """
    named = tuple((field.name, Column(place, field.name, field.type)) for place, field in enumerate(columns))
    context = Context(Scope((ScopeTable(None, None, named),)), "a computed column")
    found = []
    for column in computed:
        if columns.find(column.name) is not None:
            raise LanguageError(
                f"the input has a column {column.name} already",
                position=column.position,
                hint=f"give {column.text} another name",
            )
        expression = bind_scalar(column.expression, context)
        with located(column.position):
            check_column(expression.type)
        found.append((column.name, expression))
    return tuple(found)
