"""No TopK where all rows are among the first."""

from __future__ import annotations

from headrace.algebra.nodes import Plan, TopK


def remove_trivial_top_k(plan: Plan) -> Plan:
    """Remove a TopK that leaves all rows and does not number them: only a snapshot shows their order.

    Before: `SELECT auction, price FROM bid ORDER BY price`
    After: `SELECT auction, price FROM bid`
    """
    match plan:
        case TopK(input=below, limit=None, offset=0, number=None):
            return below
        case _:
            return plan
