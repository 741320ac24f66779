"""The meaning of the table functions TUMBLE, HOP, CUMULATE, SESSION and GAP_FILL over a bound table."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.nodes import NO_OFFSET, Plan, Project, SessionWindow, TimeWindow, WindowBounds, column
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError
from headrace.expressions.tree import Column
from headrace.language.binding.ages import exact_ages, moved_by
from headrace.language.binding.granules import refuse_between_granules
from headrace.language.binding.scalars.context import located
from headrace.language.binding.scope import Scope
from headrace.language.binding.tables.bins import binned, domain_of
from headrace.language.binding.tables.cumulate import cumulated
from headrace.language.binding.tables.gaps import gaps_filled
from headrace.language.binding.windows import chronons
from headrace.language.lengths import check_duration
from headrace.language.syntax import WindowFunction
from headrace.time import MICROSECONDS, Duration


def window_function(function: WindowFunction, plan: Plan, scope: Scope) -> Plan:
    """The plan of a table function over the plan of its table.

    Raises:
        LanguageError: the descriptor names another column than the timestamp, a length does not fit the
            timestamp, or the table's rows hold for longer than an instant.
    """
    if function.function == "GAP_FILL":
        return gaps_filled(function, plan, scope)
    by = _other_column(function, plan, scope)
    with located(function.position if function.time is None else function.time.position):
        domain = plan.domain if by is None else domain_of(by)
    for length, position in function.durations.values():
        check_duration(length, domain, "INTERVAL", position)
    _check_bounds(function, plan)
    lengths = {label: length for label, (length, _) in function.durations.items()}
    if by is not None:
        size = lengths["SIZE"]
        slide, offset = lengths.get("SLIDE", size), lengths.get("OFFSET", NO_OFFSET)
        _check_lengths(function, size, slide)
        return binned(plan, by, size, slide, offset, function.position)
    keys = tuple(scope.column(None, name) for name in function.keys)
    table = chronons(plan, function.position)
    for length, position in function.durations.values():
        refuse_between_granules(length, plan, _interval, position)
    _check_descriptor(function, plan, scope)
    age = _age_of(function, plan, scope)
    with located(function.position):
        windows: Plan
        if function.function == "SESSION":
            _check_longest(function, lengths)
            windows = SessionWindow(table, lengths["GAP"], keys, lengths.get("MAX"))
        elif function.function == "CUMULATE":
            windows = cumulated(function, table)
        else:
            size = lengths["SIZE"]
            slide = lengths.get("SLIDE", size)
            _check_lengths(function, size, slide)
            offset = _end(size, slide, lengths.get("OFFSET", NO_OFFSET), age)
            windows = WindowBounds(TimeWindow(table, size, slide, offset), size, slide, offset)
    return _younger(windows, age)


def _younger(windows: Plan, age: int) -> Plan:
    """Windows over a column that is so much younger than its row's instant, with bounds that are, too."""
    if not age:
        return windows
    last = len(windows.schema) - 2
    items = [
        (field.name, found if place < last else moved_by(found, -age))
        for place, field in enumerate(windows.schema)
        for found in (column(windows, place),)
    ]
    return Project(windows, tuple(items))


def with_window_time(windows: Plan) -> tuple[Plan, int]:
    """The rows of windows with the last instant of each, as Flink has it, and how many columns that are.

    It is a column that `*` leaves out, unless the rows have one of that name themselves.
    """
    if windows.schema.find("window_time") is not None:
        return windows, 0
    places = range(len(windows.schema))
    kept = [(windows.schema.names[place], column(windows, place)) for place in places]
    last = moved_by(column(windows, places[-1]), -1)
    return Project(windows, (*kept, ("window_time", last))), 1


def _age_of(function: WindowFunction, plan: Plan, scope: Scope) -> int:
    """The age of the column that the descriptor names (instants), 0 if it is not known."""
    if function.time is None or not plan.is_chronon:
        return 0
    return exact_ages(plan).get(scope.column(None, function.time).index, 0)


def _other_column(function: WindowFunction, plan: Plan, scope: Scope) -> Column | None:
    """The column of the windows, if the rows hold for a time and it is any; None for the rows' own time."""
    if function.time is None or function.function not in ("TUMBLE", "HOP") or plan.is_chronon:
        return None
    named = scope.column(None, function.time)
    return named if named.index not in timestamp_columns(plan) else None


def _interval(length: Duration) -> str:
    count, *unit = str(length).split()
    return " ".join([f"INTERVAL '{count}'", *unit])


def _check_lengths(function: WindowFunction, size: Duration, slide: Duration) -> None:
    if min(size.length, slide.length) < 1:
        message, position = "a window's size and slide must be at least 1", function.position
        raise LanguageError(message, position=position, hint="write longer ones")


def _check_longest(function: WindowFunction, lengths: Mapping[str, Duration]) -> None:
    """Refuse a longest length that no session could have."""
    gap, longest = lengths["GAP"], lengths.get("MAX")
    if longest is not None and longest.length < gap.length:
        raise LanguageError(
            f"the longest session, {longest}, is shorter than the gap, {gap}",
            position=function.durations["MAX"][1],
            hint="the gap comes first: a session lasts for a gap after its only row",
        )


def _check_bounds(function: WindowFunction, plan: Plan) -> None:
    """Refuse columns of the names that the window of a GROUP BY is written with."""
    taken = {name.lower() for name in plan.schema.names} & {"window_start", "window_end"}
    if function.grouped and taken:
        raise LanguageError(
            f"{function.function} in GROUP BY over a table with a column {min(taken)}",
            position=function.position,
            hint=f"give {min(taken)} another name in the subquery in FROM",
        )


def _end(size: Duration, slide: Duration, start: Duration, age: int) -> Duration:
    """By how much windows end after multiples of their slide, from how much they start after them."""
    length = (size.length + start.length + age) % slide.length
    units = [part.unit for part in (size, slide, start) if part.unit is not None]
    return Duration(length, min(units, key=MICROSECONDS.__getitem__, default=None))


def _check_descriptor(function: WindowFunction, plan: Plan, scope: Scope) -> None:
    if function.time is None:
        return
    known = timestamp_columns(plan)
    place = scope.column(None, function.time).index
    if place in known or (plan.is_chronon and function.function != "CUMULATE" and place in exact_ages(plan)):
        return
    columns = [plan.schema[place].name for place in sorted(known)]
    names = columns if function.grouped else [f"DESCRIPTOR({name})" for name in columns]
    raise LanguageError(
        f"{function.time.text} is not the column by which these rows are timed",
        position=function.time.position,
        hint=f"write {' or '.join(names)}"
        if names
        else "leave DESCRIPTOR out; rows keep their stream's time"
        if not function.grouped
        else "list the timestamp in the subquery in FROM",
    )
