"""Integers of any length, for kernels: vectors of limbs of 32 bits, the lowest limb first."""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.jit import inner

LIMB_BITS = 32
MASK = 0xFFFFFFFF


@inner
def negate(limbs, length):  # type: ignore[no-untyped-def]
    """Change the sign of an integer in two's complement, in place."""
    carry = 1
    for place in range(length):
        total = (limbs[place] ^ MASK) + carry
        limbs[place] = total & MASK
        carry = total >> 32


@inner
def multiply(left, left_length, right, right_length, result):  # type: ignore[no-untyped-def]
    """Write the product of two magnitudes to the first `left_length + right_length` places of `result`."""
    for place in range(left_length + right_length):
        result[place] = 0
    for place in range(left_length):
        factor = np.uint64(left[place])
        if factor == np.uint64(0):
            continue
        carry = np.uint64(0)
        for other in range(right_length):
            # At most (2^32 - 1)^2 + 2 (2^32 - 1), which is 2^64 - 1.
            total = factor * np.uint64(right[other]) + np.uint64(result[place + other]) + carry
            result[place + other] = np.int64(total & np.uint64(MASK))
            carry = total >> np.uint64(32)
        result[place + right_length] = np.int64(carry)


@inner
def trimmed(limbs, length):  # type: ignore[no-untyped-def]
    """The length without zeros at the top."""
    while length > 0 and limbs[length - 1] == 0:
        length -= 1
    return length


@inner
def bit_length(limbs, length):  # type: ignore[no-untyped-def]
    """How many bits an integer has whose highest limb is not 0."""
    _, bits = math.frexp(float(limbs[length - 1]))
    return 32 * (length - 1) + bits


@inner
def limbs_above(limbs, length, shift):  # type: ignore[no-untyped-def]
    """An integer divided by 2^shift, cut to a whole number below 2^63; a negative shift multiplies."""
    result = 0
    for place in range(length):
        distance = 32 * place - shift
        if -32 < distance < 64:
            result += limbs[place] << distance if distance >= 0 else limbs[place] >> -distance
    return result


@inner
def any_below(limbs, bit):  # type: ignore[no-untyped-def]
    """Whether some bit below that one is set."""
    for place in range(bit >> 5):
        if limbs[place] != 0:
            return True
    return (limbs[bit >> 5] & ((1 << (bit & 31)) - 1)) != 0 if bit & 31 else False


@inner
def compare(left, left_length, right, right_length, shift):  # type: ignore[no-untyped-def]
    """The sign of left - right * 2^shift, for positive integers."""
    if shift < 0:
        return -_compare_shifted(right, right_length, left, left_length, -shift)
    return _compare_shifted(left, left_length, right, right_length, shift)


@inner
def _compare_shifted(left, left_length, right, right_length, shift):  # type: ignore[no-untyped-def]
    """The sign of left - right * 2^shift, for a shift that is not negative."""
    difference = bit_length(left, left_length) - bit_length(right, right_length) - shift
    if difference != 0:
        return 1 if difference > 0 else -1
    limbs, bits = shift >> 5, shift & 31
    for place in range(left_length - 1, -1, -1):
        other = 0
        if 0 <= place - limbs < right_length:
            other = (right[place - limbs] << bits) & MASK
        if 0 < place - limbs <= right_length:
            other |= right[place - limbs - 1] >> (32 - bits)
        if left[place] != other:
            return 1 if left[place] > other else -1
    return 0
