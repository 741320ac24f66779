"""CREATE SINK and DROP SINK: where the changes of queries go."""

from __future__ import annotations

from pathlib import Path

from headrace.engine.access.policy import Policy
from headrace.engine.catalog.claims import differs, with_sink
from headrace.engine.catalog.sinks import made_sink, placed
from headrace.engine.catalog.texts import sink_definition
from headrace.engine.run.core import Core
from headrace.language.statements.sinks import CreateSink, DropSink


def create_sink(core: Core, statement: CreateSink, base: Path, policy: Policy) -> None:
    """Carry out CREATE SINK.

    Args:
        core: the database.
        statement: it.
        base: the folder that its relative paths start from.
        policy: what it may reach.

    Raises:
        PolicyError: the policy does not allow it.
        LanguageError: it is wrong, there is no such query, or the name is taken.
        UserError: the sink cannot be used.
    """
    policy.check_sink(statement)
    with core.lock:
        core.make_waiting()
        known = core.definitions
        query = known.query_named(statement.query.text, statement.query.position)
        made = placed(statement, base, policy)
        given = sink_definition(made, query.name, policy)
        if core.is_stored(given):
            core.definitions = with_sink(known, given, statement.position)
            return
        # One that a store has keeps what it is known by to what it has delivered to.
        before = known.records.known.get(given.key)
        if before is not None and given.key in known.records.waiting and before.text != given.text:
            raise differs(known, given, statement.position)
        delivery = (before or given).delivery if core.settings.storage is not None else None
        taken = (one for one in core.attachments if one.identity == query.id)
        sink = made_sink(made, query, delivery, taken)
        core.take_sink(sink, given, statement.position)


def drop_sink(core: Core, statement: DropSink, policy: Policy) -> str | None:
    """Carry out DROP SINK.

    Args:
        core: the database.
        statement: it.
        policy: what it may reach.

    Returns:
        What the sink has not taken, where it fails; None otherwise.

    Raises:
        PolicyError: the policy does not allow it.
        LanguageError: there is no such sink.
    """
    policy.check_change("DROP SINK", statement.position)
    name = statement.name
    problem = core.drop_sink(name.text, name.position)
    return None if problem is None else f"{name.text} is dropped, and has not taken everything: {problem}"
