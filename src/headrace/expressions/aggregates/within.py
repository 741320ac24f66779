"""Aggregates that may be so many percent off: which there are, and how many blocks their error takes.

`headrace.reference.summaries` defines their values.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from typing import Final

from headrace.errors import LanguageError
from headrace.expressions.tree import AggregateCall, Within
from headrace.schema import BIGINT, sql_type

LEAST_PERCENT: Final = Decimal("0.1")
"""Below, what is kept would be as much as windows of ten thousand rows are."""
MOST_PERCENT: Final = Decimal(50)
"""Above, nothing is saved any more."""

_OTHERS: Final = "write it without WITHIN, which is exact"


def approximate_call(name: str, call: AggregateCall, bound: Within) -> AggregateCall:
    """An aggregate with a bound of its error.

    Args:
        name: of the aggregate as it is written.
        call: the exact one.
        bound: how far off it may be.

    Raises:
        LanguageError: the percentage, the aggregate or the type of its argument does not allow it; without a
            position.
    """
    if not LEAST_PERCENT <= bound.percent <= MOST_PERCENT:
        message = f"WITHIN takes a percentage from {LEAST_PERCENT} to {MOST_PERCENT}, not {bound.percent:f}"
        hint = "write WITHIN 1 PERCENT" if bound.percent > 0 else _OTHERS
        raise LanguageError(message, hint=hint)
    if call.function not in ("COUNT", "SUM", "AVG") or call.user is not None:
        raise LanguageError(f"{name} does not take WITHIN: only COUNT, SUM and AVG do", hint=_OTHERS)
    if call.distinct:
        raise LanguageError(f"{name}(DISTINCT ...) does not take WITHIN", hint=_OTHERS)
    argument = call.argument
    if call.function != "COUNT" and argument is not None and argument.type != BIGINT:
        hint = f"count in whole units, as in {name}(CAST(x * 100 AS BIGINT)), or leave WITHIN out"
        raise LanguageError(f"{name} WITHIN takes BIGINTs, not {sql_type(argument.type)}", hint=hint)
    return replace(call, within=Within(bound.percent.normalize(), bound.side))


def blocks_of(call: AggregateCall) -> int:
    """How many blocks of a level lie in a window at most, so that the error is what was asked for.

    At most `percent` of a hundred for COUNT and SUM, whose error is below one of so many blocks less one. AVG
    is a quotient of both, each with an error of e, which makes (1 + e) / (1 - e) - 1: so e is p / (2 + p).
    """
    assert call.within is not None
    whole = 100 / call.within.percent
    needed = 2 * whole + 1 if call.function == "AVG" else whole
    return int(needed.to_integral_value(ROUND_CEILING)) + 1
