"""CUMULATE: windows that begin together and end one step after another, as Flink has them.

Before: `CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)`
After: the rows of `HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)` whose timestamp is
not before the last full hour that precedes window_end, with that hour as window_start.
"""

from __future__ import annotations

from headrace.algebra.nodes import Filter, Plan, Project, TimeWindow, WindowBounds, column
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError
from headrace.expressions.functions import literal, resolve
from headrace.expressions.tree import Expression
from headrace.language.syntax import WindowFunction
from headrace.schema import TIMESTAMP


def cumulated(function: WindowFunction, table: Plan) -> Plan:
    """The rows of a table in each of their windows, with the bounds of these.

    The windows of a row begin at the multiple of the size before it; they end at the multiples of the step
    after it, up to the size after their start.

    Args:
        function: CUMULATE, with its STEP and SIZE.
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
    windows = WindowBounds(TimeWindow(table, size, step), size, step)
    names, end = windows.schema.names, column(windows, len(windows.schema) - 1)
    start = _start(end, size.length)
    kept = Filter(windows, resolve(">=", (column(windows, times[0]), start)))
    places = range(len(names))
    items = [start if place == len(names) - 2 else column(kept, place) for place in places]
    return Project(kept, tuple(zip(names, items, strict=True)))


def _start(end: Expression, size: int) -> Expression:
    """The multiple of the size before the last instant of a window."""
    moment = resolve("UNIX_MICROS", (end,)) if end.type == TIMESTAMP else end
    last = resolve("-", (moment, literal(1)))
    length = literal(size)
    # The remainder has the sign of the instant, which may be before the first multiple.
    within = resolve("%", (resolve("+", (resolve("%", (last, length)), length)), length))
    start = resolve("-", (last, within))
    return resolve("TIMESTAMP_MICROS", (start,)) if end.type == TIMESTAMP else start
