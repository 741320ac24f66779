"""What several tests share: an in-memory source, and running plans on the inline runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headrace.algebra.nodes import Plan
from headrace.elements import Batch, concat, from_rows, to_rows
from headrace.history import canonical, equivalent
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.runtime.driver.endless.retries import run_to_end
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import BoundedStream, Incoming
from headrace.runtime.results.carried import written
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import Field, Schema


@dataclass(frozen=True, eq=False)
class TableSource:
    """A split source over a table in memory; positions are rows."""

    table: pa.Table

    @property
    def schema(self) -> Schema:
        return Schema(tuple(Field(field.name, field.type) for field in self.table.schema))

    @property
    def size(self) -> int:
        return len(self.table)

    @property
    def rows(self) -> int:
        return len(self.table)

    @property
    def borders(self) -> tuple[int, ...]:
        """None: rows are read singly."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        return int(self.table.slice(start, end - start).nbytes)

    @property
    def paths(self) -> tuple[Path, ...]:
        """None: it is in memory."""
        return ()

    def mark(self, position: int) -> str:
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        part = self.table.slice(start, end - start).select(list(columns)).combine_chunks()
        for batch in part.to_batches():
            yield Read(batch)


def run_plans(
    plans: Mapping[str, Plan],
    streams: Mapping[str, Incoming],
    *,
    epoch_rows: int = 1000,
    buckets: int = 1,
    parallelism: int = 1,
) -> dict[str, ResultReader]:
    """Run plans inline to the end of their streams; readers of their results."""
    store = MemoryStore()
    run = Run(InlineRunner(parallelism), store, streams, plans, RunSettings(epoch_rows, buckets=buckets))
    run_to_end(run)
    assert not run.reading.queries.failed, run.reading.queries.failed
    return {name: ResultReader(name, form_of(plan), store, run.results) for name, plan in plans.items()}


def check_by_reference(
    plans: Mapping[str, Plan], table: pa.Table, buckets: int, asked: Mapping[str, Plan] | None = None
) -> None:
    """See that plans over the stream `s` answer as the reference does, together and in small epochs.

    Args:
        plans: by query name.
        table: the rows of `s`, in order of the last column, their timestamp.
        buckets: how many buckets state is spread over.
        asked: the plans that the reference evaluates, where those that run are made of them.
    """
    timestamp = table.column_names[-1]
    readers = run_plans(
        plans, {"s": BoundedStream(TableSource(table), timestamp)}, epoch_rows=3, buckets=buckets
    )
    payloads = zip(*table.to_pydict().values(), strict=True)
    stream = Stream(table.column_names, [(row, row[-1], row[-1] + 1, 1) for row in payloads])
    for name, plan in (asked or plans).items():
        expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in evaluate(plan, {"s": stream})])
        found = readers[name].elements()
        assert equivalent(found, expected), to_rows(canonical(found))


def all_elements(reader: ResultReader) -> Batch:
    """Everything a query yielded, as one batch."""
    return reader.elements()


def emitted_elements(reader: ResultReader) -> Batch:
    """Everything a query's operators emitted, as they did: nothing is netted, or waits to be final."""
    parts = (written(reader.query, reader.store, part) for part in reader.epochs)
    return concat(reader.form.schema, [batch for both in parts for some in both for batch in some])


def joined(schema: Schema, batches: Sequence[Batch]) -> Batch:
    """The batches as one."""
    return concat(schema, list(batches))
