"""Hints for unknown functions and operators: what to write instead, with the query's own names."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from headrace.errors import LanguageError, PlanError, Position
from headrace.expressions.aggregates import aggregates
from headrace.expressions.functions import functions
from headrace.language.binding.scope import Scope
from headrace.language.dialect import Nested, position_of
from headrace.language.synonyms import CALLS, REWRITES, UNLIKE, WINDOWS
from headrace.language.types import TYPES
from headrace.schema import TIMESTAMP, check_column
from headrace.suggestions import did_you_mean


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
    if (upper in TYPES or upper == "STR") and len(arguments) == 1:
        return f"write CAST({arguments[0]} AS {'STRING' if upper == 'STR' else upper})"
    if upper in REWRITES:
        table = scope.tables[0].stream or scope.tables[0].alias or "name"
        given = ", ".join(arguments)
        return "write " + REWRITES[upper].format(*arguments, *"xyz"[len(arguments) :], all=given, table=table)
    own = [known.name for known in scope.functions.values()]
    known = (*functions.FUNCTIONS, *aggregates.AGGREGATES, *aggregates.COMPOSED, *own)
    in_python = f"define it in Python, db.function('{name}', ...); SHOW FUNCTIONS lists all others"
    close = None if upper in UNLIKE else did_you_mean(name, known, cutoff=0.75)
    return CALLS.get(upper) or close or in_python


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


def check_listed(node: Any, dtype: pa.DataType, position: Position) -> None:
    """Refuse an item of a SELECT list whose type no column has.

    Args:
        node: the item.
        dtype: its type.
        position: its place.

    Raises:
        LanguageError: it is an INTERVAL.
    """
    try:
        check_column(dtype)
    except PlanError as error:
        hint = error.hint
        if isinstance(node, exp.Sub):
            start, end = _written(node.expression), _written(node.this)
            hint = f"write TIMESTAMPDIFF(SECOND, {start}, {end}), or another unit"
        raise LanguageError(error.message, position=position, hint=hint) from None


def method_hint(node: Any) -> str:
    """How `x.startswith('a')` is written."""
    call = node.expression
    arguments = ", ".join(map(_written, (node.this, *call.expressions)))
    return f"write {str(call.name).upper()}({arguments})"


def _written(node: Any) -> str:
    """An expression as it may be written; `x` for one that holds a query."""
    return "x" if any(node.find_all(Nested)) else str(node.sql(dialect="spark"))
