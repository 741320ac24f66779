"""A query that takes the place of another one at once, with the operators that both have in common.

That goes where all that is above these operators looks at one instant at a time. They keep what they hold, so
that the new answer is the one over all rows that the old one had, and begins where that is final. What they
have said of the instants from there on is in their state; from that follows what the operators above hold,
and what the new answer begins with.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa

from headrace.algebra.nodes import Aggregate, Distinct, Plan, Stateful, inputs_of
from headrace.algebra.properties import POINTWISE, is_stateful, walk
from headrace.elements import Batch, BoolArray, concat, decode_rows
from headrace.errors import ExecutionError, PlanError, UserError
from headrace.lowering.early import alone, horizon_of
from headrace.lowering.graph import Graph
from headrace.lowering.identity import identities
from headrace.lowering.memory import is_strong
from headrace.lowering.node import Node
from headrace.operators.contract import Holder
from headrace.operators.early import unreported
from headrace.operators.state.runs import RunRef
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.content.answer import begins_with, said_instead
from headrace.runtime.driver.change.content.at_once import AtOnce
from headrace.runtime.driver.change.content.coverage import covered
from headrace.runtime.driver.change.content.early_content import beyond
from headrace.runtime.driver.change.content.live_content import LiveContent
from headrace.runtime.driver.change.migration.exchange import carried_out, require_at_rest
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.wanted import Wanted
from headrace.runtime.driver.query_record import Adoption
from headrace.runtime.driver.state import Holding
from headrace.runtime.journal.gap import Gap
from headrace.runtime.store.segments import SegmentReader, SegmentWriter
from headrace.runtime.tasks.level import loaded_operator
from headrace.time import BEGINNING, INFINITY

HOLDING: Final = (Aggregate, Distinct)
"""Nodes whose operators say what they have said; see `headrace.operators.contract.Holder`."""


@dataclass(frozen=True, eq=False)
class Inheritance:
    """What a query has in common with the one whose place it takes.

    Attributes:
        adoption: since when the operators have seen their input, from which instant on the query answers, and
            what it is carried out as.
        kept: those of its operators that go on with their state.
        anew: those that begin with what holds of the others.
    """

    adoption: Adoption
    kept: tuple[Plan, ...]
    anew: tuple[Plan, ...]


def inheritance(
    holding: Holding, name: str, plan: Plan, heartbeat: int, *, waits: bool
) -> Inheritance | None:
    """What a query would have in common with the one whose place it takes; None where that is not enough.

    Args:
        holding: the queries that are answered, and their state.
        name: the query's.
        plan: its plan, optimized.
        heartbeat: up to where the old answer is final (instant).
        waits: whether some of its operators are to wait for others.
    """
    queries = holding.queries
    if waits or not is_strong(plan) or horizon_of(plan) is not None or heartbeat in (BEGINNING, INFINITY):
        return None
    if name in queries.warm and queries.warm[name].answers_from > heartbeat:
        return None
    try:
        require_at_rest(queries, name)
    except PlanError:
        return None
    carried, start = (
        covered(alone(plan)[0], [*walk(carried_out(queries, name))]),
        queries.state_start_of(name),
    )
    names = identities(carried, start, queries.merges)
    heartbeats = dict(
        zip((node.identity for node in queries.graph.nodes), holding.heartbeats(queries.graph), strict=True)
    )
    common = _common(carried, names, heartbeats)
    if common is None or any(heartbeats[names[id(part)]] != heartbeat for part in common):
        return None
    parts = [part for part in walk(carried) if is_stateful(part)]
    kept = tuple(part for part in parts if names[id(part)] in heartbeats)
    anew = tuple(part for part in parts if names[id(part)] not in heartbeats)
    return Inheritance(Adoption(start, heartbeat, carried), kept, anew)


def _common(plan: Plan, names: Mapping[int, str], running: Container[str]) -> tuple[Plan, ...] | None:
    """The operators that run already above which a plan looks at one instant at a time.

    Returns:
        None where it looks at something else, or the state of one of them does not say what it has said.
    """
    found: dict[int, Plan] = {}
    ahead = [plan]
    while ahead:
        part = ahead.pop()
        if is_stateful(part) and names[id(part)] in running:
            if not isinstance(part, HOLDING):
                return None
            found[id(part)] = part
        elif isinstance(part, POINTWISE):
            ahead += inputs_of(part)
        else:
            return None
    return tuple(found.values())


def inherited(present: Present, wanted: Wanted, name: str, found: Inheritance, *, goes_on: bool) -> Turn:
    """A query takes the place of another one with the operators that both have in common.

    Args:
        present: the run before it.
        wanted: what the run is from then on; no other query is new or gone.
        name: the query's.
        found: what they have in common.
        goes_on: whether the answer so far goes on in its own, which has the same columns.

    Raises:
        UserError: an expression fails for a row that holds, or an aggregate does.
        StoreError: something cannot be read or written.
    """
    holding, results = present.holding(), present.known.results
    heartbeat = found.adoption.answers_from
    queries = present.joined(wanted, name, found.adoption, goes_on=goes_on)
    if not goes_on:
        left = tuple(_lacking_from(holding.queries.gaps.get(name, ()), heartbeat))
        queries = queries.having(name, gaps=left)
    states = SegmentWriter(present.store, f"segments/{present.prefix}-inherited")
    at_once = AtOnce(
        queries.graph, holding.buckets, present.store, states, partial(_refuse, holding.queries.name_of(name))
    )
    new = _content(name, found.adoption, holding, queries.graph, at_once)
    states.close()
    writer = SegmentWriter(present.store, f"results/{present.prefix}-inherited")
    output = dict(queries.graph.outputs)[name]
    if goes_on:
        refs = said_instead(name, new, heartbeat, heartbeat, holding, results, writer, output)
    else:
        refs = tuple(begins_with(new, output, writer))
    writer.close()
    joining = Joining(name, found.adoption, at_once.state, {}, refs, (), (), goes_on)
    return replace(present.turn_to(wanted, queries), joining=joining)


def _content(name: str, adoption: Adoption, holding: Holding, graph: Graph, at_once: AtOnce) -> Batch:
    """What a query says of the instants from the one on from which it answers.

    Raises:
        UserError: an expression fails for a row that holds, or an aggregate does.
    """
    known = {node.identity for node in holding.queries.graph.nodes}
    reader, called = SegmentReader(holding.store), holding.queries.name_of(name)

    def load(ref: RunRef) -> pa.RecordBatch:
        return decode_rows(reader.read(ref.part))

    def running(node: Node, plan: Stateful) -> Batch | None:
        if node.identity not in known:
            return None
        manifests = (holding.state.get((node.identity, bucket), {}) for bucket in range(holding.buckets))
        operators = [loaded_operator(node, plan, one, unreported, load) for one in manifests]
        said = [one.held_from(adoption.answers_from) for one in operators if isinstance(one, Holder)]
        assert len(said) == len(operators)
        return concat(plan.schema, said)

    content = LiveContent(
        (),
        adoption.answers_from,
        graph,
        name,
        running,
        holding.heartbeats(graph),
        at_once,
        partial(_refuse, called),
        partial(beyond, holding, graph, name),
    )
    try:
        return content.of(adoption.plan)
    except ExecutionError as error:
        raise _cannot(called, error.message) from error


def _lacking_from(gaps: Iterable[Gap], since: int) -> Iterator[Gap]:
    """What gaps say of the instants from one on at which not all is there."""
    for gap in gaps:
        if gap.end is not None and gap.exact is not None and gap.exact > since:
            yield Gap(since, max(gap.end, since), gap.exact)


def _refuse(name: str, _: Batch, failed: BoolArray, reason: str) -> None:
    raise _cannot(name, f"an expression fails for a row of the present answer: {reason}")


def _cannot(name: str, reason: str) -> UserError:
    return UserError(
        f"{name} cannot be replaced: {reason}",
        hint="filter such rows out, or drop the query and create it again",
    )
