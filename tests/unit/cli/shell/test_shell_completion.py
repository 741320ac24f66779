"""What is offered while a statement is being written."""

from __future__ import annotations

import pytest

from headrace.cli.shell.colours import coloured
from headrace.cli.shell.completion import COMMANDS, candidates
from headrace.engine.inputs.options import FORMATS, SINKS
from headrace.language.completion.candidates import STATEMENTS, WORDS, Candidate, KnownNames
from headrace.language.dialect import RESERVED

KNOWN = KnownNames(
    {"bid": ("ts", "item", "price"), "person": ("ts", "id", "select")},
    {"shop": ("item", "city")},
    {"dear": ("item", "top"), "bids": ("n",)},
    ("pretty",),
    ("archive",),
    FORMATS,
    SINKS,
)


def offered(text: str) -> dict[str, str]:
    """What is offered at the bar in a text, and what it is."""
    at = text.index("|")
    start, found = candidates(text.replace("|", ""), at, KNOWN)
    assert text[start:at].isidentifier() or start == at or text[start] == "\\"
    return {candidate.text: candidate.what for candidate in found}


@pytest.mark.parametrize(
    "text", ["SELECT * FROM |", "SELECT 1; SELECT a FROM bid, |", "SELECT a FROM bid b JOIN |"]
)
def test_after_from_come_streams_relations_and_queries(text: str) -> None:
    found = offered(text)
    named = {name for name, what in found.items() if what in ("stream", "relation", "query")}
    assert named == {"bid", "person", "shop", "dear", "bids"}
    assert not {"column", "function"} & set(found.values())
    assert "TUMBLE" in found


def test_columns_are_those_of_what_the_statement_names() -> None:
    columns = {
        name for name, what in offered("SELECT | FROM bid [RANGE 5] AS b; ").items() if what == "column"
    }
    assert columns == {"ts", "item", "price"}
    after = offered("SELECT 1 FROM shop; SELECT * FROM person WHERE |")
    assert {name for name, what in after.items() if what == "column"} == {"ts", "id", "`select`"}
    everything = {name for name, what in offered("SELECT |").items() if what == "column"}
    assert everything == {"ts", "item", "price", "id", "`select`", "city"}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT b.| FROM bid [RANGE 5] AS b, shop s", {"ts", "item", "price"}),
        ("SELECT 1 FROM bid b, shop AS s WHERE s.c|", {"city"}),
        ("SELECT 1 FROM bid b WHERE nothing.|", set()),
        ("SELECT shop.i| FROM shop", {"item"}),
        ("SELECT h.t| FROM HISTORY OF dear h", {"top"}),
    ],
)
def test_after_a_point_come_the_columns_of_what_is_before_it(text: str, columns: set[str]) -> None:
    assert set(offered(text)) == columns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP QUERY |", {"dear": "query", "bids": "query", "IF EXISTS": "word"}),
        ("SELECT * FROM HISTORY OF d|", {"dear": "query"}),
        ("SELECT * FROM ROWS OF |", {"bid": "stream", "person": "stream"}),
        ("ALTER STREAM b|", {"bid": "stream"}),
        ("WHY |", {"dear": "query", "bids": "query"}),
        ("\\watch |", {"dear": "query", "bids": "query"}),
        ("\\push p|", {"person": "stream"}),
        ("\\answer dear h|", {"history": "view"}),
        ("\\ask SELECT * FROM HISTORY OF b|", {"bids": "query"}),
        ("SELECT pric| FROM bid", {"price": "column"}),
        ("SELECT regexp_l| FROM bid", {"regexp_like(": "function"}),
        ("SELECT PRE| FROM bid", {"pretty(": "function"}),
        (
            "dro|",
            {
                "drop query": "statement",
                "drop relation": "statement",
                "drop sink": "statement",
                "drop stream": "statement",
            },
        ),
        ("DROP SINK |", {"archive": "sink", "IF EXISTS": "word"}),
        ("CREATE SINK a FOR d|", {"dear": "query"}),
        ("SELECT 'it|", {}),
        ("SELECT 1 -- FROM |", {}),
        ("SELECT 'FROM ', it| FROM shop", {"item": "column"}),
    ],
)
def test_what_fits(text: str, expected: dict[str, str]) -> None:
    assert offered(text) == expected


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT * FROM bid [|", ["PARTITION BY", "NOW", "UNBOUNDED", "RANGE", "ROWS"]),
        ("SELECT * FROM bid WINDOW(R|", ["RANGE", "ROWS"]),
        ("SELECT * FROM bid [PARTITION BY |", ["ts", "item", "price"]),
        (
            "SELECT * FROM bid [RANGE 5 M|",
            ["MICROSECONDS", "MICROSECOND", "MILLISECONDS", "MILLISECOND", "MINUTES"],
        ),
        ("CREATE STREAM s (at BIGINT) FROM p|", ["push", "parquet"]),
        ("CREATE STREAM s FROM csv OPTIONS (path 'x', p|", ["poll"]),
        ("CREATE STREAM s FROM csv OPTIONS (n|", ["`null`"]),
        ("CREATE STREAM s (at BIGINT, v STRING) FROM push TIMESTAMP BY |", ["at", "v", "ARRIVAL"]),
        ("CREATE STREAM s (at BIGINT) FROM push TIMESTAMP BY at DIS|", ["DISORDER"]),
        ("WITH top AS (SELECT 1 AS x) SELECT * FROM to|", ["top"]),
        ("CREATE SINK s FOR dear TO |", ["parquet", "json", "csv", "arrow", "kafka", "webhook", "table"]),
        ("CREATE SINK s FOR dear TO webhook OPTIONS (|", ["url", "authorization", "timeout"]),
        ("ALTER QUERY dear |", ["REOPTIMIZE", "SET", "PAUSE", "RESUME", "RENAME TO"]),
        ("ALTER QUERY dear SET CONSISTENCY |", ["STRONG", "MIDDLE", "WEAK"]),
        ("DROP RELATION |", ["shop"]),
        ("DROP |", ["SKEW", "STREAM", "RELATION", "QUERY", "SINK"]),
        ("SET |", ["dialect", "epoch_rows"]),
        ("SET dialect = |", ["'sql'", "'pipes'", "'cql'", "'ansi'"]),
        ("COMMENT ON COLUMN shop.|", ["item", "city"]),
        ("CREATE STREAM |", ["IF NOT EXISTS"]),
        ("SELECT item AS |", []),
        ("SELECT CASE WHEN price > 5 T|", ["THEN"]),
        ("SELECT 5 * p| FROM bid", ["price"]),
    ],
)
def test_what_comes_first(text: str, first: list[str]) -> None:
    assert list(offered(text))[: max(1, len(first))] == first


def test_commands_come_with_what_they_do() -> None:
    assert offered("\\ti|") == {"\\timing": COMMANDS["\\timing"]}
    assert len(offered("\\|")) == len(COMMANDS)


def test_words_are_those_of_the_language() -> None:
    assert {"SELECT", "FROM", "WHERE", "JOIN"} <= WORDS & RESERVED
    assert Candidate("SELECT", "statement") in candidates("", 0, KNOWN)[1]
    assert len(set(STATEMENTS)) == len(STATEMENTS)


def test_pieces_have_colours() -> None:
    text = "SELECT SUM(v), 'x' -- y\nFROM s [RANGE 5"
    found = list(coloured(text))
    assert "".join(piece for _, piece in found) == text
    styles = {piece: style for style, piece in found}
    assert styles["SELECT"] == styles["RANGE"] == "word"
    assert (styles["SUM"], styles["'x'"], styles["-- y"], styles["5"]) == (
        "function",
        "string",
        "comment",
        "number",
    )
    assert styles["v"] == styles["s"] == ""
    assert next(iter(coloured("\\d from"))) == ("command", "\\d")
