"""What a database knows: its streams and queries, as a value that a change replaces."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from headrace.algebra.letters import letters_name, stream_of_letters
from headrace.algebra.nodes import Plan
from headrace.algebra.one_row import ONE_ROW
from headrace.algebra.properties import sources_of
from headrace.algebra.system_streams import SystemStream
from headrace.engine.catalog.entries import Entries
from headrace.engine.catalog.records import DefinitionTexts
from headrace.engine.catalog.sinks import DefinedSink
from headrace.engine.catalog.texts import (
    listed_by,
    sink_query,
    streams_of,
)
from headrace.engine.inputs.inputs import SYSTEM_STREAMS, Input
from headrace.engine.inputs.relations import RelationTable
from headrace.engine.query.query import Query
from headrace.errors import LanguageError, Position
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import Catalog, DerivedStream, RelationInfo, StreamInfo
from headrace.language.defaults import Defaults
from headrace.language.references import streams_named
from headrace.language.statements.catalog import CatalogKind
from headrace.language.syntax import Name
from headrace.language.syntax import QuerySyntax as Syntax
from headrace.lowering.query_id import first_name
from headrace.runtime.intake.streams import BoundedRelation, Incoming
from headrace.runtime.journal.definition import Definition, key_of
from headrace.runtime.sources.composed.one_row import OneRow
from headrace.scheduling.priority import USUAL, Priority
from headrace.suggestions import did_you_mean

RESULT: Final = "result"
"""What a query is called that is looked at, or run, alone."""


@dataclass(frozen=True)
class DefinedQuery:
    """A query, and all that is decided of it by what is defined.

    Attributes:
        query: the query.
        plan: its optimized plan, at its level of consistency.
        streams: what its text is written over, in lower case.
        paused: whether it is not answered until it is resumed.
        priority: its share of the processor, and how late its answer may be.
    """

    query: Query
    plan: Plan
    streams: frozenset[str]
    paused: bool = False
    priority: Priority = USUAL


@dataclass(frozen=True)
class Definitions:
    """The streams and queries of a database.

    Attributes:
        catalog: all streams, derived ones included.
        inputs: the streams that are read from outside, by name.
        relations: by name.
        queries: by identity, in the order in which they were registered.
        identities: those of the queries, by name in lower case.
        derived: what each derived stream is written over, in lower case, by its name.
        sinks: those that SQL has defined, by name in lower case.
        records: all of it as texts.
        made: how many queries there have been, in the store as well.
    """

    catalog: Catalog = field(default_factory=Catalog)
    inputs: Mapping[str, Input] = field(default_factory=dict)
    relations: Mapping[str, RelationTable] = field(default_factory=dict)
    queries: Entries[DefinedQuery] = field(default_factory=Entries)
    identities: Entries[str] = field(default_factory=Entries)
    derived: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sinks: Mapping[str, DefinedSink] = field(default_factory=dict)
    records: DefinitionTexts = field(default_factory=DefinitionTexts)
    made: int = 0

    @cached_property
    def priorities(self) -> dict[str, Priority]:
        """Those of the queries of which something was said, by identity."""
        return {known: one.priority for known, one in self.queries.items() if one.priority != USUAL}

    @cached_property
    def answered(self) -> dict[str, Query]:
        """The queries that are not paused, by identity."""
        return {known: one.query for known, one in self.queries.items() if not one.paused}

    @cached_property
    def paused(self) -> dict[str, Query]:
        """Those that are, by identity."""
        return {known: one.query for known, one in self.queries.items() if one.paused}

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """The plans of the queries that are answered, by identity."""
        return {known: one.plan for known, one in self.queries.items() if not one.paused}

    @cached_property
    def names(self) -> dict[str, str]:
        """The names of queries that have been renamed, by identity."""
        found = {known: one.query.name for known, one in self.queries.items()}
        return {known: name for known, name in found.items() if name != first_name(known)}

    @property
    def all_queries(self) -> tuple[Query, ...]:
        """The queries that are answered, and those that are paused."""
        return (*self.answered.values(), *self.paused.values())

    @property
    def has_bulk(self) -> bool:
        """Whether some input comes in large epochs: all but rows that a program pushes."""
        return not all(stream.is_pushed for stream in self.inputs.values())

    @property
    def not_answered(self) -> frozenset[str]:
        """The queries that are paused, or cannot be made yet, by identity."""
        return frozenset((*self.paused, *(one.id for one in self.records.queries().values())))

    def recording(self, definition: Definition) -> Definitions:
        """The same, with how something is defined."""
        return replace(self, records=self.records.having(definition))

    def record_of(self, kind: CatalogKind, name: str) -> Definition | None:
        """How something is defined, or None if there is no such thing."""
        return self.records.known.get(key_of(kind.value, name))

    @property
    def streams(self) -> dict[str, Incoming]:
        """What a run reads, streams and relations, by name."""
        streams: dict[str, Incoming] = {name: stream.incoming for name, stream in self.inputs.items()}
        letters = {letters_name(name): stream.letters for name, stream in self.inputs.items()}
        relations = {name: table.relation for name, table in self.relations.items()}
        relations[ONE_ROW] = BoundedRelation(OneRow())
        return {**streams, **letters, **SYSTEM_STREAMS, **relations}

    def described_inputs(self) -> dict[str, str]:
        """What a durable store remembers of streams and relations, by name."""
        streams = {name: stream.describe() for name, stream in self.inputs.items()}
        streams |= {letters_name(name): f"the dead letters of {name}" for name in self.inputs}
        streams |= {stream.full_name: "what the run says of itself" for stream in SystemStream}
        streams[ONE_ROW] = "one row"
        return streams | {name: table.describe() for name, table in self.relations.items()}

    def endless_of(self, plan: Plan) -> dict[str, Timing]:
        """What is declared of the time of the streams that a plan reads and that never end."""
        read = (self.inputs.get(source.name) for source in sources_of(plan))
        return {one.name: one.stream.timing for one in read if one is not None and one.is_live}

    def topics_of(self, plan: Plan) -> dict[str, tuple[Timing, StreamInfo, bool]]:
        """The streams of topics that a plan reads; see `notes_on_partitions`."""
        read = (self.inputs.get(source.name) for source in sources_of(plan))
        return {
            one.name: (one.stream.timing, one.info, one.are_several) for one in read if one and one.is_topic
        }

    def with_input(self, stream: Input, position: Position | None = None) -> Definitions:
        """The definitions with one more stream.

        Args:
            stream: the stream.
            position: where it is defined, if that is a text.

        Raises:
            LanguageError: the name is taken.
        """
        catalog = self.catalog.define(stream.entry, position)
        return replace(self, catalog=catalog, inputs={**self.inputs, stream.info.name: stream})

    def with_relation(self, table: RelationTable | Input, position: Position | None = None) -> Definitions:
        """The definitions with one more relation.

        Args:
            table: the relation, or the stream of its changes.
            position: where it is defined, if that is a text.

        Raises:
            LanguageError: the name is taken.
        """
        if isinstance(table, Input):
            return self.with_input(table, position)
        catalog = self.catalog.define(table.info, position)
        return replace(self, catalog=catalog, relations={**self.relations, table.info.name: table})

    def hidden_from(self, given: Definition) -> Mapping[str, tuple[str, ...]]:
        """The columns of streams, by the streams' names, that came after what a store has under that name."""
        known = self.records.known.get(given.key)
        return {} if known is None else known.hides

    def record_of_input(self, stream: Input) -> Definition | None:
        """How a stream, or the relation whose changes it is, is defined; None if nothing says it."""
        kind = CatalogKind.STREAM if stream.relation is None else CatalogKind.RELATION
        return self.record_of(kind, stream.entry.name)

    def having(self, stream: Input) -> Definitions:
        """The same with another form of an input that is there."""
        return replace(self, inputs={**self.inputs, stream.info.name: stream})

    def input_named(self, name: Name) -> Input:
        """The source stream of that name."""
        entry = self.catalog.find(name.text)
        if entry is None:
            raise unknown("stream", name.text, self.catalog.names, name.position)
        if isinstance(entry, RelationInfo) and entry.name not in self.inputs:
            raise LanguageError(
                f"{entry.name} is a relation, which has no time of its own",
                position=name.position,
                hint=_listed(self.inputs) or "define a stream first",
            )
        if entry.name not in self.inputs:
            raise LanguageError(
                f"{entry.name} is defined by a query, which has the time of the streams it reads",
                position=name.position,
                hint=f"name one of {self.read_by(entry.name)}",
            )
        return self.inputs[entry.name]

    def source_stream(self, name: Name) -> StreamInfo:
        """The source stream of that name, or the changes of the relation.

        Raises:
            LanguageError: there is none.
        """
        return self.input_named(name).info

    def with_derived(self, entry: DerivedStream, query: Syntax, position: Position) -> Definitions:
        """The definitions with one more derived stream, and the query that it was derived from.

        Raises:
            LanguageError: the name is taken.
        """
        catalog = self.catalog.define(entry, position)
        return replace(self, catalog=catalog, derived={**self.derived, entry.name: streams_named(query)})

    def with_defaults(self, defaults: Defaults, quotes_names: bool = False) -> Definitions:
        """Other defaults for what is defined from now on, and perhaps names in double quotes."""
        return replace(self, catalog=replace(self.catalog, defaults=defaults, quotes_names=quotes_names))

    def sinks_of(self, query: str) -> list[str]:
        """The names of the sinks that SQL has defined for a query, those included that cannot be made."""
        made = [sink.name for sink in self.sinks.values() if sink.query.lower() == query.lower()]
        waiting = self.records.sinks().items()
        return made + [name for name, one in waiting if (sink_query(one) or "").lower() == query.lower()]

    @property
    def keeping_input(self) -> frozenset[str]:
        """The queries that are paused, and whose streams' rows are kept meanwhile, by identity."""
        records = (
            (query.id, self.record_of(CatalogKind.QUERY, query.name)) for query in self.paused.values()
        )
        return frozenset(known for known, record in records if record is not None and record.keeps_input)

    def without_waiting(self, kind: CatalogKind, name: str) -> Definitions | None:
        """The same without a definition that could not be made; None if there is none."""
        key = key_of(kind.value, name)
        return replace(self, records=self.records.without(key)) if key in self.records.waiting else None

    def has(self, kind: CatalogKind, name: str) -> bool:
        """Whether there is something of a kind and a name, whatever its case, perhaps one that is waiting."""
        if kind is CatalogKind.QUERY and self.find_query(name) is not None:
            return True
        return key_of(kind.value, name) in self.records.known

    def claiming(self, kind: CatalogKind, name: str) -> Definitions:
        """The same once a definition of a store has been given again, if there is such a one."""
        return replace(self, records=self.records.claimed(key_of(kind.value, name)))

    def users_of(self, name: str) -> list[str]:
        """What is written over a stream or a relation: titles such as `the query q`."""
        known = {name.lower(), letters_name(name.lower())}
        made = [title for title, named in self.written_over() if known & named]
        listed = [one.title for one in self.records.known.values() if listed_by(one) == name.lower()]
        waiting = (self.records.known[key] for key in self.records.waiting)
        return made + listed + [one.title for one in waiting if known & streams_of(one)]

    def written_over(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Titles of queries and derived streams, such as `the query q`, each with what it is written over.

        They are in the order in which they were defined; the names of what they are over are in lower case.
        """
        for record in self.records.known.values():
            if record.kind == CatalogKind.QUERY.value:
                query = self.identities.get(record.name.lower())
                streams = None if query is None else self.queries[query].streams
            else:
                streams = self.derived.get(record.name) if record.kind == CatalogKind.STREAM.value else None
            if streams is not None:
                yield record.title, streams

    def find_query(self, name: str) -> Query | None:
        """The query of that name, whatever its case, or None."""
        known = self.identities.get(name.lower())
        return None if known is None else self.queries[known].query

    def query_named(self, name: str, position: Position | None) -> Query:
        """The query of that name, whatever its case.

        Args:
            name: the name.
            position: where it is written, if that is a text.

        Raises:
            LanguageError: there is no such query.
        """
        query = self.find_query(name)
        if query is None:
            waiting = self.records.waiting.get(key_of(CatalogKind.QUERY.value, name))
            if waiting is not None:
                raise LanguageError(f"the query {name} is paused: {waiting}", position=position)
            raise unknown("query", name, [one.query.name for one in self.queries.values()], position)
        return query

    def answered_query(self, name: str, position: Position | None) -> Query:
        """The query of that name, which is not paused.

        Raises:
            LanguageError: there is no such query, or it is paused.
        """
        query = self.query_named(name, position)
        if self.is_paused(query):
            raise LanguageError(
                f"the query {query.name} is paused",
                position=position,
                hint=f"ALTER QUERY {query.name} RESUME lets it go on",
            )
        return query

    def is_paused(self, query: Query) -> bool:
        """Whether a query, which may have been dropped, is not answered until it is resumed."""
        known = self.queries.get(query.id)
        return known is not None and known.paused

    def read_by(self, stream: str) -> str:
        """The streams that a derived stream is written over, as text."""
        read = {stream_of_letters(name) or name for name in self.derived[stream]}
        return ", ".join(name for name in self.catalog.names if name.lower() in read)

    def free_name(self, promised: Collection[str] = ()) -> str:
        """A name for a query that was given none: `query_1`, `query_2` and so on.

        Those of a store that nobody has given again do not count: they have got their names in the same way.

        Args:
            promised: names that others are about to take.
        """
        unclaimed = self.records.unclaimed
        known = len(self.queries)
        if unclaimed:
            known -= sum(key_of(CatalogKind.QUERY.value, name) in unclaimed for name in self.identities)
        numbered = (f"query_{number}" for number in itertools.count(known + 1))
        return next(
            name
            for name in numbered
            if name not in promised
            and (self.find_query(name) is None or key_of(CatalogKind.QUERY.value, name) in unclaimed)
        )


def unknown(kind: str, name: str, known: Iterable[str], position: Position | None) -> LanguageError:
    """The error for a name that nothing has, with the names that there are."""
    names = list(known)
    hint = did_you_mean(name, names) or _listed(names)
    return LanguageError(f"there is no {kind} {name}", position=position, hint=hint)


def _listed(names: Iterable[str]) -> str | None:
    listed = ", ".join(names)
    return f"there is {listed}" if listed else None
