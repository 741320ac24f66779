"""Window clauses to the nodes that follow a table of FROM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from headrace.algebra.bounds import lasts_at_most
from headrace.algebra.nodes import (
    BoundedRowWindow,
    Filter,
    Granularity,
    Lifetime,
    Plan,
    Project,
    Relation,
    RowWindow,
    Sample,
    SessionWindow,
    Source,
    Split,
    TimeWindow,
    Union,
    Unnest,
    WindowBounds,
)
from headrace.algebra.properties import timestamp_columns, walk
from headrace.algebra.streams import settled
from headrace.errors import LanguageError, Position
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Column, Expression
from headrace.language.binding.granules import check_granules, refuse_between_granules, refuse_other_granule
from headrace.language.binding.scalars.context import Context, located
from headrace.language.binding.scalars.scalars import bind_condition, bind_scalar
from headrace.language.binding.scope import Scope
from headrace.language.dialect import position_of
from headrace.language.lengths import check_duration
from headrace.language.syntax import (
    LifetimeFrame,
    Name,
    NowFrame,
    RangeWindowFrame,
    RowsWindowFrame,
    SpanFrame,
    WindowClause,
)
from headrace.time import Duration, TimeDomain, make_duration

MAX_SPLIT: Final = 1_000
"""A row may be valid for so many instants at most where it is cut into instants for a window."""


def windowed(plan: Plan, window: WindowClause | None, scope: Scope) -> Plan:
    """The plan under its window; the default and NOW add no node, since they change nothing (PIPES).

    A sample is taken of the rows that come to the window (CQL), and the granularity is that of what the
    window yields (thesis, section 20.2).

    Args:
        plan: what the window is applied to.
        window: the clause, if there is one.
        scope: the table's columns.

    Raises:
        LanguageError: the clause has an unknown column or a wrong type or unit, or is not allowed there.
    """
    if window is None:
        return plan
    if window.sample is not None:
        plan = Sample(plan, window.sample, timed=plan.is_chronon)
    if window.condition is not None:
        predicate = bind_condition(window.condition, Context(scope, "WHERE"))
        with located(position_of(window.condition)):
            plan = Filter(plan, predicate)
    return granular(_framed(plan, window, scope), window)


def granular(plan: Plan, window: WindowClause) -> Plan:
    """What a window yields, at the multiples of its granule, which may change within bounds.

    Args:
        plan: what the window yields.
        window: the clause; without a granule nothing is added.

    Raises:
        LanguageError: the granule has a wrong unit or length, or is not allowed there.
    """
    granule, position = window.granule, window.position
    if granule is None:
        return plan
    check_granules(window.coarsest, granule, plan.domain, position)
    refuse_other_granule(granule, plan, position)
    coarsest = None
    if window.coarsest is not None:
        _refuse_other_rows(plan, granule, position)
        coarsest = None if window.coarsest == granule else window.coarsest
    with located(position):
        return Granularity(plan, granule, coarsest)


def _framed(plan: Plan, window: WindowClause, scope: Scope) -> Plan:
    keys = tuple(scope.column(key.table, key.name) for key in window.partition)
    match window.frame:
        case None | NowFrame():
            return plan
        case SpanFrame(before=before):
            check_duration(before, plan.domain, "NOW -", window.position)
            size = Duration(before.length + 1, before.unit and "MICROSECOND")
            return _ranged(plan, RangeWindowFrame(size, None), window.position)
        case RowsWindowFrame(rows=rows, slide=every):
            below = chronons(plan, window.position)
            bounded = _bounded_rows(window.frame, below, keys, window.position)
            with located(window.position):
                return bounded or RowWindow(below, rows, every, keys)
        case LifetimeFrame():
            with located(window.position):
                return _living(plan, window.frame, scope, window.position)
        case RangeWindowFrame():
            # The rows of an interval are the same, partition by partition or all together (thesis, 8.1).
            return _ranged(plan, window.frame, window.position)
        case _:
            assert_never(window.frame)


def _living(plan: Plan, frame: LifetimeFrame, scope: Scope, position: Position) -> Lifetime:
    """Rows that are valid for as long as they say."""
    if frame.column is not None:
        _check_start(plan, scope.column(frame.column.table, frame.column.name), frame.column.name)
    granule, shift = frame.granule or Duration(1), frame.shift or Duration(0)
    if frame.granule is not None:
        check_duration(granule, plan.domain, "FLOOR", position)
    check_duration(shift, plan.domain, "the shift", position)
    duration = _lasting(frame, plan.domain, scope, position)
    return Lifetime(plan, duration, granule, -shift.length if frame.earlier else shift.length)


def _check_start(plan: Plan, column: Column, name: Name) -> None:
    """See that a column holds the instants of the rows: CEDR's start depends on nothing else."""
    if plan.is_chronon and column.index not in timestamp_columns(plan):
        raise LanguageError(
            f"a lifetime begins at the instant of its row, and {column.name} is another column",
            position=name.position,
            hint="write VALID_FROM, or the column that the stream is timed by",
        )


def _lasting(frame: LifetimeFrame, domain: TimeDomain, scope: Scope, position: Position) -> Expression:
    """How long a row is valid, in instants."""
    if isinstance(frame.duration, Duration):
        if frame.duration.length < 1:
            raise LanguageError("the duration of a LIFETIME must be at least 1", position=position)
        check_duration(frame.duration, domain, "a duration of", position)
        return literal(frame.duration.length)
    duration, unit = bind_scalar(frame.duration, Context(scope, "LIFETIME")), frame.unit
    at = position_of(frame.duration)
    if domain is TimeDomain.TIMESTAMP and unit.unit is None:
        raise LanguageError(
            "the duration of LIFETIME needs a unit, since the stream is timed by a TIMESTAMP",
            position=at,
            hint="write LIFETIME (VALID_FROM, days DAYS)",
        )
    check_duration(unit, domain, "a duration of", at)
    if unit.length == 1:
        return duration
    with located(at):
        return resolve("*", (duration, literal(unit.length)))


def _ranged(plan: Plan, frame: RangeWindowFrame, position: Position) -> Plan:
    domain = plan.domain
    check_duration(frame.size, domain, "RANGE", position)
    slide = frame.slide or Duration(1)
    if frame.slide is not None:
        check_duration(frame.slide, domain, "SLIDE", position)
    below = chronons(plan, position)
    refuse_between_granules(frame.size, plan, lambda length: f"RANGE {length}", position)
    if frame.slide is not None:
        refuse_between_granules(slide, plan, lambda length: f"SLIDE {length}", position)
    smallest = None if frame.smallest is None else smallest_size(frame.smallest, frame.size, below, position)
    with located(position):
        return TimeWindow(below, frame.size, slide, smallest=smallest)


def smallest_size(
    smallest: Duration, largest: Duration, below: Plan, position: Position, instead: str | None = None
) -> Duration | None:
    """The smallest size of a window within bounds; None where they leave only one.

    Args:
        smallest, largest: the bounds; the unit of the largest has been checked.
        below: what the window is over.
        position: where it is written.
        instead: what may be written in the place of bounds; `RANGE` with the largest size if None.

    Raises:
        LanguageError: it is above the largest, or the window is not over rows of streams as they come.
    """
    check_duration(smallest, below.domain, "MIN", position)
    one = make_duration(1, largest.unit)
    if smallest.length < 1:
        written = "NOW for one instant" if largest.length < 1 else f"RANGE MIN {one}, MAX {largest}"
        raise LanguageError("a window's MIN must be at least 1", position=position, hint=f"write {written}")
    if smallest.length > largest.length:
        raise LanguageError(
            f"MIN {smallest} is longer than MAX {largest}",
            position=position,
            hint=f"write RANGE MIN {largest if largest.length else one}, MAX {smallest}",
        )
    one_size = instead or f"one length: RANGE {largest}"
    _check_as_they_come(below, "a window with MIN and MAX is", one_size, position)
    return None if smallest == largest else smallest


def _bounded_rows(
    frame: RowsWindowFrame, below: Plan, keys: tuple[Column, ...], position: Position
) -> BoundedRowWindow | None:
    """A window of the last rows within bounds; None where they leave only one size, or there are none.

    Raises:
        LanguageError: MIN is above MAX, or the window is not over rows of streams as they come.
    """
    if frame.smallest is None:
        return None
    if frame.smallest > frame.rows:
        raise LanguageError(
            f"MIN {frame.smallest} is more than MAX {frame.rows}",
            position=position,
            hint=f"write ROWS MIN {frame.rows}, MAX {frame.smallest}",
        )
    _check_as_they_come(below, "a window with MIN and MAX is", f"one size: ROWS {frame.rows}", position)
    if frame.smallest == frame.rows:
        return None
    return BoundedRowWindow(below, frame.rows, keys=keys, smallest=frame.smallest)


def _refuse_other_rows(plan: Plan, finest: Duration, position: Position) -> None:
    """See that granules within bounds are of rows of streams as they come, or of a window of time of them."""
    one = f"one granule: GRANULARITY({finest})"
    if isinstance(plan, TimeWindow) and plan.slide.length > 1:
        raise LanguageError(
            "granules with COARSEST and FINEST are of windows that move at each instant, not by "
            f"SLIDE {plan.slide}",
            position=position,
            hint=f"leave SLIDE out, or write {one}",
        )
    below = plan.input if isinstance(plan, TimeWindow) else plan
    _check_as_they_come(below, "granules with COARSEST and FINEST are", one, position)


def _check_as_they_come(below: Plan, what: str, instead: str, position: Position) -> None:
    """See that what is within bounds is over rows of streams as they come.

    A new size holds from above the newest row on: of other rows it is not known when the newest one is.

    Args:
        below: what it is over.
        what: is over it, for a message.
        instead: what may be written in the place of bounds.
        position: where it is written.

    Raises:
        LanguageError: it is over other rows.
    """
    others = [part for part in walk(settled(below)) if not isinstance(part, _AS_THEY_COME)]
    if others:
        raise LanguageError(
            f"{what} over rows of streams as they come, not over {_named(others)}",
            position=position,
            hint=f"put it on the stream in FROM, or write {instead}",
        )


_AS_THEY_COME: Final = (Source, Filter, Project, Sample, Union, Unnest)
"""Nodes that leave rows at the instants that they have in their stream."""


def _named(others: Sequence[Plan]) -> str:
    """The part that a window cannot be over, for a message: the uppermost, which may be cut into instants."""
    uppermost = next((part for part in others if not isinstance(part, Split)), others[0])
    match uppermost:
        case RowWindow():
            return "those of a window of rows"
        case TimeWindow() | Lifetime() | SessionWindow() | WindowBounds():
            return "those of another window"
        case Relation(name=name):
            return f"the relation {name}"
        case Split():
            return "rows that last longer than one instant"
        case Granularity():
            return "rows at the multiples of a granule"
        case _:
            return "those of a subquery that joins, groups or compares rows"


def chronons(plan: Plan, position: Position) -> Plan:
    """A stream that a window can be applied to: PIPES puts a split before it where rows are valid for longer.

    Raises:
        LanguageError: the split would make too many rows of one.
    """
    if plan.is_chronon:
        return plan
    if lasts_at_most(plan, MAX_SPLIT):
        return Split(plan)
    raise LanguageError(
        f"a window cannot be applied to rows that may be valid for more than {MAX_SPLIT} instants",
        position=position,
        hint="put the window on the source stream in FROM, or wrap the subquery in ISTREAM(...)",
    )
