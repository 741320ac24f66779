"""Outer joins whose padded rows a filter takes out are inner joins."""

from __future__ import annotations

from typing import Final

from headrace.algebra.joins import OuterJoin
from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import Filter, Join, Plan
from headrace.algebra.predicates import conjuncts
from headrace.expressions.tree import Call, Cast, Column, Expression

_NULL_OF_NULL: Final = frozenset(
    ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "DIV", "NEGATE", "||", "LIKE", "NOT"]
)
"""Functions that are NULL where an argument is."""


def simplify_outer_join(plan: Plan) -> Plan:
    """Do without the padded rows of an OuterJoin where a comparison in the WHERE above it drops them all.

    Before: `SELECT * FROM a LEFT JOIN b ON a.k = b.k WHERE b.x > 1`
    After: `SELECT * FROM a JOIN b ON a.k = b.k WHERE b.x > 1`

    A padded row may now not be asked, and so not fail: there may be fewer dead letters.
    """
    match plan:
        case Filter(input=OuterJoin() as join, predicate=predicate):
            width = len(join.left.schema)
            needed = {
                index < width for part in conjuncts(predicate) for index in _null_rejected(part, top=True)
            }
            # A comparison of left columns drops the rows that are padded on the left, and so for the right.
            keeps_left = join.kind is not JoinKind.RIGHT and False not in needed
            keeps_right = join.kind is not JoinKind.LEFT and True not in needed
            kind = _kind(keeps_left, keeps_right)
            if kind is join.kind:
                return plan
            return Filter(_with_kind(join, kind), predicate)
        case _:
            return plan


def _kind(keeps_left: bool, keeps_right: bool) -> JoinKind:
    if keeps_left:
        return JoinKind.FULL if keeps_right else JoinKind.LEFT
    return JoinKind.RIGHT if keeps_right else JoinKind.INNER


def _with_kind(join: OuterJoin, kind: JoinKind) -> Plan:
    if kind is JoinKind.INNER:
        return Join(join.left, join.right, join.equalities, join.residual, join.names)
    return OuterJoin(join.left, join.right, join.equalities, join.residual, join.names, kind)


def _null_rejected(part: Expression, *, top: bool = False) -> frozenset[int]:
    """The columns of which a NULL makes the expression NULL, or fail; a conjunct then takes the row out."""
    match part:
        case Column(index=index):
            return frozenset([index])
        case Cast(argument=argument):
            return _null_rejected(argument)
        case Call(function="IS NOT NULL", arguments=(argument,)) if top:
            return _null_rejected(argument)
        case Call(function=function, arguments=arguments) if function in _NULL_OF_NULL:
            return frozenset[int]().union(*map(_null_rejected, arguments))
        case _:
            return frozenset()
