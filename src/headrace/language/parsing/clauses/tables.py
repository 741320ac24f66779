"""The words behind a table of FROM: its window, alias and columns, and the kind of a join."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Final

from headrace.algebra.kinds import JoinKind
from headrace.algebra.one_row import ONE_ROW
from headrace.algebra.system_streams import PREFIX, SystemStream, system_stream
from headrace.errors import LanguageError, Position
from headrace.language.parsing.clauses.constants import one_row
from headrace.language.parsing.clauses.select_list import (
    parse_alias,
    parse_columns,
)
from headrace.language.parsing.clauses.window_clauses import parse_granularity, parse_sample, parse_window
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import (
    AsOf,
    ColumnName,
    Name,
    NamedTable,
    WindowClause,
)
from headrace.time import Duration


def parse_join_kind(cursor: Cursor) -> JoinKind | None:
    """Step over `[kind] JOIN`, if that comes next."""
    for words, kind in _JOINS:
        if cursor.accept(*words.split(), "JOIN"):
            return kind
    return None


_JOINS: Final = (
    ("", JoinKind.INNER),
    ("INNER", JoinKind.INNER),
    ("LEFT", JoinKind.LEFT),
    ("LEFT OUTER", JoinKind.LEFT),
    ("RIGHT", JoinKind.RIGHT),
    ("RIGHT OUTER", JoinKind.RIGHT),
    ("FULL", JoinKind.FULL),
    ("FULL OUTER", JoinKind.FULL),
    ("SEMI", JoinKind.SEMI),
    ("LEFT SEMI", JoinKind.SEMI),
    ("ANTI", JoinKind.ANTI),
    ("LEFT ANTI", JoinKind.ANTI),
)
"""What may precede JOIN, and the join that it means."""


_JOINING: Final = {"JOIN", *(words.split()[0] for words, _ in _JOINS if words)}
"""The words that a join begins with."""


def parse_system_stream(cursor: Cursor, first: Name) -> NamedTable:
    """Read what follows the first part of a name that has two."""
    listed = ", ".join(stream.full_name for stream in SystemStream)
    if first.text.lower() != PREFIX:
        raise cursor.error("a stream's name has one part", f"write the name alone; only {listed} have two")
    cursor.expect(".", "")
    second = cursor.name("the name of a stream")
    if f"{PREFIX}.{second.text}".lower() == ONE_ROW:
        return one_row(first.position)
    if system_stream(f"{PREFIX}.{second.text}") is None:
        raise LanguageError(
            f"there is no stream {first.text}.{second.text}",
            position=second.position,
            hint=f"there are {listed}",
        )
    alias, window, columns = parse_decoration(cursor)
    name = replace(first, text=f"{PREFIX}.{second.text}".lower())
    return NamedTable(name, alias or second, window, columns=columns)


def parse_as_of(cursor: Cursor) -> AsOf | None:
    """Read `FOR SYSTEM_TIME AS OF column`, if that comes next."""
    if not cursor.at("FOR", "SYSTEM_TIME"):
        return None
    cursor.index += 1
    position = cursor.position
    cursor.index += 1
    cursor.expect("AS", "after FOR SYSTEM_TIME")
    cursor.expect("OF", "after FOR SYSTEM_TIME AS")
    table, column = None, cursor.name("the timestamp of the stream before JOIN")
    if cursor.accept("."):
        table, column = column, cursor.name("a column")
    return AsOf(ColumnName(table, column), position)


_Decoration = tuple[Name | None, WindowClause | None, tuple[Name, ...]]
"""What follows a table: its alias, its window, and the names of its columns."""


def parse_decoration(cursor: Cursor) -> _Decoration:
    """Read an alias with names of columns, a window, SAMPLE and GRANULARITY, in any order."""
    start = cursor.position
    alias: Name | None = None
    columns: tuple[Name, ...] = ()
    window: WindowClause | None = None
    sample: Decimal | None = None
    granules: tuple[Duration, Duration | None] | None = None
    while True:
        position = cursor.position
        if (found := parse_window(cursor)) is not None:
            _refuse_second("a window", window, position)
            window = found
        elif (percent := parse_sample(cursor)) is not None:
            _refuse_second("SAMPLE", sample, position)
            sample = percent
        elif (lengths := parse_granularity(cursor)) is not None:
            _refuse_second("GRANULARITY", granules, position)
            granules = lengths
        elif alias is None and not _at_as_of_join(cursor) and (name := parse_alias(cursor)) is not None:
            alias = name
            columns = _columns(cursor)
        else:
            break
    if cursor.at("(") and cursor.word(1) in _FRAMES:
        raise cursor.error("WINDOW is missing, before '('", "write WINDOW(RANGE 10 MINUTES)")
    if cursor.at("(") and cursor.word(-1) == "DESCRIPTOR":
        cursor.index -= 1
        raise cursor.error(f"',' is missing, before {cursor.shown()}")
    if sample is not None or granules is not None:
        granule, coarsest = granules or (None, None)
        window = window or WindowClause(None, (), None, start)
        window = replace(window, sample=sample, granule=granule, coarsest=coarsest)
    return alias, window, columns


_FRAMES: Final = ("RANGE", "ROWS", "NOW", "PARTITION BY")


def _columns(cursor: Cursor) -> tuple[Name, ...]:
    """Read the names of columns in parentheses after an alias, if they come next."""
    opens = cursor.at("(") and cursor.word(1) not in _FRAMES and cursor.word(-1) != "DESCRIPTOR"
    return parse_columns(cursor) if opens else ()


def _at_as_of_join(cursor: Cursor) -> bool:
    """Whether ASOF comes next, and not an alias of that name."""
    return cursor.at("ASOF") and cursor.word(1) in _JOINING


def _refuse_second(what: str, before: object, position: Position) -> None:
    if before is not None:
        hint = "put the first one into a subquery: FROM (SELECT * FROM ...)"
        raise LanguageError(f"{what} is given twice", position=position, hint=hint)
