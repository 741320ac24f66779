"""The aggregate functions and the types of their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.expressions.coercion import (
    MAX_DIGITS,
    cast_arguments,
    is_decimal,
    is_numeric,
    literal,
    make_cast,
)
from headrace.expressions.tree import AggregateCall, Call, Case, Expression, Literal, SortKey
from headrace.expressions.user import UserAggregate, signature
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, UNKNOWN, sql_type
from headrace.suggestions import did_you_mean

_SYNONYMS: Final = {
    "COLLECT_LIST": "ARRAY_AGG",
    "BOOL_EVERY": "BOOL_AND",
    "EVERY": "BOOL_AND",
    "FIRST_VALUE": "FIRST",
    "LAST_VALUE": "LAST",
    "MEAN": "AVG",
    "PERCENTILE_CONT": "PERCENTILE",
    "STD": "STDDEV",
    "STDDEV_SAMP": "STDDEV",
    "VAR_SAMP": "VARIANCE",
}


@dataclass(frozen=True)
class Modifiers:
    """What may be in and after an aggregate's parentheses, besides its arguments.

    Attributes:
        distinct: DISTINCT.
        order: ORDER BY, in the parentheses.
        within: WITHIN GROUP (ORDER BY ...): the one key that PERCENTILE_CONT sorts by, or None.
        condition: FILTER (WHERE ...), or None.
    """

    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    within: SortKey | None = None
    condition: Expression | None = None


PLAIN: Final = Modifiers()
"""No modifiers."""


class _Order(Enum):
    """What an aggregate makes of ORDER BY in its parentheses."""

    USELESS = "useless"
    OPTIONAL = "optional"
    NEEDED = "needed"


@dataclass(frozen=True)
class _Entry:
    """How many arguments an aggregate takes, how its call is typed, and what may go with it."""

    arity: int
    rule: Callable[[str, tuple[Expression, ...]], AggregateCall]
    distinct: bool = False
    order: _Order = _Order.USELESS


def is_aggregate(name: str) -> bool:
    """Whether an aggregate function has that name, in upper case."""
    return name in _TABLE or name in _SYNONYMS


def resolve_aggregate(
    name: str, *arguments: Expression | None, modifiers: Modifiers = PLAIN
) -> AggregateCall:
    """A typed aggregate; the only argument is None for COUNT(*).

    SUM of BIGINT is BIGINT, and one that overflows ends its query. SUM of DECIMAL(p, s) is
    DECIMAL(min(38, p + 10), s). MIN, MAX, FIRST and LAST have their argument's type, BOOL_AND and BOOL_OR are
    BOOLEAN, counts BIGINT, ARRAY_AGG an ARRAY, and all others DOUBLE.

    Raises:
        LanguageError: no such aggregate, or one that does not take such arguments or modifiers; without a
            position.
    """
    known = _SYNONYMS.get(name, name)
    entry = _TABLE.get(known)
    if entry is None:
        hint = did_you_mean(name, AGGREGATES, most=2) or f"the aggregates are {', '.join(AGGREGATES)}"
        raise LanguageError(f"there is no aggregate {name}", hint=hint)
    if None in arguments:
        return _modified(name, _star(name, modifiers), entry, modifiers)
    given = tuple(part for part in arguments if part is not None)
    if modifiers.within is not None:
        given = _within_group(name, modifiers.within, given)
    several = known == "COUNT" and modifiers.distinct and len(given) > 1
    if len(given) != entry.arity and not several:
        plural = "argument" if entry.arity == 1 else "arguments"
        message = f"{name} takes {entry.arity} {plural}, not {len(given)}"
        raise LanguageError(message, hint=_USAGE.get(known))
    return _modified(name, entry.rule(known, given), entry, modifiers)


def resolve_user_aggregate(
    user: UserAggregate, arguments: tuple[Expression | None, ...], modifiers: Modifiers = PLAIN
) -> AggregateCall:
    """A typed call of a user's aggregate.

    Raises:
        LanguageError: it does not take such arguments or modifiers; without a position.
    """
    if None in arguments:
        raise LanguageError(f"{user.name} takes arguments", hint=f"write {signature(user)}")
    first, *others = cast_arguments(user, tuple(part for part in arguments if part is not None))
    if modifiers.within is not None:
        raise LanguageError(f"{user.name} does not take WITHIN GROUP", hint=f"write {signature(user)}")
    call = AggregateCall(user.name, first, user.returns, tuple(others), user=user)
    return _modified(user.name, call, _Entry(len(arguments), _same), modifiers)


def _star(name: str, modifiers: Modifiers) -> AggregateCall:
    if name != "COUNT":
        raise LanguageError(f"{name} takes an argument", hint="only COUNT takes *")
    if modifiers.distinct:
        raise LanguageError(
            "COUNT(DISTINCT *) is not supported", hint="write COUNT(*) over (SELECT DISTINCT ... FROM ...)"
        )
    return AggregateCall(name, None, BIGINT)


def _modified(name: str, call: AggregateCall, entry: _Entry, modifiers: Modifiers) -> AggregateCall:
    if modifiers.distinct:
        if not entry.distinct:
            raise LanguageError(
                f"{name} does not take DISTINCT", hint="aggregate a subquery: (SELECT DISTINCT ... FROM ...)"
            )
        # Repeats change neither the smallest nor the largest value.
        call = replace(call, distinct=call.function not in _IDEMPOTENT)
    if entry.order is _Order.NEEDED and not modifiers.order:
        raise LanguageError(f"{name} needs an ORDER BY", hint=_USAGE[call.function])
    if modifiers.order and modifiers.distinct:
        raise LanguageError(
            f"{name} does not take both DISTINCT and ORDER BY",
            hint="leave out ORDER BY; distinct values are sorted by themselves",
        )
    if modifiers.order and entry.order is _Order.USELESS:
        raise LanguageError(
            f"{name} does not take ORDER BY", hint="leave it out; its result does not depend on an order"
        )
    condition = modifiers.condition
    if condition is None:
        return replace(call, order=modifiers.order)
    if condition.type == UNKNOWN:
        condition = make_cast(condition, BOOLEAN)
    if condition.type != BOOLEAN:
        raise LanguageError(
            f"the condition of FILTER is {sql_type(condition.type)}, not BOOLEAN",
            hint="compare it with something",
        )
    if call.condition is not None:
        condition = Call("AND", (condition, call.condition), BOOLEAN)
    return replace(call, order=modifiers.order, condition=condition)


def _within_group(name: str, key: SortKey, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """`PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)` is `PERCENTILE(x, p)`; DESC counts from above."""
    if name not in ("PERCENTILE_CONT", "PERCENTILE") or len(arguments) != 1:
        raise LanguageError(f"{name} does not take WITHIN GROUP", hint=_USAGE["PERCENTILE"])
    fraction = arguments[0]
    if key.descending:
        fraction = literal(1.0 - _fraction(fraction))
    return key.expression, fraction


def _count(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall(name, arguments[0], BIGINT, arguments[1:])


def _count_if(_: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall("COUNT", None, BIGINT, condition=_boolean("COUNT_IF", arguments[0]))


def _same(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall(name, arguments[0], arguments[0].type)


def _array(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument = arguments[0]
    if pa.types.is_list(argument.type) or argument.type == UNKNOWN:
        raise LanguageError(
            f"{name} takes single values, not {sql_type(argument.type)}",
            hint="CAST the argument" if argument.type == UNKNOWN else "there are no arrays of arrays",
        )
    return AggregateCall("ARRAY_AGG", argument, pa.list_(argument.type))


def _truth(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall(name, _boolean(name, arguments[0]), BOOLEAN)


def _sum(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument = _number(name, arguments[0])
    if is_decimal(argument.type):
        precision = min(MAX_DIGITS, argument.type.precision + 10)
        return AggregateCall(name, argument, pa.decimal128(precision, argument.type.scale))
    return AggregateCall(name, argument, argument.type)


def _double(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall(name, _number(name, arguments[0]), DOUBLE)


def _pair(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    left, right = (make_cast(_number(name, part), DOUBLE) for part in arguments)
    return AggregateCall(name, left, DOUBLE, (right,))


def _percentile(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument, fraction = arguments
    return AggregateCall(name, _number(name, argument), DOUBLE, (literal(_fraction(fraction)),))


def _median(_: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall("PERCENTILE", _number("MEDIAN", arguments[0]), DOUBLE, (literal(0.5),))


def _fraction(argument: Expression) -> float:
    number = make_cast(argument, DOUBLE) if is_numeric(argument.type) else argument
    if not isinstance(number, Literal) or not isinstance(number.value, float) or not 0 <= number.value <= 1:
        raise LanguageError("the fraction of PERCENTILE is a number from 0 to 1", hint=_USAGE["PERCENTILE"])
    return number.value


def _number(name: str, argument: Expression) -> Expression:
    if argument.type == UNKNOWN:
        return make_cast(argument, DOUBLE)
    if not is_numeric(argument.type):
        raise LanguageError(
            f"{name} takes numbers, not {sql_type(argument.type)}",
            hint="CAST the argument, or use COUNT, MIN or MAX",
        )
    return argument


def _boolean(name: str, argument: Expression) -> Expression:
    if argument.type == UNKNOWN:
        return make_cast(argument, BOOLEAN)
    if argument.type != BOOLEAN:
        raise LanguageError(
            f"{name} takes a condition, not {sql_type(argument.type)}", hint="compare it with something"
        )
    return argument


def effective_argument(call: AggregateCall) -> Expression | None:
    """The argument as it enters an aggregate that passes over NULLs; None for COUNT(*) of all rows.

    FILTER makes it NULL in the rows that do not count. Where a column of CORR or COVAR is NULL, the pair does
    not count; that is for the one who adds it up.
    """
    if call.argument is None:
        return call.condition and masked(literal(True), call.condition)
    return call.argument if call.condition is None else masked(call.argument, call.condition)


def masked(expression: Expression, condition: Expression | None) -> Expression:
    """The expression where the condition is true, and NULL elsewhere."""
    if condition is None:
        return expression
    return Case(((condition, expression),), Literal(None, expression.type), expression.type)


_IDEMPOTENT: Final = ("MIN", "MAX", "BOOL_AND", "BOOL_OR")

_TABLE: Final[dict[str, _Entry]] = {
    "ARRAY_AGG": _Entry(1, _array, distinct=True, order=_Order.OPTIONAL),
    "AVG": _Entry(1, _double, distinct=True),
    "BOOL_AND": _Entry(1, _truth, distinct=True),
    "BOOL_OR": _Entry(1, _truth, distinct=True),
    "CORR": _Entry(2, _pair),
    "COUNT": _Entry(1, _count, distinct=True),
    "COUNT_IF": _Entry(1, _count_if),
    "COVAR_POP": _Entry(2, _pair),
    "COVAR_SAMP": _Entry(2, _pair),
    "FIRST": _Entry(1, _same, order=_Order.NEEDED),
    "LAST": _Entry(1, _same, order=_Order.NEEDED),
    "MAX": _Entry(1, _same, distinct=True),
    "MEDIAN": _Entry(1, _median),
    "MIN": _Entry(1, _same, distinct=True),
    "PERCENTILE": _Entry(2, _percentile),
    "STDDEV": _Entry(1, _double, distinct=True),
    "STDDEV_POP": _Entry(1, _double, distinct=True),
    "SUM": _Entry(1, _sum, distinct=True),
    "VARIANCE": _Entry(1, _double, distinct=True),
    "VAR_POP": _Entry(1, _double, distinct=True),
}

_USAGE: Final = {
    "ARRAY_AGG": "write ARRAY_AGG(x) or ARRAY_AGG(x ORDER BY ts)",
    "COUNT": "write COUNT(*) to count rows, or COUNT(DISTINCT x, y) to count pairs",
    "CORR": "write CORR(x, y)",
    "COVAR_POP": "write COVAR_POP(x, y)",
    "COVAR_SAMP": "write COVAR_SAMP(x, y)",
    "FIRST": "write FIRST(x ORDER BY ts), with the columns that say which row is first",
    "LAST": "write LAST(x ORDER BY ts), with the columns that say which row is last",
    "PERCENTILE": "write PERCENTILE(x, 0.9) or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)",
}

AGGREGATES: Final[tuple[str, ...]] = tuple(_TABLE)
"""The names of the aggregate functions; STDDEV and VARIANCE are the sample forms."""
