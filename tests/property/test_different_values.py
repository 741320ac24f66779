"""Aggregates of different values are found in all buckets, and are those of the reference."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.algebra.nodes import Aggregate, Plan
from headrace.algebra.properties import walk
from headrace.lowering.lower import lower
from headrace.optimizer import optimize, optimize_by
from headrace.optimizer.decisions import Decisions
from headrace.optimizer.simplify.distinct_before_groups import distinct_before_groups
from how_many import examples
from property.strategies import BUCKETS
from support import check_by_reference

WINDOWS = ("[NOW]", "[RANGE 3]", "[RANGE 4 SLIDE 2]", "[RANGE 2 SLIDE 3]", "[ROWS 3]", "[RANGE UNBOUNDED]")
SHAPES = (
    "SELECT COUNT(DISTINCT x) AS n FROM s {}",
    "SELECT SUM(DISTINCT v) AS total, AVG(DISTINCT v) AS mean, COUNT(DISTINCT v) AS n FROM s {}",
    "SELECT COUNT(DISTINCT name || 'a') AS n FROM s {} WHERE v > 0",
    "SELECT COUNT(DISTINCT a.v) AS n FROM s {0} a, s {0} b WHERE a.name = b.name",
    "SELECT COUNT(DISTINCT v) AS n FROM (SELECT name, MAX(v) AS v FROM s {} GROUP BY name)",
)
GROUPED = (
    "SELECT name, COUNT(DISTINCT v) AS n FROM s {} GROUP BY name",
    "SELECT x, name, SUM(DISTINCT v) AS total, COUNT(DISTINCT v) AS n FROM s {} GROUP BY x, name",
    "SELECT v AS value, COUNT(DISTINCT name || 'a') AS n FROM s {} WHERE v >= 0 GROUP BY v HAVING n < 2",
)
FIELDS = {"v": pa.int64(), "x": pa.float64(), "name": pa.string(), "ts": pa.int64()}
rows = st.tuples(
    st.sampled_from([None, 0, 1, 2, -7]),
    st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
    st.sampled_from([None, "", "a", "b"]),
    st.integers(0, 2),
)


def table_of(payloads: list[tuple[object, ...]]) -> pa.Table:
    """Rows in order of time, of which each comes some instants after the one before."""
    columns: dict[str, list[object]] = {name: [] for name in FIELDS}
    now = 0
    for *values, later in payloads:
        assert isinstance(later, int)
        now += later
        for name, value in zip(FIELDS, (*values, now), strict=True):
            columns[name].append(value)
    return pa.table({name: pa.array(columns[name], dtype) for name, dtype in FIELDS.items()})


@examples(4, 40)
@given(st.lists(rows, min_size=1, max_size=10), st.sampled_from(WINDOWS), BUCKETS)
def test_different_values_are_those_of_the_reference(
    payloads: list[tuple[object, ...]], window: str, buckets: int
) -> None:
    table = table_of(payloads)
    with headrace.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", table, timestamp="ts")
        texts = [shape.format(window) for shape in SHAPES + GROUPED]
        asked = {f"q{place}": db.query(text).plan for place, text in enumerate(texts)}
    check_by_reference({name: spread(plan) for name, plan in asked.items()}, table, buckets, asked)


def spread(plan: Plan) -> Plan:
    """The plan that is carried out where values of groups are spread too."""
    return optimize_by(plan, Decisions((distinct_before_groups.__name__,)))


@pytest.mark.parametrize(("window", "reduced"), [("[RANGE 4 SLIDE 2]", True), ("[RANGE 4]", False)])
@pytest.mark.parametrize("shape", GROUPED)
def test_different_values_of_groups_can_be_spread_too(shape: str, window: str, reduced: bool) -> None:
    with headrace.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", table_of([(1, 1.0, "a", 0)]), timestamp="ts")
        plan = db.query(shape.format(window)).plan
    assert len([node for node in walk(optimize(plan)) if isinstance(node, Aggregate)]) == 1
    *_, values, total = (
        node for node in lower({"q": spread(plan)}).nodes if isinstance(node.plan, Aggregate)
    )
    assert isinstance(total.plan, Aggregate)
    keys = len(total.plan.keys)
    assert values.spread_by == {tuple(range(keys + 1))}
    assert total.spread_by == {tuple(range(keys))}
    # Where groups end together, what a task has found of one is added up before it travels.
    assert (total.reduced_for is not None) == reduced


@pytest.mark.parametrize("shape", SHAPES)
def test_different_values_are_spread_before_they_are_added_up(shape: str) -> None:
    with headrace.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", table_of([(1, 1.0, "a", 0)]), timestamp="ts")
        graph = lower({"q": optimize(db.query(shape.format("[RANGE 9]")).plan)})
    *_, values, total = (node for node in graph.nodes if isinstance(node.plan, Aggregate))
    assert values.spread_by == {(0,)}
    assert [edge.producer for edge in total.inputs] == [values.number]
    assert total.reduced_for is not None


def test_different_values_are_known_after_a_restart(tmp_path: Path) -> None:
    found = [counted(None), counted(str(tmp_path))]
    assert found[0] == found[1]
    assert [(row["n"], row["valid_from"]) for row in found[0]] == [(1, 1), (2, 2), (1, 6), (2, 7), (1, 8)]


def counted(storage: str | None) -> list[dict[str, Any]]:
    """What a count says of rows of which some come after a restart, where there is a store."""
    db = headrace.connect(runner="inline", buckets=2, storage=storage)
    db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    db.execute("CREATE QUERY q AS SELECT COUNT(DISTINCT v) AS n FROM s [RANGE 5]")
    db.start()
    db.push("s", [{"v": 7, "ts": 1}, {"v": 8, "ts": 2}, {"v": 8, "ts": 3}])
    if storage is not None:
        db.close()
        db = headrace.connect(runner="inline", storage=storage)
        db.start()
    db.push("s", [{"v": 9, "ts": 7}, {"v": 9, "ts": 9}])
    (query,) = db.queries
    history: list[dict[str, Any]] = query.history().to_pylist()
    db.close()
    return history


@examples(4, 30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 5)), min_size=8, max_size=24))
def test_early_answers_come_to_be_those_that_wait(rows: list[tuple[int, int, int]]) -> None:
    assert histories("", rows) == histories("CONSISTENCY MIDDLE", rows)


def histories(level: str, rows: list[tuple[int, int, int]]) -> list[list[dict[str, Any]]]:
    """What counts of rows `(k, v, how late)` say, all of which are final: of each k, and of all."""
    counts = [f"SELECT COUNT(DISTINCT v) AS n FROM s [RANGE 5] WHERE k = {k}" for k in range(3)]
    counts.append("SELECT SUM(DISTINCT v) AS n FROM s [RANGE 6 SLIDE 3]")
    with headrace.connect(runner="inline", buckets=2) as db:
        db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 6")
        db.execute("; ".join(f"CREATE QUERY q{n} {level} AS {text}" for n, text in enumerate(counts)))
        db.start()
        for first in range(0, len(rows), 4):
            some = enumerate(rows[first : first + 4], first)
            db.push("s", [{"k": k, "v": v, "ts": 6 + place - late} for place, (k, v, late) in some])
        db.push("s", [{"k": 0, "v": 0, "ts": 100}])
        found = [query.history().filter(pc.field("valid_to") < 90) for query in db.queries]
        return [table.select(["n", "valid_from", "valid_to"]).to_pylist() for table in found]
