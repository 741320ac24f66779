"""Streams and relations in FROM: the plan that each is, and what is not allowed beside its name."""

from __future__ import annotations

from typing import assert_never

from headrace.algebra.changes import Changes, content_of
from headrace.algebra.events import Events, events_of
from headrace.algebra.nodes import Plan, RefreshedRelation, Relation, Source
from headrace.algebra.properties import sources_of, timestamp_columns
from headrace.errors import LanguageError
from headrace.language.binding.scope import BoundTable
from headrace.language.catalog import Catalog, RelationInfo, StreamInfo
from headrace.language.syntax import JoinedTable, NamedTable


def relation_plan(entry: RelationInfo, catalog: Catalog) -> Plan:
    """The plan of a relation by its name.

    Args:
        entry: what the catalog knows of it.
        catalog: says what instants count in the query, for one that is always valid.
    """
    changes = entry.changes
    if changes is None:
        domain = catalog.domain if entry.domain is None else entry.domain
        if entry.refreshed:
            return RefreshedRelation(entry.name, entry.schema, domain)
        return Relation(entry.name, entry.schema, domain, entry.valid)
    stream = changes.stream
    if changes.read_first:
        leaf: Plan = Relation(entry.name, stream.schema, stream.domain, (stream.timestamp, None))
    else:
        leaf = Source(entry.name, stream.schema, stream.timestamp, stream.domain)
    return content_of(leaf, changes.by)


def stream_plan(entry: StreamInfo) -> Plan:
    """The plan of a source stream by its name."""
    match entry.changes:
        case Changes() as by:
            return content_of(Source(entry.name, entry.schema, entry.timestamp, entry.domain), by)
        case Events() as events:
            return events_of(entry.name, entry.schema, entry.timestamp, entry.domain, events)
        case None:
            return Source(entry.name, entry.schema, entry.timestamp, entry.domain)
        case _:
            assert_never(entry.changes)


def check_as_of(item: JoinedTable, left: BoundTable, right: BoundTable, catalog: Catalog) -> None:
    """See that FOR SYSTEM_TIME AS OF asks for what a join with a relation is: rows that hold together.

    Args:
        item: the join.
        left: what is before JOIN.
        right: the table after it.
        catalog: says whether it is a relation.

    Raises:
        LanguageError: the table is not a relation, or the column is not the instant of the rows before JOIN.
    """
    if not isinstance(item.right, NamedTable) or item.right.as_of is None:
        return
    name, as_of = item.right.name.text, item.right.as_of
    if sources_of(right.plan) and not isinstance(catalog.find(name), RelationInfo):
        raise LanguageError(
            f"{name} is a stream, and FOR SYSTEM_TIME AS OF is for relations",
            position=as_of.position,
            hint=f"write {name} WINDOW(RANGE UNBOUNDED) for all its rows so far, or "
            "WINDOW(PARTITION BY key ROWS 1) for the last one of each key",
        )
    column = left.scope.column(as_of.column.table, as_of.column.name)
    if column.index not in timestamp_columns(left.plan):
        raise LanguageError(
            f"{as_of.column.name.text} is not the instant of the rows before JOIN",
            position=as_of.column.name.position,
            hint="name the column that the stream is timed by, and leave out its window",
        )


def refuse_window(table: NamedTable, entry: RelationInfo | StreamInfo) -> None:
    """Refuse a window over what says itself how long its rows are valid. SAMPLE and the like are allowed.

    Raises:
        LanguageError: there is one.
    """
    if table.window is None or table.window.frame is None:
        return
    name = table.name.text
    if isinstance(entry, RelationInfo):
        message = f"{name} is a relation, which has no window"
        hint = "leave it out: its rows are valid for as long as the relation says"
    else:
        message = f"the rows of {name} are valid for as long as they say, and have no window"
        hint = f"leave it out, or write ISTREAM({name}) for the instants at which they begin"
    raise LanguageError(message, position=table.window.position, hint=hint)
