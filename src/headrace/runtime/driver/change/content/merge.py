"""Operators that have come to hold the same state as older ones of the same plan, and go on as one.

A query that is added has operators of its own, since older ones have seen rows from before its start. Once
these rows have left the windows, both hold the same, and what they yield from then on is the same, too: what
an operator yields follows from its state and its further input. So one of them is enough.

When that may be follows from the windows; whether it is so is seen by comparing the states themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import RangeFrame
from headrace.algebra.nodes import (
    ApproximateAggregate,
    BloomFilter,
    GapFill,
    Granularity,
    Over,
    Plan,
    RefreshedRelation,
    Relation,
    RelationIndex,
    RowWindow,
    SessionAggregate,
    SessionWindow,
    TimeWindow,
    inputs_of,
)
from headrace.algebra.properties import is_stateful, sources_of, walk
from headrace.elements import LIMB, Batch, BoolArray, decode_rows
from headrace.lowering.graph import Graph, Merge
from headrace.lowering.node import Node
from headrace.operators.contract import Operator, OperatorProgress
from headrace.operators.state.keys import encode_keys, hash_rows, normalise
from headrace.operators.state.runs import Area, RunRef
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.store.segments import SegmentReader
from headrace.runtime.tasks.level import loaded_operator
from headrace.time import BEGINNING, INFINITY


class Merging:
    """Looks for operators whose states have become equal.

    It remembers when a look is worth its while, by the heartbeats; a new process begins anew with that.
    """

    def __init__(self) -> None:
        self._graph: Graph | None = None
        self._pairs: tuple[tuple[Node, Node], ...] = ()
        self._trials: dict[tuple[str, int], _Trial] = {}

    def merged(self, holding: Holding) -> QuerySet:
        """The queries, with the operators merged that hold the same; themselves where none do."""
        self._look_at(holding)
        return holding.queries.merged(self._found(holding)) if self._pairs else holding.queries

    def _look_at(self, holding: Holding) -> None:
        """Find the operators that may be merged some time."""
        graph = holding.queries.graph
        if graph is self._graph:
            return
        self._graph, self._pairs = graph, _pairs(graph)
        known = self._trials
        self._trials = {
            (young.shape, young.start): known.get((young.shape, young.start))
            or _Trial.of(young, old, holding)
            for young, old in self._pairs
        }

    def _found(self, holding: Holding) -> tuple[Merge, ...]:
        graph = holding.queries.graph
        heartbeats = holding.heartbeats(graph)
        same: dict[int, int] = {}
        found = []
        for young, old in self._pairs:
            below = [edge.producer for edge in young.inputs]
            if [same.get(number, number) for number in below] != [edge.producer for edge in old.inputs]:
                continue
            if self._is_same(young, old, tuple(heartbeats[number] for number in below), holding):
                same[young.number] = old.number
                if is_stateful(young.plan) or isinstance(young.plan, Relation):
                    found.append(Merge(young.shape, young.start, old.start))
        return tuple(found)

    def _is_same(self, young: Node, old: Node, heartbeats: tuple[int, ...], holding: Holding) -> bool:
        """Whether one of two nodes with the same inputs can take the place of the other."""
        if isinstance(young.plan, RefreshedRelation):
            return False
        if young.reads is not None and old.reads is not None:
            return _are_read_alike(holding.point(young.reads), holding.point(old.reads))
        if not is_stateful(young.plan):
            return True
        place, heartbeat = (young.shape, young.start), min(heartbeats)
        trial = self._trials[place]
        if not trial.is_due(heartbeat):
            return False
        if _have_same_state(young, old, heartbeats, holding):
            return True
        self._trials[place] = trial.after(heartbeat)
        return False


@dataclass(frozen=True)
class _Trial:
    """When the states of two operators are to be compared.

    Attributes:
        instant: once the heartbeat is above that.
        wait: how long to wait after a comparison that found a difference (instants).
    """

    instant: int
    wait: int

    @classmethod
    def of(cls, young: Node, old: Node, holding: Holding) -> _Trial:
        """The first: when no row that has come can still be in the state of the older operator.

        That is at once where it has none. Of a relation the younger operator has been given all rows, so that
        both may hold the same before.
        """
        wait, plan = reach_of(young.plan), young.plan
        if any(isinstance(part, Relation | RelationIndex) for part in walk(plan)) or not holding.rows_of(old):
            return cls(BEGINNING - 1, wait)
        latest = max(
            (holding.point(source.name).time.latest for source in sources_of(plan)), default=BEGINNING
        )
        return cls(latest + wait, wait)

    def is_due(self, heartbeat: int) -> bool:
        """Whether the states are to be compared; they need not be where no further row comes."""
        return self.instant < heartbeat < INFINITY

    def after(self, heartbeat: int) -> _Trial:
        """The next one, which is later and later, since something may keep the states apart for ever."""
        return _Trial(heartbeat + self.wait, 2 * self.wait)


def reach_of(plan: Plan) -> int:
    """How long after its timestamp a row may be in the state of a plan's operators (instants).

    INFINITY or more where that has no bound; an estimate for sessions, which rows prolong.
    """
    below = max(map(reach_of, inputs_of(plan)), default=1)
    match plan:
        case TimeWindow(size=size, slide=slide):
            return below + size.length + slide.length
        case SessionWindow(gap=gap) | SessionAggregate(gap=gap):
            return below + 2 * gap.length
        case ApproximateAggregate(size=size):
            return below + size.length
        case BloomFilter(size=size):
            return below + size.length + plan.granule
        case Granularity(longest=granule):
            return below + granule.length
        case GapFill(step=step, longest=longest):
            return below + step.length + longest.length
        case RelationIndex():
            # All queries that read the relation have the same rows of it.
            return below
        case RowWindow():
            return INFINITY
        case Over(aggregates=aggregates):
            frames = (frame for _, _, frame in aggregates)
            return below + max(
                frame.size.length if isinstance(frame, RangeFrame) else INFINITY for frame in frames
            )
        case _:
            return below


def _pairs(graph: Graph) -> tuple[tuple[Node, Node], ...]:
    """The nodes of which there is an older one of the same plan, each with the oldest, inputs first.

    Nodes that wait, or have some below them that do, stay as they are.
    """
    oldest: dict[str, Node] = {}
    nodes = [node for node in graph.nodes if not node.held]
    for node in nodes:
        known = oldest.setdefault(node.shape, node)
        if node.start < known.start:
            oldest[node.shape] = node
    return tuple((node, oldest[node.shape]) for node in nodes if oldest[node.shape] is not node)


def _are_read_alike(young: StreamPoint, old: StreamPoint) -> bool:
    """Whether two readings of a relation are both at their end, or at their beginning, of the same rows."""
    read = young.heartbeat == old.heartbeat == INFINITY
    return (young.position, young.mark) == (old.position, old.mark) and (read or not young.position)


def _have_same_state(young: Node, old: Node, heartbeats: tuple[int, ...], holding: Holding) -> bool:
    """Whether the states of two operators hold the same."""
    progress = OperatorProgress(heartbeats, heartbeats)
    for bucket in range(holding.buckets):
        # A mapped segment must not outlive the comparison.
        reader = SegmentReader(holding.store)
        mine, other = (_areas(node, bucket, progress, holding, reader) for node in (young, old))
        if not all(_hold_same(area, other[name]) for name, area in mine.items()):
            return False
    return True


def _areas(
    node: Node, bucket: int, progress: OperatorProgress, holding: Holding, reader: SegmentReader
) -> Mapping[str, Area]:
    """The areas of an operator, which know up to where they may forget."""
    assert is_stateful(node.plan)

    def load(ref: RunRef) -> pa.RecordBatch:
        return decode_rows(reader.read(ref.part))

    manifest = holding.state.get((node.identity, bucket), {})
    operator: Operator = loaded_operator(node, node.plan, manifest, _ignore, load)
    operator.advance(progress)
    return operator.areas


def _ignore(batch: Batch, failed: BoolArray, reason: str) -> None:
    """Nothing is processed that may fail."""


def _hold_same(one: Area, other: Area) -> bool:
    if not one.runs and not other.runs:
        return True
    mine, theirs = one.content(), other.content()
    if mine is None or theirs is None:
        return mine is theirs
    return are_same_rows(mine, theirs)


def are_same_rows(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Whether two batches of state have the same rows equally often, in whatever order.

    A limb of a sum that is in one of them only has to be 0.
    """
    if one.num_rows != other.num_rows:
        return False
    names = sorted({*one.schema.names, *other.schema.names})
    if not all(name.startswith(LIMB) for name in {*one.schema.names} ^ {*other.schema.names}):
        return False
    zeros = pa.array(np.zeros(one.num_rows, dtype=np.int64))
    columns = [
        normalise(
            pa.concat_arrays(
                [rows.column(name) if name in rows.schema.names else zeros for rows in (one, other)]
            )
        )
        for name in names
    ]
    codes = encode_keys(columns, hash_rows(columns, 2 * one.num_rows))
    mine, theirs = np.split(codes.codes, 2)
    size = len(codes)
    return bool((np.bincount(mine, minlength=size) == np.bincount(theirs, minlength=size)).all())
