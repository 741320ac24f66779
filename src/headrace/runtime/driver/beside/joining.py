"""The queries that are brought to the present before they join a run, and that run with them.

A query that begins, goes on after a pause, or takes the place of another one is brought to the present over
rows that are kept, if these are where its state is to come from.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.errors import UserError
from headrace.runtime.driver.beside.refill import Refill
from headrace.runtime.driver.beside.starting_at import CatchUp
from headrace.runtime.driver.change.beginning.kept_input import KeptInput
from headrace.runtime.driver.change.beginning.newcomer import Newcomer, newcomers
from headrace.runtime.driver.change.beginning.provenance import provenance_of
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.content.larger_windows import Shift
from headrace.runtime.driver.change.wanted import JoinRun, Redefine, Starts, Wanted
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.intake.streams import Streams, is_retained

_LOG: Final = logging.getLogger("headrace")


def catch_up_of(run: Run, one: Newcomer) -> CatchUp | None:
    """The catching up of a query that is to join a run, or to take the place of one of its queries.

    Args:
        run: the run.
        one: the query, for which there is time to read kept rows.

    Returns:
        None where its state comes from elsewhere.

    Raises:
        PlanError: all of the answer is final in whose place its own is to be.
        UserError: rows are missing from an instant on that was asked for.
    """
    found = provenance_of(one)
    return catching_up(run, one, found) if isinstance(found, KeptInput) else None


def catching_up(run: Run, one: Newcomer, rows: KeptInput) -> CatchUp:
    """The catching up of a query over kept rows.

    Raises:
        UserError: a file of a relation that it reads has changed.
    """
    return (Refill if rows.takes_over else CatchUp)(run, one.query, rows)


def keeps_rows(plan: Plan, streams: Streams) -> bool:
    """Whether rows of a stream are kept that a plan reads."""
    return any(is_retained(streams[source.name]) for source in sources_of(plan))


def brought(catching_up: CatchUp) -> Joining:
    """Bring a query to the present; what it begins with.

    Raises:
        UserError: the query fails on rows that were kept.
        StoreError: rows cannot be read.
    """
    try:
        while catching_up.step():
            pass
        return catching_up.finish()
    except BaseException:
        catching_up.discard()
        raise


def join(run: Run, starts: Starts, wanted: Wanted) -> None:
    """Let queries begin or go on, one after the other, each with a change of the plan.

    Those whose streams keep the rows that they need lack nothing. The others answer over the rows that come
    from now on, and have a gap.

    Args:
        run: the run that they join, which answers all others.
        starts: since when each of them is to answer.
        wanted: what the run is with all of them.

    Raises:
        UserError: rows are missing from an instant on that was asked for, or a query fails on them; those
            before it have joined.
        StoreError: rows cannot be read, or a record cannot be written.
    """
    waiting = list(starts)
    for name in starts if run.totals.epochs else ():
        now = _without(wanted, [other for other in waiting if other != name])
        (one,) = newcomers(run.present, now, (name,), {}, starts, beside=True)
        change = _change_for(run, one, now, starts)
        if change is not None:
            waiting.remove(name)
            # From here on what was written may count, whatever goes wrong.
            run.change(change)
    if waiting:
        # Those are left that begin with what comes, or are there before the first row.
        run.change(Redefine(wanted, starts=starts))


def _change_for(run: Run, one: Newcomer, wanted: Wanted, starts: Starts) -> JoinRun | Redefine | None:
    """The change by itself with which a query begins; None where it may begin together with others."""
    match found := provenance_of(one):
        case KeptInput():
            try:
                return JoinRun(wanted, brought(catching_up(run, one, found)))
            except UserError as error:
                if one.start is not None:
                    raise
                _LOG.warning(
                    "%s cannot be brought to the present over the rows that are kept: %s", one.called, error
                )
                return None
        case Shift():
            return Redefine(wanted, starts=starts)
        case _:
            return None


def _without(wanted: Wanted, waiting: list[str]) -> Wanted:
    """The same without queries that have yet to join; those that were paused stay so."""
    left = {*waiting}
    plans = {query: plan for query, plan in wanted.plans.items() if query not in left}
    described = None if wanted.description is None else wanted.description.without(left)
    return replace(wanted, plans=plans, description=described, to_pause={*wanted.to_pause, *left})
