"""EXPLAIN COST: what a query is expected to do, and to keep."""

from __future__ import annotations

from headrace.engine.access.policy import Policy
from headrace.engine.catalog.query_changes import adding_query
from headrace.engine.explain.cost import costs
from headrace.engine.run.core import Core
from headrace.engine.statements.tunings import known_tunings
from headrace.language.statements.statements import CreateQuery, ExplainCost


def cost_text(core: Core, statement: ExplainCost, policy: Policy) -> str:
    """The expectations of a query; of one that is to be created also what it would add to the run.

    Args:
        core: the database.
        statement: with the query.
        policy: what it may reach.

    Raises:
        PolicyError: the policy does not allow it.
        LanguageError: the query is wrong, or nothing is known of its streams.
    """
    made = statement.made
    room = None if made is None else _room_text(core, made, policy)
    plan = core.compiled(statement.query, policy, loss=None if made is None else made.loss).optimized
    text = costs(
        core.definitions,
        plan,
        statement.position,
        core.settings.run.epoch_rows,
        core.look,
        known_tunings(core),
    )
    return text if room is None else f"{text}\n{room}"


def _room_text(core: Core, made: CreateQuery, policy: Policy) -> str | None:
    """The state that a query would add to the run that goes on; None where nothing is known of it.

    Args:
        core: the database.
        made: the CREATE QUERY.
        policy: what it may reach.

    Raises:
        LanguageError: it is wrong.
    """
    policy.check_definition("EXPLAIN COST CREATE QUERY", made.position)
    with core.lock:
        core.make_waiting()
        query, plan, found = core.drafted(made, None, policy)
        defined = adding_query(core.definitions, query, plan, found.streams, made.position, made.priority)
        if core.execution is None or not core.running:
            return None
        room = core.execution.room(defined)
    return None if room is None else room.text
