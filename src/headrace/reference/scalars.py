"""What an expression means for one row, in plain Python.

A call fails if one of its arguments fails, and is NULL if one of them is NULL; the exceptions are written
out in `_IN_TURN` and `_NULL_TAKING`. Values are bool, int, float, Decimal, str, date, aware datetime, None,
and those of `headrace.reference.nested`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any, Final, assert_never

import pyarrow as pa

from headrace.expressions.tree import Call, Case, Cast, Column, Expression, Literal, Literals
from headrace.expressions.user import UserFunction, failure
from headrace.reference import hashes, nested, quantile_sketches, series, texts, times
from headrace.reference.casts import EXACT, RowError, cast, to_scale
from headrace.reference.contents import equal_form, order
from headrace.schema import BIGINT

__all__ = ["RowError", "equal", "less", "value"]


def value(expression: Expression, row: Sequence[Any]) -> Any:
    """The value of an expression for a row.

    Raises:
        RowError: it has none.
    """
    match expression:
        case Column(index=index):
            return row[index]
        case Literal(value=constant):
            return constant
        case Cast(argument=argument, type=dtype):
            return cast(value(argument, row), argument.type, dtype)
        case Case(branches=branches, otherwise=otherwise):
            taken = (result for condition, result in branches if value(condition, row))
            return value(next(taken, otherwise), row)
        case Call(function="AND" | "OR" | "COALESCE" as function, arguments=arguments):
            return _IN_TURN[function](*((lambda part=part: value(part, row)) for part in arguments))
        case Call(function="IN", arguments=(tested, Literals(values=listed))):
            return _in(value(tested, row), *listed)
        case Call(function=function, arguments=arguments):
            values = [value(argument, row) for argument in arguments]
            if expression.user is not None:
                return _of_user(expression.user, values)
            if function == "HASH":
                return hashes.hash_of([part.type for part in arguments], values)
            if function in _NULL_TAKING:
                return _NULL_TAKING[function](*values)
            return None if None in values else _call(expression, values)
        case Literals():
            raise TypeError("a list of constants has no value of its own")
        case _:
            assert_never(expression)


def _of_user(user: UserFunction, values: list[Any]) -> Any:
    """A user's function over one row."""
    columns = [pa.array([one], dtype) for one, dtype in zip(values, user.arguments, strict=True)]
    try:
        (found,) = pa.array(user.body(*columns), user.returns).to_pylist()
    except Exception as error:
        raise RowError(failure(user.name, error)) from error
    return found


def equal(left: Any, right: Any) -> bool:
    """SQL's =, but NULL is not equal to anything: NaN equals NaN, and within ARRAYs and STRUCTs NULL NULL."""
    if left is None or right is None:
        return False
    if isinstance(left, list | tuple | dict):
        return bool(order(equal_form(left)) == order(equal_form(right)))
    return bool(left == right) or (_is_nan(left) and _is_nan(right))


def less(left: Any, right: Any) -> bool:
    """SQL's < for values that are not NULL: NaN is larger than every other number.

    ARRAYs and STRUCTs are ordered by their first difference, NULL first; one that ends there comes first.
    """
    if isinstance(left, list | tuple | dict):
        return bool(order(equal_form(left)) < order(equal_form(right)))
    return bool(left < right) or (_is_nan(right) and not _is_nan(left))


def _is_nan(number: Any) -> bool:
    return isinstance(number, float) and math.isnan(number)


ArgumentValue = Callable[[], Any]
"""The value of an argument, computed when it is asked for."""


def _and(left: ArgumentValue, right: ArgumentValue) -> bool | None:
    first = left()
    if first is False:
        return False
    second = right()
    return False if second is False else None if None in (first, second) else True


def _or(left: ArgumentValue, right: ArgumentValue) -> bool | None:
    first = left()
    if first is True:
        return True
    second = right()
    return True if second is True else None if None in (first, second) else False


def _coalesce(*parts: ArgumentValue) -> Any:
    return next((found for part in parts if (found := part()) is not None), None)


_IN_TURN: Final[dict[str, Callable[..., Any]]] = {"AND": _and, "OR": _or, "COALESCE": _coalesce}


def _between(tested: Any, low: Any, high: Any) -> bool | None:
    above = None if None in (tested, low) else not less(tested, low)
    below = None if None in (tested, high) else not less(high, tested)
    return False if False in (above, below) else None if None in (above, below) else True


def _in(tested: Any, *candidates: Any) -> bool | None:
    if any(equal(tested, candidate) for candidate in candidates):
        return True
    return None if tested is None or None in candidates else False


def _greatest(*values: Any) -> Any:
    best = None
    for candidate in values:
        if best is None or (candidate is not None and less(best, candidate)):
            best = candidate
    return best


def _least(*values: Any) -> Any:
    best = None
    for candidate in values:
        if best is None or (candidate is not None and less(candidate, best)):
            best = candidate
    return best


_NULL_TAKING: Final[dict[str, Callable[..., Any]]] = {
    "IS NULL": lambda tested: tested is None,
    "IS NOT NULL": lambda tested: tested is not None,
    "IS NOT DISTINCT FROM": lambda left, right: equal(left, right) or (left is None and right is None),
    "BETWEEN": _between,
    "IN": _in,
    "GREATEST": _greatest,
    "LEAST": _least,
    **texts.NULL_TAKING,
    **nested.NULL_TAKING,
}


def _call(call: Call, values: list[Any]) -> Any:
    """A call whose arguments are not NULL."""
    function = call.function
    if function == "TRY_CAST":
        return _tried(values[0], call)
    if function in nested.TYPED:
        return nested.TYPED[function](call, *values)
    if function in _ARITHMETIC:
        return _typed(_ARITHMETIC[function](*values), call.type)
    if function == "ROUND":
        return _typed(_round(*values), call.type)
    return _PLAIN[function](*values)


def _tried(argument: Any, call: Call) -> Any:
    try:
        return cast(argument, call.arguments[0].type, call.type)
    except RowError:
        return None


def _typed(number: Any, dtype: pa.DataType) -> Any:
    """The exact result of arithmetic as a value of its type."""
    if dtype == BIGINT:
        if not -(2**63) <= number < 2**63:
            raise RowError("BIGINT overflow")
        return int(number)
    if not pa.types.is_decimal(dtype):
        return number
    try:
        return to_scale(number, dtype)
    except ValueError:
        raise RowError("DECIMAL overflow") from None


def _divide(left: Any, right: Any) -> Any:
    if right == 0:
        raise RowError("division by zero")
    return EXACT.divide(left, right) if isinstance(left, Decimal) else left / right


def _whole_divide(left: int, right: int) -> int:
    if right == 0:
        raise RowError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: Any, right: Any) -> Any:
    if right == 0:
        raise RowError("division by zero")
    if isinstance(left, Decimal):
        return EXACT.remainder(left, right)
    if isinstance(left, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _exactly(
    decimals: Callable[[Decimal, Decimal], Decimal], others: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    return lambda left, right: (decimals if isinstance(left, Decimal) else others)(left, right)


def _floor(number: Any) -> Any:
    return _whole(number, math.floor, ROUND_FLOOR)


def _ceil(number: Any) -> Any:
    return _whole(number, math.ceil, ROUND_CEILING)


def _whole(number: Any, function: Callable[[Any], int], rounding: str) -> Any:
    if isinstance(number, Decimal):
        return number.to_integral_value(rounding, EXACT)
    if isinstance(number, float) and not math.isfinite(number):
        raise RowError("BIGINT overflow")
    return function(number)


_ARITHMETIC: Final[dict[str, Callable[..., Any]]] = {
    "+": _exactly(EXACT.add, lambda left, right: left + right),
    "-": _exactly(EXACT.subtract, lambda left, right: left - right),
    "*": _exactly(EXACT.multiply, lambda left, right: left * right),
    "/": _divide,
    "%": _modulo,
    "DIV": _whole_divide,
    "NEGATE": lambda number: EXACT.minus(number) if isinstance(number, Decimal) else -number,
    "ABS": lambda number: EXACT.abs(number) if isinstance(number, Decimal) else abs(number),
    "FLOOR": _floor,
    "CEIL": _ceil,
}


def _round(number: Any, digits: int = 0) -> Any:
    """Half away from zero, of a DOUBLE as the shortest decimal number that it prints as."""
    if isinstance(number, float) and not math.isfinite(number):
        return number
    exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    unit = Decimal(1).scaleb(-digits)
    rounded = EXACT.multiply(EXACT.divide(exact, unit).to_integral_value(ROUND_HALF_UP, EXACT), unit)
    return float(rounded) if isinstance(number, float) else rounded


def _truncated(number: float, digits: int) -> float:
    """Towards zero, of the shortest decimal number that a DOUBLE prints as."""
    if not math.isfinite(number):
        return number
    unit = Decimal(1).scaleb(-digits)
    whole = EXACT.divide(Decimal(repr(number)), unit).to_integral_value(ROUND_DOWN, EXACT)
    return float(EXACT.multiply(whole, unit)) + 0.0


def _power(base: float, exponent: float) -> float:
    base += 0.0
    try:
        return math.pow(base, exponent)
    except ValueError:
        return math.inf if base == 0 else math.nan
    except OverflowError:
        return -math.inf if base < 0 and math.fmod(exponent, 2) in (1, -1) else math.inf


def _exp(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def _sign(number: float) -> float:
    return number if math.isnan(number) else float((number > 0) - (number < 0))


_OF_DOUBLES: Final[dict[str, Callable[..., float]]] = {
    "EXPM1": math.expm1, "CBRT": math.cbrt, "SIN": math.sin, "COS": math.cos, "TAN": math.tan,
    "ASIN": math.asin, "ACOS": math.acos, "ATAN": math.atan, "SINH": math.sinh, "COSH": math.cosh,
    "TANH": math.tanh, "ATAN2": math.atan2, "DEGREES": math.degrees, "RADIANS": math.radians,
}  # fmt: skip


def _by_python(function: Callable[..., float]) -> Callable[..., float]:
    """NaN where Python has no value, an infinity where it has none so large."""

    def computed(*numbers: float) -> float:
        try:
            return function(*(number + 0.0 for number in numbers))
        except ValueError:
            return math.nan
        except OverflowError:
            return -math.inf if function is math.sinh and numbers[0] < 0 else math.inf

    return computed


_PLAIN: Final[dict[str, Callable[..., Any]]] = {
    "=": equal,
    "<>": lambda left, right: not equal(left, right),
    "<": less,
    "<=": lambda left, right: not less(right, left),
    ">": lambda left, right: less(right, left),
    ">=": lambda left, right: not less(left, right),
    "NOT": lambda tested: not tested,
    "SIGN": _sign,
    "SQRT": lambda number: math.nan if number < 0 else math.sqrt(number),
    "EXP": _exp,
    "LN": lambda number: None if number <= 0 else math.log(number),
    "LOG10": lambda number: None if number <= 0 else math.log10(number),
    "POWER": _power,
    "TRUNC": _truncated,
    "LOG2": lambda number: None if number <= 0 else math.log2(number),
    "LOG1P": lambda number: None if number <= -1 else math.log1p(number),
    **{name: _by_python(function) for name, function in _OF_DOUBLES.items()},
    **texts.FUNCTIONS,
    **times.FUNCTIONS,
    **nested.FUNCTIONS,
    **series.FUNCTIONS,
    **hashes.FUNCTIONS,
    **quantile_sketches.FUNCTIONS,
}
