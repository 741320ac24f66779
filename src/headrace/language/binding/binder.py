"""Queries to plans: names are looked up, types are found, and FROM becomes joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from types import MappingProxyType
from typing import Final, assert_never

import pyarrow as pa
from sqlglot import exp

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import (
    Istream,
    Plan,
    Relation,
    SetOperation,
    Union,
    column,
    inputs_of,
    project,
    with_inputs,
)
from headrace.algebra.properties import is_deeper, is_untimed
from headrace.algebra.streams import events_of, is_stream, settled, so_far
from headrace.errors import LanguageError, Position
from headrace.expressions.functions import functions
from headrace.expressions.tree import Column
from headrace.language.binding.over.calls import OverCalls
from headrace.language.binding.present import with_present
from headrace.language.binding.readings import compared, streamed, table_under
from headrace.language.binding.scalars.context import Context, located
from headrace.language.binding.scope import BoundTable, Outer, Scope, ScopeTable, check_domains, renamed
from headrace.language.binding.selection.close_rows import as_far_as_needed
from headrace.language.binding.selection.limits import bind_limits
from headrace.language.binding.selection.selection import (
    BoundSelect,
    bind_moved_out,
    bind_selection,
    bind_tied,
    inner_of,
)
from headrace.language.binding.sort_keys import hidden_keys, with_hidden
from headrace.language.binding.subqueries.predicates import parts_of
from headrace.language.binding.subqueries.questions import Inner
from headrace.language.binding.subqueries.reading import Selected, reading_of
from headrace.language.binding.subqueries.ties import Around, around_values, columns_around, moved_out
from headrace.language.binding.tables.as_of import as_of_join
from headrace.language.binding.tables.correlated_pairs import correlated_pairs
from headrace.language.binding.tables.joins import crossed, join, looks_up
from headrace.language.binding.tables.letters import unknown_stream
from headrace.language.binding.tables.relations import check_as_of, refuse_window, relation_plan, stream_plan
from headrace.language.binding.tables.table_functions import window_function, with_window_time
from headrace.language.binding.tables.unnest import unnest
from headrace.language.binding.windows import windowed
from headrace.language.catalog import Catalog, DerivedStream, RelationInfo, StreamInfo
from headrace.language.defaults import Defaults, answer_of, yields_stream
from headrace.language.references import names_window_time, streams_named, writes_window
from headrace.language.syntax import (
    DerivedTable,
    FromItem,
    JoinedTable,
    Name,
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
    WindowedTable,
    WithQuery,
)
from headrace.time import TimeDomain

MAX_DEPTH: Final = 200
"""How deep operators may be nested; plans are walked recursively."""


def bind(query: QuerySyntax, catalog: Catalog) -> Plan:
    """The plan that a query means; conditions stay where they were written.

    Args:
        query: a parsed query.
        catalog: the streams it may use.

    Raises:
        LanguageError: an unknown name, a wrong type, or a window where none is allowed.
    """
    return _bound(query, catalog)[0]


def _bound(query: QuerySyntax, catalog: Catalog) -> tuple[Plan, bool]:
    """The plan of a whole query, and whether it yields a stream of events."""
    timed = replace(catalog, domain=_domain(query, catalog))
    try:
        whole = _answered(_query(query, timed), query, catalog.defaults)
        plan = settled(whole)
    except RecursionError:
        raise LanguageError(
            "the query is nested too deeply",
            position=_start(query),
            hint="define the inner queries with CREATE STREAM name AS SELECT ...",
        ) from None
    if is_deeper(plan, MAX_DEPTH):
        raise LanguageError(
            f"the plan of the query is more than {MAX_DEPTH} operators deep",
            position=_start(query),
            hint="join fewer tables, or nest fewer derived streams",
        )
    return plan, yields_stream(whole, catalog.defaults)


def _answered(plan: Plan, query: QuerySyntax, defaults: Defaults) -> Plan:
    """The answer of a query: what only grows may be a stream of events; by SQL's if no window is written."""
    return plan if defaults is Defaults.SQL and writes_window(query) else answer_of(plan, defaults)


def _domain(query: QuerySyntax, catalog: Catalog) -> TimeDomain:
    """What instants count in a query: as in the streams that it names, and else as in its relations."""
    found = [catalog.find(name) for name in sorted(streams_named(query))]
    timed = [entry.domain for entry in found if isinstance(entry, StreamInfo)]
    plans = [entry.plan for entry in found if isinstance(entry, DerivedStream)]
    timed += [plan.domain for plan in plans if not is_untimed(plan)]
    timed += [entry.domain for entry in found if isinstance(entry, RelationInfo) and entry.domain is not None]
    return timed[0] if timed else TimeDomain.TIMESTAMP


def _in_domain(plan: Plan, domain: TimeDomain) -> Plan:
    """The plan of a content without a time of its own with another domain."""
    if isinstance(plan, Relation):
        return replace(plan, domain=domain)
    return with_inputs(plan, tuple(_in_domain(below, domain) for below in inputs_of(plan)))


def derive(name: str, query: QuerySyntax, catalog: Catalog) -> DerivedStream:
    """The stream that a query defines.

    Raises:
        LanguageError: the query is wrong.
    """
    return DerivedStream(name, *_bound(query, catalog))


def _query(query: QuerySyntax, catalog: Catalog, around: Around | None = None) -> Plan:
    """The plan of a query; within a subquery the ties precede its own columns."""
    match query:
        case SelectQuery():
            known = None if around is None else around.tables.get(id(query.tables))
            bound = _tables(query, catalog, around) if known is None else known
            nest, ties = partial(_nested, catalog=catalog), 0
            if around is not None:
                bound, ties = around.before(bound, query.position), around.ties
            of_nothing = catalog.defaults is Defaults.SQL
            return bind_selection(query, bound.plan, bound.scope, nest, ties, of_nothing=of_nothing)
        case TopQuery():
            ties = 0 if around is None else around.ties
            whole = query.limit is None and not query.offset and not ties

            def limited(inner: QuerySyntax) -> Plan:
                plan = _query(inner, catalog, around)
                return plan if whole else so_far(plan)

            return bind_limits(query, limited, ties)
        case UnionQuery():
            parts = _matched("UNION ALL", query.queries, catalog, around)
            return Union(parts if all(map(is_stream, parts)) else tuple(map(so_far, parts)))
        case SetQuery(kind=kind):
            left, right = _matched(kind.value, (query.left, query.right), catalog, around)
            return SetOperation(*compared(left, right), kind)
        case StreamQuery(operator=operator, query=inner, position=position):
            with located(position):
                within = _refusing(around, _IN_STREAM)
                plan = streamed(operator, _query(inner, catalog, within), catalog.defaults)
                return _beside(plan, around, catalog, position)
        case TableQuery(table=table):
            return _beside(_table(table, catalog).plan, around, catalog, table.name.position)
        case WithQuery(definitions=definitions, query=inner):
            return _query(inner, _with(definitions, catalog), around)
        case _:
            assert_never(query)


def _beside(plan: Plan, around: Around | None, catalog: Catalog, position: Position) -> Plan:
    """A query that reads nothing of the rows around it, for each of the ties."""
    return (
        plan
        if around is None
        else around.before(BoundTable(plan, _scope(plan, None, None, catalog)), position).plan
    )


_IN_STREAM: Final = (
    "a stream inside a subquery depends on what came before; compare its rows in a WHERE around it"
)
_IN_FROM: Final = "FROM cannot read the rows around the subquery; put the condition into its WHERE"


def _refusing(around: Around | None, hint: str) -> Around | None:
    """What is around a part of a subquery that cannot read it."""

    def refuse(outer: Column) -> Column:
        raise LanguageError(f"{outer.name} is a column of the outer query", hint=hint)

    return None if around is None else Around(Outer(around.outer.scope, refuse))


def _nested(query: QuerySyntax, rows: Plan, scope: Scope, *, catalog: Catalog) -> Inner:
    """A subquery over the rows around it; what it reads of them is looked up before it is bound."""
    while isinstance(query, WithQuery):
        catalog = _with(query.definitions, catalog)
        query = query.query
    if isinstance(query, SelectQuery):
        inner = _nested_select(query, rows, scope, catalog)
    else:
        inner = _nested_query(query, rows, scope, catalog)
    check_domains(rows, inner.plan, _start(query))
    return inner


def _nested_select(query: SelectQuery, rows: Plan, scope: Scope, catalog: Catalog) -> Inner:
    """A subquery whose conditions on the rows around it are moved out of it, if that can be.

    Else it is answered for each value of the columns that it reads of them.
    """
    around = Around(moved_out(scope))
    tables, nest = _tables(query, catalog, around), partial(_nested, catalog=catalog)
    bound = around.before(tables, query.position)
    read = reading_of([Selected(query, bound, partial(_selects, catalog=catalog))])
    inner = None if read.deeper else bind_moved_out(query, bound.plan, bound.scope, nest)
    if inner is not None:
        return inner
    moved, kept = as_far_as_needed(query, rows, read.columns, tables, bound.scope)
    around = around_values(scope, moved, read.columns)
    bound = around.before(replace(tables, plan=kept), query.position)
    block = bind_tied(query, bound.plan, bound.scope, nest, around.ties)
    return inner_of(block, columns_around(rows, read.columns))


def _nested_query(query: QuerySyntax, rows: Plan, scope: Scope, catalog: Catalog) -> Inner:
    """A subquery of another kind, which is answered for each value of the columns that it reads."""
    selected = list(_selects(query, moved_out(scope), catalog=catalog))
    tables, read = {id(one.query.tables): one.tables for one in selected}, reading_of(selected)
    if not read.columns:
        return inner_of(_listed(_query(query, catalog, Around(moved_out(scope), tables=tables))))
    around = replace(around_values(scope, so_far(rows), read.columns), tables=tables)
    single = isinstance(query, TopQuery) and query.limit in (0, 1) and not query.with_ties
    block = _listed(_query(query, catalog, around), around.ties)
    return inner_of(replace(block, single=single), columns_around(rows, read.columns))


def _selects(query: QuerySyntax, around: Outer, *, catalog: Catalog) -> Iterator[Selected]:
    """The SELECTs that a query is made of, as far as they may read the rows around it.

    One whose FROM is wrong is left out: it is refused when it is bound.
    """
    match query:
        case SelectQuery():
            with suppress(LanguageError):
                within = Around(around)
                bound = within.before(_tables(query, catalog, within), query.position)
                yield Selected(query, bound, partial(_selects, catalog=catalog))
        case TopQuery(query=SelectQuery(distinct=False) as inner, order=order):
            yield from _selects(with_hidden(inner, hidden_keys(inner, order)), around, catalog=catalog)
        case TopQuery(query=inner):
            yield from _selects(inner, around, catalog=catalog)
        case UnionQuery() | SetQuery():
            for part in query.queries if isinstance(query, UnionQuery) else (query.left, query.right):
                yield from _selects(part, around, catalog=catalog)
        case WithQuery(definitions=definitions, query=inner):
            with suppress(LanguageError):
                yield from _selects(inner, around, catalog=_with(definitions, catalog))
        case StreamQuery() | TableQuery():
            pass
        case _:
            assert_never(query)


def _listed(plan: Plan, ties: int = 0) -> BoundSelect:
    """A bound query whose columns after the ties are the SELECT list."""
    places = range(ties, len(plan.schema))
    return BoundSelect(plan, tuple((plan.schema.names[place], column(plan, place)) for place in places))


def _with(definitions: tuple[tuple[Name, QuerySyntax], ...], catalog: Catalog) -> Catalog:
    """The catalog in which the names of WITH hide streams of the same name."""
    defined: set[str] = set()
    for name, query in definitions:
        if name.text.lower() in defined:
            raise LanguageError(f"WITH defines {name.text} twice", position=name.position)
        defined.add(name.text.lower())
        plan = _query(query, catalog)
        if catalog.defaults is Defaults.SQL:
            plan = _answered(plan, query, Defaults.SQL)
        entry = DerivedStream(name.text, plan, yields_stream(plan, catalog.defaults))
        catalog = replace(catalog, entries=MappingProxyType({**catalog.entries, name.text.lower(): entry}))
    return catalog


def _matched(
    what: str, queries: tuple[QuerySyntax, ...], catalog: Catalog, around: Around | None
) -> tuple[Plan, ...]:
    """The inputs of a set operation, whose columns meet in their common types."""
    plans = [_query(part, catalog, around) for part in queries]
    first, ties = plans[0], 0 if around is None else around.ties
    for part, plan in zip(queries, plans, strict=True):
        if len(plan.schema) != len(first.schema):
            raise LanguageError(
                f"{what} of {len(first.schema) - ties} and {len(plan.schema) - ties} columns",
                position=_start(part),
                hint="list the same number of columns in every SELECT",
            )
        check_domains(first, plan, _start(part))
    types = [field.type for field in first.schema]
    for part, plan in zip(queries, plans, strict=True):
        with located(_start(part)):
            pairs = zip(types, plan.schema, strict=True)
            types = [functions.common_type(dtype, field.type) for dtype, field in pairs]
    return tuple(_cast_to(plan, types) for plan in plans)


def _cast_to(plan: Plan, types: list[pa.DataType]) -> Plan:
    items = [
        (field.name, functions.make_cast(column(plan, index), dtype))
        for index, (field, dtype) in enumerate(zip(plan.schema, types, strict=True))
    ]
    return project(plan, tuple(items))


def _tables(query: SelectQuery, catalog: Catalog, around: Around | None) -> BoundTable:
    within = _refusing(around, _IN_FROM)
    nodes = (item.expression for item in query.items if isinstance(item, ScalarItem))
    calls = [call for node in nodes for call in node.find_all(exp.Window)]

    where = () if query.where is None else tuple(parts_of(query.where))
    timed, by_instant = names_window_time(query), catalog.defaults is not Defaults.SQL

    def bound(*, bare: bool) -> BoundTable:
        items = (_from_item(table, catalog, within, bare, where, timed) for table in query.tables)
        bounds = list(zip(items, map(_start, query.tables), strict=True))
        (first, _), *rest = bounds
        return reduce(
            lambda left, right: crossed(left, right[0], right[1], where, by_instant=by_instant), rest, first
        )

    if not calls:
        return bound(bare=False)
    # OVER in the order of time frames the rows of a stream by itself; in other orders it reads a relation.
    tables = bound(bare=True)
    framing = OverCalls(tables.plan, Context(tables.scope, "SELECT"))
    if not any(map(framing.reads_snapshot, calls)):
        return tables
    if catalog.defaults is Defaults.CQL:
        return bound(bare=False)
    return replace(tables, plan=so_far(tables.plan))


def _from_item(
    item: FromItem,
    catalog: Catalog,
    around: Around | None,
    bare: bool = False,
    where: Sequence[Scalar] = (),
    timed: bool = False,
) -> BoundTable:
    """A part of FROM.

    Args:
        item: it.
        catalog: the streams it may use.
        around: what is around a subquery.
        bare: whether it gets no window by default.
        where: conditions that hold for all of its rows.
        timed: whether `window_time` may be asked of it.
    """
    outer = None if around is None else around.outer
    match item:
        case NamedTable():
            return _table(item, catalog, bare, where)
        case DerivedTable(query=query, alias=alias, window=window):
            with located(item.position):
                plan = _query(query, catalog, around)
            if catalog.defaults is Defaults.SQL:
                plan = _answered(plan, query, Defaults.SQL)
            first = None if alias else _first_table(query)
            scope = _scope(plan, alias.text if alias else None, first, catalog)
            window, scope = with_present(plan, window, scope, where)
            plan = table_under(plan, window, scope, catalog.defaults, item.position, bare)
            return renamed(BoundTable(plan, scope), item.columns)
        case JoinedTable():
            left, right = (
                _from_item(side, catalog, around, bare, where if item.kind in kinds else (), timed)
                for side, kinds in zip((item.left, item.right), _FILTERED, strict=True)
            )
            if catalog.defaults is Defaults.CQL and looks_up(item):
                # The window that it has by itself: each of its rows is looked at.
                left, right = (replace(side, plan=events_of(side.plan)) for side in (left, right))
            check_as_of(item, left, right, catalog)
            with located(item.position):
                meant, right = as_of_join(item, left, right, catalog)
                nest, by_instant = partial(_nested, catalog=catalog), catalog.defaults is not Defaults.SQL
                return join(meant, left, right, nest, outer, where, by_instant=by_instant)
        case UnnestedTable(left=table):
            return unnest(item, _from_item(table, catalog, around, bare, where, timed), outer)
        case WindowedTable():
            return _windows(item, catalog, around, timed)
        case PairsTable(data=data):
            return correlated_pairs(item, _from_item(data, catalog, around, bare=True))
        case _:
            assert_never(item)


def _windows(item: WindowedTable, catalog: Catalog, around: Around | None, timed: bool) -> BoundTable:
    """A table under a window function; `timed` if `window_time` may be asked of it."""
    data = _from_item(item.function.data, catalog, around, bare=True)
    plan, hidden = window_function(item.function, data.plan, data.scope), 0
    if item.function.function != "GAP_FILL" and catalog.defaults is Defaults.SQL and is_stream(data.plan):
        # A row is an event at the last instant of its window.
        plan, hidden = with_window_time(Istream(plan)) if timed else (Istream(plan), 0)
    stream = data.scope.tables[0].stream if len(data.scope.tables) == 1 else None
    listed = tuple(range(len(plan.schema) - hidden))
    scope = replace(_scope(plan, item.alias.text if item.alias else None, stream, catalog), order=listed)
    return renamed(BoundTable(windowed(plan, item.window, scope), scope), item.columns)


_FILTERED: Final = (
    (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI),
    (JoinKind.INNER, JoinKind.RIGHT),
)
"""The joins of which WHERE leaves out rows of the left and of the right side, and no others."""


def _first_table(query: QuerySyntax) -> str | None:
    """What the first table of a SELECT is called: the thesis uses that name around it, too."""
    match query:
        case SelectQuery(tables=(NamedTable(name=name, alias=alias), *_)):
            return (alias or name).text
        case _:
            return None


def _table(
    table: NamedTable, catalog: Catalog, bare: bool = False, where: Sequence[Scalar] = ()
) -> BoundTable:
    name = table.name
    entry = catalog.find(name.text)
    plan: Plan
    match entry:
        case StreamInfo():
            plan = stream_plan(entry)
            streams = plan.is_chronon
            if not streams:
                refuse_window(table, entry)
        case RelationInfo():
            plan, streams = relation_plan(entry, catalog), False
            refuse_window(table, entry)
        case DerivedStream():
            plan, streams = entry.plan, entry.is_stream
            if is_untimed(plan) and plan.domain is not catalog.domain:
                plan = _in_domain(plan, catalog.domain)
        case None:
            raise unknown_stream(name, catalog)
        case _:
            assert_never(entry)
    scope = _scope(plan, table.alias.text if table.alias else name.text, name.text, catalog)
    window, scope = with_present(plan, table.window, scope, where)
    plan = table_under(plan, window, scope, catalog.defaults, name.position, bare, streams or None)
    return renamed(BoundTable(plan, scope), table.columns)


def _scope(plan: Plan, alias: str | None, stream: str | None, catalog: Catalog) -> Scope:
    columns = tuple((field.name, column(plan, index)) for index, field in enumerate(plan.schema))
    return Scope((ScopeTable(alias, stream, columns),), functions=catalog.functions)


def _start(part: QuerySyntax | FromItem) -> Position:
    """Where a query or a table of FROM starts."""
    match part:
        case NamedTable(name=name):
            return name.position
        case JoinedTable(left=left) | UnnestedTable(left=left):
            return _start(left)
        case WindowedTable(function=function):
            return function.position
        case TableQuery(table=table):
            return table.name.position
        case WithQuery(query=query) | TopQuery(query=query):
            return _start(query)
        case SelectQuery() | UnionQuery() | SetQuery() | StreamQuery() | DerivedTable() | PairsTable():
            return part.position
        case _:
            assert_never(part)
