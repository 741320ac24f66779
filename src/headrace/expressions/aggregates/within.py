"""Aggregates that may be so many percent off: which there are, and how much their error takes.

COUNT, SUM and AVG are of blocks, distinct counts and percentiles of samples.
`headrace.reference.summaries` defines their values.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from typing import Final

from headrace.errors import LanguageError
from headrace.expressions.tree import AggregateCall, Side, Within
from headrace.schema import BIGINT, sql_type

LEAST_PERCENT: Final = Decimal("0.1")
"""Below, what is kept would be as much as windows of ten thousand rows are."""
MOST_PERCENT: Final = Decimal(50)
"""Above, nothing is saved any more."""

LEAST_SAMPLED: Final = Decimal("0.5")
"""Below, a sample would have more than 150,000 values."""
DEFAULT_PERCENT: Final = Decimal(2)
"""That of APPROX_COUNT_DISTINCT and its like where nothing is said."""

_OTHERS: Final = "write it without WITHIN, which is exact"
_EXACT: Final = {
    "APPROX_COUNT_DISTINCT": "write COUNT(DISTINCT x), which is exact",
    "APPROX_PERCENTILE": "write PERCENTILE(x, 0.9), which is exact",
    "APPROX_TOP_K": "write TOP_K(x, 3), which is exact",
}
_OF_SAMPLES: Final = ("PERCENTILE", "PERCENTILE_DISC", "TOP_K")


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
    within = replace(call, within=Within(bound.percent.normalize(), bound.side))
    sampled = is_sampled(within)
    least = LEAST_SAMPLED if sampled else LEAST_PERCENT
    if not least <= bound.percent <= MOST_PERCENT:
        of = f" of {name}" if sampled else ""
        message = f"WITHIN{of} takes a percentage from {least} to {MOST_PERCENT}, not {bound.percent:f}"
        hint = "write WITHIN 1 PERCENT" if bound.percent > 0 else _EXACT.get(name, _OTHERS)
        raise LanguageError(message, hint=hint)
    if sampled:
        return _sampled_call(name, within)
    if call.function not in ("COUNT", "SUM", "AVG") or call.user is not None:
        message = f"{name} does not take WITHIN: only COUNT, SUM, AVG, PERCENTILE and TOP_K do"
        raise LanguageError(message, hint=_OTHERS)
    if call.distinct:
        raise LanguageError(f"{name}(DISTINCT ...) does not take WITHIN", hint=_OTHERS)
    argument = call.argument
    if call.function != "COUNT" and argument is not None and argument.type != BIGINT:
        hint = f"count in whole units, as in {name}(CAST(x * 100 AS BIGINT)), or leave WITHIN out"
        raise LanguageError(f"{name} WITHIN takes BIGINTs, not {sql_type(argument.type)}", hint=hint)
    return within


def _sampled_call(name: str, call: AggregateCall) -> AggregateCall:
    """An aggregate of a sample; refused where several columns make the values, or TOP_K shall have bounds."""
    assert call.within is not None
    if call.distinct and call.others:
        raise LanguageError(f"{name}(DISTINCT ...) WITHIN takes one column", hint=_OTHERS)
    if call.within.side is not Side.ESTIMATE and call.function == "TOP_K":
        hint = "give it one name: which values are the most frequent ones is told by the sample as well"
        raise LanguageError(f"{name} has no {call.within.side.value}", hint=hint)
    return call


def is_sampled(call: AggregateCall) -> bool:
    """Whether an aggregate is of a sample: a distinct count, a percentile or TOP_K with a bound."""
    if call.within is None or call.user is not None:
        return False
    return call.function in _OF_SAMPLES or (call.function == "COUNT" and call.distinct)


def sample_size(call: AggregateCall) -> int:
    """The number of values of a sample, so that in 19 of 20 cases the error is within what was asked for.

    Two standard errors are `percent` of a hundred. That of a distinct count of a sample of k values is
    1 / sqrt(k - 2) of it (Bar-Yossef et al., RANDOM 2002, and Beyer et al., SIGMOD 2007, section 4.3). It is
    as much of all rows that a value's count in TOP_K is off. The share of the rows below a percentile is that
    of k draws, whose standard error is 1 / (2 sqrt(k)) at most.
    """
    assert call.within is not None
    if call.function in ("COUNT", "TOP_K"):
        return int(((200 / call.within.percent) ** 2).to_integral_value(ROUND_CEILING)) + 2
    return int(((100 / call.within.percent) ** 2).to_integral_value(ROUND_CEILING))


def fraction_of_bound(call: AggregateCall, fraction: float) -> float | None:
    """The fraction at which a bound of a percentile lies in a sample; None where none does.

    In 19 of 20 samples the share of the sample below a percentile of all rows is at most `percent` of a
    hundred from that of all; so the percentile is between those of the sample at these shares.

    Args:
        call: PERCENTILE or PERCENTILE_DISC, with a side.
        fraction: that of the estimate.
    """
    assert call.within is not None
    width = float(call.within.percent) / 100
    # DESC, which is all that an order can be here, counts from above.
    below = (call.within.side is Side.LOWER) is not bool(call.order)
    bound = fraction - width if below else fraction + width
    return bound if 0 <= bound <= 1 else None


def blocks_of(call: AggregateCall) -> int:
    """How many blocks of a level lie in a window at most, so that the error is what was asked for.

    At most `percent` of a hundred for COUNT and SUM, whose error is below one of so many blocks less one. AVG
    is a quotient of both, each with an error of e, which makes (1 + e) / (1 - e) - 1: so e is p / (2 + p).
    """
    assert call.within is not None
    whole = 100 / call.within.percent
    needed = 2 * whole + 1 if call.function == "AVG" else whole
    return int(needed.to_integral_value(ROUND_CEILING)) + 1
