"""Hypothesis strategies for well-typed expressions over a schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headrace.errors import LanguageError
from headrace.expressions.functions.functions import literal, make_cast, resolve
from headrace.expressions.tree import Column, Expression
from headrace.reference.scalars import RowError, value
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Schema
from property.strategies import BATTERY, MONEY, POOLS, values

Draw = Callable[..., Expression]
"""Draws an expression of a type, one level further down."""

Row = tuple[Any, ...]
"""The values of a row."""

KINDS = (BOOLEAN, BIGINT, DOUBLE, MONEY, STRING, DATE, TIMESTAMP)
"""The types of expressions; MONEY stands for any DECIMAL."""

_PATTERNS = st.sampled_from(("%", "a%", "%b", "_", "a_b", "%a%b%", r"\%a", "%0", "(a", ".*", ""))
_UNITS = st.sampled_from(("SECOND", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "MILLISECOND"))


@dataclass(frozen=True)
class _Scope:
    """What expressions are made of: columns, types, and whether values are meant to be rough."""

    schema: Schema
    kinds: tuple[pa.DataType, ...]
    rough: bool


def expressions(
    schema: Schema,
    kind: pa.DataType,
    *,
    depth: int = 3,
    kinds: Sequence[pa.DataType] = KINDS,
    rough: bool = False,
) -> st.SearchStrategy[Expression]:
    """Expressions over the columns of a schema.

    Only functions that every machine computes to the last bit appear; EXP, LN, LOG10 and POWER do not.

    Args:
        schema: the columns.
        kind: the type of the expression; for MONEY it may be any DECIMAL.
        depth: how deep calls are nested at most.
        kinds: the types of subexpressions.
        rough: whether to use constants that overflow and texts that do not parse.
    """
    return _expressions(_Scope(schema, tuple(kinds), rough), kind, depth)


@st.composite
def _expressions(draw: st.DrawFn, scope: _Scope, kind: pa.DataType, depth: int) -> Expression:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(_leaves(scope, kind))
    makers = [make for make in _MAKERS[kind] if DATE in scope.kinds or make not in _FROM_TIMES]
    makers += [_conditional, _first, _extreme, _null_if, *([_cast] if scope.rough else [])]
    maker = draw(st.sampled_from(makers))

    def below(wanted: pa.DataType = kind) -> Expression:
        return draw(_expressions(scope, wanted, depth - 1))

    try:
        return maker(_Maker(draw, below, kind, scope.kinds))
    except LanguageError:
        # A DECIMAL of more than 38 digits, most likely.
        return draw(_leaves(scope, kind))


def _leaves(scope: _Scope, kind: pa.DataType) -> st.SearchStrategy[Expression]:
    columns = [
        Column(place, field.name, field.type)
        for place, field in enumerate(scope.schema)
        if field.type == kind
    ]
    constants = values(kind, pools=BATTERY if scope.rough else POOLS, odd_doubles=scope.rough)
    literals = constants.map(
        lambda value: make_cast(literal(value), kind) if value is None else literal(value)
    )
    return st.sampled_from(columns) | st.sampled_from(columns) | literals if columns else literals


@dataclass(frozen=True)
class _Maker:
    """One call being made."""

    draw: st.DrawFn
    below: Draw
    kind: pa.DataType
    kinds: tuple[pa.DataType, ...]

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def of_any(self) -> pa.DataType:
        return self.draw(st.sampled_from(self.kinds))


def _call(name: str, *arguments: Expression) -> Expression:
    return resolve(name, arguments)


# --- forms of every type -----------------------------------------------------------------------------------


def _conditional(make: _Maker) -> Expression:
    return _call("IF", make.below(BOOLEAN), make.below(), make.below())


def _first(make: _Maker) -> Expression:
    return _call("COALESCE", make.below(), make.below())


def _extreme(make: _Maker) -> Expression:
    return _call(make.pick("GREATEST", "LEAST"), make.below(), make.below())


def _null_if(make: _Maker) -> Expression:
    return _call("NULLIF", make.below(), make.below())


def _cast(make: _Maker) -> Expression:
    return make_cast(make.below(make.of_any()), make.kind)


# --- BOOLEAN -----------------------------------------------------------------------------------------------


def _compare(make: _Maker) -> Expression:
    kind = make.of_any()
    operator = make.pick("=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM")
    return _call(operator, make.below(kind), make.below(kind))


def _list(make: _Maker) -> Expression:
    kind = make.of_any()
    candidates = [make.below(kind) for _ in range(make.draw(st.integers(1, 3)))]
    return _call("IN", make.below(kind), *candidates)


def _constant_list(make: _Maker) -> Expression:
    kind = make.of_any()
    candidates = make.draw(st.lists(values(kind, pools=POOLS), min_size=1, max_size=4))
    return _call("IN", make.below(kind), *map(literal, candidates))


def _between(make: _Maker) -> Expression:
    kind = make.of_any()
    return _call("BETWEEN", make.below(kind), make.below(kind), make.below(kind))


def _null_test(make: _Maker) -> Expression:
    return _call(make.pick("IS NULL", "IS NOT NULL"), make.below(make.of_any()))


def _logic(make: _Maker) -> Expression:
    return _call(make.pick("AND", "OR"), make.below(), make.below())


def _not(make: _Maker) -> Expression:
    return _call("NOT", make.below())


def _like(make: _Maker) -> Expression:
    return _call("LIKE", make.below(STRING), literal(make.draw(_PATTERNS)))


def _text_test(make: _Maker) -> Expression:
    return _call(make.pick("STARTSWITH", "ENDSWITH", "CONTAINS"), make.below(STRING), make.below(STRING))


# --- numbers -----------------------------------------------------------------------------------------------


def _arithmetic(make: _Maker) -> Expression:
    return _call(make.pick("+", "-", "*"), make.below(), make.below())


def _modulo(make: _Maker) -> Expression:
    return _call("%", make.below(), make.below())


def _quotient(make: _Maker) -> Expression:
    return _call("/", make.below(), make.below())


def _whole_quotient(make: _Maker) -> Expression:
    return _call("DIV", make.below(), make.below())


def _sign_change(make: _Maker) -> Expression:
    return _call(make.pick("NEGATE", "ABS"), make.below())


def _whole(make: _Maker) -> Expression:
    return _call(make.pick("FLOOR", "CEIL"), make.below(DOUBLE if make.kind == BIGINT else make.kind))


def _round(make: _Maker) -> Expression:
    return _call("ROUND", make.below(), literal(make.draw(st.integers(-3, 4))))


def _mixed(make: _Maker) -> Expression:
    operands = [make.below(), make.below(BIGINT)]
    return _call(make.pick("+", "-", "*", "/"), *(operands if make.draw(st.booleans()) else operands[::-1]))


def _root(make: _Maker) -> Expression:
    return _call(make.pick("SQRT", "SIGN"), make.below())


def _length(make: _Maker) -> Expression:
    return _call("LENGTH", make.below(STRING))


def _date_part(make: _Maker) -> Expression:
    kind = make.draw(st.sampled_from((DATE, TIMESTAMP)))
    return _call(make.pick("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"), make.below(kind))


def _micros(make: _Maker) -> Expression:
    return _call("UNIX_MICROS", make.below(TIMESTAMP))


# --- STRING ------------------------------------------------------------------------------------------------


def _text_change(make: _Maker) -> Expression:
    return _call(make.pick("UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM"), make.below())


def _part(make: _Maker) -> Expression:
    arguments = [make.below(), make.below(BIGINT), make.below(BIGINT)]
    return _call("SUBSTRING", *arguments[: make.draw(st.integers(2, 3))])


def _joined(make: _Maker) -> Expression:
    return _call(make.pick("CONCAT", "||"), make.below(), make.below())


def _replaced(make: _Maker) -> Expression:
    return _call("REPLACE", make.below(), make.below(), make.below())


# --- DATE and TIMESTAMP ------------------------------------------------------------------------------------


def _day(make: _Maker) -> Expression:
    return make_cast(make.below(TIMESTAMP), DATE)


def _midnight(make: _Maker) -> Expression:
    return make_cast(make.below(DATE), TIMESTAMP)


def _truncated(make: _Maker) -> Expression:
    return _call("DATE_TRUNC", literal(make.draw(_UNITS)), make.below())


def _there_and_back(make: _Maker) -> Expression:
    return _call("TIMESTAMP_MICROS", _call("UNIX_MICROS", make.below()))


_NUMBER = (_arithmetic, _arithmetic, _modulo, _sign_change, _round)
_MAKERS: dict[pa.DataType, tuple[Callable[[_Maker], Expression], ...]] = {
    BOOLEAN: (
        _compare,
        _compare,
        _compare,
        _list,
        _constant_list,
        _between,
        _null_test,
        _logic,
        _logic,
        _not,
        _like,
        _text_test,
    ),
    BIGINT: (*_NUMBER, _whole_quotient, _whole, _length, _date_part, _micros),
    DOUBLE: (*_NUMBER, _quotient, _mixed, _root),
    MONEY: (*_NUMBER, _quotient, _mixed, _whole),
    STRING: (_text_change, _part, _joined, _replaced),
    DATE: (_day,),
    TIMESTAMP: (_midnight, _truncated, _there_and_back),
}

_FROM_TIMES = (_date_part, _micros)
"""What leads from other types to DATE and TIMESTAMP."""


def expected(expression: Expression, rows: Sequence[Row]) -> tuple[list[Any], list[str | None]]:
    """The values by the reference, None where they fail, and the reasons."""
    results: list[Any] = []
    reasons: list[str | None] = []
    for row in rows:
        try:
            results.append(value(expression, row))
            reasons.append(None)
        except RowError as error:
            results.append(None)
            reasons.append(error.reason)
    return results, reasons
