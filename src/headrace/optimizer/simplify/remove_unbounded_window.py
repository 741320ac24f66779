"""ISTREAM over an unbounded window is the stream itself, as the thesis rewrites CQL (15.1.1)."""

from __future__ import annotations

from headrace.algebra.nodes import Istream, Plan
from headrace.algebra.unbounded import without_unbounded_window


def remove_unbounded_window(plan: Plan) -> Plan:
    """Take the window out of `ISTREAM(SELECT L FROM S [RANGE UNBOUNDED] WHERE C)`.

    What is new in an unbounded window at an instant are the rows of that instant:

        SELECT ISTREAM(L) FROM S [RANGE UNBOUNDED] WHERE C   becomes   SELECT L FROM S [NOW] WHERE C

    The state that held all rows so far is gone. Filters, projections and unions may be in between.
    """
    if not isinstance(plan, Istream):
        return plan
    below = without_unbounded_window(plan.input)
    return plan if below is None else below
