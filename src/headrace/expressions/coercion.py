"""Types of expressions: literals, common types and casts, as in Spark SQL 4 in ANSI mode.

One rule differs from Spark on purpose: numbers do not turn into TIMESTAMPs (Spark takes them for seconds,
Headrace's instants are microseconds) except through TIMESTAMP_MICROS.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError, shown
from headrace.expressions.evaluation.evaluate import computed, evaluate, failure_of
from headrace.expressions.tree import LONG, Arguments, Call, Cast, Column, Expression, Literal
from headrace.expressions.user import UserAggregate, UserFunction, signature
from headrace.nested import is_nested, part_types
from headrace.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    MONTHS,
    MOST_DIGITS,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    decimal,
    most_digits,
    sql_type,
)

BIGINT_DIGITS: Final = 20
"""The precision of the DECIMAL that a BIGINT becomes in DECIMAL arithmetic (Spark's rule)."""

TRY_CAST: Final = "TRY_CAST"
"""The call that casts its argument to its own type, and is NULL where that fails."""

INTERVAL_HINT: Final = "TIMESTAMPDIFF(SECOND, start, end) counts the seconds between two TIMESTAMPs"

is_decimal = pa.types.is_decimal


def literal(value: object) -> Literal:
    """A constant from a Python value: None, bool, int, float, Decimal, str, date or aware datetime.

    Raises:
        LanguageError: an integer beyond BIGINT or a DECIMAL of more than 76 digits.
        TypeError: a value of another type, which is a fault of ours.
    """
    match value:
        case None:
            return Literal(None, UNKNOWN)
        case bool():
            return Literal(value, BOOLEAN)
        case int():
            if not -(2**63) <= value < 2**63:
                raise LanguageError(
                    f"the number {value} is beyond BIGINT", hint=f"write {value}.0 for a DECIMAL"
                )
            return Literal(value, BIGINT)
        case float():
            return Literal(value, DOUBLE)
        case Decimal():
            return _decimal_literal(value)
        case str():
            return Literal(value, STRING)
        case datetime():
            return Literal(value.astimezone(UTC), TIMESTAMP)
        case date():
            return Literal(value, DATE)
        case _:
            raise TypeError(f"no literal of type {type(value).__name__}")


def decimal_type(precision: int, scale: int, what: str) -> pa.DataType:
    """DECIMAL(precision, scale) as the type of `what`.

    Raises:
        LanguageError: it would have more than 76 digits.
    """
    if precision > MOST_DIGITS:
        raise LanguageError(
            f"{what} would be a DECIMAL of {precision} digits, more than the {MOST_DIGITS} there are",
            hint="CAST an operand to DOUBLE or to a DECIMAL of fewer digits",
        )
    return decimal(precision, scale)


def is_numeric(dtype: pa.DataType) -> bool:
    """Whether it is BIGINT, DOUBLE or DECIMAL."""
    return dtype in (BIGINT, DOUBLE) or bool(is_decimal(dtype))


def as_decimal(expression: Expression) -> tuple[int, int]:
    """The precision and scale that a BIGINT or DECIMAL has in DECIMAL arithmetic.

    An integer literal counts with the digits it has, as in Spark.
    """
    if is_decimal(expression.type):
        return expression.type.precision, expression.type.scale
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return len(str(abs(expression.value))), 0
    return BIGINT_DIGITS, 0


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type to which values of both types are cast in order to compare or to unite them.

    Raises:
        LanguageError: there is none.
    """
    if left == right or right == UNKNOWN:
        return left
    if left == UNKNOWN:
        return right
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if (nested := _common_nested(left, right)) is not None:
        return nested
    if STRING in (left, right):
        other = right if left == STRING else left
        return DOUBLE if is_decimal(other) else other
    raise LanguageError(
        f"{sql_type(left)} and {sql_type(right)} have no common type",
        hint="CAST one of them to the other's type",
    )


def _common_nested(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The common type of ARRAYs, or of STRUCTs, with the left one's names; None for others."""
    if pa.types.is_list(left) and pa.types.is_list(right):
        return pa.list_(common_type(left.value_type, right.value_type))
    structs = pa.types.is_struct(left) and pa.types.is_struct(right)
    if not structs or left.num_fields != right.num_fields:
        return None
    parts = zip(left, right, strict=True)
    return pa.struct([pa.field(one.name, common_type(one.type, other.type)) for one, other in parts])


def common_type_of(expressions: tuple[Expression, ...]) -> pa.DataType:
    """The type to which all the expressions can be cast.

    Raises:
        LanguageError: there is none.
    """
    dtype = expressions[0].type
    if any(part.type in (INTERVAL, MONTHS) for part in expressions):
        raise LanguageError(
            "an INTERVAL can only be compared, and added to points in time", hint=INTERVAL_HINT
        )
    last = dtype
    for expression in expressions[1:]:
        # In a long list types come in rows.
        if expression.type != last:
            last = expression.type
            dtype = common_type(dtype, last)
    return dtype


def cast_arguments(
    user: UserFunction | UserAggregate, arguments: tuple[Expression, ...]
) -> tuple[Expression, ...]:
    """The arguments in the types that a user's function or aggregate takes.

    Raises:
        LanguageError: there are too few or too many, or one is of a type that does not become the wanted one
            by itself.
    """
    if len(arguments) != len(user.arguments):
        plural = "argument" if len(user.arguments) == 1 else "arguments"
        message = f"{user.name} takes {len(user.arguments)} {plural}, not {len(arguments)}"
        raise LanguageError(message, hint=f"write {signature(user)}")
    for argument, wanted in zip(arguments, user.arguments, strict=True):
        if not _becomes(argument.type, wanted):
            raise LanguageError(
                f"{user.name} takes {sql_type(wanted)}, not {sql_type(argument.type)}",
                hint=f"{argument_hint(argument.type)}: {signature(user)}",
            )
    return tuple(make_cast(part, wanted) for part, wanted in zip(arguments, user.arguments, strict=True))


def argument_hint(dtype: pa.DataType) -> str:
    """What to do with an argument of a type that a function does not take."""
    if dtype in (INTERVAL, MONTHS):
        return INTERVAL_HINT
    return "apply it to the values before ARRAY_AGG" if pa.types.is_list(dtype) else "CAST the argument"


def _becomes(source: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type are taken for another: numbers for wider ones, DATE for TIMESTAMP."""
    if source in (wanted, UNKNOWN):
        return True
    alike = (is_numeric(source) and is_numeric(wanted)) or {source, wanted} == {DATE, TIMESTAMP}
    return alike and common_type(source, wanted) == wanted


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether CAST takes values of the first type to the second, perhaps with rows that fail."""
    if source in (INTERVAL, MONTHS):
        return False
    if is_nested(source) or is_nested(target):
        return source in (target, UNKNOWN) or _parts_can_cast(source, target)
    if BINARY in (source, target) and not {source, target} <= {BINARY, STRING, UNKNOWN}:
        return False
    if source in (target, UNKNOWN) or target == STRING or source == STRING:
        return bool(target != UNKNOWN) or bool(source == UNKNOWN)
    if {source, target} == {DATE, TIMESTAMP}:
        return True
    return all(bool(dtype == BOOLEAN) or is_numeric(dtype) for dtype in (source, target))


def _parts_can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether an ARRAY can be cast value by value, or a STRUCT field by field."""
    both = [pa.types.is_list(source), pa.types.is_list(target)]
    structs = pa.types.is_struct(source) and pa.types.is_struct(target)
    pairs = list(zip(part_types(source), part_types(target), strict=False))
    if structs and source.num_fields != target.num_fields:
        return False
    return (all(both) or structs) and all(one == other or can_cast(one, other) for one, other in pairs)


def make_cast(expression: Expression, dtype: pa.DataType) -> Expression:
    """The expression as a value of that type; itself if it is one, and a literal stays a literal.

    Raises:
        LanguageError: no value of its type can be cast to that one, or it is a constant that cannot.
    """
    if expression.type == dtype:
        return expression
    if not can_cast(expression.type, dtype):
        article = "an" if sql_type(expression.type)[0] in "AI" else "a"
        raise LanguageError(
            f"{article} {sql_type(expression.type)} cannot be cast to {sql_type(dtype)}",
            hint=_cast_hint(expression.type, dtype),
        )
    cast = Cast(expression, dtype)
    if not isinstance(expression, Literal):
        return cast
    if failure_of(cast) is not None:
        value = expression.value
        written = shown(value) if isinstance(value, str) else str(value)
        raise LanguageError(f"{written} is not a valid {sql_type(dtype)}", hint=_constant_hint(dtype))
    return computed(cast)


def make_casts(expressions: Arguments, dtype: pa.DataType) -> Arguments:
    """The expressions as `make_cast` makes each of them; of many, literals of one type are cast together.

    Raises:
        LanguageError: as `make_cast`, of the first for which it does.
    """
    if len(expressions) <= LONG:
        return tuple(make_cast(part, dtype) for part in expressions)
    together: dict[pa.DataType, list[int]] = {}
    for place, part in enumerate(expressions):
        if part.type is not dtype and isinstance(part, Literal):
            together.setdefault(part.type, []).append(place)
    made = list(expressions)
    for source, places in together.items():
        cast = _cast_values([expressions[place] for place in places], source, dtype)
        for place, part in zip(places, cast, strict=False):
            made[place] = part
    return tuple(make_cast(part, dtype) for part in made)


def _cast_values(
    constants: Sequence[Expression], source: pa.DataType, dtype: pa.DataType
) -> Sequence[Expression]:
    """Literals of one type as literals of another one; none where that cannot be said of all together."""
    if source == dtype or not can_cast(source, dtype):
        return ()
    values = pa.array([part.value for part in constants if isinstance(part, Literal)], source)
    rows = pa.RecordBatch.from_arrays([values], names=["value"])
    found = evaluate(Cast(Column(0, "value", source), dtype), rows)
    if found.failures:
        return ()
    try:
        return [Literal(value, dtype) for value in found.values.to_pylist()]
    except (OverflowError, ValueError):
        return ()


def make_try_cast(expression: Expression, dtype: pa.DataType) -> Expression:
    """The expression as a value of that type, NULL where it has no counterpart.

    Raises:
        LanguageError: no value of its type can be cast to that one.
    """
    if expression.type == dtype or not can_cast(expression.type, dtype):
        return make_cast(expression, dtype)
    if is_nested(dtype) and expression.type != UNKNOWN:
        kind = sql_type(dtype).partition("<")[0]
        raise LanguageError(f"TRY_CAST makes no {kind}", hint="write CAST, and TRY_CAST for the values in it")
    call = Call(TRY_CAST, (expression,), dtype)
    return computed(call) if isinstance(expression, Literal) else call


def _decimal_literal(value: Decimal) -> Literal:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise LanguageError(f"{value} is not a valid DECIMAL", hint="write CAST('NaN' AS DOUBLE)")
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    dtype = decimal_type(precision, scale, f"the number {value}")
    return Literal(value if exponent <= 0 else Decimal(int(value)), dtype)


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if DOUBLE in (left, right):
        return DOUBLE
    pairs = [
        (dtype.precision, dtype.scale) if is_decimal(dtype) else (BIGINT_DIGITS, 0) for dtype in (left, right)
    ]
    scale = max(scale for _, scale in pairs)
    whole = max(precision - scale for precision, scale in pairs)
    # As in Spark, digits in front of the point are kept rather than those after it.
    most = max(most_digits(left), most_digits(right))
    whole, scale = min(whole, most), min(scale, max(0, most - whole))
    return decimal(max(1, whole + scale), scale)


def _constant_hint(dtype: pa.DataType) -> str:
    """How a constant of a type is written."""
    if dtype == TIMESTAMP:
        return "write TIMESTAMP '2024-01-31 12:00:00'"
    if dtype == DATE:
        return "write DATE '2024-01-31'"
    if dtype == BOOLEAN:
        return "write TRUE or FALSE"
    return f"write a number that is a valid {sql_type(dtype)}, without quotes"


def _cast_hint(source: pa.DataType, target: pa.DataType) -> str | None:
    if source in (INTERVAL, MONTHS):
        return INTERVAL_HINT
    if is_nested(source) and target == STRING and not pa.types.is_list(source):
        return "TO_JSON(x) makes a text of it"
    if pa.types.is_list(source):
        return "an ARRAY stays one; cast the values before ARRAY_AGG"
    if pa.types.is_list(target):
        return "ARRAY_AGG makes an ARRAY of values"
    if target == TIMESTAMP and is_numeric(source):
        return "TIMESTAMP_MICROS(...) makes a TIMESTAMP of microseconds since 1970"
    if BINARY in (source, target):
        return "only STRINGs become BINARY and back; HEX(x) writes the bytes of a number or a STRING"
    if source == TIMESTAMP and is_numeric(target):
        return "UNIX_MICROS(...) gives the microseconds since 1970"
    return None
