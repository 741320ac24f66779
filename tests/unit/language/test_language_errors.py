"""Every error of the language: its message, its place in the text and its hint.

The cases are in errors.txt, and in slips.txt those that lack a word of the documentation's examples, or have
two of them the wrong way round: a text, indented below it the column and the message, and perhaps a hint.
Where the hint proposes what to write, `run` is the text with that in it, and it runs.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from auctions import CATALOG, define, error_of, plan_of
from headrace.language.catalog import Catalog, StreamInfo
from headrace.optimizer import optimize
from headrace.schema import BIGINT, DOUBLE, STRING, TIMESTAMP

_RUN = "  run: "
_DOCS, _ = define(
    """
    CREATE STREAM bid (ts TIMESTAMP, auction BIGINT, item STRING, bidder STRING, price BIGINT)
        FROM csv OPTIONS (path 'bids.csv') TIMESTAMP BY ts;
    CREATE STREAM sold (ts TIMESTAMP, item STRING) FROM csv OPTIONS (path 'sold.csv') TIMESTAMP BY ts;
    CREATE STREAM transfer (ts BIGINT, source STRING, target STRING, amount BIGINT)
        FROM csv OPTIONS (path 'transfers.csv') TIMESTAMP BY ts;
    CREATE STREAM person (ts TIMESTAMP, id BIGINT) FROM csv OPTIONS (path 'people.csv') TIMESTAMP BY ts;
    """,
    Catalog(),
)
"""The streams of the documentation's examples."""
CASES = [
    pytest.param(case, catalog, id=case.split("\n")[0])
    for name, catalog in (("errors.txt", CATALOG), ("slips.txt", _DOCS))
    for case in Path(__file__).with_name(name).read_text().strip().split("\n\n")
]
PROPOSALS = [case for case in CASES if _RUN in str(case.values[0])]


@pytest.mark.parametrize(("case", "catalog"), CASES)
def test_error(case: str, catalog: Catalog) -> None:
    text, *expected = case.split("\n")
    message, line, column, hint = error_of(text, catalog)
    found = [f"  {column}: {message}"] + ([f"  hint: {hint}"] if hint else [])
    assert (line, found) == (1, [part for part in expected if not part.startswith(_RUN)])


@pytest.mark.parametrize(("case", "catalog"), PROPOSALS)
def test_what_a_hint_proposes_runs(case: str, catalog: Catalog) -> None:
    *_, hint, last = case.split("\n")
    better = last.removeprefix(_RUN)
    assert _proposed(hint) in better
    times = [dt.datetime(2024, 5, 1, 9, minute, tzinfo=dt.UTC) for minute in (0, 5)]
    values = {BIGINT: [1, 2], DOUBLE: [1.5, 2.5], STRING: ["2024-01-01", "b"], TIMESTAMP: times}
    with hr.connect(runner="inline") as db:
        for entry in catalog.entries.values():
            assert isinstance(entry, StreamInfo)
            arrays = [pa.array(values.get(field.type, [1, 2]), field.type) for field in entry.schema]
            db.stream(entry.name, pa.table(arrays, names=list(entry.schema.names)), entry.timestamp)
        db.execute(better)
        assert not db.run().failed


_STARTS = r"did you mean|in FROM:|backticks:|comes first:|write"
_ENDS = r"\?| \.\.\.|$|;|, (?=or|in|an|where|whose|since|which)| with | after | for | to | between | alone"
_IN_WORDS = {
    "'text', or `name`": "`itemID`",
    "HOP": "HOP(",
    "POWER(x, y)": "POWER(",
    "x * POWER(2, n)": "* POWER(2, ",
    "x % 2": "% 2",
    "x BETWEEN": "BETWEEN 1 AND 5",
    "COALESCE(x, y)": "COALESCE(",
    "CONTAINS(x, 'a')": "CONTAINS(",
    "WINDOW(RANGE 10 MINUTES), ": "WINDOW(RANGE 10 MINUTES",
}
_PROPOSE_NOTHING = ("a comment", "leave ", "it closes", "a comma ", "a condition ")
"""What some hints say in general, and what was written in the text that runs."""


def _proposed(hint: str) -> str:
    """What a hint says should be written; empty where it says what should not."""
    if hint.removeprefix("  hint: ").startswith(_PROPOSE_NOTHING):
        return ""
    found = re.search(rf"(?:{_STARTS}) (.*?)(?:{_ENDS})", hint)
    assert found is not None
    general = (written for words, written in _IN_WORDS.items() if hint[found.start(1) :].startswith(words))
    return next(general, found[1])


def test_words_of_other_systems_may_be_names() -> None:
    plan = plan_of("SELECT kind AS regexp, id AS extract, id AS mode FROM tick -- # // ? $1 ~ “ ”")
    assert plan.schema.names == ("regexp", "extract", "mode")


def test_positions_count_lines() -> None:
    text = "-- first\nSELECT itemID\n  FROM Bid\n WHERE  missing = 'a\n b'"
    message, line, column, _ = error_of(text)
    assert (message, line, column) == ("there is no column missing", 4, 9)
    message, line, column, _ = error_of("SELECT 'a\nb', nothing FROM Bid")
    assert (message, line, column) == ("there is no column nothing", 2, 5)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 400 + "1" + ")" * 400 + " FROM Bid",
        "SELECT * FROM Bid WHERE " + " OR ".join(["itemID = 1"] * 400),
        "SELECT " + "NOT " * 5000 + "TRUE FROM Bid",
        "SELECT * FROM " + "(SELECT * FROM " * 600 + "Bid" + ")" * 600,
    ],
    ids=["parentheses", "or", "not", "queries"],
)
def test_deep_nesting_is_refused_and_not_a_crash(text: str) -> None:
    message, *_ = error_of(text)
    assert "nested too deeply" in message


def test_subqueries_in_each_other_are_refused_before_they_take_minutes() -> None:
    def tower(height: int) -> str:
        text = "1"
        for floor in range(height, 0, -1):
            text = (
                f"(SELECT MAX(x{floor}.id) FROM tick x{floor} WHERE x{floor}.id < x{floor - 1}.id + {text})"
            )
        return f"SELECT x0.id FROM tick x0 WHERE x0.id > {text}"

    plan_of(tower(10))
    message, *_ = error_of(tower(11))
    assert message == "subqueries are nested more than 10 levels deep"


def test_a_hundred_alternatives_are_no_problem() -> None:
    plan_of("SELECT * FROM Bid WHERE " + " OR ".join(f"itemID = {number}" for number in range(100)))


def test_a_tower_of_derived_streams_is_refused_before_it_is_too_high_to_be_optimized() -> None:
    floors = [
        f"CREATE STREAM v{n} AS SELECT id + 1 AS id FROM v{n - 1} WHERE id > {n}" for n in range(1, 120)
    ]
    tower = "CREATE STREAM v0 AS SELECT id FROM tick; " + "; ".join(floors)
    message, *_, hint = error_of(tower)
    assert message == "the plan of the query is more than 200 operators deep"
    assert hint is not None
    optimize(plan_of("; ".join(tower.split("; ")[:99]) + "; SELECT * FROM v98"))
