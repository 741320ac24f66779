"""Which column a name stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from sqlglot import exp

from headrace.algebra.nodes import Plan, column, project
from headrace.errors import LanguageError, Position
from headrace.expressions.tree import Column
from headrace.language.catalog import Functions
from headrace.language.dialect import position_of
from headrace.language.syntax import Name
from headrace.suggestions import did_you_mean


@dataclass(frozen=True)
class ScopeTable:
    """A table of FROM.

    Attributes:
        alias: what it is called there, or None for a derived table without an alias.
        stream: the stream's own name, which an alias does not quite hide, or None for a derived table.
        columns: pairs of a column's name and its place in the joined row.
        met: the ids of conditions of WHERE that its window makes true.
    """

    alias: str | None
    stream: str | None
    columns: tuple[tuple[str, Column], ...]
    met: frozenset[int] = frozenset()

    def named(self, name: str) -> list[Column]:
        """The columns of that name, whatever its case."""
        return self._by_name.get(name.lower(), [])

    @cached_property
    def _by_name(self) -> dict[str, list[Column]]:
        found: dict[str, list[Column]] = {}
        for name, one in self.columns:
            found.setdefault(name.lower(), []).append(one)
        return found

    def shifted(self, offset: int) -> ScopeTable:
        """The same table where its row starts `offset` columns later."""
        moved = ((name, replace(column, index=column.index + offset)) for name, column in self.columns)
        return replace(self, columns=tuple(moved))


@dataclass(frozen=True)
class Scope:
    """The tables that a clause can refer to.

    Attributes:
        tables: in the order of FROM.
        merged: the places that USING has made one with another column.
        order: the places in the order of `*`, where USING has put its columns first.
        outer: of a subquery what is around it, where a name is looked up that is not found.
        functions: the users' functions and aggregates, by lower-case name.
    """

    tables: tuple[ScopeTable, ...]
    merged: frozenset[int] = frozenset()
    order: tuple[int, ...] = ()
    outer: Outer | None = None
    functions: Functions = field(default_factory=lambda: MappingProxyType({}))

    def column(self, table: Name | None, name: Name) -> Column:
        """The column of that name, whatever its case.

        Raises:
            LanguageError: there is none, or there are several.
        """
        if self.outer is not None and self._means_around(table, name):
            return self.outer.seen(self.outer.scope.column(table, name))
        tables = self.tables if table is None else (self.table(table),)
        found = [column for entry in tables for column in entry.named(name.text)]
        if table is None:
            found = [column for column in found if column.index not in self.merged]
        if not found:
            raise self._unknown(table, name)
        if len(found) > 1:
            owners = [entry.alias for entry in tables if entry.named(name.text)]
            named = [f"{owner}.{name.text}" for owner in owners if owner]
            raise LanguageError(
                f"the column {name.text} is in more than one table",
                position=name.position,
                hint=f"write {' or '.join(named)}"
                if len(named) == len(owners)
                else "give the tables aliases",
            )
        return found[0]

    def path(self, names: tuple[Name, ...]) -> tuple[Column, tuple[Name, ...]]:
        """The column that `column.field ...` or `table.column.field ...` begins with, and the fields.

        Raises:
            LanguageError: there is no such column, or there are several.
        """
        first, *rest = names
        is_table = self._knows(first, first) or self._known_around(first, first)
        if rest and not is_table and self._has_column(first):
            return self.column(None, first), tuple(rest)
        if rest:
            return self.column(first, rest[0]), tuple(rest[1:])
        return self.column(None, first), ()

    def _has_column(self, name: Name) -> bool:
        """Whether there is a column of that name, here or around."""
        return self._knows(None, name) or self._known_around(None, name)

    def _means_around(self, table: Name | None, name: Name) -> bool:
        """Whether it is of a query around, where a table so called hides a stream that has an alias here."""
        if table is not None and not self._has_alias(table) and self._aliased_around(table):
            return True
        return not self._knows(table, name) and self._known_around(table, name)

    def _has_alias(self, table: Name) -> bool:
        return any(entry.alias and entry.alias.lower() == table.text.lower() for entry in self.tables)

    def _aliased_around(self, table: Name) -> bool:
        """Whether a table of that alias is in a query around this one, however far out."""
        scope = None if self.outer is None else self.outer.scope
        return scope is not None and (scope._has_alias(table) or scope._aliased_around(table))

    def _knows(self, table: Name | None, name: Name) -> bool:
        """Whether there is such a table or, without one, such a column."""
        if table is None:
            return any(entry.named(name.text) for entry in self.tables)
        return any(table.text.lower() in _names(entry) for entry in self.tables)

    def _known_around(self, table: Name | None, name: Name) -> bool:
        """Whether there is one of that name in a query around this one, however far out."""
        if self.outer is None:
            return False
        scope = self.outer.scope
        return scope._knows(table, name) or scope._known_around(table, name)

    def shifted(self, offset: int) -> Scope:
        """The same scope where the row starts `offset` columns later."""
        tables = tuple(table.shifted(offset) for table in self.tables)
        merged = frozenset(index + offset for index in self.merged)
        return replace(
            self, tables=tables, merged=merged, order=tuple(index + offset for index in self.order)
        )

    def table(self, name: Name) -> ScopeTable:
        """The table of that alias or, failing that, of that stream's name.

        Raises:
            LanguageError: there is none, or there are several.
        """
        wanted = name.text.lower()
        found = [entry for entry in self.tables if entry.alias and entry.alias.lower() == wanted]
        if not found:
            # The thesis writes SELECT OpenAuction.* FROM OpenAuction O.
            found = [entry for entry in self.tables if entry.stream and entry.stream.lower() == wanted]
        aliases = [entry.alias for entry in self.tables if entry.alias]
        if not found:
            hint = (
                did_you_mean(name.text, aliases) or f"the tables are {', '.join(aliases) or 'without names'}"
            )
            if wanted == "window":
                hint = "window_start and window_end are columns of TUMBLE(...) and its like in FROM"
            raise LanguageError(f"there is no table {name.text} in FROM", position=name.position, hint=hint)
        if len(found) > 1:
            hint = f"write {' or '.join(entry.alias or '' for entry in found)}"
            raise LanguageError(f"{name.text} is in FROM more than once", position=name.position, hint=hint)
        return found[0]

    def all_columns(self) -> tuple[tuple[str, Column], ...]:
        """What `*` stands for: all columns, those that USING has merged once and first."""
        columns = {
            column.index: (name, column)
            for entry in self.tables
            for name, column in entry.columns
            if column.index not in self.merged
        }
        return tuple(columns[index] for index in self.order or columns)

    def _unknown(self, table: Name | None, name: Name) -> LanguageError:
        if table is None:
            message = f"there is no column {name.text}"
            known = [known for entry in self.tables for known, _ in entry.columns]
        else:
            message = f"there is no column {name.text} in {table.text}"
            known = [known for known, _ in self.table(table).columns]
        hint = did_you_mean(name.text, known) or f"the columns are {', '.join(dict.fromkeys(known))}"
        return LanguageError(message, position=name.position, hint=hint)


@dataclass(frozen=True)
class Outer:
    """What is around a subquery.

    Attributes:
        scope: the tables of the query around it.
        seen: what a column of theirs is inside the subquery.
    """

    scope: Scope
    seen: Callable[[Column], Column]


def names_in(node: exp.Column) -> tuple[Name, ...]:
    """The names of `a.b.c` in a text, the first one first."""
    parts = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
    return tuple(Name(str(part.name), position_of(part)) for part in parts if part is not None)


def _names(table: ScopeTable) -> set[str]:
    return {name.lower() for name in (table.alias, table.stream) if name}


@dataclass(frozen=True)
class BoundTable:
    """A part of FROM: its plan, and what its columns are called."""

    plan: Plan
    scope: Scope


def renamed(bound: BoundTable, columns: tuple[Name, ...]) -> BoundTable:
    """A table whose first columns have other names.

    Raises:
        LanguageError: there are more names than columns, or two columns would have one.
    """
    if not columns:
        return bound
    plan, (table,) = bound.plan, bound.scope.tables
    if len(columns) > len(plan.schema):
        raise LanguageError(
            f"{table.alias or 'the query'} has {len(plan.schema)} columns",
            position=columns[len(plan.schema)].position,
            hint=f"they are {', '.join(plan.schema.names)}",
        )
    names = [*(name.text for name in columns), *plan.schema.names[len(columns) :]]
    for place, name in enumerate(columns):
        if name.text.lower() in (other.lower() for at, other in enumerate(names) if at != place):
            raise LanguageError(f"two columns are called {name.text}", position=name.position)
    renamed = project(plan, tuple((name, column(plan, place)) for place, name in enumerate(names)))
    named = tuple((name, column(renamed, place)) for place, name in enumerate(names))
    return BoundTable(renamed, replace(bound.scope, tables=(replace(table, columns=named),)))


def check_domains(left: Plan, right: Plan, position: Position) -> None:
    """Refuse streams whose instants count different things.

    Raises:
        LanguageError: one is timed by a TIMESTAMP, the other by an integer.
    """
    one, other = left.domain, right.domain
    if one is not other:
        raise LanguageError(
            f"streams timed by {one.name} and by {other.name} meet here",
            position=position,
            hint="time both by a TIMESTAMP or both by an integer",
        )
