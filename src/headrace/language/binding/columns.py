"""Columns that only the binder knows: those of the rows around a subquery, and what subqueries answer.

They are kinds of `Column`, so that expressions of them are built, walked and changed like all others. A plan
holds none of them: its constructors check that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from headrace.expressions.tree import Column, Expression, walk


@dataclass(frozen=True)
class OuterColumn(Column):
    """Inside a subquery, a column of the row around it, by its position there."""


@dataclass(frozen=True)
class InnerColumn(Column):
    """In what a subquery asks of the row around it, a column of its own, by its position in its plan."""


@dataclass(frozen=True)
class SubqueryPlace(Column):
    """What a subquery of an expression answers; the index says which of the clause's subqueries."""


@dataclass(frozen=True)
class GroupPlace(Column):
    """In FILTER, an aggregate of the rows of the same group; the index says which of them."""


def is_own(part: Expression) -> TypeGuard[Column]:
    """Whether an expression is a column of the row that it is computed of."""
    return type(part) is Column


def own_columns(expression: Expression) -> frozenset[int]:
    """The positions of the columns that an expression reads of the row that it is computed of."""
    return frozenset(part.index for part in walk(expression) if is_own(part))


def reads_outer(expression: Expression) -> bool:
    """Whether an expression reads the row around its subquery."""
    return any(isinstance(part, OuterColumn) for part in walk(expression))


def places_in(expression: Expression) -> frozenset[int]:
    """The places of subqueries that an expression reads."""
    return frozenset(part.index for part in walk(expression) if isinstance(part, SubqueryPlace))
