"""One form for aggregates of some rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headrace.algebra.nodes import Aggregate, Plan
from headrace.expressions.tree import AggregateCall, Case, Literal


def filter_from_case(plan: Plan) -> Plan:
    """Write what an aggregate leaves out by CASE as FILTER, and a count of a constant as a count of rows.

    Before: `SELECT SUM(CASE WHEN price > 5 THEN price END), COUNT(CASE WHEN price > 5 THEN 1 END) FROM bid`
    After: `SELECT SUM(price) FILTER (WHERE price > 5), COUNT(*) FILTER (WHERE price > 5) FROM bid`

    Where CASE has another branch or an ELSE, the other rows count as well, so that of these alone SUM is 0
    and not NULL, and nothing changes; nor does it for FIRST, LAST and ARRAY_AGG, which take in NULLs. The
    condition and the value are evaluated for the same rows, so the same rows fail.
    """
    if not isinstance(plan, Aggregate):
        return plan
    calls = tuple((name, _counted(_filtered(call))) for name, call in plan.aggregates)
    same = all(new is old for (_, new), (_, old) in zip(calls, plan.aggregates, strict=True))
    return plan if same else replace(plan, aggregates=calls)


_WITH_NULLS: Final = ("FIRST", "LAST", "ARRAY_AGG")


def _filtered(call: AggregateCall) -> AggregateCall:
    if call.condition is not None or call.others or call.user or call.function in _WITH_NULLS:
        return call
    match call.argument:
        case Case(branches=((condition, value),), otherwise=Literal(value=None)):
            return replace(call, argument=value, condition=condition)
        case _:
            return call


def _counted(call: AggregateCall) -> AggregateCall:
    """COUNT(*) for a count of a constant."""
    match call:
        case AggregateCall(function="COUNT", argument=Literal(value=value), others=(), distinct=False):
            return call if value is None else replace(call, argument=None)
        case _:
            return call
