"""Whether different values of groups are to be spread by value, since there are few groups.

This spares no processor time: an exchange more lets more tasks have a part in what is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.algebra.nodes import Aggregate, Plan, Source
from headrace.engine.catalog.definitions import RESULT, Definitions
from headrace.engine.planning.samples import Sampled, flow_in
from headrace.lowering.lower import lower
from headrace.optimizer.cost.flow import Flow
from headrace.optimizer.cost.work import EPOCH_ROWS
from headrace.optimizer.simplify.distinct_before_aggregate import different_value
from headrace.optimizer.simplify.distinct_before_groups import distinct_before_groups
from headrace.runtime.intake.streams import BoundedStream

_LARGE_GROUP: Final = 1 / 16
"""A group is large if it has such a part of all values: its task may have much more than the others."""
_MANY_VALUES: Final = 0.1
"""Of fewer values for each row little is left to do once rows are added up where they are read."""
_LONG: Final = 100_000
"""So many values take a tenth of a second, and one exchange more a part of that."""


def come_in_bulk(defined: Definitions, nodes: Iterable[Plan]) -> bool:
    """Whether all streams of a plan end, and have many rows: of few it does not pay to look at some.

    What never ends comes in small epochs, for which one task is enough.

    Args:
        defined: the streams.
        nodes: those of the plan.
    """
    known = defined.streams
    streams = [known.get(name) for name in {node.name for node in nodes if isinstance(node, Source)}]
    bounded = [stream for stream in streams if isinstance(stream, BoundedStream)]
    return len(bounded) == len(streams) and sum(stream.source.rows for stream in bounded) >= _LONG


def has_few_groups(look: Sampled, plan: Plan) -> bool:
    """Whether different values of groups would be with few tasks, and are what takes time.

    Rows have to be added up before they travel, so that what travels twice is little.

    Args:
        look: what was seen of the plan's inputs.
        plan: it has aggregates of different values.
    """
    return all(
        node.reduced_for is not None and _is_uneven(node.plan, flow_in(look, node.plan.input), look.elapsed)
        for node in lower({RESULT: plan}).nodes
        if isinstance(node.plan, Aggregate) and distinct_before_groups(node.plan) is not node.plan
    )


def _is_uneven(plan: Aggregate, flow: Flow, elapsed: float) -> bool:
    """Whether one group has many of the different values of all, and many rows have one of their own."""
    keys, value = tuple(key for _, key in plan.keys), different_value(plan)
    assert value is not None
    if flow.largest_part(keys, (*keys, value)) < _LARGE_GROUP:
        return False
    together = min(flow.rate * flow.step, EPOCH_ROWS)
    values = flow.growth((*keys, value)).at(together) / max(together, 1.0)
    return values >= _MANY_VALUES and values * flow.rate * elapsed >= _LONG
