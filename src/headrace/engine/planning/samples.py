"""Some rows of the streams and relations of a query, by which it is judged before it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.changes import Changes
from headrace.algebra.letters import stream_of_letters
from headrace.algebra.nodes import Plan, Relation, Source
from headrace.engine.catalog.definitions import RESULT, Definitions
from headrace.errors import LanguageError, Position, UserError
from headrace.lowering.costs import calls_user, expectations, full_after
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.optimizer.cost.expected import Expectation
from headrace.optimizer.cost.flow import Flow, FlowCounts, FlowSample
from headrace.runtime.driver.facts.seen_rows import SeenRun, SeenStream, WantedColumns
from headrace.runtime.intake.streams import BoundedRelation, BoundedStream, Incoming, LiveStream
from headrace.runtime.sources import SplitSource
from headrace.runtime.sources.composed.tables import read_table

FEW_ROWS: Final = 20_000
"""About so many rows of each stream are looked at while a query is defined, or a run begins."""


@dataclass(frozen=True)
class Sampled:
    """What was seen of the inputs of a query.

    Attributes:
        samples: per stream or relation some of its rows, or what was counted of them.
        sizes: per relation how many rows it has.
        elapsed: how long the longest stream is (instants), if it goes on as it begins; of one that never
            ends, for how long its rows have come, and at least until all windows are full.
        running: of streams that never end, what the run has seen of them.
        density: how many times more bytes the run keeps for a row than the widths of its columns let expect;
            infinite without a run.
    """

    samples: Mapping[str, FlowSample | FlowCounts]
    sizes: Mapping[str, int]
    elapsed: float
    running: Mapping[str, SeenStream] = field(default_factory=dict)
    density: float = math.inf


LookAtRun = Callable[[WantedColumns, int], SeenRun]
"""Says what a run has seen of streams; how many rows of each are looked at."""


def unseen(wanted: WantedColumns, rows: int) -> SeenRun:
    """Nothing was seen: there is no run."""
    return SeenRun({}, math.inf)


def sampled(
    defined: Definitions,
    nodes: Iterable[Plan],
    rows: int,
    position: Position | None,
    look: LookAtRun = unseen,
) -> Sampled:
    """Look at some rows of all that a query reads.

    Args:
        defined: the streams and relations.
        nodes: those of the query's plan.
        rows: about so many rows of each are looked at.
        position: where the query is.
        look: says what a run has seen of streams that never end.

    Raises:
        LanguageError: the query reads a stream that never ends, of which no run has had rows, or one that is
            timed by arrival.
        SourceError: an input is missing or damaged.
        StoreError: what the run keeps cannot be read.
    """
    nodes = list(nodes)
    wanted = _columns(nodes)
    known = defined.streams
    endless = {name: columns for name, columns in wanted.items() if isinstance(known[name], LiveStream)}
    seen = look(endless, rows) if endless else unseen({}, 0)
    inputs = {name: known[name] for name in wanted}
    relations = {name: one for name, one in inputs.items() if isinstance(one, BoundedRelation)}
    streams = {
        name: _stream(name, one, position)
        for name, one in inputs.items()
        if name not in seen.streams and not isinstance(one, BoundedRelation)
    }
    first = _samples(streams, wanted, rows)
    lasts = [_duration(stream, first[name]) for name, stream in streams.items()]
    if seen.streams:
        lasts += [*(one.elapsed for one in seen.streams.values()), full_after(nodes)]
    elapsed = max(lasts, default=1.0)
    samples: dict[str, FlowSample | FlowCounts] = {name: one.found for name, one in seen.streams.items()}
    samples |= first
    moving = [one for one in samples.values() if isinstance(one, FlowSample) and len(one.instants)]
    begin = min((int(one.instants[0]) for one in moving), default=0)
    samples |= {name: _of_relation(one, wanted[name], rows, begin) for name, one in relations.items()}
    sizes = {name: one.source.rows for name, one in relations.items()}
    return Sampled(samples, sizes, elapsed, seen.streams, seen.density)


def looked_at(defined: Definitions, graph: Graph) -> Sequence[Expectation] | None:
    """What is expected of a graph's nodes, by some rows of the streams that it reads.

    Args:
        defined: the streams and relations.
        graph: the graph.

    Returns:
        None where nothing can be seen of an input: of a stream that never ends or is timed by arrival, or one
        that cannot be read; and where a function of the user's is called.
    """
    plans = [node.plan for node in graph.nodes]
    if any(map(calls_user, plans)):
        return None
    try:
        look = sampled(defined, plans, FEW_ROWS, None)
    except UserError:
        return None
    return expectations(graph, look.samples, look.sizes, look.elapsed)


def flow_in(look: Sampled, plan: Plan) -> Flow:
    """How the result of a plan is expected to flow.

    Args:
        look: what was seen of its inputs.
        plan: any plan over these.
    """
    graph = lower({RESULT: plan})
    ((_, number),) = graph.outputs
    return expectations(graph, look.samples, look.sizes, look.elapsed)[number].flow


def _columns(nodes: Iterable[Plan]) -> dict[str, dict[str, pa.DataType]]:
    """Per stream or relation the columns that some operator reads, with their types."""
    wanted: dict[str, dict[str, pa.DataType]] = {}
    for node in nodes:
        if isinstance(node, Source | Relation):
            wanted.setdefault(node.name, {}).update(node.schema.types)
    return wanted


def _stream(name: str, stream: Incoming, position: Position | None) -> BoundedStream:
    letters = stream_of_letters(name)
    if letters is not None:
        raise LanguageError(
            f"EXPLAIN COST looks at rows of each stream, and dead letters of {letters} come while it is read",
            position=position,
            hint="define the query, start it, and write EXPLAIN ANALYZE with its name",
        )
    if isinstance(stream, BoundedStream) and not stream.timing.by_arrival:
        return stream
    if isinstance(stream, LiveStream):
        raise LanguageError(
            f"EXPLAIN COST looks at some rows of each stream; the stream {name} never ends, and no query "
            "that runs has had rows of it",
            position=position,
            hint=f"start the database with a query that reads {name}, and ask again when rows have come",
        )
    raise LanguageError(
        f"EXPLAIN COST looks at some rows of each stream, and the stream {name} is timed as its rows arrive",
        position=position,
        hint="define the query, start it, and write EXPLAIN ANALYZE with its name",
    )


def _samples(
    streams: Mapping[str, BoundedStream], wanted: Mapping[str, Iterable[str]], rows: int
) -> dict[str, FlowSample]:
    """The first rows of each stream, over the same stretch of time for all of them."""
    found = {name: _first_rows(stream, wanted[name], rows) for name, stream in streams.items()}
    ends = [int(sample.instants[-1]) for sample, whole in found.values() if not whole]
    end = min(ends, default=None)
    return {name: sample if end is None else _until(sample, end) for name, (sample, _) in found.items()}


def _first_rows(stream: BoundedStream, columns: Iterable[str], wanted: int) -> tuple[FlowSample, bool]:
    """Some of a stream's first rows, in the order of their instants, and whether these are all it has."""
    source = stream.source
    end = _end_of_sample(source, wanted)
    rows = _read(stream, end, {*columns, stream.timestamp})
    rows = rows.filter(rows[stream.timestamp].is_valid()).combine_chunks()
    instants = np.asarray(rows[stream.timestamp].cast(pa.int64()))
    order = np.argsort(instants, kind="stable")
    return FlowSample(_batch(rows.take(pa.array(order))), instants[order]), end == source.size


def _of_relation(relation: BoundedRelation, columns: Iterable[str], wanted: int, begin: int) -> FlowSample:
    """Some of a relation's first rows, all of which begin at an instant."""
    source = relation.source
    rows = _batch(_read(relation, _end_of_sample(source, wanted), columns))
    part = len(rows) / source.rows if source.rows else 1.0
    return FlowSample(rows, np.full(len(rows), begin, dtype=np.int64), part)


def _read(of: BoundedStream | BoundedRelation, end: int, columns: Iterable[str]) -> pa.Table:
    """The rows below a position; of changes with the column that says in which order they come."""
    arrived = of.changes.arrived if isinstance(of.changes, Changes) else None
    rows = read_table(of.source, end, sorted(set(columns) - {arrived}))
    if arrived is None or arrived not in columns:
        return rows
    return rows.append_column(arrived, pa.array(np.arange(len(rows), dtype=np.int64)))


def _batch(rows: pa.Table) -> pa.RecordBatch:
    """The rows of a table in one batch."""
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


def _end_of_sample(source: SplitSource, wanted: int) -> int:
    """Up to which position a source is looked at."""
    if source.rows <= wanted:
        return source.size
    return min(source.size, max(1, source.size * wanted // source.rows))


def _duration(stream: BoundedStream, sample: FlowSample) -> float:
    """How long a stream is (instants), if it goes on as it begins."""
    if not len(sample.instants):
        return 1.0
    span = int(sample.instants[-1] - sample.instants[0]) + 1
    return span * max(1.0, stream.source.rows / len(sample.instants))


def _until(sample: FlowSample, end: int) -> FlowSample:
    rows = int(np.searchsorted(sample.instants, end, side="right"))
    return FlowSample(sample.rows.slice(0, rows), sample.instants[:rows])
