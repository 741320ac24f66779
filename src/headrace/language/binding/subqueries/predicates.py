"""Expressions that hold a query: EXISTS, IN, ANY, ALL and a query that stands for its value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

from sqlglot import exp

from headrace.errors import LanguageError
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Expression
from headrace.language.binding.subqueries.questions import Nesting
from headrace.language.dialect import Nested, position_of
from headrace.language.syntax import QuerySyntax, Scalar

COMPARISONS: Final[dict[type, str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
"""The comparisons that ANY and ALL may follow."""


def holds_query(node: Scalar) -> bool:
    """Whether the node itself, and not something inside it, is about a query."""
    if isinstance(node, exp.In):
        return len(node.expressions) == 1 and isinstance(node.expressions[0], Nested)
    quantified = type(node) in COMPARISONS and isinstance(node.expression, exp.Any | exp.All)
    return quantified or isinstance(node, Nested | exp.Exists)


def parts_asking(condition: Scalar) -> list[Scalar]:
    """The parts of a condition that AND connects, left to right; the whole one if it asks no query."""
    return [condition] if condition.find(Nested) is None else parts_of(condition)


def parts_of(node: Scalar) -> list[Scalar]:
    """The parts of a condition that AND connects, left to right."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return [*parts_of(node.this), *parts_of(node.expression)]
    return [node]


def bind_subquery(
    node: Any, nesting: Nesting | None, clause: str, bind: Callable[[Scalar], Expression]
) -> Expression:
    """The expression that asks what a node asks of its query.

    Args:
        node: one that holds a query.
        nesting: collects the queries of the clause; None where there may be none.
        clause: the clause, for messages.
        bind: binds the operands.

    Raises:
        LanguageError: there may be no subquery here, or it has the wrong number of columns or rows.
    """
    position = position_of(node)
    if nesting is None:
        hint = "put the condition into WHERE, or the query into FROM"
        raise LanguageError(f"a subquery cannot be used in {clause}", position=position, hint=hint)
    match node:
        case Nested():
            return nesting.value(node.args["query"], position)
        case exp.Exists():
            return nesting.exists(_query(node, "EXISTS"))
        case exp.In():
            row = _row(node.this)
            operands = [bind(part) for part in row]
            query = node.expressions[0].args["query"]
            return nesting.some(query, len(row), lambda columns: _equal(operands, columns), position)
        case _:
            operator, operand = COMPARISONS[type(node)], bind(node.this)
            query = _query(node.expression, type(node.expression).__name__.upper())
            if isinstance(node.expression, exp.Any):
                return nesting.some(query, 1, lambda row: resolve(operator, (operand, *row)), position)
            # All rows satisfy it if there is none that does not.
            failing = nesting.some(
                query, 1, lambda row: resolve("NOT", (resolve(operator, (operand, *row)),)), position
            )
            return resolve("NOT", (failing,))


def _query(node: Any, what: str) -> QuerySyntax:
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, Nested):
        hint = f"write {what} (SELECT ... FROM ...)"
        raise LanguageError(f"{what} takes a query", position=position_of(node), hint=hint)
    query: QuerySyntax = inner.args["query"]
    return query


def _row(node: Scalar) -> list[Scalar]:
    """The operands of IN: one, or those of a list in parentheses."""
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _equal(operands: Sequence[Expression], columns: Sequence[Expression]) -> Expression:
    tests = [resolve("=", pair) for pair in zip(operands, columns, strict=True)]
    return reduce(lambda one, other: resolve("AND", (one, other)), tests)
