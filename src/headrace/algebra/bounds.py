"""Bounds of a plan's state: how long rows last, and until when they can change an answer."""

from __future__ import annotations

from typing import assert_never

from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.nodes import (
    EVERY_INSTANT,
    Aggregate,
    ApproximateAggregate,
    BloomFilter,
    Clip,
    Coalesce,
    Distinct,
    Dstream,
    Early,
    EventSource,
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
    WindowEvents,
    inputs_of,
)
from headrace.algebra.properties import has_one_row, is_stateless, walk
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.tree import AggregateCall
from headrace.time import INFINITY, Duration


def has_unbounded_state(plan: Plan) -> bool:
    """Whether some operator of the plan must remember ever more.

    A row window keeps the last rows of every partition there ever was, and so does a frame of rows; an
    aggregation of elements that live for ever keeps every group, and the values that its MIN and MAX chose
    from. A session without a longest length keeps its rows, or groups, for as long as rows bridge its gap.
    """
    return any(map(_grows, walk(plan)))


def bounded_by(plan: Plan) -> str | None:
    """The clause that would keep a plan's state from growing, where a node of it has one of its own."""
    endless = any(_grows(node) for node in walk(plan) if isinstance(node, SessionWindow | SessionAggregate))
    return "a longest length in SESSION, MAX => ..., bounds it" if endless else None


def _grows(node: Plan) -> bool:
    match node:
        case RowWindow(keys=keys) if keys:
            return True
        case SessionWindow(gap=gap, longest=None):
            return gap.length > 1
        case SessionAggregate(gap=gap, longest=None, by=by, keys=keys):
            columns = [key for place, (_, key) in enumerate(keys) if place not in node.bounds]
            return gap.length > 1 and not set(columns) <= set(by)
        case Over(keys=keys, aggregates=aggregates):
            ever = tuple(call for _, call, frame in aggregates if _reaches_back_for_ever(frame, keys != ()))
            return ever != () and (keys != () or not _are_sums(ever))
        case Aggregate(keys=(), aggregates=aggregates) if _are_sums(tuple(call for _, call in aggregates)):
            return False
        case BloomFilter():
            return False
        case ApproximateAggregate(keys=()):
            # A sample has so many values at most; blocks are of windows that rows leave.
            return False
        case Coalesce() | Distinct() if has_one_row(node):
            return False
        case _:
            return not is_stateless(node) and any(map(_accumulates, inputs_of(node)))


def _reaches_back_for_ever(frame: Frame, by_key: bool) -> bool:
    """Whether what a frame needs has no bound: the last rows of each partition have none either."""
    match frame:
        case RowsFrame(first=first):
            return by_key or first is None
        case RangeFrame(size=size):
            return size.length == INFINITY
        case _:
            assert_never(frame)


def _are_sums(calls: tuple[AggregateCall, ...]) -> bool:
    return all(function_of(call).kept.is_sum and not call.distinct for call in calls)


def lasts_at_most(plan: Plan, limit: int) -> bool:
    """Whether a row of a source makes rows of the plan for so many instants at most."""
    match plan:
        case Source() | Relation():
            return plan.is_chronon
        case Istream() | Dstream() | Split() | GapFill() | WindowEvents():
            return True
        case TimeWindow(size=size, slide=slide):
            return size.length < INFINITY and -(-size.length // slide.length) * slide.length <= limit
        case BloomFilter(size=size):
            return plan.is_chronon or size.length <= limit
        case Lifetime():
            return plan.fixed is not None and plan.fixed <= limit
        case WindowBounds(input=below, slide=slide):
            return slide.length <= limit or lasts_at_most(below, limit)
        case SessionWindow(gap=gap) | SessionAggregate(gap=gap):
            return gap.length <= limit
        case RowWindow():
            return False
        case Granularity(input=below, longest=granule):
            whole = limit // granule.length * granule.length
            return whole > 0 and lasts_at_most(below, whole)
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            sides = lasts_at_most(plan.left, limit), lasts_at_most(plan.right, limit)
            return plan.kept.is_brief(*sides)
        case (
            Filter()
            | Match()
            | Project()
            | Sample()
            | Weighing()
            | Unnest()
            | Clip()
            | Union()
            | Aggregate()
            | NestedAggregate()
            | ApproximateAggregate()
            | TopK()
            | Over()
            | Distinct()
            | Coalesce()
            | Finalize()
            | Rstream()
            | Early()
            | Remember()
        ):
            return all(lasts_at_most(below, limit) for below in inputs_of(plan))
        case _:
            assert_never(plan)


def settles_within(plan: Plan) -> int:
    """How long after the newest row of the sources the content may change (instants), at most.

    From then on it is the same for ever, if no further rows come. INFINITY or more where the periods of a
    relation begin and end on their own.
    """
    inputs = inputs_of(plan)
    if plan.is_chronon and isinstance(plan, Join | OuterJoin | SemiJoin | SetOperation):
        # There is no row without one of an input that has rows of an instant only.
        inputs = tuple(below for below in inputs if below.is_chronon)
    below = max(map(settles_within, inputs), default=1)
    match plan:
        case Relation():
            return 1 if plan.is_constant else INFINITY
        case EventSource(lasting=True):
            return INFINITY
        case TimeWindow(size=size, slide=slide):
            # A window shows its last rows at the end of a slide; from one that is unbounded they never go.
            shown = below - 1 + slide.length - 1
            return shown if size.length == INFINITY else shown + size.length
        case BloomFilter(size=size, is_chronon=False):
            return below if size.length == INFINITY else below + size.length
        case Lifetime(shift=shift):
            begun = max(below - 1 + shift, 0)
            return INFINITY if plan.fixed is None else begun + (1 if plan.fixed == INFINITY else plan.fixed)
        case SessionWindow(gap=gap) | SessionAggregate(gap=gap):
            return below + 2 * gap.length
        case Granularity(longest=granule):
            return below + granule.length
        case GapFill(step=step, longest=longest):
            return below + step.length + longest.length
        case Istream() | Dstream():
            # A row for each change, which is there for an instant.
            return below + 1
        case Clip() if _lives_for_ever(plan.input):
            return INFINITY
        case _:
            return below


def _accumulates(plan: Plan) -> bool:
    """Whether there may come to be ever more rows that stay for ever."""
    match plan:
        case TimeWindow() | Lifetime() | RowWindow():
            return _lives_for_ever(plan)
        case EventSource(lasting=lasting, ends=ends):
            return lasting and ends is None
        case _:
            ahead = any(map(_accumulates, inputs_of(plan)))
            return ahead and _lives_for_ever(plan) and not has_one_row(plan)


def _lives_for_ever(plan: Plan) -> bool:
    match plan:
        case TimeWindow(size=size):
            return size.length == INFINITY
        case BloomFilter(size=size, is_chronon=chronon):
            return not chronon and size.length == INFINITY
        case Lifetime():
            # A row may say that it is valid for any time.
            return plan.fixed in (None, INFINITY)
        case RowWindow(keys=keys):
            return keys != ()
        case Source() | Relation():
            return not plan.is_chronon
        case Istream() | Dstream() | Split() | WindowEvents():
            return False
        case Clip(input=below, end=end):
            return end == INFINITY and _lives_for_ever(below)
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            ends = not _lives_for_ever(plan.left), not _lives_for_ever(plan.right)
            return not plan.kept.is_brief(*ends)
        case _:
            return any(_lives_for_ever(below) for below in inputs_of(plan))


def duration_of(plan: Plan, *, shown: bool = False) -> Duration | None:
    """The time for which every row of a plan is valid from where it begins; None where they differ.

    It holds of windows of streams, and of what is made of each of their rows alone. A window that slides
    shows its rows from one slide to another one.

    Args:
        plan: the plan.
        shown: whether windows count that no row leaves, in which rows last for ever, and those that are shown
            when they are over, in which they begin anew with each slide.
    """
    if plan.is_chronon:
        return EVERY_INSTANT
    match plan:
        case TimeWindow(smallest=smallest) if smallest is not None:
            return None
        case TimeWindow(size=size) if size.length == INFINITY:
            return size if shown else None
        case TimeWindow(size=size, slide=slide):
            return size if size.length % slide.length == 0 else None
        case WindowBounds(input=below, slide=slide) if shown and duration_of(below) is not None:
            return slide
        case Filter() | Project() | Unnest():
            return duration_of(plan.input, shown=shown)
        case Union(inputs=inputs):
            found = {duration_of(below, shown=shown) for below in inputs}
            return found.pop() if len(found) == 1 else None
        case Join(left=left, right=right):
            # Constant relations are there at every instant.
            sides = [side for side in (left, right) if not (isinstance(side, Relation) and side.is_constant)]
            return duration_of(sides[0], shown=shown) if len(sides) == 1 else None
        case _:
            return None
