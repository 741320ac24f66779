"""ALTER QUERY ... SET (KEEP ...): of the rows of a query that bears loss another share is kept."""

from __future__ import annotations

from headrace.algebra.tunings.tunings import shares_in, size_of
from headrace.engine.run.core import Core
from headrace.engine.shown.status import instant_text
from headrace.engine.statements.describe import loss_of, worth_of
from headrace.engine.statements.resize import check_going_on, users_of
from headrace.engine.statements.running import running_query
from headrace.errors import LanguageError
from headrace.language.statements.catalog import CatalogKind, SetKeep
from headrace.runtime.driver.change.wanted import Tune
from headrace.steps import share_text
from headrace.time import BEGINNING

_NEW = "all rows are kept of one that is new"


def kept(core: Core, statement: SetKeep) -> str:
    """Keep another share of a query's rows, from some instant on.

    Args:
        core: the database.
        statement: which share.

    Returns:
        Since when it is kept, what the answer is worth by the query's loss graph, and of which other queries.

    Raises:
        LanguageError: there is no such query, it is not running, bears no loss, or no further rows come.
    """
    with core.lock:
        core.make_waiting()
        query = running_query(core, statement.query, _NEW)
        shares = shares_in(core.definitions.queries[query.id].plan)
        record = core.definitions.record_of(CatalogKind.QUERY, query.name)
        if shares and loss_of(record) is None:
            raise LanguageError(
                f"{query.name} says nothing of loss itself; a query that it reads bears loss",
                position=statement.query.position,
                hint="keep another share of the query that says LOSS TOLERANT",
            )
        if not shares:
            raise LanguageError(
                f"{query.name} does not say that rows may be left out",
                position=statement.query.position,
                hint=f"say so with CREATE OR REPLACE QUERY {query.name} LOSS TOLERANT AS ...",
            )
        (tuning,) = shares
        known = core.started.run.reading.queries.tunings
        share, users = share_text(statement.share), users_of(core, tuning)
        if size_of(tuning, known) == statement.share:
            return f"{share} of the rows is kept already"
        check_going_on(core, [tuning], statement.position)
        core.started.tune(Tune({tuning: statement.share}, {tuning: [one.id for one in users]}))
        since = core.started.run.reading.queries.tunings[tuning].steps[-1].begin
    when = "" if since == BEGINNING else f" from {instant_text(since, query.plan.domain)} on"
    said = (one for one in users if loss_of(core.definitions.record_of(CatalogKind.QUERY, one.name)))
    others = [one.name for one in said if one is not query]
    also = f"; so it is of {', '.join(others)}, which bear the same loss" if others else ""
    return f"{share} of the rows is kept{when}{worth_of(record, statement.share)}{also}"
