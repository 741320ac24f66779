"""Drives the operators of a plan by hand, over elements of any kind; sources of the runtime give chronons.

A source whose elements are retracted or hold for longer than an instant is replaced by a plan that is known
to yield such elements, and that plan is given the source's elements instead of being run. So operators
choose what they do by what the plan below them says, as they do elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Coalesce, Early, Plan, Source, Split, TimeWindow, inputs_of, with_inputs
from headrace.algebra.properties import is_stateful, is_stateless
from headrace.elements import Batch, BoolArray, concat, empty_columns, from_rows, to_rows
from headrace.expressions.tree import Literal
from headrace.history import canonical, clip, normalise
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.lowering.node import Node
from headrace.operators.before_exchange import part_for, reduction_for
from headrace.operators.contract import Operator, OperatorProgress
from headrace.operators.create import create_operator, create_timeline_operator
from headrace.operators.early import Reach, Speaker
from headrace.operators.state.runs import RunPart, RunRef, SortedRun, stored_run
from headrace.operators.stateless import apply
from headrace.reference.contents import Element, Payload, Stream, payload
from headrace.reference.operators import evaluate
from headrace.time import BEGINNING, INFINITY, Duration


@dataclass(frozen=True)
class Arriving:
    """What an epoch brings.

    Attributes:
        elements: by source name, in order of arrival.
        heartbeats: by source name, the instant before which nothing starts any more (instants).
    """

    elements: Mapping[str, Sequence[Element]]
    heartbeats: Mapping[str, int]


def standing_for(source: Source, *, chronons: bool, insert_only: bool) -> Plan:
    """A plan with the source's schema of whose elements no more is known than that."""
    match chronons, insert_only:
        case True, True:
            return source
        case True, False:
            return Split(Coalesce(source))
        case False, True:
            return TimeWindow(source, Duration(2))
        case _:
            return Coalesce(source)


def over(plan: Plan, inputs: Mapping[str, Plan]) -> Plan:
    """The plan with other plans in place of its sources."""
    if isinstance(plan, Source):
        return inputs.get(plan.name, plan)
    return with_inputs(plan, tuple(over(below, inputs) for below in inputs_of(plan)))


State = dict[int, dict[str, list[SortedRun]]]
"""The runs of each node's areas, by its number and the area's name; the largest number is the plan's node."""


def drive(
    plan: Plan, inputs: Mapping[str, Plan], epochs: Iterable[Arriving], state: State | None = None
) -> Iterator[tuple[Batch, int]]:
    """What a plan emits, epoch by epoch, each with the heartbeat behind it.

    After every epoch the operators are made anew from their stored runs, as on another worker.

    Args:
        plan: any plan over sources.
        inputs: by source name, what stands for the source.
        epochs: what arrives.
        state: is kept in here, to be looked at between the epochs.
    """
    graph = lower({"q": over(plan, inputs)})
    given = {stand_in: name for name, stand_in in inputs.items()}
    state = {} if state is None else state
    before = (BEGINNING,) * len(graph.nodes)
    newest = dict.fromkeys(inputs, BEGINNING)
    reached = dict.fromkeys(graph.horizons, before)
    for epoch in epochs:
        newest |= {
            name: max([newest[name], *(ts for _, ts, _, _ in rows)]) for name, rows in epoch.elements.items()
        }
        after = graph.heartbeats(epoch.heartbeats, newest)
        reaches = graph.reaches(epoch.heartbeats, newest, {})
        horizons = {horizon: (reached[horizon], reaches[horizon]) for horizon in graph.horizons}
        run = _Epoch(graph, given, epoch, before, after, state, horizons, dict(state))
        output = graph.node_of(graph.outputs[0][1])
        batch = run.output(output)
        for group in graph.groups:
            batch = part_of(batch, group.constant)
        yield batch, after[output]
        before, reached = after, reaches


def part_of(batch: Batch, constant: Literal) -> Batch:
    """The elements with a constant in their last column, without that column."""
    *names, last = batch.payload.schema.names
    kept = [value == constant.value for value in batch.payload.column(last).to_pylist()]
    part = batch.filter(np.array(kept, dtype=np.bool_))
    return part.with_payload(part.payload.select(names) if names else empty_columns(len(part)))


@dataclass
class _Epoch:
    graph: Graph
    given: Mapping[Plan, str]
    arriving: Arriving
    before: tuple[int, ...]
    after: tuple[int, ...]
    state: State
    horizons: Mapping[Horizon, tuple[tuple[int, ...], tuple[int, ...]]]
    committed: State
    _outputs: dict[int, Batch] = field(default_factory=dict)
    _taken: dict[int, list[tuple[int, Batch]]] = field(default_factory=dict)

    def output(self, number: int) -> Batch:
        """What a node emits."""
        if number not in self._outputs:
            self._outputs[number] = self._output(self.graph.nodes[number])
        return self._outputs[number]

    def _output(self, node: Node) -> Batch:
        plan = node.plan
        if plan in self.given:
            return from_rows(plan.schema, self.arriving.elements[self.given[plan]])
        if is_stateful(plan):
            return self._advance(node, self._operator(node))
        if isinstance(plan, Early) and plan.corrects:
            return self._speak(node, plan)
        assert is_stateless(plan), plan
        inputs = [self.output(edge.producer) for edge in node.inputs]
        return concat(plan.schema, [apply(plan, batch, left_out) for batch in inputs])

    def _operator(self, node: Node) -> Operator:
        """A node's operator with the state of the last commit."""
        assert is_stateful(node.plan)
        operator = create_operator(node.plan, node.reduced_for is not None, left_out)
        for name, runs in self.committed.get(node.number, {}).items():
            operator.areas[name].runs = [_reloaded(run) for run in runs]
        return operator

    def _speak(self, node: Node, plan: Early) -> Batch:
        told = self.graph.nodes[node.inputs[0].producer]
        yielded = self.output(told.number)
        producers = [edge.producer for edge in told.inputs]
        before, after = (
            Reach(
                state.get(told.number, {}),
                tuple(heartbeats[producer] for producer in producers),
                tuple(horizons[producer] for producer in producers),
            )
            for state, heartbeats, horizons in (
                (self.committed, self.before, self.horizons[plan.horizon][0]),
                (self.state, self.after, self.horizons[plan.horizon][1]),
            )
        )
        assert is_stateful(told.plan)
        how = told.plan, told.reduced_for is not None, left_out
        speaker = Speaker(
            plan.schema, partial(create_operator, *how), partial(create_timeline_operator, *how)
        )
        by_forks = speaker.by_forks(yielded, before, after)
        by_regions = speaker.by_regions(self._taken[told.number], before, after, 0)
        if by_regions is None:
            return by_forks
        assert steps(by_forks) == steps(by_regions)
        return by_regions

    def _advance(self, node: Node, operator: Operator) -> Batch:
        taken = self._taken[node.number] = []
        for port, edge in enumerate(node.inputs):
            whole = self.output(edge.producer)
            # Two batches, so that what is added up before an exchange is added up again behind it.
            for part in (range(0, len(whole), 2), range(1, len(whole), 2)):
                sent = _sent(node, whole.take(pa.array(part, pa.int64()).to_numpy()))
                taken.append((port, sent))
                operator.process(port, sent)
        producers = [edge.producer for edge in node.inputs]
        progress = OperatorProgress(
            tuple(self.before[producer] for producer in producers),
            tuple(self.after[producer] for producer in producers),
        )
        emitted = operator.advance(progress)
        self.state[node.number] = {name: area.runs for name, area in operator.areas.items()}
        return emitted


def steps(batch: Batch) -> dict[tuple[object, ...], int]:
    """By how much each payload becomes more or less frequent at an instant, where it does."""
    found: Counter[tuple[object, ...]] = Counter()
    for row, ts, te, w in to_rows(batch.with_payload(normalise(batch.payload))):
        key = tuple(map(repr, row))
        found[*key, ts] += w
        found[*key, te] -= w
    return {place: change for place, change in found.items() if change}


def in_epochs(streams: Mapping[str, Sequence[Element]], count: int) -> list[Arriving]:
    """Elements in the order of their starts, cut into so many epochs of about equal length."""
    starts = sorted({ts for elements in streams.values() for _, ts, _, _ in elements})
    bounds = [starts[place * len(starts) // count] for place in range(1, count)] if starts else []
    epochs = []
    for low, high in zip([BEGINNING, *bounds], [*bounds, INFINITY], strict=True):
        part = {name: [row for row in rows if low <= row[1] < high] for name, rows in streams.items()}
        epochs.append(Arriving(part, dict.fromkeys(streams, high)))
    return epochs


def left_out(batch: Batch, failed: BoolArray, reason: str) -> None:
    """A report of elements that fail, which the reference leaves out, too."""


def _sent(node: Node, batch: Batch) -> Batch:
    """What a node's operator is given of a batch that it reads."""
    reduced_for = node.reduced_for
    if reduced_for is None:
        return batch
    return part_for(node.plan, reduced_for, reduction_for(reduced_for).reduce(batch, left_out))


def _reloaded(run: SortedRun) -> SortedRun:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, run.batch.schema) as writer:
        writer.write_batch(run.batch)
    stored = sink.getvalue()
    ref = RunRef(RunPart("s", 0, stored.size, 0), run.rows, run.first, run.last, run.reach)
    return stored_run(ref, lambda _: pa.ipc.open_stream(stored).read_next_batch())


def check_chronons(leaf: Source, plan: Plan, epochs: list[list[Element]], slack: int) -> None:
    """The operator law: what is said below each heartbeat is what the definition says of all rows.

    Args:
        leaf: a stream of rows of an instant each, some of which are taken back.
        plan: a plan over it alone.
        epochs: what arrives in each; the last heartbeat is behind all of it.
        slack: so far (instants) heartbeats are below the first row that is yet to come.
    """
    streams = {leaf.name: Stream(leaf.schema.names, [row for rows in epochs for row in rows])}
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)])
    count = len(epochs)
    later = [[ts for rows in epochs[at + 1 :] for _, ts, _, _ in rows] for at in range(count - 1)]
    hearts = [*(min(instants, default=40) - slack for instants in later), INFINITY]
    arriving = [Arriving({leaf.name: rows}, {leaf.name: at}) for rows, at in zip(epochs, hearts, strict=True)]
    known = standing_for(leaf, chronons=True, insert_only=False)
    found: list[Batch] = []
    for emitted, heartbeat in drive(plan, {leaf.name: known}, arriving):
        found.append(emitted)
        ours, theirs = (canonical(clip(batch, heartbeat)) for batch in (concat(plan.schema, found), expected))
        assert _shown(ours) == _shown(theirs), f"after {len(found)} epochs"


def _shown(batch: Batch) -> list[tuple[Payload, int, int, int]]:
    """The elements, with one NaN that is equal to itself."""
    return [(payload(row), ts, te, w) for row, ts, te, w in to_rows(batch)]
