"""The order of joins: what is chosen by a sample, beside all others over other rows; and that it is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace.algebra.nodes import Join, Plan
from headrace.algebra.properties import walk
from headrace.engine.planning.decisions import decided
from headrace.engine.query.choices import decisions_in
from headrace.engine.query.query import Query
from headrace.engine.shown.status import status_of
from headrace.history import equivalent
from headrace.optimizer import optimize, optimize_by
from headrace.optimizer.decisions import Decisions
from headrace.optimizer.joins.join_graph import JoinGraph, JoinOrder, join_graph
from headrace.runtime.driver.endless.retries import run_to_end
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.facts.progress import Progress
from headrace.runtime.driver.facts.status import OperatorStatus
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import BoundedStream
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks.inline import InlineRunner
from support import TableSource

SPAN = 400
"""All streams are so long (instants)."""

Columns = Mapping[str, tuple[int, float]]
"""Per column how many values it has, and how skewed they are: v is (v + 1) ** skew times rarer than 0."""


def rows(count: int, columns: Columns, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    found = {"ts": np.sort(random.integers(0, SPAN, count))}
    for name, (values, skew) in columns.items():
        weights = 1 / np.arange(1, values + 1) ** skew
        found[name] = random.choice(values, count, p=weights / weights.sum())
    return pa.table(found)


JOINS: dict[str, tuple[str, Mapping[str, tuple[int, Columns]]]] = {
    "a rare stream at the end": (
        "FROM a [RANGE 20], b [RANGE 20], c [RANGE 20] WHERE a.x = b.x AND b.y = c.y",
        {"a": (400, {"x": (9, 0)}), "b": (400, {"x": (9, 0), "y": (5, 0)}), "c": (20, {"y": (5, 0)})},
    ),
    "skewed keys first": (
        "FROM a [RANGE 30], b [RANGE 30], c [RANGE 30] WHERE a.x = b.x AND b.y = c.y",
        {
            "a": (200, {"x": (20, 1.5)}),
            "b": (200, {"x": (20, 1.5), "y": (20, 0)}),
            "c": (200, {"y": (20, 0)}),
        },
    ),
    "a triangle": (
        "FROM a [RANGE 25], b [RANGE 25], c [RANGE 5] WHERE a.x = b.x AND b.y = c.y AND c.z = a.z",
        {
            "a": (300, {"x": (4, 0), "z": (30, 0)}),
            "b": (300, {"x": (4, 0), "y": (6, 0)}),
            "c": (150, {"y": (6, 0), "z": (30, 0)}),
        },
    ),
    "a star": (
        "FROM a [NOW], b [RANGE 40], c [RANGE 40], d [RANGE 40] WHERE a.x = b.x AND a.y = c.y AND a.z = d.z",
        {
            "a": (400, {"x": (8, 0), "y": (8, 0.5), "z": (40, 0)}),
            "b": (200, {"x": (8, 0)}),
            "c": (60, {"y": (8, 0.5)}),
            "d": (40, {"z": (40, 0)}),
        },
    ),
    "a chain of four": (
        "FROM a [RANGE 20], b [RANGE 20], c [RANGE 20], d [RANGE 20] "
        "WHERE a.x = b.x AND b.y = c.y AND c.z = d.z",
        {
            "a": (300, {"x": (12, 0)}),
            "b": (200, {"x": (12, 0), "y": (6, 1)}),
            "c": (100, {"y": (6, 1), "z": (9, 0)}),
            "d": (20, {"z": (9, 0)}),
        },
    ),
    "a filter that lets few rows pass": (
        "FROM a [RANGE 20], b [RANGE 20], c [RANGE 20], d [RANGE 20] "
        "WHERE a.x = b.x AND b.y = c.y AND c.z = d.z AND d.w < 2",
        {
            "a": (200, {"x": (9, 0)}),
            "b": (200, {"x": (9, 0), "y": (9, 0)}),
            "c": (200, {"y": (9, 0), "z": (9, 0)}),
            "d": (400, {"z": (9, 0), "w": (50, 0)}),
        },
    ),
    "a chain of five": (
        "FROM a [RANGE 12], b [RANGE 12], c [RANGE 12], d [RANGE 12], e [RANGE 12] "
        "WHERE a.x = b.x AND b.y = c.y AND c.z = d.z AND d.w = e.w",
        {
            "a": (300, {"x": (5, 0)}),
            "b": (150, {"x": (5, 0), "y": (9, 0)}),
            "c": (60, {"y": (9, 0), "z": (6, 1)}),
            "d": (150, {"z": (6, 1), "w": (12, 0)}),
            "e": (40, {"w": (12, 0)}),
        },
    ),
    "a star of five": (
        "FROM a [NOW], b [RANGE 30], c [RANGE 30], d [RANGE 30], e [RANGE 30] "
        "WHERE a.x = b.x AND a.y = c.y AND a.z = d.z AND a.w = e.w",
        {
            "a": (300, {"x": (6, 1), "y": (6, 0), "z": (30, 0), "w": (15, 0)}),
            "b": (100, {"x": (6, 1)}),
            "c": (120, {"y": (6, 0)}),
            "d": (60, {"z": (30, 0)}),
            "e": (200, {"w": (15, 0)}),
        },
    ),
}


def text_of(join: str) -> str:
    clause, streams = JOINS[join]
    return f"SELECT {', '.join(f'{name}.ts AS {name}_ts' for name in streams)} {clause}"


def tables(join: str, seed: int) -> dict[str, pa.Table]:
    streams = JOINS[join][1].items()
    return {
        name: rows(count, columns, seed + place) for place, (name, (count, columns)) in enumerate(streams)
    }


def all_orders(graph: JoinGraph) -> list[JoinOrder]:
    """All trees without a join of all pairs; which input is left does not count."""

    def trees(some: tuple[int, ...]) -> Iterator[JoinOrder]:
        if len(some) == 1:
            yield some[0]
        for bits in range(1, 1 << len(some), 2):
            left = tuple(one for place, one in enumerate(some) if bits >> place & 1)
            right = tuple(one for one in some if one not in left)
            if right:
                yield from ((first, second) for first in trees(left) for second in trees(right))

    found = trees(tuple(range(len(graph.inputs))))
    return [order for order in found if all(_connected(graph.joined_in(order).plan))]


def _connected(plan: Plan) -> Iterator[bool]:
    return (join.equalities != () for join in walk(plan) if isinstance(join, Join))


def work(plans: Mapping[str, Plan], streams: Mapping[str, pa.Table]) -> dict[str, float]:
    """The rows that all joins of each plan have taken, yielded and kept; all plans answer alike."""
    inputs = {name: BoundedStream(TableSource(table), "ts") for name, table in streams.items()}
    store = MemoryStore()
    run = Run(InlineRunner(1), store, inputs, plans, RunSettings(500))
    seen: list[Sequence[OperatorStatus]] = []

    def look(_: Progress) -> None:
        status = status_of(run.reading, run.results, 0, running=True, problems={})
        seen.append(status.operators)

    run_to_end(run, look)
    readers = [ResultReader(name, form_of(plan), store, run.results) for name, plan in plans.items()]
    assert all(equivalent(reader.elements(), readers[0].elements()) for reader in readers)
    assert len(readers[0].elements())
    graph = run.reading.statistics.graph
    found = {}
    for name, output in graph.outputs:
        joins = [number for number in graph.below(output) if isinstance(graph.nodes[number].plan, Join)]
        last = [seen[-1][number] for number in joins]
        kept = mean(sum(each[number].state_rows for number in joins) for each in seen[:-1])
        found[name] = sum(one.rows_in + one.rows_out for one in last) + kept
    return found


def graph_of(plan: Plan) -> JoinGraph:
    """The joins at the top of a query."""
    return next(join_graph(node) for node in walk(optimize(plan)) if isinstance(node, Join))


@pytest.mark.parametrize("join", JOINS)
def test_the_chosen_order_is_nearly_the_best_of_all(join: str) -> None:
    with hr.connect(runner="inline") as db:
        for name, table in tables(join, 1).items():
            db.stream(name, table, timestamp="ts")
        query = db.query(text_of(join))
    (chosen,) = decisions_in(query.choices).orders
    orders = {chosen, *all_orders(graph_of(query.plan))}
    plans = {str(order): optimize_by(query.plan, Decisions((), (order,))) for order in orders}
    assert all(plan.schema == query.schema for plan in plans.values())
    # Not the rows that were looked at.
    found = work(plans, tables(join, 100))
    assert found[str(chosen)] <= 1.3 * min(found.values())


def test_a_restart_joins_in_the_order_that_was_chosen_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join = "a rare stream at the end"

    def defined(db: hr.Database) -> Query:
        for name, table in tables(join, 1).items():
            db.stream(name, table, timestamp="ts")
        return db.query(text_of(join), "q")

    def answer(folder: Path | None) -> tuple[Mapping[str, Any], pa.Table]:
        with hr.connect(runner="inline", storage=folder) as db:
            query = defined(db)
            db.run()
            return query.choices, query.history()

    choices, first = answer(tmp_path)
    assert decisions_in(choices).orders == ((0, (1, 2)),)
    # Whatever a sample says then.
    monkeypatch.setattr("headrace.engine.run.core.decided", lambda *_: Decisions((), (((0, 1), 2),)))
    assert decisions_in(answer(None)[0]).orders == (((0, 1), 2),)
    again, second = answer(tmp_path)
    assert decisions_in(again).orders == decisions_in(choices).orders
    assert second.equals(first)
    with hr.connect(runner="inline", storage=tmp_path) as db:
        assert "order_joins" in defined(db).explain()


def test_a_store_that_does_not_say_so_has_joined_in_the_order_of_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join = "a rare stream at the end"
    for storage, chosen in ((tmp_path, lambda *_: None), (tmp_path, decided)):
        monkeypatch.setattr("headrace.engine.run.core.decided", chosen)
        with hr.connect(runner="inline", storage=storage) as db:
            for name, table in tables(join, 1).items():
                db.stream(name, table, timestamp="ts")
            query = db.query(text_of(join), "q")
            assert query.choices == {}
            db.run()


def test_queries_that_differ_in_constants_join_in_the_same_order() -> None:
    join = "a filter that lets few rows pass"
    with hr.connect(runner="inline") as db:
        for name, table in tables(join, 1).items():
            db.stream(name, table, timestamp="ts")
        few, all_rows = (db.query(text_of(join).replace("d.w < 2", f"d.w < {limit}")) for limit in (2, 100))
        assert few.choices == all_rows.choices


def test_where_nothing_can_be_seen_the_order_is_that_of_the_text() -> None:
    calls: list[pa.Array] = []

    def noted(values: pa.Array) -> pa.Array:
        calls.append(values)
        return values

    clause = "WHERE a.x = b.x AND b.y = c.y"
    with hr.connect(runner="inline") as db:
        for name, table in tables("a rare stream at the end", 1).items():
            db.stream(name, table, timestamp="ts")
        db.execute("CREATE STREAM p (y BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.function("noted", noted, arguments=["BIGINT"], returns="BIGINT")
        for text in (
            f"SELECT a.ts FROM a [RANGE 20], b [RANGE 20], p [RANGE 20] c {clause}",
            f"SELECT a.ts FROM a [RANGE 20], b [RANGE 20], c [RANGE 20] {clause} AND noted(a.x) < 5",
        ):
            assert decisions_in(db.query(text).choices).orders == (((0, 1), 2),)
    assert not calls


def test_relations_are_joined_where_they_leave_the_fewest_rows() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": range(200), "x": [1] * 200, "y": range(200)}), timestamp="ts")
        db.relation("many", pa.table({"x": [1] * 30}))
        db.relation("few", pa.table({"y": [7, 9]}))
        query = db.query("SELECT s.ts FROM s, many, few WHERE s.x = many.x AND s.y = few.y")
        assert decisions_in(query.choices).orders == (((0, 2), 1),)
        db.run()
        assert len(query.stream()) == 60
