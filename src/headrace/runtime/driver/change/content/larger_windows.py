"""A query that begins with what larger windows of queries that run hold, so that it lacks nothing.

The sums over a window say what leaves it at each instant to come, and so what has entered at each instant
that it reaches back to (`headrace.operators.state.entered`). A window of the same rows that is no larger
needs no more than that. So a new query is exact at once if all of it looks at one instant at a time above
such sums: those of COUNT, SUM, AVG, deviations and what else is read off sums, of the same groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.explain import describe
from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import (
    Aggregate,
    Filter,
    Plan,
    Project,
    Source,
    TimeWindow,
    Union,
    inputs_of,
    with_inputs,
)
from headrace.algebra.properties import POINTWISE, walk
from headrace.elements import decode_rows
from headrace.errors import PlanError
from headrace.expressions.tree import AggregateCall, Expression, expressions_of
from headrace.lowering.adoption import require_same_places
from headrace.lowering.early import alone, horizon_of
from headrace.lowering.graph import Graph
from headrace.lowering.identity import identities, shape
from headrace.lowering.memory import is_strong
from headrace.lowering.node import Node
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.aggregates.accumulators import has_sums, is_invertible
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.contract import Operator
from headrace.operators.early import unreported
from headrace.operators.state.runs import RunRef
from headrace.optimizer import optimize
from headrace.runtime.driver.change.content.coverage import in_terms_of
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.store.segments import SegmentReader, SegmentWriter
from headrace.runtime.tasks.level import loaded_operator, store_state
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import BEGINNING, INFINITY

_PASSED_THROUGH: Final = (Filter, Project, Union, Source)
"""Nodes that may stand between sums and streams besides one window: they leave rows where they are."""


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over one window.

    Attributes:
        plan: the aggregation.
        window: its window, one of those that are equal if it has several inputs.
        alike: what is the same in another one that reads the same rows, whatever columns it reads.
    """

    plan: Aggregate
    window: TimeWindow
    alike: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Taken:
    """Sums that begin with what others hold.

    Attributes:
        new: the sums of the new query.
        form: how they are made of the columns that the others read.
        node: the operator of the others.
        held: their sums.
    """

    new: Aggregate
    form: Accumulation
    node: Node
    held: _Sums


@dataclass(frozen=True, eq=False)
class Shift:
    """The part of larger windows' state that a query begins with.

    Attributes:
        plan: what it is carried out as.
        queries: the queries that have these windows, by identity.
        exact: from which instant on it is exact; BEGINNING where it never lacks anything.
    """

    plan: Plan
    queries: tuple[str, ...]
    exact: int
    _taken: tuple[_Taken, ...]

    @property
    def shortens(self) -> bool:
        """Whether some window is smaller than the one whose rows it takes."""
        return any(_window_of(one.new).size != one.held.window.size for one in self._taken)

    def state(self, name: str, before: Holding, after: Graph, file: str) -> dict[StateKey, Manifest]:
        """The state of the query's operators then; writes it.

        Args:
            name: the query.
            before: what runs.
            after: the graph with the query.
            file: the name of the file to write, below the folder for state.

        Raises:
            StoreError: something cannot be read or written.
        """
        output = after.node_of(dict(after.outputs)[name])
        nodes = {after.nodes[number].shape: after.nodes[number] for number in after.below(output)}
        heartbeats, reader = before.heartbeats(before.queries.graph), SegmentReader(before.store)
        writer = SegmentWriter(before.store, f"segments/{file}")

        def load(ref: RunRef) -> pa.RecordBatch:
            return decode_rows(reader.read(ref.part))

        found: dict[StateKey, Manifest] = {}
        for one in self._taken:
            node, horizon = nodes[shape(one.new)], heartbeats[one.node.number]
            for bucket in range(before.buckets):
                manifest = before.state.get((one.node.identity, bucket), {})
                held = _sums_of(loaded_operator(one.node, one.held.plan, manifest, unreported, load))
                begun = _sums_of(loaded_operator(node, one.new, {}, unreported, load))
                rows = held.rows_within(horizon, one.held.window.size.length)
                begun.begin(one.form.part_of(held.form, rows), _window_of(one.new).size.length, horizon)
                found[node.identity, bucket] = store_state(begun, writer)
        writer.close()
        return found


def shift_of(before: Holding, plan: Plan) -> Shift | None:
    """The state with which a query could begin now; None where larger windows lack what it needs.

    Args:
        before: what runs.
        plan: the query's plan, optimized.
    """
    if not is_strong(plan) or horizon_of(plan) is not None:
        return None
    carried = alone(plan)[0]
    wanted = _bottom(carried)
    if not wanted:
        return None
    known = _running(before, {sums.alike for sums in wanted})
    graph = QuerySet.alone(plan).graph
    taken: list[_Taken] = []
    queries: dict[str, None] = {}
    exact = BEGINNING
    for sums in wanted:
        found = _best(sums, known, before.queries.graph, graph)
        if found is None:
            return None
        one, query, since = found
        taken.append(one)
        queries[query] = None
        exact = max(exact, since)
    # A stream may be further than the query, which answers from where the last of its streams is.
    further = max(before.heartbeats(before.queries.graph)[one.node.number] for one in taken)
    if further > before.heartbeats(graph)[graph.node_of(dict(graph.outputs)[""])]:
        exact = max(exact, further)
    return Shift(carried, tuple(queries), exact, tuple(taken))


def _bottom(plan: Plan) -> tuple[_Sums, ...]:
    """The sums above which a plan looks at one instant at a time; none where it looks at something else."""
    found: dict[int, _Sums] = {}
    ahead = [plan]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Aggregate) and (sums := _sums(part)) is not None:
            found[id(part)] = sums
        elif isinstance(part, POINTWISE):
            ahead += inputs_of(part)
        else:
            return ()
    return tuple(found.values())


def _sums(part: Aggregate) -> _Sums | None:
    """An aggregation as sums over one window; None where it is something else."""
    if part.settled or not all(_is_sum(call) for _, call in part.aggregates):
        return None
    windows, alike = [], []
    for below in walk(part.input):
        if isinstance(below, TimeWindow):
            windows.append(below)
        elif isinstance(below, Source):
            alike.append(f"Source {below.name} {below.timestamp}")
        elif not isinstance(below, _PASSED_THROUGH):
            return None
        elif not isinstance(below, Project):
            alike.append(describe(below))
    if not windows or any(not _is_plain(window) or window.size != windows[0].size for window in windows):
        return None
    if any(isinstance(below, TimeWindow) for window in windows for below in walk(window.input)):
        return None
    return _Sums(part, windows[0], tuple(sorted(alike)))


def _is_sum(call: AggregateCall) -> bool:
    return is_invertible(call) and not call.distinct


def _is_plain(window: TimeWindow) -> bool:
    """Whether a window moves with every instant, and has one size for ever, with an end."""
    plain = TimeWindow(window.input, window.size)
    return window == plain and window.size.length < INFINITY


def _sums_within(plan: Plan) -> tuple[_Sums, ...]:
    parts = {id(part): part for part in walk(plan) if isinstance(part, Aggregate)}
    return tuple(sums for sums in map(_sums, parts.values()) if sums is not None)


def _alone_within(plan: Plan) -> tuple[Plan, tuple[_Sums, ...]]:
    carried = alone(plan)[0]
    return carried, _sums_within(carried)


_known_sums: Final = ByObject(_sums_within, REMEMBERED)
_known_alone: Final = ByObject(_alone_within, REMEMBERED)


@dataclass(frozen=True, eq=False)
class _Running:
    """Sums of a query that runs.

    Attributes:
        query: the query.
        sums: the sums.
        node: their operator.
        exact: from which instant on the query is exact; BEGINNING where it never lacked anything.
    """

    query: str
    sums: _Sums
    node: Node
    exact: int


def _running(before: Holding, alike: set[tuple[str, ...]]) -> list[_Running]:
    """The sums of queries that run over the same rows as some others."""
    queries, found = before.queries, list[_Running]()
    graph, heartbeats = queries.graph, before.heartbeats(queries.graph)
    identified = {node.identity: node for node in graph.nodes}

    def begun(one: _Running) -> bool:
        """Whether rows have come, and further ones may, and it has all that were in time, and no others."""
        heartbeat, warm = heartbeats[one.node.number], queries.answered[one.query].warm
        return BEGINNING < heartbeat < INFINITY and (warm is None or warm.answers_from <= heartbeat)

    for name, plan in queries.live.items():
        record = queries.answered[name]
        other = record.carried_out
        carried, within = _known_alone(plan) if other is None else (other, _known_sums(other))
        sums = [one for one in within if one.alike in alike]
        if not sums or record.holds or name in queries.migrations or not is_strong(plan):
            continue
        if record.warm is not None and record.warm.since == record.start:
            # It was brought to the present when it began, perhaps with rows that came too late.
            continue
        if horizon_of(plan) is not None or not is_strong(carried):
            continue
        exacts = [gap.exact_from for gap in queries.gaps_of(name)]
        lacks = max((one for one in exacts if one is not None), default=BEGINNING)
        names = identities(carried, record.state_start, queries.merges)
        nodes = ((one, identified.get(names[id(one.plan)])) for one in sums)
        found += [_Running(name, one, node, lacks) for one, node in nodes if node is not None]
    return [one for one in found if begun(one)]


def _best(
    sums: _Sums, known: Iterable[_Running], before: Graph, after: Graph
) -> tuple[_Taken, str, int] | None:
    """The operator that some sums begin with, its query, and from which instant on they are exact then."""
    best: tuple[_Taken, str, int] | None = None
    for one in known:
        longer = one.sums.window.size.length - sums.window.size.length
        if longer < 0 or one.sums.alike != sums.alike:
            continue
        exact = one.exact - longer if BEGINNING < one.exact < INFINITY else one.exact
        if best is not None and best[2] <= exact:
            continue
        taken = _taken(sums, one, before, after)
        if taken is not None:
            best = taken, one.query, exact
    return best


def _taken(sums: _Sums, one: _Running, before: Graph, after: Graph) -> _Taken | None:
    """The way in which sums begin with those of a larger window; None where that lacks them."""
    made = in_terms_of(sums.plan, _resized(one.sums.plan, sums.window))
    if made is None or _failing(one.sums.plan) - _failing(made) or _computes_what_may_fail(one.sums.plan):
        # The larger one may lack rows on which an expression of its own fails.
        return None
    form, held = Accumulation.of(made), Accumulation.of(one.sums.plan)
    if form.keys != held.keys or not has_sums(form.sums, held.sums):
        return None
    if alone(optimize(made))[0] != sums.plan:
        return None
    new = next((node for node in after.nodes if node.shape == shape(sums.plan)), None)
    if new is None:
        return None
    try:
        require_same_places({new.identity: one.node.identity}, before, after)
    except PlanError:
        return None
    return _Taken(sums.plan, form, one.node, one.sums)


def _failing(plan: Aggregate) -> set[Expression]:
    """The expressions of an aggregation that may fail on a row, which is then left out."""
    return {part for _, call in plan.aggregates for part in expressions_of(call) if can_fail(part)}


def _computes_what_may_fail(plan: Aggregate) -> bool:
    """Whether an expression below an aggregation may fail, which others over the same rows may lack."""
    below = (part for part in walk(plan.input) if isinstance(part, Project))
    return any(can_fail(expression) for part in below for _, expression in part.items)


def _resized(plan: Aggregate, window: TimeWindow) -> Aggregate:
    """An aggregation with windows of another size."""

    def over(part: Plan) -> Plan:
        if isinstance(part, TimeWindow):
            return replace(part, size=window.size)
        below = inputs_of(part)
        return with_inputs(part, tuple(map(over, below))) if below else part

    found = over(plan)
    assert isinstance(found, Aggregate)
    return found


def _window_of(plan: Aggregate) -> TimeWindow:
    sums = _sums(plan)
    assert sums is not None
    return sums.window


def _sums_of(operator: Operator) -> AggregateOperator:
    assert isinstance(operator, AggregateOperator)
    return operator
