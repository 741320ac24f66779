"""What queries that run have said so far, and what is said instead when they are others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.elements import Batch, concat, encode
from headrace.history import difference
from headrace.operators.state.netting import netted
from headrace.runtime.driver.state import Holding
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.carried import held_from
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import ResultRef


def reader_of(query: str, holding: Holding, results: Sequence[EpochResults]) -> ResultReader:
    """Reads the answer of a query that runs.

    Args:
        query: its name.
        holding: the queries that run.
        results: those of the epochs that are kept, in order.
    """
    plan, start = holding.queries.plans[query], holding.queries.start_of(query)
    parts = [part for part in results if part.epoch >= start and query in part.heartbeats]
    carried = results[-1].carried.get(query) if results else None
    return ResultReader(
        query, form_of(plan), holding.store, parts, carried, start, holding.queries.name_of(query)
    )


def said_from(
    query: str,
    batch: Batch,
    reach: int,
    before: Holding,
    results: Sequence[EpochResults],
    writer: SegmentWriter,
    output: int,
) -> Iterator[ResultRef]:
    """What is written of an answer that reaches up to another instant: what is said and taken back.

    Args:
        query: its name.
        batch: what it says, which takes back what is not to hold any more.
        reach: up to where it speaks from then on (instant).
        before: the queries that run.
        results: those of the epochs that are kept, in order.
        writer: writes it.
        output: the number of the node that it is the output of.
    """
    schema = before.queries.plans[query].schema
    reader = reader_of(query, before, results)
    if reader.horizon > reach:
        released = reader.content()
        taken = netted(released.filter(released.ts >= reach))
        batch = netted(concat(schema, [batch, taken]))
        if len(taken):
            yield _written(taken.negated(), output, writer, at_once=True)
    if (batch.w < 0).any():
        # What an operator says again may be in other pieces than what it has said epoch by epoch.
        batch = difference(batch.slice(0, 0), batch)
    if len(batch):
        yield _written(batch, output, writer)


def said_instead(
    query: str,
    batch: Batch,
    since: int,
    reach: int,
    before: Holding,
    results: Sequence[EpochResults],
    writer: SegmentWriter,
    output: int,
) -> tuple[ResultRef, ...]:
    """What is written where the answer of a query goes on in that of another one from an instant on.

    Args:
        query: the name of both.
        batch: what the other one says of the instants from then on.
        since: that instant.
        reach, before, results, writer, output: as above.
    """
    old = held_from(reader_of(query, before, results).yielded(), since)
    new = netted(concat(before.queries.plans[query].schema, [batch, old.negated()]))
    return tuple(said_from(query, new, reach, before, results, writer, output))


def begins_with(batch: Batch, output: int, writer: SegmentWriter) -> Iterator[ResultRef]:
    """What is written of an answer that begins with a batch.

    Args:
        batch: what it says.
        output: the number of the node that it is the output of.
        writer: writes it.
    """
    if len(batch):
        yield _written(batch, output, writer)


def _written(batch: Batch, output: int, writer: SegmentWriter, at_once: bool = False) -> ResultRef:
    return ResultRef(output, writer.add(encode(batch)), len(batch), int(batch.ts.max()), at_once=at_once)
