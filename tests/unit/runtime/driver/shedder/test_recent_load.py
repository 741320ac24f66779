"""The load of a run, from what came, what was taken, and how long epochs took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import headrace as hr
from headrace.algebra.nodes import Aggregate, Shed
from headrace.runtime.driver.facts.capacity import above, from_streams, needs
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder.recent import RecentLoad, boxes_of, costs_of
from headrace.time import ManualClock
from inside import run_of


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", clock=ManualClock()) as made:
        made.execute(
            "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY q LOSS TOLERANT AS SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k;"
            "CREATE QUERY exact AS SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k"
        )
        made.start()
        yield made


def push(db: hr.Database, first: int, rows: int = 500) -> None:
    db.push("s", [{"k": at % 5, "v": at % 7, "ts": at} for at in range(first, first + rows)])


def at(db: hr.Database, second: int) -> PublishedRun:
    """The run as if its last epoch had been committed in some second."""
    run = run_of(db).reading
    return replace(run, statistics=replace(run.statistics, at=second * 1_000_000))


def test_a_share_counts_at_once_though_nothing_was_measured_of_it(db: hr.Database) -> None:
    push(db, 0)
    db.execute("ALTER QUERY q SET (KEEP 0.25)")
    run = at(db, 0)
    boxes = boxes_of(run.queries.graph, run.statistics, run.queries.tunings)
    (shed,) = (node for node in run.queries.graph.nodes if isinstance(node.plan, Shed))
    assert boxes[shed.number].selectivity == 0.25
    graph = run.queries.graph
    rates = from_streams(graph, {"s": 100.0})
    (cost,) = costs_of(graph, boxes, rates).values()
    whole = [replace(box, selectivity=1.0) if at == shed.number else box for at, box in enumerate(boxes)]
    each = needs(whole, rates)
    # The aggregate of the query that bears no loss reads what is not left out.
    alone = set(above(boxes, [shed.number]))
    sums = [node.number for node in graph.nodes if isinstance(node.plan, Aggregate)]
    assert len([number for number in sums if number in alone]) == len(sums) - 1
    assert cost == pytest.approx(float(each[list(alone)].sum()))


def test_what_waits_counts_as_what_comes(db: hr.Database) -> None:
    recent = RecentLoad()
    loads = []
    for now, waiting in enumerate((0, 0, 500, 1000)):
        push(db, 500 * now)
        run = at(db, now)
        recent.note(run, {"s": waiting}, 1.0)
        loads.append(recent.load(run, 1.0))
    first, second, third, fourth = loads
    assert first is None
    assert second is not None
    assert third is not None
    assert fourth is not None
    assert second.rates == {"s": 500.0}
    assert fourth.rates == {"s": pytest.approx(500 + 1000 / 3)}
    assert second.behind == 0
    assert third.behind is not None
    assert fourth.behind is not None
    assert fourth.behind > third.behind > 0


def test_where_nobody_knows_what_waits_nobody_says_how_late_it_is(db: hr.Database) -> None:
    recent = RecentLoad()
    for now in range(3):
        push(db, 500 * now)
        run = at(db, now)
        recent.note(run, {"s": None}, 1.0)
    load = recent.load(run, 1.0)
    assert load is not None
    assert load.behind is None
    assert load.needed > 0
    recent.forget()
    assert recent.load(run, 1.0) is None
