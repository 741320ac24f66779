"""CUMULATE: windows that begin together and end one step after another, as Flink has them.

Before: `CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)`
After: the rows of `HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)` whose timestamp is
not before the last full hour that precedes window_end, with that hour as window_start.
"""

from __future__ import annotations

from headrace.algebra.nodes import NO_OFFSET, Filter, Plan, Project, TimeWindow, WindowBounds, column
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Expression
from headrace.language.syntax import WindowFunction
from headrace.schema import TIMESTAMP
from headrace.time import Duration


def cumulated(function: WindowFunction, table: Plan) -> Plan:
    """The rows of a table in each of their windows, with the bounds of these.

    The windows of a row begin at the multiple of the size before it, or the OFFSET after one; they end at the
    multiples of the step after their start, as far as these are after the row, up to the size.

    Args:
        function: CUMULATE, with its STEP and SIZE and perhaps an OFFSET.
        table: its rows, each at its instant.

    Raises:
        LanguageError: the size is not a multiple of the step, or no column holds the timestamp.
    """
    (size, position), (step, _) = function.durations["SIZE"], function.durations["STEP"]
    if step.length < 1 or size.length < 1 or size.length % step.length:
        raise LanguageError(
            "the size of CUMULATE is a multiple of its step",
            position=position,
            hint="the step comes first: CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, "
            "INTERVAL '1' HOUR)",
        )
    times = sorted(timestamp_columns(table))
    if not times:
        raise LanguageError(
            "CUMULATE is over rows without the column that they are timed by",
            position=function.position,
            hint="list the timestamp in the subquery in FROM",
        )
    offset = function.durations.get("OFFSET", (NO_OFFSET, position))[0]
    # The size is a multiple of the step: what is left of it decides where steps end.
    left = Duration(offset.length % step.length, offset.unit)
    windows = WindowBounds(TimeWindow(table, size, step, left), size, step, left)
    names, end = windows.schema.names, column(windows, len(windows.schema) - 1)
    start = _start(end, size.length, offset.length % size.length)
    kept = Filter(windows, resolve(">=", (column(windows, times[0]), start)))
    places = range(len(names))
    items = [start if place == len(names) - 2 else column(kept, place) for place in places]
    return Project(kept, tuple(zip(names, items, strict=True)))


def _start(end: Expression, size: int, offset: int) -> Expression:
    """The multiple of the size, moved by the offset, before the last instant of a window."""
    moment = resolve("UNIX_MICROS", (end,)) if end.type == TIMESTAMP else end
    last = resolve("-", (moment, literal(1 + offset)))
    length = literal(size)
    # The remainder has the sign of the instant, which may be before the first multiple.
    within = resolve("%", (resolve("+", (resolve("%", (last, length)), length)), length))
    start = resolve("-", (last, within))
    start = resolve("+", (start, literal(offset))) if offset else start
    return resolve("TIMESTAMP_MICROS", (start,)) if end.type == TIMESTAMP else start
