"""What a database knows: its streams and queries, as a value that a change replaces."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from headrace.algebra.letters import letters_name, stream_of_letters
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.engine.entries import Entries
from headrace.engine.inputs import Input
from headrace.engine.query import Query
from headrace.engine.relations import Table
from headrace.engine.rereading import check_refreshed
from headrace.engine.times import follow_of
from headrace.errors import LanguageError, Position
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import Catalog, DerivedStream, Entry, RelationInfo, StreamInfo
from headrace.language.defaults import Defaults
from headrace.language.references import streams_named
from headrace.language.statements import AlterStream, CreateSkew, Heartbeats
from headrace.language.syntax import Name
from headrace.language.syntax import Query as Syntax
from headrace.runtime.intake.streams import Incoming
from headrace.suggestions import did_you_mean
from headrace.time import TimeDomain

RESULT: Final = "result"
"""What a query is called that is looked at, or run, alone."""


@dataclass(frozen=True)
class Definitions:
    """The streams and queries of a database.

    Attributes:
        catalog: all streams, derived ones included.
        inputs: the streams that are read from outside, by name.
        relations: by name.
        queries: by name, in the order in which they were registered.
        plans: the optimized plan of each.
        named: what each query, and each derived stream, is written over: titles such as `the query q`, with
            the names of streams in lower case.
        spelled: the queries' names, by name in lower case.
        holding: the queries of which some operators may wait for others, by name.
    """

    catalog: Catalog = field(default_factory=Catalog)
    inputs: Mapping[str, Input] = field(default_factory=dict)
    relations: Mapping[str, Table] = field(default_factory=dict)
    queries: Entries[Query] = field(default_factory=Entries)
    plans: Entries[Plan] = field(default_factory=Entries)
    named: Entries[frozenset[str]] = field(default_factory=Entries)
    spelled: Entries[str] = field(default_factory=Entries)
    holding: Entries[Query] = field(default_factory=Entries)

    @property
    def streams(self) -> dict[str, Incoming]:
        """What a run reads, streams and relations, by name."""
        streams: dict[str, Incoming] = {name: stream.incoming for name, stream in self.inputs.items()}
        letters = {letters_name(name): stream.letters for name, stream in self.inputs.items()}
        return streams | letters | {name: table.relation for name, table in self.relations.items()}

    def described_inputs(self) -> dict[str, str]:
        """What a durable store remembers of streams and relations, by name."""
        streams = {name: stream.describe() for name, stream in self.inputs.items()}
        streams |= {letters_name(name): f"the dead letters of {name}" for name in self.inputs}
        return streams | {name: table.describe() for name, table in self.relations.items()}

    def endless_of(self, plan: Plan) -> dict[str, Timing]:
        """What is declared of the time of the streams that a plan reads and that never end."""
        read = (self.inputs.get(source.name) for source in sources_of(plan))
        return {one.name: one.stream.timing for one in read if one is not None and one.is_live}

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

    def with_relation(self, table: Table | Input, position: Position | None = None) -> Definitions:
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

    def with_time(self, statement: AlterStream) -> Definitions:
        """Something else said about the time of a stream.

        Raises:
            LanguageError: there is no such source stream, or a clause does not fit it.
        """
        stream = self._input(statement.name)
        changed = {name: getattr(statement.time, name) for name in statement.changed}
        return self._with(stream.retimed(replace(stream.clauses, **changed)))

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
        return replace(self, inputs=inputs)

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
        named = self.named.adding(_stream(entry.name), streams_named(query))
        return replace(self, catalog=catalog, named=named)

    def with_defaults(self, defaults: Defaults) -> Definitions:
        """Other defaults for what is defined from now on."""
        return replace(self, catalog=replace(self.catalog, defaults=defaults))

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
        others = (known.plan for known in self.queries.values())
        check_refreshed(query.name, query.plan, others, position)
        holds = query.heartbeats is not Heartbeats.OPERATOR
        return replace(
            self,
            queries=self.queries.adding(query.name, query),
            holding=self.holding.adding(query.name, query) if holds else self.holding,
            plans=self.plans.adding(query.name, optimized),
            named=self.named.adding(_query(query.name), streams),
            spelled=self.spelled.adding(query.name.lower(), query.name),
        )

    def without_query(self, name: str, position: Position | None) -> Definitions:
        """A query less.

        Raises:
            LanguageError: there is no such query.
        """
        query = self.query_named(name, position)
        return replace(
            self,
            queries=self.queries.without(query.name),
            holding=self.holding.without(query.name),
            plans=self.plans.without(query.name),
            named=self.named.without(_query(query.name)),
            spelled=self.spelled.without(query.name.lower()),
        )

    def without_stream(self, name: str, position: Position | None) -> Definitions:
        """A stream less.

        Raises:
            LanguageError: there is no such stream, or something is written over it.
        """
        entry = self._dropped("stream", name, position)
        left = self._without_input(entry.name)
        return replace(left, named=self.named.without(_stream(entry.name)))

    def without_relation(self, name: str, position: Position | None) -> Definitions:
        """A relation less.

        Raises:
            LanguageError: there is no such relation, or something is written over it.
        """
        entry = self._dropped("relation", name, position)
        relations = {known: table for known, table in self.relations.items() if known != entry.name}
        return replace(self._without_input(entry.name), relations=relations)

    def _without_input(self, name: str) -> Definitions:
        left = {known: stream.without(name) for known, stream in self.inputs.items() if known != name}
        return replace(self, catalog=self.catalog.without(name), inputs=left)

    def _dropped(self, kind: str, name: str, position: Position | None) -> Entry:
        """The stream or the relation of a name, which nothing is written over.

        Raises:
            LanguageError: there is none, it is of the other kind, or something is.
        """
        entry = self.catalog.find(name)
        if entry is None:
            raise _unknown(kind, name, self.catalog.names, position)
        its = "relation" if isinstance(entry, RelationInfo) else "stream"
        if its != kind:
            raise LanguageError(
                f"{entry.name} is a {its}", position=position, hint=f"write DROP {its.upper()} {entry.name}"
            )
        known = {name.lower(), letters_name(name.lower())}
        users = [title for title, named in self.named.items() if known & named]
        if users:
            raise LanguageError(
                f"the {kind} {entry.name} cannot be dropped: it is used by {', '.join(users)}",
                position=position,
                hint=f"drop {users[0]} first",
            )
        return entry

    def find_query(self, name: str) -> Query | None:
        """The query of that name, whatever its case, or None."""
        spelled = self.spelled.get(name.lower())
        return None if spelled is None else self.queries[spelled]

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
            raise _unknown("query", name, self.queries, position)
        return query

    def only(self, query: Query, optimized: Plan) -> Definitions:
        """The same streams with one query alone."""
        return replace(
            self,
            queries=Entries({query.name: query}),
            holding=Entries(),
            plans=Entries({query.name: optimized}),
            spelled=Entries({query.name.lower(): query.name}),
        )

    def read_by(self, stream: str) -> str:
        """The streams that a derived stream is written over, as text."""
        read = {stream_of_letters(name) or name for name in self.named[_stream(stream)]}
        return ", ".join(name for name in self.catalog.names if name.lower() in read)

    def free_name(self) -> str:
        """A name for a query that was given none: `query_1`, `query_2` and so on."""
        numbered = (f"query_{number}" for number in itertools.count(len(self.queries) + 1))
        return next(name for name in numbered if self.find_query(name) is None)


_TIMED_BY: Final = {TimeDomain.INTEGER: "an integer", TimeDomain.TIMESTAMP: "a TIMESTAMP"}


def _directions(statement: CreateSkew) -> list[tuple[tuple[Name, ...], tuple[Name, ...]]]:
    """From which streams to which the bounds of a CREATE SKEW hold."""
    firsts, seconds = statement.firsts, statement.seconds
    if not seconds:
        return [(firsts, firsts)]
    return [(firsts, seconds), (seconds, firsts)] if statement.both else [(firsts, seconds)]


def _query(name: str) -> str:
    return f"the query {name}"


def _stream(name: str) -> str:
    return f"the stream {name}"


def _unknown(kind: str, name: str, known: Iterable[str], position: Position | None) -> LanguageError:
    names = list(known)
    hint = did_you_mean(name, names) or _listed(names)
    return LanguageError(f"there is no {kind} {name}", position=position, hint=hint)


def _listed(names: Iterable[str]) -> str | None:
    listed = ", ".join(names)
    return f"there is {listed}" if listed else None
