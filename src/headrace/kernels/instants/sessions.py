"""Sessions: where the rows of a key are cut by their distance and by the length of what they make up."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, kernel


@kernel(INT1, INT1, INT1, INT, INT)
def number_sessions(
    codes: Int64Array, first: Int64Array, last: Int64Array, gap: int, longest: int
) -> Int64Array:
    """Number the sessions of rows, key after key and in the order of time.

    Args:
        codes, first: int64[n], the key and the instant of each row, ascending by both.
        last: int64[n], the same instant, or for what is a whole session so far the instant of its last row.
        gap: so far after the last row, or farther, a row is of another session (instants).
        longest: and so far after the first row.

    Returns:
        int64[n], the number of each row's session, from 0.
    """
    numbers = np.empty(len(codes), dtype=np.int64)
    number, start, end = -1, 0, 0
    for row in range(len(codes)):
        if row == 0 or codes[row] != codes[row - 1] or first[row] >= end or first[row] - start >= longest:
            number += 1
            start = first[row]
        end = last[row] + gap
        numbers[row] = number
    return numbers
