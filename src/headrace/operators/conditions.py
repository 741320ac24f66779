"""The conditions of a filter, those first that take out most rows for what they cost.

Conditions that AND connects are asked in decreasing order of `(1 - s) / c` (Aurora, section 4.3): s is the
part of the rows that pass, counted on some rows of the batch, and c what a row costs. A condition is
asked for the rows that are left. The answer does not depend on the order, and neither do the rows that fail:
only conditions that cannot fail change places, and none of them with one that can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, assert_never

import numpy as np
import pyarrow as pa

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.failure import can_fail
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.elements import BoolArray, Int64Array
from headrace.expressions.evaluation.evaluate import Outcome, evaluate, predicate_mask
from headrace.expressions.evaluation.values import Failures
from headrace.expressions.tree import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Literals,
    children,
    columns_of,
    transform_columns,
)

MIN_ROWS: Final = 2_000
"""Of fewer rows all conditions are asked together."""
_SOME: Final = 200
"""So many rows, evenly spread, say which part of all passes."""
_DEAR: Final = 50.0
"""What costs less (ns per row) is not worth the choice."""

_COMPARED: Final = ("=", "<>", "<", "<=", ">", ">=", "IS NULL", "IS NOT NULL", "IN", "BETWEEN")
_COMPUTED: Final = ("+", "-", "*", "NEGATE", "ABS", "AND", "OR", "NOT", "IS NOT DISTINCT FROM", "COALESCE")
_OF_TIMES: Final = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "UNIX_MICROS")
_BY_NAME: Final = {
    **dict.fromkeys((*_COMPARED, *_COMPUTED, *_OF_TIMES), 3.0),
    **dict.fromkeys(("LIKE", "REGEXP_LIKE", "REGEXP_EXTRACT"), 300.0),
}
"""What a call costs, about (ns per row of 30 bytes of text)."""
_OTHERS: Final = 100.0
"""What a call of another function costs, about (ns per row)."""
_OF_USER: Final = 1_000.0
"""What a call of a function of the user's costs, about (ns per row)."""


@dataclass(frozen=True)
class Condition:
    """A part of a predicate.

    Attributes:
        columns: those that it reads.
        expression: over these columns alone.
        cost: what it costs (ns per row).
    """

    columns: tuple[int, ...]
    expression: Expression
    cost: float

    def asked(self, rows: pa.RecordBatch, places: Int64Array) -> Outcome:
        """Its values for the rows at some places."""
        read = rows.select(list(self.columns)) if self.columns else rows
        return evaluate(
            self.expression, read if len(places) == rows.num_rows else read.take(pa.array(places))
        )


@dataclass(frozen=True)
class Conditions:
    """The parts of a predicate that AND connects.

    Attributes:
        free: those before the first that can fail.
        rest: the others together, or None.
    """

    free: tuple[Condition, ...]
    rest: Condition | None


def evaluate_condition(predicate: Expression, rows: pa.RecordBatch) -> Outcome:
    """A predicate's values, TRUE or not, and the rows for which it fails: those of `evaluate`.

    Args:
        predicate: a BOOLEAN expression.
        rows: n rows.
    """
    if rows.num_rows < MIN_ROWS:
        return evaluate(predicate, rows)
    conditions = _conditions(predicate)
    parts = [*conditions.free, *([] if conditions.rest is None else [conditions.rest])]
    if len(parts) < 2 or all(part.cost < _DEAR for part in parts):
        return evaluate(predicate, rows)
    return _in_turn(conditions, rows)


def cost_of(expression: Expression) -> float:
    """What an expression costs, about (ns per row)."""
    below = sum(map(cost_of, children(expression)))
    match expression:
        case Column() | Literal() | Literals():
            return 0.0
        case Call(function=function, user=None):
            return below + _BY_NAME.get(function, _OTHERS)
        case Call():
            return below + _OF_USER
        case Cast():
            return below + _OTHERS
        case Case():
            return below + _BY_NAME["="]
        case _:
            assert_never(expression)


def _ordered(predicate: Expression) -> Conditions:
    parts = conjuncts(predicate)
    free = next((place for place, part in enumerate(parts) if can_fail(part)), len(parts))
    rest = conjunction(parts[free:])
    return Conditions(tuple(map(_condition, parts[:free])), None if rest is None else _condition(rest))


_conditions: Final = ByObject(_ordered, REMEMBERED)
"""By the predicate itself: one that is equal may call another function of a user."""


def _condition(part: Expression) -> Condition:
    columns = sorted(columns_of(part))
    places = {index: place for place, index in enumerate(columns)}
    moved = transform_columns(part, lambda read: replace(read, index=places[read.index]))
    return Condition(tuple(columns), moved, cost_of(part))


def _in_turn(conditions: Conditions, rows: pa.RecordBatch) -> Outcome:
    """One condition after the other, each for the rows that no other one has taken out."""
    some = np.linspace(0, rows.num_rows - 1, min(_SOME, rows.num_rows)).astype(np.int64)
    left = np.arange(rows.num_rows)
    true: BoolArray = np.ones(rows.num_rows, dtype=np.bool_)

    def rank(part: Condition) -> float:
        passed = predicate_mask(part.asked(rows, some))
        return (1 - float(passed.mean())) / max(part.cost, 1.0)

    for part in sorted(conditions.free, key=rank, reverse=True):
        outcome = part.asked(rows, left)
        passed = predicate_mask(outcome)
        true[left[~passed]] = False
        # What comes after NULL may fail, and what comes after FALSE may not.
        left = left[passed if conditions.rest is None else passed | np.asarray(outcome.values.is_null())]
    failures: Failures = ()
    if conditions.rest is not None:
        outcome = conditions.rest.asked(rows, left)
        true[left[~predicate_mask(outcome)]] = False
        failures = tuple((reason, _at(left[mask], rows.num_rows)) for reason, mask in outcome.failures)
    return Outcome(pa.array(true), failures)


def _at(places: Int64Array, count: int) -> BoolArray:
    """bool[count]: true at some places."""
    found = np.zeros(count, dtype=np.bool_)
    found[places] = True
    return found
