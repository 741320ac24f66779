"""Notes on queries: what is right by the semantics, and not what users of other systems expect.

By PIPES' defaults a stream without a window has at every instant the rows of just that instant. So a join of
two such streams finds few pairs, if any, and an aggregate or LIMIT over one is of single instants. By SQL's
all its rows so far are looked at, so that more and more may have to be remembered. That is what the query
says, and it is done; a note says so, with its place and what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, assert_never

from sqlglot import exp

from headrace.algebra.bounds import has_unbounded_state
from headrace.algebra.nodes import Filter, Join, Plan, Project, Sample, Source, TimeWindow, Union, Unnest
from headrace.algebra.properties import sources_of, timestamp_columns, walk
from headrace.errors import Position
from headrace.language.binding.scalars.aggregate_calls import aggregate_parts
from headrace.language.binding.scalars.clock_calls import asks_clock
from headrace.language.catalog import Catalog, DerivedStream, Entry, StreamInfo, columns_of
from headrace.language.compared_texts import compared_texts
from headrace.language.defaults import Defaults
from headrace.language.dialect import Nested, position_of
from headrace.language.references import tables_named
from headrace.language.syntax import (
    DerivedTable,
    FromItem,
    JoinedTable,
    NamedTable,
    PairsTable,
    QuerySyntax,
    Scalar,
    ScalarItem,
    SelectQuery,
    SetQuery,
    StreamQuery,
    TableQuery,
    TopQuery,
    UnionQuery,
    UnnestedTable,
    WindowClause,
    WindowedTable,
    WithQuery,
)
from headrace.time import INFINITY, TimeDomain


@dataclass(frozen=True)
class Note:
    """Something a query does that may not be what its author means.

    Attributes:
        message: one sentence, without the position.
        position: the place in the SQL text.
        hint: what to write if something else is meant.
    """

    message: str
    position: Position
    hint: str

    def __str__(self) -> str:
        return f"{self.position.line}:{self.position.column}: {self.message} (hint: {self.hint})"


def notes_of(query: QuerySyntax, catalog: Catalog, plan: Plan) -> tuple[Note, ...]:
    """The notes on a query that can be bound.

    Args:
        query: its syntax tree.
        catalog: the streams it uses.
        plan: what it means, as it is run.
    """
    reader = _Reader(catalog)
    reader.query(query, {})
    return (*reader.notes, *_growing(query, catalog, plan), *_of_texts(query, catalog))


def _of_texts(query: QuerySyntax, catalog: Catalog) -> Iterator[Note]:
    """Notes on columns of texts that are compared with numbers."""
    for node, name, number in compared_texts(query, catalog):
        message = f"{name} is a STRING: rows in which it is no number cannot take part"
        yield Note(message, position_of(node), f"write '{number}' to compare texts")


def _growing(query: QuerySyntax, catalog: Catalog, plan: Plan) -> Iterator[Note]:
    """Notes on streams without a window of which ever more is remembered."""
    if catalog.defaults is not Defaults.SQL or not has_unbounded_state(plan):
        return
    kept = {source.name for node in walk(plan) if _is_unbounded(node) for source in sources_of(node)}
    for table in tables_named(query):
        found = _sources(catalog.find(table.name.text))
        if kept & found and not _has_frame(table.window):
            kept -= found
            name = table.name.text
            size = _UNITS[plan.domain][1]
            message = f"{name} has no window: what is remembered of it grows for as long as the query runs"
            hint = (
                f"write {name} WINDOW(RANGE {size}) for the rows of the last {size}, "
                f"or {name} [NOW] for those of each instant"
            )
            yield Note(message, table.name.position, hint)


@dataclass(frozen=True)
class _Bare:
    """A stream in FROM without a window.

    Attributes:
        name: the stream, or what WITH calls it.
        position: where it is in FROM.
        times: the columns that hold a row's instant, in lower case.
        domain: what its instants count.
    """

    name: str
    position: Position
    times: frozenset[str]
    domain: TimeDomain


_Bares: TypeAlias = tuple[_Bare, ...]
_Defined: TypeAlias = Mapping[str, _Bares]
"""The bare streams of what WITH defines, by name in lower case."""


@dataclass(frozen=True)
class _Kind:
    """A kind of note.

    Attributes:
        message: what happens, at each `{instant}`.
        hint: what to write: `{recent}` is the streams with windows of `{size}`, `{ever}` with unbounded ones.
    """

    message: str
    hint: str = "write {recent} for the rows of the last {size}, or {ever} for all rows so far"


_MEET: Final = _Kind(
    "only rows of the same {instant} meet",
    "write {recent}, where {size} is how long rows wait for others",
)
_COMPARED: Final = _Kind("only rows of the same {instant} are compared")
_AGGREGATED: Final = _Kind("only rows of the same {instant} are aggregated together")


def _limited(limit: int) -> _Kind:
    shown = f"; headrace run --head {limit} shows so many rows of an answer"
    return _Kind(f"LIMIT {limit} is of the rows of each {{instant}}", _COMPARED.hint + shown)


@dataclass(frozen=True)
class _Reader:
    """Reads a query from the inside out; a stream on which there is a note is not reported again.

    Attributes:
        catalog: the streams.
        notes: those found so far, each once.
    """

    catalog: Catalog
    notes: dict[Note, None] = field(default_factory=dict)

    def query(self, query: QuerySyntax, defined: _Defined) -> _Bares:
        """The streams without a window whose rows the query yields at their instants."""
        match query:
            case SelectQuery():
                return self._select(query, defined)
            case TopQuery(query=inner, limit=limit):
                bare = self.query(inner, defined)
                return bare if limit is None else self._noted(_limited(limit), bare)
            case UnionQuery(queries=queries):
                return tuple(one for part in queries for one in self.query(part, defined))
            case SetQuery(left=left, right=right):
                parts = self.query(left, defined), self.query(right, defined)
                return self._together(_COMPARED, parts)
            case StreamQuery(query=inner):
                self.query(inner, defined)
                return ()
            case TableQuery():
                return ()
            case WithQuery(definitions=definitions, query=inner):
                for name, part in definitions:
                    defined = {**defined, name.text.lower(): self.query(part, defined)}
                return self.query(inner, defined)
            case _:
                assert_never(query)

    def _note_quotes(self, query: SelectQuery, nodes: Sequence[Scalar]) -> None:
        """Note texts in double quotes that other systems take for columns."""
        tables = (item.name.text for item in query.tables if isinstance(item, NamedTable))
        names = {name.lower() for table in tables for name in columns_of(self.catalog.find(table)).names}
        for literal in (part for node in nodes for part in node.find_all(exp.Literal)):
            text = str(literal.this)
            if literal.meta.get("double") and text.lower() in names:
                message = f'"{text}" is a text, not the column {text}'
                self.notes[Note(message, position_of(literal), f"write `{text}` for the column")] = None

    def _select(self, query: SelectQuery, defined: _Defined) -> _Bares:
        listed = [item.expression for item in query.items if isinstance(item, ScalarItem)]
        conditions = [part for part in (query.where, query.having) if part is not None]
        self._note_quotes(query, [*listed, *conditions, *query.group_by])
        # Conditions on the present are windows.
        present = query.where is not None and asks_clock(query.where)
        parts = [] if present else [self._item(item, defined) for item in query.tables]
        bare = self._together(_MEET, parts, conditions)
        for node in (*listed, *conditions):
            for nested in node.find_all(Nested):
                inner = self.query(nested.args["query"], defined)
                if bare and inner:
                    bare = self._together(_MEET, (bare, inner))
        if query.group_by or any(map(self._has_aggregate, (*listed, *conditions))):
            by_time = any(_is_time(key, bare) for key in query.group_by)
            return bare if by_time else self._noted(_AGGREGATED, bare)
        if query.distinct:
            return self._noted(_COMPARED, bare)
        return tuple(_renamed(one, query) for one in bare)

    def _item(self, item: FromItem, defined: _Defined) -> _Bares:
        match item:
            case NamedTable(window=window):
                return () if _has_frame(window) else self._named(item, defined)
            case DerivedTable(query=query, window=window):
                bare = self.query(query, defined)
                return () if _has_frame(window) else bare
            case JoinedTable(left=left, right=right, condition=condition, using=using, natural=natural):
                parts = self._item(left, defined), self._item(right, defined)
                times = {name.text.lower() for name in using}
                if item.as_of or natural or any(times & one.times for part in parts for one in part):
                    return (*parts[0], *parts[1])
                return self._together(_MEET, parts, [] if condition is None else [condition])
            case UnnestedTable(left=left):
                return self._item(left, defined)
            case WindowedTable(function=function):
                self._item(function.data, defined)
                return ()
            case PairsTable(data=data):
                self._item(data, defined)
                return ()
            case _:
                assert_never(item)

    def _named(self, table: NamedTable, defined: _Defined) -> _Bares:
        name, position = table.name.text, table.name.position
        if (bare := defined.get(name.lower())) is not None:
            return tuple(_Bare(name, position, one.times, one.domain) for one in bare[:1])
        match self.catalog.find(name):
            case StreamInfo(timestamp=timestamp, domain=domain, changes=None):
                return (_Bare(name, position, frozenset([timestamp.lower()]), domain),)
            case DerivedStream(plan=plan) if _is_bare(plan):
                times = frozenset(plan.schema.names[place].lower() for place in timestamp_columns(plan))
                return (_Bare(name, position, times, plan.domain),)
            case _:
                return ()

    def _together(self, kind: _Kind, parts: Sequence[_Bares], conditions: Sequence[Scalar] = ()) -> _Bares:
        """Inputs of which rows of one instant are put together; a note if several have no window.

        Beside a window, a stream without one asks about its instants: that is meant, and so is what is
        computed of the pairs.
        """
        found = [part for part in parts if part]
        bare = tuple(one for part in found for one in part)
        if len(found) > 1 and not any(_relates_times(condition, bare) for condition in conditions):
            return self._noted(kind, bare)
        return bare if len(found) == len(parts) else ()

    def _noted(self, kind: _Kind, bare: _Bares) -> _Bares:
        if bare and self.catalog.defaults is Defaults.PIPES:
            names, last = list(dict.fromkeys(one.name for one in bare)), bare[-1]
            has = "has" if len(names) == 1 else "have"
            unit, size = _UNITS[last.domain]
            message = f"{' and '.join(names)} {has} no window: {kind.message.format(instant=unit)}"
            recent, ever = (
                " and ".join(f"{name} WINDOW(RANGE {length})" for name in names)
                for length in (size, "UNBOUNDED")
            )
            hint = kind.hint.format(recent=recent, ever=ever, size=size)
            self.notes[Note(message, last.position, hint)] = None
        return ()

    def _has_aggregate(self, node: Scalar) -> bool:
        calls = node.find_all(exp.Anonymous)
        users = self.catalog.functions
        return any(
            aggregate_parts(call, users) is not None and call.find_ancestor(exp.Window) is None
            for call in calls
        )


_UNITS: Final = {TimeDomain.TIMESTAMP: ("microsecond", "10 MINUTES"), TimeDomain.INTEGER: ("instant", "10")}
"""What an instant is called, and a length of time that queries may ask for."""


def _sources(entry: Entry | None) -> frozenset[str]:
    """The source streams whose events a name stands for; a content is remembered as it is defined."""
    match entry:
        case StreamInfo(name=name):
            return frozenset([name])
        case DerivedStream(plan=plan, is_stream=True):
            return frozenset(source.name for source in sources_of(plan))
        case _:
            return frozenset()


def _is_unbounded(node: Plan) -> bool:
    return isinstance(node, TimeWindow) and node.size.length == INFINITY


def _has_frame(window: WindowClause | None) -> bool:
    return window is not None and (window.frame is not None or window.granule is not None)


def _is_bare(plan: Plan) -> bool:
    """Whether a derived stream has the rows of its sources at their instants."""
    passing = (Source, Filter, Project, Sample, Union, Unnest, Join)
    return plan.is_chronon and all(isinstance(node, passing) for node in walk(plan))


def _renamed(bare: _Bare, query: SelectQuery) -> _Bare:
    """The stream with the names that a SELECT list gives its timestamp besides."""
    aliases = {
        item.alias.text.lower()
        for item in query.items
        if isinstance(item, ScalarItem) and item.alias is not None and _is_time(item.expression, (bare,))
    }
    return replace(bare, times=bare.times | aliases)


def _is_time(node: Scalar, bare: _Bares) -> bool:
    """Whether an expression is a column with the instant of rows."""
    return isinstance(node, exp.Column) and any(str(node.name).lower() in one.times for one in bare)


def _relates_times(condition: Scalar, bare: _Bares) -> bool:
    """Whether a condition asks for rows of one instant, or of close ones, so that they are meant."""
    kinds = (exp.EQ, exp.Between, exp.LT, exp.LTE, exp.GT, exp.GTE)
    related = [
        part
        for part in condition.find_all(*kinds)
        if len([column for column in part.find_all(exp.Column) if _is_time(column, bare)]) > 1
    ]
    return len(related) > 1 or any(isinstance(part, exp.EQ | exp.Between) for part in related)
