"""The queries that are brought to the present before they join a run, and that run with them.

A query that begins, goes on after a pause, or takes the place of another one is brought to the present over
rows that are kept, if these are enough. Otherwise it begins with the rows that come from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.errors import UserError
from headrace.runtime.driver.beside.refill import refill_of
from headrace.runtime.driver.beside.starting_at import AnswerStart, CatchUp
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.content.larger_windows import shift_of
from headrace.runtime.driver.change.pause import answering_anew, exact_anew_at, lacking, resumed
from headrace.runtime.driver.change.redefinition import adopted, shifts_of
from headrace.runtime.driver.change.turn import Present
from headrace.runtime.driver.change.wanted import JoinRun, Redefine, Wanted
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.intake.streams import Streams, is_retained
from headrace.time import BEGINNING, INFINITY

_LOG: Final = logging.getLogger("headrace")

Starts = Mapping[str, AnswerStart | None]
"""Since when queries answer that begin or go on, by name; None from now on, with what kept rows say."""


def catch_up_of(run: Run, name: str, start: AnswerStart | None, wanted: Wanted) -> CatchUp | None:
    """The catching up of a query that is to join a run, or to take the place of one of its queries.

    Args:
        run: the run.
        name: the query's.
        start: since when it is to answer; None from now on.
        wanted: what the run is with it.

    Returns:
        None where it begins without: nothing from before matters, or rows that matter are not kept.

    Raises:
        UserError: rows are missing from an instant on that was asked for.
    """
    plan, streams, waits = wanted.plans[name], wanted.streams, name in wanted.holds
    known = run.reading.queries
    if start is not None:
        return None if start.now else CatchUp(run, name, plan, start, streams)
    if name in known.plans:
        return refill_of(run, name, plan, streams, waits=waits)
    if waits:
        return None
    try:
        if name in known.paused:
            return _past_pause(run, name, plan, streams)
        return _filled(run, name, plan, streams, by_itself=len(wanted.plans.keys() - known.plans.keys()) == 1)
    except UserError:
        return None


@dataclass(frozen=True)
class Creation:
    """The beginning of a query that is created.

    Attributes:
        at: the instant from which on it answers; BEGINNING where it is there before the first row.
        exact: the one from which on it is exact; INFINITY where none is known.
        rows: how many rows are read first of those that are kept; None where none are.
        warm: whether it takes over the state of queries that run.
        windows: the names of queries whose larger windows hold what it begins with.
    """

    at: int
    exact: int
    rows: int | None = None
    warm: bool = False
    windows: tuple[str, ...] = ()


def beginning_of(run: Run, name: str, starts: Starts, change: Redefine) -> Creation:
    """The beginning that a query would have that is created, or resumed, now.

    Args:
        run: the run that is to answer it.
        name: the query's.
        starts: since when it is to answer, if something is said of that.
        change: the change with which it would begin if it were not brought to the present.

    Raises:
        UserError: rows are missing from an instant on that was asked for, or there is no state to take over.
    """
    if not run.totals.epochs:
        return Creation(BEGINNING, BEGINNING)
    present, wanted = run.present, change.wanted
    if name not in change.warm:
        found = catch_up_of(run, name, starts.get(name), wanted)
        if found is not None:
            found.discard()
            return Creation(found.answers_from, max(found.answers_from, found.exact), found.progress.left)
    return _beginning_at_once(present, name, change)


def _beginning_at_once(present: Present, name: str, change: Redefine) -> Creation:
    """The beginning of a query that is not brought to the present."""
    known, wanted, points = present.known.queries, change.wanted, present.point
    was = known.paused.get(name)
    if was is not None and was.heartbeat == INFINITY:
        return Creation(INFINITY, INFINITY)
    taken_over = {query: one.adoption for query, one in adopted(present, change).items()}
    paused = {query: one for query, one in known.paused.items() if query not in wanted.plans}
    look = present.settings.look
    begun = known.changed(wanted.plans, present.epoch, look, taken_over, wanted.holds, paused)
    shift = shifts_of(present, change, begun).get(name)
    exacts = {} if shift is None else {name: shift.exact}
    begun = resumed(begun, present.epoch, known, points, exacts)
    if was is None:
        begun = lacking(begun, (name,), known, points, exacts)
    record = begun.answered[name]
    at = answering_anew(record.plan, points) if record.warm is None else record.warm.answers_from
    exact = next((gap.exact for gap in record.gaps[-1:] if gap.exact is not None), at)
    windows = () if shift is None else tuple(map(known.name_of, shift.queries))
    return Creation(at, exact, warm=name in taken_over, windows=windows)


def begun_empty(starts: Starts) -> frozenset[str]:
    """The queries that begin with nothing from before, since that was said."""
    return frozenset(name for name, start in starts.items() if start is not None and start.now)


def keeps_rows(plan: Plan, streams: Streams) -> bool:
    """Whether rows of a stream are kept that a plan reads."""
    return any(is_retained(streams[source.name]) for source in sources_of(plan))


def _past_pause(run: Run, name: str, plan: Plan, streams: Streams) -> CatchUp | None:
    """The catching up of a query that was paused; None where it would lack an instant.

    Raises:
        UserError: rows of meanwhile or of before are not kept.
    """
    heartbeat = run.reading.queries.paused[name].heartbeat
    if heartbeat == INFINITY:
        return None
    found = CatchUp(run, name, plan, AnswerStart(heartbeat), streams)
    return found if found.answers_from <= heartbeat else None


def _filled(run: Run, name: str, plan: Plan, streams: Streams, *, by_itself: bool) -> CatchUp | None:
    """The catching up of a query that begins, over the rows from before that it looks back to.

    Where not all of these are kept, it has those that are, and says from when on it is exact. None where it
    looks back to none, or all of its answer is final, or if it begins by itself what larger windows hold is
    as much.

    Raises:
        UserError: what it looks back to has no end, and is not all kept.
    """
    begins = answering_anew(plan, run.point)
    shift = shift_of(run.present.holding(), plan, waits=False) if by_itself else None
    anew = min(exact_anew_at(plan, run.point), INFINITY if shift is None else shift.exact)
    if anew <= begins:
        return None
    found = CatchUp(run, name, plan, AnswerStart(begins), streams, at_once=True)
    return found if found.exact < anew else None


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
        found = _brought_to(run, name, starts[name], wanted)
        if found is not None:
            waiting.remove(name)
            # From here on what was written may count, whatever goes wrong.
            run.change(JoinRun(_without(wanted, waiting), found))
    if waiting:
        # Those are left that begin with what comes, or are there before the first row.
        run.change(Redefine(wanted, empty=begun_empty(starts)))


def _brought_to(run: Run, name: str, start: AnswerStart | None, wanted: Wanted) -> Joining | None:
    """The state and answer that a query joins with; None without any rows from before."""
    catching_up = catch_up_of(run, name, start, wanted)
    if catching_up is None:
        return None
    try:
        return brought(catching_up)
    except UserError as error:
        if start is not None:
            raise
        called = run.reading.queries.name_of(name)
        _LOG.warning("%s cannot be brought to the present over the rows that are kept: %s", called, error)
        return None


def _without(wanted: Wanted, waiting: list[str]) -> Wanted:
    """The same without queries that have yet to join; those that were paused stay so."""
    left = {*waiting}
    plans = {query: plan for query, plan in wanted.plans.items() if query not in left}
    described = None if wanted.description is None else wanted.description.without(left)
    return replace(wanted, plans=plans, description=described, to_pause={*wanted.to_pause, *left})
