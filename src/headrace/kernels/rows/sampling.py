"""The number of equal rows that are in a sample: each has a hash of its own, by its number among them."""

from __future__ import annotations

from typing import Final

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, kernel
from headrace.kernels.rows.hashing import GOLDEN, fold_words, mix

SALT: Final = 0x53414D504C45
"""Folded into the hashes of rows, which spread them over buckets: a sample must reach all buckets."""


@kernel(INT1, INT1, INT1, INT)
def sampled_counts(hashes: Int64Array, codes: Int64Array, counts: Int64Array, last: int) -> Int64Array:
    """The number of rows in the sample of each number of equal rows.

    Args:
        hashes: int64[k], the hash of each of k different rows.
        codes: int64[n], which row each count is of.
        counts: int64[n]; none is sampled of a count below zero.
        last: the bits of the largest hash, without a sign, that is in the sample.

    Returns:
        int64[n].
    """
    most = np.zeros(len(hashes), dtype=np.int64)
    for place in range(len(codes)):
        most[codes[place]] = max(most[codes[place]], counts[place])
    # The sampled ones among the first 0, 1, 2 and so on of each row, one row after the other.
    starts = np.empty(len(hashes), dtype=np.int64)
    size = 0
    for code in range(len(hashes)):
        starts[code] = size
        size += most[code] + 1
    among = np.empty(size, dtype=np.int64)
    for code in range(len(hashes)):
        found = 0
        among[starts[code]] = 0
        for number in range(most[code]):
            own = mix(np.uint64(hashes[code]) ^ mix(np.uint64(number) + GOLDEN))
            if own <= np.uint64(last):
                found += 1
            among[starts[code] + number + 1] = found
    taken = np.empty(len(codes), dtype=np.int64)
    for place in range(len(codes)):
        taken[place] = among[starts[codes[place]] + max(counts[place], 0)]
    return taken


def folded(hashes: Int64Array, words: Int64Array) -> Int64Array:
    """The hashes with a word folded into each; int64[n]."""
    found = hashes.copy()
    fold_words(words, np.ones(len(words), dtype=np.uint8), found)
    return found
