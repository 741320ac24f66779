"""What the constructors of plan nodes ask of the expressions they are given."""

from __future__ import annotations

from headrace.errors import PlanError
from headrace.expressions.tree import Expression, columns_of
from headrace.schema import BOOLEAN, sql_type


def require_boolean(expression: Expression, what: str) -> None:
    """Refuse a predicate that is not BOOLEAN.

    Raises:
        PlanError: it has another type.
    """
    if expression.type != BOOLEAN:
        message = f"{what} must be BOOLEAN, not {sql_type(expression.type)}"
        raise PlanError(message, hint="compare it with something")


def require_columns(expression: Expression, width: int) -> None:
    """Refuse an expression over more columns than there are.

    Raises:
        PlanError: it reads a column that its input does not have.
    """
    if any(index >= width for index in columns_of(expression)):
        raise PlanError(f"an expression reads a column beyond the {width} of its input")
