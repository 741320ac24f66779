"""Functions of DATEs and TIMESTAMPs over columns, in UTC and the proleptic Gregorian calendar."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.elements import Int64Array
from headrace.expressions.evaluation.values import (
    Datum,
    Kernel,
    KernelResult,
    column,
    failing,
    fine,
    numbers,
    validity,
)
from headrace.expressions.tree import Call, Literal
from headrace.schema import BIGINT, DATE, TIMESTAMP
from headrace.time import CALENDAR, MICROSECONDS

TIMESTAMP_OVERFLOW: Final = "TIMESTAMP overflow"
NOT_IN_PYTHON: Final = "a user's aggregate can take only the years 1 to 9999"

AS_PYTHON: Final = "AS PYTHON"
"""Gives its argument, and fails on what Python's dates cannot express; it is written in no query."""

_DAY: Final = MICROSECONDS["DAY"]
_FIRST_IN_PYTHON: Final = date.min.toordinal() - date(1970, 1, 1).toordinal()
_LAST_IN_PYTHON: Final = date.max.toordinal() - date(1970, 1, 1).toordinal()
_MONDAY: Final = 3
"""1970-01-01, day 0, is the fourth day of its week."""


def instants(datum: Datum) -> Int64Array:
    """The microseconds since 1970 of a TIMESTAMP column, 0 for NULL."""
    return np.asarray(numbers(datum.cast(BIGINT)))


def days(datum: Datum) -> Int64Array:
    """The days since 1970 of a DATE or TIMESTAMP column, 0 for NULL."""
    if datum.type == DATE:
        return np.asarray(numbers(datum.cast(pa.int32()).cast(BIGINT)))
    return instants(datum) // _DAY


def day_of(dates: npt.NDArray[np.datetime64]) -> Int64Array:
    """The days since 1970 of NumPy dates of whatever unit."""
    return dates.astype("M8[D]").astype(np.int64)


def _months(day: Int64Array) -> npt.NDArray[np.datetime64]:
    return day.astype("M8[D]").astype("M8[M]")


def _year(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _part(arguments[0], _months(days(arguments[0])).astype(np.int64) // 12 + 1970)


def _month(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _part(arguments[0], _months(days(arguments[0])).astype(np.int64) % 12 + 1)


def _day(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    day = days(arguments[0])
    return _part(arguments[0], day - day_of(_months(day)) + 1)


def _hour(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _part(arguments[0], instants(arguments[0]) % _DAY // MICROSECONDS["HOUR"])


def _minute(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _part(arguments[0], instants(arguments[0]) % MICROSECONDS["HOUR"] // MICROSECONDS["MINUTE"])


def _second(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _part(arguments[0], instants(arguments[0]) % MICROSECONDS["MINUTE"] // MICROSECONDS["SECOND"])


def _part(argument: Datum, values: Int64Array) -> KernelResult:
    return fine(column(values, validity(argument), BIGINT))


def _date_trunc(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    unit = call.arguments[0]
    assert isinstance(unit, Literal)
    argument = arguments[1]
    values, valid = instants(argument), validity(argument)
    result = _truncated(values, str(unit.value))
    # Before the first whole unit there is none; there the subtraction has wrapped around.
    wrapped = valid & (result > values)
    return failing(column(result, valid, BIGINT).cast(TIMESTAMP), wrapped, TIMESTAMP_OVERFLOW)


def _truncated(values: Int64Array, unit: str) -> Int64Array:
    day = values // _DAY
    if unit in CALENDAR:
        months = _months(day).astype(np.int64)
        return day_of((months - months % CALENDAR[unit]).astype("M8[M]")) * _DAY
    if unit == "WEEK":
        return (day - (day + _MONDAY) % 7) * _DAY
    return values - values % MICROSECONDS[unit]


def _as_is(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(arguments[0].cast(call.type))


def _as_python(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    day = days(arguments[0])
    outside = validity(arguments[0]) & ((day < _FIRST_IN_PYTHON) | (day > _LAST_IN_PYTHON))
    return failing(arguments[0], np.broadcast_to(outside, np.shape(day)), NOT_IN_PYTHON)


KERNELS: Final[dict[str, Kernel]] = {
    "YEAR": _year,
    "MONTH": _month,
    "DAY": _day,
    "HOUR": _hour,
    "MINUTE": _minute,
    "SECOND": _second,
    "DATE_TRUNC": _date_trunc,
    "UNIX_MICROS": _as_is,
    AS_PYTHON: _as_python,
}
"""The functions of points in time."""
