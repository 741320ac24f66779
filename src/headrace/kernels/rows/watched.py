"""Some values of each block of a Bloom filter, of which it is known exactly until when they are there."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from headrace.elements import Float64Array, Int64Array
from headrace.kernels.jit import BYTES, INT, INT1, INT1_OUT, inner, kernel
from headrace.time import BEGINNING, INFINITY

PLACES: Final = 8
"""So many values of a block are known at most."""
FACTS: Final = 4
"""The numbers that describe a block beside them; see `watch`."""
NONE_KNOWN: Final = 64
"""Nothing is known of any value: no hash ends in so many zeros."""
_FEW: Final = 4
"""With a quarter of its places in use a block takes in twice as many values."""
_COUNT: Final = 0
_KEPT: Final = 1
_KNOWN: Final = 2
_SINCE: Final = 3
_FIRST: Final = BEGINNING
_NEVER: Final = INFINITY


@inner
def _zeros(word):  # type: ignore[no-untyped-def]
    """The number of zeros at the end of a hash, 63 at most."""
    found = 0
    while found < NONE_KNOWN - 1 and (word >> found) & 1 == 0:
        found += 1
    return found


@inner
def _let_go(now, kept, values, ends, facts):  # type: ignore[no-untyped-def]
    """Leave out values that are no longer there, or whose hashes end in too few zeros."""
    count = 0
    for place in range(facts[_COUNT]):
        if ends[place] > now and _zeros(values[place]) >= kept:
            values[count], ends[count] = values[place], ends[place]
            count += 1
    facts[_COUNT] = count


@inner
def _enter(value, end, now, values, ends, facts):  # type: ignore[no-untyped-def]
    """Take in a value; where there is no place for it, only half of the values are known from then on."""
    zeros = _zeros(value)
    if zeros < facts[_KEPT]:
        return
    for place in range(facts[_COUNT]):
        if values[place] == value:
            ends[place] = max(ends[place], end)
            return
    while facts[_COUNT] == PLACES and zeros >= facts[_KEPT]:
        facts[_KEPT] += 1
        facts[_KNOWN] = max(facts[_KNOWN], facts[_KEPT])
        _let_go(now, facts[_KEPT], values, ends, facts)
    if zeros >= facts[_KEPT]:
        place = facts[_COUNT]
        values[place], ends[place] = value, end
        facts[_COUNT] += 1


@inner
def _pass(now, size, values, ends, facts):  # type: ignore[no-untyped-def]
    """Come to an instant: what has ended goes, and more values are taken in where there is room for them."""
    _let_go(now, facts[_KEPT], values, ends, facts)
    if now >= facts[_SINCE]:
        facts[_KNOWN], facts[_SINCE] = facts[_KEPT], _FIRST
        if facts[_KEPT] > 0 and _FEW * facts[_COUNT] <= PLACES:
            # All that are there have come again, or have left, when the window has passed.
            facts[_KEPT] -= 1
            facts[_SINCE] = _NEVER if size >= _NEVER - max(now, 0) else now + size


@kernel(INT1, INT1, INT1, BYTES, INT1, INT, INT, INT1_OUT, INT1_OUT, INT1_OUT)
def watch(
    blocks: Int64Array,
    instants: Int64Array,
    until: Int64Array,
    enters: npt.NDArray[np.uint8],
    hashes: Int64Array,
    after: int,
    size: int,
    values: Int64Array,
    ends: Int64Array,
    facts: Int64Array,
) -> tuple[Int64Array, Float64Array]:
    """Until when the values of some rows are there, exactly, by the rows before them.

    Of each block the values are known whose hashes end in so many zeros that there is a place for all that
    are there: which these are does not depend on the order of the rows of an instant.

    Args:
        blocks: int64[n], the block of each row; those of one block are together, in order of instants.
        instants: int64[n].
        until: int64[n], the instant up to which each row is there.
        enters: uint8[n], 1 for rows that enter.
        hashes: int64[n], of their values.
        after: 0 where rows are looked up before those of their instant enter, else 1.
        size: for how long a row is there at most (instants).
        values: int64[b * PLACES], the hashes of the values that are known of each block; changed.
        ends: int64[b * PLACES], until when these are there (instants); changed.
        facts: int64[b * FACTS], of each block how many values are known; in how many zeros the hashes of
            those end that are taken in; in how many those end of which it is known whether they are there;
            and from which instant on that is known of all that are taken in. Changed.

    Returns:
        Of each row until when its value is there by those before it, BEGINNING where there were none
        (int64[n]); and how many rows it stands for, 0 where nothing is known of it (float64[n]).
    """
    count = len(blocks)
    own, weights = np.full(count, _FIRST), np.zeros(count)
    first = 0
    while first < count:
        block, now = blocks[first], instants[first]
        last = first
        while last < count and blocks[last] == block and instants[last] == now:
            last += 1
        there = values[block * PLACES : (block + 1) * PLACES]
        left = ends[block * PLACES : (block + 1) * PLACES]
        known = facts[block * FACTS : (block + 1) * FACTS]
        _pass(now, size, there, left, known)
        for turn in range(2):
            for row in range(first, last):
                if turn != after:
                    if enters[row]:
                        _enter(hashes[row], until[row], now, there, left, known)
                elif _zeros(hashes[row]) >= known[_KNOWN]:
                    weights[row] = 2.0 ** known[_KNOWN]
                    for place in range(known[_COUNT]):
                        if there[place] == hashes[row]:
                            own[row] = left[place]
        first = last
    return own, weights
