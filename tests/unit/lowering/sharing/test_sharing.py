"""What queries that are added together share, by the number of operators."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

import headrace
from golden.case import CASES, load
from headrace.algebra.nodes import Filter, Plan
from headrace.algebra.properties import is_stateful
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.lowering.sharing.share import share
from headrace.optimizer import optimize


def plans_of(*texts: str) -> dict[str, Plan]:
    rows = pa.table({"a": [1], "b": [1], "c": [1], "name": ["x"], "ts": [1]})
    with headrace.connect(runner="inline", dialect="pipes") as db:
        for name in ("r", "s", "t"):
            db.stream(name, rows, timestamp="ts")
        for text in texts:
            if text.startswith("CREATE"):
                db.execute(text)
        asked = [text for text in texts if not text.startswith("CREATE")]
        return {f"q{place}": optimize(db.query(text).plan) for place, text in enumerate(asked)}


def graph_of(*texts: str) -> Graph:
    plans = plans_of(*texts)
    return lower(plans, shared=share(plans).plans)


def stateful(graph: Graph) -> dict[str, int]:
    """How many operators with state there are, by kind."""
    return dict(Counter(type(node.plan).__name__ for node in graph.nodes if is_stateful(node.plan)))


RS = "FROM r [RANGE 10], s [RANGE 10] WHERE r.a = s.a"


def test_a_join_of_three_streams_shares_the_join_of_two_of_them() -> None:
    """The plans of figure 2 of STREAM's, without the selection."""
    graph = graph_of(
        f"SELECT r.c {RS}",
        "SELECT r.b, t.c FROM r [RANGE 10], s [RANGE 10], t [RANGE 10] WHERE r.a = s.a AND s.b = t.b",
    )
    assert stateful(graph) == {"Join": 2}


def test_queries_over_one_join_with_different_select_lists_share_it() -> None:
    lists = ("r.b", "s.b, s.c", "r.b + s.c AS d", "*", "r.name")
    assert stateful(graph_of(*(f"SELECT {listed} {RS}" for listed in lists))) == {"Join": 1}


def counts(*windows: str) -> list[str]:
    return [f"SELECT a, COUNT(*) AS n, AVG(b) AS m FROM r [RANGE {size}] GROUP BY a" for size in windows]


@pytest.mark.parametrize(
    ("windows", "operators"),
    [
        (("10", "8"), {"NestedAggregate": 1}),
        (("8", "10", "10", "3"), {"NestedAggregate": 1}),
        (("12 SLIDE 3", "6 SLIDE 3"), {"NestedAggregate": 1}),
        (("12 SLIDE 3", "6 SLIDE 3", "6 SLIDE 2"), {"NestedAggregate": 1, "Aggregate": 1}),
        (("12 SLIDE 3", "7 SLIDE 3"), {"Aggregate": 2}),
        (("10", "UNBOUNDED"), {"Aggregate": 2}),
        (("10", "1"), {"Aggregate": 2}),
    ],
)
def test_windows_of_several_lengths_are_one_operator(
    windows: tuple[str, ...], operators: dict[str, int]
) -> None:
    assert stateful(graph_of(*counts(*windows))) == operators


def test_groups_of_constants_are_apart_where_each_query_picks_its_own() -> None:
    texts = (f"SELECT COUNT(*) AS n FROM r [RANGE {size}] WHERE a = {a}" for size in (10, 8) for a in (1, 2))
    graph = graph_of(*texts)
    assert stateful(graph) == {"Aggregate": 2}
    assert len(graph.groups) == 4


def test_what_keeps_more_than_sums_of_its_window_is_apart() -> None:
    for call in ("MAX(b)", "COUNT(DISTINCT b)", "SUM(a)", "MEDIAN(b)"):
        texts = (f"SELECT a, {call} AS m FROM r [RANGE {size}] GROUP BY a" for size in (10, 8))
        assert stateful(graph_of(*texts)) == {"Aggregate": 2}


@pytest.mark.parametrize("on", ["r.a = s.a", "r.a = s.a AND r.b = s.b", "r.a = s.a AND r.b < s.c"])
def test_joins_written_in_either_order_are_one(on: str) -> None:
    turned = " AND ".join(" = ".join(reversed(part.split(" = "))) for part in reversed(on.split(" AND ")))
    graph = graph_of(
        f"SELECT r.c, s.c AS d FROM r [RANGE 10] JOIN s [RANGE 10] ON {on}",
        f"SELECT r.c, s.c AS d FROM s [RANGE 10] JOIN r [RANGE 10] ON {turned}",
    )
    assert stateful(graph) == {"Join": 1}
    assert len({output for _, output in graph.outputs}) == 1


def test_a_join_of_a_stream_with_itself_is_not_turned_round() -> None:
    graph = graph_of(
        "SELECT x.c FROM r [RANGE 10] x JOIN r [RANGE 10] y ON x.a = y.b",
        "SELECT y.c FROM r [RANGE 10] x JOIN r [RANGE 10] y ON x.a = y.b",
    )
    assert stateful(graph) == {"Join": 1}
    assert len({output for _, output in graph.outputs}) == 2


def test_different_aggregates_over_the_same_groups_are_one_operator() -> None:
    groups = "FROM r [RANGE 10 SLIDE 10] GROUP BY a"
    calls = ("COUNT(*) AS n", "MAX(b) AS m", "COUNT(*) AS rows, AVG(c) AS mean", "MIN(b) AS low")
    graph = graph_of(*(f"SELECT a, {call} {groups}" for call in calls), f"SELECT MAX(b) AS m, a {groups}")
    assert stateful(graph) == {"Aggregate": 1}


def test_aggregates_that_need_values_of_different_columns_stay_apart() -> None:
    """In one operator a row would travel to them for each combination of values, not for each group."""
    groups = "FROM r [RANGE 10 SLIDE 10] GROUP BY a"
    calls = ("MAX(b)", "MIN(c)", "MEDIAN(b)", "COUNT(DISTINCT name)")
    graph = graph_of(*(f"SELECT a, {call} AS v {groups}" for call in calls))
    assert stateful(graph) == {"Aggregate": 4}
    more = (*calls, "COUNT(*)", "AVG(c)", "MIN(b)", "PERCENTILE(b, 0.9)")
    graph = graph_of(*(f"SELECT a, {call} AS v {groups}" for call in more))
    assert stateful(graph) == {"Aggregate": 4}


def test_groups_of_windows_with_bounds_are_those_without() -> None:
    graph = graph_of(
        "SELECT a, COUNT(*) AS n FROM r [RANGE 10 SLIDE 10] GROUP BY a",
        "SELECT a, window_end, MAX(b) AS m FROM TUMBLE(r, 10) GROUP BY a, window_end",
        "SELECT a, window_start, MIN(b) AS m FROM TUMBLE(r, 10) GROUP BY a, window_start HAVING COUNT(*) > 1",
    )
    assert stateful(graph) == {"Aggregate": 1}


def test_an_aggregate_that_may_end_its_query_is_computed_for_those_alone_that_ask_for_it() -> None:
    groups = "FROM r [RANGE 10 SLIDE 10] GROUP BY a"
    calls = ("COUNT(*) AS n", "MAX(b) AS m", "SUM(b) AS total", "SUM(b) AS s, MIN(b) AS low", "SUM(c) AS s")
    graph = graph_of(*(f"SELECT a, {call} {groups}" for call in calls))
    assert stateful(graph) == {"Aggregate": 3}


def test_aggregates_over_windows_that_overlap_stay_apart() -> None:
    groups = "FROM r [RANGE 10] GROUP BY a"
    graph = graph_of(f"SELECT a, COUNT(*) AS n {groups}", f"SELECT a, MAX(b) AS m {groups}")
    assert stateful(graph) == {"Aggregate": 2}
    graph = graph_of(f"SELECT a, COUNT(*) AS n {groups}", f"SELECT COUNT(*) AS rows, a {groups}")
    assert stateful(graph) == {"Aggregate": 1}


def test_aggregates_of_queries_that_differ_in_a_constant_are_one_operator_for_all() -> None:
    text = "SELECT {call} AS v FROM r [RANGE 10 SLIDE 10] WHERE c = {constant}"
    calls = ("COUNT(*)", "MAX(a)", "AVG(b)")
    graph = graph_of(*(text.format(call=call, constant=one) for call in calls for one in range(5)))
    assert stateful(graph) == {"Aggregate": 1}
    assert len(graph.groups) == 15
    assert len(graph.result_nodes) == 3


def test_a_derived_stream_that_is_used_twice_is_computed_once() -> None:
    derived = f"CREATE STREAM both AS SELECT r.a, r.b, s.b AS d, s.c, r.name {RS}"
    graph = graph_of(
        derived,
        "SELECT a, MAX(d) AS m FROM both GROUP BY a",
        "SELECT name, b FROM both WHERE c > 3",
        "SELECT DISTINCT c FROM both",
    )
    assert stateful(graph)["Join"] == 1


def test_a_query_keeps_its_plan_where_it_shares_no_more_than_that() -> None:
    plans = plans_of(
        f"SELECT r.c {RS}",
        f"SELECT s.c {RS}",
        "SELECT a, COUNT(*) AS n FROM t [RANGE 10] GROUP BY a",
        "SELECT b FROM r WHERE c > 1",
        "SELECT b, a FROM r WHERE c > 1",
        "SELECT s.c FROM s [RANGE 10], t [RANGE 10] WHERE s.a = t.a",
    )
    assert share(plans).plans.keys() == {"q0", "q1"}
    assert all(plan.schema == plans[name].schema for name, plan in share(plans).plans.items())


def test_what_is_shared_does_not_depend_on_the_order_of_the_queries() -> None:
    plans = plans_of(f"SELECT r.c {RS}", f"SELECT s.c {RS}", f"SELECT r.b, s.b AS d {RS}")
    assert share(plans) == share(dict(reversed(plans.items())))


def test_queries_share_with_those_whose_operators_get_wider() -> None:
    texts = (f"SELECT r.c {RS}", f"SELECT r.c AS d {RS}", f"SELECT s.c {RS}")
    assert share(plans_of(*texts)).plans.keys() == {"q0", "q1", "q2"}


def test_a_selection_over_a_join_shares_it_with_a_join_of_three() -> None:
    """STREAM's figure 2, after optimization: both plans together have two joins."""
    queries = ("selection_over_join", "join_of_three")
    plans = {name: optimize(load(CASES / f"stream_{name}.txt").plan) for name in queries}
    assert stateful(lower(plans))["Join"] == 3
    assert stateful(lower(plans, shared=share(plans).plans)) == {"Join": 2, "RowWindow": 3}


def test_filters_of_several_queries_are_put_above_the_join_that_one_wants_without() -> None:
    conditions = ("r.b > 3", "s.c = 4 AND r.name = 'x'", "r.b > 3 AND s.c = 4")
    graph = graph_of(
        f"SELECT r.c {RS}", *(f"SELECT r.b, s.c {RS} AND {condition}" for condition in conditions)
    )
    assert stateful(graph) == {"Join": 1}


def test_filters_stay_below_where_nobody_wants_the_join_without_them() -> None:
    texts = (f"SELECT r.b, s.b AS d {RS} AND r.b > 3", f"SELECT r.b, s.b AS d {RS} AND s.b > 3")
    assert stateful(graph_of(*texts)) == {"Join": 2}
    assert not share(plans_of(*texts)).plans


def test_the_weaker_of_two_filters_stays_below() -> None:
    graph = graph_of(f"SELECT r.c {RS} AND r.b > 3", f"SELECT s.c {RS} AND r.b > 3 AND s.c = 4")
    assert stateful(graph) == {"Join": 1}
    above = [node for node in graph.nodes if isinstance(node.plan, Filter) and node.level]
    assert len(above) == 1


def test_a_filter_that_may_fail_stays_below_its_join() -> None:
    graph = graph_of(f"SELECT r.c {RS}", f"SELECT r.c {RS} AND 1 / r.b > 3")
    assert stateful(graph) == {"Join": 2}


def test_a_join_of_joins_is_picked_from_the_one_without_filters() -> None:
    three = "SELECT r.c FROM r [RANGE 10], s [RANGE 10], t [RANGE 10] WHERE r.a = s.a AND s.b = t.b"
    graph = graph_of(
        three, f"{three} AND r.b = 1", f"{three} AND t.c = 1", f"SELECT s.c {RS} AND s.name = 'x'"
    )
    assert stateful(graph) == {"Join": 2}
