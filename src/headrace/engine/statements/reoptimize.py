"""ALTER QUERY ... REOPTIMIZE: another plan for a query that is running."""

from __future__ import annotations

from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.statements.running import running_query
from headrace.language.syntax import Name
from headrace.runtime.journal.exchanges import PlanExchange
from headrace.time import format_instant

_NEW = "a query is optimized when it is created"


def reoptimized(core: Core, name: Name) -> str:
    """Let a query join in another order, if the rows of now make one better; what became of it.

    Raises:
        LanguageError: there is no such query, or it is not running.
        PlanError: its plan cannot be exchanged, and why.
    """
    query = running_query(core, name, _NEW)
    found = core.started.reoptimize(query.id)
    if found is None:
        return f"{query.name} goes on unchanged: no order suits the rows that its joins hold clearly better"
    return "\n".join(
        [
            f"{query.name} joins in another order:",
            *_orders(found),
            f"the new plan answers from {_at(query, found)} on; until the heartbeat is there both run",
        ]
    )


def explain_reoptimized(core: Core, name: Name) -> str:
    """The order in which a query would join then; nothing is done.

    Raises:
        LanguageError, PlanError: as of `reoptimized`.
    """
    query = running_query(core, name, _NEW)
    found = core.started.reordering_of(query.id)
    if found is None:
        return (
            f"{query.name} would go on unchanged: no order suits the rows that its joins hold clearly better"
        )
    return "\n".join(
        [
            f"{query.name} would join in another order, for {found.gain:g} times fewer rows:",
            *_orders(found),
            f"the new plan would answer from {_at(query, found)} on; both would run until then",
        ]
    )


def _orders(found: PlanExchange) -> list[str]:
    return [f"  {before} -> {after}" for before, after in zip(found.before, found.after, strict=True)]


def _at(query: Query, found: PlanExchange) -> str:
    return format_instant(found.at, query.domain)
