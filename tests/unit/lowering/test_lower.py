"""What queries share in the graph: plans of the same start, and whatever has no state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import (
    EVERY_INSTANT,
    Aggregate,
    Distinct,
    Filter,
    Join,
    OuterJoin,
    Plan,
    Project,
    Source,
    TimeWindow,
    Union,
    column,
)
from headrace.expressions.tree import AggregateCall, Call, Column, Literal
from headrace.lowering.explain import explain_graph
from headrace.lowering.identity import identity
from headrace.lowering.lower import lower
from headrace.schema import BIGINT, BOOLEAN, Field, Schema
from headrace.time import INFINITY, Duration, TimeDomain

SCHEMA = Schema((Field("v", BIGINT),))
SOURCE = Source("s", SCHEMA, "t", TimeDomain.INTEGER)
SOME = Filter(SOURCE, Call(">", (Column(0, "v", BIGINT), Literal(1, BIGINT)), BOOLEAN))
COUNT = Aggregate(SOME, (), (("n", AggregateCall("COUNT", None, BIGINT)),))
MANY = Filter(COUNT, Call(">", (Column(0, "n", BIGINT), Literal(1, BIGINT)), BOOLEAN))


def test_equal_plans_of_one_start_are_one_node() -> None:
    graph = lower({"a": MANY, "b": MANY, "c": COUNT}, {"a": 3, "b": 3, "c": 3})
    assert [node.plan for node in graph.nodes] == [SOURCE, SOME, COUNT, MANY]
    assert graph.outputs == (("a", 3), ("b", 3), ("c", 2))


def test_state_and_what_stands_on_it_is_not_shared_between_starts() -> None:
    graph = lower({"a": MANY, "b": MANY, "c": SOME}, {"b": 7, "c": 9})
    assert [node.plan for node in graph.nodes] == [SOURCE, SOME, COUNT, MANY, COUNT, MANY]
    assert graph.outputs == (("a", 3), ("b", 5), ("c", 1))
    counts = [node.identity for node in graph.nodes if node.plan == COUNT]
    assert counts == [identity(COUNT), identity(COUNT, 7)]
    assert len(set(counts)) == 2
    assert len(graph.channels) == 1, "what travels to both is sent once"


def test_a_chain_of_outer_joins_takes_so_many_nodes_for_each_link() -> None:
    def chain(links: int) -> Plan:
        plan: Plan = SOURCE
        for link in range(links):
            key = (Column(link, "v", BIGINT), Column(0, "v", BIGINT))
            names = tuple(f"v{place}" for place in range(link + 2))
            plan = OuterJoin(plan, SOME, (key,), None, names, JoinKind.LEFT)
        return plan

    sizes = [len(lower({"a": chain(links)}).nodes) for links in (1, 2, 30)]
    assert sizes[2] - sizes[1] == 28 * (sizes[1] - sizes[0])
    assert lower({"a": chain(30)}).nodes[-1].identity != lower({"a": chain(29)}).nodes[-1].identity


def test_an_aggregation_adds_up_the_inputs_of_a_union_before_they_travel() -> None:
    seen = Distinct(TimeWindow(SOURCE, Duration(INFINITY), EVERY_INSTANT))
    grouped = Aggregate(Union((SOME, seen)), (("v", column(SOME, 0)),), COUNT.aggregates)
    whole = Aggregate(Union((SOME, seen)), (), COUNT.aggregates)
    graph = lower({"grouped": grouped, "whole": whole})
    assert [node.identity for node in graph.nodes if node.plan in (grouped, whole)] == [
        identity(grouped),
        identity(whole),
    ]
    # Groups of chronons that do not share intervals are not added up before; they meet in the union.
    assert explain_graph(graph).splitlines() == [
        "level 0",
        "  #0 Source s (v) by t",
        "  #1 Filter v > 1  <- #0",
        "  #2 TimeWindow RANGE UNBOUNDED  <- #0",
        "level 1",
        "  #3 Distinct  <- #2 by hash of v, without repetitions  [state that grows without bound]",
        "  #4 Union of 2  <- #1 by hash of the row, #3",
        "level 2",
        "  #5 Aggregate BY v: COUNT(*) AS n  <- #4 by hash of v  [state]",
        "  #6 Aggregate: COUNT(*) AS n  <- #1 to one bucket, added up before, "
        "#3 to one bucket, added up before  [state]",
        "grouped <- #5",
        "whole <- #6",
    ]


@pytest.mark.parametrize(("slide", "reduced"), [(2, True), (1, False)])
def test_groups_of_groups_are_added_up_before_they_travel_where_windows_end_together(
    slide: int, reduced: bool
) -> None:
    window = TimeWindow(SOURCE, Duration(4), Duration(slide))
    inner = Aggregate(window, (("v", column(window, 0)), ("odd", column(window, 0))), COUNT.aggregates)
    outer = Aggregate(inner, (("odd", column(inner, 1)),), COUNT.aggregates)
    node = lower({"q": outer}).nodes[-1]
    assert (node.reduced_for is not None) == reduced


def test_a_constant_is_no_key_of_what_is_distinct() -> None:
    begun = Distinct(
        Project(TimeWindow(SOURCE, Duration(INFINITY), EVERY_INSTANT), (("b", Literal(1, BIGINT)),))
    )
    count = Aggregate(Union((SOME, begun)), (), COUNT.aggregates)
    assert explain_graph(lower({"q": count})).splitlines()[5:] == [
        "level 1",
        "  #4 Distinct  <- #3 to one bucket, without repetitions  [state]",
        "  #5 Aggregate: COUNT(*) AS n  <- #1 to one bucket, added up before, #4  [state]",
        "q <- #5",
    ]


def test_a_column_that_equals_the_key_of_a_join_is_a_key_of_it_too() -> None:
    def joined(left: Plan, place: int, names: tuple[str, ...]) -> Join:
        return Join(left, SOME, ((column(left, place), column(SOME, 0)),), None, names)

    twice = joined(joined(SOME, 0, ("a", "b")), 1, ("a", "b", "c"))
    groups = Aggregate(twice, (("a", column(twice, 0)),), COUNT.aggregates)
    assert explain_graph(lower({"q": groups})).splitlines()[3:] == [
        "level 1",
        "  #2 Join ON a = b  <- #1 by hash of v, #1 by hash of v  [state]",
        "  #3 Join ON b = c  <- #2, #1 by hash of v  [state]",
        "  #4 Aggregate BY a: COUNT(*) AS n  <- #3  [state]",
        "q <- #4",
    ]


def test_a_graph_is_made_again_for_plans_that_are_equal_and_not_the_same() -> None:
    """Functions of users may differ in plans that are equal."""
    again = replace(MANY)
    graph = lower({"a": MANY})
    assert lower({"a": MANY}) is graph
    assert again == MANY
    assert lower({"a": again}) is not graph
    assert lower({"a": MANY}, {"a": 2}) is not graph
    assert lower({"b": MANY}) is not graph
