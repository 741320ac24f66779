"""A query that takes over the operators of one that runs, with their state: `CREATE QUERY name WARM AS`.

It is that query, or filters and projections of its answer. So it holds what that one holds, over the rows
since that one's start, and answers from the heartbeat on at which it was added. What holds from there on has
been said already, before it was there: that is what it begins with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.algebra.nodes import Filter, Plan, Project, with_inputs
from headrace.elements import Batch, BoolArray, encode
from headrace.errors import UserError
from headrace.lowering.constants import constants_as_data
from headrace.lowering.outer_joins import expand
from headrace.operators.stateless import apply
from headrace.runtime.driver.query_set import Adoption, QuerySet
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.carried import held_from
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import SegmentWriter, Store
from headrace.runtime.tasks.messages import ResultRef
from headrace.time import BEGINNING, INFINITY

_COLD: Final = "leave out WARM: it then answers over the rows from now on"


@dataclass(frozen=True)
class Derivation:
    """How the answer of a query follows from that of another one.

    Attributes:
        query: the name of the other one.
        above: what it makes of that answer, the last step first.
    """

    query: str
    above: tuple[Filter | Project, ...]


@dataclass(frozen=True)
class Adopted:
    """What a query takes over.

    Attributes:
        derived: how it follows from a query that runs.
        adoption: what is remembered of it.
    """

    derived: Derivation
    adoption: Adoption


def derivations(plan: Plan, plans: Mapping[str, Plan]) -> tuple[Derivation, ...]:
    """The queries whose answer a plan filters and projects, if it does not equal theirs.

    Args:
        plan: a query's plan.
        plans: those of other queries by name, in the same form.
    """
    above: list[Filter | Project] = []
    while True:
        found = tuple(Derivation(name, tuple(above)) for name, known in plans.items() if known == plan)
        if found or not isinstance(plan, Filter | Project):
            return found
        above.append(plan)
        plan = plan.input


def adopt(
    name: str, read: Sequence[Derivation], queries: QuerySet, results: Sequence[EpochResults], kept: bool
) -> Adopted:
    """What a query that is added can take over.

    Args:
        name: the query's.
        read: the queries from whose answers it follows.
        queries: those that run.
        results: those of the epochs that are kept, in order.
        kept: whether the run keeps results at all.

    Raises:
        UserError: there is nothing that it could take over, with the reason.
    """
    if not kept:
        raise _cannot(name, "the run keeps no results, from which it would begin", _COLD)
    # Operators that wait hold other state than those of the same plan that do not.
    waiting = {query for query, holds in queries.holds.items() if holds}
    live = [derived for derived in read if derived.query in queries.live.keys() - waiting]
    if not live:
        raise _cannot(
            name,
            "its answer does not follow from that of a query that runs by filters and projections alone",
            f"write SELECT ... FROM (the text of that query) AS q WHERE ...; or {_COLD}",
        )
    derived = min(live, key=lambda derived: queries.state_start_of(derived.query))
    query = derived.query
    heartbeat = results[-1].heartbeats[query] if results else BEGINNING
    if heartbeat == INFINITY:
        raise _cannot(name, f"the answer of {query} is final", f"read the answer of {query}")
    if query in queries.migrations:
        raise _cannot(name, f"the plan of {query} is being exchanged", f"wait until that is over; or {_COLD}")
    whole = queries.carried_out.get(query) or constants_as_data(expand(queries.plans[query]))[0]
    for node in reversed(derived.above):
        whole = with_inputs(node, (whole,))
    return Adopted(derived, Adoption(queries.state_start_of(query), heartbeat, whole))


def begin(
    name: str,
    adopted: Adopted,
    before: QuerySet,
    after: QuerySet,
    results: Sequence[EpochResults],
    store: Store,
    file: str,
) -> tuple[ResultRef, ...]:
    """Write what a query begins with: what holds from the heartbeat on of what has been said before.

    Args:
        name: the query's.
        adopted: what it takes over.
        before: the queries that run.
        after: those that run with this one.
        results: those of the epochs that are kept, in order.
        store: where results are.
        file: the name of the file to write.

    Raises:
        UserError: an expression fails for a row that holds.
    """
    query = adopted.derived.query
    plan, start = before.plans[query], before.start_of(query)
    parts = [part for part in results if part.epoch >= start and query in part.heartbeats]
    carried = results[-1].carried.get(query) if results else None
    reader = ResultReader(query, form_of(plan), store, parts, carried, start)
    batch = held_from(reader.yielded(), adopted.adoption.answers_from)

    def refuse(_: Batch, failed: BoolArray, reason: str) -> None:
        hint = f"filter such rows out, or {_COLD}"
        raise _cannot(name, f"an expression fails for a row of the present answer: {reason}", hint)

    for node in reversed(adopted.derived.above):
        batch = apply(node, batch, refuse)
    if not len(batch):
        return ()
    writer = SegmentWriter(store, file)
    part = writer.add(encode(batch))
    writer.close()
    output = dict(after.graph.outputs)[name]
    return (ResultRef(output, part, len(batch), int(batch.ts.max())),)


def _cannot(name: str, reason: str, hint: str) -> UserError:
    return UserError(f"{name} cannot start WARM: {reason}", hint=hint)
