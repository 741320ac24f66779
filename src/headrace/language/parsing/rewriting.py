"""What the rewrites of a SELECT have in common: other nodes in the place of some."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from sqlglot import exp

from headrace.errors import Position
from headrace.language.dialect import Nested
from headrace.language.syntax import Scalar, ScalarItem, SelectItem

Change = Callable[[Any], Any]
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


def rewritten(node: Scalar, change: Change) -> Scalar:
    """An expression of its own with other nodes in the place of some; from the outside to the inside.

    What is in the place of a node is not changed again, nor are queries in the expression.
    """

    def one(part: Any) -> Any:
        return part if isinstance(part, Nested) else change(part)

    return node.transform(one, copy=True)


def rewritten_items(items: Iterable[SelectItem], change: Change) -> tuple[SelectItem, ...]:
    """A SELECT list with other nodes in the place of some."""
    return tuple(
        replace(item, expression=rewritten(item.expression, change)) if isinstance(item, ScalarItem) else item
        for item in items
    )


def same_text(one: Scalar, other: Scalar) -> bool:
    """Whether two expressions are written alike, but for case of names and blanks."""
    return _shown(one) == _shown(other)


def _shown(node: Scalar) -> str:
    return str(node.sql(dialect="spark", normalize=True)).upper() if not node.find(Nested) else str(id(node))
