"""The aggregates of values in an order: AUTOCORR, EWMA and EWM_STDDEV."""

from __future__ import annotations

from typing import Final

from headrace.errors import LanguageError
from headrace.expressions.coercion import argument_hint, is_numeric, make_cast
from headrace.expressions.tree import AggregateCall, Expression, Literal
from headrace.schema import BIGINT, DOUBLE, UNKNOWN, sql_type
from headrace.time import MAX_INSTANT

AUTOCORR_USAGE: Final = "write AUTOCORR(x, 24 ORDER BY ts), of each value with the one 24 places later"
"""How AUTOCORR is written, for hints."""


def autocorrelation_call(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    """The typed `AUTOCORR(x, lag)`.

    Raises:
        LanguageError: x is no number, or the lag no whole number of 1 or more; without a position.
    """
    lag = arguments[1]
    if not (isinstance(lag, Literal) and lag.type == BIGINT and isinstance(lag.value, int)) or not (
        1 <= lag.value <= MAX_INSTANT
    ):
        raise LanguageError(f"the lag of {name} is a whole number of places, from 1 on", hint=AUTOCORR_USAGE)
    return AggregateCall(name, _double(name, arguments[0]), DOUBLE, (lag,))


def weighted_call(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    """The typed `EWMA(x, alpha)` or `EWM_STDDEV(x, alpha)`.

    Raises:
        LanguageError: x is no number, or alpha no constant above 0 and up to 1; without a position.
    """
    alpha = make_cast(arguments[1], DOUBLE) if is_numeric(arguments[1].type) else arguments[1]
    if not isinstance(alpha, Literal) or not isinstance(alpha.value, float) or not 0 < alpha.value <= 1:
        raise LanguageError(
            f"the weight of the newest value in {name} is a number above 0 and up to 1",
            hint=f"write {name}(x, 0.1 ORDER BY ts), or 0.067 for a half-life of ten rows",
        )
    return AggregateCall(name, _double(name, arguments[0]), DOUBLE, (alpha,))


def _double(name: str, argument: Expression) -> Expression:
    if argument.type != UNKNOWN and not is_numeric(argument.type):
        raise LanguageError(
            f"{name} takes numbers, not {sql_type(argument.type)}", hint=argument_hint(argument.type)
        )
    return make_cast(argument, DOUBLE)
