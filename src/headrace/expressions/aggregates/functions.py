"""The built-in aggregate functions: one record each says all that other modules need to know of it.

The reference (`headrace.reference.aggregates`) defines what an aggregate computes; the operators
(`headrace.operators.aggregates`) compute it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.expressions.aggregates.pairs import CALL_USAGE as PAIRS_USAGE
from headrace.expressions.aggregates.pairs import pairs_call
from headrace.expressions.aggregates.sequences import AUTOCORR_USAGE, autocorrelation_call, weighted_call
from headrace.expressions.coercion import (
    argument_hint,
    is_decimal,
    is_numeric,
    literal,
    make_cast,
)
from headrace.expressions.tree import AggregateCall, Expression, Literal
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, UNKNOWN, decimal, most_digits, sql_type


class KeptValues(Enum):
    """What has to be kept of a group's values, so that the aggregate can be computed."""

    COUNT = "count"
    """How many there are."""
    SUM = "sum"
    """Their count and their sum."""
    SQUARES = "squares"
    """Their count, their sum and that of their squares."""
    PRODUCTS = "products"
    """Of the values of two columns also the sum of their products."""
    ENDS = "ends"
    """Those that are or can become the first or the last by an order."""
    VALUES = "values"
    """All of them."""

    @property
    def is_sum(self) -> bool:
        """Whether it is of constant size, however many values there are, unless they have to be distinct."""
        return self not in (KeptValues.ENDS, KeptValues.VALUES)


class DistinctUse(Enum):
    """What DISTINCT in an aggregate's parentheses does."""

    REFUSED = "refused"
    COUNTS = "counts"
    USELESS = "useless"
    """It makes no difference, as for MIN: repeats change neither the smallest nor the largest value."""


class OrderUse(Enum):
    """What ORDER BY in an aggregate's parentheses does."""

    REFUSED = "refused"
    OPTIONAL = "optional"
    OWN = "own"
    """It may turn the order of the values themselves around, and nothing else."""
    NEEDED = "needed"


class Fails(Enum):
    """When an aggregate ends its query."""

    NEVER = "never"
    OVERFLOW = "overflow"
    """When the result does not fit its type, unless that is DOUBLE."""
    SIZE = "size"
    """When there are too many values."""


@dataclass(frozen=True)
class AggregateFunction:
    """A built-in aggregate.

    Attributes:
        typed: the typed call for a name and the arguments.
        kept: what has to be kept of a group's values.
        arity: how many arguments it takes.
        distinct: what DISTINCT does.
        order: what ORDER BY does.
        place: of the first and the last value by an order, which one it is: 0.0 or 1.0.
        fails: when it ends its query.
        of_nothing: its value where there is nothing to aggregate: 0, an empty ARRAY (`()`) or NULL.
        means: the aggregate that calls of it become, if it is another one.
        synonyms: its other names.
        usage: a hint on how it is written.
    """

    typed: Callable[[str, tuple[Expression, ...]], AggregateCall]
    kept: KeptValues
    arity: int = 1
    distinct: DistinctUse = DistinctUse.REFUSED
    order: OrderUse = OrderUse.REFUSED
    place: float | None = None
    fails: Fails = Fails.NEVER
    of_nothing: int | tuple[()] | None = None
    means: str | None = None
    synonyms: tuple[str, ...] = ()
    usage: str | None = None


def function_of(call: AggregateCall) -> AggregateFunction:
    """The record of the aggregate that is called; of a user's one that knows nothing but its values."""
    return FUNCTIONS[call.function] if call.user is None else _OF_USER


def ends_query(call: AggregateCall) -> bool:
    """Whether the aggregate itself may end its query: by its values, or as a user's may for any reason."""
    fails = function_of(call).fails
    exact = fails is Fails.OVERFLOW and call.type != DOUBLE
    # What is added up in blocks must not be negative.
    of_blocks = call.within is not None and call.function in ("SUM", "AVG")
    return exact or of_blocks or fails is Fails.SIZE or call.user is not None


def _count(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall(name, arguments[0], BIGINT, arguments[1:])


def _count_if(_: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall("COUNT", None, BIGINT, condition=_boolean("COUNT_IF", arguments[0]))


def _same_type(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall(name, arguments[0], arguments[0].type)


def _array(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    (argument,) = arguments
    return AggregateCall(name, argument, pa.list_(argument.type))


def _truth(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall(name, _boolean(name, arguments[0]), BOOLEAN)


def _sum(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument = _number(name, arguments[0])
    if is_decimal(argument.type):
        precision = min(most_digits(argument.type), argument.type.precision + 10)
        return AggregateCall(name, argument, decimal(precision, argument.type.scale))
    return AggregateCall(name, argument, argument.type)


def _double(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall(name, _number(name, arguments[0]), DOUBLE)


def _pair(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    left, right = (make_cast(_number(name, part), DOUBLE) for part in arguments)
    return AggregateCall(name, left, DOUBLE, (right,))


def _pairs_counted(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return replace(_pair(name, arguments), type=BIGINT)


def _percentile(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument, fraction = arguments
    return AggregateCall(name, _number(name, argument), DOUBLE, (literal(fraction_of(fraction)),))


def _discrete(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument, fraction = arguments
    return AggregateCall(name, argument, argument.type, (literal(fraction_of(fraction, name)),))


def _bits(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    (argument,) = arguments
    if argument.type == UNKNOWN:
        argument = make_cast(argument, BIGINT)
    if argument.type != BIGINT:
        hint = "CAST the argument, as in CAST(x AS BIGINT)"
        raise LanguageError(f"{name} takes BIGINTs, not {sql_type(argument.type)}", hint=hint)
    return AggregateCall(name, argument, BIGINT)


def _median(_: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    return AggregateCall("PERCENTILE", _number("MEDIAN", arguments[0]), DOUBLE, (literal(0.5),))


def _top_k(name: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument, number = arguments
    known = number.value if isinstance(number, Literal) and number.type == BIGINT else 0
    if not isinstance(known, int) or not 1 <= known <= MOST_ITEMS:
        message = f"the number of values of {name} is a whole number from 1 to {MOST_ITEMS}"
        raise LanguageError(message, hint=f"write {name}(x, 3)")
    items = pa.struct([pa.field("item", argument.type), pa.field("count", BIGINT)])
    return AggregateCall("TOP_K", argument, pa.list_(items), (number,))


def top_of(call: AggregateCall) -> int:
    """The number of values of TOP_K."""
    (number,) = call.others
    assert isinstance(number, Literal)
    assert isinstance(number.value, int)
    return number.value


def fraction_of(argument: Expression, name: str = "PERCENTILE") -> float:
    """The constant from 0 to 1 that PERCENTILE or another one takes.

    Raises:
        LanguageError: it is not one; without a position.
    """
    number = make_cast(argument, DOUBLE) if is_numeric(argument.type) else argument
    if not isinstance(number, Literal) or not isinstance(number.value, float) or not 0 <= number.value <= 1:
        message = f"the fraction of {name} is a number from 0 to 1"
        raise LanguageError(message, hint=_USAGES.get(name, _DISCRETE_USAGE))
    return number.value


def _number(name: str, argument: Expression) -> Expression:
    if argument.type == UNKNOWN:
        return make_cast(argument, DOUBLE)
    if not is_numeric(argument.type):
        raise LanguageError(
            f"{name} takes numbers, not {sql_type(argument.type)}",
            hint=f"{argument_hint(argument.type)}, or use COUNT, MIN or MAX",
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


MOST_ITEMS: Final = 1000
"""So many values TOP_K has at most."""

_DISCRETE_USAGE: Final = "write PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x)"
_PERCENTILE_USAGE: Final = "write PERCENTILE(x, 0.9) or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)"
_USAGES: Final = {
    "PERCENTILE": _PERCENTILE_USAGE,
    "APPROX_PERCENTILE": "write APPROX_PERCENTILE(x, 0.9)",
}

REGRESSIONS: Final = tuple(
    f"REGR_{what}" for what in ("AVGX", "AVGY", "COUNT", "INTERCEPT", "R2", "SLOPE", "SXX", "SXY", "SYY")
)
"""The aggregates of a line through the points of two columns, as SQL names them."""

FUNCTIONS: Final[dict[str, AggregateFunction]] = {
    "ARRAY_AGG": AggregateFunction(
        _array,
        KeptValues.VALUES,
        distinct=DistinctUse.COUNTS,
        order=OrderUse.OPTIONAL,
        fails=Fails.SIZE,
        of_nothing=(),
        synonyms=("COLLECT_LIST",),
        usage="write ARRAY_AGG(x) or ARRAY_AGG(x ORDER BY ts)",
    ),
    "AUTOCORR": AggregateFunction(
        autocorrelation_call,
        KeptValues.VALUES,
        2,
        order=OrderUse.NEEDED,
        fails=Fails.SIZE,
        usage=AUTOCORR_USAGE,
    ),
    "AVG": AggregateFunction(_double, KeptValues.SUM, distinct=DistinctUse.COUNTS, synonyms=("MEAN",)),
    **{
        name: AggregateFunction(
            _bits,
            KeptValues.VALUES,
            distinct=DistinctUse.REFUSED if name == "BIT_XOR" else DistinctUse.USELESS,
        )
        for name in ("BIT_AND", "BIT_OR", "BIT_XOR")
    },
    "BOOL_AND": AggregateFunction(
        _truth, KeptValues.SUM, distinct=DistinctUse.USELESS, synonyms=("BOOL_EVERY", "EVERY")
    ),
    "BOOL_OR": AggregateFunction(_truth, KeptValues.SUM, distinct=DistinctUse.USELESS),
    "CORR": AggregateFunction(_pair, KeptValues.PRODUCTS, 2, usage="write CORR(x, y)"),
    "CORRELATED_PAIRS": AggregateFunction(
        pairs_call, KeptValues.VALUES, 8, fails=Fails.SIZE, of_nothing=(), usage=PAIRS_USAGE
    ),
    "COUNT": AggregateFunction(
        _count,
        KeptValues.COUNT,
        distinct=DistinctUse.COUNTS,
        of_nothing=0,
        usage="write COUNT(*) to count rows, or COUNT(DISTINCT x, y) to count pairs",
    ),
    "COUNT_IF": AggregateFunction(_count_if, KeptValues.COUNT, of_nothing=0, means="COUNT"),
    "COVAR_POP": AggregateFunction(_pair, KeptValues.PRODUCTS, 2, usage="write COVAR_POP(x, y)"),
    "COVAR_SAMP": AggregateFunction(_pair, KeptValues.PRODUCTS, 2, usage="write COVAR_SAMP(x, y)"),
    **{
        name: AggregateFunction(
            weighted_call,
            KeptValues.VALUES,
            2,
            order=OrderUse.NEEDED,
            fails=Fails.SIZE,
            usage=f"write {name}(x, 0.1 ORDER BY ts), where 0.1 is the weight of the newest value",
        )
        for name in ("EWMA", "EWM_STDDEV")
    },
    "FIRST": AggregateFunction(
        _same_type,
        KeptValues.ENDS,
        order=OrderUse.NEEDED,
        place=0.0,
        synonyms=("FIRST_VALUE",),
        usage="write FIRST(x ORDER BY ts), with the columns that say which row is first",
    ),
    "LAST": AggregateFunction(
        _same_type,
        KeptValues.ENDS,
        order=OrderUse.NEEDED,
        place=1.0,
        synonyms=("LAST_VALUE",),
        usage="write LAST(x ORDER BY ts), with the columns that say which row is last",
    ),
    "MAX": AggregateFunction(_same_type, KeptValues.ENDS, distinct=DistinctUse.USELESS, place=1.0),
    "MEDIAN": AggregateFunction(_median, KeptValues.VALUES, means="PERCENTILE"),
    "MIN": AggregateFunction(_same_type, KeptValues.ENDS, distinct=DistinctUse.USELESS, place=0.0),
    "MODE": AggregateFunction(
        _same_type,
        KeptValues.VALUES,
        order=OrderUse.OWN,
        usage="write MODE(x) or MODE() WITHIN GROUP (ORDER BY x DESC)",
    ),
    "PERCENTILE": AggregateFunction(
        _percentile, KeptValues.VALUES, 2, synonyms=("PERCENTILE_CONT",), usage=_PERCENTILE_USAGE
    ),
    "PERCENTILE_DISC": AggregateFunction(
        _discrete, KeptValues.VALUES, 2, order=OrderUse.OWN, usage=_DISCRETE_USAGE
    ),
    **{
        name: AggregateFunction(
            _pairs_counted if name == "REGR_COUNT" else _pair,
            KeptValues.PRODUCTS,
            2,
            of_nothing=0 if name == "REGR_COUNT" else None,
            usage=f"write {name}(y, x): the value that depends on the other one comes first",
        )
        for name in REGRESSIONS
    },
    "STDDEV": AggregateFunction(
        _double, KeptValues.SQUARES, distinct=DistinctUse.COUNTS, synonyms=("STD", "STDDEV_SAMP")
    ),
    "STDDEV_POP": AggregateFunction(_double, KeptValues.SQUARES, distinct=DistinctUse.COUNTS),
    "SUM": AggregateFunction(_sum, KeptValues.SUM, distinct=DistinctUse.COUNTS, fails=Fails.OVERFLOW),
    "TOP_K": AggregateFunction(
        _top_k, KeptValues.VALUES, 2, fails=Fails.SIZE, of_nothing=(), usage="write TOP_K(x, 3)"
    ),
    "VARIANCE": AggregateFunction(
        _double, KeptValues.SQUARES, distinct=DistinctUse.COUNTS, synonyms=("VAR_SAMP",)
    ),
    "VAR_POP": AggregateFunction(_double, KeptValues.SQUARES, distinct=DistinctUse.COUNTS),
}
"""By name; STDDEV and VARIANCE are the sample forms."""

SYNONYMS: Final = {other: name for name, record in FUNCTIONS.items() for other in record.synonyms}
"""The names of aggregates for their other names."""

_OF_USER: Final = AggregateFunction(_same_type, KeptValues.VALUES)
