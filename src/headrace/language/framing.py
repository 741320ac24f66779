"""Window clauses to the nodes that stand behind a table of FROM."""

from __future__ import annotations

from typing import assert_never

from headrace.algebra.nodes import Filter, Plan, RowWindow, TimeWindow
from headrace.algebra.properties import domain_of
from headrace.language.catalog import check_duration
from headrace.language.cursor import position_of
from headrace.language.scalars import Context, bind_scalar, located
from headrace.language.scope import Scope
from headrace.language.syntax import RangeFrame, RowsFrame, WindowClause
from headrace.time import Duration


def windowed(plan: Plan, window: WindowClause | None, scope: Scope) -> Plan:
    """The plan under its window; the default and NOW are no node, since they change nothing (PIPES).

    Args:
        plan: what stands before the window.
        window: the clause, if there is one.
        scope: the table's columns.

    Raises:
        LanguageError: the clause has an unknown column or a wrong type or unit, or cannot stand there.
    """
    if window is None:
        return plan
    if window.condition is not None:
        predicate = bind_scalar(window.condition, Context(scope, "WHERE"))
        with located(position_of(window.condition)):
            plan = Filter(plan, predicate)
    keys = tuple(scope.column(key.table, key.name) for key in window.partition)
    match window.frame:
        case None:
            return plan
        case RowsFrame(rows=rows, slide=every):
            with located(window.position):
                return RowWindow(plan, rows, every, keys)
        case RangeFrame():
            # The rows of an interval are the same, partition by partition or all together (thesis, 8.1).
            return _ranged(plan, window.frame, window)
        case _:
            assert_never(window.frame)


def _ranged(plan: Plan, frame: RangeFrame, window: WindowClause) -> Plan:
    domain = domain_of(plan)
    check_duration(frame.size, domain, "RANGE", window.position)
    slide = frame.slide or Duration(1)
    if frame.slide is not None:
        check_duration(frame.slide, domain, "SLIDE", window.position)
    with located(window.position):
        return TimeWindow(plan, frame.size, slide)
