"""Aggregates of windows that may be some percent off.

Counts and sums are told by the blocks of amounts in which windows begin: the deterministic wave of Gibbons
and Tirthapura (SPAA 2002), as a function of a window's content. Their waves have the ranks of all elements
there ever were, here ranks begin anew with every lap of the window's length.

Distinct counts and percentiles are told by the values of a group that have the smallest hashes. Such a
bottom-k sample (Cohen and Kaplan, PODC 2007) is a function of the content; of distinct values it is the KMV
synopsis of Beyer, Haas, Reinwald, Sismanis and Gemulla (SIGMOD 2007).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

from headrace.errors import ExecutionError
from headrace.expressions.aggregates.within import (
    blocks_of,
    fraction_of_bound,
    is_sampled,
    sample_size,
)
from headrace.expressions.tree import AggregateCall, Literal, Side, Within
from headrace.reference.aggregates import aggregate
from headrace.reference.contents import Payload, payload
from headrace.reference.sampling import drawn

Amounts = Mapping[int, int]
"""By instant, the amount of the elements that begin then."""

MOST = 2**63 - 1
"""The largest BIGINT."""


def approximate(call: AggregateCall, begun: Mapping[int, list[Payload]], size: int, instant: int) -> object:
    """An approximate aggregate of a group.

    Args:
        call: what to compute.
        begun: by instant, for each row of the group that begins then and for which the condition is true the
            values of `arguments_of(call)`.
        size: how long each row lasts (instants).
        instant: when it is asked for.

    Raises:
        ExecutionError: a SUM is beyond its type, or a number is negative.
    """
    assert call.within is not None
    if is_sampled(call):
        live = {when: rows for when, rows in begun.items() if instant - size < when <= instant}
        return of_sample(call, live)
    known = {when: [row for row in rows if None not in row] for when, rows in begun.items()}
    counts = {when: len(rows) for when, rows in known.items()}
    if call.function == "COUNT":
        return _of(call.within.side, *bounds(counts, size, instant, blocks_of(call)))
    if not any(counts[when] for when in counts if instant - size < when <= instant):
        return None
    sums = {when: sum(_number(call, row[0]) for row in rows) for when, rows in known.items()}
    least, most = bounds(sums, size, instant, blocks_of(call))
    if least > MOST:
        raise ExecutionError(f"{call.function} overflows BIGINT")
    most = min(most, MOST)
    if call.function == "SUM":
        return _of(call.within.side, least, most)
    fewest, rows_at_most = bounds(counts, size, instant, blocks_of(call))
    match call.within.side:
        case Side.ESTIMATE:
            return float(Fraction((least + most) // 2, (fewest + rows_at_most) // 2))
        case Side.LOWER:
            return float(Fraction(least, rows_at_most))
        case Side.UPPER:
            return float(Fraction(most, fewest))


def bounds(amounts: Amounts, size: int, instant: int, blocks: int) -> tuple[int, int]:
    """The smallest and the largest amount that a window may have, as far as its blocks tell.

    The window begins in the lap before the present one, after `gone` of that lap's amount. That is known
    where it is none or all of it. Else blocks of 2^level are looked at, of the smallest level of which fewer
    than `blocks` reach from the one with `gone` to the present; and `gone` is one of the amounts in that
    block.
    """
    lap = instant // size
    before = sorted(when for when in amounts if when // size == lap - 1)
    since = sum(amount for when, amount in amounts.items() if lap * size <= when <= instant)
    reached = [0, *accumulate(amounts[when] for when in before)]
    gone = sum(amounts[when] for when in before if when <= instant - size)
    if gone in (0, reached[-1]):
        return (reached[-1] - gone + since,) * 2
    level = 0
    while (reached[-1] - (gone >> level << level) + since) >> level >= blocks:
        level += 1
    same = [amount for amount in reached if amount >> level == gone >> level]
    return reached[-1] - max(same) + since, reached[-1] - min(same) + since


def _of(side: Side, least: int, most: int) -> int:
    match side:
        case Side.ESTIMATE:
            return (least + most) // 2
        case Side.LOWER:
            return least
        case Side.UPPER:
            return most


def _number(call: AggregateCall, value: Any) -> int:
    if value < 0:
        raise ExecutionError(f"{call.function} WITHIN takes no negative numbers")
    return int(value)


def of_sample(call: AggregateCall, live: Mapping[int, list[Payload]]) -> object:
    """A distinct count, a percentile or the most frequent values of a sample.

    Args:
        call: what to compute.
        live: by the instant at which they begin, the rows of the group for which the condition is true, as
            the values of `arguments_of(call)`.
    """
    limit, rows = sample_size(call), _by_hash(call, live)
    first = sorted(rows)[:limit]
    if len(first) < limit:
        return _of_values(call, [rows[place] for place in first], 1)
    # Of n numbers between 0 and 1 the k-th smallest is k / (n + 1) on average; and there are k at least.
    among = max((limit - 1) * 2.0**63 / (first[-1] + 1), limit)
    assert call.within is not None
    if call.function == "COUNT":
        return _distinct(among, limit, call.within)
    if call.function != "TOP_K" and call.within.side is not Side.ESTIMATE:
        (fraction,) = call.others
        assert isinstance(fraction, Literal)
        assert isinstance(fraction.value, float)
        bound = fraction_of_bound(call, fraction.value)
        if bound is None:
            return None
        call = replace(call, others=(replace(fraction, value=bound),))
    return _of_values(call, [rows[place] for place in first], among / limit)


def _distinct(among: float, least: int, within: Within) -> int:
    """A distinct count of which the estimate is in question, as far as it may be off in 19 of 20 samples."""
    part = float(within.percent) / 100
    match within.side:
        case Side.ESTIMATE:
            return int(among)
        case Side.LOWER:
            return max(math.ceil(among / (1 + part)), least)
        case Side.UPPER:
            return math.floor(among / (1 - part))


def _of_values(call: AggregateCall, rows: list[Payload], scale: float) -> object:
    """The exact aggregate of the rows of a sample; counts of TOP_K are of all rows, so many times as many."""
    found: Any = aggregate(replace(call, within=None), rows)
    if call.function != "TOP_K" or not found:
        return found
    return tuple((item, int(count * scale)) for item, count in found)


def _by_hash(call: AggregateCall, live: Mapping[int, list[Payload]]) -> dict[int, Payload]:
    """The rows with values by their hashes, of 63 bits.

    A distinct count has one for each value. Else there is one for each row: of its value, the instant at
    which it begins, and its number among those of which both are the same.
    """
    assert call.argument is not None
    types = (call.argument.type,)
    found: dict[int, Payload] = {}
    for when, rows in live.items():
        counts: dict[Payload, int] = {}
        for row in (row for row in rows if row[0] is not None):
            value = payload(row[:1])
            number = counts[value] = counts.get(value, -1) + 1
            words = () if call.distinct else (when, number)
            found[drawn(value, types, *words) >> 1] = row
    return found
