"""Counts and sums of windows that may be some percent off: by the blocks of amounts in which they begin.

The deterministic wave of Gibbons and Tirthapura (SPAA 2002), as a function of a window's content: their waves
have the ranks of all elements there ever were, here ranks begin anew with every lap of the window's length.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any

from headrace.errors import ExecutionError
from headrace.expressions.aggregates.within import blocks_of
from headrace.expressions.tree import AggregateCall, Side
from headrace.reference.contents import Payload

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
