"""Groups whose aggregates may be some percent off: what their rows have to be, and what is said where not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

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
from headrace.expressions.aggregates.aggregates import APPROXIMATE
from headrace.expressions.aggregates.within import is_sampled
from headrace.expressions.render import render_call
from headrace.expressions.tree import AggregateCall, Expression
from headrace.language.dialect import WithinPercent, position_of
from headrace.language.syntax import ScalarItem, SelectQuery
from headrace.time import INFINITY, Duration


def groups_of(
    plan: Plan,
    keys: tuple[tuple[str, Expression], ...],
    calls: tuple[tuple[str, AggregateCall], ...],
    written: Mapping[int, str],
) -> AnyAggregate:
    """The groups of some rows; approximate ones where the aggregates have bounds.

    Args:
        plan: the rows.
        keys: names and expressions that make the groups.
        calls: names and what is computed of each group.
        written: the functions of which others than these are computed, by their places among them.

    Raises:
        LanguageError: some aggregates have a bound and others do not, or the rows are of no window that
            allows it; without a position.
    """
    exact = [place for place, (_, call) in enumerate(calls) if call.within is None]
    if len(exact) == len(calls):
        return Aggregate(plan, keys, calls)
    if exact:
        text = written.get(exact[0]) or render_call(calls[exact[0]][1])
        hint = "ask for the exact ones in a query of its own"
        if not any(is_sampled(call) for _, call in calls):
            hint = f"write WITHIN after each, or {hint}"
        raise LanguageError(f"{text} is exact, beside an approximate aggregate", hint=hint)
    sampled = [call for _, call in calls if is_sampled(call)]
    if 0 < len(sampled) < len(calls):
        other = next(call for _, call in calls if not is_sampled(call))
        message = f"{render_call(sampled[0])} is of a sample, beside {render_call(other)}"
        raise LanguageError(message, hint="ask for one of them in a query of its own")
    size = duration_of(plan, shown=bool(sampled))
    if size is None:
        raise _refusal(plan, sampled)
    return ApproximateAggregate(plan, size, keys, calls)


def check_compared(calls: Iterable[AggregateCall], compared: Iterable[AggregateCall]) -> None:
    """Refuse aggregates with a bound whose FILTER compares rows with aggregates of their own window.

    Args:
        calls: what is computed of each group.
        compared: what rows are compared with.

    Raises:
        LanguageError: there is one; without a position.
    """
    bounded = next((call for call in calls if call.within is not None), None)
    if bounded is None:
        return
    other = render_call(next(iter(compared)))
    what, exact = _exactly(bounded)
    raise LanguageError(
        f"{what} takes rows or leaves them out as they come, and which of them FILTER takes changes with "
        f"{other} of their window",
        hint=f"{exact}: that is exact",
    )


def place_of_bound(query: SelectQuery) -> Position:
    """Where the first aggregate with a bound of a SELECT is, or where that begins."""
    nodes = [item.expression for item in query.items if isinstance(item, ScalarItem)]
    nodes += [] if query.having is None else [query.having]
    found = (part for node in nodes for part in node.find_all(WithinPercent, exp.Anonymous))
    bounded = (part for part in found if not isinstance(part, exp.Anonymous) or _is_sampled(part))
    return next(map(position_of, bounded), query.position)


def _is_sampled(call: exp.Anonymous) -> bool:
    return str(call.name).upper() in APPROXIMATE


def _refusal(plan: Plan, sampled: list[AggregateCall]) -> LanguageError:
    """Why aggregates of these rows cannot have bounds, or be of samples, and what to write instead."""
    below = plan
    while isinstance(below, Filter | Project | Unnest):
        below = below.input
    reason, instead = _reason(below)
    what, exact = _exactly(next(iter(sampled), None))
    message = f"{what} needs rows that all last equally long, and {reason}"
    return LanguageError(message, hint=f"{instead}, or {exact}: that is exact")


def _exactly(call: AggregateCall | None) -> tuple[str, str]:
    """The clause that gives an aggregate its bound, and what to write for the exact one."""
    if call is None or not is_sampled(call):
        return "WITHIN", "leave WITHIN out"
    return "a sample", f"write {render_call(replace(call, within=None, condition=None))}"


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
            return "those that are joined or compared with others end with the first", "aggregate before that"
        case Union():
            return "those of these queries last differently", "give all of them the same window"
        case _:
            return "these do not", window
