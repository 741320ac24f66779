"""Properties of plans, derived bottom-up; they choose rules and implementations."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.nodes import (
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    Istream,
    Join,
    Plan,
    Project,
    Rstream,
    Source,
    TimeWindow,
    Union,
    inputs_of,
    is_chronon,
)
from headrace.time import BEGINNING, INFINITY, TimeDomain


def walk(plan: Plan) -> Iterator[Plan]:
    """The plan's nodes, top down; a shared subplan appears once per use."""
    yield plan
    for below in inputs_of(plan):
        yield from walk(below)


def sources_of(plan: Plan) -> tuple[Source, ...]:
    """The source nodes of the plan, each once, in the order in which they are met."""
    return tuple(dict.fromkeys(node for node in walk(plan) if isinstance(node, Source)))


def domain_of(plan: Plan) -> TimeDomain:
    """What the plan's instants count; all sources of a plan agree."""
    return sources_of(plan)[0].domain


def is_insert_only(plan: Plan) -> bool:
    """Whether the stream, as the operators emit it, never holds a retraction.

    Aggregates and the like emit their last segment open-ended and correct it later, unless their elements are
    chronons, which are closed as soon as the heartbeat passes them.
    """
    match plan:
        case Source():
            return True
        case Aggregate() | Distinct():
            return is_chronon(plan)
        case Istream() | Dstream():
            return True
        case Filter() | Project() | TimeWindow() | Union() | Join() | Rstream():
            return all(is_insert_only(below) for below in inputs_of(plan))


def is_linear(plan: Plan) -> bool:
    """Whether the node treats a retraction as an insertion with the other sign, and so never waits."""
    return isinstance(plan, Source | Filter | Project | TimeWindow | Union | Join | Rstream)


def is_stateless(plan: Plan) -> bool:
    """Whether the node's operator handles each element alone and keeps nothing."""
    return isinstance(plan, Source | Filter | Project | TimeWindow | Union | Rstream)


def has_unbounded_state(plan: Plan) -> bool:
    """Whether some operator of the plan must remember elements for ever."""
    return any(
        not is_stateless(node) and any(_lives_for_ever(below) for below in inputs_of(node))
        for node in walk(plan)
    )


def output_heartbeat(plan: Plan, inputs: tuple[int, ...]) -> int:
    """The promise a node can make from its inputs' promises: no later result starts before it.

    The smallest input heartbeat; a window that slides rounds it up to the next instant at which its content
    may change.
    """
    heartbeat = min(inputs)
    if isinstance(plan, TimeWindow):
        return slide_start(heartbeat, plan.slide.length)
    return heartbeat


def slide_start(instant: int, slide: int) -> int:
    """The first instant at or after `instant` at which a window with that slide takes in new elements."""
    if slide == 1 or instant in (BEGINNING, INFINITY):
        return instant
    return -(-(instant + 1) // slide) * slide - 1


def _lives_for_ever(plan: Plan) -> bool:
    match plan:
        case TimeWindow(size=size):
            return size.length == INFINITY
        case Source() | Istream() | Dstream():
            return False
        case Join(left=left, right=right):
            return _lives_for_ever(left) and _lives_for_ever(right)
        case _:
            return any(_lives_for_ever(below) for below in inputs_of(plan))
