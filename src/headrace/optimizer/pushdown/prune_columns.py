"""Columns that nobody reads are not carried along, and not read from the source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from headrace.algebra.failure import aggregate_can_fail, can_fail
from headrace.algebra.frames import RowsFrame
from headrace.algebra.nodes import (
    Aggregate,
    AnyAggregate,
    AnyJoin,
    ApproximateAggregate,
    BloomFilter,
    Clip,
    Coalesce,
    Distinct,
    Draw,
    Dstream,
    Early,
    Filter,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    LargestWeight,
    Lifetime,
    LimitedJoin,
    LiveRow,
    Match,
    NestedAggregate,
    OuterJoin,
    Over,
    Plan,
    Project,
    Relation,
    RelationIndex,
    Remember,
    RowWindow,
    Rstream,
    Sample,
    SemanticDrop,
    SemiJoin,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Shed,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    WindowBounds,
    column,
    with_inputs,
)
from headrace.expressions.tree import (
    Expression,
    columns_of,
    expressions_of,
    transform_call,
    transform_columns,
)

PlacesLeft = dict[int, int]
"""The new places of the columns that are left of a plan's result, by their old places."""


def prune_columns(plan: Plan) -> Plan:
    """Give every node only the columns that are read above it.

    Before: `SELECT a.x FROM (SELECT * FROM a) JOIN (SELECT * FROM b) ON a.k = b.k`
    After: `SELECT a.x FROM (SELECT x, k FROM a) JOIN (SELECT k FROM b) ON a.k = b.k`, where the sources read
    these columns and no others.

    Below joins, aggregates, windows and unions a narrow Project takes out what only a filter needed, since
    they keep their input or send it on. A row window orders the rows of one instant by their columns from
    left to right, and so needs those before the last one that is read; so does OVER with a frame of rows.
    DISTINCT, ISTREAM, DSTREAM, top-k, set operations and corrections compare whole rows and so need all
    columns; a relation keeps them all. Bounds of windows that nobody reads are not added, unless a window
    above needs the elements of one instant that they make. An expression that can fail is kept though nobody
    reads it: without it a row would appear that fails now.
    """
    pruned, _ = _prune(plan, frozenset(range(len(plan.schema))))
    return pruned


def _prune(plan: Plan, needed: frozenset[int]) -> tuple[Plan, PlacesLeft]:
    """The plan with the needed columns and perhaps others, in their old order."""
    match plan:
        case Source(schema=schema) | Relation(schema=schema):
            kept = sorted(needed)
            whole = len(kept) == len(schema)
            return plan if whole else replace(plan, schema=schema.select(tuple(kept))), _places(kept)
        case Filter(input=below, predicate=predicate):
            pruned, places = _prune(below, needed | columns_of(predicate))
            return plan if pruned is below else Filter(pruned, _moved(predicate, places)), places
        case Project() | Unnest() | SemanticDrop():
            return _of_each_row(plan, needed)
        case (
            RelationIndex()
            | Sample()
            | Shed()
            | Draw()
            | Match()
            | NestedAggregate()
            | SessionAggregate()
            | Distinct()
            | BloomFilter()
            | Finalize()
            | Istream()
            | Dstream()
        ):
            return with_inputs(plan, (_all(plan.input),)), _places(range(len(plan.schema)))
        case TimeWindow() | Lifetime() | WindowBounds() | LargestWeight():
            return _window(plan, needed)
        case Union(inputs=inputs):
            narrowed = tuple(_exactly(below, needed) for below in inputs)
            return with_inputs(plan, narrowed), _places(sorted(needed))
        case Join() | OuterJoin() | SemiJoin():
            return _join(plan, needed)
        case Aggregate() | ApproximateAggregate():
            return _aggregate(plan, needed)
        case Rstream() | Granularity() | Split() | Clip() | Coalesce() | Early() | Remember():
            pruned, places = _prune(plan.input, needed)
            return with_inputs(plan, (pruned,)), places
        case SetOperation(left=left, right=right):
            width = range(len(plan.schema))
            sides = _exactly(left, frozenset(width)), _exactly(right, frozenset(width))
            return with_inputs(plan, sides), _places(width)
        case RowWindow() | SessionWindow() | GapFill() | TopK() | Over():
            return _of_partitions(plan, needed)
        case _:
            assert_never(plan)


def _of_each_row(plan: Project | Unnest | SemanticDrop, needed: frozenset[int]) -> tuple[Plan, PlacesLeft]:
    match plan:
        case Project():
            return _project(plan, needed)
        case Unnest():
            return _unnest(plan, needed)
        case SemanticDrop(place=place):
            pruned, left = _prune(plan.input, needed | {place})
            return _unless_same(plan, replace(plan, input=pruned, place=left[place])), left
        case _:
            assert_never(plan)


def _unnest(plan: Unnest, needed: frozenset[int]) -> tuple[Plan, PlacesLeft]:
    """The columns that are added are all given; the ARRAY itself is mostly read here last."""
    wanted = [place for place in range(len(plan.kept)) if place in needed]
    kept = [plan.kept[place] for place in wanted]
    pruned, below = _prune(plan.input, frozenset(kept) | columns_of(plan.values))
    added = range(len(plan.kept), len(plan.schema))
    moved = replace(
        plan, input=pruned, values=_moved(plan.values, below), kept=tuple(below[place] for place in kept)
    )
    return moved, _places([*wanted, *added])


def _project(plan: Project, needed: frozenset[int]) -> tuple[Plan, PlacesLeft]:
    kept = [index for index, (_, part) in enumerate(plan.items) if index in needed or can_fail(part)]
    items = [plan.items[index] for index in kept]
    pruned, places = _prune(plan.input, _read(part for _, part in items))
    if pruned is plan.input and len(items) == len(plan.items):
        return plan, _places(kept)
    return Project(pruned, tuple((name, _moved(part, places)) for name, part in items)), _places(kept)


def _window(
    plan: TimeWindow | Lifetime | WindowBounds | LargestWeight, needed: frozenset[int]
) -> tuple[Plan, PlacesLeft]:
    match plan:
        case LargestWeight(input=below):
            width = len(below.schema)
            pruned, left = _prune(below, needed - {width})
            return with_inputs(plan, (pruned,)), {**left, width: len(pruned.schema)}
        case TimeWindow(input=below):
            return with_inputs(plan, (_exactly(below, needed),)), _places(sorted(needed))
        case Lifetime(input=below, duration=duration):
            kept = needed | columns_of(duration)
            places = _places(sorted(kept))
            narrow = replace(plan, input=_exactly(below, kept), duration=_moved(duration, places))
            return _unless_same(plan, narrow), places
        case WindowBounds(input=below):
            kept, places = _beside_bounds(plan, needed)
            if kept == needed and plan.is_chronon == below.is_chronon:
                return _prune(below, needed)
            return with_inputs(plan, (_exactly(below, kept),)), places
        case _:
            assert_never(plan)


def _of_partitions(
    plan: RowWindow | SessionWindow | GapFill | TopK | Over, needed: frozenset[int]
) -> tuple[Plan, PlacesLeft]:
    """Columns that tell partitions apart are kept, and often those that order the rows of one instant."""
    match plan:
        case TopK():
            return _top_k(plan, needed)
        case Over():
            return _over(plan, needed)
        case SessionWindow(input=below, keys=keys):
            kept, places = _beside_bounds(plan, needed | _read(keys))
            moved = tuple(replace(key, index=places[key.index]) for key in keys)
            return _unless_same(plan, replace(plan, input=_exactly(below, kept), keys=moved)), places
        case RowWindow() | GapFill():
            # The keys, and the columns up to the last one that is read: they order the rows of one instant.
            fixed = frozenset(key.index for key in plan.keys)
            fixed |= {plan.time} if isinstance(plan, GapFill) else frozenset()
            read = needed | {plan.live.index} if isinstance(plan, LiveRow) else needed
            kept = fixed | frozenset(range(max(read - fixed, default=-1) + 1))
            places = _places(sorted(kept))
            return _unless_same(plan, plan.over(_exactly(plan.input, kept), places)), places
        case _:
            assert_never(plan)


def _beside_bounds(
    plan: WindowBounds | SessionWindow, needed: frozenset[int]
) -> tuple[frozenset[int], PlacesLeft]:
    """Which columns of its input a window needs that adds its start and end after them."""
    width = len(plan.input.schema)
    kept = frozenset(index for index in needed if index < width)
    return kept, _places([*sorted(kept), width, width + 1])


def _join(plan: AnyJoin, needed: frozenset[int]) -> tuple[Plan, PlacesLeft]:
    if isinstance(plan, LimitedJoin):
        # Draws and instants of its rows have places that it knows.
        return with_inputs(plan, (_all(plan.left), _all(plan.right))), _places(range(len(plan.schema)))
    width = len(plan.left.schema)
    residual = columns_of(plan.residual) if plan.residual is not None else frozenset()
    both = needed | residual
    left = frozenset(index for index in both if index < width) | _read(one for one, _ in plan.equalities)
    right = frozenset(index - width for index in both if index >= width)
    right |= _read(other for _, other in plan.equalities)
    kept = [*sorted(left), *(index + width for index in sorted(right))]
    lefts, rights, places = _places(sorted(left)), _places(sorted(right)), _places(kept)
    one, other = _exactly(plan.left, left), _exactly(plan.right, right)
    equalities = tuple((_moved(mine, lefts), _moved(yours, rights)) for mine, yours in plan.equalities)
    predicate = None if plan.residual is None else _moved(plan.residual, places)
    if isinstance(plan, SemiJoin):
        return _unless_same(plan, SemiJoin(one, other, equalities, predicate, plan.anti)), lefts
    names = tuple(plan.names[index] for index in kept)
    if isinstance(plan, OuterJoin):
        return _unless_same(plan, OuterJoin(one, other, equalities, predicate, names, plan.kind)), places
    return _unless_same(plan, Join(one, other, equalities, predicate, names)), places


def _aggregate(plan: AnyAggregate, needed: frozenset[int]) -> tuple[Plan, PlacesLeft]:
    """The keys make the groups, so all of them stay; and so does an aggregate that can end the query."""
    width = len(plan.keys)
    kept = [
        index
        for index, (_, call) in enumerate(plan.aggregates)
        if index + width in needed or aggregate_can_fail(call)
    ]
    if not kept and not plan.keys:
        kept = [0]
    calls = [plan.aggregates[index] for index in kept]
    arguments = [part for _, call in calls for part in expressions_of(call)]
    read = _read((*(key for _, key in plan.keys), *arguments))
    places = _places(sorted(read))
    aggregates = tuple(
        (name, transform_call(call, lambda part: _moved(part, places))) for name, call in calls
    )
    keys = tuple((name, _moved(key, places)) for name, key in plan.keys)
    aggregate = replace(plan, input=_exactly(plan.input, read), keys=keys, aggregates=aggregates)
    return _unless_same(plan, aggregate), _places([*range(width), *(index + width for index in kept)])


def _top_k(plan: TopK, needed: frozenset[int]) -> tuple[Plan, PlacesLeft]:
    """Rows that are equal in the sort keys are in the order of all columns; a place may be left out."""
    width = len(plan.input.schema)
    unread = plan.number is not None and width not in needed
    if unread and plan.limit is None and not plan.offset:
        return _prune(plan.input, needed)
    number = None if unread else plan.number
    pruned = replace(plan, input=_all(plan.input), number=number)
    return _unless_same(plan, pruned), _places(range(len(pruned.schema)))


def _over(plan: Over, needed: frozenset[int]) -> tuple[Plan, PlacesLeft]:
    """The keys make the partitions; rows may be numbered in the order of their columns, as in a window."""
    width = len(plan.input.schema)
    kept = [
        index
        for index, (_, call, _) in enumerate(plan.aggregates)
        if index + width in needed or aggregate_can_fail(call)
    ]
    if not kept:
        return _prune(plan.input, needed)
    aggregates = [plan.aggregates[index] for index in kept]
    fixed = frozenset(key.index for key in plan.keys)
    read = fixed | _read(part for _, call, _ in aggregates for part in expressions_of(call))
    read |= frozenset(index for index in needed if index < width)
    if any(isinstance(frame, RowsFrame) for _, _, frame in aggregates):
        read |= frozenset(range(max(read - fixed, default=-1) + 1))
    places = _places([*sorted(read), *(index + width for index in kept)])
    moved = tuple(
        (name, transform_call(call, lambda part: _moved(part, places)), frame)
        for name, call, frame in aggregates
    )
    keys = tuple(replace(key, index=places[key.index]) for key in plan.keys)
    return _unless_same(plan, Over(_exactly(plan.input, read), keys, moved)), places


def _all(plan: Plan) -> Plan:
    return _exactly(plan, frozenset(range(len(plan.schema))))


def _exactly(plan: Plan, needed: frozenset[int]) -> Plan:
    """The plan with the needed columns and no others."""
    pruned, places = _prune(plan, needed)
    wanted = [places[index] for index in sorted(needed)]
    if wanted == list(range(len(pruned.schema))):
        return pruned
    return Project(pruned, tuple((pruned.schema[index].name, column(pruned, index)) for index in wanted))


def _read(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset[int]().union(*(columns_of(part) for part in expressions))


def _moved(expression: Expression, places: PlacesLeft) -> Expression:
    return transform_columns(expression, lambda part: replace(part, index=places[part.index]))


def _places(kept: Iterable[int]) -> PlacesLeft:
    return {old: new for new, old in enumerate(kept)}


def _unless_same(old: Plan, new: Plan) -> Plan:
    return old if old == new else new
