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
from headrace.lowering.graph import Graph
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
    """The turn by which queries are put behind others, or come back.

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
    groups = _by_start(known, change.queries)
    shared = _shared(known, queries, groups)
    queries = queries.with_records(
        {name: replace(queries.answered[name], level=present.epoch) for name in shared}
    )
    # What they shared with others they may share no more.
    apart = [tuple(name for name in group if name not in shared) for group in groups]
    apart += [(name,) for name in shared]
    pairs = [pair for group in apart for pair in _pairs(known, queries, group)]
    points = _points(present.known.points, pairs)
    return replace(present.turn(queries), given=_renamed(present.known.state, pairs), points=points)


def _by_start(queries: QuerySet, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Some queries, those together that share what they have in common."""
    found: dict[int, tuple[str, ...]] = {}
    for name in names:
        start = queries.answered[name].state_start
        found[start] = (*found.get(start, ()), name)
    return list(found.values())


def _shared(known: QuerySet, queries: QuerySet, groups: list[tuple[str, ...]]) -> set[str]:
    """Those that come back some of whose operators others have that are in front already."""
    moved = {name for group in groups for name in group}
    others = {
        known.graph.nodes[number].identity
        for number, users in enumerate(known.graph.users)
        if not moved.issuperset(users)
    }
    found = set[str]()
    for group in groups:
        graph = _graph(queries, group)
        for old, new in _pairs(known, queries, group):
            if new.identity in others and new.identity != old.identity:
                found.update(graph.users[new.number])
    return found


def _pairs(before: QuerySet, after: QuerySet, names: tuple[str, ...]) -> Iterator[tuple[Node, Node]]:
    """The operators of queries of one start, each as it was and as it is from the change on."""
    return zip(_graph(before, names).nodes, _graph(after, names).nodes, strict=True)


def _graph(queries: QuerySet, names: tuple[str, ...]) -> Graph:
    """The graph of some queries alone."""
    return lower(
        {name: queries.reading[name] for name in names},
        {name: queries.answered[name].state_start for name in names},
        {name: queries.carried_out_reading[name] for name in names if name in queries.carried_out_reading},
        queries.merges,
        {name: queries.holds[name] for name in names if name in queries.holds},
    )


def _renamed(state: Mapping[StateKey, Manifest], pairs: list[tuple[Node, Node]]) -> dict[StateKey, Manifest]:
    """The state of operators, by their identities from the change on."""
    names: dict[str, str] = {old.identity: new.identity for old, new in pairs}
    return {
        (names[identity], bucket): held for (identity, bucket), held in state.items() if identity in names
    }


def _points(points: Mapping[str, StreamPoint], pairs: list[tuple[Node, Node]]) -> dict[str, StreamPoint]:
    """The points of the inputs that are read by other names from the change on."""
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
