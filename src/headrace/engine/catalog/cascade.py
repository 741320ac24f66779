"""DROP: what goes, and with CASCADE what is written over it."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.query_changes import without_query, without_sink
from headrace.engine.catalog.read_queries import readers_of
from headrace.engine.catalog.stream_changes import with_bounds, without_relation, without_stream
from headrace.engine.catalog.texts import dropped_skew
from headrace.errors import LanguageError, Position
from headrace.language.statements.catalog import CatalogKind
from headrace.runtime.journal.definition import SKEW, Definition


def without(
    definitions: Definitions,
    kind: CatalogKind,
    name: str,
    position: Position | None,
    *,
    cascade: bool = False,
) -> Definitions:
    """Definitions without a stream, a relation, a query or a sink.

    Args:
        definitions: all of them.
        kind: what goes.
        name: its name.
        position: where it is written, if that is a text.
        cascade: whether what is written over it goes as well.

    Raises:
        LanguageError: there is no such thing, or something is written over it.
    """
    match kind:
        case CatalogKind.SINK:
            return without_sink(definitions, name, position)
        case CatalogKind.QUERY:
            found = definitions
            if not cascade:
                _refuse_users(definitions, name, position)
            for title in readers_of(definitions, name) if cascade else ():
                found = _without_user(found, title)
            return without_query(found, name, position)
        case CatalogKind.STREAM | CatalogKind.RELATION:
            found = definitions
            for title in definitions.users_of(name) if cascade else ():
                found = _without_user(found, title)
            if kind is CatalogKind.RELATION:
                return without_relation(found, name, position)
            return without_stream(found, name, position)


def _refuse_users(definitions: Definitions, query: str, position: Position | None) -> None:
    if readers := readers_of(definitions, query):
        raise LanguageError(
            f"the query {query} cannot be dropped: it is read by {', '.join(readers)}",
            position=position,
            hint=f"drop {readers[0]} first, or all of it: DROP QUERY {query} CASCADE",
        )
    if sinks := definitions.sinks_of(query):
        titles = ", ".join(f"the sink {name}" for name in sinks)
        raise LanguageError(
            f"the query {query} cannot be dropped: its answer goes to {titles}",
            position=position,
            hint=f"drop {titles.partition(',')[0]} first, or all of it: DROP QUERY {query} CASCADE",
        )


def without_unclaimed(definitions: Definitions) -> Definitions:
    """Definitions without those of a store that nobody has given again since the database was opened.

    Queries that others read, which have been given again, stay.
    """
    found = definitions
    left = [
        record for key, record in definitions.records.known.items() if key in definitions.records.unclaimed
    ]
    for record in left:
        if record.kind == CatalogKind.SINK.value:
            found = without_sink(found, record.name, None)
    pending = [record for record in reversed(left) if record.kind != CatalogKind.SINK.value]
    while used := [record for record in pending if _is_used(found, record)]:
        if len(used) == len(pending):
            break
        found, pending = _without_all(found, [one for one in pending if one not in used]), used
    return _without_all(found, [one for one in pending if one.kind != CatalogKind.QUERY.value or not used])


def _is_used(definitions: Definitions, record: Definition) -> bool:
    match record.kind:
        case CatalogKind.QUERY.value:
            return bool(readers_of(definitions, record.name))
        case CatalogKind.STREAM.value | CatalogKind.RELATION.value:
            return bool(definitions.users_of(record.name))
        case _:
            return False


def _without_all(definitions: Definitions, records: Iterable[Definition]) -> Definitions:
    found = definitions
    for record in records:
        match record.kind:
            case CatalogKind.QUERY.value:
                found = without_query(found, record.name, None)
            case CatalogKind.STREAM.value | CatalogKind.RELATION.value:
                found = without(found, CatalogKind(record.kind), record.name, None)
            case kind if kind == SKEW and record.key in found.records.known:
                found = with_bounds(found, dropped_skew(record))
    return found


def _without_user(definitions: Definitions, title: str) -> Definitions:
    """Definitions without what is written over something, unless it has gone already."""
    kind, _, name = title.removeprefix("the ").partition(" ")
    if kind == "query":
        known = definitions.find_query(name) is not None or title in _titles_waiting(definitions)
        return without(definitions, CatalogKind.QUERY, name, None, cascade=True) if known else definitions
    known = definitions.catalog.find(name) is not None or title in _titles_waiting(definitions)
    return without(definitions, CatalogKind(kind.upper()), name, None, cascade=True) if known else definitions


def _titles_waiting(definitions: Definitions) -> set[str]:
    return {definitions.records.known[key].title for key in definitions.records.waiting}
