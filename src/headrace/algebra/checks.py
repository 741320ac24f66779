"""What the constructors of plan nodes ask of the expressions they are given."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import PlanError
from headrace.expressions.tree import Column, Expression, walk
from headrace.schema import BOOLEAN, Schema, sql_type


def require_boolean(expression: Expression, what: str) -> None:
    """Refuse a predicate that is not BOOLEAN.

    Raises:
        PlanError: it has another type.
    """
    if expression.type != BOOLEAN:
        message = f"{what} must be BOOLEAN, not {sql_type(expression.type)}"
        raise PlanError(message, hint="compare it with something")


def require_columns(expression: Expression, width: int) -> None:
    """Refuse an expression over other columns than those of its input.

    Raises:
        PlanError: it reads a column that its input does not have.
    """
    columns = (part for part in walk(expression) if isinstance(part, Column))
    # Other kinds of columns than Column itself are the binder's, of rows elsewhere.
    if any(part.index >= width or type(part) is not Column for part in columns):
        raise PlanError(f"an expression reads a column beyond the {width} of its input")


def require_same_types(what: str, schemas: Sequence[Schema]) -> None:
    """Refuse inputs whose columns do not have the same types, one by one.

    Raises:
        PlanError: some input's have others than the first's.
    """
    first = [field.type for field in schemas[0]]
    for other in schemas[1:]:
        if [field.type for field in other] != first:
            raise PlanError(f"{what} of {schemas[0]} and {other}")
