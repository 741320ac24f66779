"""Filter rows before they are united."""

from __future__ import annotations

from headrace.algebra.nodes import Filter, Plan, Union


def push_filter_below_union(plan: Plan) -> Plan:
    """Move a Filter into every input of a Union (thesis, rule 10.5).

    Before: `SELECT * FROM (SELECT x FROM a UNION ALL SELECT x FROM b) WHERE x > 1`
    After: `SELECT x FROM a WHERE x > 1 UNION ALL SELECT x FROM b WHERE x > 1`

    The same rows are asked, so the same rows fail.
    """
    match plan:
        case Filter(input=Union(inputs=inputs), predicate=predicate):
            return Union(tuple(Filter(below, predicate) for below in inputs))
        case _:
            return plan
