"""QUALIFY and DISTINCT ON: conditions on window functions, as a WHERE around the SELECT.

Before: `SELECT item, price FROM bid [RANGE 1 HOUR] QUALIFY ROW_NUMBER() OVER (PARTITION BY item ORDER BY
price) = 1`. After: `SELECT item, price FROM (SELECT item, price, ROW_NUMBER() OVER (...) AS n FROM bid [RANGE
1 HOUR]) WHERE n = 1`. `SELECT DISTINCT ON (item) item, price ... ORDER BY item, price` is the same query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from sqlglot import exp

from headrace.errors import LanguageError, Position
from headrace.language.dialect import position_of
from headrace.language.parsing.rewrites.grouped_windows import with_grouped_windows
from headrace.language.parsing.rewrites.rewrite import (
    column_node,
    constant_node,
    hidden_name,
    is_aggregate_call,
    placed,
    rewritten,
    same_text,
)
from headrace.language.syntax import (
    DerivedTable,
    Name,
    QuerySyntax,
    Scalar,
    ScalarItem,
    SelectQuery,
    SortItem,
    StarItem,
    TopQuery,
)

_FIRST: Final = "write SELECT DISTINCT ON (k) ... ORDER BY k, ts DESC for the latest row of each k"


def with_qualify(
    query: SelectQuery, condition: Scalar, meant: Callable[[SelectQuery], SelectQuery]
) -> SelectQuery:
    """A SELECT whose rows the condition after QUALIFY leaves.

    Args:
        query: the SELECT without it.
        condition: over its list, the columns of its FROM, and window functions of both.
        meant: what else is rewritten in it, once its list has what the condition reads.
    """
    items = (item for item in query.items if isinstance(item, ScalarItem))
    aliases = {item.alias.text.lower() for item in items if item.alias is not None}
    hidden: list[ScalarItem] = []

    def change(node: Any) -> Any:
        plain = isinstance(node, exp.Column)
        if plain and not node.args.get("table") and str(node.name).lower() in aliases:
            return node
        if plain or isinstance(node, exp.Window) or is_aggregate_call(node):
            return _hidden(node, hidden)
        return node

    outside = rewritten(condition, change)
    inner = replace(query, items=(*query.items, *hidden), distinct=False, windows=())
    star = StarItem(None, query.position, tuple(item.alias for item in hidden if item.alias is not None))
    tables = (DerivedTable(meant(inner), None, None, query.position),)
    return SelectQuery((star,), query.distinct, tables, outside, (), None, None, query.position)


def with_distinct_on(query: QuerySyntax, order: tuple[SortItem, ...]) -> QuerySyntax:
    """A SELECT DISTINCT ON with the ORDER BY after it, which says what the first row of each key is.

    Raises:
        LanguageError: ORDER BY does not begin with the keys, or has nothing after them.
    """
    if not isinstance(query, SelectQuery) or not query.distinct_on:
        return query
    keys, first = query.distinct_on, order[: len(query.distinct_on)]
    rest, position = order[len(keys) :], position_of(query.distinct_on[0])
    if not all(any(same_text(key, one.expression) for one in first) for key in keys):
        raise LanguageError(
            "ORDER BY does not begin with the keys of DISTINCT ON", position=position, hint=_FIRST
        )
    if not rest:
        message = "DISTINCT ON keeps the first row of each key, and ORDER BY does not say which one that is"
        raise LanguageError(message, position=position, hint=_FIRST)
    # By time alone it would number the rows of a stream so far, and not those of an instant.
    by = [_ordered(one) for one in (*rest, rest[0])]
    number = exp.Window(
        this=placed(exp.Anonymous(this="ROW_NUMBER"), position),
        partition_by=[key.copy() for key in keys],
        order=placed(exp.Order(expressions=by), position),
        over="OVER",
    )
    one = constant_node(1, position)
    condition = placed(exp.EQ(this=placed(number, position), expression=one), position)
    return with_qualify(replace(query, distinct_on=()), condition, with_grouped_windows)


def limited(
    query: QuerySyntax, order: tuple[SortItem, ...], limit: int | None, offset: int, place: Position
) -> QuerySyntax:
    """A query with its ORDER BY, LIMIT and OFFSET.

    Raises:
        LanguageError: it is a DISTINCT ON whose first rows are not known.
    """
    first = with_distinct_on(query, order)
    if first is not query and limit is None and not offset:
        return first
    return TopQuery(first, order, limit, offset, place)


def _hidden(node: Any, hidden: list[ScalarItem]) -> Scalar:
    """The column for a part of the condition that is computed inside."""
    position = position_of(node)
    for item in hidden:
        if same_text(item.expression, node):
            assert item.alias is not None
            return column_node(item.alias.text, position)
    name = hidden_name("qualify", len(hidden) + 1)
    hidden.append(ScalarItem(node.copy(), Name(name, position), position))
    return column_node(name, position)


def _ordered(key: SortItem) -> Any:
    ordered = exp.Ordered(this=key.expression.copy(), desc=key.descending, nulls_first=key.nulls_first)
    return placed(ordered, position_of(key.expression))
