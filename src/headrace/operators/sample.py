"""Which rows a sample holds: a function of the row, the same in every process and for ever."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import numpy as np

from headrace.elements import Batch, BoolArray, Int64Array
from headrace.kernels.rows.hashing import fold_words
from headrace.operators.state.keys import hash_rows, normalise

SALT: Final = 0x53414D504C45
"""Folded into the hashes of rows, which spread them over buckets: a sample must reach all buckets."""


def sampled(batch: Batch, percent: Decimal) -> BoolArray:
    """Which elements are in a sample of so many percent: their salted hash is below that part of 2^64."""
    columns = [normalise(column) for column in batch.payload.columns]
    hashes = hash_rows(columns, len(batch))
    salt: Int64Array = np.full(len(batch), SALT, dtype=np.int64)
    fold_words(salt, np.ones(len(batch), dtype=np.uint8), hashes)
    last = int(percent * 2**64 / 100) - 1
    return np.asarray(hashes.view(np.uint64) <= np.uint64(max(last, 0)))
