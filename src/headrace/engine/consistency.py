"""Up to where a query speaks, by what it says of CONSISTENCY."""

from __future__ import annotations

from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.language.catalog import check_duration
from headrace.language.statements import Consistency
from headrace.lowering.early import early


def at_level(plan: Plan, consistency: Consistency) -> Plan:
    """What a query is carried out as at a level of consistency.

    Args:
        plan: the query's, optimized.
        consistency: the level.

    Raises:
        LanguageError: a length of time does not fit the streams' timestamps.
    """
    streams = tuple(sorted({source.name for source in sources_of(plan)}))
    if consistency.block is None or not streams:
        # Without streams everything is final.
        return plan
    check_duration(consistency.block, plan.domain, "BLOCK", consistency.position)
    return early(plan, Horizon(streams, consistency.block.length))
