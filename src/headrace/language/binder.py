"""Queries to plans: names are looked up, types are found, and FROM becomes joins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Final, assert_never

import pyarrow as pa

from headrace.algebra.nodes import (
    Dstream,
    Istream,
    Join,
    Plan,
    Rstream,
    SetOperation,
    Source,
    Union,
    column,
)
from headrace.algebra.predicates import Equality, conjunction, conjuncts, split_equalities
from headrace.algebra.properties import domain_of
from headrace.errors import LanguageError, Position
from headrace.expressions import functions
from headrace.expressions.tree import Call, Expression
from headrace.language.catalog import Catalog, DerivedStream, StreamInfo
from headrace.language.cursor import position_of
from headrace.language.framing import windowed
from headrace.language.scalars import Context, bind_scalar, located
from headrace.language.scope import Scope, ScopeTable
from headrace.language.selection import bind_selection, project
from headrace.language.suggestions import did_you_mean
from headrace.language.syntax import (
    DerivedTable,
    FromItem,
    JoinedTable,
    Name,
    NamedTable,
    Query,
    SelectQuery,
    SetQuery,
    StreamQuery,
    TableQuery,
    UnionQuery,
    WindowedTable,
    WithQuery,
)
from headrace.language.window_functions import window_function
from headrace.schema import unique_names


@dataclass(frozen=True)
class _Bound:
    """A part of FROM: its plan, and what its columns are called."""

    plan: Plan
    scope: Scope


def bind(query: Query, catalog: Catalog) -> Plan:
    """The plan that a query means; conditions stay where they were written.

    Args:
        query: a parsed query.
        catalog: the streams it may use.

    Raises:
        LanguageError: an unknown name, a wrong type, or a window that cannot stand where it does.
    """
    try:
        return _query(query, catalog)
    except RecursionError:
        raise LanguageError(
            "the query is nested too deeply",
            position=_start(query),
            hint="define the inner queries with CREATE STREAM name AS SELECT ...",
        ) from None


def _query(query: Query, catalog: Catalog) -> Plan:
    match query:
        case SelectQuery(tables=tables):
            bound = _tables(tables, catalog)
            return bind_selection(query, bound.plan, bound.scope)
        case UnionQuery():
            return Union(_matched("UNION ALL", query.queries, catalog))
        case SetQuery(kind=kind, left=left, right=right):
            return SetOperation(kind, *_matched(kind.value, (left, right), catalog))
        case StreamQuery(operator=operator, query=inner, position=position):
            with located(position):
                return _STREAMS[operator](_query(inner, catalog))
        case TableQuery(table=table):
            return _table(table, catalog).plan
        case WithQuery(definitions=definitions, query=inner):
            return _query(inner, _with(definitions, catalog))
        case _:
            assert_never(query)


_STREAMS: Final[dict[str, type[Istream | Dstream | Rstream]]] = {
    "ISTREAM": Istream,
    "DSTREAM": Dstream,
    "RSTREAM": Rstream,
}


def _with(definitions: tuple[tuple[Name, Query], ...], catalog: Catalog) -> Catalog:
    """The catalog in which the names of WITH hide streams of the same name."""
    defined: set[str] = set()
    for name, query in definitions:
        if name.text.lower() in defined:
            raise LanguageError(f"WITH defines {name.text} twice", position=name.position)
        defined.add(name.text.lower())
        entry = DerivedStream(name.text, _query(query, catalog))
        catalog = Catalog(MappingProxyType({**catalog.entries, name.text.lower(): entry}))
    return catalog


def _matched(what: str, queries: tuple[Query, ...], catalog: Catalog) -> tuple[Plan, ...]:
    """The inputs of a set operation, whose columns meet in their common types."""
    plans = [_query(part, catalog) for part in queries]
    first = plans[0]
    for part, plan in zip(queries, plans, strict=True):
        if len(plan.schema) != len(first.schema):
            raise LanguageError(
                f"{what} of {len(first.schema)} and {len(plan.schema)} columns",
                position=_start(part),
                hint="list the same number of columns in every SELECT",
            )
        _check_domains(first, plan, _start(part))
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


def _tables(tables: tuple[FromItem, ...], catalog: Catalog) -> _Bound:
    bounds = [(_from_item(table, catalog), _start(table)) for table in tables]
    (first, _), *rest = bounds
    return reduce(lambda left, right: _product(left, *right), rest, first)


def _from_item(item: FromItem, catalog: Catalog) -> _Bound:
    match item:
        case NamedTable():
            return _table(item, catalog)
        case DerivedTable(query=query, alias=alias, window=window):
            plan = _query(query, catalog)
            scope = _scope(plan, alias.text if alias else None, None)
            return _Bound(windowed(plan, window, scope), scope)
        case JoinedTable():
            return _joined(item, catalog)
        case WindowedTable(function=function, alias=alias, window=window):
            data = _from_item(function.data, catalog)
            plan = window_function(function, data.plan, data.scope)
            stream = data.scope.tables[0].stream if len(data.scope.tables) == 1 else None
            scope = _scope(plan, alias.text if alias else None, stream)
            return _Bound(windowed(plan, window, scope), scope)
        case _:
            assert_never(item)


def _table(table: NamedTable, catalog: Catalog) -> _Bound:
    name = table.name
    entry = catalog.find(name.text)
    match entry:
        case StreamInfo():
            plan: Plan = Source(entry.name, entry.schema, entry.timestamp, entry.domain)
        case DerivedStream():
            plan = entry.plan
        case None:
            listed = f"the streams are {', '.join(catalog.names)}" if catalog.names else None
            hint = did_you_mean(name.text, catalog.names) or listed or "define it with CREATE STREAM first"
            raise LanguageError(f"there is no stream {name.text}", position=name.position, hint=hint)
        case _:
            assert_never(entry)
    scope = _scope(plan, table.alias.text if table.alias else name.text, name.text)
    return _Bound(windowed(plan, table.window, scope), scope)


def _scope(plan: Plan, alias: str | None, stream: str | None) -> Scope:
    columns = tuple((field.name, column(plan, index)) for index, field in enumerate(plan.schema))
    return Scope((ScopeTable(alias, stream, columns),))


def _product(left: _Bound, right: _Bound, position: Position) -> _Bound:
    """All pairs; the right columns follow the left ones."""
    _check_domains(left.plan, right.plan, position)
    aliases = {table.alias.lower() for table in left.scope.tables if table.alias}
    for table in right.scope.tables:
        if table.alias and table.alias.lower() in aliases:
            message = f"{table.alias} is in FROM twice"
            raise LanguageError(message, position=position, hint="give one of them another alias")
    width = len(left.plan.schema)
    moved = tuple(table.shifted(width) for table in right.scope.tables)
    tables = (*left.scope.tables, *moved)
    names = tuple(unique_names([name for table in tables for name, _ in table.columns]))
    merged = left.scope.merged | {index + width for index in right.scope.merged}
    plan = Join(left.plan, right.plan, (), None, names)
    return _Bound(plan, Scope(tables, merged))


def _check_domains(left: Plan, right: Plan, position: Position) -> None:
    one, other = domain_of(left), domain_of(right)
    if one is not other:
        raise LanguageError(
            f"streams timed by {one.name} and by {other.name} meet here",
            position=position,
            hint="time both by a TIMESTAMP or both by an integer",
        )


def _joined(item: JoinedTable, catalog: Catalog) -> _Bound:
    left, right = _from_item(item.left, catalog), _from_item(item.right, catalog)
    product = _product(left, right, item.position)
    width = len(left.plan.schema)
    names = product.plan.schema.names
    if item.condition is not None:
        predicate = bind_scalar(item.condition, Context(product.scope, "ON"))
        equalities, rest = split_equalities(conjuncts(predicate), width)
        with located(position_of(item.condition)):
            plan = Join(left.plan, right.plan, equalities, conjunction(rest), names)
        return _Bound(plan, product.scope)
    pairs = [(left.scope.column(None, name), right.scope.column(None, name), name) for name in item.using]
    plan = Join(left.plan, right.plan, tuple(_equal(*pair) for pair in pairs), None, names)
    merged = product.scope.merged | {other.index + width for _, other, _ in pairs}
    return _Bound(plan, Scope(product.scope.tables, merged))


def _equal(left: Expression, right: Expression, name: Name) -> Equality:
    """The two columns of USING in their common type."""
    with located(name.position):
        match functions.resolve("=", (left, right)):
            case Call(arguments=(one, other)):
                return one, other
    raise AssertionError("= takes two arguments")


def _start(part: Query | FromItem) -> Position:
    """Where a query or a table of FROM starts."""
    match part:
        case NamedTable(name=name):
            return name.position
        case JoinedTable(left=left):
            return _start(left)
        case WindowedTable(function=function):
            return function.position
        case TableQuery(table=table):
            return table.name.position
        case WithQuery(query=query):
            return _start(query)
        case SelectQuery() | UnionQuery() | SetQuery() | StreamQuery() | DerivedTable():
            return part.position
        case _:
            assert_never(part)
