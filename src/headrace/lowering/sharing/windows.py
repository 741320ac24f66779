"""The same groups of windows of several lengths as one operator, with one state.

    SELECT auction, COUNT(*) FROM bid [RANGE 10 MINUTES] GROUP BY auction
    SELECT auction, COUNT(*) FROM bid [RANGE 8 MINUTES] GROUP BY auction

What is kept of the longer window, the rows that are in it, has those of the shorter one (Motwani et al., CIDR
2003, section 3.2). So that is kept once; what is there twice are the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from headrace.algebra.nodes import Aggregate, TimeWindow
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.coercion import literal
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import AggregateCall, Column, Expression, transform_call
from headrace.lowering.picked import asked_in
from headrace.lowering.sharing.bodies import (
    NUMBER,
    Bodies,
    GroupedBody,
    Instead,
    NestedBody,
    TimedBody,
    moved,
)
from headrace.schema import BIGINT
from headrace.steps import StepFunction
from headrace.time import INFINITY, Duration

_Parameters = tuple[Duration, Duration, Duration, Duration | None, StepFunction]


@dataclass(frozen=True)
class Windowed:
    """Groups of a time window, as a part of a nested aggregation.

    Attributes:
        number: the body.
        window: that of the window.
        size: of the window.
        keys, calls: over what the window is over.
    """

    number: int
    window: int
    size: Duration
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]


def nested_windows(bodies: Bodies, present: Sequence[int]) -> list[tuple[Windowed, ...]]:
    """The groups that differ in the length of their window only, the longest window first.

    Args:
        bodies: all of them.
        present: the numbers of those that are used.
    """
    alike: dict[object, list[Windowed]] = {}
    for number in present:
        if (found := _windowed(bodies, number)) is not None:
            what = bodies.bodies[found.window].what
            assert isinstance(what, TimedBody)
            size, slide, offset = cast(tuple[Duration, Duration, Duration], what.parameters[:3])
            phase = size.length % slide.length
            key = what.input, slide.length, offset.length, phase, found.keys, frozenset(found.calls)
            alike.setdefault(key, []).append(found)
    groups = (sorted(group, key=lambda part: -part.size.length) for group in alike.values())
    return [tuple(group) for group in groups if len(group) > 1]


def nest(bodies: Bodies, group: Sequence[Windowed]) -> int:
    """The body of a nested aggregation for some groups, the longest window first."""
    first, *others = group
    below = bodies.bodies[first.window]
    places = {column: number for number, column in enumerate(below.columns)}

    def on(part: Expression) -> Expression:
        return moved(part, places.__getitem__)

    what = NestedBody(
        first.window,
        tuple(part.size for part in others),
        tuple(map(on, first.keys)),
        frozenset(transform_call(call, on) for call in first.calls),
    )
    return bodies.put(what, bodies.bodies[first.number].example)


def one_window(bodies: Bodies, nested: int, group: Sequence[Windowed], place: int) -> Instead:
    """The groups of one of the windows, as rows of the nested aggregation."""
    body, target = bodies.bodies[group[place].number], bodies.bodies[nested]
    window, first = bodies.bodies[group[place].window], bodies.bodies[group[0].window]
    places = {column: number for number, column in enumerate(first.columns)}

    def on(part: Expression) -> Expression:
        return moved(part, lambda one: places[window.columns[one]])

    columns = tuple(
        target.number(transform_call(column, on) if isinstance(column, AggregateCall) else column, name)
        for column, name in zip(body.columns, body.names, strict=True)
    )
    number = Column(target.number(NUMBER, "window"), "", BIGINT)
    return Instead(nested, columns, (resolve("=", (number, literal(place))),))


def _windowed(bodies: Bodies, number: int) -> Windowed | None:
    """Groups that can be nested: of sums that cannot fail, over a window that ends and covers its slide."""
    body = bodies.bodies[number]
    if not isinstance(body.what, GroupedBody) or body.what.settled or body.what.failing:
        return None
    window = bodies.bodies[body.what.input]
    calls = [column for column in body.columns if isinstance(column, AggregateCall)]
    if not isinstance(window.what, TimedBody) or window.what.kind is not TimeWindow or not calls:
        return None
    size, slide, _, smallest, _ = cast(_Parameters, window.what.parameters)
    if smallest is not None:
        # What has left a window of several sizes may still be in a shorter one.
        return None
    if size.length == INFINITY or size.length < max(2, slide.length):
        return None
    assert isinstance(body.example, Aggregate)
    if asked_in(body.example.input) is not None:
        # Each of many queries picks its own group there (`headrace.lowering.groups`).
        return None
    if any(call.distinct or not function_of(call).kept.is_sum for call in calls):
        return None

    def below(part: Expression) -> Expression:
        return moved(part, lambda one: cast(int, window.columns[one]))

    return Windowed(
        number,
        body.what.input,
        size,
        tuple(map(below, body.what.keys)),
        tuple(transform_call(call, below) for call in calls),
    )
