"""Streams of events, and all their rows so far.

A stream has at each instant the rows of that instant; an operator that looks at several rows looks at all
that have come so far. In a bound plan a stream that is read so is an ISTREAM (CQL, section 2.2: `Istream(S
[Range Unbounded])` is S), which is what tells it from the same rows under a window of one instant. The
windows and the ISTREAMs that cancel each other are taken out when a plan is whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import (
    EVERY_INSTANT,
    Aggregate,
    Dstream,
    Filter,
    Granularity,
    Istream,
    Join,
    Lifetime,
    OuterJoin,
    Plan,
    Project,
    Relation,
    RowWindow,
    Rstream,
    Sample,
    SemiJoin,
    SessionWindow,
    SetOperation,
    Source,
    Split,
    TimeWindow,
    Union,
    Unnest,
    WindowBounds,
    inputs_of,
    with_inputs,
)
from headrace.algebra.properties import is_constant, is_monotonic, sources_of
from headrace.algebra.unbounded import without_unbounded_window
from headrace.expressions.tree import Literal
from headrace.schema import BIGINT
from headrace.time import INFINITY, Duration, TimeDomain

_UNBOUNDED: Final = Duration(INFINITY)
_WINDOWS: Final = (TimeWindow, RowWindow, SessionWindow, Lifetime, WindowBounds, Granularity, Split)


def as_stream(plan: Plan) -> Plan:
    """Rows of one instant each as a stream of events; one that is a stream already is left as it is."""
    return plan if is_stream(plan) else Istream(TimeWindow(plan, _UNBOUNDED))


def is_stream(plan: Plan) -> bool:
    """Whether a bound plan is a stream of events, and not a content that changes."""
    match plan:
        case Istream() | Dstream():
            return True
        case Source() | Relation() | Rstream():
            return False
        case Join(left=left, right=right):
            return is_stream(left) or is_stream(right)
        case OuterJoin(left=left, right=right, kind=JoinKind.LEFT | JoinKind.RIGHT as kind):
            return is_stream(left if kind is JoinKind.LEFT else right)
        case SemiJoin(left=left):
            return is_stream(left)
        case Union() | SetOperation() | OuterJoin():
            return all(map(is_stream, inputs_of(plan)))
        case _:
            return not isinstance(plan, _WINDOWS) and all(map(is_stream, inputs_of(plan)))


def events_of(plan: Plan) -> Plan:
    """The stream of which a content has all rows so far; another one as it is."""
    stream = without_unbounded_window(plan)
    return plan if stream is None else stream


def so_far(plan: Plan) -> Plan:
    """All rows of a stream up to each instant; a content that changes is left as it is."""
    if not is_stream(plan):
        return plan
    match plan:
        case Istream(input=below) if is_monotonic(below):
            return below
        case Filter() | Project() | Unnest() | Union() | Sample(timed=False):
            return with_inputs(plan, tuple(map(so_far, inputs_of(plan))))
        case _:
            return TimeWindow(plan, _UNBOUNDED)


def of_instants(plan: Plan) -> Plan:
    """The rows of each instant alone, where a stream has all its rows so far by itself."""
    return TimeWindow(plan, EVERY_INSTANT) if is_stream(plan) and plan.is_chronon else plan


def reads_all_rows(plan: Plan) -> bool:
    """Whether a content is of all events so far of its streams, whatever windows these were made with."""
    return bool(sources_of(plan)) and _is_of_all(plan)


def _is_of_all(plan: Plan) -> bool:
    if is_stream(plan):
        return True
    if isinstance(plan, TimeWindow):
        return plan.size.length == INFINITY
    return not isinstance(plan, _WINDOWS) and all(map(_is_of_all, inputs_of(plan)))


def as_events(groups: Aggregate) -> Plan:
    """Groups of the events of windows, each at its window's end, as a stream.

    Before: groups of `ISTREAM(SELECT * FROM bid of each window)`, of whose keys one is a bound of the window
    After: `ISTREAM(groups of each window)`, which need not keep the rows of a window twice
    """
    below = _of_windows(groups.input)
    return groups if below is None else Istream(replace(groups, input=below))


def _of_windows(plan: Plan) -> Plan | None:
    """The rows of windows that a stream has the insertions of, for as long as the windows show them."""
    match plan:
        case Istream(input=below):
            return below if shows_windows(below) else None
        case Filter() | Project() | Unnest():
            inner = _of_windows(plan.input)
            return None if inner is None else replace(plan, input=inner)
        case _:
            return None


def shows_windows(plan: Plan) -> bool:
    """Whether rows are there with the bounds of their windows, all those of a window from its end on."""
    match plan:
        case WindowBounds() | SessionWindow():
            return True
        case Filter() | Project() | Unnest():
            return shows_windows(plan.input)
        case _:
            return False


def as_answer(plan: Plan) -> Plan:
    """The answer of a query: contents that only grow are a stream of events (CQL's implicit ISTREAM).

    The paper says "a non-aggregation query over streams"; that its contents grow is what CQL's authors
    later asked for instead, since ISTREAM loses what leaves a window.
    """
    return Istream(plan) if not is_stream(plan) and is_monotonic(plan) and not is_constant(plan) else plan


def settled(plan: Plan) -> Plan:
    """A whole plan without windows of one instant, and without an ISTREAM of all rows of a stream so far."""
    known: dict[int, Plan] = {}

    def change(node: Plan) -> Plan:
        if id(node) not in known:
            inputs = inputs_of(node)
            below = tuple(map(change, inputs))
            same = all(one is other for one, other in zip(inputs, below, strict=True))
            known[id(node)] = _without(node if same else with_inputs(node, below))
        return known[id(node)]

    return change(plan)


def _without(node: Plan) -> Plan:
    match node:
        case TimeWindow(input=below) if node.is_chronon:
            return below
        case Istream(input=below):
            stream = without_unbounded_window(below)
            return node if stream is None else stream
        case _:
            return node


def moved_later(plan: Plan, instants: int) -> Plan:
    """The events of a stream so many instants later."""
    return as_stream(Lifetime(plan, Literal(1, BIGINT), shift=instants)) if instants else plan


def remembered(plan: Plan, instants: int | None) -> Plan:
    """The rows of a stream for so many instants after their own; None for all rows so far."""
    if instants is None:
        return so_far(plan)
    unit = "MICROSECOND" if plan.domain is TimeDomain.TIMESTAMP else None
    return TimeWindow(plan, Duration(instants + 1, unit)) if instants else plan
