"""The rows of endless streams that a run has at hand: kept ones, those that joins hold, and counts.

Nobody can look at the beginning of a stream that is pushed. But a run keeps the newest rows of it, for
`RETAIN` and in the windows of joins; of what it adds up in groups it knows how many of these there are; and
it has counted all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.nodes import Aggregate, Distinct, Join, LimitedJoin, Project, Source, TimeWindow, column
from headrace.algebra.properties import is_stateful
from headrace.elements import Int64Array, decode_rows, integers
from headrace.expressions.tree import Column, Expression
from headrace.lowering.costs import row_bytes
from headrace.lowering.graph import Graph
from headrace.lowering.node import Node
from headrace.operators.state.runs import END, WEIGHT
from headrace.optimizer.cost.flow import FlowCounts, FlowSample
from headrace.optimizer.cost.growth import Growth, evenly_spread
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.state import Holding
from headrace.runtime.intake.retained import read_retained
from headrace.runtime.intake.streams import LiveStream
from headrace.runtime.journal.retained import Retained
from headrace.runtime.sources.composed.tables import as_one
from headrace.runtime.store.segments import SegmentReader
from headrace.runtime.tasks.messages import RetainedFile
from headrace.time import ALWAYS, BEGINNING, INFINITY

_FEWEST_ROWS: Final = 20
"""Fewer rows of a stream say less than what was counted of all."""

_MEASURED: Final = 200
"""The bytes for a row are measured on about so many operators."""

WantedColumns = Mapping[str, Mapping[str, pa.DataType]]
"""Per stream the columns that are asked for, with their types.

Among them may be some of which the run does not know, since they were added and no query has read them.
"""


@dataclass(frozen=True, eq=False)
class SeenStream:
    """The findings of a run about a stream.

    Attributes:
        found: the newest of its rows, or counts.
        told: where that is from, as people are told.
        elapsed: how long its rows have come (instants).
    """

    found: FlowSample | FlowCounts
    told: str
    elapsed: float


@dataclass(frozen=True, eq=False)
class SeenRun:
    """The findings of a run about some streams, and its own state.

    Attributes:
        streams: by name; without those of which it has no rows.
        density: how many times more bytes its operators keep for a row than the widths of columns let expect.
    """

    streams: Mapping[str, SeenStream]
    density: float


def seen_rows(
    run: PublishedRun,
    holding: Holding,
    wanted: WantedColumns,
    rate: Callable[[str], float],
    rows: int,
) -> SeenRun:
    """The findings of a run about some streams.

    Args:
        run: what is to be seen of it.
        holding: its queries, and what is there of them.
        wanted: the streams and their columns.
        rate: how many rows of a stream come now (per instant).
        rows: about so many rows of each are looked at.

    Raises:
        StoreError: state, or rows that are kept, cannot be read.
    """
    found = {}
    held = _HeldRows(holding)
    for name, columns in wanted.items():
        stream, seen = run.streams.get(name), run.totals.arrivals.get(name)
        if not isinstance(stream, LiveStream) or seen is None or seen.latest == BEGINNING:
            continue
        elapsed = float(seen.latest - seen.earliest + 1)
        retained = _retained(holding, name, stream, columns, rows)
        if retained is not None:
            told = f"{len(retained.instants):,} rows that are kept for RETAIN"
            found[name] = SeenStream(retained, told, elapsed)
            continue
        sample = held.sample(name, columns, rows)
        if sample is not None:
            told = f"{len(sample.instants):,} rows that a join keeps"
            found[name] = SeenStream(sample, told, elapsed)
            continue
        counts = FlowCounts(rate(name), held.values(name))
        found[name] = SeenStream(counts, _told_of_counts(counts, columns, seen.rows), elapsed)
    return SeenRun(found, held.density)


def _told_of_counts(counts: FlowCounts, columns: Collection[str], rows: int) -> str:
    """Where counts are from; columns of which no value is known are named."""
    known = sorted(set(columns) & counts.values.keys())
    others = sorted(set(columns) - counts.values.keys())
    told = [f"{rows:,} rows that were counted"]
    if known:
        told.append(f"values of {', '.join(known)} in the groups that are kept")
    if others:
        told.append(f"those of {', '.join(others)} taken to be all different")
    return "; ".join(told)


def _retained(
    holding: Holding, name: str, stream: LiveStream, columns: Mapping[str, pa.DataType], rows: int
) -> FlowSample | None:
    """The newest rows that are kept of a stream; None where there are too few, or they are no plain rows."""
    retained = holding.point(name).retained
    if retained is None or stream.timing.by_arrival or stream.changes is not None:
        return None
    timestamp = stream.schema.arrow().field(stream.timestamp)
    schema = pa.schema({**columns, timestamp.name: timestamp.type})
    tables = [read_retained(holding.store, file, schema) for file in _newest(retained, rows)]
    found = as_one(tables) if tables else schema.empty_table()
    found = found.filter(found[stream.timestamp].is_valid())
    instants = np.asarray(found[stream.timestamp].cast(pa.int64()))
    return _sample(found, instants, rows)


def _newest(retained: Retained, rows: int) -> Sequence[RetainedFile]:
    """The last files that have so many rows."""
    found: list[RetainedFile] = []
    known = 0
    for file in reversed(retained.files):
        if known >= rows:
            break
        found.append(file)
        known += file.rows
    return found[::-1]


def _sample(found: pa.Table, instants: Int64Array, rows: int) -> FlowSample | None:
    """The newest of some rows; None where there are too few to say anything."""
    order = np.argsort(instants, kind="stable")[-rows:]
    order = order[instants[order] > ALWAYS]
    if len(order) < _FEWEST_ROWS:
        return None
    if not found.num_columns:
        # Who only counts rows asks for no column, and such a table has no batches.
        none = pa.array([{}] * len(order), pa.struct([]))
        return FlowSample(pa.RecordBatch.from_struct_array(none), instants[order])
    newest = found.take(pa.array(order)).combine_chunks().to_batches()[0]
    return FlowSample(newest, instants[order])


@dataclass(frozen=True)
class _Origin:
    """The columns of a stream from which those of a node are.

    Attributes:
        stream: its name.
        columns: for each column of the node the name of the stream's, None where it is computed.
        window: the one that its rows are in, None before one.
    """

    stream: str
    columns: tuple[str | None, ...]
    window: TimeWindow | None = None

    def of(self, expression: Expression) -> str | None:
        """The stream's column that an expression over the node is, or None."""
        return self.columns[expression.index] if isinstance(expression, Column) else None

    def begins(self, ends: Int64Array) -> Int64Array | None:
        """int64[n]: the instants of rows, about, by when they leave the window; what joins hold forgets them.

        None while rows of several sizes are there: two rows that leave together may have come apart.
        """
        assert self.window is not None
        sizes = [self.window.size.length, *(step.value for step in self.window.steps)]
        gone = [step.begin + size for step, size in zip(self.window.steps, sizes, strict=False)]
        if gone and len(ends) and ends.min() < max(gone):
            return None
        return ends - sizes[-1]


class _HeldRows:
    """The rows that the operators of a run hold, as rows and values of its streams.

    Args:
        holding: the queries that run, and their state.
    """

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._graph = holding.queries.graph
        self._reader = SegmentReader(holding.store)

    def sample(self, stream: str, columns: Collection[str], rows: int) -> FlowSample | None:
        """The rows of a stream, with some columns, of the join that holds most of them; None without any.

        Rows that a filter has let through say nothing of the others.
        """
        sides = [
            (self._rows_in(node, side), node, side, origin)
            for node, side, origin in self._sides
            if origin.stream == stream and set(columns) <= set(origin.columns)
        ]
        for _, node, side, origin in sorted(sides, key=lambda found: -found[0])[:1]:
            parts = [part for part in self._runs(node, side) if part.num_rows]
            if not parts:
                return None
            held = pa.Table.from_batches(parts)
            weights = np.maximum(integers(held[WEIGHT].combine_chunks()), 0)
            held = held.take(pa.array(np.repeat(np.arange(len(weights)), weights)))
            instants = origin.begins(integers(held[END].combine_chunks()))
            if instants is None:
                return None
            chosen = {name: held[f"p{origin.columns.index(name)}"] for name in columns}
            return _sample(pa.table(chosen) if chosen else held.select([]), instants, rows)
        return None

    def values(self, stream: str) -> dict[str, Growth]:
        """The numbers of values of columns of a stream, by the groups that operators keep of its rows."""
        found: dict[str, tuple[float, Growth]] = {}
        for node, names in self._grouped:
            if names[0] != stream:
                continue
            for name, rows, different in self._counted(node, names[1]):
                if rows > found.get(name, (0.0, None))[0]:
                    found[name] = rows, evenly_spread(rows, different)
        return {name: growth for name, (_, growth) in found.items()}

    @cached_property
    def density(self) -> float:
        """The bytes of state by those that are expected of so many rows; infinite without state."""
        kept = expected = 0.0
        stateful = [node for node in self._graph.nodes if is_stateful(node.plan)]
        for node in stateful[:: 1 + len(stateful) // _MEASURED]:
            width = row_bytes(self._graph, node)
            for bucket in range(self._holding.buckets):
                for runs in self._holding.state.get((node.identity, bucket), {}).values():
                    kept += sum(run.part.length for run in runs)
                    expected += width * sum(run.rows for run in runs)
        return kept / expected if expected else math.inf

    @cached_property
    def _sides(self) -> tuple[tuple[Node, str, _Origin], ...]:
        """The sides of joins that hold all rows of a stream that are in some window."""
        found = []
        for node in self._graph.nodes:
            if isinstance(node.plan, Join) and not isinstance(node.plan, LimitedJoin):
                for side, edge in zip(("left", "right"), node.inputs, strict=True):
                    origin = _origin(self._graph, edge.producer)
                    if origin is not None and origin.window is not None:
                        found.append((node, side, origin))
        return tuple(found)

    @cached_property
    def _grouped(self) -> tuple[tuple[Node, tuple[str, tuple[str | None, ...]]], ...]:
        """The operators that keep groups of a stream's rows, with the columns that make them."""
        found = []
        for node in self._graph.nodes:
            origin = _origin(self._graph, node.inputs[0].producer) if len(node.inputs) == 1 else None
            if origin is not None and isinstance(node.plan, Aggregate | Distinct):
                keys = tuple(origin.of(key) for key in _keys(node.plan))
                found.append((node, (origin.stream, keys)))
        return tuple(found)

    def _counted(self, node: Node, names: Sequence[str | None]) -> Iterator[tuple[str, float, float]]:
        """Of each column that makes groups its name, how many rows they have, and how many values."""
        keys = [f"__k{place}" for place in range(len(names))]
        parts = [part for part in self._runs(node, "bases") if set(keys) < set(part.schema.names)]
        if not parts or not keys:
            return
        bases = pa.Table.from_batches([part.select([*keys, "__i0"]) for part in parts])
        # Of what is there twice the later run counts.
        places = pa.array(np.arange(len(bases)))
        newest = bases.append_column("place", places).group_by(keys).aggregate([("place", "max")])
        bases = bases.take(newest["place_max"])
        bases = bases.filter(pc.greater(bases["__i0"], 0))
        rows = float(pc.sum(bases["__i0"]).as_py() or 0)
        for name, key in zip(names, keys, strict=True):
            if name is not None and rows > 1:
                yield name, rows, float(len(pc.unique(bases[key])))

    def _rows_in(self, node: Node, area: str) -> int:
        manifests = (
            self._holding.state.get((node.identity, bucket), {}) for bucket in range(self._holding.buckets)
        )
        return sum(run.rows for manifest in manifests for run in manifest.get(area, ()))

    def _runs(self, node: Node, area: str) -> Iterator[pa.RecordBatch]:
        for bucket in range(self._holding.buckets):
            for run in self._holding.state.get((node.identity, bucket), {}).get(area, ()):
                yield decode_rows(self._reader.read(run.part))


def _keys(plan: Aggregate | Distinct) -> tuple[Expression, ...]:
    if isinstance(plan, Aggregate):
        return tuple(key for _, key in plan.keys)
    return tuple(column(plan, place) for place in range(len(plan.schema)))


def _origin(graph: Graph, number: int) -> _Origin | None:
    """Where the rows of a node are from, if they are all rows of a stream that are in a window."""
    node = graph.nodes[number]
    match node.plan:
        case Source(name=name):
            return _Origin(name, node.plan.schema.names)
        case TimeWindow(size=size):
            below = _origin(graph, node.inputs[0].producer)
            return None if below is None or size.length == INFINITY else replace(below, window=node.plan)
        case Project(items=items):
            below = _origin(graph, node.inputs[0].producer)
            return below and replace(below, columns=tuple(below.of(part) for _, part in items))
        case _:
            return None
