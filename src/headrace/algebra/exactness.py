"""From which instant on an answer is exact where the oldest rows of its streams are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from headrace.algebra.frames import RangeFrame
from headrace.algebra.nodes import (
    ApproximateAggregate,
    BloomFilter,
    Dstream,
    EventSource,
    GapFill,
    Granularity,
    Istream,
    Lifetime,
    Over,
    Plan,
    Project,
    Relation,
    RowWindow,
    SessionAggregate,
    SessionWindow,
    Source,
    TimeWindow,
    inputs_of,
)
from headrace.time import BEGINNING, INFINITY

NthRow = Callable[[str, int, int], int]
"""From a stream, an instant and a number n to the instant of the n-th row from that instant on, in order of
time; INFINITY where there are fewer."""


def exact_from(plan: Plan, known: Mapping[str, int], nth_row: NthRow) -> int:
    """The first instant from which on a plan's content is that over all rows, whatever rows are missing.

    INFINITY where no such instant is known: where it depends on all rows that ever came.

    Args:
        plan: the plan.
        known: per stream from which instant on its rows are there; BEGINNING where all are.
        nth_row: finds rows that are there.
    """
    match plan:
        case EventSource(name=name, lasting=True):
            return BEGINNING if known[name] == BEGINNING else INFINITY
        case Source(name=name):
            return known[name]
        case Relation():
            return BEGINNING
        case RowWindow():
            return _of_rows(plan, known, nth_row)
        case _:
            below = max((exact_from(part, known, nth_row) for part in inputs_of(plan)), default=BEGINNING)
            return later(below, looks_back(plan))


def looks_back(plan: Plan) -> int:
    """How far back from an instant a node looks at its input (instants), INFINITY where that has no bound."""
    match plan:
        case TimeWindow(size=size, slide=slide):
            return min(size.length + slide.length - 2, INFINITY)
        case ApproximateAggregate(size=size):
            # To the beginning of the lap before the present one, from where the input looks back itself.
            return 0 if plan.is_sampled else size.length
        case Granularity(longest=granule):
            return granule.length - 1
        case BloomFilter(size=size):
            # A row is looked up in what came up to a size before it, whose ends are rounded up where rows are
            # of an instant; all others are there for a size themselves.
            further = plan.granule if plan.is_chronon else size.length
            return INFINITY if size.length == INFINITY else size.length + further
        case Istream() | Dstream():
            return 1
        case GapFill(step=step, longest=longest):
            return step.length - 1 + longest.length
        case Lifetime(fixed=None) | SessionWindow() | SessionAggregate() | RowWindow():
            return INFINITY
        case Lifetime(fixed=fixed, shift=shift):
            return INFINITY if fixed == INFINITY else max((fixed or 0) - 1 + shift, 0)
        case Over(aggregates=aggregates):
            frames = (frame for _, _, frame in aggregates)
            return max(
                (frame.size.length - 1 if isinstance(frame, RangeFrame) else INFINITY for frame in frames),
                default=0,
            )
        case _:
            return 0


def later(instant: int, length: int) -> int:
    """An instant so much later; the beginning stays the beginning.

    Args:
        instant: the instant.
        length: how much later; INFINITY or nearly that for never.
    """
    if instant == BEGINNING:
        return BEGINNING
    return INFINITY if length >= _NEVER or instant == INFINITY else instant + length


_NEVER: Final = INFINITY // 2


def _of_rows(plan: RowWindow, known: Mapping[str, int], nth_row: NthRow) -> int:
    """Once so many rows are there as a window of the last rows has; it slides by single rows of a stream."""
    below: Plan = plan.input
    while isinstance(below, Project):
        below = below.input
    if not isinstance(below, Source) or isinstance(below, EventSource) or plan.keys or plan.slide > 1:
        everything = exact_from(plan.input, known, nth_row)
        return BEGINNING if everything == BEGINNING else INFINITY
    since = known[below.name]
    return BEGINNING if since == BEGINNING else nth_row(below.name, since, plan.rows)


def needed_from(plan: Plan, instant: int) -> dict[str, int]:
    """Per stream the first instant whose rows matter for a plan's content from an instant on.

    Args:
        plan: the plan.
        instant: from which on its content is wanted.
    """
    match plan:
        case EventSource(name=name, lasting=True):
            return {name: BEGINNING}
        case Source(name=name):
            return {name: instant}
        case Relation():
            return {}
    back = looks_back(plan)
    before = BEGINNING if instant == BEGINNING or back >= _NEVER else instant - back
    found: dict[str, int] = {}
    for part in inputs_of(plan):
        for name, first in needed_from(part, before).items():
            found[name] = min(found.get(name, first), first)
    return found


def exact_anew(plan: Plan, newest: Mapping[str, int]) -> int:
    """The first instant from which on a plan is exact that sees none of the rows that have come so far.

    INFINITY where no such instant is known.

    Args:
        plan: the plan.
        newest: per stream the largest timestamp that has come (instant), BEGINNING before the first.
    """
    known = {name: at if at == BEGINNING else at + 1 for name, at in newest.items()}
    return exact_from(plan, known, lambda *_: INFINITY)
