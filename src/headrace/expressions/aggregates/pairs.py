"""Which pairs of series CORRELATED_PAIRS gives: the constants among its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.expressions.coercion import is_numeric, make_cast
from headrace.expressions.tree import AggregateCall, Expression, Literal
from headrace.schema import BIGINT, DOUBLE, TIMESTAMP, UNKNOWN, sql_type
from headrace.time import MAX_INSTANT

USAGE: Final = (
    "write FROM CORRELATED PAIRS OF (SELECT device, value FROM reading) OVER (RANGE 1 HOUR SLIDE 1 MINUTE) "
    "ABOVE 0.9"
)
"""How the pairs are written, for hints."""

CALL_USAGE: Final = (
    "write CORRELATED_PAIRS(device, at, value, step, above, below, lags, fewest), the last five constants, "
    "or FROM CORRELATED PAIRS OF (SELECT device, value FROM reading) OVER (RANGE 1 HOUR SLIDE 1 MINUTE) "
    "ABOVE 0.9"
)
"""How the aggregate is written, for hints."""

READ: Final = 3
"""So many of the arguments are read of each row: the series, the instant and the value."""


@dataclass(frozen=True)
class PairRule:
    """Which pairs are wanted.

    Attributes:
        step: the distance of the instants at which series are compared (instants).
        above: pairs whose correlation is larger than that are wanted; None where none is by that.
        below: those whose correlation is smaller than that; None where none is by that.
        lags: by up to so many steps one series may follow the other.
        fewest: at so many instants both have to have a value, two or more.
    """

    step: int
    above: float | None
    below: float | None
    lags: int
    fewest: int

    @classmethod
    def of(cls, call: AggregateCall) -> PairRule:
        """That of a call of CORRELATED_PAIRS."""
        step, above, below, lags, fewest = (_value(part) for part in call.others[READ - 1 :])
        return cls(step, above, below, lags, fewest)


def pairs_call(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    """The typed `CORRELATED_PAIRS(series, at, value, step, above, below, lags, fewest)`.

    Raises:
        LanguageError: an argument has a wrong type, or is no constant; without a position.
    """
    series, at, value, *constants = arguments
    if at.type == UNKNOWN:
        at = make_cast(at, BIGINT)
    if at.type not in (BIGINT, TIMESTAMP):
        raise LanguageError(
            f"{name} takes instants as its second argument, not {sql_type(at.type)}", hint=CALL_USAGE
        )
    if not (is_numeric(value.type) or value.type == UNKNOWN):
        raise LanguageError(
            f"{name} takes numbers as its third argument, not {sql_type(value.type)}", hint=CALL_USAGE
        )
    step, above, below, lags, fewest = (
        _constant(name, part, dtype)
        for part, dtype in zip(constants, (BIGINT, DOUBLE, DOUBLE, BIGINT, BIGINT), strict=True)
    )
    _check(name, PairRule(*map(_value, (step, above, below, lags, fewest))))
    others = (at, make_cast(value, DOUBLE), step, above, below, lags, fewest)
    return AggregateCall(name, series, pairs_type(series.type), others)


def pairs_type(series: pa.DataType) -> pa.DataType:
    """The type of the pairs of series that have values of a type."""
    names = (("first", series), ("second", series), ("correlation", DOUBLE), ("lag", BIGINT))
    return pa.list_(pa.struct(list(names)))


def _check(name: str, rule: PairRule) -> None:
    if None in (rule.step, rule.lags, rule.fewest):
        raise LanguageError(
            f"the step, the lags and the fewest values of {name} are numbers", hint=CALL_USAGE
        )
    if rule.above is None and rule.below is None:
        raise LanguageError(
            f"{name} needs a threshold, of those above or below which pairs are wanted", hint=CALL_USAGE
        )
    for threshold in (rule.above, rule.below):
        if threshold is not None and not -1 <= threshold <= 1:
            raise LanguageError(
                f"a correlation is between -1 and 1, and never beyond {threshold!r}", hint=CALL_USAGE
            )
    if not 1 <= rule.step <= MAX_INSTANT or not 0 <= rule.lags <= MAX_INSTANT or rule.fewest < 2:
        raise LanguageError(
            f"{name} takes a step of 1 or more, no negative lag, and two values or more", hint=CALL_USAGE
        )


def _constant(name: str, argument: Expression, dtype: pa.DataType) -> Literal:
    found = make_cast(argument, dtype) if is_numeric(argument.type) else argument
    if isinstance(found, Literal) and found.value is None:
        return Literal(None, dtype)
    if not isinstance(found, Literal) or found.type != dtype:
        raise LanguageError(f"{name} takes constants after its third argument", hint=CALL_USAGE)
    return found


def _value(part: Expression) -> Any:
    assert isinstance(part, Literal)
    return part.value
