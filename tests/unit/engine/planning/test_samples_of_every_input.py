"""Whatever a query reads, its inputs are looked at, or the query says why they cannot be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product

import duckdb
import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError

ROWS = pa.table({"ts": [0, 1, 2, 3], "k": [1, 2, 1, 4]})
INPUTS = {
    "one row": "(SELECT 1 AS k)",
    "rows of constants": "(VALUES (1, 'x'), (2, 'y')) AS t (k, a)",
    "a series": "GENERATE_SERIES(1, 3) AS t (k)",
    "a relation": "r",
    "a stream": "g [RANGE 2]",
    "dead letters": "(SELECT COUNT(*) AS k FROM DEAD LETTERS OF g)",
    "a stream without end": "p [RANGE 2]",
    "a stream of the run": "(SELECT COUNT(*) AS k FROM headrace.epochs [NOW])",
}
SHAPES = (
    "SELECT k FROM {0} UNION SELECT k FROM {1}",
    "SELECT DISTINCT one.k FROM (SELECT k FROM {0}) AS one JOIN (SELECT k FROM {1}) AS two ON one.k = two.k",
    "SELECT MAX(one.k) AS k FROM (SELECT k FROM {0}) AS one, (SELECT k FROM {1}) AS two",
    "SELECT one.k FROM (SELECT k FROM {0}) AS one JOIN (SELECT k FROM {1}) AS two ON one.k = two.k "
    "JOIN (SELECT k FROM {0}) AS three ON three.k = one.k",
)
CONSTANT = ("one row", "rows of constants", "a series", "a relation")


@pytest.fixture(scope="module")
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as made:
        made.stream("g", ROWS, timestamp="ts")
        made.relation("r", ROWS)
        made.execute("CREATE STREAM p (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts")
        yield made


def refusal(db: hr.Database, text: str) -> str:
    """Why a statement is refused, empty if it is not; no other error is expected."""
    try:
        db.execute(text)
    except LanguageError as error:
        return error.message
    return ""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("command", ["EXPLAIN OPTIMIZED", "EXPLAIN COST"])
def test_every_pair_of_inputs(db: hr.Database, shape: str, command: str) -> None:
    texts = [shape.format(*(INPUTS[one] for one in pair)) for pair in product(INPUTS, repeat=2)]
    refusals = {refusal(db, f"{command} {text}") for text in texts} - {""}
    # Some pairs are timed by integers and by TIMESTAMPs.
    allowed = "meet here|looks at" if command == "EXPLAIN COST" else "meet here"
    assert [found for found in refusals if not re.search(allowed, found)] == []


@pytest.mark.parametrize("command", ["EXPLAIN COST", "EXPLAIN ANALYZE", "EXPLAIN PHYSICAL"])
@pytest.mark.parametrize("text", INPUTS.values(), ids=INPUTS)
def test_each_alone(db: hr.Database, text: str, command: str) -> None:
    found = refusal(db, f"{command} SELECT k FROM {text}")
    assert re.fullmatch("|.*never ends.*|.*dead letters of g come.*", found), found


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rows_of_constants_are_those_of_duckdb(shape: str) -> None:
    with hr.connect(runner="inline") as mine:
        mine.relation("r", ROWS)
        texts = [shape.format(*(INPUTS[one] for one in pair)) for pair in product(CONSTANT, repeat=2)]
        queries = [mine.query(text) for text in texts]
        mine.run()
        with duckdb.connect() as theirs:
            theirs.register("r", ROWS)
            for text, query in zip(texts, queries, strict=True):
                rows = theirs.execute(text).fetchall()
                assert Counter((row["k"],) for row in query.history().to_pylist()) == Counter(rows), text
