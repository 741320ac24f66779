"""A query that takes over the operators of others that run, with their state: `CREATE QUERY name WARM AS`.

Its answer follows from theirs by operators that look at one instant at a time. So what is below holds what it
holds, over the rows since those queries' start, and it answers from the heartbeat on at which it was added.
What holds from there on has been said already, before it was there: from that it is computed what the
operators above hold, and what the query begins with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Plan, Source, column, inputs_of, project, with_inputs
from headrace.algebra.properties import POINTWISE
from headrace.elements import Batch, BoolArray, encode
from headrace.errors import ExecutionError, PlanError, UserError
from headrace.lowering.early import early
from headrace.lowering.memory import is_strong
from headrace.lowering.node import Node
from headrace.lowering.outer_joins import expand
from headrace.lowering.query_id import first_name
from headrace.optimizer import optimize
from headrace.runtime.driver.change.content.answer import reader_of
from headrace.runtime.driver.change.content.at_once import AtOnce
from headrace.runtime.driver.change.content.early_content import beyond
from headrace.runtime.driver.change.content.live_content import RUNS_ALREADY, LiveContent
from headrace.runtime.driver.change.migration.exchange import carried_out
from headrace.runtime.driver.query_record import Adoption
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.carried import held_from
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import Manifest, ResultRef, StateKey
from headrace.time import BEGINNING, INFINITY

_COLD: Final = "leave out WARM: it then answers over the rows from now on"


@dataclass(frozen=True)
class Derivation:
    """How the answer of a query follows from those of others.

    Attributes:
        plan: the query's.
        answers: the parts of it that are the answers of others, each with the names of those; none where
            something besides them is read, or looks at more than one instant.
    """

    plan: Plan
    answers: tuple[tuple[Plan, tuple[str, ...]], ...]


@dataclass(frozen=True)
class TakenOver:
    """What a query takes over.

    Attributes:
        answers: the queries whose answers it reads, each with the part of the query's plan that it is.
        adoption: what is remembered of it.
    """

    answers: Mapping[str, Plan]
    adoption: Adoption


@dataclass(frozen=True)
class WarmContent:
    """What a query that takes over others begins with.

    Attributes:
        results: what holds of its answer.
        state: what its new operators hold.
    """

    results: tuple[ResultRef, ...]
    state: Mapping[StateKey, Manifest]


def derivation(plan: Plan, plans: Mapping[str, Plan]) -> Derivation:
    """How a plan follows from the answers of queries.

    Args:
        plan: a query's plan.
        plans: those of other queries by name, in the same form.
    """
    found: dict[Plan, tuple[str, ...]] = {}
    waiting = [plan]
    while waiting:
        part = waiting.pop()
        if part in found:
            continue
        if names := tuple(name for name, known in plans.items() if known == part):
            found[part] = names
        elif isinstance(part, POINTWISE):
            waiting += inputs_of(part)
        else:
            return Derivation(plan, ())
    return Derivation(plan, tuple(found.items()))


def adopt(
    name: str,
    derived: Derivation,
    horizon: Horizon | None,
    queries: QuerySet,
    results: Sequence[EpochResults],
    kept: bool,
) -> TakenOver:
    """What a query that is added can take over.

    Args:
        name: the query's.
        derived: how it follows from others.
        horizon: up to where it speaks; None for its heartbeat.
        queries: those that run.
        results: those of the epochs that are kept, in order.
        kept: whether the run keeps results at all.

    Raises:
        UserError: there is nothing that it could take over, with the reason.
    """
    if not kept:
        raise _cannot(name, "the run keeps no results, from which it would begin", _COLD)
    start, chosen = _chosen(name, derived, queries)
    heartbeats = {query: results[-1].heartbeats[query] if results else BEGINNING for query in chosen}
    for query, heartbeat in heartbeats.items():
        called = queries.name_of(query)
        if heartbeat == INFINITY:
            raise _cannot(name, f"the answer of {called} is final", f"read the answer of {called}")
        if query in queries.migrations:
            raise _cannot(
                name, f"the plan of {called} is being exchanged", f"wait until that is over; or {_COLD}"
            )
    since = min(heartbeats.values())
    for query in chosen:
        if query in queries.warm and queries.warm[query].answers_from > since:
            reason = (
                f"{queries.name_of(query)} answers from an instant on that the other answers have not reached"
            )
            raise _cannot(name, reason, f"try again later; or {_COLD}")
    answers = {query: carried_out(queries, query) for query in chosen}
    whole = _above(derived.plan, {part: answers[query] for query, part in chosen.items()})
    plan = whole if horizon is None else early(whole, horizon)
    return TakenOver(answers, Adoption(start, since, plan))


def _chosen(name: str, derived: Derivation, queries: QuerySet) -> tuple[int, dict[str, Plan]]:
    """For each answer that is read a query that runs; all began together, as early as possible."""
    # Operators that wait hold other state than those of the same plan that do not, and what has been said
    # before it was final would be said again at the level of the query that said it. What leaves out rows
    # holds other state, too.
    waiting = {query for query, holds in queries.holds.items() if holds}
    weaker = {query for query, plan in queries.plans.items() if not is_strong(plan)}
    behind = {query for names in queries.lanes.values() for query in names}
    live = queries.live.keys() - waiting - weaker - behind
    starts = [
        {queries.state_start_of(query): query for query in reversed(names) if query in live}
        for _, names in derived.answers
    ]
    if not starts or not all(starts):
        raise _cannot(
            name,
            "its answer does not follow from those of queries that run by operators that look at one instant",
            f"write SELECT ... FROM (the text of that query) AS q WHERE ...; or {_COLD}",
        )
    common = set(starts[0]).intersection(*starts[1:])
    if not common:
        read = ", ".join(dict.fromkeys(queries.name_of(query) for part in starts for query in part.values()))
        raise _cannot(name, f"it reads the answers of queries that started at different times: {read}", _COLD)
    start = min(common)
    parts = (part for part, _ in derived.answers)
    return start, {found[start]: part for found, part in zip(starts, parts, strict=True)}


def _above(plan: Plan, answers: Mapping[Plan, Plan]) -> Plan:
    """A plan, optimized, over what answers that it reads are carried out as.

    Args:
        plan: the plan.
        answers: the parts that are read as they are, each with what it is carried out as.
    """
    # To the optimizer an answer is a stream about which nothing is known.
    read = {
        part: Source(f"answer {place}", part.schema, "", part.domain) for place, part in enumerate(answers)
    }
    carried_out = {f"answer {place}": below for place, below in enumerate(answers.values())}

    def with_sources(part: Plan) -> Plan:
        return read[part] if part in read else with_inputs(part, tuple(map(with_sources, inputs_of(part))))

    known: dict[int, Plan] = {}

    def with_answers(part: Plan) -> Plan:
        # What is used twice stays one object.
        if id(part) not in known:
            known[id(part)] = answer(part) if isinstance(part, Source) else again(part)
        return known[id(part)]

    def again(part: Plan) -> Plan:
        return with_inputs(part, tuple(map(with_answers, inputs_of(part))))

    def answer(part: Source) -> Plan:
        below = carried_out[part.name]
        places = (below.schema.names.index(name) for name in part.schema.names)
        return project(below, tuple((below.schema[one].name, column(below, one)) for one in places))

    return with_answers(expand(optimize(with_sources(plan))))


def begin(
    name: str,
    adopted: TakenOver,
    before: Holding,
    after: QuerySet,
    results: Sequence[EpochResults],
    file: str,
) -> WarmContent:
    """Compute and write what a query begins with, from what has been said before and goes on holding.

    Args:
        name: the query's.
        adopted: what it takes over.
        before: the queries that run.
        after: those that run with this one.
        results: those of the epochs that are kept, in order.
        file: the name of the files to write, below the folders for results and for state.

    Raises:
        UserError: an expression fails for a row that holds, or an operator cannot begin here.
    """
    since = adopted.adoption.answers_from
    writer, states = (
        SegmentWriter(before.store, f"results/{file}"),
        SegmentWriter(before.store, f"segments/{file}"),
    )

    def refuse(_: Batch, failed: BoolArray, reason: str) -> None:
        hint = f"filter such rows out, or {_COLD}"
        raise _cannot(name, f"an expression fails for a row of the present answer: {reason}", hint)

    known = frozenset(node.identity for node in before.queries.graph.nodes)

    def running(node: Node, _: Plan) -> None:
        if node.identity in known:
            raise PlanError(RUNS_ALREADY)

    at_once = AtOnce(after.graph, before.buckets, before.store, states, refuse)
    content = LiveContent(
        [(plan, _held(query, before, results, since)) for query, plan in adopted.answers.items()],
        since,
        after.graph,
        name,
        running,
        before.heartbeats(after.graph),
        at_once,
        refuse,
        partial(beyond, before, after.graph, name),
    )
    try:
        batch = content.of(adopted.adoption.plan)
    except (PlanError, ExecutionError) as error:
        raise _cannot(name, error.message, _COLD) from error
    states.close()
    if not len(batch):
        return WarmContent((), at_once.state)
    part = writer.add(encode(batch))
    writer.close()
    output = dict(after.graph.outputs)[name]
    return WarmContent((ResultRef(output, part, len(batch), int(batch.ts.max())),), at_once.state)


def _held(query: str, before: Holding, results: Sequence[EpochResults], since: int) -> Batch:
    """What has been said of a query's answer about the instants from one on."""
    return held_from(reader_of(query, before, results).yielded(), since)


def _cannot(query: str, reason: str, hint: str) -> UserError:
    # It has just been created, and has the name that it was created with.
    return UserError(f"{first_name(query)} cannot start WARM: {reason}", hint=hint)
