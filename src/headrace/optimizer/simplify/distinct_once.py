"""Duplicates that are eliminated afterwards need not be eliminated before."""

from __future__ import annotations

from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import (
    Distinct,
    Filter,
    Plan,
    Project,
    SetOperation,
    Union,
    inputs_of,
    with_inputs,
)
from headrace.schema import DOUBLE


def distinct_once(plan: Plan) -> Plan:
    """Leave out the DISTINCT of what is united, filtered and listed below a DISTINCT.

    Before: `SELECT a FROM r [RANGE 9] UNION SELECT b FROM s [RANGE 5] UNION SELECT c FROM t [RANGE 3]`
    After: `SELECT DISTINCT * FROM (SELECT a FROM r [RANGE 9] UNION ALL SELECT b FROM s [RANGE 5] UNION ALL
    SELECT c FROM t [RANGE 3])`

    Each row is then remembered once. It does not pay where there are many duplicates below (see
    `distinct_before_union`). An expression is asked for each of several equal rows: there may be more dead
    letters.
    """
    match plan:
        case Distinct() | SetOperation(kind=SetKind.UNION):
            return _each_with_duplicates(plan)
        case _:
            return plan


def _each_with_duplicates(plan: Plan) -> Plan:
    before = inputs_of(plan)
    after = tuple(map(_with_duplicates, before))
    same = all(one is other for one, other in zip(before, after, strict=True))
    return plan if same else with_inputs(plan, after)


def _with_duplicates(plan: Plan) -> Plan:
    """A plan without its own DISTINCT, as far down as only the different rows of its result count."""
    # Of 0 and -0, the same to DISTINCT, an expression may make different values.
    is_exact = DOUBLE not in {field.type for field in plan.schema}
    match plan:
        case Distinct(input=below) if is_exact:
            return _with_duplicates(below)
        case SetOperation(kind=SetKind.UNION) if is_exact:
            return _each_with_duplicates(Union(inputs_of(plan)))
        case Union() | Filter() | Project():
            return _each_with_duplicates(plan)
        case _:
            return plan
