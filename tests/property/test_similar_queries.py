"""Queries that differ in a constant share one aggregate, and answer as if each were alone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.algebra.nodes import Aggregate, Plan
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.optimizer import optimize
from how_many import examples
from property.strategies import BUCKETS
from support import check_by_reference

SHAPES = (
    "SELECT COUNT(*) AS n FROM s [RANGE 3] WHERE v = {number}",
    "SELECT COUNT(*) AS n FROM s [RANGE 3] WHERE {number} = MOD(v, 2) AND x > 0",
    "SELECT v, COUNT(x) AS n, MAX(x) AS top FROM s [RANGE 4 SLIDE 2] WHERE name = '{name}' GROUP BY v",
    "SELECT name, MIN(v) AS low FROM s [RANGE 4] WHERE v = {number} GROUP BY name HAVING COUNT(*) > 1",
    "SELECT AVG(v) AS mean FROM s WHERE name = '{name}' AND v = {number}",
    "SELECT window_start, COUNT(*) AS n FROM TUMBLE(s, 3) WHERE v = {number} GROUP BY 1, window_end",
    "SELECT COUNT(DISTINCT x) AS n, AVG(DISTINCT x) AS mean FROM s [RANGE 3] WHERE v = {number}",
    "SELECT v, window_end, MAX(x) AS top FROM HOP(s, 2, 4, 1) WHERE name = '{name}' GROUP BY v, window_end",
    "ISTREAM(SELECT window_end, COUNT(*) AS n FROM TUMBLE(s, 3) WHERE v = {number} GROUP BY window_end)",
    "DSTREAM(SELECT v, MAX(x) AS top FROM s [RANGE 4 SLIDE 2] WHERE name = '{name}' GROUP BY v)",
)
FIELDS = (("v", pa.int64()), ("x", pa.int64()), ("name", pa.string()), ("ts", pa.int64()))
rows = st.tuples(
    st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, -1, 3]), st.sampled_from([None, "", "a", "b"])
)
questions = st.tuples(st.sampled_from(SHAPES), st.integers(0, 3), st.sampled_from(["", "a", "c"]))


def table_of(payloads: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*(((*row, place // 2) for place, row in enumerate(payloads))), strict=True))
    return pa.table(
        {name: pa.array(column, dtype) for (name, dtype), column in zip(FIELDS, columns, strict=True)}
    )


def plans_of(texts: list[str], table: pa.Table) -> dict[str, Plan]:
    with headrace.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", table, timestamp="ts")
        return {f"q{place}": optimize(db.query(text).plan) for place, text in enumerate(texts)}


@examples(6, 54)
@given(st.lists(rows, min_size=1, max_size=10), st.lists(questions, min_size=1, max_size=6), BUCKETS)
def test_each_query_answers_as_the_reference(
    payloads: list[tuple[object, ...]], asked: list[tuple[str, int, str]], buckets: int
) -> None:
    table = table_of(payloads)
    plans = plans_of([shape.format(number=number, name=name) for shape, number, name in asked], table)
    check_by_reference(plans, table, buckets)


@pytest.mark.parametrize(("shape", "aggregates"), [(SHAPES[0], 1), (SHAPES[5], 1), (SHAPES[6], 2)])
def test_queries_of_one_shape_are_one_aggregate_whose_state_does_not_depend_on_their_constants(
    shape: str, aggregates: int
) -> None:
    table = table_of([(1, 1, "a")])
    few, many = (
        lower(plans_of([shape.format(number=number) for number in range(count)], table)) for count in (1, 50)
    )
    for graph in (few, many):
        assert sum(isinstance(node.plan, Aggregate) for node in graph.nodes) == aggregates
        assert len(graph.channels) == aggregates
    assert identities_of(few) == identities_of(many)


def test_queries_of_one_shape_are_groups_of_one_result() -> None:
    table = table_of([(1, 1, "a")])
    for shape in (*SHAPES[:4], *SHAPES[5:]):
        few, many = (
            lower(plans_of([shape.format(number=number, name=number) for number in range(count)], table))
            for count in (2, 50)
        )
        assert len(few.nodes) == len(many.nodes), shape
        assert len(many.groups) == 50
        assert len(many.result_nodes) == 1
        assert many.users[0] == tuple(f"q{place}" for place in range(50))


def test_rows_that_fail_above_the_groups_are_reported_by_query() -> None:
    text = "SELECT v / (v - {number}) AS q FROM (SELECT MAX(x) AS v FROM s [RANGE 3] WHERE v = {number})"
    graph = lower(plans_of([text.format(number=number) for number in range(3)], table_of([(1, 1, "a")])))
    assert not graph.groups


def test_an_aggregate_that_can_fail_is_not_shared() -> None:
    text = "SELECT SUM(v) AS total FROM s [RANGE 3] WHERE v = {}"
    graph = lower(plans_of([text.format(number) for number in range(3)], table_of([(1, 1, "a")])))
    assert sum(isinstance(node.plan, Aggregate) for node in graph.nodes) == 3


def identities_of(graph: Graph) -> list[str]:
    return [node.identity for node in graph.nodes if isinstance(node.plan, Aggregate)]
