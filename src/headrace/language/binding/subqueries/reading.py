"""The first pass over a subquery: which columns of the rows around it it reads, before it is bound.

How it is bound depends on that, and so do its rows. FROM is bound for its columns; it cannot read the rows
around, nor can a stream inside a subquery. A name that stands for nothing is left to the binding to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from sqlglot import exp

from headrace.errors import LanguageError
from headrace.expressions.tree import Column
from headrace.language.binding.columns import OuterColumn
from headrace.language.binding.scope import BoundTable, Outer, names_in
from headrace.language.dialect import Nested
from headrace.language.syntax import QuerySyntax, Scalar, ScalarItem, SelectQuery


@dataclass(frozen=True)
class OuterReading:
    """What a subquery reads of the rows around it.

    Attributes:
        columns: the positions of the columns, in order.
        deeper: whether subqueries inside it read some of them.
    """

    columns: tuple[int, ...]
    deeper: bool


@dataclass(frozen=True)
class Selected:
    """A SELECT of a query.

    Attributes:
        query: the SELECT.
        tables: what it has in FROM, and what is around that.
        selects: finds the SELECTs of the queries in its expressions.
    """

    query: SelectQuery
    tables: BoundTable
    selects: Selects


Selects = Callable[[QuerySyntax, Outer], Iterator[Selected]]
"""The SELECTs that a query is made of, given what is around it."""


def reading_of(selected: Iterable[Selected]) -> OuterReading:
    """What a subquery reads that is made of these SELECTs, to which the rows around it are `OuterColumn`s."""
    read = [found for select in selected for found in _read(select, deeper=False)]
    return OuterReading(tuple(sorted({place for place, _ in read})), any(deeper for _, deeper in read))


def _read(select: Selected, *, deeper: bool) -> Iterator[tuple[int, bool]]:
    """The columns of the rows around a subquery that a SELECT reads, each with whether it is deeper in it."""
    for scalar in _scalars(select.query):
        for part in scalar.find_all(exp.Column, Nested):
            if isinstance(part, Nested):
                for inner in select.selects(part.args["query"], Outer(select.tables.scope, _unchanged)):
                    yield from _read(inner, deeper=True)
            elif isinstance(part.this, exp.Identifier):
                with suppress(LanguageError):
                    column = select.tables.scope.path(names_in(part))[0]
                    if isinstance(column, OuterColumn):
                        yield column.index, deeper


def _scalars(query: SelectQuery) -> Iterator[Scalar]:
    yield from (item.expression for item in query.items if isinstance(item, ScalarItem))
    yield from (part for part in (query.where, *query.group_by, query.having) if part is not None)


def _unchanged(column: Column) -> Column:
    return column
