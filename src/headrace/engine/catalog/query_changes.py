"""Definitions after a query or a sink has come or gone, or become another one."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.tunings import shares_in
from headrace.engine.catalog.consistency import at_level
from headrace.engine.catalog.definitions import DefinedQuery, Definitions, unknown
from headrace.engine.catalog.entries import Entries
from headrace.engine.catalog.sinks import DefinedSink
from headrace.engine.catalog.texts import (
    releveled,
    renamed,
    renamed_in_sink,
    reprioritised,
)
from headrace.engine.inputs.read_again import check_refreshed
from headrace.engine.query.choices import holds_in
from headrace.engine.query.query import Query
from headrace.errors import LanguageError, Position
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.statements import Consistency, Heartbeats
from headrace.language.syntax import Name
from headrace.lowering.memory import remembering_all
from headrace.lowering.query_id import number_of
from headrace.runtime.driver.lanes.ability import obstacle_in
from headrace.runtime.journal.definition import Definition, key_of
from headrace.scheduling.priority import USUAL, Priority


def adding_query(
    defined: Definitions,
    query: Query,
    optimized: Plan,
    streams: frozenset[str],
    position: Position | None,
    priority: Priority = USUAL,
) -> Definitions:
    """The definitions with one more query.

    Args:
        defined: what is defined.
        query: the query.
        optimized: its plan, optimized.
        streams: the streams that its text names, in lower case.
        position: where the query is defined, if that is known.
        priority: what it says of its share of the processor, and of how late it may be.

    Raises:
        LanguageError: the name is taken, or it cannot have the priority.
    """
    if defined.find_query(query.name) is not None:
        raise LanguageError(
            f"there is a query {query.name} already", position=position, hint="choose another name"
        )
    _check_priority(query, optimized, priority, position)
    others = (known.query.plan for known in defined.queries.values() if not known.paused)
    check_refreshed(query.name, query.plan, others, position)
    return replace(
        defined,
        queries=defined.queries.adding(query.id, DefinedQuery(query, optimized, streams, priority=priority)),
        identities=defined.identities.adding(query.name.lower(), query.id),
        made=max(defined.made, number_of(query.id)),
    )


def replacing(
    defined: Definitions,
    query: Query,
    optimized: Plan,
    streams: frozenset[str],
    given: Definition,
    position: Position,
    priority: Priority = USUAL,
) -> Definitions:
    """Another query in the place of the one of its name, which is not paused.

    Args:
        defined: what is defined.
        query: the query.
        optimized: its plan, optimized.
        streams: the streams that its text names, in lower case.
        given: how it is defined; what was said of the other one stays.
        position: where it is defined.
        priority: what it says of its share of the processor, and of how late it may be.

    Raises:
        LanguageError: it reads a relation that is refreshed otherwise than other queries do, or cannot have
            the priority.
    """
    _check_priority(query, optimized, priority, position)
    others = (known.plan for known in defined.answered.values() if known.id != query.id)
    check_refreshed(query.name, query.plan, others, position)
    known = defined.records.known[given.key].columns.items()
    said = {column: text for column, text in known if query.schema.find(column) is not None}
    records = defined.records.having(given).replaced(given.key, said)
    if not all(name in defined.catalog.entries for name in streams):
        # It may read a query that was defined after it.
        keys = (key_of(CatalogKind.SINK.value, name) for name in defined.sinks_of(query.name))
        records = records.moved_last((given.key, *keys))
    return replace(
        defined,
        queries=defined.queries.replacing(
            query.id, DefinedQuery(query, optimized, streams, priority=priority)
        ),
        records=records,
    )


def with_level(defined: Definitions, query: Query, consistency: Consistency) -> Definitions:
    """A query at another level of consistency.

    Args:
        defined: what is defined.
        query: one of them, which is not paused.
        consistency: how long its answer waits for rows that come late.

    Raises:
        LanguageError: its operators wait for others, its streams do not allow what it would remember, or
            a length of time does not fit its timestamps.
    """
    if not consistency.is_strong and query.heartbeats is not Heartbeats.OPERATOR:
        raise LanguageError(
            "a query cannot have this CONSISTENCY and HEARTBEATS",
            position=consistency.position,
            hint=f"drop {query.name}, and create it without HEARTBEATS",
        )
    known = defined.queries[query.id]
    if not consistency.is_strong and shares_in(known.plan):
        raise LanguageError(
            "a query cannot have this CONSISTENCY and LOSS TOLERANT",
            position=consistency.position,
            hint=f"leave it as it is, or replace {query.name} by a query without LOSS TOLERANT",
        )
    plan = at_level(remembering_all(known.plan), consistency, defined.inputs, warm=False, new=True)
    _check_priority(query, plan, known.priority, consistency.position)
    key = key_of(CatalogKind.QUERY.value, query.name)
    record = releveled(defined.records.known[key], consistency)
    return replace(
        defined,
        queries=defined.queries
        if plan == known.plan
        else defined.queries.replacing(query.id, replace(known, plan=plan)),
        records=defined.records.changed(key, record),
    )


def _check_priority(query: Query, optimized: Plan, priority: Priority, position: Position | None) -> None:
    obstacle = None if priority.weight is None else obstacle_in(optimized, holds_in(query.choices))
    if obstacle is not None:
        raise LanguageError(
            f"{query.name} cannot have a WEIGHT, with which it may be behind others: {obstacle}",
            position=position,
            hint="leave out WEIGHT; LATENCY says by when its answer is to be there",
        )


def with_priority(defined: Definitions, query: Query, priority: Priority, position: Position) -> Definitions:
    """A query with another priority.

    Args:
        defined: what is defined.
        query: one of them.
        priority: its share of the processor, and how late its answer may be.
        position: where that is said.

    Raises:
        LanguageError: it would have to be behind others, and cannot be.
    """
    _check_priority(query, defined.queries[query.id].plan, priority, position)
    key = key_of(CatalogKind.QUERY.value, query.name)
    record = reprioritised(defined.records.known[key], priority)
    known = replace(defined.queries[query.id], priority=priority)
    return replace(
        defined,
        queries=defined.queries.replacing(query.id, known),
        records=defined.records.changed(key, record),
    )


def renaming(defined: Definitions, query: Query, to: Name) -> Definitions:
    """The same with another name for a query.

    Args:
        defined: what is defined.
        query: one of them, which keeps its own until the change has taken effect.
        to: the other name.

    Raises:
        LanguageError: there is a query of that name.
    """
    old, new = query.name, to.text
    keys = [key_of(CatalogKind.QUERY.value, name) for name in (old, new)]
    if keys[0] != keys[1] and (defined.find_query(new) is not None or keys[1] in defined.records.waiting):
        raise LanguageError(
            f"there is a query {new} already", position=to.position, hint="choose another name"
        )
    records = defined.records.claimed(keys[0]).changed(keys[0], renamed(defined.records.known[keys[0]], new))
    for sink in defined.sinks_of(old):
        key = key_of(CatalogKind.SINK.value, sink)
        records = records.changed(key, renamed_in_sink(records.known[key], new))
    sinks = {name: sink.of(new) if sink.query == old else sink for name, sink in defined.sinks.items()}
    identities = defined.identities.renaming(old.lower(), new.lower())
    return replace(defined, identities=identities, sinks=sinks, records=records)


def pausing(defined: Definitions, query: Query, *, keeps_input: bool = False) -> Definitions:
    """The same, with a query that is answered paused.

    Args:
        defined: what is defined.
        query: the query.
        keeps_input: whether the rows of its streams are kept meanwhile.
    """
    return _marked(defined, query, paused=True, keeps_input=keeps_input)


def resuming(defined: Definitions, query: Query) -> Definitions:
    """The same, with a query that is paused answered."""
    return _marked(defined, query, paused=False)


def _marked(defined: Definitions, query: Query, *, paused: bool, keeps_input: bool = False) -> Definitions:
    key = key_of(CatalogKind.QUERY.value, query.name)
    marked = replace(defined.records.known[key], paused=paused, keeps_input=keeps_input)
    return replace(
        defined,
        queries=defined.queries.replacing(query.id, replace(defined.queries[query.id], paused=paused)),
        records=defined.records.changed(key, marked),
    )


def without_query(defined: Definitions, name: str, position: Position | None) -> Definitions:
    """The same without a query and its sinks.

    Raises:
        LanguageError: there is no such query.
    """
    if sinks := defined.sinks_of(name):
        return without_query(without_sink(defined, sinks[0], None), name, position)
    if (left := defined.without_waiting(CatalogKind.QUERY, name)) is not None:
        return left
    query = defined.query_named(name, position)
    return replace(
        defined,
        queries=defined.queries.without(query.id),
        identities=defined.identities.without(query.name.lower()),
        records=defined.records.without(key_of(CatalogKind.QUERY.value, query.name)),
    )


def with_sink(
    defined: Definitions, sink: DefinedSink, given: Definition, position: Position | None
) -> Definitions:
    """The definitions with one more sink.

    Args:
        defined: what is defined.
        sink: the sink.
        given: how it is defined.
        position: where, if that is a text.

    Raises:
        LanguageError: there is a sink of that name.
    """
    if (known := defined.sinks.get(sink.name.lower())) is not None:
        raise LanguageError(
            f"there is a sink {known.name} already, of {known.query}",
            position=position,
            hint=f"choose another name, or write DROP SINK {known.name} first",
        )
    return replace(defined, sinks={**defined.sinks, sink.name.lower(): sink}).recording(given)


def without_sink(defined: Definitions, name: str, position: Position | None) -> Definitions:
    """The definitions without a sink.

    Raises:
        LanguageError: there is no such sink.
    """
    if (left := defined.without_waiting(CatalogKind.SINK, name)) is not None:
        return left
    if name.lower() not in defined.sinks:
        names = [one.name for one in defined.sinks.values()]
        raise unknown("sink", name, names, position)
    sinks = {known: sink for known, sink in defined.sinks.items() if known != name.lower()}
    return replace(
        defined, sinks=sinks, records=defined.records.without(key_of(CatalogKind.SINK.value, name))
    )


def only(defined: Definitions, query: Query, optimized: Plan) -> Definitions:
    """The same streams with one query alone."""
    return replace(
        defined,
        queries=Entries({query.id: DefinedQuery(query, optimized, frozenset())}),
        identities=Entries({query.name.lower(): query.id}),
    )
