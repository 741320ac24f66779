"""Numbers as limbs: exact sums and products of doubles, integers and decimals.

A number is a sign and a magnitude, cut into limbs of 32 bits. The limb at place p counts 2^(32 p) units: of 1
for integers, of 2^-1074 for doubles, whose 2098 bits fill the places 0 to 65. Each place at which some row
has a limb that is not 0 is an int64 column, which is added up without carries, so that adding is exact, in
any order, and subtracting undoes it (Neal 2015, "Fast exact summation using small and large
superaccumulators"). Most columns of doubles need three or four of the places.
"""

from __future__ import annotations

import numpy as np

from headrace.elements import Float64Array, Int64Array
from headrace.kernels.jit import FLOAT1, INT, INT1, INT2, kernel
from headrace.kernels.numbers.integers import MASK, negate


@kernel(FLOAT1)
def split_doubles(values: Float64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Cut finite doubles into limbs, in units of 2^-1074.

    Returns:
        The sign of each (-1 or 1; int64[n]), the place of its lowest limb (int64[n]), and its limbs, lowest
        first (int64[n, 3]).
    """
    bits = values.view(np.int64)
    count = len(bits)
    signs = np.empty(count, dtype=np.int64)
    first = np.empty(count, dtype=np.int64)
    limbs = np.empty((count, 3), dtype=np.int64)
    for row in range(count):
        exponent = (bits[row] >> 52) & 0x7FF
        mantissa = bits[row] & 0xFFFFFFFFFFFFF
        if exponent > 0:
            mantissa |= 1 << 52
            exponent -= 1
        shift = exponent & 31
        signs[row] = -1 if bits[row] < 0 else 1
        first[row] = exponent >> 5
        limbs[row, 0] = (mantissa << shift) & MASK
        limbs[row, 1] = (mantissa >> (32 - shift)) & MASK
        # Below a shift of 11 the 53 bits end in the second limb; one by 64 bits would be none at all.
        limbs[row, 2] = mantissa >> (64 - shift) if shift > 11 else 0
    return signs, first, limbs


@kernel(INT2)
def split_integers(words: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Cut signed integers into limbs.

    Args:
        words: int64[n, k], the words of each in two's complement, lowest first.

    Returns:
        The sign of each (-1 or 1; int64[n]), and the limbs of its magnitude, lowest first (int64[n, 2 * k]).
    """
    count, size = words.shape
    signs = np.empty(count, dtype=np.int64)
    limbs = np.empty((count, 2 * size), dtype=np.int64)
    for row in range(count):
        for place in range(size):
            limbs[row, 2 * place] = words[row, place] & MASK
            limbs[row, 2 * place + 1] = (words[row, place] >> 32) & MASK
        signs[row] = -1 if words[row, size - 1] < 0 else 1
        if signs[row] < 0:
            negate(limbs[row], 2 * size)
    return signs, limbs


@kernel(INT2, INT2)
def multiply_limbs(left: Int64Array, right: Int64Array) -> Int64Array:
    """The products of magnitudes, row by row; int64[n, a] times int64[n, b] is int64[n, a + b]."""
    count, size = left.shape
    result = np.zeros((count, size + right.shape[1]), dtype=np.int64)
    for row in range(count):
        for place in range(size):
            # As in `multiply`; a view of each row would take longer than the work.
            factor, carry = np.uint64(left[row, place]), np.uint64(0)
            if factor == np.uint64(0):
                continue
            for other in range(right.shape[1]):
                total = factor * np.uint64(right[row, other]) + np.uint64(result[row, place + other]) + carry
                result[row, place + other] = np.int64(total & np.uint64(MASK))
                carry = total >> np.uint64(32)
            result[row, place + right.shape[1]] = np.int64(carry)
    return result


@kernel(INT1, INT1, INT2, INT)
def spread_limbs(
    factors: Int64Array, first: Int64Array, limbs: Int64Array, places: int
) -> tuple[Int64Array, Int64Array]:
    """Put limbs into columns, one per place at which there is one.

    Args:
        factors: int64[n], the sign of each number times how often it counts, below 2^31.
        first: int64[n], the place of each lowest limb.
        limbs: int64[n, k].
        places: how many places there are.

    Returns:
        The places in ascending order (int64[p]), and the limbs there (int64[n, p]).
    """
    count, size = limbs.shape
    column = np.zeros(places, dtype=np.int64)
    for row in range(count):
        for limb in range(size):
            if factors[row] != 0 and limbs[row, limb] != 0:
                column[first[row] + limb] = 1
    found = np.flatnonzero(column)
    for number in range(len(found)):
        column[found[number]] = number
    result = np.zeros((count, len(found)), dtype=np.int64)
    for row in range(count):
        for limb in range(size):
            if factors[row] != 0 and limbs[row, limb] != 0:
                result[row, column[first[row] + limb]] = factors[row] * limbs[row, limb]
    return found, result
