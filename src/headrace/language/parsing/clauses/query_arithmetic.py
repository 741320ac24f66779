"""Arithmetic of whole queries, `(SELECT COUNT(*) ...) / (SELECT COUNT(*) ...)`, as Babu and Widom write it.

There is a row while the first query has one; the others are scalar subqueries. It means

    SELECT first.value / (SELECT COUNT(*) ...) FROM (SELECT MAX(x) AS value ...) first

A first query that counts, without GROUP BY, counts 0 where it has no row, like the others. Then there is a
row while any of them has one, and all of them are scalar subqueries:

    SELECT (SELECT COUNT(*) ...) / (SELECT COUNT(*) ...)
    FROM (SELECT DISTINCT 1 FROM (SELECT 1 FROM (SELECT COUNT(*) ...) UNION ALL SELECT 1 FROM (...)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from headrace.errors import LanguageError, Position
from headrace.language.dialect import Nested, position_of
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import (
    DerivedTable,
    Name,
    QuerySyntax,
    Scalar,
    ScalarItem,
    SelectQuery,
    UnionQuery,
)

OPERATORS: Final = ("/", "*", "×", "+", "-", "%", "DIV")
"""What follows a query in parentheses that is the first operand."""

_FORM: Final = "write (SELECT x FROM ...) / (SELECT y FROM ...)"
_VALUE: Final = "value"
_FIRST: Final = "the first query"
"""No alias can be written like that, so that none is taken for it."""


def parse_quotient(cursor: Cursor) -> SelectQuery:
    """Read an expression that starts with a query in parentheses.

    Raises:
        LanguageError: it is malformed, or its first query is not one SELECT of one column.
    """
    position = cursor.position
    node = cursor.scalar("a query")
    operands = sorted(node.find_all(Nested), key=position_of)
    if not operands:
        raise LanguageError("SELECT is missing in what is computed", position=position, hint=_FORM)
    first, *others = operands
    place = position_of(first)
    named = _named(first.args["query"], place)
    if others and _counts(named):
        # As written, since equal queries are computed once.
        table = _derived(_while_any([operand.args["query"] for operand in operands], place), place)
    else:
        column: Scalar = exp.Column(this=exp.to_identifier(_VALUE), table=exp.to_identifier(_FIRST))
        first.replace(_placed(column, place))
        table = DerivedTable(named, Name(_FIRST, place), None, place)
    return _select(node, table, position)


def _counts(query: SelectQuery) -> bool:
    """Whether a query of one column counts all rows of its FROM, so that it is known to be 0 without any."""
    (item,) = query.items
    assert isinstance(item, ScalarItem)
    calls = item.expression.find_all(exp.Anonymous)
    counts = any(str(call.name).upper() == "COUNT" for call in calls)
    over = item.expression.find(exp.Window) is not None
    return counts and not over and not query.group_by and query.having is None


def _while_any(queries: Sequence[QuerySyntax], position: Position) -> SelectQuery:
    """One row while any of the queries has one."""
    rows = tuple(_select(_one(position), _derived(query, position), position) for query in queries)
    union = UnionQuery(rows, position)
    return replace(_select(_one(position), _derived(union, position), position), distinct=True)


def _derived(query: QuerySyntax, position: Position) -> DerivedTable:
    return DerivedTable(query, None, None, position)


def _select(node: Scalar, table: DerivedTable, position: Position) -> SelectQuery:
    return SelectQuery((ScalarItem(node, None, position),), False, (table,), None, (), None, None, position)


def _one(position: Position) -> Scalar:
    return _placed(exp.Literal.number(1), position)


def _placed(node: Scalar, position: Position) -> Scalar:
    for part in node.walk():
        part.meta["position"] = position
    return node


def _named(query: QuerySyntax, position: Position) -> SelectQuery:
    """The first query, its column under a name that is known."""
    match query:
        case SelectQuery(items=(ScalarItem() as item,)):
            return replace(query, items=(replace(item, alias=Name(_VALUE, position)),))
        case _:
            message = "a query that is computed with has one column, written out"
            raise LanguageError(message, position=position, hint=_FORM)
