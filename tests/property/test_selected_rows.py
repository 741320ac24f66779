"""Queries that select rows of one stream are asked together, and answer as if each were alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace
from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Match, Source
from headrace.algebra.predicates import conjunction
from headrace.elements import from_rows, to_rows
from headrace.expressions.evaluation.evaluate import evaluate, predicate_mask
from headrace.expressions.functions import resolve
from headrace.expressions.tree import Column, Expression, Literal
from headrace.lowering import selections
from headrace.lowering.lower import lower
from headrace.operators import match
from headrace.operators.match import matched
from headrace.optimizer import optimize
from headrace.schema import BOOLEAN, Field, Schema
from headrace.time import TimeDomain
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
    match draw(st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "turned"))):
        case "BETWEEN":
            return resolve("BETWEEN", (of, *constants))
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


@settings(max_examples=60)
@given(
    st.lists(predicates(), min_size=1, max_size=8, unique=True),
    st.lists(payloads(SCHEMA), max_size=8),
    st.sampled_from((2, 10_000)),
)
def test_a_row_is_selected_by_the_predicates_that_are_true_of_it(
    asked_for: list[Expression], rows: list[tuple[Any, ...]], most: int
) -> None:
    node = Match(SOURCE, tuple(asked_for), "query")
    batch = from_rows(SCHEMA, [(row, place, place + 1, 1) for place, row in enumerate(rows)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match, "_MOST", most)
        found = [(element[0][-1], element[1]) for element in to_rows(matched(node, batch))]
    expected = [
        (number, place)
        for number, predicate in enumerate(node.predicates)
        for place in np.flatnonzero(predicate_mask(evaluate(predicate, batch.payload))).tolist()
    ]
    assert sorted(found) == expected


@pytest.fixture(autouse=True)
def _two_are_enough() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selections, "FEWEST", 2)
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
    # Those that may fail for a row are asked alone, and so is the only one over x and name.
    assert [len(graph.groups_of[number]) for number in sorted(graph.groups_of)] == [5, 4, 4]
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
