"""Each row once before it is united with others."""

from __future__ import annotations

from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import Distinct, Plan, SetOperation, Union, inputs_of, with_inputs
from headrace.algebra.properties import has_one_row
from headrace.schema import DOUBLE


def distinct_before_union(plan: Plan) -> Plan:
    """Eliminate duplicates in the inputs of a union whose result has none either.

    Before: `SELECT item FROM bid [RANGE 500] UNION SELECT item FROM auction [RANGE 100]`
    After: the same of `SELECT DISTINCT item FROM bid [RANGE 500]` and `SELECT DISTINCT item FROM auction
    [RANGE 100]`

    What several inputs have is still there more than once, so that duplicates are eliminated once more
    afterwards (thesis, lemma 10.2). It pays where one input has many duplicates, and where something else
    wants it without them anyway.
    """
    match plan:
        case Distinct(input=Union(inputs=inputs)):
            below = tuple(map(_distinct, inputs))
            return plan if below == inputs else Distinct(Union(below))
        case SetOperation(kind=SetKind.UNION):
            before = inputs_of(plan)
            below = tuple(map(_distinct, before))
            return plan if below == before else with_inputs(plan, below)
        case _:
            return plan


def _distinct(plan: Plan) -> Plan:
    # 0 and -0 are the same to DISTINCT, and which of them is kept would follow from one input alone.
    is_done = DOUBLE in {field.type for field in plan.schema}
    if is_done or has_one_row(plan, frozenset(range(len(plan.schema)))):
        return plan
    return distinct_before_union(Distinct(plan))
