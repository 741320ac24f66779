"""Window functions over groups, as a SELECT of them around the one with the groups.

Before: `SELECT item, SUM(price) / SUM(SUM(price)) OVER () FROM bid [RANGE 1 HOUR] GROUP BY item`. After:
`SELECT item, s / SUM(s) OVER () FROM (SELECT item, SUM(price) AS s FROM bid [RANGE 1 HOUR] GROUP BY item)`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from headrace.errors import LanguageError
from headrace.language.default_names import default_name
from headrace.language.parsing.rewrites.rewrite import (
    aggregates_in,
    column_node,
    hidden_name,
    is_aggregate_call,
    is_of_window,
    rewritten,
    same_text,
)
from headrace.language.syntax import DerivedTable, Name, Scalar, ScalarItem, SelectQuery


def with_grouped_windows(query: SelectQuery) -> SelectQuery:
    """The SELECT with its window functions around its groups; the same where it has not both.

    Raises:
        LanguageError: a window function reads a column that is neither grouped nor aggregated.
    """
    items = [item for item in query.items if isinstance(item, ScalarItem)]
    grouped = query.group_by or any(aggregates_in(item.expression) for item in items)
    if not grouped or not any(map(_has_window, items)) or len(items) < len(query.items):
        return query
    keys = tuple(_meant(key, items) for key in query.group_by)
    groups = _Groups(keys)
    outer = tuple(groups.around(item) for item in items)
    inner = replace(query, items=tuple(groups.items), distinct=False, group_by=keys, windows=())
    table = DerivedTable(inner, None, None, query.position)
    return SelectQuery(outer, query.distinct, (table,), None, (), None, None, query.position)


class _Groups:
    """The SELECT list inside, as it grows by what the one around it reads.

    Attributes:
        items: that list.
    """

    def __init__(self, keys: tuple[Scalar, ...]) -> None:
        self.items: list[ScalarItem] = []
        self._keys = keys

    def around(self, item: ScalarItem) -> ScalarItem:
        """An item over the columns of the groups."""
        if _has_window(item):
            return replace(item, expression=rewritten(item.expression, self._change))
        name = item.alias or Name(default_name(item.expression), item.position)
        return ScalarItem(self._column(item.expression, item.alias), name, item.position)

    def _change(self, node: Any) -> Any:
        read = is_aggregate_call(node) and not is_of_window(node)
        if read or any(same_text(node, key) for key in self._keys):
            return self._column(node)
        if isinstance(node, exp.Column):
            raise LanguageError(
                f"the column {node.name} is neither grouped nor aggregated",
                position=node.meta["position"],
                hint=f"add {node.name} to GROUP BY, or aggregate it, such as MAX({node.name})",
            )
        return node

    def _column(self, node: Scalar, alias: Name | None = None) -> Scalar:
        """The column of an expression over the groups, under its alias, since GROUP BY may read that."""
        position = node.meta["position"]
        for item in self.items:
            assert item.alias is not None
            if alias is None and same_text(item.expression, node):
                return column_node(item.alias.text, position)
        taken = {item.alias.text.lower() for item in self.items if item.alias is not None}
        if alias is None or alias.text.lower() in taken:
            alias = Name(hidden_name("group", len(self.items) + 1), position)
        self.items.append(ScalarItem(node.copy(), alias, position))
        return column_node(alias.text, position)


def _meant(key: Scalar, items: list[ScalarItem]) -> Scalar:
    """What a key means that is a place in the SELECT list."""
    if not isinstance(key, exp.Literal) or key.is_string or not str(key.this).isdecimal():
        return key
    place = int(key.this)
    return items[place - 1].expression.copy() if 1 <= place <= len(items) else key


def _has_window(item: ScalarItem) -> bool:
    return item.expression.find(exp.Window) is not None
