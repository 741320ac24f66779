"""Queries that select rows of one stream are asked together, and answer as if each were alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Aggregate, Match, Source
from headrace.algebra.predicates import conjunction
from headrace.elements import from_rows, to_rows
from headrace.expressions.evaluation.evaluate import evaluate, predicate_mask
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Column, Expression, Literal
from headrace.lowering import matched_groups, selections
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.lowering.sharing.weighing import shows_nothing
from headrace.operators import match
from headrace.operators.match import matched
from headrace.optimizer import optimize
from headrace.runtime.driver.query_set import QuerySet
from headrace.schema import BOOLEAN, Field, Schema
from headrace.time import TimeDomain
from how_many import examples
from property.expression_strategies import expressions
from property.strategies import ALL_TYPES, payloads, values
from support import check_by_reference

SCHEMA = Schema(tuple(Field(f"c{place}", kind) for place, kind in enumerate(ALL_TYPES)))
COMPARED = [
    Column(place, field.name, field.type) for place, field in enumerate(SCHEMA) if field.type != BOOLEAN
]
SOURCE = Source("s", SCHEMA, "c0", TimeDomain.INTEGER)


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    of = draw(st.sampled_from(COMPARED))
    constants = [Literal(draw(values(of.type, nulls=False)), of.type) for _ in range(2)]
    match draw(st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "turned", "IN", "OR"))):
        case "BETWEEN":
            return resolve("BETWEEN", (of, *constants))
        case "IN":
            return resolve("IN", (of, *constants))
        case "OR":
            return resolve("OR", (draw(comparisons()), draw(comparisons())))
        case "turned":
            return resolve("<", (constants[0], of))
        case operator:
            return resolve(operator, (of, constants[0]))


@st.composite
def predicates(draw: st.DrawFn) -> Expression:
    """One comparison with a constant at least, and perhaps something else that is NULL for some rows."""
    others = expressions(SCHEMA, BOOLEAN, depth=2).filter(lambda found: not can_fail(found))
    parts = [*draw(st.lists(comparisons(), min_size=1, max_size=3)), *draw(st.lists(others, max_size=1))]
    found = conjunction(draw(st.permutations(parts)))
    assert found is not None
    return found


@examples(20, 60)
@given(
    st.lists(predicates(), min_size=1, max_size=8, unique=True),
    st.lists(payloads(SCHEMA), max_size=8),
    st.sampled_from((2, 10_000)),
)
def test_a_row_is_selected_by_the_predicates_that_are_true_of_it(
    asked_for: list[Expression], rows: list[tuple[Any, ...]], most: int
) -> None:
    node = Match(SOURCE, tuple((place * 3, one) for place, one in enumerate(asked_for)), "query")
    batch = from_rows(SCHEMA, [(row, place, place + 1, 1) for place, row in enumerate(rows)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match, "_MOST", most)
        found = [(element[0][-1], element[1]) for element in to_rows(matched(node, batch))]
    expected = [
        (number, place)
        for number, predicate in node.predicates
        for place in np.flatnonzero(predicate_mask(evaluate(predicate, batch.payload))).tolist()
    ]
    assert sorted(found) == expected


@pytest.fixture(autouse=True)
def _two_are_enough() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (selections, matched_groups):
            patch.setattr(module, "FEWEST", 2)
        yield


SHAPES = (
    "SELECT * FROM s WHERE {}",
    "SELECT x, v + x AS y FROM s WHERE {}",
    "SELECT name FROM s WHERE {}",
    "SELECT name FROM s [RANGE 3 SLIDE 2] WHERE {}",
)
ASKED = (
    "v > 1",
    "v BETWEEN 0 AND 1",
    "2 <> v",
    "name = 'a' AND x < 3",
    "v <= 1 AND name LIKE '%a'",
    "10 / v > 5",
    "v IN (0, 3) OR x = 3 AND name >= 'a'",
)
TABLE = pa.table(
    {
        "v": pa.array([None, 0, 1, 2, 3, 2], pa.int64()),
        "x": pa.array([1, None, -1, 3, 3, 2], pa.int64()),
        "name": pa.array(["a", "b", None, "ba", "a", "a"]),
        "ts": pa.array([0, 0, 1, 3, 4, 4], pa.int64()),
    }
)


def test_each_query_answers_as_the_reference() -> None:
    with headrace.connect(runner="inline") as db:
        db.stream("s", TABLE, timestamp="ts")
        texts = [shape.format(one) for shape in SHAPES for one in ASKED]
        plans = {f"q{place}": optimize(db.query(text).plan) for place, text in enumerate(texts)}
    graph = lower(plans)
    # Those that may fail for a row are asked alone, and so are those whose columns no other reads.
    assert [len(graph.groups_of[number]) for number in sorted(graph.groups_of)] == [6, 4, 4]
    check_by_reference(plans, TABLE, 2)


def answers(fewest: int) -> tuple[dict[str, list[Any]], list[Any]]:
    """What queries that come and go say, and the dead letters."""
    with pytest.MonkeyPatch.context() as patch, headrace.connect(runner="inline") as db:
        patch.setattr(selections, "FEWEST", fewest)
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("; ".join(f"CREATE QUERY q{n} AS SELECT v FROM s WHERE v > {n}" for n in range(4)))
        db.execute("CREATE QUERY fails AS SELECT v FROM s WHERE 10 / v > 1")
        db.start()
        db.push("s", [{"v": 2, "ts": 1}, {"v": 0, "ts": 2}])
        db.execute("CREATE QUERY late AS SELECT v FROM s WHERE v < 1; DROP QUERY q1; DROP QUERY q2")
        db.push("s", [{"v": 3, "ts": 3}, {"v": 0, "ts": 4}])
        db.execute("DROP QUERY q3")
        db.push("s", [{"v": 5, "ts": 5}])
        db.stop()
        found = {query.name: query.changes().to_pylist() for query in db.queries}
        return found, db.dead_letters().to_pylist()


def test_queries_come_and_go_as_if_each_were_asked_alone() -> None:
    together, alone = answers(2), answers(1_000)
    assert together == alone
    assert {name: len(found) for name, found in alone[0].items()} == {"q0": 2, "fails": 2, "late": 1}
    assert len(alone[1]) == 2


GROUPED = (
    "SELECT COUNT(*) AS n FROM s [RANGE 3] WHERE {}",
    "SELECT name, MAX(x) AS top FROM s [RANGE 4 SLIDE 2] WHERE {} GROUP BY name",
    "SELECT AVG(x) AS mean FROM s [NOW] WHERE {}",
    "SELECT COUNT(DISTINCT x) AS n FROM s [RANGE 3 SLIDE 2] WHERE {}",
)


def defined(texts: list[str]) -> QuerySet:
    with headrace.connect(runner="inline") as db:
        db.stream("s", TABLE, timestamp="ts")
        plans = {f"q{place}": optimize(db.query(text).plan) for place, text in enumerate(texts)}
    return QuerySet.begun(plans, shows_nothing)


def test_aggregates_of_selected_rows_are_groups_of_one_aggregate() -> None:
    queries = defined([shape.format(one) for shape in GROUPED for one in ASKED])
    groups = queries.graph.groups_of
    # Those with one number are where name = 'a' is a constant that is data.
    assert sorted(map(len, groups.values())) == [1, 1, 1, 1, 2, 2, 3, 3, 3, 5]
    check_by_reference(queries.plans, TABLE, 2)
    few = defined([GROUPED[0].format(f"v > {n}") for n in range(2)])
    many = few.changed({**few.plans, **defined([GROUPED[0].format("v < 7")]).plans}, 2, shows_nothing)
    assert identities(few.graph) <= identities(many.graph)


def identities(graph: Graph) -> set[str]:
    return {node.identity for node in graph.nodes if isinstance(node.plan, Aggregate)}


@pytest.mark.parametrize("storage", [False, True])
def test_aggregates_come_and_go(storage: bool, tmp_path: Path) -> None:
    found = []
    for fewest in (2, 1_000):
        folder = str(tmp_path / str(fewest)) if storage else None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matched_groups, "FEWEST", fewest)
            found.append(_counted(folder))
    assert found[0] == found[1]
    assert all(found[0].values())


def test_predicates_with_the_number_of_another_are_asked_alone(tmp_path: Path) -> None:
    found = []
    for fewest in (2, 1_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matched_groups, "FEWEST", fewest)
            patch.setattr(matched_groups, "_number_of", lambda predicate: 7)
            found.append(_counted(str(tmp_path / str(fewest))))
    assert found[0] == found[1]


def _counted(storage: str | None) -> dict[str, list[Any]]:
    """What counts say that come and go, and begin again where there is a store."""
    db = headrace.connect(runner="inline", storage=storage)
    db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    count = "CREATE QUERY {} AS SELECT COUNT(*) AS n FROM s [RANGE 3] WHERE {}"
    db.execute("; ".join(count.format(f"q{n}", f"v > {n}") for n in range(4)))
    db.start()
    db.push("s", [{"v": 2, "ts": 1}, {"v": 5, "ts": 2}])
    db.execute("; ".join([count.format("late", "v < 5"), "DROP QUERY q1"]))
    db.push("s", [{"v": 3, "ts": 3}, {"v": 4, "ts": 4}])
    if storage is not None:
        db.close()
        db = headrace.connect(runner="inline", storage=storage)
        db.start()
    db.push("s", [{"v": 3, "ts": 6}, {"v": 4, "ts": 9}])
    found = {query.name: query.changes().to_pylist() for query in db.queries}
    db.close()
    return found
