"""What a database knows: its streams and queries, as a value that a change replaces."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from headrace.algebra.letters import LETTER_COLUMNS, letters_name, stream_of_letters
from headrace.algebra.nodes import Plan
from headrace.algebra.one_row import ONE_ROW
from headrace.algebra.properties import sources_of
from headrace.algebra.system_streams import SystemStream
from headrace.algebra.tunings.tunings import shares_in
from headrace.engine.catalog.consistency import at_level
from headrace.engine.catalog.entries import Entries
from headrace.engine.catalog.records import DefinitionTexts
from headrace.engine.catalog.sinks import DefinedSink
from headrace.engine.catalog.texts import (
    hiding,
    listed_by,
    releveled,
    renamed,
    renamed_in_sink,
    retimed,
    sink_query,
    streams_of,
    widened,
    with_skew,
    without_skews,
)
from headrace.engine.inputs.declared import PUSH
from headrace.engine.inputs.inputs import SYSTEM_STREAMS, Input
from headrace.engine.inputs.read_again import check_refreshed
from headrace.engine.inputs.relations import RelationTable
from headrace.engine.inputs.times import follow_of
from headrace.engine.query.query import Query
from headrace.errors import LanguageError, Position
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import Catalog, DerivedStream, Entry, RelationInfo, StreamInfo
from headrace.language.defaults import Defaults
from headrace.language.lengths import check_behind, check_duration
from headrace.language.references import streams_named
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.statements import Consistency, Heartbeats
from headrace.language.statements.streams import AddColumns, AlterStream, CreateSkew, TimeClauses
from headrace.language.syntax import Name
from headrace.language.syntax import QuerySyntax as Syntax
from headrace.lowering.memory import remembering_all
from headrace.lowering.query_id import first_name, number_of
from headrace.runtime.intake.streams import BoundedRelation, Incoming
from headrace.runtime.journal.definition import Definition, key_of
from headrace.runtime.sources.composed.one_row import OneRow
from headrace.schema import Schema
from headrace.suggestions import did_you_mean
from headrace.time import TimeDomain

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
    """

    query: Query
    plan: Plan
    streams: frozenset[str]
    paused: bool = False


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
        """A stream more.

        Args:
            stream: the stream.
            position: where it is defined, if that is a text.

        Raises:
            LanguageError: the name is taken.
        """
        catalog = self.catalog.define(stream.entry, position)
        return replace(self, catalog=catalog, inputs={**self.inputs, stream.info.name: stream})

    def with_relation(self, table: RelationTable | Input, position: Position | None = None) -> Definitions:
        """A relation more.

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

    def with_time(self, statement: AlterStream, written: TimeClauses) -> Definitions:
        """Something else said about the time of a stream.

        Args:
            statement: the statement, with values in the place of a relation that has them.
            written: its clauses as they are written.

        Raises:
            LanguageError: there is no such source stream, or a clause does not fit it.
        """
        stream = self._input(statement.name)
        changed = {name: getattr(statement.time, name) for name in statement.changed}
        clauses, place = replace(stream.clauses, **changed), statement.name.position
        if clauses.disorder is not None:
            check_behind(clauses.disorder, stream.info.domain, "DISORDER", place)
        if clauses.retain is not None and clauses.retain.length is not None:
            check_duration(clauses.retain.length, stream.info.domain, "RETAIN", place)
        if statement.time.overflow is not None and stream.origin != PUSH:
            raise LanguageError(
                f"OVERFLOW is of streams FROM push, which {stream.entry.name} is not",
                position=place,
                hint="leave it out: an epoch takes of other input as much as it can",
            )
        found = self._with(stream.retimed(clauses))
        record = self.record_of_input(stream)
        if record is None:
            return found
        said = {name: getattr(written, name) for name in statement.changed}
        return replace(found, records=self.records.changed(record.key, retimed(record, said)))

    def with_columns(self, statement: AddColumns) -> Definitions:
        """Further columns of a stream; what is defined over it already means those that it had.

        Raises:
            LanguageError: there is no such source stream, it has such a column, or it cannot have any.
        """
        stream, place = self._input(statement.name), statement.name.position
        there = {field.name.lower(): field.type for field in stream.info.schema}
        columns = Schema(
            tuple(
                column
                for column in statement.columns
                if column.name not in statement.missing or there.get(column.name.lower()) != column.type
            )
        )
        if not columns:
            return self
        for column in columns:
            if any(column.name.lower() == name.lower() for name in stream.info.schema.names):
                raise LanguageError(
                    f"{stream.entry.name} has a column {column.name} already",
                    position=place,
                    hint="choose another name",
                )
            if column.name.lower() in LETTER_COLUMNS:
                raise LanguageError(
                    f"{column.name} is a column of the dead letters of {stream.entry.name}",
                    position=place,
                    hint="choose another name",
                )
        wider = stream.widened(columns)
        if wider is None:
            raise LanguageError(
                f"the columns of {stream.entry.name} are those of what it is read from",
                position=place,
                hint="columns are added to streams that declare theirs, and that Headrace reads itself",
            )
        found = replace(self._with(wider), catalog=self.catalog.redefine(wider.entry))
        records = hiding(self.records, stream.entry.name, columns)
        record = self.record_of_input(stream)
        if record is not None:
            records = records.changed(record.key, widened(record, columns))
        return replace(found, records=records)

    def hidden_from(self, given: Definition) -> Mapping[str, tuple[str, ...]]:
        """The columns of streams, by the streams' names, that came after what a store has under that name."""
        known = self.records.known.get(given.key)
        return {} if known is None else known.hides

    def record_of_input(self, stream: Input) -> Definition | None:
        """How a stream, or the relation whose changes it is, is defined; None if nothing says it."""
        kind = CatalogKind.STREAM if stream.relation is None else CatalogKind.RELATION
        return self.record_of(kind, stream.entry.name)

    def with_skew(self, statement: CreateSkew) -> Definitions:
        """Bounds between streams, in place of those that there were between the same ones.

        Raises:
            LanguageError: there is no such source stream, they count their timestamps differently, the clock
                moves one that is to follow, a bound does not fit them, or there is nothing to drop.
        """
        named = [(name, self._input(name)) for name in (*statement.firsts, *statement.seconds)]
        first = named[0][1]
        for name, stream in named:
            if stream.info.domain is not first.info.domain:
                raise LanguageError(
                    f"{first.name} is timed by {_TIMED_BY[first.info.domain]}, and {stream.name} by "
                    f"{_TIMED_BY[stream.info.domain]}",
                    position=name.position,
                    hint="bounds are between streams whose timestamps count the same",
                )
        inputs = dict(self.inputs)
        for firsts, seconds in _directions(statement):
            others, followers = (tuple(self._input(name).name for name in side) for side in (firsts, seconds))
            follow = follow_of(statement, others, followers, first.info.domain)
            for name in seconds:
                second = self._input(name)
                if second.info.by_arrival:
                    raise LanguageError(
                        f"{second.name} is timed by arrival, so that the clock alone moves its heartbeat",
                        position=name.position,
                        hint=f"bounds may be FROM {second.name}, and not to it",
                    )
                if follow is None and not second.follows(others):
                    raise self._no_skew(second, others, statement.position)
                inputs[second.name] = inputs[second.name].following(others, follow)
        return replace(self, inputs=inputs, records=with_skew(self.records, statement))

    def _no_skew(self, second: Input, others: Sequence[str], position: Position) -> LanguageError:
        known = [", ".join(one.streams) for one in second.stream.timing.follows]
        names = ", ".join(name for name in others if name != second.name)
        return LanguageError(
            f"there is no skew from {names} to {second.name}",
            position=position,
            hint=f"there is one from {'; one from '.join(known)}" if known else None,
        )

    def _with(self, stream: Input) -> Definitions:
        return replace(self, inputs={**self.inputs, stream.info.name: stream})

    def _input(self, name: Name) -> Input:
        """The source stream of that name."""
        entry = self.catalog.find(name.text)
        if entry is None:
            raise _unknown("stream", name.text, self.catalog.names, name.position)
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
        return self._input(name).info

    def with_derived(self, entry: DerivedStream, query: Syntax, position: Position) -> Definitions:
        """A derived stream more, with the query that it was derived from.

        Raises:
            LanguageError: the name is taken.
        """
        catalog = self.catalog.define(entry, position)
        return replace(self, catalog=catalog, derived={**self.derived, entry.name: streams_named(query)})

    def with_defaults(self, defaults: Defaults, quotes_names: bool = False) -> Definitions:
        """Other defaults for what is defined from now on, and perhaps names in double quotes."""
        return replace(self, catalog=replace(self.catalog, defaults=defaults, quotes_names=quotes_names))

    def with_query(
        self, query: Query, optimized: Plan, streams: frozenset[str], position: Position | None
    ) -> Definitions:
        """A query more.

        Args:
            query: the query.
            optimized: its plan, optimized.
            streams: the streams that its text names, in lower case.
            position: where the query is defined, if that is known.

        Raises:
            LanguageError: the name is taken.
        """
        if self.find_query(query.name) is not None:
            raise LanguageError(
                f"there is a query {query.name} already", position=position, hint="choose another name"
            )
        others = (known.plan for known in self.answered.values())
        check_refreshed(query.name, query.plan, others, position)
        return replace(
            self,
            queries=self.queries.adding(query.id, DefinedQuery(query, optimized, streams)),
            identities=self.identities.adding(query.name.lower(), query.id),
            made=max(self.made, number_of(query.id)),
        )

    def replacing(
        self, query: Query, optimized: Plan, streams: frozenset[str], given: Definition, position: Position
    ) -> Definitions:
        """Another query in the place of the one of its name, which is not paused.

        Args:
            query: the query.
            optimized: its plan, optimized.
            streams: the streams that its text names, in lower case.
            given: how it is defined; what was said of the other one stays.
            position: where it is defined.

        Raises:
            LanguageError: it reads a relation that is refreshed otherwise than other queries do.
        """
        others = (known.plan for known in self.answered.values() if known.id != query.id)
        check_refreshed(query.name, query.plan, others, position)
        known = self.records.known[given.key].columns.items()
        said = {column: text for column, text in known if query.schema.find(column) is not None}
        records = self.records.having(given).replaced(given.key, said)
        if not all(name in self.catalog.entries for name in streams):
            # It may read a query that was defined after it.
            keys = (key_of(CatalogKind.SINK.value, name) for name in self.sinks_of(query.name))
            records = records.moved_last((given.key, *keys))
        return replace(
            self,
            queries=self.queries.replacing(query.id, DefinedQuery(query, optimized, streams)),
            records=records,
        )

    def with_level(self, query: Query, consistency: Consistency) -> Definitions:
        """A query at another level of consistency.

        Args:
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
        known = self.queries[query.id]
        if not consistency.is_strong and shares_in(known.plan):
            raise LanguageError(
                "a query cannot have this CONSISTENCY and LOSS TOLERANT",
                position=consistency.position,
                hint=f"leave it as it is, or replace {query.name} by a query without LOSS TOLERANT",
            )
        plan = at_level(remembering_all(known.plan), consistency, self.inputs, warm=False, new=True)
        key = key_of(CatalogKind.QUERY.value, query.name)
        record = releveled(self.records.known[key], consistency)
        return replace(
            self,
            queries=self.queries
            if plan == known.plan
            else self.queries.replacing(query.id, replace(known, plan=plan)),
            records=self.records.changed(key, record),
        )

    def with_sink(self, sink: DefinedSink, given: Definition, position: Position | None) -> Definitions:
        """A sink more.

        Args:
            sink: the sink.
            given: how it is defined.
            position: where, if that is a text.

        Raises:
            LanguageError: there is a sink of that name.
        """
        if (known := self.sinks.get(sink.name.lower())) is not None:
            raise LanguageError(
                f"there is a sink {known.name} already, of {known.query}",
                position=position,
                hint=f"choose another name, or write DROP SINK {known.name} first",
            )
        return replace(self, sinks={**self.sinks, sink.name.lower(): sink}).recording(given)

    def without_sink(self, name: str, position: Position | None) -> Definitions:
        """A sink less.

        Raises:
            LanguageError: there is no such sink.
        """
        if (left := self.without_waiting(CatalogKind.SINK, name)) is not None:
            return left
        if name.lower() not in self.sinks:
            names = [one.name for one in self.sinks.values()]
            raise _unknown("sink", name, names, position)
        sinks = {known: sink for known, sink in self.sinks.items() if known != name.lower()}
        return replace(self, sinks=sinks, records=self.records.without(key_of(CatalogKind.SINK.value, name)))

    def sinks_of(self, query: str) -> list[str]:
        """The names of the sinks that SQL has defined for a query, those included that cannot be made."""
        made = [sink.name for sink in self.sinks.values() if sink.query.lower() == query.lower()]
        waiting = self.records.sinks().items()
        return made + [name for name, one in waiting if (sink_query(one) or "").lower() == query.lower()]

    def without_query(self, name: str, position: Position | None) -> Definitions:
        """The same without a query and its sinks.

        Raises:
            LanguageError: there is no such query.
        """
        if sinks := self.sinks_of(name):
            return self.without_sink(sinks[0], None).without_query(name, position)
        if (left := self.without_waiting(CatalogKind.QUERY, name)) is not None:
            return left
        query = self.query_named(name, position)
        return replace(
            self,
            queries=self.queries.without(query.id),
            identities=self.identities.without(query.name.lower()),
            records=self.records.without(key_of(CatalogKind.QUERY.value, query.name)),
        )

    @property
    def keeping_input(self) -> frozenset[str]:
        """The queries that are paused, and whose streams' rows are kept meanwhile, by identity."""
        records = (
            (query.id, self.record_of(CatalogKind.QUERY, query.name)) for query in self.paused.values()
        )
        return frozenset(known for known, record in records if record is not None and record.keeps_input)

    def renaming(self, query: Query, to: Name) -> Definitions:
        """The same with another name for a query.

        Args:
            query: one of them, which keeps its own until the change has taken effect.
            to: the other name.

        Raises:
            LanguageError: there is a query of that name.
        """
        old, new = query.name, to.text
        keys = [key_of(CatalogKind.QUERY.value, name) for name in (old, new)]
        if keys[0] != keys[1] and (self.find_query(new) is not None or keys[1] in self.records.waiting):
            raise LanguageError(
                f"there is a query {new} already", position=to.position, hint="choose another name"
            )
        records = self.records.claimed(keys[0]).changed(keys[0], renamed(self.records.known[keys[0]], new))
        for sink in self.sinks_of(old):
            key = key_of(CatalogKind.SINK.value, sink)
            records = records.changed(key, renamed_in_sink(records.known[key], new))
        sinks = {name: sink.of(new) if sink.query == old else sink for name, sink in self.sinks.items()}
        identities = self.identities.renaming(old.lower(), new.lower())
        return replace(self, identities=identities, sinks=sinks, records=records)

    def pausing(self, query: Query, *, keeps_input: bool = False) -> Definitions:
        """The same, with a query that is answered paused.

        Args:
            query: the query.
            keeps_input: whether the rows of its streams are kept meanwhile.
        """
        return self._marked(query, paused=True, keeps_input=keeps_input)

    def resuming(self, query: Query) -> Definitions:
        """The same, with a query that is paused answered."""
        return self._marked(query, paused=False)

    def _marked(self, query: Query, *, paused: bool, keeps_input: bool = False) -> Definitions:
        key = key_of(CatalogKind.QUERY.value, query.name)
        marked = replace(self.records.known[key], paused=paused, keeps_input=keeps_input)
        return replace(
            self,
            queries=self.queries.replacing(query.id, replace(self.queries[query.id], paused=paused)),
            records=self.records.changed(key, marked),
        )

    def without_waiting(self, kind: CatalogKind, name: str) -> Definitions | None:
        """The same without a definition that could not be made; None if there is none."""
        key = key_of(kind.value, name)
        return replace(self, records=self.records.without(key)) if key in self.records.waiting else None

    def without_stream(self, name: str, position: Position | None) -> Definitions:
        """A stream less.

        Raises:
            LanguageError: there is no such stream, or something is written over it.
        """
        if (waiting := self.without_waiting(CatalogKind.STREAM, name)) is not None:
            return waiting
        entry = self._dropped(CatalogKind.STREAM, name, position)
        left = self._without_input(entry.name)
        records = without_skews(self.records, entry.name).without(
            key_of(CatalogKind.STREAM.value, entry.name)
        )
        derived = {name: read for name, read in self.derived.items() if name != entry.name}
        return replace(left, derived=derived, records=records)

    def without_relation(self, name: str, position: Position | None) -> Definitions:
        """A relation less.

        Raises:
            LanguageError: there is no such relation, or something is written over it.
        """
        if (waiting := self.without_waiting(CatalogKind.RELATION, name)) is not None:
            return waiting
        entry = self._dropped(CatalogKind.RELATION, name, position)
        relations = {known: table for known, table in self.relations.items() if known != entry.name}
        records = without_skews(self.records, entry.name).without(
            key_of(CatalogKind.RELATION.value, entry.name)
        )
        return replace(self._without_input(entry.name), relations=relations, records=records)

    def _without_input(self, name: str) -> Definitions:
        left = {known: stream.without(name) for known, stream in self.inputs.items() if known != name}
        return replace(self, catalog=self.catalog.without(name), inputs=left)

    def _dropped(self, kind: CatalogKind, name: str, position: Position | None) -> Entry:
        """The stream or the relation of a name, which nothing is written over.

        Raises:
            LanguageError: there is none, it is of the other kind, or something is.
        """
        entry = self.catalog.find(name)
        if entry is None:
            raise _unknown(kind.word, name, self.catalog.names, position)
        its = CatalogKind.RELATION if isinstance(entry, RelationInfo) else CatalogKind.STREAM
        if its is not kind:
            raise LanguageError(
                f"{entry.name} is a {its.word}",
                position=position,
                hint=f"write DROP {its.value} {entry.name}",
            )
        if users := self.users_of(name):
            raise LanguageError(
                f"the {kind.word} {entry.name} cannot be dropped: it is used by {', '.join(users)}",
                position=position,
                hint=f"drop {users[0]} first, or all of it: DROP {kind.value} {entry.name} CASCADE",
            )
        return entry

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
            raise _unknown("query", name, [one.query.name for one in self.queries.values()], position)
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

    def only(self, query: Query, optimized: Plan) -> Definitions:
        """The same streams with one query alone."""
        return replace(
            self,
            queries=Entries({query.id: DefinedQuery(query, optimized, frozenset())}),
            identities=Entries({query.name.lower(): query.id}),
        )

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
        known -= sum(key_of(CatalogKind.QUERY.value, name) in unclaimed for name in self.identities)
        numbered = (f"query_{number}" for number in itertools.count(known + 1))
        return next(
            name
            for name in numbered
            if name not in promised
            and (self.find_query(name) is None or key_of(CatalogKind.QUERY.value, name) in unclaimed)
        )


_TIMED_BY: Final = {TimeDomain.INTEGER: "an integer", TimeDomain.TIMESTAMP: "a TIMESTAMP"}


def _directions(statement: CreateSkew) -> list[tuple[tuple[Name, ...], tuple[Name, ...]]]:
    """From which streams to which the bounds of a CREATE SKEW hold."""
    firsts, seconds = statement.firsts, statement.seconds
    if not seconds:
        return [(firsts, firsts)]
    return [(firsts, seconds), (seconds, firsts)] if statement.both else [(firsts, seconds)]


def _unknown(kind: str, name: str, known: Iterable[str], position: Position | None) -> LanguageError:
    names = list(known)
    hint = did_you_mean(name, names) or _listed(names)
    return LanguageError(f"there is no {kind} {name}", position=position, hint=hint)


def _listed(names: Iterable[str]) -> str | None:
    listed = ", ".join(names)
    return f"there is {listed}" if listed else None
