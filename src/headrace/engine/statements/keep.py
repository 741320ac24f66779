"""ALTER QUERY ... SET (KEEP ...): of the rows of a query that bears loss another share is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from headrace.algebra.tunings.tunings import Tuning, shares_in, size_of, tunings_in
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.shown.status import instant_text
from headrace.engine.statements.describe import loss_of, worth_of
from headrace.engine.statements.resize import check_going_on, users_of
from headrace.engine.statements.running import running_query
from headrace.errors import LanguageError
from headrace.language.parsing.statements.losses import loss_from
from headrace.language.statements.catalog import CatalogKind, SetKeep
from headrace.optimizer.estimates.places import estimates_in
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.shedder.bounds_seen import drained_from
from headrace.runtime.driver.shedder.precision import FIRST, widest_of
from headrace.runtime.driver.shedder.usual_sizes import usual_sizes
from headrace.steps import WHOLE, share_text
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT, MIN_INSTANT

_NEW: Final = "all rows are kept of one that is new"


@dataclass(frozen=True)
class _KeepChange:
    """Another share of the rows of a query.

    Attributes:
        query: the query.
        tuning: says whose share it is.
        before, share: the share in force, and the other one (millionths).
        promise: what bounds will be by that, of a query that has promised something; else empty.
    """

    query: Query
    tuning: Tuning
    before: int
    share: int
    promise: str


def kept(core: Core, statement: SetKeep) -> str:
    """Keep another share of a query's rows, from some instant on.

    Args:
        core: the database.
        statement: which share.

    Returns:
        Since when it is kept, what the answer is worth by the query's loss graph, and of which other queries.

    Raises:
        LanguageError: there is no such query, it is not running, bears no loss, or no further rows come; or
            bounds would be further from estimates than the query has promised.
    """
    with core.lock:
        change = _change(core, statement)
        if change.before == change.share:
            return f"{share_text(change.share)} of the rows is kept already"
        users = [one.id for one in users_of(core, change.tuning)]
        means = usual_sizes(core.started.run.reading, [change.tuning])
        core.started.tune(Tune({change.tuning: change.share}, {change.tuning: users}, means=means))
        since = core.started.run.reading.queries.tunings[change.tuning].steps[-1].begin
    when = "" if since == BEGINNING else f" from {instant_text(since, change.query.plan.domain)} on"
    return f"{share_text(change.share)} of the rows is kept{when}{_effects(core, change)}"


def explain_kept(core: Core, statement: SetKeep) -> str:
    """The effect that another share of a query's rows would have; nothing is done.

    Args:
        core: the database.
        statement: which share.

    Raises:
        LanguageError: as of `kept`.
    """
    change = _change(core, statement)
    share = share_text(change.share)
    if change.before == change.share:
        return f"{share} of the rows is kept already"
    found = core.status.shedding if core.running else None
    measured = () if found is None or found.needed is None else found.shares
    saved = sum(10 * one.saves for one in measured if one.tuning == change.tuning)
    part = 100 * saved * (change.before - change.share) / WHOLE
    time = ""
    if saved:
        time = f"; that would {'save' if part > 0 else 'take'} about {abs(part):.2g} % of the run's time"
    was = f"{share_text(change.before)} is now"
    return f"{share} of the rows that come would be kept, where {was}{_effects(core, change)}{time}"


def _effects(core: Core, change: _KeepChange) -> str:
    """The worth of the answer, the promise, and the other queries of which the share is kept."""
    record = core.definitions.record_of(CatalogKind.QUERY, change.query.name)
    users = users_of(core, change.tuning)
    said = (one for one in users if loss_of(core.definitions.record_of(CatalogKind.QUERY, one.name)))
    others = [one.name for one in said if one is not change.query]
    also = f"; so it is of {', '.join(others)}, which bear the same loss" if others else ""
    return f"{worth_of(record, change.share)}{change.promise}{also}"


def _change(core: Core, statement: SetKeep) -> _KeepChange:
    """The change that is asked for.

    Raises:
        LanguageError: as of `kept`.
    """
    core.make_waiting()
    query = running_query(core, statement.query, _NEW)
    shares = shares_in(core.definitions.queries[query.id].plan)
    record = core.definitions.record_of(CatalogKind.QUERY, query.name)
    if shares and loss_of(record) is None:
        raise LanguageError(
            f"{query.name} says nothing of loss itself; a query that it reads bears loss",
            position=statement.query.position,
            hint="keep another share of the query that says LOSS TOLERANT or WITHIN",
        )
    said = loss_of(record)
    if said is not None and said.memory is not None:
        raise LanguageError(
            f"{query.name} remembers what fits into its memory",
            position=statement.position,
            hint=f"give it another one: CREATE OR REPLACE QUERY {query.name} WITHIN MEMORY '...' AS ...",
        )
    if said is not None and said.values is not None:
        raise LanguageError(
            f"{query.name} leaves out rows by their values, and no share of them",
            position=statement.position,
            hint=f"write ALTER QUERY {query.name} SET (KEEP UTILITY 0.5)",
        )
    if not shares:
        raise LanguageError(
            f"{query.name} does not say that rows may be left out",
            position=statement.query.position,
            hint=f"say so with CREATE OR REPLACE QUERY {query.name} LOSS TOLERANT AS ...",
        )
    (tuning,) = shares
    before = size_of(tuning, core.started.run.reading.queries.tunings)
    if before != statement.share:
        check_going_on(core, [tuning], statement.position)
    promise = _promise(core, tuning, before, statement)
    return _KeepChange(query, tuning, before, statement.share, promise)


def _promise(core: Core, tuning: Tuning, before: int, statement: SetKeep) -> str:
    """The bounds that are to be expected, of queries that have promised something of them.

    Raises:
        LanguageError: they would be further from estimates than was promised.
    """
    loss = loss_from(tuning.loss)
    if loss.tolerance is None or statement.share >= before:
        return ""
    promised = f"{loss.tolerance.normalize():f} percent"
    width = _width_now(core, tuning, before)
    if isinstance(width, str):
        unknown = f"where bounds will be is not known {width}"
        if statement.share < FIRST:
            raise LanguageError(
                f"{unknown}, and {statement.query.text} has promised {promised}",
                position=statement.position,
                hint=f"write KEEP {share_text(FIRST)}, or more",
            )
        return f"; {promised} are promised, and {unknown}"
    expected = loss.width_at(width, before, statement.share) if np.isfinite(width) else width
    if 100 * expected > loss.tolerance:
        least = loss.least(width, before) if np.isfinite(width) else WHOLE
        found = f"bounds would be about {100 * expected:.3g} percent from estimates"
        if not np.isfinite(width):
            found = "some estimates have no bounds, since few rows are kept of them"
        raise LanguageError(
            f"{found}, and {statement.query.text} has promised {promised}",
            position=statement.position,
            hint=f"write KEEP {share_text(least)}{'' if least == WHOLE else ', or more'}",
        )
    return f"; bounds are then about {100 * expected:.2g} percent from estimates, {promised} are promised"


def _width_now(core: Core, tuning: Tuning, share: int) -> float | str:
    """The largest distance of bounds from estimates, in parts of these, in the newest answers of a share.

    Or why that is not known: only windows count in which all rows are of the share.
    """
    if not core.settings.run.keep_results:
        return "since results are not kept"
    if share == WHOLE:
        return "before rows are left out"
    plans = {one: core.definitions.queries[one.id].plan for one in users_of(core, tuning)}
    plans = {one: plan for one, plan in plans.items() if tuning in tunings_in(plan)}
    drained = drained_from(core.started.run.reading, tuning, plans.values())
    widths = [0.0]
    for query, plan in plans.items():
        places, at = estimates_in(plan), query.horizon - 1
        if places and (query.horizon == INFINITY or not max(drained, MIN_INSTANT) <= at <= MAX_INSTANT):
            return "before windows have rows of the present share alone"
        if places:
            widths.append(widest_of(query.snapshot(at), places))
    return max(widths)
