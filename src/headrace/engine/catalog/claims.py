"""What a text defines that a durable store has already: it has to mean the same.

The store's catalog wins: a text adds what is missing and refuses what differs.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Plan
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.records import column_key
from headrace.engine.inputs.inputs import Input
from headrace.engine.inputs.relations import RelationTable
from headrace.engine.query.query import Query
from headrace.errors import LanguageError, Position
from headrace.language.catalog import DerivedStream
from headrace.language.names import quoted_name
from headrace.language.statement_text import time_text
from headrace.language.statements.streams import AddColumns
from headrace.runtime.journal.definition import Definition
from headrace.runtime.journal.description import where_they_differ
from headrace.scheduling.priority import USUAL, Priority


def is_stored(definitions: Definitions, definition: Definition) -> bool:
    """Whether a store has a definition of the name that nobody has given again, and that could be made."""
    records = definitions.records
    return definition.key in records.unclaimed and definition.key not in records.waiting


def with_input(
    definitions: Definitions, made: Input | RelationTable, given: Definition, position: Position | None
) -> Definitions:
    """The definitions once a stream or a relation of a store has been given again.

    Args:
        definitions: the present ones.
        made: what was given.
        given: its text.
        position: where it is defined, if that is a text.

    Raises:
        LanguageError: it is another one.
    """
    name = made.info.name if isinstance(made, RelationTable) else made.entry.name
    spelled = next(
        (known for known in (*definitions.inputs, *definitions.relations) if known.lower() == name.lower()),
        name,
    )
    known = definitions.inputs.get(spelled) or definitions.relations.get(spelled)
    if known is None or not (_same(made, known) or _same_as_it_was(definitions, made, known, given)):
        raise differs(definitions, given, position)
    return replace(definitions, records=definitions.records.claimed(given.key))


def with_derived(
    definitions: Definitions, entry: DerivedStream, given: Definition, position: Position
) -> Definitions:
    """The definitions once a derived stream of a store has been given again.

    Raises:
        LanguageError: it is another one.
    """
    if definitions.catalog.find(entry.name) != replace(entry, name=_spelled(definitions, entry.name)):
        raise differs(definitions, given, position)
    return replace(definitions, records=definitions.records.claimed(given.key))


def with_query(
    definitions: Definitions,
    query: Query,
    optimized: Plan,
    given: Definition,
    position: Position | None,
    priority: Priority = USUAL,
) -> tuple[Definitions, Query]:
    """The definitions once a query of a store has been given again, and the query.

    Args:
        definitions: the present ones.
        query: what was given.
        optimized: its plan, optimized.
        given: its text.
        position: where it is defined, if that is known.
        priority: what it says of its share of the processor, and of how late it may be.

    Raises:
        LanguageError: it is another one, or has another priority.
    """
    known = definitions.find_query(query.name)
    assert known is not None
    defined = definitions.queries[known.id]
    if (known.plan, known.heartbeats, defined.plan) != (query.plan, query.heartbeats, optimized):
        raise differs(definitions, given, position)
    if defined.priority != priority:
        raise _differs_in_priority(known, defined.priority, priority, position)
    known.noted(query)
    return replace(definitions, records=definitions.records.claimed(given.key)), known


def _differs_in_priority(
    query: Query, known: Priority, given: Priority, position: Position | None
) -> LanguageError:
    """A store has a query with another priority than is given."""
    theirs, ours = (" ".join(one.clauses) or "no priority of its own" for one in (known, given))
    name = quoted_name(query.name)
    changes = "; ".join(f"ALTER QUERY {name} SET ({clause})" for clause in given.unlike(known))
    return LanguageError(
        f"the query {query.name} of the store has {theirs}; here it has {ours}",
        position=position,
        hint=f"write {changes} before it, or say here what the store has",
    )


def with_sink(definitions: Definitions, given: Definition, position: Position) -> Definitions:
    """The definitions once a sink of a store has been given again.

    Raises:
        LanguageError: it is another one.
    """
    if definitions.records.known[given.key].text != given.text:
        raise differs(definitions, given, position)
    return replace(definitions, records=definitions.records.claimed(given.key))


def differs(definitions: Definitions, given: Definition, position: Position | None) -> LanguageError:
    """What a store has differs from what is given under its name."""
    stored = definitions.records.known[given.key]
    theirs, ours = where_they_differ(stored.text or stored.lacks, given.text or "what is handed over")
    kind, name = stored.kind, stored.name
    if kind == "SKEW":
        hint = f"write DROP SKEW {name} before it, or leave it out"
    else:
        changes = {
            "STREAM": f"ALTER STREAM {name} changes its time, ",
            "QUERY": f"ALTER QUERY {name} SET CONSISTENCY changes its level, ",
        }
        change = changes.get(kind, "")
        hint = f"{change}DROP {kind} {name} makes room for another one, or choose another name"
    return LanguageError(
        f"the store has another {kind.lower()} {name}: {theirs}; here it is {ours}",
        position=position,
        hint=hint,
    )


def _same(given: Input | RelationTable, known: Input | RelationTable) -> bool:
    """Whether what is given is what there is; bounds from other streams are said elsewhere."""
    match given, known:
        case RelationTable(), RelationTable():
            return given.info == known.info and given.describe() == known.describe()
        case Input(), Input():
            one, other = (_alone(part) for part in (given, known))
            return (
                one.entry == other.entry
                and one.describe() == other.describe()
                and one.incoming.timing == other.incoming.timing
                and time_text(one.clauses) == time_text(other.clauses)
            )
        case _:
            return False


def _same_as_it_was(
    definitions: Definitions, made: Input | RelationTable, known: Input | RelationTable, given: Definition
) -> bool:
    """Whether what is given is what there was before ALTER STREAM added columns."""
    added = definitions.records.known[given.key].added
    if not added or not isinstance(made, Input) or not isinstance(known, Input):
        return False
    if {*added} & {*made.info.schema.names}:
        return False
    wider = made.widened(field for field in known.info.schema if field.name in added)
    return wider is not None and _same(wider, known)


def with_columns(definitions: Definitions, statement: AddColumns) -> Definitions | None:
    """The definitions once columns that a store has, as ALTER STREAM has added them, have been given again.

    Returns:
        None where it does not have all of them, or they have been given already.
    """
    found = definitions.catalog.find(statement.name.text)
    stream = None if found is None else definitions.inputs.get(found.name)
    record = None if stream is None else definitions.record_of_input(stream)
    if stream is None or record is None:
        return None
    records = definitions.records
    for field in statement.columns:
        key = column_key(record.key, field.name)
        if field not in stream.info.schema or key not in records.unclaimed:
            return None
        records = records.claimed(key)
    return replace(definitions, records=records)


def _alone(stream: Input) -> Input:
    timing = replace(stream.stream.timing, follows=())
    return replace(stream, stream=replace(stream.stream, timing=timing))


def _spelled(definitions: Definitions, name: str) -> str:
    found = definitions.catalog.find(name)
    return name if found is None else found.name
