"""The SQL text of an expression, with as few parentheses as its structure needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Final, assert_never

import pyarrow as pa

from headrace.expressions.coercion import literal
from headrace.expressions.tree import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Literals,
    SortKey,
)
from headrace.schema import DOUBLE, UNKNOWN, quote, sql_type

Naming = Callable[[Column], str]
"""The text of a column reference."""

# How tightly forms bind; an operand that binds less tightly than its place asks for is put in parentheses.
_OR, _AND, _NOT, _PREDICATE, _PIPES, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(9)

_INFIX: Final = {
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM"), _PREDICATE),
    "||": _PIPES,
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%", "DIV"), _PRODUCT),
}


def column_name(column: Column) -> str:
    """The text of a column reference: its name alone."""
    return quote(column.name)


def render(expression: Expression, naming: Naming = column_name) -> str:
    """The text of an expression; it reads back as the same tree.

    Args:
        expression: the tree; casts that the binder put in are written out.
        naming: the text of a column reference, such as one with a table's alias.
    """
    return _render(expression, naming)[0]


def render_call(call: AggregateCall, naming: Naming = column_name) -> str:
    """The text of an aggregate, with its DISTINCT, ORDER BY, FILTER and WITHIN."""
    arguments = [render(part, naming) for part in (call.argument, *call.others) if part is not None]
    text = f"{'DISTINCT ' if call.distinct else ''}{', '.join(arguments) or '*'}"
    if call.order:
        text += f" ORDER BY {', '.join(render_sort_key(key, naming) for key in call.order)}"
    text = f"{call.function}({text})"
    if call.condition is not None:
        text += f" FILTER (WHERE {render(call.condition, naming)})"
    if call.within is not None:
        text += f" WITHIN {call.within.percent:f} PERCENT {call.within.side.value}".rstrip()
    return text


def render_sort_key(key: SortKey, naming: Naming) -> str:
    """A part of ORDER BY; the place of NULLs is printed where it is not SQL's default."""
    text = render(key.expression, naming) + (" DESC" if key.descending else "")
    if key.nulls_first == key.descending:
        text += f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return text


def _render(expression: Expression, naming: Naming) -> tuple[str, int]:
    """The text, and how tightly it binds."""
    match expression:
        case Column():
            return naming(expression), _PRIMARY
        case Literal():
            text = _literal(expression)
            return text, _SIGN if text.startswith("-") else _PRIMARY
        case Literals():
            return ", ".join(map(_literal, expression.each)), _PRIMARY
        case Cast(argument=argument, type=dtype):
            return _cast(render(argument, naming), dtype), _PRIMARY
        case Case():
            return _case(expression, naming), _PRIMARY
        case Call():
            return _call(expression, naming)
        case _:
            assert_never(expression)


def _call(call: Call, naming: Naming) -> tuple[str, int]:
    def operand(place: int, binding: int) -> str:
        text, own = _render(call.arguments[place], naming)
        return text if own >= binding else f"({text})"

    match call.function:
        case name if name in _INFIX:
            binding = _INFIX[name]
            # Comparisons do not chain, so the left operand of one must bind more tightly as well.
            left = binding + 1 if binding in (_PREDICATE, _PIPES) else binding
            return f"{operand(0, left)} {name} {operand(1, binding + 1)}", binding
        case "NOT":
            return f"NOT {operand(0, _NOT)}", _NOT
        case "NEGATE":
            return f"-{operand(0, _PRIMARY)}", _SIGN
        case "IS NULL" | "IS NOT NULL":
            return f"{operand(0, _PIPES)} {call.function}", _PREDICATE
        case "BETWEEN":
            return f"{operand(0, _PIPES)} BETWEEN {operand(1, _PIPES)} AND {operand(2, _PIPES)}", _PREDICATE
        case "IN":
            candidates = ", ".join(render(part, naming) for part in call.arguments[1:])
            return f"{operand(0, _PIPES)} IN ({candidates})", _PREDICATE
        case "LIKE":
            escape = f" ESCAPE {operand(2, _PRIMARY)}" if len(call.arguments) == 3 else ""
            return f"{operand(0, _PIPES)} LIKE {operand(1, _PRIMARY)}{escape}", _PREDICATE
        case "TRIM LEADING" | "TRIM TRAILING" | "TRY_CAST" | "GET_FIELD" | "[]" | "FROM_JSON":
            return _special(call, [render(part, naming) for part in call.arguments]), _PRIMARY
        case name:
            return f"{name}({', '.join(render(part, naming) for part in call.arguments)})", _PRIMARY


def _special(call: Call, arguments: list[str]) -> str:
    """A call with a syntax of its own."""
    match call.function:
        case "TRY_CAST":
            return f"TRY_{_cast(arguments[0], call.type)}"
        case "FROM_JSON":
            return f"FROM_JSON({arguments[0]}, {_text(sql_type(call.type))})"
        case "TRIM LEADING" | "TRIM TRAILING" as name:
            return f"TRIM({name.removeprefix('TRIM ')} {arguments[1]} FROM {arguments[0]})"
    first, second = call.arguments
    is_part = isinstance(first, Call) and first.function in ("GET_FIELD", "[]")
    enclosed = arguments[0] if is_part else f"({arguments[0]})"
    if call.function == "[]":
        return f"{arguments[0] if isinstance(first, Column) else enclosed}[{arguments[1]}]"
    assert isinstance(second, Literal)
    # A column is put in parentheses, since `a.b` may be a column of a table.
    return f"{enclosed}.{quote(str(second.value))}"


def _case(case: Case, naming: Naming) -> str:
    branches = (
        f"WHEN {render(condition, naming)} THEN {render(value, naming)}" for condition, value in case.branches
    )
    missing = isinstance(case.otherwise, Literal) and case.otherwise.value is None
    otherwise = "" if missing else f" ELSE {render(case.otherwise, naming)}"
    return f"CASE {' '.join(branches)}{otherwise} END"


def _cast(text: str, dtype: pa.DataType) -> str:
    return f"CAST({text} AS {sql_type(dtype)})"


def _literal(constant: Literal) -> str:
    match constant.value:
        case None:
            return "NULL" if constant.type == UNKNOWN else _cast("NULL", constant.type)
        case bool(value):
            return "TRUE" if value else "FALSE"
        case int(value) if constant.type == literal(value).type:
            return str(value)
        case int(value):
            return _decimal(Decimal(value), constant.type)
        case float(value):
            return _double(value)
        case Decimal() as value:
            return _decimal(value, constant.type)
        case str(value):
            return _text(value)
        case datetime() as moment:
            return f"TIMESTAMP {_text(moment.replace(tzinfo=None).isoformat(' '))}"
        case date() as day:
            return f"DATE {_text(day.isoformat())}"
        case _:
            raise TypeError(f"no text for a literal of type {type(constant.value).__name__}")


def _double(value: float) -> str:
    """With an exponent, since a number with a point alone is a DECIMAL."""
    if not math.isfinite(value):
        return _cast(f"'{value}'", DOUBLE)
    text = repr(value).replace("e+", "E").replace("e", "E")
    return text if "E" in text else f"{text}E0"


def _decimal(value: Decimal, dtype: pa.DataType) -> str:
    text = f"{value:f}"
    if literal(value).type != dtype:
        return _cast(text, dtype)
    return text if "." in text else f"{text}BD"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
