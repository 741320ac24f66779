"""Conditions between two streams become conditions of their join."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Filter, Join, Plan
from headrace.algebra.predicates import conjunction, conjuncts, split_equalities
from headrace.expressions.tree import Expression, columns_of


def equalities_into_join(plan: Plan) -> Plan:
    """Move the conjuncts of a WHERE that read both sides into the Join below it, equalities as its keys.

    Before: `SELECT * FROM a, b WHERE a.k = b.k AND a.x < b.x`
    After: `SELECT * FROM a JOIN b ON a.k = b.k AND a.x < b.x`

    A key that fails makes a row fail, before it meets a partner, instead of its pairs: there may be more or
    fewer dead letters, and no other result.
    """
    match plan:
        case Filter(input=Join() as join, predicate=predicate):
            width = len(join.left.schema)
            parts = conjuncts(predicate)
            moved = [part for part in parts if _reads_both(part, width)]
            if not moved:
                return plan
            joined = _with_conditions(join, moved)
            outer = conjunction(part for part in parts if part not in moved)
            return joined if outer is None else Filter(joined, outer)
        case Join(residual=residual) if residual is not None:
            equalities, rest = split_equalities(conjuncts(residual), len(plan.left.schema))
            if not equalities:
                return plan
            return replace(plan, equalities=(*plan.equalities, *equalities), residual=conjunction(rest))
        case _:
            return plan


def _with_conditions(join: Join, parts: list[Expression]) -> Join:
    equalities, rest = split_equalities(parts, len(join.left.schema))
    before = () if join.residual is None else (join.residual,)
    return replace(
        join,
        equalities=(*join.equalities, *(pair for pair in equalities if pair not in join.equalities)),
        residual=conjunction((*before, *rest)),
    )


def _reads_both(part: Expression, width: int) -> bool:
    return {index < width for index in columns_of(part)} == {True, False}
