"""Dense codes for hashes, and stable orders by code."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, kernel


@kernel(INT1)
def dense_codes(hashes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Number equal hashes 0..k-1 in order of first appearance, by open addressing.

    Returns:
        The code of each row (int64[n]) and the first row of each code (int64[k]).
    """
    count = len(hashes)
    # The table grows with the keys, which may be few, so that it stays in a cache where it can.
    size = 1024
    mask = np.uint64(size - 1)
    table = np.full(size, -1, dtype=np.int64)
    codes = np.empty(count, dtype=np.int64)
    first = np.empty(count, dtype=np.int64)
    found = 0
    for row in range(count):
        key = hashes[row]
        slot = np.uint64(key) & mask
        while True:
            code = table[slot]
            if code < 0:
                table[slot] = found
                first[found] = row
                codes[row] = found
                found += 1
                break
            if hashes[first[code]] == key:
                codes[row] = code
                break
            slot = (slot + np.uint64(1)) & mask
        if 2 * found > size:
            size *= 4
            mask = np.uint64(size - 1)
            table = np.full(size, -1, dtype=np.int64)
            for code in range(found):
                slot = np.uint64(hashes[first[code]]) & mask
                while table[slot] >= 0:
                    slot = (slot + np.uint64(1)) & mask
                table[slot] = code
    return codes, first[:found].copy()


@kernel(INT1, INT1, INT)
def order_by_code(codes: Int64Array, rows: Int64Array, count: int) -> Int64Array:
    """`rows` stably sorted by their codes 0..count-1 (counting sort); int64[len(rows)]."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for place in range(len(rows)):
        starts[codes[rows[place]] + 1] += 1
    for code in range(count):
        starts[code + 1] += starts[code]
    result = np.empty(len(rows), dtype=np.int64)
    for place in range(len(rows)):
        code = codes[rows[place]]
        result[starts[code]] = rows[place]
        starts[code] += 1
    return result
