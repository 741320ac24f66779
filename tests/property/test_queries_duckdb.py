"""Nested queries over the content at an instant beside DuckDB, an engine of other people.

What a query over windows shows at an instant is what a relational engine answers about the rows that are in
the windows then. Queries are made at random: relations of two columns, k and v, over and in each other.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import pytest

from how_many import how_many, some
from property.beside_duckdb import LAST, STREAMS, Query, Window, compare

UNARY = (
    "SELECT k, v + 1 AS v FROM ({x}) x WHERE v > 1 OR k = 'b'",
    "SELECT DISTINCT k, v FROM ({x}) x",
    "SELECT k, CAST(SUM(v) AS BIGINT) AS v FROM ({x}) x GROUP BY k",
    "SELECT k, MAX(v) - MIN(v) AS v FROM ({x}) x GROUP BY k HAVING COUNT(*) > 1",
    "SELECT k, COUNT(*) AS v FROM ({x}) x WHERE v IS NOT NULL GROUP BY k",
    "SELECT MAX(k) AS k, COUNT(DISTINCT v) AS v FROM ({x}) x HAVING COUNT(*) > 0",
    "SELECT CASE WHEN v > 2 THEN 'a' ELSE k END AS k, MIN(v) AS v FROM ({x}) x GROUP BY 1",
)
BINARY = (
    "SELECT x.k, y.v FROM ({x}) x JOIN ({y}) y ON x.k = y.k AND x.v <= y.v",
    "SELECT x.k, y.v FROM ({x}) x LEFT JOIN ({y}) y ON x.v = y.v",
    "SELECT y.k, x.v FROM ({x}) x LEFT JOIN ({y}) y ON x.k = y.k AND x.v < y.v",
    "SELECT y.k, x.v FROM ({x}) x RIGHT JOIN ({y}) y ON x.k = y.k AND y.v > 1",
    "SELECT x.k, y.v FROM ({x}) x FULL JOIN ({y}) y ON x.v = y.v",
    "SELECT k, v FROM ({x}) x WHERE v IN (SELECT v FROM ({y}) y)",
    "SELECT k, v FROM ({x}) x WHERE v NOT IN (SELECT v FROM ({y}) y)",
    "SELECT k, v FROM ({x}) x WHERE v NOT IN (SELECT v FROM ({y}) y WHERE y.k = x.k)",
    "SELECT k, v FROM ({x}) x WHERE EXISTS (SELECT * FROM ({y}) y WHERE y.k = x.k AND y.v > x.v)",
    "SELECT k, v FROM ({x}) x WHERE NOT EXISTS (SELECT * FROM ({y}) y WHERE y.k = x.k)",
    "SELECT k, v FROM ({x}) x WHERE NOT EXISTS (SELECT * FROM ({y}) y WHERE y.v > x.v) OR k = 'a'",
    "SELECT k, v FROM ({x}) x WHERE v > ALL (SELECT v FROM ({y}) y WHERE y.k = x.k)",
    "SELECT k, v FROM ({x}) x WHERE v < ANY (SELECT v FROM ({y}) y)",
    "SELECT k, v FROM ({x}) x WHERE v >= (SELECT MAX(v) FROM ({y}) y)",
    "SELECT k, (SELECT MIN(v) FROM ({y}) y WHERE y.k = x.k) AS v FROM ({x}) x",
    "({x}) UNION ({y})",
    "({x}) UNION ALL ({y})",
    "({x}) EXCEPT ({y})",
    "({x}) EXCEPT ALL ({y})",
    "({x}) INTERSECT ({y})",
    "({x}) INTERSECT ALL ({y})",
)


def relation(chance: random.Random, windows: list[Window], depth: int) -> str:
    """Text of a query with the columns k and v; adds the windows it reads."""
    if depth == 0:
        slide = chance.choice((1, 1, 1, 4, 5))
        windows.append(Window(chance.choice(STREAMS), chance.choice((3, 5, 8, 20)), slide))
        return f"{{{len(windows) - 1}}}"
    text = chance.choice((*UNARY, *BINARY))
    inner = {"x": relation(chance, windows, depth - 1)}
    if "{y}" in text:
        inner["y"] = relation(chance, windows, chance.randrange(depth))
    return text.format(**inner)


def made(text: str | None, seed: int) -> Query:
    """A query made of a text, or of any, over relations that are made at random."""
    chance, windows = random.Random(seed), list[Window]()
    if text is None:
        return Query(relation(chance, windows, 3), tuple(windows))
    inner = {
        name: relation(chance, windows, chance.choice((0, 0, 1))) for name in "xy" if f"{{{name}}}" in text
    }
    return Query(text.format(**inner), tuple(windows))


@pytest.mark.parametrize("text", [*UNARY, *BINARY])
def test_each_kind_of_query_answers_as_duckdb(text: str) -> None:
    for seed in range(how_many(1, 3)):
        compare(made(text, seed), seed)


@pytest.mark.parametrize("seed", range(how_many(15, 40)))
def test_nested_queries_answer_as_duckdb(seed: int) -> None:
    compare(made(None, seed), seed)


COUNTS = (
    "SELECT COUNT(*) FROM ({0}) x JOIN ({1}) y ON x.k = y.k AND x.v = y.v",
    "SELECT COUNT(v) FROM ({0}) x WHERE v > 3",
    "SELECT COUNT(*) FROM ({0}) x WHERE v IS NULL AND k IS NULL",
)
OTHERS = (
    "SELECT COUNT(*) FROM ({1}) y",
    "SELECT SUM(v) FROM ({0}) y",
    "SELECT MAX(v) FROM ({1}) y WHERE k = 'a'",
)


@dataclass(frozen=True)
class Quotient(Query):
    """A count by another value: a row while one of them has one, but where it fails since that value is 0."""

    count: str
    other: str

    def theirs(self, instant: int) -> str:
        windows = [window.theirs(instant) for window in self.windows]
        count, other = (text.format(*windows) for text in (self.count, self.other))
        rows = (re.sub("SELECT .*? FROM", "SELECT COUNT(*) FROM", text, count=1) for text in (count, other))
        some = " OR ".join(f"({text}) > 0" for text in rows)
        return f"SELECT ({count}) * 1.0 / ({other}) WHERE ({some}) AND ({other}) IS DISTINCT FROM 0"


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("count", some(COUNTS))
def test_a_first_operand_that_counts_is_0_while_another_has_a_row(count: str, other: str) -> None:
    """Babu and Widom's second query among them: the fraction is 0 before the first common packet."""
    for seed in range(3):
        chance = random.Random(seed)
        windows = tuple(Window(name, chance.choice((3, 5, 20)), chance.choice((1, 4))) for name in "ab")
        query = Quotient(f"({count}) / ({other})", windows, count, other)
        compare(query, seed, tuple(range(LAST + 6)))
