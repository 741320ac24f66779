"""Groups whose aggregates may be some percent off: what their rows have to be, and what is said where not."""

from __future__ import annotations

from headrace.algebra.bounds import duration_of
from headrace.algebra.nodes import (
    Aggregate,
    AnyAggregate,
    ApproximateAggregate,
    Distinct,
    EventSource,
    Filter,
    Finalize,
    Join,
    NestedAggregate,
    OuterJoin,
    Plan,
    Project,
    Relation,
    RowWindow,
    SemiJoin,
    SessionWindow,
    SetOperation,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    WindowBounds,
)
from headrace.errors import LanguageError, Position
from headrace.expressions.render import render_call
from headrace.expressions.tree import AggregateCall, Expression
from headrace.language.dialect import WithinPercent, position_of
from headrace.language.syntax import ScalarItem, SelectQuery
from headrace.time import INFINITY, Duration


def groups_of(
    plan: Plan, keys: tuple[tuple[str, Expression], ...], calls: tuple[tuple[str, AggregateCall], ...]
) -> AnyAggregate:
    """The groups of some rows; approximate ones where the aggregates have bounds.

    Args:
        plan: the rows.
        keys: names and expressions that make the groups.
        calls: names and what is computed of each group.

    Raises:
        LanguageError: some aggregates have a bound and others do not, or the rows are of no window that
            allows it; without a position.
    """
    exact = [call for _, call in calls if call.within is None]
    if len(exact) == len(calls):
        return Aggregate(plan, keys, calls)
    if exact:
        text = render_call(exact[0])
        hint = "write WITHIN after each, or ask for the exact ones in a query of its own"
        raise LanguageError(f"{text} is exact, beside an aggregate with WITHIN", hint=hint)
    size = duration_of(plan)
    if size is None:
        raise _refusal(plan)
    return ApproximateAggregate(plan, size, keys, calls)


def place_of_bound(query: SelectQuery) -> Position:
    """Where the first WITHIN of a SELECT is, or where that begins."""
    nodes = [item.expression for item in query.items if isinstance(item, ScalarItem)]
    nodes += [] if query.having is None else [query.having]
    found = (part for node in nodes for part in node.find_all(WithinPercent))
    return next(map(position_of, found), query.position)


def _refusal(plan: Plan) -> LanguageError:
    """Why aggregates of these rows cannot have bounds, and what to write instead."""
    below = plan
    while isinstance(below, Filter | Project | Unnest):
        below = below.input
    reason, instead = _reason(below)
    hint = f"{instead}, or leave WITHIN out: that is exact"
    return LanguageError(f"WITHIN needs rows that all last equally long, and {reason}", hint=hint)


def _reason(plan: Plan) -> tuple[str, str]:
    """Why some rows do not all last equally long, and what to write in their place."""
    window = "write FROM s [RANGE 1 HOUR] for a stream s"
    match plan:
        case TimeWindow(size=size) if size.length == INFINITY:
            return "these are all rows so far", "write FROM s [RANGE 1 HOUR]"
        case TimeWindow(smallest=Duration()):
            return "the size of this window may change", window
        case TimeWindow():
            return "here RANGE is no multiple of SLIDE", "make it one"
        case EventSource() | Finalize():
            return "those of this stream end when they say or are taken back", window
        case Relation(name=name):
            return f"those of the relation {name} change as it does", window
        case RowWindow() | SessionWindow():
            return "those of a window of rows or a session end when others come", "write [RANGE 1 HOUR]"
        case WindowBounds():
            return "TUMBLE and HOP show the rows of a window when it is over", "write [RANGE 1 HOUR]"
        case Aggregate() | ApproximateAggregate() | NestedAggregate() | TopK() | Distinct():
            return "groups and first rows end when others come", "aggregate the rows of the window itself"
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            return "pairs end with the first of their rows", "aggregate before the join"
        case Union():
            return "those of these queries last differently", "give all of them the same window"
        case _:
            return "these do not", window
