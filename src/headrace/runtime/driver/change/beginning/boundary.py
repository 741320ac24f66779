"""Where the answer of a query begins, and what is missing from it; and its record then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import is_stateful, walk
from headrace.lowering.early import alone, horizon_of, said_from_on
from headrace.lowering.identity import identities
from headrace.runtime.driver.change.beginning.kept_input import KeptInput
from headrace.runtime.driver.change.beginning.newcomer import Newcomer
from headrace.runtime.driver.change.beginning.provenance import Finished, Provenance, provenance_of
from headrace.runtime.driver.change.common_operators import Inheritance
from headrace.runtime.driver.change.content.larger_windows import Shift
from headrace.runtime.driver.change.migration.exchange import Begun, carried_out
from headrace.runtime.driver.change.warm import TakenOver
from headrace.runtime.driver.query_record import AnsweredQuery
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.journal.described_query import WarmStart
from headrace.runtime.journal.gap import Gap, with_gap
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True)
class Boundary:
    """The instants at which an answer begins.

    Attributes:
        until: below it the answer holds that goes on; BEGINNING where none does. It says nothing from there
            to `at`.
        at: from it on the query answers; INFINITY where it says nothing more.
        exact: from it on the answer is that over all rows; INFINITY where no such instant is known.
    """

    until: int
    at: int
    exact: int


@dataclass(frozen=True)
class Beginning:
    """The beginning of a query: what EXPLAIN says of CREATE, REPLACE and RESUME.

    Attributes:
        provenance: where its state comes from.
        boundary: from where on it answers.
        windows: the names of the queries whose larger windows hold what it begins with.
        kept: of a plan that takes the place of another one, the operators that go on with their state.
        anew: those that start without any.
    """

    provenance: Provenance
    boundary: Boundary
    windows: tuple[str, ...] = ()
    kept: tuple[Plan, ...] = ()
    anew: tuple[Plan, ...] = ()

    @property
    def rows(self) -> int | None:
        """The number of kept rows that are read first; None where none are."""
        return self.provenance.left if isinstance(self.provenance, KeptInput) else None


def beginning_of(one: Newcomer) -> Beginning:
    """The beginning that a query would have now.

    Raises:
        PlanError: all of the answer is final in whose place its own is to be.
        UserError: rows are missing from an instant on that was asked for, or there is nothing that it could
            take over.
    """
    found, queries = provenance_of(one), one.present.known.queries
    boundary = boundary_of(one, found)
    match found:
        case Begun():
            return Beginning(found, boundary, (), *_by_clips(found, one))
        case Inheritance():
            return Beginning(found, boundary, (), found.kept, found.anew)
        case Shift():
            return Beginning(found, boundary, tuple(map(queries.name_of, found.queries)))
        case _:
            anew = tuple(part for part in walk(alone(one.plan)[0]) if is_stateful(part))
            return Beginning(found, boundary, (), (), anew)


def _by_clips(found: Begun, one: Newcomer) -> tuple[tuple[Plan, ...], tuple[Plan, ...]]:
    """The operators of an exchange's new plan that go on with their state, and those that start anew."""
    queries, migration = one.present.known.queries, found.queries.migrations[one.query]
    start = queries.state_start_of(one.query)
    running = set(identities(migration.old, start, queries.merges).values())
    names = identities(migration.plan, start, queries.merges)
    parts = [part for part in walk(migration.parts[1]) if is_stateful(part)]
    return (
        tuple(part for part in parts if names[id(part)] in running),
        tuple(part for part in parts if names[id(part)] not in running),
    )


def boundary_of(one: Newcomer, found: Provenance) -> Boundary:
    """From where on a query answers that begins with some state.

    Args:
        one: the query.
        found: where its state comes from.
    """
    known = one.present.known.queries
    until = BEGINNING if one.alike is False else one.until
    match found:
        case Finished():
            return Boundary(INFINITY, INFINITY, INFINITY)
        case KeptInput(answers_from=at, exact=exact):
            return Boundary(until, at, max(at, exact))
        case Begun(queries=queries):
            at = queries.migrations[one.query].at
            return Boundary(at, at, at)
        case Inheritance(adoption=adoption):
            at = adoption.answers_from
            return Boundary(at, at, _exact_of(known, [one.query], at))
        case TakenOver(adoption=adoption):
            alike = [query for query in known.plans if known.state_start_of(query) == adoption.start]
            at = adoption.answers_from
            return Boundary(until, at, _exact_of(known, alike, at))
        case _:
            # Of one that reads no stream all is there, whatever comes.
            at = until if one.begins == INFINITY and one.replaces else max(one.begins, until)
            return Boundary(until, at, found.exact if isinstance(found, Shift) else one.exact_anew)


def _exact_of(queries: QuerySet, names: Iterable[str], otherwise: int) -> int:
    """From where on what queries say is that over all rows (instant)."""
    known = (gap.exact for name in names for gap in queries.gaps_of(name) if gap.exact is not None)
    return max(known, default=otherwise)


def begun_with(queries: QuerySet, begin: Iterable[tuple[Newcomer, Provenance]], before: Holding) -> QuerySet:
    """The queries, with what is to be known of those that begin.

    Args:
        queries: those that are answered from now on.
        begin: those of them that begin, and where their state comes from.
        before: those that run.
    """
    for one, found in begin:
        record, boundary, epoch = queries.answered[one.query], boundary_of(one, found), one.present.epoch
        if not isinstance(found, Finished) and _says_too_much(one, queries, boundary.at, before):
            # What is final is not said again, whatever the plan reads; and what a memory looks back to is not
            # known any more.
            plan = said_from_on(carried_out(queries, one.query), boundary.at)
            record = replace(record, replaced=plan)
        queries = queries.with_records({one.query: _lacking(record, one, boundary, epoch)})
    return queries


def _says_too_much(one: Newcomer, queries: QuerySet, at: int, before: Holding) -> bool:
    """Whether a query whose answer goes on would speak of instants below the one from which on it answers."""
    if one.alike:
        return reach_of(queries, one.query, before) < at
    return one.paused is not None and one.begins < one.until


def _lacking(record: AnsweredQuery, one: Newcomer, boundary: Boundary, epoch: int) -> AnsweredQuery:
    """The record of a query that begins, with what its answer lacks."""
    if one.alike or one.paused is not None:
        gap = Gap(one.until, boundary.at, boundary.exact)
        return replace(record, warm=WarmStart(epoch, boundary.at), gaps=with_gap(record.gaps, gap))
    if boundary.at < boundary.exact:
        return replace(record, gaps=with_gap((), Gap(boundary.at, boundary.at, boundary.exact)))
    return record


def reach_of(queries: QuerySet, query: str, before: Holding) -> int:
    """Up to where a query speaks at once (instant).

    Args:
        queries: with it.
        query: its identity.
        before: how far its inputs have been read.
    """
    graph, horizon = queries.graph, horizon_of(queries.plans[query])
    node = graph.node_of(dict(graph.outputs)[query])
    if horizon is None:
        return before.heartbeats(graph)[node]
    return graph.reaches(*before.reached(graph))[horizon][node]
