"""Each value of a group once before all of them are added up."""

from __future__ import annotations

from headrace.algebra.nodes import Aggregate, Plan
from headrace.optimizer.simplify.distinct_before_aggregate import different_value, over_values


def distinct_before_groups(plan: Plan) -> Plan:
    """Find the different values of an Aggregate with groups by narrower groups.

    Before: `SELECT k, COUNT(DISTINCT v) AS n FROM s [RANGE 9 SLIDE 3] GROUP BY k`
    After: `SELECT k, COUNT(v) AS n FROM (SELECT k, v FROM s [RANGE 9 SLIDE 3] GROUP BY k, v) GROUP BY k`

    All rows of a group are in one bucket, so that few groups are with few tasks. Pairs of group and value are
    spread over all buckets, and what is found in each is added up before it travels. Where there are many
    groups, these are spread as well, and an exchange more is of no use.
    """
    if not isinstance(plan, Aggregate) or not plan.keys:
        return plan
    value = different_value(plan)
    return plan if value is None else over_values(plan, value)
