"""ALTER QUERY ... REOPTIMIZE: another plan for a query that is running."""

from __future__ import annotations

from headrace.engine.run.core import Core
from headrace.engine.statements.running import running_query
from headrace.language.syntax import Name
from headrace.time import format_instant


def reoptimized(core: Core, name: Name) -> str:
    """Let a query join in another order, if the rows of now make one better; what became of it.

    Raises:
        LanguageError: there is no such query, or it is not running.
        PlanError: its plan cannot be exchanged, and why.
    """
    query = running_query(core, name, "a query is optimized when it is created")
    found = core.started.reoptimize(query.id)
    if found is None:
        return f"{query.name} goes on unchanged: no order suits the rows that its joins hold clearly better"
    lines = [f"{query.name} joins in another order:"]
    lines += [f"  {before} -> {after}" for before, after in zip(found.before, found.after, strict=True)]
    at = format_instant(found.at, query.domain)
    lines.append(f"the new plan answers from {at} on; until the heartbeat is there both run")
    return "\n".join(lines)
