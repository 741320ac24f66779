"""Arithmetic of whole queries, `(SELECT COUNT(*) ...) / (SELECT COUNT(*) ...)`, as Babu and Widom write it.

It means `SELECT first.value / (SELECT COUNT(*) ...) FROM (SELECT COUNT(*) AS value ...) first`: there is a
row while the first query has one, and the others are scalar subqueries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp

from headrace.errors import LanguageError, Position
from headrace.language.dialect import Nested, position_of
from headrace.language.parsing.cursor import Cursor
from headrace.language.syntax import DerivedTable, Name, Query, Scalar, ScalarItem, SelectQuery

OPERATORS: Final = ("/", "*", "×", "+", "-", "%", "DIV")
"""What stands behind a query in parentheses that is the first operand."""

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
    first = min(node.find_all(Nested), key=position_of, default=None)
    if first is None:
        raise LanguageError("SELECT is missing in what is computed", position=position, hint=_FORM)
    place = position_of(first)
    named = _named(first.args["query"], place)
    column: Scalar = exp.Column(this=exp.to_identifier(_VALUE), table=exp.to_identifier(_FIRST))
    for part in column.walk():
        part.meta["position"] = place
    first.replace(column)
    table = DerivedTable(named, Name(_FIRST, place), None, place)
    return SelectQuery((ScalarItem(node, None, position),), False, (table,), None, (), None, None, position)


def _named(query: Query, position: Position) -> SelectQuery:
    """The first query, its column under a name that is known."""
    match query:
        case SelectQuery(items=(ScalarItem() as item,)):
            return replace(query, items=(replace(item, alias=Name(_VALUE, position)),))
        case _:
            message = "a query that is computed with has one column, written out"
            raise LanguageError(message, position=position, hint=_FORM)
