"""Conditions on the present as windows.

Before: `SELECT * FROM bid WHERE ts > NOW() - INTERVAL '1' HOUR`
After: `SELECT * FROM bid WINDOW(RANGE 1 HOUR)`

The content at an instant consists of the rows for which the condition holds at that instant. So a row is
there for as long as it holds: from when the timestamp is not too late any more until it is too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from headrace.algebra.nodes import Plan, instant_type
from headrace.algebra.predicates import conjuncts
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError
from headrace.expressions.tree import Call, Column
from headrace.language.binding.distances import Distance, distances
from headrace.language.binding.scalars.clock_calls import asks_clock
from headrace.language.binding.scalars.context import Context
from headrace.language.binding.scalars.scalars import bind_scalar
from headrace.language.binding.scope import Scope
from headrace.language.dialect import Nested, position_of
from headrace.language.syntax import LifetimeFrame, RangeWindowFrame, Scalar, WindowClause, WindowFrame
from headrace.time import INFINITY, Duration, TimeDomain


def with_present(
    plan: Plan, window: WindowClause | None, scope: Scope, where: Sequence[Scalar]
) -> tuple[WindowClause | None, Scope]:
    """A table's window, which conditions of WHERE may ask for, and its columns with the conditions so met.

    Args:
        plan: the table.
        window: the window that is written after it.
        scope: its columns.
        where: the conditions, which AND connects.

    Raises:
        LanguageError: the conditions hold for no row.
    """
    if window is not None or not (timestamp_columns(plan) and plan.is_chronon):
        return window, scope
    found = {id(part): bounds for part in where if (bounds := _bounds(part, plan, scope))}
    if not found:
        return window, scope
    first = position_of(next(part for part in where if id(part) in found))
    bounds = [bound for part in found.values() for bound in part]
    least = max((low for low, _ in bounds if low is not None), default=None)
    most = min((high for _, high in bounds if high is not None), default=0)
    # No row is there before its own instant.
    most = min(most, 0)
    if least is not None and least > most:
        hint = "NOW() is not before the timestamp of any row that there is"
        raise LanguageError("these conditions hold for no row", position=first, hint=hint)
    length = INFINITY if least is None else most - least + 1
    frame = _frame(length, -most, plan.domain)
    tables = tuple(replace(table, met=frozenset(found)) for table in scope.tables)
    return WindowClause(frame, (), None, first), replace(scope, tables=tables)


def _frame(length: int, delay: int, domain: TimeDomain) -> WindowFrame:
    unit = "MICROSECOND" if domain is TimeDomain.TIMESTAMP else None
    size = Duration(length, None if length == INFINITY else unit)
    if not delay:
        return RangeWindowFrame(size, None)
    return LifetimeFrame(None, None, Duration(delay, unit), False, size, Duration(1))


def _bounds(part: Scalar, plan: Plan, scope: Scope) -> Sequence[Distance]:
    """How much later than the present the timestamp is by a condition; nothing if that is not all it says."""
    if part.find(Nested) or not asks_clock(part):
        return ()
    width = len(plan.schema)
    context = Context(scope, "WHERE", now=Column(width, "now", instant_type(plan)))
    bounds: list[Distance] = []
    with suppress(LanguageError):
        for condition in conjuncts(bind_scalar(part, context)):
            said = distances(condition, (timestamp_columns(plan), {width}))
            is_between = isinstance(condition, Call) and condition.function == "BETWEEN"
            if len(said) < 1 + is_between:
                return ()
            bounds += said
    return bounds
