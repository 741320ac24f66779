"""The syntax of aggregates: arguments, DISTINCT, ORDER BY, WITHIN GROUP, FILTER and WITHIN."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from headrace.expressions.aggregates.aggregates import is_aggregate
from headrace.expressions.tree import Side, Within
from headrace.expressions.user import UserAggregate
from headrace.language.catalog import Functions
from headrace.language.dialect import WithinPercent
from headrace.language.syntax import Scalar


@dataclass(frozen=True)
class AggregateParts:
    """An aggregate as written.

    Attributes:
        name: in upper case.
        arguments: those in parentheses; none for `*`.
        star: whether `*` is there.
        distinct: whether DISTINCT precedes them.
        order: the keys of ORDER BY in the parentheses.
        within: the key of WITHIN GROUP (ORDER BY key), or None.
        condition: that of FILTER (WHERE condition), or None.
        bound: that of WITHIN ... PERCENT, or None.
    """

    name: str
    arguments: tuple[Scalar, ...]
    star: bool
    distinct: bool
    order: tuple[Any, ...]
    within: Any | None
    condition: Scalar | None
    bound: Within | None = None


def aggregate_parts(node: Any, users: Functions) -> AggregateParts | None:
    """The parts of a call with its FILTER and WITHIN GROUP, or None if it is not an aggregate we can read."""
    condition, within, bound = None, None, None
    if isinstance(node, WithinPercent):
        bound = _bound(node)
        node = node.this
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression
    if isinstance(node, exp.WithinGroup):
        order = node.expression
        if not isinstance(order, exp.Order) or len(order.expressions) != 1:
            return None
        node, (within,) = node.this, order.expressions
    if not isinstance(node, exp.Anonymous):
        return None
    name = str(node.name)
    if not is_aggregate(name.upper()) and not isinstance(users.get(name.lower()), UserAggregate):
        return None
    arguments, order = list(node.expressions), ()
    if arguments and isinstance(arguments[-1], exp.Order):
        order = tuple(arguments[-1].expressions)
        arguments[-1] = arguments[-1].this
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    star = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    if star:
        arguments = []
    if None in (*arguments, *(key.this for key in order)):
        return None
    called = str(node.name).upper()
    return AggregateParts(called, tuple(arguments), star, distinct, order, within, condition, bound)


def _bound(node: Any) -> Within:
    side = node.args.get("side")
    return Within(Decimal(str(node.args["percent"].this)), Side.ESTIMATE if side is None else Side[side.name])
