"""The aggregate functions and the types of their results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from headrace.errors import LanguageError
from headrace.expressions.aggregates.functions import (
    FUNCTIONS,
    SYNONYMS,
    AggregateFunction,
    DistinctUse,
    OrderUse,
    fraction_of,
    function_of,
)
from headrace.expressions.aggregates.within import DEFAULT_PERCENT, approximate_call
from headrace.expressions.coercion import (
    cast_arguments,
    is_numeric,
    literal,
    make_cast,
)
from headrace.expressions.tree import AggregateCall, Call, Case, Expression, Literal, SortKey, Within
from headrace.expressions.user import UserAggregate, signature
from headrace.schema import BIGINT, BOOLEAN, STRING, UNKNOWN, sql_type
from headrace.suggestions import did_you_mean


@dataclass(frozen=True)
class Modifiers:
    """What may be in and after an aggregate's parentheses, besides its arguments.

    Attributes:
        distinct: DISTINCT.
        order: ORDER BY, in the parentheses.
        within: WITHIN GROUP (ORDER BY ...): the one key that PERCENTILE_CONT and others sort by, or None.
        condition: FILTER (WHERE ...), or None.
        bound: WITHIN ... PERCENT, or None.
    """

    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    within: SortKey | None = None
    condition: Expression | None = None
    bound: Within | None = None


PLAIN: Final = Modifiers()
"""No modifiers."""


_BY_ANOTHER: Final = {"MAX_BY": "LAST", "ARG_MAX": "LAST", "MIN_BY": "FIRST", "ARG_MIN": "FIRST"}
"""Aggregates of two arguments, which are others that are sorted by the second one."""

APPROXIMATE: Final = {
    "APPROX_COUNT_DISTINCT": "COUNT",
    "APPROX_PERCENTILE": "PERCENTILE",
    "APPROX_TOP_K": "TOP_K",
}
"""Aggregates of a sample, which are others WITHIN some percent."""

JOINED: Final = {"STRING_AGG": None, "LISTAGG": "", "GROUP_CONCAT": ","}
"""Aggregates that are the text of an ARRAY_AGG, and what is between its values where nothing is said."""

SKETCHED: Final = {
    "THETA_SKETCH_AGG": "THETA_SKETCH",
    "THETA_UNION_AGG": "THETA_SKETCH",
    **{
        f"KLL_{part}_AGG_{kind}": f"KLL_SKETCH_{kind}"
        for part in ("SKETCH", "MERGE")
        for kind in ("BIGINT", "DOUBLE")
    },
}
"""Aggregates that are the sketch of an ARRAY_AGG, and the function that makes it."""

OF_ARRAYS: Final = (*JOINED, *SKETCHED)
"""Aggregates that are computed from an ARRAY_AGG."""

AGGREGATES: Final[tuple[str, ...]] = tuple(FUNCTIONS)
"""The names of the aggregate functions."""

_SECOND: Final = {"PERCENTILE": ", 0.9", "TOP_K": ", 3"}

COMPOSED: Final[tuple[str, ...]] = ("MAX_BY", "MIN_BY", *OF_ARRAYS, *APPROXIMATE)
"""The names of those that are made of other ones."""


def is_aggregate(name: str) -> bool:
    """Whether an aggregate function has that name, in upper case."""
    tables = (FUNCTIONS, SYNONYMS, _BY_ANOTHER, OF_ARRAYS, APPROXIMATE)
    return any(name in table for table in tables)


def resolve_aggregate(
    name: str, *arguments: Expression | None, modifiers: Modifiers = PLAIN
) -> AggregateCall:
    """A typed aggregate; the only argument is None for COUNT(*).

    SUM of BIGINT is BIGINT, and one that overflows ends its query. SUM of DECIMAL(p, s) is
    DECIMAL(min(38, p + 10), s), with 76 in place of 38 where p is more. MIN, MAX, FIRST and LAST have their
    argument's type, BOOL_AND and BOOL_OR are BOOLEAN, counts and the aggregates of bits BIGINT, ARRAY_AGG an
    ARRAY, MODE and PERCENTILE_DISC have their argument's type, and all others are DOUBLE.

    Raises:
        LanguageError: no such aggregate, or one that does not take such arguments or modifiers; without a
            position.
    """
    if name in _BY_ANOTHER:
        return _by_another(name, arguments, modifiers)
    if name in APPROXIMATE:
        return _approximate(name, arguments, modifiers)
    known = SYNONYMS.get(name, name)
    function = FUNCTIONS.get(known)
    if function is None:
        hint = did_you_mean(name, AGGREGATES, most=2) or f"the aggregates are {', '.join(AGGREGATES)}"
        raise LanguageError(f"there is no aggregate {name}", hint=hint)
    if None in arguments:
        return _modified(name, _star(name, modifiers), modifiers, function)
    given = tuple(part for part in arguments if part is not None)
    if modifiers.within is not None and function.order is OrderUse.OWN:
        given, modifiers = (modifiers.within.expression, *given), _own_order(modifiers)
    elif modifiers.within is not None:
        given = _within_group(name, modifiers.within, given)
    several = known == "COUNT" and modifiers.distinct and len(given) > 1
    if len(given) != function.arity and not several:
        plural = "argument" if function.arity == 1 else "arguments"
        message = f"{name} takes {function.arity} {plural}, not {len(given)}"
        raise LanguageError(message, hint=function.usage)
    return _modified(name, function.typed(known, given), modifiers, function)


def _by_another(name: str, arguments: tuple[Expression | None, ...], modifiers: Modifiers) -> AggregateCall:
    """MAX_BY(x, y) and MIN_BY(x, y): the last or first x in the order of y, where y is not NULL."""
    if len(arguments) != 2 or None in arguments:
        raise LanguageError(
            f"{name} takes 2 arguments, not {len(arguments)}", hint=f"write {name}(value, key)"
        )
    if modifiers.order or modifiers.distinct or modifiers.within is not None:
        raise LanguageError(f"{name} takes no DISTINCT or ORDER BY", hint="it sorts by its second argument")
    argument, key = arguments
    assert key is not None
    call = resolve_aggregate(_BY_ANOTHER[name], argument, modifiers=replace(modifiers, order=(SortKey(key),)))
    known = Call("IS NOT NULL", (key,), BOOLEAN)
    return replace(
        call, condition=known if call.condition is None else Call("AND", (call.condition, known), BOOLEAN)
    )


def _approximate(name: str, arguments: tuple[Expression | None, ...], modifiers: Modifiers) -> AggregateCall:
    """APPROX_COUNT_DISTINCT(x), APPROX_PERCENTILE(x, p) and APPROX_TOP_K(x, k): exact ones of a sample.

    Values that are no numbers have no values in between, so that their percentile is one of them.
    """
    known = APPROXIMATE[name]
    usage = f"write {name}(x{_SECOND.get(known, '')})"
    given = tuple(part for part in arguments if part is not None)
    if not given:
        raise LanguageError(f"{name} takes an argument", hint=usage)
    if len(given) != FUNCTIONS[known].arity:
        number = "1 argument" if known == "COUNT" else "2 arguments"
        raise LanguageError(f"{name} takes {number}, not {len(given)}", hint=usage)
    if modifiers.order or modifiers.distinct or modifiers.within is not None:
        raise LanguageError(f"{name} takes no DISTINCT or ORDER BY", hint=usage)
    if known == "PERCENTILE":
        fraction_of(given[1], name)
        is_number = given[0].type == UNKNOWN or is_numeric(given[0].type)
        known = known if is_number else "PERCENTILE_DISC"
    bound = modifiers.bound or Within(DEFAULT_PERCENT)
    changed = replace(modifiers, distinct=known == "COUNT", bound=bound)
    typed = FUNCTIONS[known].typed(name if known == "TOP_K" else known, given)
    return _modified(name, typed, changed, FUNCTIONS[known])


def joined_parts(
    name: str, arguments: tuple[Expression | None, ...], modifiers: Modifiers
) -> tuple[AggregateCall, Expression]:
    """The ARRAY_AGG whose values STRING_AGG and its like join, and what they put between them.

    Raises:
        LanguageError: the arguments or modifiers do not fit; without a position.
    """
    default = JOINED[name]
    given = tuple(part for part in arguments if part is not None)
    most = 2 if len(given) == len(arguments) else 0
    if not (1 if default is not None else 2) <= len(given) <= most:
        raise LanguageError(f"{name} takes a value and a separator", hint=f"write {name}(x, ', ')")
    separator = given[1] if len(given) > 1 else literal(default)
    if not (isinstance(separator, Literal) and isinstance(separator.value, str)):
        raise LanguageError(f"the separator of {name} must be a string constant")
    order = modifiers.order or (() if modifiers.within is None else (modifiers.within,))
    plain = replace(modifiers, order=order, within=None)
    return resolve_aggregate("ARRAY_AGG", make_cast(given[0], STRING), modifiers=plain), separator


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
    return _modified(user.name, call, modifiers, function_of(call))


def _star(name: str, modifiers: Modifiers) -> AggregateCall:
    if name != "COUNT":
        raise LanguageError(f"{name} takes an argument", hint="only COUNT takes *")
    if modifiers.distinct:
        raise LanguageError(
            "COUNT(DISTINCT *) is not supported", hint="write COUNT(*) over (SELECT DISTINCT ... FROM ...)"
        )
    return AggregateCall(name, None, BIGINT)


def _modified(
    name: str, call: AggregateCall, modifiers: Modifiers, function: AggregateFunction
) -> AggregateCall:
    if modifiers.distinct:
        if function.distinct is DistinctUse.REFUSED:
            raise LanguageError(
                f"{name} does not take DISTINCT", hint="aggregate a subquery: (SELECT DISTINCT ... FROM ...)"
            )
        call = replace(call, distinct=function.distinct is DistinctUse.COUNTS)
    if function.order is OrderUse.NEEDED and not modifiers.order:
        raise LanguageError(f"{name} needs an ORDER BY", hint=function.usage)
    if modifiers.order and modifiers.distinct:
        raise LanguageError(
            f"{name} does not take both DISTINCT and ORDER BY",
            hint="leave out ORDER BY; distinct values are sorted by themselves",
        )
    if modifiers.order and function.order is OrderUse.REFUSED:
        raise LanguageError(
            f"{name} does not take ORDER BY", hint="leave it out; its result does not depend on an order"
        )
    if modifiers.bound is not None:
        call = approximate_call(name, call, modifiers.bound)
    order = modifiers.order
    if order and function.order is OrderUse.OWN:
        order = _of_values(name, call, order)
    condition = modifiers.condition
    if condition is None:
        return replace(call, order=order)
    if condition.type == UNKNOWN:
        condition = make_cast(condition, BOOLEAN)
    if condition.type != BOOLEAN:
        raise LanguageError(
            f"the condition of FILTER is {sql_type(condition.type)}, not BOOLEAN",
            hint="compare it with something",
        )
    if call.condition is not None:
        condition = Call("AND", (condition, call.condition), BOOLEAN)
    return replace(call, order=order, condition=condition)


def _own_order(modifiers: Modifiers) -> Modifiers:
    """WITHIN GROUP (ORDER BY x DESC) of the values themselves, as an ORDER BY; ascending is the default."""
    assert modifiers.within is not None
    return replace(modifiers, within=None, order=(modifiers.within,))


def _of_values(name: str, call: AggregateCall, order: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
    """The order of an aggregate over the sorted values themselves: none, or the opposite one."""
    if len(order) != 1 or order[0].expression != call.argument:
        hint = f"write {name}(x ORDER BY x DESC)" if name == "MODE" else function_of(call).usage
        raise LanguageError(f"{name} sorts by its argument alone", hint=hint)
    return (replace(order[0], nulls_first=False),) if order[0].descending else ()


def _within_group(name: str, key: SortKey, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """`PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)` is `PERCENTILE(x, p)`; DESC counts from above."""
    if name not in ("PERCENTILE_CONT", "PERCENTILE") or len(arguments) != 1:
        raise LanguageError(f"{name} does not take WITHIN GROUP", hint=FUNCTIONS["PERCENTILE"].usage)
    fraction = arguments[0]
    if key.descending:
        fraction = literal(1.0 - fraction_of(fraction))
    return key.expression, fraction


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
