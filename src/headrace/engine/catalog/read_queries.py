"""Queries that others read: FROM takes the name of one as the stream or the relation that it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.texts import streams_of
from headrace.errors import LanguageError, Position
from headrace.language.catalog import DerivedStream
from headrace.language.statements.catalog import CatalogKind
from headrace.runtime.journal.definition import key_of


class ReadQueries(Mapping[str, DerivedStream]):
    """The queries by their names, whatever the case, as others read them.

    That is as they are written, whatever their CONSISTENCY, and while they are paused too.

    Args:
        definitions: all of them.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    def __getitem__(self, name: str) -> DerivedStream:
        """The query of a name that no stream and no relation has.

        Raises:
            KeyError: there is none, or a stream of that name has yet to be made.
            LanguageError: the query cannot be made yet.
        """
        known = self._definitions
        if _is_of_stream(known, name):
            raise KeyError(name)
        if key_of(CatalogKind.QUERY.value, name) in known.records.waiting:
            known.query_named(name, None)
        query = known.find_query(name)
        if query is None:
            raise KeyError(name)
        return DerivedStream(query.name, query.plan, query.is_stream)

    def __iter__(self) -> Iterator[str]:
        return (one.query.name for one in self._definitions.queries.values())

    def __len__(self) -> int:
        return len(self._definitions.queries)


def readers_of(definitions: Definitions, query: str) -> list[str]:
    """The queries and derived streams that read a query: titles such as `the query q`."""
    name, records = query.lower(), definitions.records
    if _is_of_stream(definitions, name):
        return []
    made = [title for title, named in definitions.written_over() if name in named]
    return made + [
        records.known[key].title for key in records.waiting if name in streams_of(records.known[key])
    ]


def check_unread(definitions: Definitions, name: str, what: str, position: Position | None) -> None:
    """Refuse what would give a name that queries read another meaning.

    Args:
        definitions: all of them.
        name: the name of a query, or of none.
        what: what is refused, such as `mean cannot be renamed`.
        position: where it is written, if that is a text.

    Raises:
        LanguageError: others read the query of that name.
    """
    readers = [] if definitions.find_query(name) is None else readers_of(definitions, name)
    if readers:
        raise LanguageError(
            f"{what}: the query {name} is read by {', '.join(readers)}",
            position=position,
            hint=f"choose another name, or drop {readers[0]} first",
        )


def _is_of_stream(definitions: Definitions, name: str) -> bool:
    """Whether FROM means a stream or a relation by a name, perhaps one that has yet to be made."""
    kinds, waiting = (CatalogKind.STREAM, CatalogKind.RELATION), definitions.records.waiting
    known = name.lower() in definitions.catalog.entries
    return known or any(key_of(kind.value, name) in waiting for kind in kinds)
