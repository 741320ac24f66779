"""ALTER QUERY ... SET (KEEP UTILITY ...): rows are left out whose values are worth less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.algebra.tunings.tunings import Tuning, size_of, thresholds_in
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.shown.status import instant_text
from headrace.engine.statements.describe import loss_of
from headrace.engine.statements.resize import check_going_on, users_of
from headrace.engine.statements.running import running_query
from headrace.errors import LanguageError
from headrace.language.names import quoted_name
from headrace.language.parsing.statements.losses import loss_from
from headrace.language.statements.catalog import CatalogKind, SetKeep
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.shedder.values_seen import values_seen
from headrace.steps import WHOLE
from headrace.time import BEGINNING
from headrace.value_graph import ValueGraph

_NEW: Final = "all rows are kept of one that is new"


@dataclass(frozen=True)
class _ThresholdChange:
    """Another least utility of the rows of a query.

    Attributes:
        query: the query.
        tuning: says whose least utility it is.
        graph: what values are worth.
        before, threshold: the one in force, and the other one (millionths).
    """

    query: Query
    tuning: Tuning
    graph: ValueGraph
    before: int
    threshold: int


def values_kept(core: Core, statement: SetKeep) -> str:
    """Keep the rows of a query that are worth so much by their values, from some instant on.

    Args:
        core: the database.
        statement: the least utility of a row that is kept.

    Returns:
        Which rows are left out, from when on, and of which other queries.

    Raises:
        LanguageError: there is no such query, it is not running, it says nothing of values, or no further
            rows come.
    """
    with core.lock:
        change = _change(core, statement)
        if change.before == change.threshold:
            return f"{change.graph.told(change.threshold)} already"
        users = [one.id for one in users_of(core, change.tuning)]
        core.started.tune(Tune({change.tuning: change.threshold}, {change.tuning: users}))
        since = core.started.run.reading.queries.tunings[change.tuning].steps[-1].begin
    when = "" if since == BEGINNING else f" from {instant_text(since, change.query.plan.domain)} on"
    return f"{change.graph.told(change.threshold)}{when}{_also(core, change)}"


def explain_values_kept(core: Core, statement: SetKeep) -> str:
    """The effect that another least utility would have; nothing is done.

    Args:
        core: the database.
        statement: the least utility of a row that is kept.

    Raises:
        LanguageError: as of `values_kept`.
    """
    change = _change(core, statement)
    if change.before == change.threshold:
        return f"{change.graph.told(change.threshold)} already"
    then = change.graph.told(change.threshold, "would be")
    return f"{then}, where {change.graph.told(change.before)} now{_also(core, change)}{_kept(core, change)}"


def _kept(core: Core, change: _ThresholdChange) -> str:
    """The part of the rows that came lately which would be kept, and what it saves; nothing if none came."""
    reading = core.started.run.reading
    seen = values_seen(reading.queries.graph, reading.statistics).get(change.tuning)
    if seen is None or not seen.worths.any():
        return ""
    share, before = (seen.share(one) / WHOLE for one in (change.threshold, change.before))
    worth = f"with {seen.utility(change.threshold):.3g} of all utility"
    part = f"; {share:.3g} of the rows that came lately are worth as much, {worth}"
    shedding = core.status.shedding
    shares = () if shedding is None or shedding.needed is None else shedding.shares
    saved = 100 * sum(10 * one.saves for one in shares if one.tuning == change.tuning) * (before - share)
    time = f"; that would {'save' if saved > 0 else 'take'} about {abs(saved):.2g} % of the run's time"
    return f"{part}{time if saved else ''}"


def _also(core: Core, change: _ThresholdChange) -> str:
    """The other queries of which the same rows are left out."""
    users = (one for one in users_of(core, change.tuning) if one is not change.query)
    said = [one for one in users if loss_of(core.definitions.record_of(CatalogKind.QUERY, one.name))]
    return f"; so it is of {', '.join(one.name for one in said)}, which say the same" if said else ""


def _change(core: Core, statement: SetKeep) -> _ThresholdChange:
    """The change that is asked for.

    Raises:
        LanguageError: as of `values_kept`.
    """
    core.make_waiting()
    query = running_query(core, statement.query, _NEW)
    loss = loss_of(core.definitions.record_of(CatalogKind.QUERY, query.name))
    found = thresholds_in(core.definitions.queries[query.id].plan)
    if loss is None or loss.values is None:
        name = quoted_name(query.name)
        anew = f"say so with CREATE OR REPLACE QUERY {name} LOSS TOLERANT BY column (value: utility, ...) AS"
        shares = f"write ALTER QUERY {name} SET (KEEP 0.5), which keeps a share of its rows"
        raise LanguageError(
            f"{query.name} does not say what its rows are worth by their values",
            position=statement.position,
            hint=anew if loss is None or loss.memory is not None else shares,
        )
    (tuning,) = (one for one in found if loss_from(one.loss).values is not None)
    before = size_of(tuning, core.started.run.reading.queries.tunings)
    if before != statement.share:
        check_going_on(core, [tuning], statement.position)
    graph = loss_from(tuning.loss).values
    assert graph is not None
    return _ThresholdChange(query, tuning, graph, before, statement.share)
