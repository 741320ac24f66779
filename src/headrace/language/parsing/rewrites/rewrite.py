"""What the rewrites of a SELECT have in common: other nodes in the place of some."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from sqlglot import exp

from headrace.errors import Position
from headrace.expressions.aggregates.aggregates import is_aggregate
from headrace.language.dialect import Nested, WithinPercent
from headrace.language.syntax import Scalar, ScalarItem, SelectItem

NodeRewrite = Callable[[Any], Any]
"""From a node to what is in its place: the node itself where it stays."""

_HIDDEN: Final = "{} {}"
"""Names with a blank, which nobody gives a column."""


def hidden_name(what: str, number: int) -> str:
    """The name of a column that a rewrite adds."""
    return _HIDDEN.format(what, number)


def column_node(name: str, position: Position) -> Scalar:
    """A column in an expression."""
    identifier = exp.Identifier(this=name, quoted=True)
    return placed(exp.Column(this=placed(identifier, position)), position)


def constant_node(value: int | None, position: Position) -> Scalar:
    """NULL or a number in an expression."""
    return placed(exp.Null() if value is None else exp.Literal(this=str(value), is_string=False), position)


def placed(node: Any, position: Position) -> Any:
    """A node with its place in the text."""
    node.meta["position"] = position
    return node


def rewritten(node: Scalar, change: NodeRewrite) -> Scalar:
    """An expression of its own with other nodes in the place of some; from the outside to the inside.

    What is in the place of a node is not changed again, nor are queries in the expression.
    """

    def one(part: Any) -> Any:
        return part if isinstance(part, Nested) else change(part)

    return node.transform(one, copy=True)


def rewritten_items(items: Iterable[SelectItem], change: NodeRewrite) -> tuple[SelectItem, ...]:
    """A SELECT list with other nodes in the place of some."""
    return tuple(
        replace(item, expression=rewritten(item.expression, change)) if isinstance(item, ScalarItem) else item
        for item in items
    )


def same_text(one: Scalar, other: Scalar) -> bool:
    """Whether two expressions are written alike, but for case of names and blanks."""
    # A key of ORDER BY is written like the expression in it.
    return type(one) is type(other) and _shown(one) == _shown(other)


def _shown(node: Scalar) -> str:
    return str(node.sql(dialect="spark", normalize=True)).upper() if not node.find(Nested) else str(id(node))


def is_aggregate_call(node: Any) -> bool:
    """Whether a node is an aggregate, with what follows it."""
    if isinstance(node, exp.Filter | exp.WithinGroup | WithinPercent):
        return is_aggregate_call(node.this)
    return isinstance(node, exp.Anonymous) and is_aggregate(str(node.name).upper())


def is_of_window(node: Any) -> bool:
    """Whether a node is the function before OVER."""
    above = node.parent
    while isinstance(above, exp.Filter | exp.WithinGroup | WithinPercent):
        node, above = above, above.parent
    return isinstance(above, exp.Window) and node.arg_key == "this"


def aggregates_in(node: Scalar) -> bool:
    """Whether an expression holds an aggregate of a group, other than functions before OVER."""
    return any(is_aggregate_call(part) and not is_of_window(part) for part in node.walk())
