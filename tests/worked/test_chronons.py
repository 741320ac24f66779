"""Table 12.1 of the PIPES thesis: which operators yield chronons.

Its other column says how an operator leaves the order of the ends of its elements. Nothing depends on that
here: PIPES chooses a list or a priority queue by it, whereas a run keeps an index of its ends always.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from driving import standing_for
from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
    Distinct,
    Filter,
    Join,
    Plan,
    Project,
    RowWindow,
    SetOperation,
    Source,
    Split,
    TimeWindow,
    Union,
    column,
)
from headrace.expressions.aggregates import resolve_aggregate
from headrace.expressions.functions import literal
from headrace.schema import STRING, Field, Schema
from headrace.time import Duration, TimeDomain
from worked.tables import LOGICAL, emitted

ONE, TWO = (Source(name, Schema((Field("e", STRING),)), "t", TimeDomain.INTEGER) for name in ("S1", "S2"))
COUNT = (("n", resolve_aggregate("COUNT", None)),)


Chronons = Callable[[bool, bool], bool]
"""Whether the output holds chronons, by whether the inputs do."""

TABLE: dict[str, tuple[Callable[[Plan, Plan], Plan], Chronons]] = {
    "filter": (lambda one, two: Filter(one, literal(True)), lambda one, two: one),
    "map": (lambda one, two: Project(one, (("e", column(one, 0)),)), lambda one, two: one),
    # Always into instants: l_out = 1.
    "split": (lambda one, two: Split(one), lambda one, two: True),
    "union": (lambda one, two: Union((one, two)), lambda one, two: one and two),
    "join": (
        lambda one, two: Join(one, two, ((column(one, 0), column(two, 0)),), None, ("x", "y")),
        lambda one, two: one or two,
    ),
    "duplicate elimination": (lambda one, two: Distinct(one), lambda one, two: one),
    "difference": (
        lambda one, two: SetOperation(one, two, SetKind.EXCEPT_ALL),
        lambda one, two: one,
    ),
    "grouping": (
        lambda one, two: Aggregate(one, (("e", column(one, 0)),), COUNT),
        lambda one, two: one,
    ),
    "scalar aggregation": (lambda one, two: Aggregate(one, (), COUNT), lambda one, two: one),
    # A window is over chronons, of a split where they are not (section 12.3.2).
    "partitioned window": (
        lambda one, two: RowWindow(Split(one), 1, keys=(column(one, 0),)),
        lambda one, two: False,
    ),
    "count window": (lambda one, two: RowWindow(Split(one), 2), lambda one, two: False),
    "time window": (lambda one, two: TimeWindow(Split(one), Duration(3)), lambda one, two: False),
    "now-window": (lambda one, two: TimeWindow(Split(one), Duration(1)), lambda one, two: True),
    # Always as far as a row goes on: l_max is never 1.
    "coalesce": (lambda one, two: Coalesce(one), lambda one, two: False),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("one", [True, False], ids=["chronons", "intervals"])
@pytest.mark.parametrize("two", [True, False], ids=["chronons", "intervals"])
def test_chronons_by_table_12_1(name: str, one: bool, two: bool) -> None:
    build, condition = TABLE[name]
    left, right = (
        standing_for(source, chronons=chronons, insert_only=True)
        for source, chronons in ((ONE, one), (TWO, two))
    )
    plan = build(left, right)
    assert plan.is_chronon is condition(one, two)
    # The streams of table 8.1, in which rows go on from one instant to the next.
    for cuts in (1, 2):
        elements = emitted(plan, LOGICAL, cuts)
        assert elements
        assert not plan.is_chronon or all(te == ts + 1 for _, ts, te, _ in elements)
