"""Expressions without columns are computed once, when the plan is made."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import replace
from operator import is_
from typing import Final, assert_never

from headrace.algebra.nodes import (
    Aggregate,
    ApproximateAggregate,
    Filter,
    Join,
    OuterJoin,
    Plan,
    Project,
    SemiJoin,
)
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.evaluation.evaluate import computed
from headrace.expressions.tree import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Literals,
    children,
    transform_call,
)
from headrace.schema import BOOLEAN

_TRUE = Literal(True, BOOLEAN)


def fold_constants(plan: Plan) -> Plan:
    """Put the value in for every expression without columns, and leave out conditions that are TRUE.

    Before: `SELECT price * CAST(2 AS DOUBLE) FROM bid WHERE 1 = 1 AND price > 10 - 1`
    After: `SELECT price * 2e0 FROM bid WHERE price > 9`

    An expression that fails is left unchanged, and makes every row fail as before.
    """
    match plan:
        case Filter(input=below, predicate=predicate):
            parts = [fold(part) for part in conjuncts(predicate)]
            condition = conjunction(part for part in parts if part != _TRUE)
            if condition is None:
                return below
            return plan if condition == predicate else Filter(below, condition)
        case Project(input=below, items=items):
            mapped = tuple((name, fold(part)) for name, part in items)
            return plan if mapped == items else Project(below, mapped)
        case Join() | OuterJoin() | SemiJoin():
            equalities, residual = plan.equalities, plan.residual
            parts = [] if residual is None else [fold(part) for part in conjuncts(residual)]
            folded = tuple((fold(left), fold(right)) for left, right in equalities)
            condition = conjunction(part for part in parts if part != _TRUE)
            return _changed(plan, replace(plan, equalities=folded, residual=condition))
        case (
            Aggregate(keys=keys, aggregates=aggregates)
            | ApproximateAggregate(keys=keys, aggregates=aggregates)
        ):
            calls = tuple((name, transform_call(call, fold)) for name, call in aggregates)
            folded_keys = tuple((name, fold(key)) for name, key in keys)
            return _changed(plan, replace(plan, keys=folded_keys, aggregates=calls))
        case _:
            return plan


def fold(expression: Expression) -> Expression:
    """The expression with its constant parts computed."""
    match expression:
        case Column() | Literal() | Literals():
            return expression
        case Call(arguments=arguments):
            inner = tuple(map(fold, arguments))
            same = all(map(is_, inner, arguments))
            folded: Expression = expression if same else replace(expression, arguments=inner)
        case Cast(argument=argument):
            folded = replace(expression, argument=fold(argument))
        case Case(branches=branches, otherwise=otherwise):
            changed = tuple((fold(condition), fold(value)) for condition, value in branches)
            folded = replace(expression, branches=changed, otherwise=fold(otherwise))
        case _:
            assert_never(expression)
    if not all(isinstance(part, Literal | Literals) for part in children(folded)) or not _is_light(folded):
        return folded
    found = computed(folded)
    return folded if isinstance(found, Literal) and _weight(found) > _MOST else found


_MOST: Final = 10_000
"""So long texts, and lists, are computed when the plan is made; whoever asks for a plan waits for it."""
_GROWING: Final = ("REPEAT", "LPAD", "RPAD", "SEQUENCE", "GENERATE_SERIES")
"""Functions whose result can be as long as a number says."""


def _is_light(expression: Expression) -> bool:
    """Whether a constant expression is computed soon, and without much memory."""
    if sum(_weight(part) for part in children(expression) if isinstance(part, Literal | Literals)) > _MOST:
        return False
    literals = [part for part in children(expression) if isinstance(part, Literal)]
    if not isinstance(expression, Call) or expression.function not in _GROWING:
        return True
    numbers = [part.value for part in literals if not isinstance(part.value, str | bytes)]
    return all(isinstance(number, int) and abs(number) <= _MOST for number in numbers if number is not None)


def _weight(constant: Literal | Literals) -> int:
    """How long a value is, or how many there are."""
    value = constant.values if isinstance(constant, Literals) else constant.value
    return len(value) if isinstance(value, Sized) else 1


def _changed(old: Plan, new: Plan) -> Plan:
    return old if old == new else new
