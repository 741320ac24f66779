"""Numbers of hashes that are kept over batches, by open addressing.

A table is int64[slots, 2], the hash and its number beside each other, so that most looks take one cache line.
`slots` is a power of two, at most half of them are taken, and an empty slot has the number -1.
"""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, INT1_OUT, INT2, INT2_OUT, inner, kernel


@inner
def _slot_of(key, table):  # type: ignore[no-untyped-def]
    """Where a hash is, or would be."""
    mask = np.uint64(len(table) - 1)
    slot = np.uint64(key) & mask
    while table[slot, 1] >= 0 and table[slot, 0] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel(INT1, INT, INT2_OUT)
def enter(hashes: Int64Array, start: int, table: Int64Array) -> Int64Array:
    """Put hashes into a table, each with its place as its number.

    Args:
        hashes: int64[n].
        start: the place of the first one that is put in.
        table: is changed, and has room for them.

    Returns:
        The places of those that are in the table with another number, and keep that.
    """
    known = np.empty(len(hashes), dtype=np.int64)
    count = 0
    for place in range(start, len(hashes)):
        slot = _slot_of(hashes[place], table)
        if table[slot, 1] >= 0:
            known[count] = place
            count += 1
        else:
            table[slot, 0] = hashes[place]
            table[slot, 1] = place
    return known[:count].copy()


@kernel(INT1, INT2, INT1_OUT)
def look_up(hashes: Int64Array, table: Int64Array, numbers: Int64Array) -> int:
    """Write the number of each hash to `numbers` (int64[n]), -1 where it has none.

    Returns:
        How many have none.
    """
    missing = 0
    for row in range(len(hashes)):
        number = table[_slot_of(hashes[row], table), 1]
        numbers[row] = number
        missing += number < 0
    return missing
