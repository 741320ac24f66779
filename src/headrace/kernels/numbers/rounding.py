"""Exact sums, given as limbs (`headrace.kernels.numbers.limbs`), as the nearest doubles.

Everything is computed with integers and rounded once, to the nearest double, ties to even; what is beyond the
largest one becomes an infinity. Doubles are handled by their bits: those of the next larger one are one more.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.elements import BoolArray, Float64Array, Int64Array
from headrace.kernels.jit import INT, INT1, INT2, TRUTH, inlined, inner, kernel
from headrace.kernels.numbers.integers import (
    MASK,
    any_below,
    bit_length,
    compare,
    limbs_above,
    multiply,
    negate,
    trimmed,
)

_INFINITY = 0x7FF << 52
_LOWEST = -1074
"""The exponent of the smallest double."""


@kernel(INT1, INT2, INT)
def rounded_sums(places: Int64Array, limbs: Int64Array, unit: int) -> Float64Array:
    """Sums of doubles as the nearest doubles.

    Args:
        places: int64[p], ascending, p > 0.
        limbs: int64[p, n], the sums of the limbs at those places; each sum is of fewer than 2^31 limbs.
        unit: the exponent of the unit of place 0, at least -1074.

    Returns:
        float64[n].
    """
    total = np.empty(_width(places), dtype=np.int64)
    result = np.empty(limbs.shape[1], dtype=np.int64)
    for row in range(limbs.shape[1]):
        sign, length = _gather(places, limbs, row, total)
        result[row] = _nearest(total, length, 32 * places[0] + unit)
        if sign < 0:
            result[row] |= -1 << 63
    return result.view(np.float64)


@kernel(INT1, INT2, INT1, INT1)
def rounded_means(
    places: Int64Array, limbs: Int64Array, count: Int64Array, scale: Int64Array
) -> Float64Array:
    """Sums of integers, divided by their count and by the scale, as the nearest doubles.

    Args:
        places, limbs: as in `rounded_sums`, in units of 1.
        count: int64[n], 0 to 2^31 - 1.
        scale: the limbs of a positive integer.

    Returns:
        float64[n]; 0 where the count is 0.
    """
    total = np.empty(_width(places), dtype=np.int64)
    divisor = np.empty(len(scale) + 2, dtype=np.int64)
    work = _workspace(len(divisor))
    result = np.zeros(limbs.shape[1], dtype=np.float64)
    for row in range(limbs.shape[1]):
        sign, length = _gather(places, limbs, row, total)
        if count[row] > 0 and length > 0:
            size = _divisor(count[row], scale, work[0], divisor)
            result[row] = sign * _ratio(total, length, divisor, size, 32 * places[0], False, work)
    return result


@kernel(INT1, INT1, INT1, INT2, INT1, INT2, INT1, INT2, INT1, INT, TRUTH)
def rounded_spreads(
    count: Int64Array,
    divisors: Int64Array,
    left_places: Int64Array,
    left: Int64Array,
    right_places: Int64Array,
    right: Int64Array,
    product_places: Int64Array,
    products: Int64Array,
    scale: Int64Array,
    unit: int,
    root: bool,
) -> Float64Array:
    """Variances and covariances, or their square roots, as the nearest doubles.

    With n values of x and y: (n * sum of x * y - sum of x * sum of y) / (divisor * scale).

    Args:
        count: int64[n], how many values were summed, 0 to 2^31 - 1.
        divisors: int64[n], positive where there is a result to compute, below 2^62.
        left_places, left: the sums of x, int64[p] and int64[p, n], as in `rounded_sums`.
        right_places, right: those of y.
        product_places, products: those of x * y.
        scale: the limbs of a positive integer.
        unit: the exponent of the unit of the products.
        root: whether the square roots are wanted, of what is not negative.

    Returns:
        float64[n]; 0 where the divisor is not positive.
    """
    spread = (
        _width(left_places)
        + _width(right_places)
        + _width(product_places)
        + _gap(left_places, right_places, product_places)
    )
    numerator, work_of_spread = np.empty(spread, dtype=np.int64), _spread_workspace(spread)
    divisor = np.empty(len(scale) + 2, dtype=np.int64)
    work = _workspace(len(divisor))
    lowest = 32 * min(left_places[0] + right_places[0], product_places[0]) + unit
    result = np.zeros(len(count), dtype=np.float64)
    for row in range(len(count)):
        if divisors[row] > 0:
            sign, length = _spread(
                count[row], row, left_places, left, right_places, right, product_places, products,
                numerator, work_of_spread,
            )  # fmt: skip
            if length > 0:
                size = _divisor(divisors[row], scale, work[0], divisor)
                result[row] = sign * _ratio(numerator, length, divisor, size, lowest, root, work)
    return result


@kernel(INT1, INT1, INT2, INT1, INT2, INT1, INT2, INT1, INT2, INT1, INT2)
def rounded_correlations(
    count: Int64Array,
    left_places: Int64Array,
    left: Int64Array,
    right_places: Int64Array,
    right: Int64Array,
    left_square_places: Int64Array,
    left_squares: Int64Array,
    right_square_places: Int64Array,
    right_squares: Int64Array,
    product_places: Int64Array,
    products: Int64Array,
) -> tuple[Float64Array, BoolArray]:
    """Correlations as the nearest doubles, and where there is none since a variable does not vary.

    Arguments as in `rounded_spreads`; the units cancel.
    """
    one = _width(left_places) + _width(right_places)
    size = 2 * one + _width(product_places) + _width(left_square_places) + _width(right_square_places)
    size += _gap(left_places, right_places, product_places)
    size += _gap(left_places, left_places, left_square_places)
    size += _gap(right_places, right_places, right_square_places)
    both, lefts, rights = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    numerator, divisor = np.empty(2 * size, np.int64), np.empty(2 * size, np.int64)
    work_of_spread, work = _spread_workspace(size), _workspace(2 * size)
    exponent = 64 * min(left_places[0] + right_places[0], product_places[0])
    exponent -= 32 * min(2 * left_places[0], left_square_places[0])
    exponent -= 32 * min(2 * right_places[0], right_square_places[0])
    result, still = np.zeros(len(count), dtype=np.float64), np.zeros(len(count), dtype=np.bool_)
    for row in range(len(count)):
        _, left_length = _spread(
            count[row], row, left_places, left, left_places, left, left_square_places, left_squares,
            lefts, work_of_spread,
        )  # fmt: skip
        _, right_length = _spread(
            count[row], row, right_places, right, right_places, right, right_square_places, right_squares,
            rights, work_of_spread,
        )  # fmt: skip
        still[row] = left_length == 0 or right_length == 0
        if still[row]:
            continue
        sign, length = _spread(
            count[row], row, left_places, left, right_places, right, product_places, products,
            both, work_of_spread,
        )  # fmt: skip
        if length > 0:
            multiply(both, length, both, length, numerator)
            multiply(lefts, left_length, rights, right_length, divisor)
            length = trimmed(numerator, 2 * length)
            found = trimmed(divisor, left_length + right_length)
            result[row] = sign * _ratio(numerator, length, divisor, found, exponent, True, work)
    return result, still


@inner
def _width(places):  # type: ignore[no-untyped-def]
    """How many limbs a sum over those places takes, from the lowest one: carries reach two further."""
    return places[-1] - places[0] + 3


@inner
def _gap(left, right, product):  # type: ignore[no-untyped-def]
    """How many limbs lie between the lowest place of a product of sums and that of a sum of products."""
    return abs(left[0] + right[0] - product[0]) + 2


@inner
def _gather(places, limbs, row, total):  # type: ignore[no-untyped-def]
    """Write the magnitude of a sum of limbs, from the lowest place on; its sign and length."""
    width = _width(places)
    for place in range(width):
        total[place] = 0
    for number in range(len(places)):
        total[places[number] - places[0]] = limbs[number, row]
    return _carried(total, width)


# A call would cost rounded_sums a quarter more.
@inlined
def _carried(limbs, width):  # type: ignore[no-untyped-def]
    """Write limbs of any size and sign as the magnitude of the integer they make; its sign and length."""
    carry = 0
    for place in range(width):
        value = limbs[place] + carry
        limbs[place] = value & MASK
        carry = value >> 32
    if carry < 0:
        negate(limbs, width)
    return (-1 if carry < 0 else 1), trimmed(limbs, width)


@inner
def _nearest(total, length, exponent):  # type: ignore[no-untyped-def]
    """The bits of the double nearest to an integer times 2^exponent, for an exponent of at least -1074."""
    if length == 0:
        return 0
    bits = bit_length(total, length)
    shift = bits - 53
    if exponent + shift < _LOWEST:
        shift = _LOWEST - exponent
    mantissa = limbs_above(total, length, shift)
    if shift > 0:
        half = (total[(shift - 1) >> 5] >> ((shift - 1) & 31)) & 1
        if half and (mantissa & 1 or any_below(total, shift - 1)):
            mantissa += 1
    result = ((exponent + shift - _LOWEST) << 52) + mantissa
    return _INFINITY if exponent + shift > 971 or result > _INFINITY else result


@inner
def _spread(count, row, left_places, left, right_places, right, product_places, products, result, work):  # type: ignore[no-untyped-def]
    """Write the magnitude of n * sum of x * y - sum of x * sum of y; its sign and length.

    Its unit is that of the lowest place of the product of sums or of the sum of products, whichever is lower.
    """
    one, other, of_sums, of_products, factor = work
    left_sign, left_length = _gather(left_places, left, row, one)
    right_sign, right_length = _gather(right_places, right, row, other)
    multiply(one, left_length, other, right_length, of_sums)
    sums = left_length + right_length if left_length and right_length else 0
    sign, length = _gather(product_places, products, row, one)
    factor[0], factor[1] = count & MASK, count >> 32
    multiply(one, length, factor, 2, of_products)
    ahead = product_places[0] - left_places[0] - right_places[0]
    width = max(sums + max(-ahead, 0), length + 2 + max(ahead, 0)) + 1
    for place in range(width):
        result[place] = 0
    for place in range(length + 2):
        result[place + max(ahead, 0)] = sign * of_products[place]
    for place in range(sums):
        result[place + max(-ahead, 0)] -= left_sign * right_sign * of_sums[place]
    return _carried(result, width)


@inner
def _spread_workspace(size):  # type: ignore[no-untyped-def]
    """Room for what `_spread` computes, with numbers of so many limbs at most."""
    one, other = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    return (
        one,
        other,
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
        np.empty(2, dtype=np.int64),
    )


@inner
def _divisor(number, scale, factor, result):  # type: ignore[no-untyped-def]
    """Write a positive int64 times the scale; its length. `factor` is room for two limbs."""
    factor[0], factor[1] = number & MASK, number >> 32
    multiply(factor, 2, scale, len(scale), result)
    return trimmed(result, len(scale) + 2)


@inner
def _workspace(size):  # type: ignore[no-untyped-def]
    """Room for what `_ratio` computes with divisors of so many limbs."""
    return np.empty(2, dtype=np.int64), np.empty(size + 4, dtype=np.int64), np.empty(size + 4, dtype=np.int64)


@inner
def _is_small(limbs, length):  # type: ignore[no-untyped-def]
    """Whether an integer is below 2^53, and so a double."""
    return length < 2 or (length == 2 and limbs[1] < 1 << 21)


@inner
def _leading(limbs, length):  # type: ignore[no-untyped-def]
    """The highest 62 bits of an integer as a double, and the exponent of their unit."""
    shift = bit_length(limbs, length) - 62
    return float(limbs_above(limbs, length, shift)), shift


@inner
def _ratio(number, length, divisor, size, exponent, root, work):  # type: ignore[no-untyped-def]
    """The double nearest to number / divisor * 2^exponent, or to its square root.

    A good guess comes from the leading bits; then exact comparisons with the borders between doubles decide.
    """
    if exponent == 0 and not root and _is_small(number, length) and _is_small(divisor, size):
        return limbs_above(number, length, 0) / limbs_above(divisor, size, 0)
    high, high_unit = _leading(number, length)
    low, low_unit = _leading(divisor, size)
    guess, unit = high / low, exponent + high_unit - low_unit
    if root:
        if unit & 1:
            guess, unit = 2.0 * guess, unit - 1
        guess, unit = math.sqrt(guess), unit >> 1
    bits = _bits_near(guess, unit)
    while bits < _INFINITY and _is_above(bits, number, length, divisor, size, exponent, root, work):
        bits += 1
    while bits > 0 and not _is_above(bits - 1, number, length, divisor, size, exponent, root, work):
        bits -= 1
    if bits == _INFINITY:
        return np.inf
    mantissa, place = _parts(bits)
    return math.ldexp(float(mantissa), place)


@inner
def _bits_near(guess, unit):  # type: ignore[no-untyped-def]
    """The bits of a finite double close to guess * 2^unit, for a normal guess."""
    fraction, place = math.frexp(guess)
    mantissa, place = int(fraction * 9007199254740992.0), place + unit - 53
    if place < _LOWEST:
        mantissa, place = mantissa >> min(_LOWEST - place, 62), _LOWEST
    return _INFINITY - 1 if place > 971 else ((place - _LOWEST) << 52) + mantissa


@inner
def _parts(bits):  # type: ignore[no-untyped-def]
    """Mantissa and exponent of a double that is not negative."""
    exponent = bits >> 52
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent > 0:
        return mantissa | 1 << 52, exponent - 1 + _LOWEST
    return mantissa, _LOWEST


@inner
def _is_above(bits, number, length, divisor, size, exponent, root, work):  # type: ignore[no-untyped-def]
    """Whether a value is rounded to more than a double: beyond its border to the next one, ties to even."""
    mantissa, place = _parts(bits)
    factor, product, square = work
    border, used, distance = 2 * mantissa + 1, size + 2, place - 1 - exponent
    factor[0], factor[1] = border & MASK, border >> 32
    if root:
        multiply(factor, 2, divisor, size, square)
        multiply(factor, 2, square, used, product)
        used, distance = used + 2, distance + place - 1
    else:
        multiply(factor, 2, divisor, size, product)
    order = compare(number, length, product, trimmed(product, used), distance)
    return order > 0 or (order == 0 and mantissa & 1 == 1)
