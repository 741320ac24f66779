"""Let rows that go on be one element, before each element is joined."""

from __future__ import annotations

from typing import Final

from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
    Filter,
    Join,
    OuterJoin,
    Plan,
    Project,
    SemiJoin,
    SessionWindow,
    TimeWindow,
    WindowBounds,
    inputs_of,
    with_inputs,
)
from headrace.expressions.tree import Call, Column, Expression, columns_of
from headrace.schema import BOOLEAN

_NAMES = "DIV FLOOR CEIL ROUND SIGN DATE_TRUNC DATE_FORMAT YEAR MONTH DAY"
_COARSE: Final = frozenset(_NAMES.split())
"""Functions that have few results, which therefore stay when their argument changes."""


def coalesce_below_join(plan: Plan) -> Plan:
    """Put a Coalesce below a join, over an aggregate whose changes are left out (thesis, example 12.1).

    Before: `... a JOIN (SELECT k FROM (SELECT k, COUNT(*) AS n FROM b GROUP BY k) WHERE n > 3)`
    After: the same, with the rows `k` coalesced: whenever `n` changes, one element of `k` ends and another
    begins, and a join would make as many elements for each row that it meets.

    The groups' keys must be left, so that the elements of a row are together without another exchange; and
    groups must outlast their changes, as in a window that slides. The partners of a semi-join by equality are
    made distinct anyway.
    """
    match plan:
        case SemiJoin(left=left, right=right, residual=None):
            return with_inputs(plan, (_coalesced(left), right))
        case Join() | OuterJoin() | SemiJoin():
            return with_inputs(plan, tuple(map(_coalesced, inputs_of(plan))))
        case _:
            return plan


def _coalesced(plan: Plan) -> Plan:
    return Coalesce(plan) if _is_fragmented(plan) else plan


def _is_fragmented(plan: Plan) -> bool:
    """Whether rows often end where they go on: those of an aggregate, without a result that changes."""
    if not isinstance(plan, Project) or plan.is_chronon:
        return False
    below: Plan = plan.input
    while isinstance(below, Filter):
        below = below.input
    if not isinstance(below, Aggregate) or _is_renewed(below.input):
        return False
    items = [item for _, item in plan.items]
    kept = {item.index for item in items if isinstance(item, Column)}
    exact = frozenset[int]().union(*(columns_of(item) for item in items if not _is_coarse(item)))
    width, keys = len(below.schema), len(below.keys)
    return kept.issuperset(range(keys)) and not exact.issuperset(range(keys, width))


def _is_renewed(plan: Plan) -> bool:
    """Whether all rows leave when others come, as in windows that tumble, so that few groups go on."""
    while isinstance(plan, Filter | Project | WindowBounds):
        plan = plan.input
    match plan:
        case TimeWindow(size=size, slide=slide):
            return size.length <= slide.length
        case _:
            return isinstance(plan, SessionWindow)


def _is_coarse(item: Expression) -> bool:
    return item.type == BOOLEAN or (isinstance(item, Call) and item.function in _COARSE)
