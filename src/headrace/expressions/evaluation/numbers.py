"""Arithmetic over columns. Whole columns first; which rows fail is looked for only when one does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array
from headrace.expressions.decimal_digits import is_exact
from headrace.expressions.evaluation.decimals import (
    Towards,
    cut,
    divide,
    remainder,
    round_to,
    rounded,
    whole_of,
)
from headrace.expressions.evaluation.values import (
    BIGINT_OVERFLOW,
    DECIMAL_OVERFLOW,
    DIVISION_BY_ZERO,
    Datum,
    Kernel,
    KernelResult,
    column,
    failing,
    fine,
    is_constant,
    numbers,
    rows_of,
    spread,
    validity,
    zero,
)
from headrace.expressions.tree import Call, Literal
from headrace.schema import BIGINT, DOUBLE

MIN_BIGINT: Final = -(2**63)
DOUBLE_DIGITS: Final = 2.0**52
"""From here on a DOUBLE has no digits after the point."""


def _arithmetic(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    left, right = arguments
    if call.type == BIGINT:
        return _integers(call.function, left, right)
    if pa.types.is_decimal(call.type) and not is_exact(call.function, left.type, right.type):
        return failing(*rounded(call.function, left, right, call.type), DECIMAL_OVERFLOW)
    return fine(_PLAIN[call.function](left, right))


_PLAIN: Final = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED: Final = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


def _integers(operator: str, left: Datum, right: Datum) -> KernelResult:
    try:
        return fine(_CHECKED[operator](left, right))
    except pa.ArrowInvalid:
        result = _PLAIN[operator](left, right)
    a, b, r = numbers(left), numbers(right), numbers(result)
    return failing(result, validity(left, right) & _OVERFLOWS[operator](a, b, r), BIGINT_OVERFLOW)


def _product_overflows(a: Int64Array, b: Int64Array, wrapped: Int64Array) -> BoolArray:
    divisor = np.where((b == 0) | (b == -1), 1, b)
    overflow = (b != 0) & (b != -1) & (wrapped // divisor != a)
    return np.asarray(overflow | ((b == -1) & (a == MIN_BIGINT)))


_OVERFLOWS: Final[dict[str, Callable[[Int64Array, Int64Array, Int64Array], BoolArray]]] = {
    "+": lambda a, b, wrapped: np.asarray(((a ^ wrapped) & (b ^ wrapped)) < 0),
    "-": lambda a, b, wrapped: np.asarray(((a ^ b) & (a ^ wrapped)) < 0),
    "*": _product_overflows,
}


def _divide(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    left, right, zeros = _nonzero(*arguments)
    if call.type == DOUBLE:
        return failing(pc.divide(left, right), zeros, DIVISION_BY_ZERO)
    if is_exact("/", left.type, right.type) and not pa.types.is_decimal256(call.type):
        return failing(divide(left, right, call.type), zeros, DIVISION_BY_ZERO)
    values, overflow = failing(*rounded("/", left, right, call.type), DECIMAL_OVERFLOW)
    values, by_zero = failing(values, zeros, DIVISION_BY_ZERO)
    return values, (*overflow, *by_zero)


def _whole_divide(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    left, right, zeros = _nonzero(*arguments)
    overflow = validity(left, right) & (numbers(left) == MIN_BIGINT) & (numbers(right) == -1)
    values, zero_failures = failing(pc.divide(left, right), zeros, DIVISION_BY_ZERO)
    values, overflow_failures = failing(values, overflow, BIGINT_OVERFLOW)
    return values, (*zero_failures, *overflow_failures)


def _modulo(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    left, right, zeros = _nonzero(*arguments)
    if pa.types.is_decimal(call.type):
        return failing(remainder(left, right, call.type), zeros, DIVISION_BY_ZERO)
    a, b, valid = numbers(left), numbers(right), validity(left, right)
    if call.type == BIGINT:
        # -1 leaves no remainder, but the machine's division of the smallest BIGINT by it overflows.
        b = np.where((b == 0) | (b == -1), 1, b)
    with np.errstate(invalid="ignore"):
        values = np.fmod(a, b)
    return failing(column(values, valid, call.type), zeros, DIVISION_BY_ZERO)


def _nonzero(left: Datum, right: Datum) -> tuple[Datum, Datum, BoolArray]:
    """The operands, with NULL for divisors that are 0, and the rows that fail for them."""
    zeros = pc.equal(right, zero(right.type))
    none = pa.scalar(None, right.type)
    if is_constant(right):
        by_zero = bool(zeros.as_py())
        return left, none if by_zero else right, np.broadcast_to(validity(left) & by_zero, len(left))
    mask = numbers(zeros) & validity(left)
    return left, pc.if_else(pa.array(mask), none, right) if mask.any() else right, mask


def _negate(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _mirror(arguments[0], pc.negate, pc.negate_checked)


def _abs(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _mirror(arguments[0], pc.abs, pc.abs_checked)


def _mirror(argument: Datum, plain: Callable[..., Datum], checked: Callable[..., Datum]) -> KernelResult:
    if argument.type != BIGINT:
        return fine(plain(argument))
    try:
        return fine(checked(argument))
    except pa.ArrowInvalid:
        return failing(plain(argument), numbers(argument) == MIN_BIGINT, BIGINT_OVERFLOW)


def _floor(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _whole(call, arguments[0], Towards.BELOW)


def _ceil(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _whole(call, arguments[0], Towards.ABOVE)


def _whole(call: Call, argument: Datum, towards: Towards) -> KernelResult:
    if argument.type == BIGINT:
        return fine(argument)
    if pa.types.is_decimal(argument.type):
        if argument.type.scale == 0:
            return fine(argument.cast(call.type))
        return fine(whole_of(spread(argument, rows_of((argument,))), towards, call.type))
    values, fits = whole_numbers(numbers(cut(argument, towards)))
    valid = validity(argument)
    return failing(column(values, valid, BIGINT), valid & ~fits, BIGINT_OVERFLOW)


def whole_numbers(values: npt.NDArray[np.float64]) -> tuple[Int64Array, BoolArray]:
    """The DOUBLEs cut towards zero, and which of them a BIGINT holds; the others become 0."""
    fits = (values >= -(2.0**63)) & (values < 2.0**63)
    return np.where(fits, values, 0.0).astype(np.int64), fits


def _round(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    digits = call.arguments[1]
    assert isinstance(digits, Literal)
    assert isinstance(digits.value, int)
    argument = arguments[0]
    if call.type == BIGINT:
        return _round_integers(argument, digits.value)
    if call.type == DOUBLE:
        return fine(column(_round_doubles(numbers(argument), digits.value), validity(argument), DOUBLE))
    return fine(round_to(argument, digits.value, call.type))


def _round_integers(argument: Datum, digits: int) -> KernelResult:
    if digits >= 0:
        return fine(argument)
    unit = 10**-digits
    values = numbers(argument)
    rest = np.fmod(values, unit)
    step = np.where(2 * np.abs(rest) >= unit, np.sign(rest) * unit, 0)
    return _integers("+", column(values - rest, validity(argument), BIGINT), pa.array(step))


def _round_doubles(values: npt.NDArray[np.float64], digits: int) -> npt.NDArray[np.float64]:
    """Half away from zero, where a DOUBLE counts as the shortest decimal number that it prints as.

    1.005 rounds to 1.01 although the DOUBLE is a little less: both it and the tie 1.005 are the same DOUBLE.
    So the value is compared with the tie as a DOUBLE, which is one correctly rounded division.
    """
    unit = 10.0 ** abs(digits)
    size = np.abs(values)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.floor(size * unit if digits >= 0 else size / unit)
        rounded = whole + (size >= _scaled(whole + 0.5, unit, digits))
        result = np.copysign(_scaled(rounded, unit, digits), values) + 0.0
    return np.where(whole < DOUBLE_DIGITS, result, values)


def _truncate(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """Towards zero, where a DOUBLE counts as the shortest decimal number that it prints as."""
    digits = call.arguments[1]
    assert isinstance(digits, Literal)
    assert isinstance(digits.value, int)
    values, unit = numbers(arguments[0]), 10.0 ** abs(digits.value)
    size = np.abs(values)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.floor(size * unit if digits.value >= 0 else size / unit)
        # The product is rounded, and so may be on the other side of a whole number.
        whole += size >= _scaled(whole + 1, unit, digits.value)
        whole -= size < _scaled(whole, unit, digits.value)
        result = np.copysign(_scaled(whole, unit, digits.value), values) + 0.0
    kept = np.where(whole < DOUBLE_DIGITS, result, values)
    return fine(column(kept, validity(arguments[0]), DOUBLE))


def _scaled(values: npt.NDArray[np.float64], unit: float, digits: int) -> npt.NDArray[np.float64]:
    return values / unit if digits >= 0 else values * unit


def _logarithm(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """NULL for what has no logarithm, as in Spark."""
    argument = arguments[0]
    none = pc.less_equal(argument, 0.0)
    function = {"LN": pc.ln, "LOG10": pc.log10, "LOG2": pc.log2}[call.function]
    return fine(function(pc.if_else(none, pa.scalar(None, DOUBLE), argument)))


def _guarded_logarithm(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """LOG1P is NULL for what has no logarithm."""
    argument = arguments[0]
    none = pc.less_equal(argument, -1.0)
    return fine(pc.log1p(pc.if_else(none, pa.scalar(None, DOUBLE), argument)))


def _by_numpy(function: Callable[..., npt.NDArray[np.float64]]) -> Kernel:
    def kernel(call: Call, arguments: Sequence[Datum]) -> KernelResult:
        with np.errstate(all="ignore"):
            values = function(*(numbers(part) + 0.0 for part in arguments))
        return fine(column(values, validity(*arguments), DOUBLE))

    return kernel


def _power(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """Of -0 as of 0: payloads that are equal in grouping must give equal results."""
    base, exponent = arguments
    return fine(pc.power(pc.add(base, 0.0), exponent))


def _plainly(function: Callable[..., Datum]) -> Kernel:
    return lambda call, arguments: fine(function(*arguments))


KERNELS: Final[dict[str, Kernel]] = {
    "+": _arithmetic,
    "-": _arithmetic,
    "*": _arithmetic,
    "/": _divide,
    "%": _modulo,
    "DIV": _whole_divide,
    "NEGATE": _negate,
    "ABS": _abs,
    "SIGN": _plainly(pc.sign),
    "FLOOR": _floor,
    "CEIL": _ceil,
    "ROUND": _round,
    "TRUNC": _truncate,
    "SQRT": _plainly(pc.sqrt),
    "EXP": _plainly(pc.exp),
    "LN": _logarithm,
    "LOG10": _logarithm,
    "POWER": _power,
    "LOG2": _logarithm,
    "LOG1P": _guarded_logarithm,
    "EXPM1": _by_numpy(np.expm1),
    "CBRT": _by_numpy(np.cbrt),
    "SIN": _by_numpy(np.sin),
    "COS": _by_numpy(np.cos),
    "TAN": _by_numpy(np.tan),
    "ASIN": _by_numpy(np.arcsin),
    "ACOS": _by_numpy(np.arccos),
    "ATAN": _by_numpy(np.arctan),
    "SINH": _by_numpy(np.sinh),
    "COSH": _by_numpy(np.cosh),
    "TANH": _by_numpy(np.tanh),
    "ATAN2": _by_numpy(np.arctan2),
    "DEGREES": _by_numpy(np.degrees),
    "RADIANS": _by_numpy(np.radians),
}
"""The functions of numbers."""
