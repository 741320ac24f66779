"""Hints for unknown functions and operators: what to write instead, with the query's own names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from headrace.errors import LanguageError, UserError
from headrace.expressions import aggregates, functions
from headrace.language.binding.scope import Scope
from headrace.language.dialect import Nested, position_of
from headrace.language.types import TYPES
from headrace.language.unsupported import CALLS, REWRITES, WINDOWS
from headrace.schema import DATE, TIMESTAMP
from headrace.suggestions import did_you_mean
from headrace.time import MICROSECONDS, parse_duration

_MOMENTS: Final = (DATE, TIMESTAMP)


def call_hint(node: Any, scope: Scope) -> str:
    """What to write instead of an unknown function.

    Args:
        node: its call.
        scope: the tables it is applied to.
    """
    name = str(node.name)
    upper = name.upper()
    if upper in WINDOWS:
        return window_hint(scope)
    arguments = [_written(part) for part in node.expressions]
    if hint := _of_unit(upper, arguments):
        return f"write {hint}"
    if (upper in TYPES or upper == "STR") and len(arguments) == 1:
        return f"write CAST({arguments[0]} AS {'STRING' if upper == 'STR' else upper})"
    if upper == "CONCAT_WS" and len(node.expressions) > 1:
        separator, *texts = map(_written, node.expressions)
        return f"write {f' || {separator} || '.join(texts)}"
    if upper in REWRITES:
        return f"write {REWRITES[upper].format(*arguments, *'xyz'[len(arguments) :])}"
    own = [known.name for known in scope.functions.values()]
    known = (*functions.FUNCTIONS, *aggregates.AGGREGATES, *own)
    in_python = f"define it in Python, db.function('{name}', ...); SHOW FUNCTIONS lists all others"
    return CALLS.get(upper) or did_you_mean(name, known, cutoff=0.75) or in_python


def _of_unit(name: str, arguments: list[str]) -> str | None:
    """What is written instead of a function whose first argument is a unit, as `DATE_PART('hour', ts)`."""
    unit, *rest = arguments or [""]
    unit = unit.strip("'").upper()
    match name, rest:
        case (("DATE_PART" | "DATEPART" | "EXTRACT"), [moment]) if unit in functions.FUNCTIONS:
            return f"{unit}({moment})"
        case _ if unit not in MICROSECONDS:
            return None
        case (("TIMESTAMPDIFF" | "DATE_DIFF" | "DATEDIFF"), [start, end]):
            return f"(UNIX_MICROS({end}) - UNIX_MICROS({start})) DIV {MICROSECONDS[unit]}"
        case (("TIMESTAMPADD" | "DATEADD" | "DATE_ADD"), [count, moment]):
            return f"TIMESTAMP_MICROS(UNIX_MICROS({moment}) + {MICROSECONDS[unit]} * {count})"
        case _:
            return None


def window_hint(scope: Scope) -> str:
    """How the first stream of FROM gets a window."""
    table = scope.tables[0]
    columns = (column for entry in scope.tables for _, column in entry.columns)
    size = "10 MINUTES" if any(column.type == TIMESTAMP for column in columns) else "10"
    name = table.stream or table.alias or "name"
    return f"put the window after the stream in FROM: {name} WINDOW(RANGE {size})"


_SIGNS: Final[dict[type, str]] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def refuse_chain(node: Any) -> None:
    """Refuse `1 < x < 5`, which compares the answer of `1 < x` with 5.

    Args:
        node: an operator.

    Raises:
        LanguageError: it is such a chain.
    """
    if type(node) in _SIGNS and type(node.this) in _SIGNS:
        first, last, between = _written(node.this), _written(node.expression), _written(node.this.expression)
        raise LanguageError(
            "comparisons cannot be chained",
            position=position_of(node),
            hint=f"write {first} AND {between} {_SIGNS[type(node)]} {last}",
        )


def method_hint(node: Any) -> str:
    """How `x.startswith('a')` is written."""
    call = node.expression
    arguments = ", ".join(map(_written, (node.this, *call.expressions)))
    return f"write {str(call.name).upper()}({arguments})"


def refuse_intervals(node: Any, type_of: Callable[[Any], pa.DataType]) -> None:
    """Refuse `moment + INTERVAL ...`; what is added to something else is refused where it is bound.

    Args:
        node: an operator.
        type_of: gives the type of an operand.

    Raises:
        LanguageError: one of the operands is an interval.
    """
    left, right = node.this, node.expression
    intervals = [part for part in (left, right) if isinstance(part, exp.Interval)]
    if not intervals or not isinstance(node, exp.Add | exp.Sub):
        return
    moment, interval = (right, left) if isinstance(left, exp.Interval) else (left, right)
    if isinstance(moment, exp.Interval) or type_of(moment) not in _MOMENTS:
        return
    sign = "-" if isinstance(node, exp.Sub) else "+"
    raise LanguageError(
        "there is no arithmetic on time yet",
        position=position_of(interval),
        hint=f"write TIMESTAMP_MICROS(UNIX_MICROS({_written(moment)}) {sign} {_microseconds(interval)})",
    )


def refuse_moments(node: Any, types: tuple[pa.DataType, ...]) -> None:
    """Refuse `moment - moment`.

    Raises:
        LanguageError: both operands are DATEs or TIMESTAMPs.
    """
    if isinstance(node, exp.Sub) and all(dtype in _MOMENTS for dtype in types):
        left, right = _written(node.this), _written(node.expression)
        raise LanguageError(
            "there is no arithmetic on time yet",
            position=position_of(node),
            hint=f"write UNIX_MICROS({left}) - UNIX_MICROS({right}), in microseconds",
        )


def _microseconds(interval: Any) -> int | str:
    amount, unit = interval.this, interval.args.get("unit")
    try:
        return parse_duration(f"{amount.name} {unit.name if unit is not None else ''}").length
    except (UserError, AttributeError):
        return "microseconds"


def _written(node: Any) -> str:
    """An expression as it may be written; `x` for one that holds a query."""
    return "x" if any(node.find_all(Nested)) else str(node.sql(dialect="spark"))
