"""`CREATE SINK name FOR query TO kind`: where the changes of a query go."""

from __future__ import annotations

from typing import Final

from headrace.errors import Position
from headrace.language.parsing.statements.ddl import parse_options
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.sinks import CreateSink

_WRITTEN: Final = "write CREATE SINK name FOR query TO parquet OPTIONS (path 'folder')"


def parse_create_sink(cursor: Cursor, position: Position) -> CreateSink:
    """Read what follows CREATE SINK.

    Raises:
        LanguageError: the text is malformed.
    """
    name = cursor.name("the sink's name")
    if cursor.at("FROM") or cursor.at("AS"):
        hint = f"write CREATE SINK {name.text} FOR query TO kind OPTIONS (...), with the name of a query"
        raise cursor.error(f"a sink takes the answer of a query, FOR it, and not {cursor.shown()}", hint)
    if not cursor.accept("FOR"):
        raise cursor.error(f"FOR is missing, before {cursor.shown()}", _WRITTEN)
    if cursor.at("SELECT") or cursor.at("("):
        hint = f"define the query first: CREATE QUERY name AS SELECT ...; CREATE SINK {name.text} FOR name"
        raise cursor.error("a sink is for a query that has a name", hint)
    query = cursor.name("the query's name")
    if not cursor.accept("TO"):
        raise cursor.error(f"TO is missing, before {cursor.shown()}", _WRITTEN)
    kind = cursor.name("what the sink is")
    return CreateSink(name, query, kind, parse_options(cursor), position)
