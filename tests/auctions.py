"""The streams of an auction house for tests of the language and the optimizer, and short cuts to plans.

They are the thesis' streams, and their queries are read as the thesis reads them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.algebra.nodes import Plan
from headrace.errors import LanguageError
from headrace.language.binding.binder import bind, derive
from headrace.language.catalog import Catalog, describe_relation, describe_stream
from headrace.language.defaults import Defaults
from headrace.language.parsing.parser import parse
from headrace.language.statements.statements import CreateQuery, CreateStreamAs, Explain, Select, SetDialect
from headrace.language.statements.streams import CreateRelation, CreateStream
from headrace.language.syntax import QuerySyntax

STREAMS = """
CREATE STREAM Bid (itemID INT, bid_price REAL, bidderID INT, ts TIMESTAMP)
    FROM parquet OPTIONS (path 'bid') TIMESTAMP BY ts;
CREATE STREAM OpenAuction (itemID INT, sellerID INT, start_price REAL, ts TIMESTAMP)
    SOURCE parquet('open') ORDERED BY ts;
CREATE STREAM ClosedAuction (itemID INT, buyerID INT, ts TIMESTAMP)
    FROM arrow OPTIONS (path 'closed') TIMESTAMP BY ts DISORDER 5 SECONDS;
CREATE STREAM tick (id BIGINT, kind STRING, price DECIMAL(10, 2), at BIGINT)
    FROM csv OPTIONS (path 'tick') TIMESTAMP BY at DISORDER 3;
"""
"""Three streams of the thesis, timed by TIMESTAMPs, and one timed by integers."""


def define(text: str, catalog: Catalog) -> tuple[Catalog, list[Plan]]:
    """The catalog with the streams and relations that the text creates, and the plans of its queries."""
    plans = []
    for statement in parse(text):
        match statement:
            case CreateStream(columns=columns):
                assert columns is not None
                catalog = catalog.define(describe_stream(statement, columns), statement.position)
            case CreateRelation(columns=columns):
                assert columns is not None
                catalog = catalog.define(describe_relation(statement, columns), statement.position)
            case CreateStreamAs(name=name, query=query):
                catalog = catalog.define(derive(name.text, query, catalog), name.position)
            case CreateQuery(query=query) | Select(query=query) | Explain(query=query):
                plans.append(bind(query, catalog))
            case SetDialect(defaults=defaults):
                catalog = replace(catalog, defaults=defaults)
    return catalog, plans


CATALOG, _ = define(STREAMS, Catalog(defaults=Defaults.PIPES))


def plan_of(text: str) -> Plan:
    """The plan of the last query of a text over the auction streams."""
    return define(text, CATALOG)[1][-1]


def query_of(text: str) -> QuerySyntax:
    """The syntax tree of a text of one query."""
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return statement.query


def error_of(text: str, catalog: Catalog = CATALOG) -> tuple[str, int, int, str | None]:
    """The message, line, column and hint of the error that a text makes."""
    with pytest.raises(LanguageError) as raised:
        define(text, catalog)
    error = raised.value
    assert error.position is not None, error
    return error.message, error.position.line, error.position.column, error.hint
