"""Outer joins whose padded rows a filter takes out are inner joins."""

from __future__ import annotations

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import Filter, Join, OuterJoin, Plan
from headrace.algebra.nulls import null_rejected
from headrace.algebra.predicates import conjuncts


def simplify_outer_join(plan: Plan) -> Plan:
    """Do without the padded rows of an OuterJoin where a comparison in the WHERE above it drops them all.

    Before: `SELECT * FROM a LEFT JOIN b ON a.k = b.k WHERE b.x > 1`
    After: `SELECT * FROM a JOIN b ON a.k = b.k WHERE b.x > 1`

    A padded row may now not be asked, and so not fail: there may be fewer dead letters.
    """
    match plan:
        case Filter(input=OuterJoin() as join, predicate=predicate):
            width = len(join.left.schema)
            needed = {index < width for part in conjuncts(predicate) for index in null_rejected(part)}
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
