"""No text whatever makes the language fail with anything but a LanguageError that knows its place."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auctions import CATALOG, STREAMS, define
from golden.case import CASES, load
from headrace.errors import LanguageError
from headrace.language.catalog import Catalog
from headrace.language.defaults import Defaults
from headrace.language.printer import to_sql
from headrace.optimizer import optimize

TEXTS = (
    "SELECT itemID, bid_price * 0.908 AS euro, UPPER('a') FROM Bid WHERE itemID = 7 OR itemID IN (1, 2)",
    "SELECT O.* FROM OpenAuction O WINDOW(RANGE 5 HOURS), ClosedAuction C WHERE O.itemID = C.itemID;",
    "SELECT kind, COUNT(*), SUM(price) s FROM tick [RANGE 10 SLIDE 5] GROUP BY kind HAVING s > 1 -- comment",
    "ISTREAM(SELECT DISTINCT a.id FROM tick a JOIN tick b USING (id, kind) JOIN (tick c CROSS JOIN tick d) "
    "ON TRUE)",
    "WITH x AS (SELECT CASE WHEN id > 1 THEN 'a' ELSE kind END k FROM tick) "
    "SELECT CAST(k AS DOUBLE) FROM x [NOW]",
    "SELECT id FROM tick UNION ALL (SELECT at FROM tick /* c */ "
    "UNION ALL SELECT 1L FROM tick [RANGE UNBOUNDED])",
    "EXPLAIN OPTIMIZED SELECT kind LIKE 'a!%' ESCAPE '!', id IS NOT NULL, id BETWEEN 1 AND -2, `at` % 3 "
    "FROM tick",
    "CREATE QUERY q AS SELECT x.id, DATE '2024-01-01', TIMESTAMP '2024-01-01 00:00:00', 1e3, NULL "
    "FROM tick AS x",
    "SELECT id, (SELECT COUNT(*) FROM tick b WHERE b.id = a.id) n FROM tick a WHERE (id, at) NOT IN "
    "(SELECT id, at FROM tick) AND at >= ALL (SELECT MAX(at) FROM tick WHERE kind = a.kind GROUP BY id) "
    "OR EXISTS (SELECT 1 FROM tick WHERE price > 1)",
    "SELECT a.id FROM tick a LEFT JOIN tick b ON a.id = b.id FULL OUTER JOIN tick c USING (at) "
    "ANTI JOIN tick d ON a.id < d.id EXCEPT ALL SELECT at FROM tick "
    "INTERSECT (SELECT id FROM tick UNION MAX SELECT at FROM tick)",
    "SELECT kind, COUNT(*) FROM tick a GROUP BY kind HAVING COUNT(*) > ANY (SELECT at FROM tick b "
    "WHERE b.kind = a.kind) AND NOT (kind IN (SELECT kind FROM tick [RANGE 3]))",
    "SELECT DISTINCT kind, id FROM (SELECT kind, id, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY at DESC) "
    "AS p FROM tick) WHERE p <= 2 UNION ALL (SELECT kind, at FROM tick ORDER BY id + 1 NULLS LAST LIMIT 3) "
    "ORDER BY 2 DESC NULLS FIRST, kind LIMIT ALL OFFSET 1",
    "SELECT RANK() OVER w, DENSE_RANK() OVER (ORDER BY id), FIRST_VALUE(id) FILTER (WHERE id > 1) OVER (w "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING), LAST_VALUE(kind) OVER v FROM tick WHERE id > 0 "
    "WINDOW w AS (PARTITION BY kind ORDER BY at), v AS (w RANGE UNBOUNDED PRECEDING)",
    STREAMS,
)

GOLDEN = [load(path) for path in sorted(CASES.glob("*.txt"))]
SEEDS = [(text, CATALOG) for text in TEXTS] + [(case.query, case.catalog) for case in GOLDEN]
"""Right texts, each with the streams that it reads."""

_WORDS = """
    SELECT FROM WHERE GROUP BY HAVING DISTINCT AS JOIN ON USING CROSS UNION ALL WITH WINDOW RANGE SLIDE NOW
    UNBOUNDED CREATE STREAM QUERY TIMESTAMP DISORDER OPTIONS SOURCE ORDERED ISTREAM RSTREAM EXPLAIN CASE
    WHEN THEN ELSE END CAST INT DECIMAL INTERVAL MINUTES IS NOT NULL AND OR IN BETWEEN LIKE ESCAPE COUNT SUM
    SET dialect = 'cql' SHOW STREAMS DROP ROWS PARTITION PRECEDING CURRENT TUMBLE HOP SESSION TABLE DESCRIPTOR
    SAMPLE GRANULARITY EMIT EMPTY DSTREAM LAG ROW_NUMBER FIRST MEDIAN WITHIN
    EXCEPT INTERSECT LEFT FULL OUTER SEMI ANTI MAX STRICT SOME
    tick id kind Bid OVER FILTER LATERAL EXISTS ANY ROW STRUCT MAP ARRAY LIMIT ORDER VALUES DATE
    OFFSET DESC NULLS L 5 1.5 1e 99999999999 ( ) [ ] , . ; * ' " ` -- /* */ :: = < - + { ? @
"""
WORDS = _WORDS.split()
PIECES = st.sampled_from(WORDS) | st.text(max_size=3)


def pieces_of(text: str) -> list[str]:
    """The words and signs of a text, with the space between them."""
    return re.findall(r"\w+|\s+|[^\w\s]", text)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, Catalog]:
    """A query text with pieces taken out, doubled, swapped, put in or taken from another text."""
    text, catalog = draw(st.sampled_from(SEEDS))
    tokens = pieces_of(text)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(tokens) - 1))
        match draw(st.sampled_from(("drop", "double", "swap", "put", "replace", "cut", "graft"))):
            case "drop" if len(tokens) > 1:
                del tokens[place]
            case "double":
                tokens.insert(place, tokens[place])
            case "swap":
                other = draw(st.integers(0, len(tokens) - 1))
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case "put":
                tokens.insert(place, draw(PIECES))
            case "replace":
                tokens[place] = draw(PIECES)
            case "cut" if place:
                tokens = tokens[:place]
            case "graft":
                scion = pieces_of(draw(st.sampled_from(SEEDS))[0])
                start = draw(st.integers(0, len(scion) - 1))
                tokens[place:place] = [" ", *scion[start : start + draw(st.integers(1, 12))], " "]
    return "".join(tokens), catalog


def error_of(text: str, catalog: Catalog) -> LanguageError | None:
    """The error that a text makes; if it makes none, its plans can be printed, and mean the same again."""
    try:
        _, plans = define(text, catalog)
    except LanguageError as error:
        return error
    for plan in plans:
        assert define(to_sql(plan), replace(catalog, defaults=Defaults.PIPES))[1] == [plan]
        assert optimize(plan).schema == plan.schema
    return None


def check(text: str, catalog: Catalog = CATALOG) -> None:
    """The text is right, or its error has a message and a place in the text."""
    error = error_of(text, catalog)
    if error is None:
        return
    assert error.message
    assert error.position is not None, error.message
    lines = text.split("\n")
    assert 1 <= error.position.line <= len(lines)
    assert 1 <= error.position.column <= len(lines[error.position.line - 1]) + 1


@given(mutated())
def test_mutated_queries(seed: tuple[str, Catalog]) -> None:
    check(*seed)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT",
        "SELECT * FROM Bid WHERE '\\",
        "\x00",
        "SELECT * FROM tick {# x",
        "SELECT CASE",
        "SELECT CAST(x AS STRUCT<",
        "SELECT X'1' FROM tick",
        "SELECT COUNT(*) OVER (ORDER BY at ROWS) FROM tick",
    ],
)
def test_texts_that_failed_once(text: str) -> None:
    check(text)


@given(st.lists(PIECES, max_size=12).map(" ".join))
def test_any_words(text: str) -> None:
    check(f"SELECT {text}")


@given(st.text(max_size=30))
def test_any_text(text: str) -> None:
    check(text)


@given(st.text(max_size=20))
def test_any_string_and_any_name_survive(value: str) -> None:
    name = value.replace("`", "``") or "x"
    text = value.replace("\\", "\\\\").replace("'", "''")
    (plan,) = define(f"SELECT '{text}' AS `{name}` FROM tick", CATALOG)[1]
    assert plan.schema.names == (value or "x",)
    assert define(to_sql(plan), CATALOG)[1] == [plan]
