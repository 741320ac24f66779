"""Which streams a query names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from headrace.algebra.by_object import ByObject
from headrace.dataclass_parts import parts_of
from headrace.language.dialect import Nested
from headrace.language.syntax import NamedTable, QuerySyntax, ScalarItem, SelectQuery, WindowClause, WithQuery


def streams_named(query: QuerySyntax) -> frozenset[str]:
    """The streams in FROM, in lower case, those of inner queries included; what WITH defines is none."""
    return frozenset(table.name.text.lower() for table in tables_named(query))


def _tables(query: QuerySyntax) -> tuple[NamedTable, ...]:
    return tuple(_named(query, frozenset()))


tables_named: Final = ByObject(_tables, 16)
"""The tables in FROM that are called by a name, in order; what WITH defines is none.

Whoever binds a query and says something of it asks several times, one after the other.
"""


def _named(part: object, defined: frozenset[str]) -> Iterator[NamedTable]:
    match part:
        case NamedTable(name=name):
            if name.text.lower() not in defined:
                yield part
        case WithQuery(definitions=definitions, query=inner):
            for name, query in definitions:
                yield from _named(query, defined)
                defined |= {name.text.lower()}
            yield from _named(inner, defined)
        case exp.Expression():
            for node in part.find_all(Nested):
                yield from _named(node.args["query"], defined)
        case _:
            for one in parts_of(part):
                yield from _named(one, defined)


def writes_window(part: object) -> bool:
    """Whether a query writes a window after a table, in FROM or in a query there."""
    match part:
        case WindowClause(frame=frame):
            return frame is not None
        case _:
            return any(map(writes_window, parts_of(part)))


def names_window_time(query: SelectQuery) -> bool:
    """Whether a SELECT names `window_time`, the last instant of a window, which `*` leaves out."""
    listed = [item.expression for item in query.items if isinstance(item, ScalarItem)]
    parts = (*listed, *(part for part in (query.where, *query.group_by, query.having) if part is not None))
    return any(
        str(node.name).lower() == "window_time" for part in parts for node in part.find_all(exp.Column)
    )
