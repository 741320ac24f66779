"""How calls are typed: for each kind of function, what it takes and the type of what it gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.expressions import intervals
from headrace.expressions.coercion import (
    argument_hint,
    as_decimal,
    common_type_of,
    decimal_type,
    is_decimal,
    is_numeric,
    literal,
    make_cast,
    make_casts,
)
from headrace.expressions.decimal_digits import result_type
from headrace.expressions.tree import Arguments, Call, Case, Expression, Literal, listed
from headrace.schema import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    MONTHS,
    STRING,
    UNKNOWN,
    check_compared,
    decimal,
    most_digits,
    sql_type,
)


def make_case(branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression | None) -> Case:
    """`CASE WHEN condition THEN value ... ELSE otherwise END`, the values cast to their common type.

    Raises:
        LanguageError: a condition that is not BOOLEAN, or values without a common type.
    """
    final = otherwise if otherwise is not None else literal(None)
    dtype = common_type_of((*(value for _, value in branches), final))
    cast = tuple((_boolean("WHEN", condition), make_cast(value, dtype)) for condition, value in branches)
    return Case(cast, make_cast(final, dtype), dtype)


# --- how calls are typed -----------------------------------------------------------------------------------


def arithmetic(name: str, arguments: Arguments) -> Expression:
    """+, -, * and %: DOUBLE if one side is, BIGINT if both are, else the DECIMAL that `result_type` gives."""
    if intervals.is_about_time(arguments):
        return intervals.arithmetic(name, arguments)
    left, right = _numbers(name, arguments)
    if DOUBLE in (left.type, right.type):
        return Call(name, (make_cast(left, DOUBLE), make_cast(right, DOUBLE)), DOUBLE)
    if left.type == right.type == BIGINT:
        return Call(name, (left, right), BIGINT)
    one, other = as_decimal(left), as_decimal(right)
    dtype = result_type(name, *one, *other)
    return Call(name, (make_cast(left, decimal(*one)), make_cast(right, decimal(*other))), dtype)


def divide(name: str, arguments: Arguments) -> Expression:
    """/: DOUBLE, also of two BIGINTs; DECIMAL if one side is and none is DOUBLE."""
    left, right = _numbers(name, arguments)
    if left.type == right.type == BIGINT:
        return Call(name, (make_cast(left, DOUBLE), make_cast(right, DOUBLE)), DOUBLE)
    return arithmetic(name, (left, right))


def whole_division(name: str, arguments: Arguments) -> Expression:
    """DIV: the quotient of two BIGINTs, cut towards zero."""
    left, right = _numbers(name, arguments)
    if not left.type == right.type == BIGINT:
        raise LanguageError(
            f"DIV takes BIGINTs, not {sql_type(left.type)} and {sql_type(right.type)}", hint="use /, or CAST"
        )
    return Call(name, (left, right), BIGINT)


def negate(name: str, arguments: Arguments) -> Expression:
    """The unary minus; a literal takes it up itself."""
    if arguments[0].type in (INTERVAL, MONTHS):
        return intervals.negated(arguments[0])
    (argument,) = _numbers(name, arguments)
    match argument:
        case Literal(value=int() | float() | Decimal() as value) if value != -(2**63):
            return Literal(-value, argument.type)
    return Call(name, (argument,), argument.type)


def same_number(name: str, arguments: Arguments) -> Expression:
    """A function of a number that keeps its type."""
    (argument,) = _numbers(name, arguments)
    return Call(name, (argument,), argument.type)


def whole_number(name: str, arguments: Arguments) -> Expression:
    """A function from numbers to whole numbers: BIGINT, of a DECIMAL a DECIMAL without scale."""
    (argument,) = _numbers(name, arguments)
    dtype = BIGINT
    if is_decimal(argument.type):
        # What is cut off may carry into one more digit in front of the point; of a whole number nothing is.
        digits, scale = argument.type.precision, argument.type.scale
        dtype = decimal(digits - scale + 1, 0) if scale else argument.type
    return Call(name, (argument,), dtype)


def rounding(name: str, arguments: Arguments) -> Expression:
    """ROUND to a constant number of digits, half away from zero."""
    (argument,) = _numbers(name, arguments[:1])
    kept = _digits(name, arguments[1:])
    dtype = argument.type
    if is_decimal(dtype):
        scale = min(dtype.scale, max(0, kept))
        whole = max(dtype.precision - dtype.scale + 1, 1 - kept)
        if kept < dtype.scale or whole + scale <= most_digits(dtype):
            dtype = decimal_type(whole + scale, scale, "the result of ROUND")
    return Call(name, (argument, literal(kept)), dtype)


def truncation(name: str, arguments: Arguments) -> Expression:
    """TRUNC(number [, digits]): towards zero, with the number's type; a DECIMAL loses the places."""
    (argument,) = _numbers(name, arguments[:1])
    kept = _digits(name, arguments[1:])
    if argument.type == DOUBLE:
        return Call(name, (argument, literal(kept)), DOUBLE)
    if kept >= (argument.type.scale if is_decimal(argument.type) else 0):
        return argument
    rest = arithmetic("%", (argument, literal(Decimal(1).scaleb(-kept) if kept > 0 else 10**-kept)))
    dtype = argument.type
    if is_decimal(dtype):
        scale = max(0, kept)
        digits = max(1, dtype.precision - dtype.scale + scale)
        dtype = decimal_type(digits, scale, "the result of TRUNC")
    return make_cast(arithmetic("-", (argument, rest)), dtype)


MAX_ROUND: Final = 18
"""The most digits ROUND takes; a DOUBLE has no more and neither has a BIGINT."""


def _digits(name: str, given: Arguments) -> int:
    """The constant number of digits that ROUND and TRUNC keep, 0 if none is given."""
    match given:
        case ():
            return 0
        case (Literal(value=int(kept), type=dtype),) if dtype == BIGINT and abs(kept) <= MAX_ROUND:
            return kept
    raise LanguageError(
        f"the digits of {name} must be a whole number from -{MAX_ROUND} to {MAX_ROUND}",
        hint=f"write {name}(x, 2)",
    )


def hashing(name: str, arguments: Arguments) -> Expression:
    """HASH of any values but nested ones."""
    for part in arguments:
        if pa.types.is_nested(part.type):
            raise LanguageError(f"{name} does not take {sql_type(part.type)}", hint="hash its parts")
        if part.type in (INTERVAL, MONTHS):
            raise LanguageError(f"{name} does not take an INTERVAL")
    return Call(name, arguments, BIGINT)


def double(name: str, arguments: Arguments) -> Expression:
    """A function of DOUBLEs."""
    return Call(name, tuple(make_cast(part, DOUBLE) for part in _numbers(name, arguments)), DOUBLE)


def compare(name: str, arguments: Arguments) -> Expression:
    """A predicate over arguments of one type."""
    if any(part.type in (INTERVAL, MONTHS) for part in arguments):
        return Call(name, intervals.comparable(arguments), BOOLEAN)
    return Call(name, _alike(arguments), BOOLEAN)


def contained(name: str, arguments: Arguments) -> Expression:
    """IN, whose list is in one object if it is long and of constants."""
    call = compare(name, arguments)
    assert isinstance(call, Call)
    tested, *others = call.arguments
    constants = [part for part in others if isinstance(part, Literal)]
    return call if len(constants) < len(others) else replace(call, arguments=(tested, *listed(constants)))


def logic(name: str, arguments: Arguments) -> Expression:
    """AND and OR, which take two arguments each in the end, from the left."""
    result, *rest = (_boolean(name, argument) for argument in arguments)
    for argument in rest:
        result = Call(name, (result, argument), BOOLEAN)
    return result


def negation(name: str, arguments: Arguments) -> Expression:
    """NOT; of a test for NULL it is the other one."""
    match arguments[0]:
        case Call(function="IS NULL" | "IS NOT NULL" as test, arguments=tested):
            return Call("IS NOT NULL" if test == "IS NULL" else "IS NULL", tested, BOOLEAN)
    return Call(name, (_boolean(name, arguments[0]),), BOOLEAN)


def is_null(name: str, arguments: Arguments) -> Expression:
    """A test for NULL, of any type."""
    if arguments[0].type in (INTERVAL, MONTHS):
        arguments = intervals.comparable(arguments)
    return Call(name, arguments, BOOLEAN)


def pick(name: str, arguments: Arguments) -> Expression:
    """A function that gives one of its arguments."""
    alike = _alike(arguments)
    return Call(name, alike, alike[0].type)


def coalesce(name: str, arguments: Arguments) -> Expression:
    """COALESCE: the first argument that is not NULL."""
    dtype = common_type_of(arguments)
    return Call(name, tuple(make_cast(part, dtype) for part in arguments), dtype)


def conditional(name: str, arguments: Arguments) -> Expression:
    """IF(condition, value, otherwise), a CASE in short."""
    condition, value, otherwise = arguments
    return make_case(((condition, value),), otherwise)


def null_if(name: str, arguments: Arguments) -> Expression:
    """NULLIF(a, b), a CASE in short."""
    value = arguments[0]
    return make_case(((compare("=", arguments), Literal(None, value.type)),), value)


def logarithm(name: str, arguments: Arguments) -> Expression:
    """LOG(x), the natural one, or LOG(base, x), which is infinite where the base is 1."""
    natural = tuple(double("LN", (part,)) for part in arguments)
    if len(natural) == 1:
        return natural[0]
    base, number = natural
    quotient = Call("/", (number, base), DOUBLE)
    match arguments[0]:
        case Literal(value=value) if value != 1:
            return quotient
    is_one = Call("=", (base, literal(0.0)), BOOLEAN)
    return make_case(((is_one, Call("*", (number, literal(math.inf)), DOUBLE)),), quotient)


def constant(value: float) -> Callable[[str, Arguments], Expression]:
    """A function without arguments."""
    return lambda name, arguments: literal(value)


def null_test(negated: bool) -> Callable[[str, Arguments], Expression]:
    """ISNULL(x), and ISNOTNULL(x) if negated."""
    return lambda name, arguments: is_null("IS NOT NULL" if negated else "IS NULL", arguments)


def null_choice(name: str, arguments: Arguments) -> Expression:
    """NVL2(x, value, otherwise): the value where x is not NULL."""
    return make_case(((is_null("IS NOT NULL", arguments[:1]), arguments[1]),), arguments[2])


def decode(name: str, arguments: Arguments) -> Expression:
    """DECODE(x, search, result, ..., otherwise), where NULL is equal to NULL."""
    subject, *rest = arguments
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    branches = tuple((compare("IS NOT DISTINCT FROM", (subject, search)), found) for search, found in pairs)
    return make_case(branches, rest[-1] if len(rest) % 2 else None)


def whole(name: str, argument: Expression) -> Expression:
    """The argument if it is a BIGINT."""
    return of_types(name, (argument,), (BIGINT,), "a whole number")[0]


# --- what arguments must be --------------------------------------------------------------------------------


def of_types(name: str, arguments: Arguments, types: tuple[pa.DataType, ...], what: str) -> Arguments:
    """The arguments if they have one of the types; a bare NULL takes the first one.

    Raises:
        LanguageError: one has another type.
    """
    for argument in arguments:
        if argument.type not in (*types, UNKNOWN):
            raise LanguageError(
                f"{name} takes {what}, not {sql_type(argument.type)}", hint=argument_hint(argument.type)
            )
    return tuple(make_cast(part, types[0]) if part.type == UNKNOWN else part for part in arguments)


def _number_hint(name: str, argument: Expression) -> str:
    """What to do with an argument that is not a number."""
    if pa.types.is_timestamp(argument.type):
        return "UNIX_MICROS(x) is the number of microseconds of a TIMESTAMP x"
    if argument.type == STRING and name == "+":
        return "write || to join texts, or CAST them to numbers"
    return argument_hint(argument.type)


def _numbers(name: str, arguments: Arguments) -> Arguments:
    for argument in arguments:
        if not (is_numeric(argument.type) or argument.type == UNKNOWN):
            raise LanguageError(
                f"{_spoken(name)} takes numbers, not {sql_type(argument.type)}",
                hint=_number_hint(name, argument),
            )
    dtype = next((part.type for part in arguments if part.type != UNKNOWN), BIGINT)
    return tuple(make_cast(part, dtype) if part.type == UNKNOWN else part for part in arguments)


def strings(name: str, arguments: Arguments) -> Arguments:
    """The arguments if they are STRINGs."""
    return of_types(name, arguments, (STRING,), "a STRING")


def _boolean(name: str, argument: Expression) -> Expression:
    return of_types(name, (argument,), (BOOLEAN,), "a BOOLEAN")[0]


def _alike(arguments: Arguments) -> Arguments:
    """The arguments cast to their common type; BOOLEAN if all of them are bare NULLs."""
    beside_decimal = any(is_decimal(part.type) for part in arguments)
    dtype = common_type_of(tuple(map(_shrunk, arguments)) if beside_decimal else arguments)
    check_compared(dtype)
    dtype = BOOLEAN if dtype == UNKNOWN else dtype
    return make_casts(arguments, dtype)


def _shrunk(argument: Expression) -> Expression:
    """An integer literal as the DECIMAL of its own digits, so that beside a DECIMAL it costs no precision."""
    if isinstance(argument, Literal) and argument.type == BIGINT and argument.value is not None:
        return Literal(argument.value, decimal(*as_decimal(argument)))
    return argument


def _spoken(name: str) -> str:
    return "unary -" if name == "NEGATE" else name
