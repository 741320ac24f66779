"""DECIMAL columns: what Arrow has no kernel for, or rounds otherwise than SQL."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray
from headrace.expressions.evaluation.values import Datum, numbers, rows_of, spread, validity
from headrace.schema import MOST_DIGITS, decimal, most_digits

_AWAY: Final = "half_towards_infinity"
_DIGITS_CUT: Final = 14
_DIGITS_KEPT: Final = 31
_EXACT_INTEGER: Final = 2**53
_EXACT_POWER: Final = 1e22
"""Up to here whole numbers, and powers of ten, are DOUBLEs without rounding."""


class Towards(Enum):
    """To which whole number a fraction is cut off."""

    BELOW = "floor"
    ABOVE = "ceil"
    ZERO = "trunc"


def divide(left: Datum, right: Datum, dtype: pa.DataType) -> pa.Array:
    """The quotients, rounded half away from zero to the type's scale; no divisor is 0."""
    # Arrow cuts quotients, so one digit more is asked for. Its scale of them is max(4, s1 + p2 - s2 + 1).
    scale = dtype.scale - right.type.precision + right.type.scale
    whole = left.type.precision - left.type.scale
    quotient = pc.divide(
        left.cast(pa.decimal256(max(whole + scale, 1), scale)),
        right.cast(pa.decimal256(right.type.precision, right.type.scale)),
    )
    return pc.round(quotient, dtype.scale, _AWAY).cast(dtype)


def rounded(operator: str, left: Datum, right: Datum, dtype: pa.DataType) -> tuple[pa.Array, BoolArray]:
    """Results of +, -, * or / that the type may not hold: rounded, and which are too large.

    They are rounded half away from zero. No divisor is 0. Python computes them, in about half a microsecond
    each.
    """
    count = rows_of((left, right))
    valid = np.broadcast_to(validity(left, right), count)
    a, b = (unscaled(spread(part, count)) for part in (left, right))
    one, other = left.type.scale, right.type.scale
    numerator, divisor, scale = a * b, np.ones(count, dtype=object), one + other
    if operator == "/":
        numerator, divisor, scale = a, np.where(valid, b, 1), one - other
    elif operator != "*":
        scale = max(one, other)
        a, b = a * 10 ** (scale - one), b * 10 ** (scale - other)
        numerator = a + b if operator == "+" else a - b
    shift = dtype.scale - scale
    numerator, divisor = (numerator * 10**shift, divisor) if shift >= 0 else (numerator, divisor * 10**-shift)
    signs = np.where((numerator < 0) ^ (divisor < 0), -1, 1).astype(object)
    found = signs * ((2 * np.abs(numerator) + np.abs(divisor)) // (2 * np.abs(divisor)))
    large = valid & np.asarray(np.abs(found) >= 10**dtype.precision, dtype=np.bool_)
    fits = valid & ~large
    return from_unscaled(np.where(fits, found, 0), fits, dtype), large


def remainder(left: Datum, right: Datum, dtype: pa.DataType) -> pa.Array:
    """The remainders, with the sign of the dividend; no divisor is 0."""
    count = rows_of((left, right))
    parts = (spread(part, count) for part in (left, right))
    a, b = (unscaled(part) * 10 ** (dtype.scale - part.type.scale) for part in parts)
    valid = validity(left, right)
    divisor = np.abs(np.where(valid, b, 1))
    values = np.where(a < 0, -1, 1) * (np.abs(a) % divisor)
    return from_unscaled(values, valid, dtype)


def cut(values: Datum, towards: Towards) -> Datum:
    """The numbers without their fractions, in their own type, which must hold them."""
    match towards:
        case Towards.BELOW:
            return pc.floor(values)
        case Towards.ABOVE:
            return pc.ceil(values)
        case Towards.ZERO:
            return pc.trunc(values)


def whole_of(values: pa.Array, towards: Towards, dtype: pa.DataType) -> pa.Array:
    """The values without their fractions, in a type without scale that holds them all."""
    source = values.type
    if source.precision < MOST_DIGITS and not _arrow_carries_wrong(values, 0):
        # Arrow wants a digit before the point, and one more for what is rounded up to.
        return cut(values.cast(pa.decimal256(source.precision + 1, source.scale)), towards).cast(dtype)
    units, unit = unscaled(values), 10**source.scale
    match towards:
        case Towards.BELOW:
            found = units // unit
        case Towards.ABOVE:
            found = -(-units // unit)
        case Towards.ZERO:
            found = np.where(units < 0, -1, 1) * (np.abs(units) // unit)
    return from_unscaled(found, validity(values), dtype)


def round_to(values: Datum, digits: int, dtype: pa.DataType) -> pa.Array:
    """The values rounded half away from zero to so many digits, in a type that holds them all."""
    source = values.type
    if digits >= source.scale:
        return values.cast(dtype)
    whole = max(source.precision - source.scale + 1, 1 - digits)
    if whole + source.scale > MOST_DIGITS or _arrow_carries_wrong(values, digits):
        return _round_integers(values, digits, dtype)
    wide = values.cast(pa.decimal256(whole + source.scale, source.scale))
    return pc.round(wide, digits, _AWAY).cast(dtype)


def _arrow_carries_wrong(values: pa.Array, digits: int) -> bool:
    """Whether Arrow may lose the carry, as where 14 digits and more go and over 31 stay (PyArrow 26)."""
    kept = values.type.precision - values.type.scale + digits
    if values.type.scale - digits < _DIGITS_CUT or kept <= _DIGITS_KEPT:
        return False
    limit = Decimal(10) ** (_DIGITS_KEPT - digits)
    return any(
        bound is not None and bound.copy_abs() >= limit for bound in pc.min_max(values).as_py().values()
    )


def _round_integers(values: pa.Array, digits: int, dtype: pa.DataType) -> pa.Array:
    """As `round_to`, by Python's integers, for values of which a digit more is no DECIMAL."""
    units, unit = unscaled(values), 10 ** (values.type.scale - digits)
    rounded = np.where(units < 0, -1, 1) * ((2 * np.abs(units) + unit) // (2 * unit))
    return from_unscaled(rounded * 10 ** (dtype.scale - digits), validity(values), dtype)


def fit(values: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, BoolArray]:
    """The values rounded half away from zero to a type's scale, and the rows that are too large for it."""
    source = values.type
    if source.scale > dtype.scale:
        rounded = pa.decimal256(source.precision - source.scale + 1 + dtype.scale, dtype.scale)
        values = round_to(values, dtype.scale, rounded)
    try:
        return values.cast(dtype), np.zeros(len(values), dtype=np.bool_)
    except pa.ArrowInvalid:
        whole = dtype.precision - dtype.scale
        limit = pa.scalar(Decimal(10) ** whole, pa.decimal256(whole + 1, 0))
        large = numbers(pc.greater_equal(pc.abs(values), limit))
        kept = pc.if_else(pa.array(large), pa.scalar(None, values.type), values)
        return kept.cast(dtype), large


def plain_text(values: pa.Array) -> pa.Array:
    """The values with all their digits and no exponent, as SQL writes them."""
    scale, whole = values.type.scale, _whole(values)
    if scale == 0:
        return whole.cast(pa.string())
    digits = pc.utf8_lpad(pc.abs(whole).cast(pa.string()), scale + 1, "0")
    front = pc.utf8_slice_codeunits(digits, 0, -scale)
    back = pc.utf8_slice_codeunits(digits, -scale)
    text = pc.binary_join_element_wise(front, back, ".")
    negative = pc.less(whole, pa.scalar(Decimal(0), whole.type))
    return pc.if_else(negative, pc.binary_join_element_wise("-", text, ""), text)


def to_double(values: pa.Array) -> pa.Array:
    """The nearest DOUBLE of each value; Arrow's own cast may give its neighbour."""
    power = 10.0**values.type.scale
    try:
        units = _whole(values).cast(pa.int64())
    except pa.ArrowInvalid:
        return plain_text(values).cast(pa.float64())
    integers = numbers(units)
    if power > _EXACT_POWER or (np.abs(integers.astype(np.float64)) > _EXACT_INTEGER).any():
        return plain_text(values).cast(pa.float64())
    # One division of two exact DOUBLEs rounds once.
    return pc.divide(units.cast(pa.float64()), power)


def _whole(values: pa.Array) -> pa.Array:
    """The same bytes read as whole numbers in units of the type's scale."""
    whole = decimal(most_digits(values.type), 0)
    return pa.Array.from_buffers(whole, len(values), values.buffers(), offset=values.offset)


def unscaled(values: pa.Array) -> npt.NDArray[Any]:
    """The values as Python integers, in units of the type's scale; 0 for NULL."""
    words = values.type.bit_width // 64
    raw = np.frombuffer(values.buffers()[1], dtype=np.uint64)
    raw = raw.reshape(-1, words)[values.offset : values.offset + len(values)]
    total = raw[:, -1].astype(np.int64).astype(object)
    for word in range(words - 2, -1, -1):
        total = total * 2**64 + raw[:, word].astype(object)
    total[~np.broadcast_to(validity(values), len(values))] = 0
    return np.asarray(total)


def from_unscaled(values: npt.NDArray[Any], valid: BoolArray, dtype: pa.DataType) -> pa.Array:
    """A DECIMAL column from Python integers in units of the type's scale; each fits."""
    last = dtype.bit_width - 64
    words = [np.asarray((values >> place) & (2**64 - 1), dtype=np.uint64) for place in range(0, last, 64)]
    words.append(np.asarray(values >> last, dtype=np.int64).view(np.uint64))
    data = pa.py_buffer(np.ascontiguousarray(np.column_stack(words)))
    column = pa.Array.from_buffers(dtype, len(values), [None, data])
    invalid = np.broadcast_to(~valid, len(values))
    return pc.if_else(pa.array(invalid), pa.scalar(None, dtype), column)
