"""Which streams a query names."""

from __future__ import annotations

from headrace.language.parsing.parser import parse_one
from headrace.language.references import streams_named, tables_named
from headrace.language.statements.statements import Select
from headrace.language.syntax import QuerySyntax


def query_of(text: str) -> QuerySyntax:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    return statement.query


def test_tables_are_found_in_order_those_of_inner_queries_included() -> None:
    """A name that WITH defines is none, also in the queries that WITH defines after it."""
    query = query_of(
        "WITH w AS (SELECT a FROM One), v AS (SELECT a FROM w) "
        "SELECT a FROM v JOIN (SELECT b FROM two) t ON a = b WHERE a IN (SELECT c FROM three)"
    )
    assert [table.name.text for table in tables_named(query)] == ["One", "two", "three"]
    assert streams_named(query) == {"one", "two", "three"}


def test_a_query_is_gone_over_once() -> None:
    """It does not change; another of the same text has tables at places of its own."""
    text = "SELECT a FROM one, two"
    query = query_of(text)
    found = tables_named(query)
    assert tables_named(query) is found
    assert tables_named(query_of(text)) is not found
