"""Runs every golden file on the reference, inline unoptimized and optimized, row by row, and on Spark.

The answers in a file are the reference's; the operators', put in canonical form by the reference's contents
alone, must equal them. The plans in it are snapshots of what the binder and the optimizer make, for the
reader of a change: that they are right follows from the answers, not from the snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from golden.case import CASES, Case, StreamSteps, load, show
from headrace import Database, connect
from headrace.algebra.events import Events
from headrace.algebra.nodes import Plan
from headrace.heartbeats.timing import Timing
from headrace.lowering.lower import lower
from headrace.optimizer import optimize
from headrace.reference.operators import evaluate
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import BoundedRelation, BoundedStream, Intake
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks.inline import InlineRunner
from headrace.time import TimeDomain
from histories import history
from how_many import how_many
from inside import leave_undivided, reader_of
from support import TableSource

PATHS = sorted(CASES.glob("*.txt"))
Rows = list[tuple[object, ...]]


def intakes(
    case: Case, streams: Mapping[str, BoundedStream], one_by_one: bool
) -> Iterator[dict[str, Intake]]:
    """What each epoch takes: a step of the case, or a single row."""
    done = dict.fromkeys(streams, 0)
    for step in range(case.steps):
        sizes = {stream.name: len(stream.steps[step]) for stream in case.streams if stream.name in streams}
        takes = [(name, 1) for name, size in sizes.items() for _ in range(size)]
        for part in [[take] for take in takes] if one_by_one else [list(sizes.items())]:
            ends = {name: at + dict(part).get(name, 0) for name, at in done.items()}
            yield {name: taken(streams[name], at, ends[name]) for name, at in done.items()}
            done = ends


def taken(stream: BoundedStream, start: int, end: int) -> Intake:
    return Intake(end, stream.source, start, end, ended=end == stream.source.size)


def reference(case: Case, step: int) -> Rows:
    """The answer after a step: the definition on the rows so far, below the query's heartbeat."""
    streams = {stream.name: stream.stream(step) for stream in case.streams}
    streams |= {relation.info.name: relation.stream() for relation in case.relations}
    heartbeat = heartbeat_of(case.plan, case.heartbeats(step))
    history = evaluate(case.plan, streams)
    return [(*payload, ts, min(te, heartbeat)) for payload, ts, te in history if ts < heartbeat]


def heartbeat_of(plan: Plan, streams: dict[str, int]) -> int:
    graph = lower({"q": plan})
    return graph.heartbeats(streams, {})[graph.node_of(graph.outputs[0][1])]


def inline(case: Case, plan: Plan, **options: int) -> ResultReader:
    """A run with one epoch per step, or per row with `one_by_one`."""
    streams = {
        stream.name: BoundedStream(
            TableSource(stream.table()),
            stream.timestamp,
            Timing(stream.disorder),
            changes=stream.info.changes,
        )
        for stream in case.streams
    }
    store = MemoryStore()
    runner = InlineRunner(options.get("tasks", 1))
    relations = {
        known.info.name: BoundedRelation(TableSource(known.table()), known.info.valid)
        for known in case.relations
    }
    run = Run(
        runner, store, {**streams, **relations}, {"q": plan}, RunSettings(buckets=options.get("buckets", 1))
    )
    if run.reads_relations:
        run.step(run.next_share())
    used = {name: stream for name, stream in streams.items() if name in run.streams}
    for epoch in intakes(case, used, bool(options.get("one_by_one"))):
        run.step(epoch)
    assert not run.reading.queries.failed, run.reading.queries.failed
    return ResultReader("q", form_of(plan), store, run.results)


def rows_of(reader: ResultReader) -> Rows:
    return [(*payload, ts, te) for payload, ts, te in history(reader.elements(), reader.heartbeat)]


def after(reader: ResultReader, step: int, last: int) -> Rows:
    """What a reader sees after the epoch of a step; the last step has the last epoch."""
    return rows_of(replace(reader, epochs=reader.epochs[: len(reader.epochs) - last + step]))


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def case(request: pytest.FixtureRequest) -> Case:
    case: Case = load(request.param)
    if os.environ.get("HEADRACE_GOLDEN") == "write":
        case.write(case.actual(lambda step: reference(case, step)))
        case = load(request.param)
    return case


def test_plans_and_reference(case: Case) -> None:
    assert case.expected == case.actual(lambda step: reference(case, step))


@pytest.mark.parametrize("optimized", [False, True], ids=["as written", "optimized"])
def test_inline(case: Case, optimized: bool) -> None:
    reader = inline(case, optimize(case.plan) if optimized else case.plan)
    for step in range(1, case.steps + 1):
        assert show(case.plan, after(reader, step, case.steps)) == case.expected[f"after {step}"]


@pytest.mark.slow("a case with many rows has an epoch for each")
@pytest.mark.parametrize("buckets", how_many([3], [1, 3]))
def test_row_by_row(case: Case, buckets: int) -> None:
    reader = inline(case, optimize(case.plan), one_by_one=1, buckets=buckets, tasks=2)
    assert show(case.plan, rows_of(reader)) == case.expected[f"after {case.steps}"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("stays", "epoch_rows"), how_many([(False, 5), (True, 2)], [(False, 1), (True, 1000)])
)
def test_spark(
    case: Case, spark: object, stays: bool, epoch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In jobs, where everything is encoded and goes through Spark's shuffle, and in a task that stays."""
    leave_undivided(monkeypatch, 0.0)
    if not stays:
        monkeypatch.setattr("headrace.runtime.spark.startup.resident.ResidentTask.begun", lambda *_: None)
    *views, query = case.query.rstrip(";").split(";")
    with connect(spark=spark, epoch_rows=epoch_rows, buckets=2) as db:
        for stream in case.streams:
            unit = stream.disorder if case_is_integer(case) else f"{stream.disorder} microseconds"
            register(db, stream, unit)
        for relation in case.relations:
            db.relation(relation.info.name, relation.table(), relation.info.key, relation.info.valid)
        for view in views:
            db.execute(view)
        answer = db.query(query)
        db.run()
        assert show(case.plan, rows_of(reader_of(db, answer))) == case.expected[f"after {case.steps}"]


def register(db: Database, stream: StreamSteps, disorder: int | str) -> None:
    """Register the rows of a stream, with what it says of their lifetimes."""
    changes = stream.info.changes
    match changes:
        case Events(lasting=True):
            valid = stream.timestamp, changes.ends
            db.stream(
                stream.name, stream.table(), disorder=disorder, valid=valid, changes_by=changes.change,
                version=changes.version,
            )  # fmt: skip
        case Events():
            db.stream(
                stream.name, stream.table(), stream.timestamp, disorder, changes_by=changes.change,
                version=changes.version,
            )  # fmt: skip
        case _:
            db.stream(stream.name, stream.table(), stream.timestamp, disorder)


def case_is_integer(case: Case) -> bool:
    return case.plan.domain is TimeDomain.INTEGER
