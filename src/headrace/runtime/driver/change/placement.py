"""Queries are put behind others, or come back: their operators go on under other names.

A query that is behind reads what is kept of its streams, from where these are now. So its operators hold what
they held, each with an identity of its own, and share no more with those of queries that go on ahead. Once it
has taken all that is kept it may come back. An operator that others in front have as well may have said the
same in other pieces; then the query's stay its own, until `Run.merge` finds their states equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from headrace.algebra.nodes import Source
from headrace.errors import PlanError
from headrace.lowering.behind import declared_name
from headrace.lowering.lower import lower
from headrace.lowering.node import Node
from headrace.runtime.driver.change.migration.exchange import require_no_exchange
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.wanted import Placement
from headrace.runtime.driver.kept.behind import backlog, point_behind
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.tasks.messages import Manifest, StateKey


def placed(present: Present, change: Placement) -> Turn:
    """What it comes to that queries are put behind others, or come back.

    Args:
        present: the run before it.
        change: what is asked for.

    Raises:
        PlanError: the plan of one is being exchanged, or one that is to come back has yet to take rows.
    """
    known, lane = present.known.queries, present.epoch if change.behind else None
    for name in change.queries:
        require_no_exchange(known, name)
        before = known.answered[name].lane
        if before is not None and not backlog(before, known, present.known.points).is_present:
            raise PlanError(f"{known.name_of(name)} has yet to take rows that are kept for it")
    queries = known.with_records({name: replace(known.answered[name], lane=lane) for name in change.queries})
    queries = _apart(known, queries, change.queries, present.epoch)
    pairs = [pair for name in change.queries for pair in _pairs(known, queries, name)]
    points = _points(present.known.points, pairs)
    return replace(present.turn(queries), given=_renamed(present.known.state, pairs), points=points)


def _apart(known: QuerySet, queries: QuerySet, moved: tuple[str, ...], epoch: int) -> QuerySet:
    """The queries, of which those that come back have operators of their own if others have the same ones."""
    others = {
        known.graph.nodes[number].identity
        for number, users in enumerate(known.graph.users)
        if not {*users} <= {*moved}
    }
    shared = {
        name
        for name in moved
        if any(
            new.identity in others and new.identity != old.identity
            for old, new in _pairs(known, queries, name)
        )
    }
    return queries.with_records({name: replace(queries.answered[name], level=epoch) for name in shared})


def _pairs(before: QuerySet, after: QuerySet, name: str) -> Iterator[tuple[Node, Node]]:
    """The operators of a query, each as it was and as it is from the change on."""
    return zip(_alone(before, name), _alone(after, name), strict=True)


def _alone(queries: QuerySet, name: str) -> tuple[Node, ...]:
    """The operators of a query."""
    starts = {name: queries.answered[name].state_start}
    carried_out = {key: plan for key, plan in queries.carried_out_reading.items() if key == name}
    holds = {key: one for key, one in queries.holds.items() if key == name}
    return lower({name: queries.reading[name]}, starts, carried_out, queries.merges, holds).nodes


def _renamed(state: Mapping[StateKey, Manifest], pairs: list[tuple[Node, Node]]) -> dict[StateKey, Manifest]:
    """What operators hold, by their identities from the change on."""
    names: dict[str, str] = {old.identity: new.identity for old, new in pairs}
    return {
        (names[identity], bucket): held for (identity, bucket), held in state.items() if identity in names
    }


def _points(points: Mapping[str, StreamPoint], pairs: list[tuple[Node, Node]]) -> dict[str, StreamPoint]:
    """How far the inputs have been read that are read by other names from the change on."""
    found: dict[str, StreamPoint] = {}
    for old, new in pairs:
        if old.reads is None or new.reads is None or old.reads == new.reads:
            continue
        if not isinstance(new.plan, Source):
            if new.reads not in points:
                found[new.reads] = points[old.reads]
        elif declared_name(new.reads) != new.reads:
            found[new.reads] = point_behind(points[declared_name(new.reads)])
    return found
