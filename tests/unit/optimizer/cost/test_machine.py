"""What work takes on a machine, and what operators do that it is taken for."""

from __future__ import annotations

import pytest

from headrace.algebra.nodes import Aggregate, Filter, Plan, Project, Source, TimeWindow, column
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate
from headrace.expressions.functions.functions import literal, resolve
from headrace.optimizer.cost.machine import MACHINE, Constants, Machine
from headrace.optimizer.cost.work import NodeCounts, Work, WorkKind, reading, work_of
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import Duration, TimeDomain

SOURCE = Source("s", Schema((Field("v", BIGINT), Field("x", STRING))), "t", TimeDomain.INTEGER)
COUNTS = NodeCounts(taken=100, given=10, kept=1_000, epochs=4)


def works(plan: Plan) -> dict[WorkKind, Work]:
    """What a node does, without what it does not do."""
    return {work.kind: work for work in work_of(plan, COUNTS) if work.taken or work.given}


def test_seconds_are_those_of_rows_and_epochs() -> None:
    machine = Machine(
        "some", {WorkKind.JOIN: Constants(2e-6, 3e-6, 5e-6, 7e-3), WorkKind.PASS: Constants(1e-6)}
    )
    join = Work(WorkKind.JOIN, taken=1_000, given=100, kept=10, epochs=2)
    assert machine.seconds((join,)) == pytest.approx(2e-3 + 3e-4 + 5e-5 + 14e-3)
    assert machine.seconds((join, Work(WorkKind.PASS, 500))) == pytest.approx(
        2e-3 + 3e-4 + 5e-5 + 14e-3 + 5e-4
    )


def test_constants_are_read_as_they_were_written() -> None:
    machine = Machine(
        "some", {WorkKind.JOIN: Constants(2e-6, 0.0, 5e-9, 7e-3), WorkKind.PASS: Constants(1.23e-7)}
    )
    again = Machine.read(machine.written())
    assert again.name == "some"
    assert again.seconds([Work(kind, 3, 5, 7, 11) for kind in machine.constants]) == pytest.approx(
        machine.seconds([Work(kind, 3, 5, 7, 11) for kind in machine.constants])
    )


def test_the_package_has_constants_of_all_work_and_says_where_they_are_from() -> None:
    assert set(MACHINE.constants) == set(WorkKind)
    assert all(MACHINE.seconds((Work(kind, 1e6, 1e6, 1e6, 100),)) > 0 for kind in WorkKind)
    assert "cores" in MACHINE.name
    assert "Headrace" in MACHINE.name


def test_values_and_texts_are_read_and_computed() -> None:
    read = {work.kind: work.taken for work in reading(SOURCE.schema, NodeCounts(0, 100, 0, 1))}
    assert read == {WorkKind.READ: 100, WorkKind.READ_TEXT: 100}
    few = resolve("<", (column(SOURCE, 0), literal(3)))
    text = resolve("LENGTH", (column(SOURCE, 1),))
    pattern = resolve("LIKE", (column(SOURCE, 1), literal("a%")))
    assert works(Filter(SOURCE, few))[WorkKind.COMPUTE].taken == 100
    found = works(Project(SOURCE, (("a", text), ("b", pattern), ("c", column(SOURCE, 0)))))
    assert {kind: work.taken for kind, work in found.items()} == {
        WorkKind.PASS: 100,
        WorkKind.COMPUTE_TEXT: 100,
        WorkKind.PATTERN: 100,
    }


def test_aggregates_do_as_much_as_the_values_that_they_keep() -> None:
    window = TimeWindow(SOURCE, Duration(10))
    value = column(window, 0)
    distinct = Modifiers(distinct=True)
    calls = (
        resolve_aggregate("SUM", value),
        resolve_aggregate("COUNT", value, modifiers=distinct),
        resolve_aggregate("SUM", value, modifiers=distinct),
        resolve_aggregate("MIN", value),
        resolve_aggregate("MAX", value),
        resolve_aggregate("MEDIAN", column(window, 0)),
    )
    found = works(Aggregate(window, (), tuple((f"c{place}", call) for place, call in enumerate(calls))))
    assert found[WorkKind.SUMS] == Work(WorkKind.SUMS, 100, 10, 4_000, 4)
    # Both of distinct values read one timeline.
    assert found[WorkKind.DISTINCT_VALUES].taken == 100
    # The median needs all values, in the order of MIN and MAX.
    assert WorkKind.ENDS not in found
    assert found[WorkKind.VALUES].taken == 100
    ends = works(Aggregate(window, (), tuple((f"c{place}", call) for place, call in enumerate(calls[3:5]))))
    assert ends[WorkKind.ENDS].taken == 100
