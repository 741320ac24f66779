"""TUMBLE and HOP by another column than the timestamp, over rows that hold for a time.

Before: `HOP(TABLE (SELECT * FROM bid WINDOW(RANGE 1 DAY)), DESCRIPTOR(due), INTERVAL '1' HOUR, ...)`
After: each row once for each value of `UNNEST(SEQUENCE(first, last, 1 hour))`, the starts of the windows that
`due` is in, with window_start and window_end. These are columns like others, and say nothing of when the row
is valid.
"""

from __future__ import annotations

from headrace.algebra.nodes import Filter, Plan, Project, Unnest, column
from headrace.errors import LanguageError, Position
from headrace.expressions.functions.functions import literal, make_cast, resolve
from headrace.expressions.tree import Column, Expression
from headrace.schema import BIGINT, DATE, TIMESTAMP, sql_type, unique_names
from headrace.time import Duration, TimeDomain

BOUNDS = ("window_start", "window_end")
"""The columns that are added."""
_MOST_WINDOWS = 10_000
"""The most values of a SEQUENCE."""


def binned(
    plan: Plan, by: Column, size: Duration, slide: Duration, offset: Duration, position: Position
) -> Plan:
    """The rows in each window of a column; those whose column is NULL are in none.

    Args:
        plan: rows that hold for a time.
        by: the column, which has a `domain_of`.
        size, slide, offset: of the windows, in microseconds or whole numbers.
        position: of the function, for errors.

    Raises:
        LanguageError: a row would be in too many windows.
    """
    count = -(-size.length // slide.length)
    if count > _MOST_WINDOWS:
        raise LanguageError(
            f"each row would be in {count} windows, more than {_MOST_WINDOWS}",
            position=position,
            hint="write a longer slide",
        )
    known = Filter(plan, resolve("IS NOT NULL", (by,)))
    last = _multiple_before(_number(by), slide.length, offset.length % slide.length)
    width, number = len(plan.schema), "window"
    first = resolve("-", (last, literal((count - 1) * slide.length)))
    starts = resolve("SEQUENCE", (first, last, literal(slide.length)))
    names = unique_names([*plan.schema.names, number])
    rows: Plan = Unnest(known, starts, tuple(range(width)), (names[-1],))
    start = column(rows, width)
    end = resolve("+", (start, literal(size.length)))
    if size.length % slide.length:
        rows = Filter(rows, resolve(">", (end, _number(column(rows, by.index)))))
    bounds = (_moment(start, by), _moment(end, by))
    kept = [(field.name, column(rows, place)) for place, field in enumerate(plan.schema)]
    listed = unique_names([*plan.schema.names, *BOUNDS])[width:]
    return Project(rows, (*kept, *zip(listed, bounds, strict=True)))


def domain_of(by: Column) -> TimeDomain:
    """What the lengths of windows over a column count.

    Raises:
        LanguageError: it cannot be cut into windows.
    """
    if by.type not in (TIMESTAMP, DATE, BIGINT):
        kind = sql_type(by.type)
        raise LanguageError(f"{by.name} is {kind}, and windows are over TIMESTAMPs, DATEs and whole numbers")
    return TimeDomain.INTEGER if by.type == BIGINT else TimeDomain.TIMESTAMP


def _number(by: Expression) -> Expression:
    """The column as a whole number: points in time as microseconds since 1970."""
    return by if by.type == BIGINT else resolve("UNIX_MICROS", (make_cast(by, TIMESTAMP),))


def _moment(number: Expression, by: Column) -> Expression:
    return number if by.type == BIGINT else resolve("TIMESTAMP_MICROS", (number,))


def _multiple_before(number: Expression, length: int, offset: int) -> Expression:
    """The last number that is the offset more than a multiple of the length, and not after the number."""
    moved = resolve("-", (number, literal(offset)))
    size = literal(length)
    # % has the sign of the dividend.
    rest = resolve("%", (resolve("+", (resolve("%", (moved, size)), size)), size))
    return resolve("-", (number, rest))
