"""The names that queries can use: source streams, and derived streams by their plans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, assert_never

from headrace.algebra.changes import Changes, content_schema
from headrace.algebra.events import Events, event_schema
from headrace.algebra.letters import letters_name, letters_schema, noted_at, stream_of_letters
from headrace.algebra.nodes import Plan
from headrace.algebra.one_row import ONE_ROW, SCHEMA
from headrace.algebra.system_streams import NOTED_AT, SystemStream, system_stream
from headrace.errors import NOWHERE, LanguageError, Position
from headrace.expressions.aggregates.aggregates import is_aggregate
from headrace.expressions.coercion import is_numeric
from headrace.expressions.functions import functions
from headrace.expressions.user import UserAggregate, UserFunction
from headrace.language.corrections import changes_by_key, changes_of_stream, named_column
from headrace.language.defaults import INITIAL, Defaults
from headrace.language.dialect import RESERVED
from headrace.language.lengths import check_behind
from headrace.language.names import quoted_name
from headrace.language.statements.streams import (
    NOTHING_SAID,
    ByArrival,
    ChangesClause,
    CreateRelation,
    CreateStream,
    TimeClauses,
)
from headrace.schema import BIGINT, DATE, STRING, TIMESTAMP, Field, Schema, sql_type
from headrace.suggestions import did_you_mean
from headrace.time import TimeDomain

Functions = Mapping[str, UserFunction | UserAggregate]
"""Users' functions and aggregates, by lower-case name."""


@dataclass(frozen=True)
class StreamInfo:
    """A source stream.

    Attributes:
        name: its name, as it was created.
        schema: all its columns, the timestamp column among them.
        timestamp: the column it is timed by.
        domain: what its instants count.
        by_arrival: whether rows come without that column, and get the clock's reading when they are taken.
        changes: what they change, and for how long they are valid; None where each is for its instant.
        computed: the names of columns that are computed of the others.
    """

    name: str
    schema: Schema
    timestamp: str
    domain: TimeDomain
    by_arrival: bool = False
    changes: Changes | Events | None = None
    computed: tuple[str, ...] = ()

    @property
    def sent(self) -> Schema:
        """The columns that its rows come with: all but computed ones and the instant of arrival."""
        left_out = {*self.computed, *([self.timestamp] if self.by_arrival else [])}
        return Schema(tuple(field for field in self.schema if field.name not in left_out))

    @property
    def content(self) -> Schema:
        """The columns that queries see."""
        match self.changes:
            case None:
                return self.schema
            case Changes() as by:
                return content_schema(self.schema, by)
            case Events() as events:
                return event_schema(self.schema, self.timestamp, events)
            case _:
                assert_never(self.changes)


@dataclass(frozen=True)
class ChangesInfo:
    """The changes that a relation is given by.

    Attributes:
        stream: they as a stream.
        by: which of its columns say what a row changes.
        read_first: whether they are read whole before any row of a stream, in whatever order they are.
    """

    stream: StreamInfo
    by: Changes
    read_first: bool


@dataclass(frozen=True)
class RelationInfo:
    """A relation: a table that does not change, or whose rows have periods, or that is given by changes.

    Attributes:
        name: its name, as it was created.
        schema: all its columns.
        key: the columns of which no two rows that are valid together have the same values; none if not said.
        valid: the columns that begin and end the period of a row, or None where rows have none of their own.
        domain: what the instants of periods and changes count; None where rows are always valid.
        changes: what it is given by, or None where it is given by its rows.
        refreshed: whether its rows are read again while queries run.
    """

    name: str
    schema: Schema
    key: tuple[str, ...] = ()
    valid: tuple[str, str] | None = None
    domain: TimeDomain | None = None
    changes: ChangesInfo | None = None
    refreshed: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether every row is always valid, as far as it has been read."""
        return self.domain is None


@dataclass(frozen=True)
class DerivedStream:
    """A stream that a query defines, or a query that others read; using it is using its plan.

    `is_stream` says whether CQL's defaults treat it as a stream, which gets a window, or as a relation.
    """

    name: str
    plan: Plan
    is_stream: bool = False


Entry = StreamInfo | RelationInfo | DerivedStream
"""What a name in FROM can be."""


@dataclass(frozen=True)
class Catalog:
    """An immutable set of streams, relations and users' functions; names are compared whatever their case.

    Attributes:
        entries: the streams and relations, by name in lower case.
        functions: the users' functions and aggregates, by name in lower case.
        defaults: what queries over the streams mean where they leave something out.
        quotes_names: whether double quotes are around names in texts that are read.
        domain: what instants count in the query that is bound, of constant relations too.
        shows_itself: whether the streams may be read in which a run describes itself.
        queries: what FROM means by names that no stream and no relation has. They are made when they are
            asked for, and catalogs are not compared by them.
    """

    entries: Mapping[str, Entry] = field(default_factory=lambda: MappingProxyType({}))
    functions: Functions = field(default_factory=lambda: MappingProxyType({}))
    defaults: Defaults = INITIAL
    quotes_names: bool = False
    domain: TimeDomain = TimeDomain.TIMESTAMP
    shows_itself: bool = True
    queries: Mapping[str, DerivedStream] = field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The streams' and relations' names, as they were created."""
        return tuple(entry.name for entry in self.entries.values())

    @property
    def kinds(self) -> str:
        """What there is to name in FROM."""
        relations = any(isinstance(entry, RelationInfo) for entry in self.entries.values())
        return "the streams and relations" if relations else "the streams"

    def find(self, name: str) -> Entry | None:
        """The stream, relation or query of that name, or None; also dead letters, and streams about the run.

        A stream or a relation comes before a query of its name.
        """
        system = system_stream(name) if self.shows_itself else None
        if system is not None:
            return system_info(system)
        if name.lower() == ONE_ROW:
            return RelationInfo(ONE_ROW, SCHEMA)
        of = stream_of_letters(name)
        if of is None:
            return self.entries.get(name.lower()) or self.queries.get(name)
        stream = self.entries.get(of.lower())
        if isinstance(stream, RelationInfo) and stream.changes is not None and not stream.changes.read_first:
            stream = stream.changes.stream
        return letters_info(stream) if isinstance(stream, StreamInfo) else None

    def is_of_query(self, name: str) -> bool:
        """Whether a name that can be found is that of a query."""
        return name.lower() not in self.entries and isinstance(self.find(name), DerivedStream)

    def define(self, entry: Entry, position: Position | None = None) -> Catalog:
        """The catalog with one stream or relation more.

        Raises:
            LanguageError: the name is taken, or kept for something else.
        """
        known = self.entries.get(entry.name.lower())
        if known is not None:
            kind = "relation" if isinstance(known, RelationInfo) else "stream"
            raise LanguageError(
                f"there is a {kind} {known.name} already", position=position, hint="choose another name"
            )
        what = _kept_for(entry.name)
        if what is not None:
            raise LanguageError(
                f"{entry.name} is what {what} called",
                position=position,
                hint="choose another name",
            )
        return replace(self, entries=MappingProxyType({**self.entries, entry.name.lower(): entry}))

    def redefine(self, entry: Entry) -> Catalog:
        """The catalog with another entry in the place of the one of its name."""
        return replace(self, entries=MappingProxyType({**self.entries, entry.name.lower(): entry}))

    def hiding(self, columns: Mapping[str, Sequence[str]]) -> Catalog:
        """The catalog in which some streams have fewer columns.

        Args:
            columns: the names of the columns that they do not have, by the streams' names in lower case.
        """
        found = self
        for name, hidden in columns.items():
            if (entry := self.entries.get(name)) is not None:
                found = found.redefine(_without_columns(entry, hidden))
        return found

    def define_function(self, user: UserFunction | UserAggregate) -> Catalog:
        """The catalog with one function or aggregate more; the same one may be defined again.

        Raises:
            LanguageError: the name is taken, or is not a valid name.
        """
        name = user.name
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or name.upper() in RESERVED:
            raise LanguageError(f"{name!r} cannot be called in a query", hint="use letters, digits and _")
        if name.upper() in functions.FUNCTIONS or is_aggregate(name.upper()):
            raise LanguageError(f"{name.upper()} is built in", hint="choose another name")
        if self.functions.get(name.lower(), user) != user:
            raise LanguageError(f"there is a function {name} already", hint="choose another name")
        return replace(self, functions=MappingProxyType({**self.functions, name.lower(): user}))

    def without(self, name: str) -> Catalog:
        """The catalog without a stream."""
        left = {key: entry for key, entry in self.entries.items() if key != name.lower()}
        return replace(self, entries=MappingProxyType(left))


def columns_of(entry: Entry | None) -> Schema:
    """The columns that queries see of what a name in FROM is; none where it is nothing."""
    match entry:
        case StreamInfo():
            return entry.content
        case RelationInfo(schema=schema):
            return schema
        case DerivedStream(plan=plan):
            return plan.schema
        case None:
            return Schema(())
        case _:
            assert_never(entry)


def _without_columns(entry: Entry, names: Sequence[str]) -> Entry:
    def left(schema: Schema) -> Schema:
        return Schema(tuple(field for field in schema if field.name not in names))

    match entry:
        case StreamInfo(schema=schema):
            return replace(entry, schema=left(schema))
        case RelationInfo(schema=schema, changes=ChangesInfo(stream=stream) as changes):
            narrower = replace(changes, stream=replace(stream, schema=left(stream.schema)))
            return replace(entry, schema=left(schema), changes=narrower)
        case _:
            return entry


def letters_info(stream: StreamInfo) -> StreamInfo:
    """The catalog's entry for the dead letters of a source stream."""
    schema, timed = letters_schema(stream.schema), noted_at(stream.schema)
    columns = Schema((*schema, Field(timed, TIMESTAMP)))
    return StreamInfo(letters_name(stream.name), columns, timed, TimeDomain.TIMESTAMP, by_arrival=True)


def system_info(stream: SystemStream) -> StreamInfo:
    """The catalog's entry for a stream in which a run describes itself."""
    name, columns = stream.full_name, stream.timed_schema
    return StreamInfo(name, columns, NOTED_AT, TimeDomain.TIMESTAMP, by_arrival=True)


def _kept_for(name: str) -> str | None:
    """For what a name is kept that no stream or relation can have, with its verb."""
    if stream_of_letters(name) is not None:
        return "the dead letters of a stream are"
    if system_stream(name) is not None:
        return "what a run says of itself is"
    if name.lower() == ONE_ROW:
        return "the table of queries without FROM is"
    return "a reading of a relation is" if _READING.fullmatch(name) else None


_READING: Final = re.compile(r".+ since \d+")
"""What a relation is called as it is read for the queries that begin with an epoch."""


def describe_relation(statement: CreateRelation, columns: Schema) -> RelationInfo:
    """The catalog's entry for a CREATE RELATION.

    Args:
        statement: the statement.
        columns: the declared columns, or those found in the input.

    Raises:
        LanguageError: a column of the key, the periods or the changes is missing or of a wrong type.
    """
    if statement.changes is not None:
        stream = describe_stream(statement.changes.stream, columns)
        return describe_changes(statement, statement.changes, stream)
    key = tuple(named_column(statement.name, columns, name).name for name in statement.key)
    if statement.valid is None:
        return RelationInfo(statement.name, columns, key, refreshed=statement.refresh is not None)
    begin, end = (named_column(statement.name, columns, name) for name in statement.valid)
    for name, found in zip(statement.valid, (begin, end), strict=True):
        if found.type not in (TIMESTAMP, BIGINT):
            raise LanguageError(
                f"the column {found.name} is {sql_type(found.type)}",
                position=name.position,
                hint="a period is bounded by two TIMESTAMPs or by two BIGINTs",
            )
    if begin.type != end.type:
        raise LanguageError(
            f"{begin.name} is {sql_type(begin.type)}, and {end.name} {sql_type(end.type)}",
            position=statement.valid[1].position,
            hint="a period is bounded by two TIMESTAMPs or by two BIGINTs",
        )
    domain = TimeDomain.TIMESTAMP if begin.type == TIMESTAMP else TimeDomain.INTEGER
    return RelationInfo(statement.name, columns, key, (begin.name, end.name), domain)


def describe_changes(
    statement: CreateRelation, clause: ChangesClause, stream: StreamInfo, *, read_first: bool = False
) -> RelationInfo:
    """The catalog's entry for a CREATE RELATION whose rows are changes.

    Args:
        statement: the statement.
        clause: what it says of the changes.
        stream: the changes as a stream.
        read_first: whether they are read whole before any row of a stream.

    Raises:
        LanguageError: a column is missing, or cannot be what it is named for.
    """
    by = changes_by_key(statement.name, stream.schema, clause.operation, statement.key, clause.version)
    schema = content_schema(stream.schema, by)
    info = ChangesInfo(stream, by, read_first)
    return RelationInfo(statement.name, schema, by.key, None, stream.domain, info)


def describe_stream(statement: CreateStream, columns: Schema) -> StreamInfo:
    """The catalog's entry for a CREATE STREAM.

    Args:
        statement: the statement.
        columns: the declared columns, or those found in the input.

    Raises:
        LanguageError: the timestamp column is missing or of a wrong type, or a clause does not fit it.
    """
    position = statement.timestamp_position
    computed = tuple(column.name for column in statement.computed)
    if isinstance(statement.timestamp, ByArrival):
        check_arrival_clauses(statement.time, position)
        info = timed_by_arrival(statement.name, columns, statement.timestamp, position)
        arrival = info.schema[-1]
        return replace(info, changes=changes_of_stream(statement, info.schema, arrival), computed=computed)
    index = columns.find(statement.timestamp)
    if index is None:
        hint = did_you_mean(statement.timestamp, columns.names) or f"the columns are {columns}"
        raise LanguageError(
            f"{statement.name} has no column {statement.timestamp}", position=position, hint=hint
        )
    column = columns[index]
    if column.type not in (TIMESTAMP, BIGINT):
        raise LanguageError(
            f"the timestamp column {column.name} is {sql_type(column.type)}",
            position=position,
            hint=_timed_by(column, in_python=position in (None, NOWHERE)),
        )
    domain = TimeDomain.TIMESTAMP if column.type == TIMESTAMP else TimeDomain.INTEGER
    time = statement.time
    if time.disorder is not None:
        check_behind(time.disorder, domain, "DISORDER", position)
    changes = changes_of_stream(statement, columns, column)
    return StreamInfo(statement.name, columns, column.name, domain, changes=changes, computed=computed)


def _timed_by(column: Field, in_python: bool) -> str:
    """What to write to time a stream by a column that is neither a TIMESTAMP nor a BIGINT."""
    name = quoted_name(column.name)
    if is_numeric(column.type):
        written = f"TIMESTAMP BY TIMESTAMP_SECONDS({name})"
    elif column.type in (STRING, DATE):
        written = f"TIMESTAMP BY CAST({name} AS TIMESTAMP)"
    else:
        return "a stream is timed by a TIMESTAMP or a BIGINT"
    if in_python and column.type in (STRING, DATE):
        return f"in pandas: df['{column.name}'] = pd.to_datetime(df['{column.name}']); in SQL: {written}"
    if in_python:
        return f"make it a TIMESTAMP, or write CREATE STREAM ... {written}"
    reads_text = f", or TO_TIMESTAMP({name}, 'dd/MM/yyyy HH:mm:ss') for other forms"
    return f"write {written}{reads_text if column.type == STRING else ''}"


def timed_by_arrival(
    name: str, columns: Schema, by: ByArrival, position: Position | None = None
) -> StreamInfo:
    """The catalog's entry for a stream that is timed by arrival.

    Args:
        name: the stream's.
        columns: those that its rows come with.
        by: what the column with their instants is called.
        position: where that is said, if that is a text.

    Raises:
        LanguageError: rows come with a column of that name.
    """
    if (place := columns.find(by.column)) is not None:
        taken = columns[place].name
        written = f"write ARRIVAL AS another_name, or TIMESTAMP BY `{taken}` if that column is meant"
        in_python = f'give ByArrival("another_name"), or "{taken}" if that column is meant'
        raise LanguageError(
            f"{name} has a column {taken}, and ARRIVAL adds one of that name",
            position=position,
            hint=in_python if position is None else written,
        )
    schema = Schema((*columns, Field(by.column, TIMESTAMP)))
    return StreamInfo(name, schema, by.column, TimeDomain.TIMESTAMP, by_arrival=True)


_IN_ORDER = "rows that are timed by arrival are in order"
_BY_CLOCK = "the clock moves the stream's heartbeat, whether rows come or not"
_WITH_ARRIVAL = {
    "disorder": ("DISORDER", _IN_ORDER),
    "rows": ("DISORDER", _IN_ORDER),
    "percent": ("DISORDER", _IN_ORDER),
    "estimation": ("ESTIMATED", _IN_ORDER),
    "strict": ("STRICT", "the rows of an epoch have one instant, and those of later ones a larger one"),
    "per": ("PER", _IN_ORDER),
    "latency": ("LATENCY", "how long a row was under way does not matter"),
    "ahead": ("AT MOST", "no row is ahead of the clock"),
    "behind": ("AT MOST", _BY_CLOCK),
    "heartbeats": ("HEARTBEATS FROM", _BY_CLOCK),
    "deviation": ("DEVIATION", _BY_CLOCK),
    "rate": ("RATE", _BY_CLOCK),
    "idle_after": ("IDLE AFTER", _BY_CLOCK),
    "timeout": ("TIMEOUT", _BY_CLOCK),
}
"""By the fields of `TimeClauses`, why a stream that is timed by arrival has no such clause."""


def check_arrival_clauses(time: TimeClauses, position: Position | None = None) -> None:
    """Refuse whatever is said about the time of a stream that is timed by arrival.

    Raises:
        LanguageError: something is said.
    """
    for name, (clause, reason) in _WITH_ARRIVAL.items():
        if getattr(time, name) != getattr(NOTHING_SAID, name):
            raise LanguageError(
                f"{clause} does not go with ARRIVAL", position=position, hint=f"leave it out: {reason}"
            )
