"""What ORDER BY sorts by: columns of the result, or expressions that the SELECT list leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from headrace.language.dialect import position_of
from headrace.language.syntax import Scalar, ScalarItem, SelectQuery, SortItem


def hidden_keys(query: SelectQuery, order: Iterable[SortItem]) -> list[Scalar]:
    """The sort keys that are not columns of the result."""
    listed = _listed_names(query)
    return [key.expression for key in order if not _refers(key.expression, listed)]


def with_hidden(query: SelectQuery, keys: Iterable[Scalar]) -> SelectQuery:
    """The SELECT with sort keys after its list."""
    extra = tuple(ScalarItem(node, None, position_of(node)) for node in keys)
    return replace(query, items=(*query.items, *extra))


def _listed_names(query: SelectQuery) -> frozenset[str]:
    """The names that the text itself gives to columns of the result, in lower case."""
    items = [item for item in query.items if isinstance(item, ScalarItem)]
    aliases = {item.alias.text.lower() for item in items if item.alias is not None}
    plain = {str(item.expression.name).lower() for item in items if is_name(item.expression)}
    return frozenset(aliases | plain)


def _refers(node: Scalar, names: frozenset[str]) -> bool:
    """Whether a sort key means a column of the result: by its place, or by its name."""
    return is_number(node) or (is_name(node) and str(node.name).lower() in names)


def is_number(node: Scalar) -> bool:
    """Whether a sort key is written as a number, which means a place in the SELECT list."""
    return isinstance(node, exp.Literal) and not node.is_string


def is_name(node: Scalar) -> bool:
    """Whether a sort key is a name alone."""
    return isinstance(node, exp.Column) and not node.table
