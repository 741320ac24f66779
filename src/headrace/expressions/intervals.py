"""Lengths of time within expressions: INTERVAL constants, and what is between two points in time.

No column is an INTERVAL, so none is ever evaluated: what holds one is typed as a computation on numbers. An
INTERVAL here is a call of `AS INTERVAL`, which is written in no query, with a count and its unit.
"""

from __future__ import annotations

from typing import Final

from headrace.errors import LanguageError
from headrace.expressions.coercion import literal, make_cast
from headrace.expressions.evaluation.evaluate import computed
from headrace.expressions.tree import Arguments, Call, Expression, Literal
from headrace.schema import BIGINT, DATE, INTERVAL, MONTHS, TIMESTAMP, UNKNOWN, sql_type
from headrace.time import CALENDAR, MICROSECONDS

AS_INTERVAL: Final = "AS INTERVAL"

UNITS: Final = (*MICROSECONDS, *CALENDAR)
"""The units of INTERVALs."""

_MOMENTS: Final = (DATE, TIMESTAMP)
_KINDS: Final = (INTERVAL, MONTHS)


def make_interval(count: Expression, unit: str) -> Expression:
    """An INTERVAL.

    Args:
        count: a BIGINT.
        unit: one of `UNITS`.
    """
    return Call(AS_INTERVAL, (count, literal(unit)), MONTHS if unit in CALENDAR else INTERVAL)


def is_about_time(arguments: Arguments) -> bool:
    """Whether one of the operands of an operator is a point in time or an INTERVAL."""
    return any(part.type in (*_MOMENTS, *_KINDS) for part in arguments)


def arithmetic(name: str, arguments: Arguments) -> Expression:
    """+, - and * with points in time and INTERVALs, as in Spark.

    Raises:
        LanguageError: the operands do not go together.
    """
    left, right = arguments
    if name in "+-" and left.type == UNKNOWN and right.type in _KINDS:
        left = make_cast(left, TIMESTAMP)
    if name == "+" and left.type not in _MOMENTS and right.type in _MOMENTS:
        left, right = right, left
    first, second = left.type in _MOMENTS, right.type in _MOMENTS
    if left.type in _KINDS and right.type in _KINDS and name in "+-":
        return _sum(name, left, right)
    if first and right.type in _KINDS and name in "+-":
        return _moved(left, right if name == "+" else negated(right))
    if first and second and name == "-":
        return _between(left, right)
    if left.type == DATE and right.type in (BIGINT, UNKNOWN) and name in "+-":
        days = make_cast(right, BIGINT)
        return Call("DATE_ADD", (left, days if name == "+" else _negative(days)), DATE)
    if name == "*" and {left.type, right.type} & set(_KINDS):
        return _product(left, right)
    raise _refused(name, left, right)


def negated(interval: Expression) -> Expression:
    """An INTERVAL of the other direction."""
    count, unit = _parts(interval)
    return make_interval(_negative(count), unit)


def comparable(arguments: Arguments) -> Arguments:
    """INTERVALs as BIGINTs that compare in the same way: microseconds, or months.

    Raises:
        LanguageError: they are compared with something else, or lengths with months.
    """
    kinds = {part.type for part in arguments if part.type != UNKNOWN}
    if len(kinds) > 1:
        both = kinds == set(_KINDS)
        raise LanguageError(
            "an INTERVAL of months and one of days or less cannot be compared"
            if both
            else "an INTERVAL is compared with INTERVALs alone",
            hint="months differ in length; write days" if both else "write INTERVAL '1' HOUR",
        )
    return tuple(_in_smallest(part) if part.type in _KINDS else make_cast(part, BIGINT) for part in arguments)


def microseconds(interval: Expression) -> Expression:
    """The microseconds of an INTERVAL, a BIGINT.

    Raises:
        LanguageError: it is one of months.
    """
    if interval.type == MONTHS:
        raise LanguageError("months differ in length", hint="write days")
    return _in_smallest(interval)


def _sum(name: str, left: Expression, right: Expression) -> Expression:
    if left.type != right.type:
        raise LanguageError(
            "months and days cannot be added to one INTERVAL",
            hint="add them to a TIMESTAMP one after the other: ts + INTERVAL '1' MONTH + INTERVAL '1' DAY",
        )
    (one, unit), (other, second) = _parts(left), _parts(right)
    if unit != second:
        one, other = _in_smallest(left), _in_smallest(right)
        unit = "MONTH" if left.type == MONTHS else "MICROSECOND"
    return make_interval(_folded(Call(name, (one, other), BIGINT)), unit)


def _moved(moment: Expression, interval: Expression) -> Expression:
    """A point in time so much later; a DATE stays one where whole days are added."""
    count, unit = _parts(interval)
    if moment.type == DATE and unit in CALENDAR:
        return Call("ADD_MONTHS", (moment, _times(count, CALENDAR[unit])), DATE)
    if moment.type == DATE and unit in ("DAY", "WEEK"):
        return Call("DATE_ADD", (moment, _times(count, MICROSECONDS[unit] // MICROSECONDS["DAY"])), DATE)
    return Call("TIMESTAMPADD", (literal(unit), count, make_cast(moment, TIMESTAMP)), TIMESTAMP)


def _between(left: Expression, right: Expression) -> Expression:
    if left.type == right.type == DATE:
        return make_interval(Call("DATEDIFF", (left, right), BIGINT), "DAY")
    start, end = make_cast(right, TIMESTAMP), make_cast(left, TIMESTAMP)
    return make_interval(Call("TIMESTAMPDIFF", (literal("MICROSECOND"), start, end), BIGINT), "MICROSECOND")


def _product(left: Expression, right: Expression) -> Expression:
    interval, factor = (left, right) if left.type in _KINDS else (right, left)
    if factor.type != BIGINT:
        raise LanguageError(
            "an INTERVAL is multiplied by whole numbers alone", hint="write 90 * INTERVAL '1' SECOND"
        )
    count, unit = _parts(interval)
    return make_interval(_folded(Call("*", (count, factor), BIGINT)), unit)


def _refused(name: str, left: Expression, right: Expression) -> LanguageError:
    types = f"{sql_type(left.type)} {name} {sql_type(right.type)}"
    hint = "a TIMESTAMP or DATE takes + and - of an INTERVAL, and - of another one"
    if TIMESTAMP in (left.type, right.type) and BIGINT in (left.type, right.type):
        hint = "say of what unit the number is: ts + n * INTERVAL '1' SECOND"
    return LanguageError(f"there is no {types}", hint=hint)


def _parts(interval: Expression) -> tuple[Expression, str]:
    assert isinstance(interval, Call)
    count, unit = interval.arguments
    assert isinstance(unit, Literal)
    return count, str(unit.value)


def _in_smallest(interval: Expression) -> Expression:
    count, unit = _parts(interval)
    return _times(count, CALENDAR[unit] if unit in CALENDAR else MICROSECONDS[unit])


def _times(count: Expression, factor: int) -> Expression:
    return count if factor == 1 else _folded(Call("*", (count, literal(factor)), BIGINT))


def _negative(count: Expression) -> Expression:
    return _folded(Call("NEGATE", (count,), BIGINT))


def _folded(call: Call) -> Expression:
    """A literal where all arguments are."""
    return computed(call) if all(isinstance(part, Literal) for part in call.arguments) else call
