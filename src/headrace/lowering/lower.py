"""From optimized plans to the physical graph: sharing, partitioning, levels."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from types import MappingProxyType
from typing import Final, NamedTuple

from headrace.algebra.by_object import REMEMBERED
from headrace.algebra.nodes import (
    Aggregate,
    ApproximateAggregate,
    BloomFilter,
    Clip,
    Coalesce,
    Distinct,
    Dstream,
    Early,
    Filter,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    Lifetime,
    Match,
    NestedAggregate,
    OuterJoin,
    Over,
    Plan,
    Project,
    Relation,
    Remember,
    RowWindow,
    Rstream,
    Sample,
    SemiJoin,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    Weighing,
    WindowBounds,
    inputs_of,
)
from headrace.algebra.properties import (
    has_skyband,
    is_append_only,
    is_stateful,
    walk,
)
from headrace.expressions.tree import Column, Expression, Literal
from headrace.lowering.constants import chosen_in, filled, unfilled
from headrace.lowering.early import alone
from headrace.lowering.exchanges import share_exchanges
from headrace.lowering.graph import Graph, Group, Merge
from headrace.lowering.groups import for_all
from headrace.lowering.identity import STATE_FORMAT, digest_of, hashed, identity_at, named_by, shape_of
from headrace.lowering.node import Edge, Exchange, Node, Partitioning, Spread
from headrace.lowering.panes import panes_of
from headrace.lowering.required import required_keys
from headrace.lowering.selections import Selections, selections
from headrace.schema import BIGINT

Holds = Mapping[str, tuple[str, ...]]
"""Which nodes of a query wait for others besides their inputs, and for which: all by their shapes."""

NO_HOLDS: Final[Holds] = MappingProxyType({})


def lower(
    queries: Mapping[str, Plan],
    starts: Mapping[str, int] = MappingProxyType({}),
    shared: Mapping[str, Plan] = MappingProxyType({}),
    merges: Iterable[Merge] = (),
    holds: Mapping[str, Holds] = MappingProxyType({}),
) -> Graph:
    """The graph that answers all queries; equal subplans become one node.

    A query answers from its start on, so that state is shared among queries of the same start, and where
    states have become equal and were merged. What holds no state, and has nothing below it that does, is
    shared by all. Operators that wait are shared by queries for which they wait for the same others.

    Args:
        queries: optimized plans by query name.
        starts: the epoch from which on a query answers, 1 if it is not named.
        shared: what some queries are carried out as to share more with others (`headrace.lowering.sharing`).
        merges: the plans whose state since some epoch is that of an operator that is older.
        holds: which operators of a query wait for others; none if it is not named.
    """
    asked = _Asked(dict(queries), dict(starts), dict(shared), tuple(merges), dict(holds))
    with _lock:
        found = next((graph for known, graph in _last if known.is_same(asked)), None)
    if found is None:
        found = _lowered(*asked)
        with _lock:
            _last.append((asked, found))
    return found


class _Asked(NamedTuple):
    """What a graph is asked for."""

    queries: Mapping[str, Plan]
    starts: Mapping[str, int]
    shared: Mapping[str, Plan]
    merges: tuple[Merge, ...]
    holds: Mapping[str, Holds]

    def is_same(self, other: _Asked) -> bool:
        """Whether the plans are the same objects: functions of users may differ in plans that are equal."""
        return (
            _are_same(self.queries, other.queries)
            and _are_same(self.shared, other.shared)
            and (self.starts, self.holds) == (other.starts, other.holds)
            and len(self.merges) == len(other.merges)
            and all(map(operator.is_, self.merges, other.merges))
        )


def _are_same(plans: Mapping[str, Plan], others: Mapping[str, Plan]) -> bool:
    return list(plans) == list(others) and all(map(operator.is_, plans.values(), others.values()))


_last: Final[deque[tuple[_Asked, Graph]]] = deque(maxlen=4)
"""The last graphs: a change of the queries asks for the same one several times."""
_lock: Final = Lock()


def _lowered(
    queries: Mapping[str, Plan],
    starts: Mapping[str, int],
    shared: Mapping[str, Plan],
    merges: Iterable[Merge],
    holds: Mapping[str, Holds],
) -> Graph:
    """The graph, made anew."""
    apart = shared.keys() | holds.keys()
    together = selections({name: plan for name, plan in queries.items() if name not in apart})
    members = {name for part in together for name in part.members}
    plans = {
        name: (shared[name], chosen_in(shared[name])) if name in shared else alone(plan)
        for name, plan in queries.items()
        if name not in members
    }
    lowering = _Lowering(filled(choice for _, chosen in plans.values() for choice in chosen), merges)
    results: dict[str, int | Group] = {}
    for name, (plan, chosen) in plans.items():
        part = for_all(plan) if chosen else None
        whole, start = plan if part is None else part[0], starts.get(name, 1)
        number = lowering.add(whole, start, lowering.holding(holds.get(name, NO_HOLDS)))
        results[name] = number if part is None else lowering.group(number, part[1])
    for selecting in together:
        results |= lowering.selected(selecting)
    groups = {id(found): found for found in results.values() if isinstance(found, Group)}
    numbers = {group: number for number, group in enumerate(groups, len(lowering.nodes))}
    outputs = tuple(
        (name, found if isinstance(found, int) else numbers[id(found)])
        for name, found in zip(queries, map(results.__getitem__, queries), strict=True)
    )
    nodes = share_exchanges(lowering.waiting())
    return Graph(nodes, outputs, tuple(groups.values()), panes_of(nodes))


@lru_cache(REMEMBERED)
def _numbered(node: int, place: int) -> Group:
    return Group(node, Literal(place, BIGINT))


@dataclass(frozen=True, eq=False)
class _Holding:
    """What a query has waiting.

    Attributes:
        holds: which of its operators wait for others.
        numbers: the numbers of all of them, by their shapes.
    """

    holds: Holds
    numbers: dict[str, int] = field(default_factory=dict)


_NOTHING: Final = _Holding(NO_HOLDS)


class _Lowering:
    """Adds node after node; plans are identified by their parameters and their inputs' nodes."""

    def __init__(
        self, filled_nodes: Mapping[Filter | Match, Filter | Match], merges: Iterable[Merge]
    ) -> None:
        self._filled = filled_nodes
        self._merged = {(merge.shape, merge.start): merge.into for merge in merges}
        self.nodes: list[Node] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[tuple[int, int, _Holding], tuple[Plan, int]] = {}
        self._waits: dict[int, tuple[_Holding, tuple[str, ...]]] = {}
        self._digests: dict[int, str] = {}
        self._groups: dict[Group, Group] = {}

    def holding(self, holds: Holds) -> _Holding:
        """What is to be added for a query of which some operators wait."""
        return _Holding(holds) if holds else _NOTHING

    def add(self, plan: Plan, start: int, holding: _Holding) -> int:
        """The number of the plan's node, which is added with all below it unless it is there."""
        key = (id(plan), start, holding)
        if key not in self._known:
            # The plan is kept, so that no other can get its id.
            self._known[key] = plan, self._add(plan, start, holding)
        return self._known[key][1]

    def selected(self, together: Selections) -> dict[str, Group]:
        """What queries yield that select rows together, whose nodes are added.

        Their predicates are data of the operator and no part of its identity. To compare thousands of them
        would take longer than to look up a batch.
        """
        match = together.match
        below = self.add(match.input, 1, _NOTHING)
        digest = f"{STATE_FORMAT} Match {together.shape.value!r} {digest_of(match.input, self._digests)}"
        self._digests[id(match)] = hashed(digest)
        self._known[id(match), 1, _NOTHING] = match, self._added(match, match, (below,), 1, ())
        number = self.add(together.plan, 1, _NOTHING)
        groups = [_numbered(number, place) for place in range(len(match.predicates))]
        return {name: groups[place] for name, place in together.members.items()}

    def group(self, number: int, constant: Literal) -> Group:
        """The part of a node's result with a constant: one object, however often it is asked for."""
        found = Group(number, constant)
        return self._groups.setdefault(found, found)

    def waiting(self) -> tuple[Node, ...]:
        """The nodes, with those that they wait for."""
        found = list(self.nodes)
        for number, (holding, shapes) in self._waits.items():
            waits_for = tuple(holding.numbers[shape] for shape in shapes)
            found[number] = replace(found[number], waits_for=waits_for)
        return tuple(found)

    def _add(self, plan: Plan, start: int, holding: _Holding) -> int:
        digest = digest_of(plan, self._digests)
        shape = shape_of(digest)
        if not self._is_held(plan, holding.holds):
            start = self._merged.get((shape, start), start)
        producers = self._producers(plan, start, holding)
        # Each query sees all of a relation, whenever it starts.
        own = is_stateful(plan) or isinstance(plan, Relation)
        since = start if own else max((self.nodes[producer].start for producer in producers), default=1)
        waits = tuple(holding.holds.get(shape, ()))
        key = (type(plan), named_by(plan), producers, since, waits)
        if key not in self._numbers:
            self._numbers[key] = self._added(plan, self._carried_out(plan), producers, since, waits)
        number = self._numbers[key]
        if waits:
            self._waits.setdefault(number, (holding, waits))
        if holding.holds:
            holding.numbers[shape] = number
        return number

    def _is_held(self, plan: Plan, holds: Holds) -> bool:
        """Whether a node or one below it waits: its state is then never that of one which does not."""
        shapes = (shape_of(digest_of(part, self._digests)) for part in walk(plan))
        return bool(holds) and not holds.keys().isdisjoint(shapes)

    def _carried_out(self, plan: Plan) -> Plan:
        """A node with the constants of all queries."""
        asked = unfilled(plan)
        return plan if asked is None else self._filled.get(asked, plan)

    def _added(
        self, plan: Plan, carried_out: Plan, producers: tuple[int, ...], since: int, waits: tuple[str, ...]
    ) -> int:
        """The number of a new node."""
        exchanges = self._exchanges(plan, producers)
        level = self._level(plan, producers, exchanges)
        edges = tuple(
            Edge(producer, self._across(plan, port, producer, exchange, level))
            for port, (producer, exchange) in enumerate(zip(producers, exchanges, strict=True))
        )
        digest, below = self._digests[id(plan)], [self.nodes[producer].held for producer in producers]
        held = hashed(f"{waits} {below}") if waits or any(below) else ""
        named = identity_at(f"{digest} {held}" if held else digest, since)
        number, spread_by = len(self.nodes), self._partitioning(plan, producers)
        self.nodes.append(
            Node(number, carried_out, edges, level, named, since, shape_of(digest), (), held, spread_by)
        )
        return number

    def _producers(self, plan: Plan, start: int, holding: _Holding) -> tuple[int, ...]:
        """The numbers of the nodes whose output a plan's operator reads.

        An aggregation reads the inputs of a union one by one where they are ready at different levels: then
        each is added up before it travels, while the union would be sent all elements of the lower ones.
        """
        below = inputs_of(plan)
        union = below[0] if below else None
        if isinstance(plan, Aggregate) and isinstance(union, Union) and _reduced_for(plan) is not None:
            parts = tuple(self.add(part, start, holding) for part in union.inputs)
            if len({self.nodes[part].level for part in parts}) > 1:
                return parts
        return tuple(self.add(part, start, holding) for part in below)

    def _exchanges(self, plan: Plan, producers: tuple[int, ...]) -> tuple[Exchange | None, ...]:
        """The exchange each input needs for the operator to see all of a key in one bucket."""
        match plan:
            case Join(equalities=()):
                # Without equality every pair must meet: one side stays spread, the other is copied.
                spread = None if self.nodes[producers[0]].level else Exchange(Spread.ROW)
                return spread, Exchange(Spread.COPY)
            case _ if is_stateful(plan):
                return tuple(
                    None if self._suffices(plan, port, producers) else self._by_key(plan, port)
                    for port in range(len(producers))
                )
            case _:
                return (None,) * len(producers)

    def _suffices(self, plan: Plan, port: int, producers: tuple[int, ...]) -> bool:
        """Whether what one of the producers yields is already spread so that equal keys meet."""
        if not self.nodes[producers[port]].level:
            return False
        keys = required_keys(plan, port)
        columns = _indices(keys)
        present = self.nodes[producers[port]].spread_by
        if len(producers) > 1:
            # Equal keys of all must meet, so all are spread by all of the key, in its order.
            return len(columns) == len(keys) and columns in present
        return any(set(alternative) <= set(columns) for alternative in present)

    def _by_key(self, plan: Plan, port: int) -> Exchange:
        return Exchange(Spread.KEY, required_keys(plan, port), _reduced_for(plan))

    def _level(self, plan: Plan, producers: tuple[int, ...], exchanges: tuple[Exchange | None, ...]) -> int:
        if isinstance(plan, Source | Relation):
            return 0
        return max(
            self.nodes[producer].level + (exchange is not None)
            for producer, exchange in zip(producers, exchanges, strict=True)
        )

    def _across(
        self, plan: Plan, port: int, producer: int, exchange: Exchange | None, level: int
    ) -> Exchange | None:
        """The exchange of an edge, given the level of its consumer: what is lower has to travel."""
        if exchange is not None or self.nodes[producer].level == level:
            return exchange
        if isinstance(plan, Union) or (isinstance(plan, Join) and not plan.equalities):
            return Exchange(Spread.ROW)
        return self._by_key(plan, port)

    def _partitioning(self, plan: Plan, producers: tuple[int, ...]) -> Partitioning:
        below = [self.nodes[producer].spread_by for producer in producers]
        if isinstance(plan, _Grouped):
            if len(producers) == 1 and self._suffices(plan, 0, producers):
                return _mapped(below[0], [expression for _, expression in plan.keys])
            return frozenset([_places(plan, plan.keys)])
        match plan:
            case Source() | Relation() | Union() | BloomFilter():
                return frozenset()
            case (
                Filter()
                | Match()
                | TimeWindow()
                | Lifetime()
                | WindowBounds()
                | Unnest()
                | Granularity()
                | Split()
                | Clip()
                | Rstream()
                | Early()
                | Remember()
                | Weighing()
            ):
                return below[0]
            case Project(items=items):
                return _mapped(below[0], [expression for _, expression in items])
            case Join(left=left, equalities=equalities):
                sides = _join_partitioning(len(left.schema), equalities)
                return sides.union(*(self._kept_by_join(plan, port, producers) for port in range(2)))
            case OuterJoin() | SemiJoin():
                raise AssertionError("semi- and outer joins are expanded before")
            case SetOperation(schema=schema):
                return frozenset([tuple(range(len(schema)))])
            case (
                RowWindow()
                | SessionWindow()
                | GapFill()
                | Over()
                | TopK()
                | Coalesce()
                | Finalize()
                | Sample()
                | Distinct()
                | Istream()
                | Dstream()
            ):
                own = frozenset([_indices(required_keys(plan, 0))])
                return below[0] if self._suffices(plan, 0, producers) else own

    def _kept_by_join(self, plan: Join, port: int, producers: tuple[int, ...]) -> Partitioning:
        """The columns by whose hash an input was spread already, if the join has left it there."""
        if not plan.equalities or not self._suffices(plan, port, producers):
            return frozenset()
        offset = len(plan.left.schema) if port else 0
        return frozenset(
            tuple(index + offset for index in alternative)
            for alternative in self.nodes[producers[port]].spread_by
        )


_Grouped = Aggregate | NestedAggregate | SessionAggregate | ApproximateAggregate


def _indices(keys: tuple[Expression, ...]) -> tuple[int, ...]:
    """The places of those of some keys that are columns."""
    return tuple(key.index for key in keys if isinstance(key, Column))


def _places(plan: Plan, keys: tuple[tuple[str, Expression], ...]) -> tuple[int, ...]:
    """The columns of groups by whose hash they have been spread."""
    if not isinstance(plan, SessionAggregate):
        return tuple(range(len(keys)))
    found = [key.index if isinstance(key, Column) else None for _, key in keys]
    return tuple(found.index(key.index) for key in plan.by)


def _mapped(partitioning: Partitioning, items: list[Expression]) -> Partitioning:
    """The partitioning seen through a projection: kept where all its columns survive."""
    places: dict[int, int] = {}
    for place, item in enumerate(items):
        if isinstance(item, Column):
            places.setdefault(item.index, place)
    return frozenset(
        tuple(places[index] for index in alternative)
        for alternative in partitioning
        if all(index in places for index in alternative)
    )


def _join_partitioning(
    left_width: int, equalities: tuple[tuple[Expression, Expression], ...]
) -> Partitioning:
    sides = []
    for port, offset in ((0, 0), (1, left_width)):
        keys = [pair[port] for pair in equalities]
        if keys and all(isinstance(key, Column) for key in keys):
            sides.append(tuple(key.index + offset for key in keys if isinstance(key, Column)))
    return frozenset(sides)


def _reduced_for(plan: Plan) -> Aggregate | TopK | Distinct | None:
    """The node for which a producer reduces its elements before it sends them, where that pays."""
    match plan:
        case Aggregate() if _shares_intervals(plan):
            return plan
        case NestedAggregate():
            return _reduced_for(plan.widest)
        case TopK() if has_skyband(plan):
            return plan
        case Distinct(input=below) if is_append_only(below):
            return plan
        case _:
            return None


def _shares_intervals(plan: Aggregate) -> bool:
    """Whether many elements of a group share an interval, so that adding up before the exchange pays."""
    if not plan.keys:
        return True
    below: Plan = plan.input
    while isinstance(below, Filter | Project | Sample | Clip | Rstream | WindowBounds):
        below = below.input
    if isinstance(below, Granularity):
        return True
    if isinstance(below, Aggregate):
        return bool(below.keys) and _shares_intervals(below)
    return isinstance(below, TimeWindow) and below.slide.length > 1
