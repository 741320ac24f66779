"""The SELECT list: `a, b + 1 AS c, t.*`, or CQL's `ISTREAM(a, b)` around it."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from headrace.errors import LanguageError, Position
from headrace.language.dialect import WithinPercent, position_of, side_of
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import Name, Scalar, ScalarItem, SelectItem, StarItem
from headrace.language.unsupported import CLAUSES

STREAM_OPERATORS: Final = ("ISTREAM", "DSTREAM", "RSTREAM")
"""The operators that turn a relation into a stream, as CQL names them."""


def at_stream_operator(cursor: Cursor) -> bool:
    """Whether `ISTREAM(` or one of its like comes next."""
    return cursor.word() in STREAM_OPERATORS and cursor.word(1) == "("


def parse_list(cursor: Cursor) -> tuple[str | None, bool, tuple[SelectItem, ...]]:
    """Read what is between SELECT and FROM.

    Returns:
        The operator around the list (CQL), whether DISTINCT precedes it, and its items.

    Raises:
        LanguageError: the list is malformed.
    """
    distinct = _distinct(cursor)
    if not at_stream_operator(cursor):
        return None, distinct, _items(cursor, distinct)
    operator = cursor.word()
    if distinct:
        raise cursor.error(
            f"DISTINCT belongs inside {operator}", f"write SELECT {operator}(DISTINCT a, b) FROM ..."
        )
    cursor.index += 2
    distinct = _distinct(cursor)
    items = _items(cursor, distinct)
    cursor.expect(")", f"to close {operator}")
    if not (cursor.at("FROM") or cursor.peek() is None):
        hint = f"write SELECT {operator}(a, b AS c) FROM ..., or {operator}(SELECT ...)"
        raise cursor.error(f"{operator}(...) holds the whole SELECT list", hint)
    return operator, distinct, items


def parse_alias(cursor: Cursor) -> Name | None:
    """Read an alias, with AS or without.

    Raises:
        LanguageError: no name follows AS.
    """
    if cursor.accept("AS"):
        return cursor.name("the alias after AS")
    clause = cursor.word() in CLAUSES or cursor.at("EMIT", "EMPTY") or cursor.at("BEGIN", "(")
    if cursor.at_name() and not clause:
        return cursor.name("an alias")
    return None


def _distinct(cursor: Cursor) -> bool:
    distinct = cursor.accept("DISTINCT")
    if not distinct:
        cursor.accept("ALL")
    return distinct


def parse_distinct_on(cursor: Cursor) -> tuple[Scalar, ...]:
    """Read `DISTINCT ON (a, b)` before a SELECT list, if it comes next.

    Raises:
        LanguageError: the list of keys is malformed.
    """
    if not cursor.accept("DISTINCT", "ON", "("):
        return ()
    keys = [cursor.scalar("a key of DISTINCT ON")]
    while cursor.accept(","):
        keys.append(cursor.scalar("a key of DISTINCT ON"))
    cursor.expect(")", "after the keys of DISTINCT ON")
    return tuple(keys)


def _items(cursor: Cursor, distinct: bool) -> tuple[SelectItem, ...]:
    word = cursor.word()
    if word in STREAM_OPERATORS and cursor.word(1) not in ("", ",", "FROM", ".", "AS", ")"):
        raise cursor.error(
            f"the list after {word} must be in parentheses", f"write SELECT {word}(a, b) FROM ..."
        )
    if word == "TOP" and cursor.word(1).isdecimal():
        raise cursor.error("TOP is not supported", CLAUSES["FETCH"])
    items = [*_item(cursor)]
    while cursor.accept(","):
        items += _item(cursor)
    only = items[0]
    if (
        distinct
        and len(items) == 1
        and isinstance(only, ScalarItem)
        and isinstance(only.expression, exp.Tuple)
    ):
        # The thesis writes SELECT DISTINCT(a, b) for SELECT DISTINCT a, b.
        items = [ScalarItem(part, None, position_of(part)) for part in only.expression.expressions]
    return tuple(items)


def _item(cursor: Cursor) -> tuple[SelectItem, ...]:
    position = cursor.position
    if cursor.accept("*"):
        return (_star(cursor, None, position),)
    if cursor.at_name() and cursor.word(1) == "." and cursor.word(2) == "*":
        table = cursor.name("a table")
        cursor.index += 2
        return (_star(cursor, table, position),)
    expression = cursor.scalar("a column or an expression")
    if isinstance(expression, WithinPercent) and cursor.accept("AS", "("):
        return _with_bounds(cursor, expression, position)
    return (ScalarItem(expression, parse_alias(cursor), position),)


def _with_bounds(cursor: Cursor, node: WithinPercent, position: Position) -> tuple[SelectItem, ...]:
    """`COUNT(*) WITHIN 1 PERCENT AS (n, low, high)`: the estimate and both of its bounds."""
    cursor.index -= 1
    place = cursor.position
    names = parse_columns(cursor)
    if len(names) != 3 or node.args.get("side") is not None:
        hint = "write WITHIN 1 PERCENT AS (n, n_low, n_high)"
        message = "an estimate and its two bounds have three names"
        raise LanguageError(message, position=place, hint=hint)
    return tuple(
        ScalarItem(side_of(node, side), name, position)
        for name, side in zip(names, (None, "LOWER", "UPPER"), strict=True)
    )


def _star(cursor: Cursor, table: Name | None, position: Position) -> StarItem:
    without: tuple[Name, ...] = ()
    replaced: list[tuple[Name, Scalar]] = []
    if cursor.word() in ("EXCEPT", "EXCLUDE") and cursor.word(1) == "(":
        cursor.index += 1
        without = parse_columns(cursor)
    if cursor.accept("REPLACE", "("):
        replaced.append(_replacement(cursor))
        while cursor.accept(","):
            replaced.append(_replacement(cursor))
        cursor.expect(")", "to close REPLACE")
    return StarItem(table, position, without, tuple(replaced))


def _replacement(cursor: Cursor) -> tuple[Name, Scalar]:
    expression = cursor.scalar("what replaces a column")
    cursor.expect("AS", "before the column that is replaced")
    return cursor.name("the column that is replaced"), expression


def parse_columns(cursor: Cursor) -> tuple[Name, ...]:
    """Read `(a, b)`.

    Raises:
        LanguageError: it is not a list of names.
    """
    cursor.expect("(", "before the columns")
    names = [cursor.name("a column")]
    while cursor.accept(","):
        names.append(cursor.name("a column"))
    cursor.expect(")", "after the columns")
    return tuple(names)
