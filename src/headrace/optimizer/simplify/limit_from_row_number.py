"""Rows are numbered only as far as somebody reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headrace.algebra.frames import MAX_ROWS
from headrace.algebra.nodes import Filter, Plan, TopK
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.tree import Call, Column, Expression, Literal


def limit_from_row_number(plan: Plan) -> Plan:
    """Make conditions on the place of a row the limit of a TopK.

    Before: `SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS n
    FROM bid WINDOW(RANGE 1 HOUR)) WHERE n <= 3 AND price > 1`
    After: `SELECT * FROM (...) WHERE price > 1`, where each auction's rows are numbered up to the third.

    RANK and DENSE_RANK go the same way. Other conditions stay, since the rows that they leave out have places
    as well. A row beyond the limit on which they would fail is no longer looked at: there may be fewer dead
    letters.
    """
    match plan:
        case Filter(input=TopK(number=number) as top, predicate=predicate) if number is not None:
            place = len(top.input.schema)
            parts = conjuncts(predicate)
            bounds = {part: found for part in parts if (found := _bounds(part, place)) is not None}
            if not bounds:
                return plan
            first = max(top.offset, *(low - 1 for low, _ in bounds.values()))
            ends = [high for _, high in bounds.values()]
            last = min(ends if top.limit is None else [top.offset + top.limit, *ends])
            limit = None if last >= MAX_ROWS else max(last - first, 0)
            limited = replace(top, offset=first, limit=limit)
            rest = conjunction(part for part in parts if part not in bounds)
            return limited if rest is None else Filter(limited, rest)
        case _:
            return plan


_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _bounds(part: Expression, place: int) -> tuple[int, int] | None:
    """The smallest and the largest value that a comparison with a whole number leaves to a column, from 1."""
    match part:
        case Call(function=name, arguments=(Column(index=index), Literal(value=int(value)))):
            pass
        case Call(function=turned, arguments=(Literal(value=int(value)), Column(index=index))):
            name = _TURNED.get(turned, "")
        case _:
            return None
    if index != place or isinstance(value, bool) or not 0 <= value < MAX_ROWS:
        return None
    bounds = {
        "<": (1, value - 1),
        "<=": (1, value),
        ">": (value + 1, MAX_ROWS),
        ">=": (max(value, 1), MAX_ROWS),
        "=": (max(value, 1), value),
    }
    return bounds.get(name)
