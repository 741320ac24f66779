"""Subqueries in expressions: what they ask of the rows around them, and the joins that answer it.

While an expression is bound, a subquery in it is a `SubqueryPlace`, and inside a subquery the columns of
the rows around it are `OuterColumn`s. Afterwards `keep` and `extend` turn the places into semi-joins,
anti-joins and outer joins with the subquery's rows; what tied the subquery to the rows around it becomes
their condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headrace.algebra.nodes import (
    Plan,
)
from headrace.errors import LanguageError, Position
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Column, Expression, Literal, transform_columns
from headrace.language.binding.columns import InnerColumn, OuterColumn, SubqueryPlace, is_own, reads_outer
from headrace.language.binding.scope import Scope
from headrace.language.binding.sort_keys import hidden_keys, is_number, with_hidden
from headrace.language.syntax import QuerySyntax, SelectQuery, TopQuery
from headrace.schema import BIGINT, BOOLEAN


@dataclass(frozen=True)
class Inner:
    """A bound subquery.

    Attributes:
        plan: its rows, before the SELECT list.
        conditions: conditions between them and the row around it, whose columns are `OuterColumn`s.
        items: the SELECT list, over the same columns.
        single: whether it has no more than one row for each row around it.
        zeros: the columns that are 0, and not NULL, where it has none: counts.
    """

    plan: Plan
    conditions: tuple[Expression, ...]
    items: tuple[tuple[str, Expression], ...]
    single: bool
    zeros: frozenset[int] = frozenset()


Nest = Callable[[QuerySyntax, Plan, Scope], Inner]
"""Binds a subquery over the rows around it."""


@dataclass(frozen=True)
class Matching:
    """Whether some row satisfies the conditions and the test; NULL if for none it is more than unknown."""

    plan: Plan
    conditions: tuple[Expression, ...]
    test: Expression | None


@dataclass(frozen=True)
class Single:
    """A value of the only row that satisfies the conditions; its columns are NULL where there is none."""

    plan: Plan
    conditions: tuple[Expression, ...]
    value: Expression


SubqueryPart = Matching | Single


class Nesting:
    """Collects the subqueries of a clause.

    Attributes:
        parts: what they ask, by place.
    """

    def __init__(self, bind: Callable[[QuerySyntax], Inner]) -> None:
        self._bind = bind
        self.parts: list[SubqueryPart] = []

    def exists(self, query: QuerySyntax) -> Expression:
        """The place that says whether a subquery has a row, which a LIMIT does not change."""
        inner = self._bind(_unlimited(query))
        return self._place(Matching(inner.plan, _seen(inner.conditions), None), "matches", BOOLEAN)

    def some(
        self,
        query: QuerySyntax,
        width: int,
        test: Callable[[Sequence[Expression]], Expression],
        position: Position,
    ) -> Expression:
        """The place that says whether a test holds for some row, by SQL's three values.

        Args:
            query: the subquery.
            width: how many columns it must have.
            test: the test of its columns.
            position: where it is, for errors.

        Raises:
            LanguageError: it has another number of columns.
        """
        inner = self._bind(query)
        _require_width(inner, width, position)
        tested = test(_seen(item for _, item in inner.items))
        return self._place(Matching(inner.plan, _seen(inner.conditions), tested), "matches", BOOLEAN)

    def value(self, query: QuerySyntax, position: Position) -> Expression:
        """The place of the value of a subquery of one column and at most one row.

        Raises:
            LanguageError: it has more columns, or may have more rows.
        """
        inner = self._bind(query)
        _require_width(inner, 1, position)
        if not inner.single:
            raise LanguageError(
                "the subquery may have more than one row",
                position=position,
                hint="aggregate in it, such as SELECT MAX(x) ..., or compare with = ANY (...)",
            )
        ((name, item),) = inner.items
        (value,) = _seen([transform_columns(item, lambda part: _or_zero(part, inner.zeros))])
        return self._place(Single(inner.plan, _seen(inner.conditions), value), name, value.type)

    def _place(self, part: SubqueryPart, name: str, dtype: object) -> Expression:
        if part not in self.parts:
            self.parts.append(part)
        return SubqueryPlace(self.parts.index(part), name, dtype)


def asked_of(part: SubqueryPart) -> tuple[Expression, ...]:
    """The expressions of what a subquery asks of the row around it, whose columns are `Column`s in them."""
    return (*part.conditions, *((part.value,) if isinstance(part, Single) else _test(part)))


def are_of_outer(parts: Iterable[SubqueryPart]) -> bool:
    """Whether operands of subqueries are of the row around the rows that the subqueries are asked about."""
    return any(reads_outer(expression) for part in parts for expression in asked_of(part))


def change_part(part: SubqueryPart, change: Callable[[Expression], Expression]) -> SubqueryPart:
    """What a subquery asks, with its expressions changed."""
    conditions = tuple(map(change, part.conditions))
    match part:
        case Matching(test=test):
            return Matching(part.plan, conditions, None if test is None else change(test))
        case Single(value=value):
            return Single(part.plan, conditions, change(value))


def _unlimited(query: QuerySyntax) -> QuerySyntax:
    """A query that has a row where the given one has, without a LIMIT if that is known from the text.

    What it sorts by is put into the SELECT list, where it is bound, and so checked.
    """
    match query:
        case TopQuery(query=SelectQuery(distinct=False) as inner, order=order, limit=limit, offset=0):
            if limit == 0 or any(is_number(key.expression) for key in order):
                return query
            return with_hidden(inner, hidden_keys(inner, order))
        case _:
            return query


def _test(part: SubqueryPart) -> tuple[Expression, ...]:
    return () if not isinstance(part, Matching) or part.test is None else (part.test,)


def _seen(expressions: Iterable[Expression]) -> tuple[Expression, ...]:
    """A subquery's expressions as the rows around it see them."""

    def moved(part: Column) -> Column:
        match part:
            case OuterColumn(index, name, dtype):
                return Column(index, name, dtype)
            case InnerColumn() | SubqueryPlace():
                raise AssertionError("a subquery's own subqueries are joined before")
            case _:
                return InnerColumn(part.index, part.name, part.type)

    return tuple(transform_columns(expression, moved) for expression in expressions)


def _or_zero(part: Column, zeros: frozenset[int]) -> Expression:
    return resolve("COALESCE", (part, Literal(0, BIGINT))) if is_own(part) and part.index in zeros else part


def _require_width(inner: Inner, width: int, position: Position) -> None:
    if len(inner.items) != width:
        raise LanguageError(
            f"the subquery has {len(inner.items)} column{'s' * (len(inner.items) > 1)}, not {width}",
            position=position,
            hint="list as many columns in its SELECT as it is compared with",
        )
