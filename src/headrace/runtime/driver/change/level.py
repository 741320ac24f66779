"""A query goes on at another level of consistency: ALTER QUERY name SET CONSISTENCY.

An operator at another level has the same input in the end, but has been told another part of it so far: what
the operators below it have said beyond their heartbeats at one level, and not at the other. So its state at
the new level is that at the old one, with the difference taken in as if it came with an epoch. What that
makes it say, what it says beyond its heartbeat at the new level, less what it said there at the old one, is
the difference for the operators above it, and in the end for readers. All of that is one change of the plan.

The query's operators have state of their own from then on, since others of the same plan may have said the
same in other pieces. Those with nothing early below them hold what they held: they go on as those they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from headrace.algebra.horizon import Horizon
from headrace.algebra.memory import ALL, Memory
from headrace.algebra.nodes import Early, Plan, Relation, Remember, Source, Stateful, inputs_of
from headrace.algebra.properties import is_stateful, is_stateless, walk
from headrace.algebra.tunings.tunings import tuned
from headrace.elements import Batch, BoolArray, concat, decode_rows
from headrace.errors import ExecutionError, UserError
from headrace.lowering.early import answers_alike, at_horizon, horizon_of, strong
from headrace.lowering.graph import Graph, Merge
from headrace.lowering.identity import shape
from headrace.lowering.memory import memories_of, remembering, remembering_all
from headrace.lowering.node import Node
from headrace.operators.contract import Operator, OperatorProgress
from headrace.operators.create import create_operator
from headrace.operators.early import Reach, beyond, corrected, hand_over, runs_of, unreported
from headrace.operators.state.runs import RunRef
from headrace.operators.stateless import apply
from headrace.runtime.driver.change.content.answer import said_from
from headrace.runtime.driver.change.content.spread import arrived
from headrace.runtime.driver.change.migration.exchange import carried_out, require_no_exchange
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.store.segments import SegmentReader, SegmentWriter
from headrace.runtime.tasks.level import loaded_operator, store_state
from headrace.runtime.tasks.messages import Manifest, ResultRef, StateKey
from headrace.time import BEGINNING

Parts = Mapping[int, Batch]
"""Elements by the buckets in which they are."""


@dataclass(frozen=True)
class LevelChange:
    """A query that goes on at another level.

    Attributes:
        old: what it was carried out as.
        new: what it is carried out as from then on: the same operators, others of which speak early.
    """

    old: Plan
    new: Plan


@dataclass(frozen=True)
class Spoken:
    """What changes of levels say, and what operators hold after them.

    Attributes:
        results: per query what it says.
        state: what operators hold.
    """

    results: Mapping[str, tuple[ResultRef, ...]]
    state: Mapping[StateKey, Manifest]


def level_changes(before: Holding, plans: Mapping[str, Plan]) -> dict[str, LevelChange]:
    """The queries whose plans differ from those that run in their levels alone.

    Args:
        before: the queries that run.
        plans: all queries from now on, by name.

    Raises:
        PlanError: the plan of one is being exchanged.
    """
    found, queries = {}, before.queries
    for name, plan in plans.items():
        known = queries.plans.get(name)
        # Most plans are the objects that run already.
        if known is plan or known is None or known == plan:
            continue
        if name in queries.failed or not answers_alike(known, plan):
            continue
        require_no_exchange(queries, name)
        old = carried_out(queries, name)
        same = remembering(remembering_all(strong(old)), _going_on(before, name, old, plan))
        found[name] = LevelChange(old, at_horizon(same, horizon_of(plan)))
    return found


def _going_on(before: Holding, name: str, old: Plan, new: Plan) -> list[Memory]:
    """For how long a query remembers its streams from a change on.

    What is final stays so: where the memory now reaches further back, it counts from then on.

    Args:
        before: the queries that run.
        name: the query's.
        old: what it is carried out as.
        new: its plan at the new level.
    """
    known, asked = memories_of(old), memories_of(new)
    found = []
    for stream in dict.fromkeys((*known, *asked)):
        point = before.point(stream)
        memory = asked.get(stream, Memory(stream, ALL))
        final = BEGINNING
        if stream in known:
            final = known[stream].reached(point.heartbeat, point.time.latest, point.past)
        if final > memory.reached(point.heartbeat, point.time.latest, point.past):
            memory = memory._replace(floor=final)
        if memory.length != ALL or memory.floor > BEGINNING:
            found.append(memory)
    return found


def going_on(queries: QuerySet, before: QuerySet, changes: Mapping[str, LevelChange]) -> QuerySet:
    """The queries, with those operators that hold what they held going on as they are.

    Args:
        queries: those from the change on.
        before: those that run.
        changes: of levels.
    """
    merges = []
    for name, change in changes.items():
        start, known = queries.state_start_of(name), _nodes_of(before.graph, name)
        for part in walk(change.new):
            node = known.get(shape(part))
            if node is not None and (is_stateful(part) or isinstance(part, Relation)):
                merges.append(Merge(node.shape, start, node.start))
    return queries.merged(merges)


def spoken(
    changes: Mapping[str, LevelChange],
    before: Holding,
    after: QuerySet,
    results: Sequence[EpochResults],
    file: str,
    kept: bool,
) -> Spoken:
    """Compute and write what changes of levels say, and the state of the operators.

    Args:
        changes: of levels, by query.
        before: the queries that run.
        after: those from the change on.
        results: those of the epochs that are kept, in order.
        file: the name of the files to write, below the folders for results and for state.
        kept: whether the run keeps results.

    Raises:
        UserError: an expression fails for a row that is said early.
    """
    if not changes:
        return Spoken({}, {})
    said: dict[str, tuple[ResultRef, ...]] = {}
    state: dict[StateKey, Manifest] = {}
    answers = SegmentWriter(before.store, f"results/{file}")
    states = SegmentWriter(before.store, f"segments/{file}")
    for name, change in changes.items():
        found = _Change(name, before, after, states)
        try:
            parts = found.said(change.old, change.new)
        except ExecutionError as error:
            raise _cannot(before.queries.name_of(name), error.message) from error
        state |= found.state
        output = dict(after.graph.outputs)[name]
        batch = concat(change.new.schema, [*parts.values()])
        if kept:
            refs = said_from(name, batch, found.reach, before, results, answers, output)
            said[name] = tuple(refs)
    answers.close()
    states.close()
    return Spoken({name: refs for name, refs in said.items() if refs}, state)


class _Side:
    """A query's operators at one level, as they are in the graph.

    Args:
        query: its name.
        holding: where the inputs are, and the state.
        queries: the queries with this one at that level.
    """

    def __init__(self, query: str, holding: Holding, queries: QuerySet) -> None:
        graph = queries.graph
        self.graph, self.tunings = graph, queries.tunings
        self.nodes = _nodes_of(graph, query)
        self.heartbeats = holding.heartbeats(graph)
        self._reaches = graph.reaches(*holding.reached(graph))
        self.horizon = horizon_of(queries.plans[query])
        output = graph.node_of(dict(graph.outputs)[query])
        self.reach = self.horizons(self.horizon)[output]

    def horizons(self, horizon: Horizon | None) -> tuple[int, ...]:
        """Up to where the nodes speak at a horizon."""
        return self.heartbeats if horizon is None else self._reaches[horizon]


class _Change:
    """The way of one query to another level, from the operators on streams up.

    Args:
        query: its name.
        before: the queries that run.
        after: those from the change on.
        writer: where state is written to.

    Attributes:
        state: what its operators hold, of those that have other names from then on.
        reach: up to where the query speaks then (instant).
    """

    def __init__(self, query: str, before: Holding, after: QuerySet, writer: SegmentWriter) -> None:
        self._query = query
        self._holding = before
        self._old, self._new = _Side(query, before, before.queries), _Side(query, before, after)
        self._reader = SegmentReader(before.store)
        self._writer = writer
        self._known: dict[int, tuple[Plan, Parts]] = {}
        self.state: dict[StateKey, Manifest] = {}
        self.reach = self._new.reach

    def said(self, old: Plan, new: Plan) -> Parts:
        """What a part of the query says when it comes to the new level.

        Args:
            old: the part at the old level.
            new: the same part at the new one.

        Raises:
            ExecutionError: an aggregate fails.
            UserError: an expression fails for a row that is said early.
        """
        if id(new) not in self._known:
            self._known[id(new)] = new, self._said(old, new)
        return self._known[id(new)][1]

    def _said(self, old: Plan, new: Plan) -> Parts:
        (old, told), (new, tells) = _spoken_part(old), _spoken_part(new)
        if isinstance(new, Remember | Source):
            return {}
        if is_stateful(old) and is_stateful(new):
            return self._operated(old, new, told, tells)
        found: dict[int, list[Batch]] = {}
        if is_stateless(new):
            node = self._new.nodes.get(shape(new))
            for port, (one, other) in enumerate(zip(inputs_of(old), inputs_of(new), strict=True)):
                parts = self.said(one, other)
                if node is not None:
                    parts = self._arrived(self._new, node, port, parts)
                for bucket, batch in parts.items():
                    found.setdefault(bucket, []).append(apply(new, batch, self._report))
        return {bucket: concat(new.schema, batches) for bucket, batches in found.items()}

    def _operated(self, old: Stateful, new: Stateful, told: Horizon | None, tells: Horizon | None) -> Parts:
        """What an operator says, up to a horizon before and up to another one now; None is its heartbeat."""
        before, after = self._old.nodes[shape(old)], self._new.nodes[shape(new)]
        # Where nothing is early, operators rely on insertions, and what is early may be taken back.
        side, node, plan = (self._old, before, old) if self._new.horizon is None else (self._new, after, new)
        given = self._given(side, node, old, new)
        if before.identity == after.identity and told is None and tells is None:
            return {}
        then = tuple(self._old.heartbeats[edge.producer] for edge in before.inputs)
        now = tuple(self._new.heartbeats[edge.producer] for edge in after.inputs)
        found = {}
        for bucket in range(self._holding.buckets):
            manifest = self._holding.state.get((before.identity, bucket), {})
            source = target = self._loaded(before, old, manifest)
            yielded = concat(new.schema, [])
            if before.identity != after.identity:
                general = self._loaded(node, plan, {})
                hand_over(source, general, min(then))
                for port, parts in enumerate(given):
                    if bucket in parts:
                        general.process(port, parts[bucket])
                # With a shorter memory more is final at once.
                yielded = general.advance(OperatorProgress(then, now))
                target = general
                if node is not after:
                    target = self._loaded(after, new, {})
                    hand_over(general, target, min(now))
                self.state[after.identity, bucket] = store_state(target, self._writer)
            found[bucket] = corrected(
                new.schema,
                yielded,
                _beyond(self._old, before, old, source, told),
                _beyond(self._new, after, new, target, tells),
            )
        return {bucket: batch for bucket, batch in found.items() if len(batch)}

    def _given(self, side: _Side, node: Node, old: Plan, new: Plan) -> list[Parts]:
        """What an operator is told of its inputs, by port and bucket."""
        below = inputs_of(old), inputs_of(new)
        if len(below[0]) < len(node.inputs):
            # An aggregation that reads the inputs of a union one by one.
            below = inputs_of(below[0][0]), inputs_of(below[1][0])
        return [
            self._arrived(side, node, port, self.said(*pair))
            for port, pair in enumerate(zip(*below, strict=True))
        ]

    def _arrived(self, side: _Side, node: Node, port: int, parts: Parts) -> Parts:
        buckets = self._holding.buckets
        return arrived(side.graph, node, node.inputs[port], parts, buckets, self._report)

    def _loaded(self, node: Node, plan: Stateful, manifest: Manifest) -> Operator:
        present = tuned(plan, self._holding.queries.tunings)
        return loaded_operator(node, present, manifest, self._report, self._load)

    def _load(self, ref: RunRef) -> pa.RecordBatch:
        return decode_rows(self._reader.read(ref.part))

    def _report(self, batch: Batch, failed: BoolArray, reason: str) -> None:
        """Refuse rows for which an expression fails; one that is taken back has failed when it came."""
        if (batch.w[failed] > 0).any():
            called = self._holding.queries.name_of(self._query)
            raise _cannot(called, f"an expression fails for a row that would be said early: {reason}")


def _spoken_part(part: Plan) -> tuple[Plan, Horizon | None]:
    """What is below a part that speaks early, and up to where it speaks."""
    if not isinstance(part, Early):
        return part, None
    return part.input, part.horizon if part.corrects else None


def _beyond(side: _Side, node: Node, plan: Stateful, operator: Operator, horizon: Horizon | None) -> Batch:
    """What an operator says beyond its heartbeat up to a horizon."""
    if horizon is None:
        return concat(plan.schema, [])
    producers, horizons = [edge.producer for edge in node.inputs], side.horizons(horizon)
    reach = Reach(
        runs_of(operator),
        tuple(side.heartbeats[producer] for producer in producers),
        tuple(horizons[producer] for producer in producers),
    )
    present = tuned(plan, side.tunings)
    return beyond(partial(create_operator, present, node.reduced_for is not None, unreported), reach)


def _nodes_of(graph: Graph, query: str) -> dict[str, Node]:
    """The operators of a query by their shapes; all have one start."""
    output = graph.node_of(dict(graph.outputs)[query])
    return {graph.nodes[number].shape: graph.nodes[number] for number in graph.below(output)}


def _cannot(query: str, reason: str) -> UserError:
    return UserError(
        f"{query} cannot change its level of consistency: {reason}",
        hint="filter such rows out, or drop the query and create it anew",
    )
