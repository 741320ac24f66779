"""Properties of plans, derived bottom-up; they choose rules and implementations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeGuard

from headrace.algebra.kinds import JoinKind, Ranking, SetKind
from headrace.algebra.nodes import (
    Aggregate,
    ApproximateAggregate,
    BloomFilter,
    Clip,
    Coalesce,
    Distinct,
    Draw,
    Dstream,
    Early,
    EventSource,
    Filter,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    LargestWeight,
    Lifetime,
    Match,
    NestedAggregate,
    OuterJoin,
    Over,
    Plan,
    Project,
    RefreshedRelation,
    Relation,
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
    Stateful,
    Stateless,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    Weighing,
    WindowBounds,
    WindowEvents,
    inputs_of,
)
from headrace.algebra.one_row import ONE_ROW
from headrace.algebra.unbounded import without_unbounded_window
from headrace.dataclass_parts import field_names
from headrace.expressions.tree import Column, Expression, Literal
from headrace.steps import value_at
from headrace.time import BEGINNING, INFINITY, MIN_INSTANT

POINTWISE: Final = (
    Filter,
    Project,
    Sample,
    Shed,
    Draw,
    SemanticDrop,
    LargestWeight,
    Unnest,
    WindowBounds,
    Rstream,
    Union,
    SetOperation,
    Join,
    OuterJoin,
    SemiJoin,
    Aggregate,
    TopK,
    Distinct,
    Coalesce,
    Finalize,
)
"""Nodes whose content at an instant depends on their inputs' contents at that instant alone."""


def walk(plan: Plan) -> Iterator[Plan]:
    """The plan's nodes, top down and left to right; a shared subplan comes once, where it is met first."""
    seen = set[int]()
    ahead = [plan]
    while ahead:
        node = ahead.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            ahead.extend(reversed(inputs_of(node)))


def is_deeper(plan: Plan, limit: int) -> bool:
    """Whether some path from the root has more nodes than that; looks at a shared part once per level."""
    level = {id(plan): plan}
    for _ in range(limit):
        level = {id(below): below for node in level.values() for below in inputs_of(node)}
        if not level:
            return False
    return True


def parameters_of(plan: Plan) -> tuple[object, ...]:
    """What a node is, besides its type and its inputs."""
    return tuple(getattr(plan, name) for name in parameter_names(type(plan)))


def parameter_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a type of nodes that are not its inputs."""
    inputs = ("input", "inputs", "left", "right")
    return tuple(name for name in field_names(kind) if name not in inputs)


def sources_of(plan: Plan) -> tuple[Source, ...]:
    """The source nodes of the plan, each once, in the order in which they are met."""
    return tuple(dict.fromkeys(node for node in walk(plan) if isinstance(node, Source)))


def relations_of(plan: Plan) -> tuple[Relation, ...]:
    """The relation nodes of the plan, each once, in the order in which they are met."""
    return tuple(dict.fromkeys(node for node in walk(plan) if isinstance(node, Relation)))


def names_read(plan: Plan) -> tuple[str, ...]:
    """The names of the streams and relations that the plan reads, in the order in which they are met."""
    return tuple(dict.fromkeys(node.name for node in walk(plan) if isinstance(node, Source | Relation)))


def is_constant(plan: Plan) -> bool:
    """Whether the content is the same at every instant: that of constant relations alone."""
    leaves = [node for node in walk(plan) if not inputs_of(node)]
    return all(isinstance(leaf, Relation) and leaf.is_constant for leaf in leaves)


def is_untimed(plan: Plan) -> bool:
    """Whether the content has no time of its own: that of relations without periods."""
    leaves = [node for node in walk(plan) if not inputs_of(node)]
    return all(isinstance(leaf, Relation) and leaf.valid is None for leaf in leaves)


def is_insert_only(plan: Plan) -> bool:
    """Whether the stream, as the operators emit it, never holds a retraction.

    Aggregates and the like emit their last segment open-ended and correct it later, unless their elements are
    chronons, which are closed as soon as the heartbeat passes them. Nothing corrects a row of DISTINCT that
    never leaves.
    """
    match plan:
        case EventSource(signed=signed):
            return not signed
        case Source() | GapFill():
            return True
        case Relation():
            return not isinstance(plan, RefreshedRelation)
        case Aggregate(settled=True):
            return True
        case Distinct(input=below) if is_append_only(below):
            return True
        case (
            Aggregate()
            | NestedAggregate()
            | ApproximateAggregate()
            | TopK()
            | Distinct()
            | Finalize()
            | Sample()
            | SetOperation()
        ):
            return plan.is_chronon
        case Coalesce() | RowWindow() | Early():
            return False
        case Istream() | Dstream() | SessionWindow() | SessionAggregate() | Over() | BloomFilter():
            return True
        case (
            Filter()
            | Match()
            | Project()
            | TimeWindow()
            | Lifetime()
            | WindowBounds()
            | Unnest()
            | Granularity()
            | Split()
            | Clip()
            | Union()
            | Join()
            | Rstream()
            | Remember()
            | Weighing()
        ):
            return all(map(is_insert_only, inputs_of(plan))) or _is_said_at_ends(plan)
        case OuterJoin():
            # The rows that match nothing are known for good when the heartbeat passes their one instant.
            return plan.is_chronon and all(is_insert_only(below) for below in inputs_of(plan))
        case SemiJoin():
            return all(below.is_chronon and is_insert_only(below) for below in inputs_of(plan))


def _is_said_at_ends(plan: Plan) -> bool:
    """Whether it is events of aggregates over windows without overlaps.

    The results of these end with their windows, so that none is said of the last instant of a window that has
    not ended.
    """
    if not isinstance(plan, WindowEvents):
        return False
    below = plan.input
    while isinstance(below, Filter | Project):
        below = below.input
    return isinstance(below, Aggregate) and _tumbles(below.input)


def _tumbles(plan: Plan) -> bool:
    match plan:
        case Filter() | Project() | Aggregate():
            return _tumbles(plan.input)
        case TimeWindow(size=size, slide=slide):
            return size.length <= slide.length
        case _:
            return False


def has_skyband(plan: TopK) -> bool:
    """Whether rows can be forgotten early: only the first are asked for, and none is ever retracted.

    A dense rank counts distinct keys, so that it takes more than k rows to push one out.
    """
    if plan.limit is None or plan.ranking is Ranking.DENSE_RANK:
        return False
    return plan.offset + plan.limit > 0 and is_insert_only(plan.input)


def is_stateless(plan: Plan) -> TypeGuard[Stateless]:
    """Whether the node's operator handles each element alone and keeps nothing."""
    return isinstance(plan, Stateless)


def is_stateful(plan: Plan) -> TypeGuard[Stateful]:
    """Whether the node has an operator with state."""
    return isinstance(plan, Stateful)


def is_monotonic(plan: Plan) -> bool:
    """Whether rows that are in the content once stay in it for ever, as CQL asks before it implies ISTREAM.

    What follows from the plan alone: unbounded windows, and what keeps contents growing above them.
    """
    match plan:
        case TimeWindow(size=size):
            return size.length == INFINITY
        case BloomFilter(size=size, is_chronon=chronon):
            return size.length == INFINITY and not chronon
        case Lifetime():
            return plan.fixed == INFINITY
        case Relation():
            return plan.is_constant
        case (
            Filter()
            | Match()
            | Project()
            | Sample()
            | Shed()
            | Draw()
            | SemanticDrop()
            | Unnest()
            | Granularity()
        ):
            return is_monotonic(plan.input)
        case Coalesce() | Distinct() | Union() | Join():
            return all(map(is_monotonic, inputs_of(plan)))
        case SemiJoin(anti=anti):
            return not anti and is_monotonic(plan.left) and is_monotonic(plan.right)
        case SetOperation(kind=SetKind.UNION | SetKind.UNION_MAX | SetKind.INTERSECT | SetKind.INTERSECT_ALL):
            return is_monotonic(plan.left) and is_monotonic(plan.right)
        case _:
            return False


def is_append_only(plan: Plan) -> bool:
    """Whether every element of the stream is there from its start on for ever, and none is retracted."""
    return is_monotonic(plan) and is_insert_only(plan)


def output_heartbeat(plan: Plan, inputs: tuple[int, ...]) -> int:
    """The promise a node can make from its inputs' promises: no later result starts before it.

    The smallest input heartbeat; a window that slides rounds it up to the next instant at which its content
    may change, lifetimes move it as they move the starts of rows, gaps are filled at multiples of a step and
    maybe later, and what is clipped begins where it is and has ended when its end is passed.
    """
    heartbeat = min(inputs)
    match plan:
        case TimeWindow(slide=slide, offset=offset):
            return slide_start(heartbeat, slide.length, offset.length)
        case Lifetime(granule=granule, shift=shift):
            return lifetime_start(heartbeat, granule.length, shift)
        case Granularity(granule=granule, steps=steps):
            # Elements begin in the order of their instants also where the granule changes.
            return granule_start(heartbeat, value_at(granule.length, steps, heartbeat))
        case GapFill(step=step, ahead=ahead):
            return lifetime_start(granule_start(heartbeat, step.length), 1, -ahead)
        case Clip(begin=begin, end=end):
            return INFINITY if heartbeat >= end else max(heartbeat, begin)
        case _:
            return heartbeat


def slide_start(instant: int, slide: int, phase: int = 0) -> int:
    """The first instant at or after `instant` at which a window with that slide takes in new elements.

    Args:
        instant: an instant.
        slide: how often the window moves.
        phase: an instant before which a window ends; the others end multiples of the slide from there.
    """
    if slide == 1 or instant in (BEGINNING, INFINITY):
        return instant
    return -(-(instant + 1 - phase) // slide) * slide + phase - 1


def lifetime_start(instant: int, granule: int, shift: int) -> int:
    """The instant at which the lifetime of a row of an instant begins; see `Lifetime`."""
    if instant in (BEGINNING, INFINITY):
        return instant
    return max(instant // granule * granule + shift, MIN_INSTANT)


def granule_start(instant: int, granule: int) -> int:
    """The first multiple of a granule at or after an instant; INFINITY where there is none."""
    return instant if instant in (BEGINNING, INFINITY) else min(instant + -instant % granule, INFINITY)


def timestamp_columns(plan: Plan) -> frozenset[int]:
    """The columns that hold, in every row, the one instant at which the row is valid."""
    if not plan.is_chronon:
        return frozenset()
    match plan:
        case Source(schema=schema, timestamp=timestamp):
            place = schema.find(timestamp)
            return frozenset() if place is None else frozenset([place])
        case Relation(schema=schema, valid=valid):
            place = None if valid is None else schema.find(valid[0])
            return frozenset() if place is None else frozenset([place])
        case Project(items=items):
            return _mapped_timestamps(plan.input, [item for _, item in items])
        case Aggregate(keys=keys) | ApproximateAggregate(keys=keys):
            return _mapped_timestamps(plan.input, [key for _, key in keys])
        case Join(left=left, right=right) | OuterJoin(left=left, right=right):
            kept = plan.kept
            ours = frozenset[int]() if kept is JoinKind.RIGHT else timestamp_columns(left)
            theirs = frozenset[int]() if kept is JoinKind.LEFT else timestamp_columns(right)
            return ours | {len(left.schema) + place for place in theirs}
        case SemiJoin(left=left):
            return timestamp_columns(left)
        case Lifetime() | Dstream() | SessionWindow() | Split():
            return frozenset()
        case GapFill(time=time):
            return frozenset([time])
        case Istream(input=below) if (stream := without_unbounded_window(below)) is not None:
            return timestamp_columns(stream)
        case _:
            return frozenset.intersection(*map(timestamp_columns, inputs_of(plan)))


def _mapped_timestamps(below: Plan, items: list[Expression]) -> frozenset[int]:
    known = timestamp_columns(below)
    return frozenset(
        place for place, item in enumerate(items) if isinstance(item, Column) and item.index in known
    )


def has_one_row(plan: Plan, within: frozenset[int] = frozenset()) -> bool:
    """Whether the content never has more than one row, or none of those that are equal in some columns."""
    match plan:
        case Aggregate(keys=keys) | ApproximateAggregate(keys=keys):
            return within.issuperset(range(len(keys)))
        case TopK(keys=keys, limit=0 | 1, ranking=Ranking.ROW_NUMBER) if within.issuperset(
            key.index for key in keys
        ):
            return True
        case TopK():
            # Its number, if it has one, follows the input's columns.
            return has_one_row(plan.input, within & frozenset(range(len(plan.input.schema))))
        case Project(items=items):
            read = (items[place][1] for place in within)
            return has_one_row(plan.input, frozenset(part.index for part in read if isinstance(part, Column)))
        case Distinct():
            differing = frozenset(range(len(plan.schema))) - constants_of(plan.input).keys()
            return within >= differing or has_one_row(plan.input, within)
        case Filter() | Coalesce() | Finalize() | Early() | Clip() | Rstream() | Istream() | Dstream():
            return has_one_row(plan.input, within)
        case Join():
            width = len(plan.left.schema)
            right = frozenset(place - width for place in within if place >= width)
            return has_one_row(plan.left, within - {place + width for place in right}) and has_one_row(
                plan.right, right
            )
        case SemiJoin():
            return has_one_row(plan.left, within)
        case WindowBounds():
            # All rows of an instant have the same bounds.
            return has_one_row(plan.input, within & frozenset(range(len(plan.input.schema))))
        case Relation(name=name):
            return name == ONE_ROW
        case _:
            return False


def key_of(plan: Plan) -> tuple[int, ...] | None:
    """Columns of which no two rows of an instant have the same values; None where none are known.

    No column can be left out of them. Of several such sets it is the one with the first columns.
    """
    kept = frozenset(range(len(plan.schema)))
    if not has_one_row(plan, kept):
        return None
    for place in reversed(range(len(plan.schema))):
        if has_one_row(plan, kept - {place}):
            kept -= {place}
    return tuple(sorted(kept))


def constants_of(plan: Plan) -> dict[int, Literal]:
    """The columns that hold the same constant in every row."""
    match plan:
        case Project(items=items):
            return {place: part for place, (_, part) in enumerate(items) if isinstance(part, Literal)}
        case Filter() | TimeWindow():
            return constants_of(plan.input)
        case Union(inputs=inputs):
            parts = [constants_of(below).items() for below in inputs]
            return dict(frozenset(parts[0]).intersection(*parts[1:]))
        case Clip(input=below) | Early(input=below):
            return constants_of(below)
        case _:
            return {}
