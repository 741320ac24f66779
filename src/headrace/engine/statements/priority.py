"""The priority of a query: ALTER QUERY ... SET (WEIGHT ...), and SHOW LANES."""

from __future__ import annotations

from dataclasses import replace

from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.query_changes import with_priority
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.shown.lanes import lane_row
from headrace.engine.shown.status import Status
from headrace.engine.statements.running import check_going_on
from headrace.language.statements.catalog import SetPriority
from headrace.scheduling.priority import Priority
from headrace.time import format_instant


def prioritised(core: Core, statement: SetPriority) -> str:
    """Give a query another priority.

    Args:
        core: the database.
        statement: which one.

    Returns:
        What follows from it.

    Raises:
        LanguageError: there is no such query, it has failed, or it cannot have it.
    """
    with core.lock:
        query, defined, priority = _change(core, statement)
        core.change(defined)
    return _text(core, query, priority, "has")


def explain_prioritised(core: Core, statement: SetPriority) -> str:
    """The effect that another priority would have; nothing is done.

    Raises:
        LanguageError: as of `prioritised`.
    """
    query, _, priority = _change(core, statement)
    return _text(core, query, priority, "would have")


def _change(core: Core, statement: SetPriority) -> tuple[Query, Definitions, Priority]:
    core.make_waiting()
    name, known = statement.query, core.definitions
    query = known.query_named(name.text, name.position)
    check_going_on(core, query, name.position)
    part = statement.part
    priority = replace(known.queries[query.id].priority, **{part: getattr(statement.said, part)})
    return query, with_priority(known, query, priority, statement.position), priority


def _text(core: Core, query: Query, priority: Priority, has: str) -> str:
    said = " ".join(priority.clauses) or "no priority of its own"
    if priority.weight is None:
        rest = "it takes rows together with the others, and is put behind them only where it makes them late"
    elif priority.weight:
        rest = "it takes turns beside the others, by its weight"
    else:
        rest = "it takes no rows until it has a weight; those that come are kept"
    if priority.weight is not None and core.running:
        exchange = core.started.run.reading.queries.migrations.get(query.id)
        if exchange is not None:
            at = format_instant(exchange.at, query.domain)
            rest = (
                f"it has its lane when its heartbeat has passed {at}, where its new plan takes over; {rest}"
            )
    return f"{query.name} {has} {said}: {rest}"


def lane_rows(status: Status | None) -> list[tuple[str, ...]]:
    """The lanes of a run, the front first.

    Args:
        status: of a run that goes on or is over; None if nothing has been run.
    """
    return [] if status is None else list(map(lane_row, status.lanes))
