"""EXPLAIN COST: the physical plan of a query with what its operators are expected to yield and to keep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Plan, Relation, Source
from headrace.engine.analysis import RESULT
from headrace.engine.definitions import Definitions
from headrace.errors import LanguageError, Position
from headrace.lowering.costs import expectations
from headrace.lowering.explain import explain_graph
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.optimizer.cost.expected import Expectation
from headrace.optimizer.cost.flow import Sample
from headrace.runtime.intake.streams import BoundedStream, LiveStream
from headrace.runtime.sources import SplitSource
from headrace.runtime.sources.tables import read_table
from headrace.runtime.writing.texts import count
from headrace.time import MICROSECONDS, TimeDomain

SAMPLE_ROWS: Final = 100_000
"""About so many rows of each stream are looked at."""


def costs(defined: Definitions, plan: Plan, position: Position) -> str:
    """How a query is expected to run: its operators, each with its rate and the rows that it keeps.

    Args:
        defined: the streams and relations.
        plan: the query's, optimized.
        position: where it is asked for.

    Raises:
        LanguageError: the query reads a stream that never ends, or is timed by arrival.
        SourceError: an input is missing or damaged.
    """
    graph = lower({RESULT: plan})
    wanted = _columns(graph)
    streams = {name: _stream(defined, name, position) for name in wanted if name in defined.inputs}
    samples = _samples(streams, wanted)
    elapsed = max((_duration(stream, samples[name]) for name, stream in streams.items()), default=1.0)
    tables = {name: table.relation.source for name, table in defined.relations.items() if name in wanted}
    samples |= {name: _of_relation(source, wanted[name]) for name, source in tables.items()}
    sizes = {name: source.rows for name, source in tables.items()}
    found = expectations(graph, samples, sizes, elapsed)
    notes = {node.number: _note(node.plan, found[node.number]) for node in graph.nodes}
    kept = sum(part.state for part in found)
    return f"{explain_graph(graph, RESULT, notes)}\nkeeps about {_rows(kept)} in all"


def _columns(graph: Graph) -> dict[str, set[str]]:
    """Per stream or relation the columns that some operator reads."""
    wanted: dict[str, set[str]] = {}
    for node in graph.nodes:
        if isinstance(node.plan, Source | Relation):
            wanted.setdefault(node.plan.name, set()).update(node.plan.schema.names)
    return wanted


def _stream(defined: Definitions, name: str, position: Position) -> BoundedStream:
    stream = defined.inputs[name].stream
    if isinstance(stream, BoundedStream) and not stream.timing.by_arrival:
        return stream
    why = "never ends" if isinstance(stream, LiveStream) else "is timed by their arrival"
    raise LanguageError(
        f"EXPLAIN COST looks at some rows of each stream, and the stream {name} {why}",
        position=position,
        hint="define the query, start it, and write EXPLAIN ANALYZE with its name",
    )


def _samples(streams: Mapping[str, BoundedStream], wanted: Mapping[str, Iterable[str]]) -> dict[str, Sample]:
    """The first rows of each stream, over the same stretch of time for all of them."""
    found = {name: _first_rows(stream, wanted[name]) for name, stream in streams.items()}
    ends = [int(sample.instants[-1]) for sample, whole in found.values() if not whole]
    end = min(ends, default=None)
    return {name: sample if end is None else _until(sample, end) for name, (sample, _) in found.items()}


def _first_rows(stream: BoundedStream, columns: Iterable[str]) -> tuple[Sample, bool]:
    """Some of a stream's first rows, in the order of their instants, and whether these are all it has."""
    source = stream.source
    end = _end_of_sample(source)
    rows = read_table(source, end, sorted({*columns, stream.timestamp}))
    rows = rows.filter(rows[stream.timestamp].is_valid()).combine_chunks()
    instants = np.asarray(rows[stream.timestamp].cast(pa.int64()))
    order = np.argsort(instants, kind="stable")
    batch = rows.take(pa.array(order)).combine_chunks().to_batches()
    empty = pa.RecordBatch.from_pylist([], schema=rows.schema)
    return Sample(batch[0] if batch else empty, instants[order]), end == source.size


def _of_relation(source: SplitSource, columns: Iterable[str]) -> Sample:
    """Some of a relation's first rows."""
    rows = read_table(source, _end_of_sample(source), sorted(columns))
    batch = rows.to_batches()
    empty = pa.RecordBatch.from_pylist([], schema=rows.schema)
    return Sample(batch[0] if batch else empty, np.zeros(len(rows), dtype=np.int64))


def _end_of_sample(source: SplitSource) -> int:
    """Up to which position a source is looked at."""
    if source.rows <= SAMPLE_ROWS:
        return source.size
    return min(source.size, max(1, source.size * SAMPLE_ROWS // source.rows))


def _duration(stream: BoundedStream, sample: Sample) -> float:
    """How long a stream is (instants), if it goes on as it begins."""
    if not len(sample.instants):
        return 1.0
    span = int(sample.instants[-1] - sample.instants[0]) + 1
    return span * max(1.0, stream.source.rows / len(sample.instants))


def _until(sample: Sample, end: int) -> Sample:
    rows = int(np.searchsorted(sample.instants, end, side="right"))
    return Sample(sample.rows.slice(0, rows), sample.instants[:rows])


def _note(plan: Plan, found: Expectation) -> str:
    """What is expected of an operator, on one line."""
    flow = found.flow
    if isinstance(plan, Relation):
        return _rows(flow.live)
    if plan.domain is TimeDomain.TIMESTAMP:
        second = MICROSECONDS["SECOND"]
        rate, lifetime = f"{_number(flow.rate * second)} rows/s", f"{_number(flow.lifetime / second)} s"
    else:
        rate, lifetime = f"{_number(flow.rate)} rows per instant", _number(flow.lifetime)
    parts = [rate] if flow.lifetime <= 1 else [rate, f"each for {lifetime}"]
    return ", ".join(parts) + (f"; keeps {_rows(found.state)}" if found.state else "")


def _rows(number: float) -> str:
    return "rows without bound" if math.isinf(number) else count(round(number), "row")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
