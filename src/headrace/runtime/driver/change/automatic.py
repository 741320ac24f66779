"""Changes of the plan that a run makes by itself, or that change no answer: exchanges and merges."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Plan
from headrace.runtime.driver.change.migration.exchange import begun, ended
from headrace.runtime.driver.change.migration.join_order import Reordered
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.journal.exchanges import PlanExchange


def exchanged(
    present: Present, name: str, plan: Plan, found: Reordered | None = None, *, asked: bool = True
) -> Turn:
    """Another plan with the same answer takes over from the one that answers a query.

    Args:
        present: the run before it.
        name: the query's, which has not failed.
        plan: the other plan.
        found: why it is better, if that is known.
        asked: whether somebody has asked for it.

    Raises:
        PlanError: the plan cannot be exchanged, and why.
    """
    new = begun(present.holding(), name, plan)
    queries = new.queries
    if found is not None:
        known = queries.exchanged.get(name)
        times = (0 if known is None else known.times) + (not asked)
        at, gain = queries.migrations[name].at, round(found.gain, 2)
        last = PlanExchange(present.epoch, at, found.before, found.after, gain, asked, times)
        queries = queries.having(name, exchanged=last)
    return replace(present.turn(queries), adopted=new.adopted, given=new.given)


def exchanges_ended(present: Present) -> Turn | None:
    """New plans that have taken over run alone; None where there are none."""
    queries, holding = present.known.queries, present.holding()
    over = ended(queries, *holding.reached(queries.graph))
    return None if over is None else replace(present.turn(over[0]), adopted=over[1])


def merged(present: Present) -> Turn | None:
    """Operators of one plan whose states have become equal go on as one; None where there are none.

    Raises:
        StoreError: state cannot be read.
    """
    queries = present.merging.merged(present.holding())
    return None if queries is present.known.queries else present.turn(queries)
