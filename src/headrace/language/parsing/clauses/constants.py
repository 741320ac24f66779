"""Queries that read no stream: SELECT without FROM, and VALUES. They read one row, which is always valid."""

from __future__ import annotations

from sqlglot import exp

from headrace.algebra.one_row import ONE_ROW
from headrace.errors import LanguageError, Position
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import Name, NamedTable, QuerySyntax, ScalarItem, SelectItem, SelectQuery


def is_constant(items: tuple[SelectItem, ...]) -> bool:
    """Whether a SELECT list names no column."""
    return all(isinstance(item, ScalarItem) and item.expression.find(exp.Column) is None for item in items)


def one_row(position: Position) -> NamedTable:
    """What a query without FROM reads."""
    return NamedTable(Name(ONE_ROW, position), None, None)


def parse_values(cursor: Cursor) -> list[QuerySyntax]:
    """Read `VALUES (1, 'a'), (2, 'b')`: a query for each row, with Spark's names of columns: col1, col2, ...

    Raises:
        LanguageError: it is malformed, or the rows have different numbers of values.
    """
    position = cursor.position
    cursor.expect("VALUES", "before rows")
    rows = [_row(cursor)]
    while cursor.accept(","):
        at, row = cursor.position, _row(cursor)
        if len(row) != len(rows[0]):
            message = f"this row has {len(row)} values, and the first one {len(rows[0])}"
            raise LanguageError(message, position=at)
        rows.append(row)
    table = (one_row(position),)
    return [SelectQuery(row, False, table, None, (), None, None, position) for row in rows]


def _row(cursor: Cursor) -> tuple[ScalarItem, ...]:
    """The values of a row, in parentheses or one without."""
    position, in_parentheses = cursor.position, cursor.accept("(")
    values = [cursor.scalar("a value")]
    while in_parentheses and cursor.accept(","):
        values.append(cursor.scalar("a value"))
    if in_parentheses:
        cursor.expect(")", "after the values of a row")
    names = (Name(f"col{number}", position) for number, _ in enumerate(values, start=1))
    return tuple(ScalarItem(value, name, position) for value, name in zip(values, names, strict=True))
