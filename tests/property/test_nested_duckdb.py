"""Subqueries in subqueries beside DuckDB: what they ask, how they are tied, and to the rows how far around.

Queries are made at random over windows with the columns k (a text) and v (a number), both of which may be
NULL. A query names the windows x, y, z from the outside in; conditions in it read any of those around it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from auctions import define
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.printer import to_sql
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import TimeDomain
from how_many import how_many
from property.beside_duckdb import STREAMS, Query, Window, compare

NAMES = "xyzw"
COMPARISONS = ("=", "=", "<", "<=", ">", ">=", "<>")
VALUES = (
    "MAX({v})",
    "MIN({v})",
    "COUNT(*)",
    "COUNT({v})",
    "COUNT(DISTINCT {v})",
    "SUM({v})",
    "AVG({v})",
    "COUNT(*) + 1",
    "MAX({v}) - MIN({v})",
    "SUM({v} + {around})",
    "MAX({v}) FILTER (WHERE {v} < {around})",
    "COALESCE(MIN({v}), 2)",
    "COUNT(*) - {around}",
)


SHAPES = """
SELECT x.k, y.v FROM {x} JOIN {y} ON x.k = y.k AND x.v IN (SELECT z.v FROM {z});
SELECT x.k, y.v FROM {x} JOIN {y} ON x.v < y.v AND y.v > (SELECT AVG(z.v) FROM {z} WHERE z.k > x.k);
SELECT x.k, y.v FROM {x} JOIN {y} ON NOT EXISTS (SELECT 1 FROM {z} WHERE z.v BETWEEN x.v AND y.v);
SELECT x.k, y.v FROM {x} LEFT JOIN {y} ON x.k = y.k AND y.v IN (SELECT z.v FROM {z});
SELECT x.k, y.v FROM {x} LEFT JOIN {y} ON x.v = y.v AND x.k NOT IN (SELECT z.k FROM {z});
SELECT x.k, y.v FROM {x} RIGHT JOIN {y} ON x.k = y.k AND x.v > (SELECT MIN(z.v) FROM {z});
SELECT x.k, y.v FROM {x} FULL JOIN {y} ON x.v = y.v AND x.k IN (SELECT z.k FROM {z});
SELECT x.k, y.v FROM {x} RIGHT JOIN {y} ON x.k = y.k AND y.v IN (SELECT z.v FROM {z});
SELECT x.k, y.v FROM {x} FULL JOIN {y} ON x.v = y.v AND y.k NOT IN (SELECT z.k FROM {z} WHERE z.v > y.v);
SELECT x.k, y.v FROM {x} LEFT JOIN {y} ON x.v = y.v AND x.v + y.v > ALL (SELECT z.v FROM {z} WHERE z.k = x.k);
SELECT k, v FROM {x} SEMI JOIN {y} ON x.k = y.k AND y.v <> ALL (SELECT z.v FROM {z});
SELECT k, v FROM {x} ANTI JOIN {y} ON x.k = y.k AND y.v IN (SELECT z.v FROM {z});
SELECT x.v IN (SELECT y.v FROM {y}) AS k, COUNT(*) AS v FROM {x} GROUP BY 1;
SELECT (SELECT MAX(y.v) FROM {y} WHERE y.v < x.v) AS m, COUNT(*) AS n FROM {x} GROUP BY m;
SELECT x.k, SUM((SELECT COUNT(*) FROM {y} WHERE y.v < x.v)) AS v FROM {x} GROUP BY x.k;
SELECT x.k, COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM {y} WHERE y.k = x.k)) AS v FROM {x} GROUP BY x.k;
SELECT x.k, MAX(CASE WHEN x.v IN (SELECT y.v FROM {y}) THEN 1 ELSE x.v END) AS v FROM {x} GROUP BY x.k;
SELECT x.k, MAX(x.v) AS v FROM {x} GROUP BY x.k HAVING MAX(x.v) > (SELECT AVG(y.v) FROM {y} WHERE y.k < x.k);
SELECT x.k, SUM(x.v) AS v FROM {x} GROUP BY x.k HAVING COUNT(*) > (SELECT COUNT(*) FROM {y} WHERE y.k > x.k);
SELECT x.k, (SELECT COUNT(*) FROM {y} WHERE y.k < x.k) + MIN(x.v) AS v FROM {x} GROUP BY x.k;
SELECT x.k, x.v FROM {x} WHERE x.v IN (SELECT y.v FROM {y} WHERE y.k < x.k UNION SELECT z.v FROM {z});
SELECT x.k, x.v FROM {x} WHERE x.v IN (SELECT v FROM {y} EXCEPT SELECT v FROM {z} WHERE z.k <> x.k);
SELECT x.k, x.v FROM {x} WHERE x.v >= ALL (SELECT MAX(y.v) FROM {y} WHERE y.v < x.v GROUP BY y.k);
SELECT x.k, x.v FROM {x} WHERE x.v = (SELECT MAX(y.v) FROM {y} WHERE y.k = x.k AND y.v <= x.v GROUP BY y.k);
SELECT x.k, x.v FROM {x} WHERE EXISTS (SELECT y.k FROM {y} WHERE y.v > x.v GROUP BY y.k HAVING COUNT(*) > 1);
SELECT x.k, x.v FROM {x} WHERE EXISTS (SELECT 1 FROM {y} WHERE y.k = x.k ORDER BY y.v LIMIT 1) OR x.v = 3;
SELECT x.k, x.v FROM {x} WHERE NOT EXISTS (SELECT 1 FROM {y} WHERE y.v < x.v ORDER BY y.v LIMIT 2 OFFSET 1);
SELECT x.k, x.n FROM (SELECT k, NULL AS n FROM {x}) x
 WHERE (SELECT COUNT(*) FROM {y} WHERE x.n IS NULL AND y.k > x.k) > 1;
SELECT x.k, x.v FROM {x} WHERE x.v IN (SELECT DISTINCT y.v + x.v FROM {y} WHERE y.k <= x.k);
SELECT x.k, x.v FROM {x}
  WHERE x.v < (SELECT SUM(m.v) FROM (SELECT v FROM {y}) m JOIN {z} USING (v) WHERE z.k >= x.k);
SELECT x.k, x.v FROM {x} WHERE EXISTS (SELECT 1 FROM {y} WHERE y.v > x.v AND x.v IN (SELECT z.v FROM {z}));
SELECT x.k, x.v FROM {x}
  WHERE x.k NOT IN (SELECT y.k FROM {y} WHERE x.v < ANY (SELECT z.v FROM {z} WHERE z.k = y.k));
SELECT x.k, x.v FROM {x} WHERE EXISTS (SELECT 1 FROM {y} WHERE y.v = 1 OR x.v NOT IN (SELECT z.v FROM {z}));
SELECT x.k, x.v FROM {x}
  WHERE (x.v = 1) = ANY (SELECT x.v IN (SELECT z.v FROM {z}) FROM {y} WHERE y.k <> x.k);
SELECT x.k, (SELECT MAX(y.v) FROM {y} WHERE y.k = x.k HAVING x.v IN (SELECT z.v FROM {z})) AS v FROM {x}
"""
"""What stands elsewhere than in WHERE, and queries that are more than FROM and WHERE."""


@dataclass
class Making:
    """A query that is being made.

    Attributes:
        chance: what it is made by.
        windows: those that it reads, in the order of their numbers.
    """

    chance: random.Random
    windows: list[Window] = field(default_factory=list)

    def table(self) -> str:
        """A window in FROM."""
        slide = self.chance.choice((1, 1, 1, 4))
        self.windows.append(Window(self.chance.choice(STREAMS), self.chance.choice((3, 5, 8)), slide))
        return f"({{{len(self.windows) - 1}}}) {{name}}"

    def rows(self, around: int, below: int) -> str:
        """FROM and WHERE of the query with so many others around it, and room for so many in it."""
        name = NAMES[around]
        table = self.table().replace("{name}", name)
        ways = self.chance.choice((0, 1, 1, 1, 2, 2))
        ties = " AND ".join(self.tie(around) for _ in range(ways if around else 0))
        parts = [ties] if ties else []
        if below or self.chance.random() < 0.2:
            parts.append(self.condition(around, below))
        return f"FROM {table}" + (f" WHERE {' AND '.join(parts)}" if parts else "")

    def tie(self, around: int) -> str:
        """A condition between the row of a query and one around it."""
        own, other = NAMES[around], NAMES[self.chance.randrange(around)]
        column = self.chance.choice("kv")
        operator = self.chance.choice((*COMPARISONS, "=", "=", "IS NOT DISTINCT FROM"))
        moved = " + 1" if column == "v" and self.chance.random() < 0.2 else ""
        return f"{own}.{column} {operator} {other}.{column}{moved}"

    def number(self, around: int) -> str:
        """A number of the query's row or of one around it."""
        return f"{NAMES[self.chance.randrange(around + 1)]}.v"

    def condition(self, around: int, below: int) -> str:
        """A condition in the query with so many others around it."""
        draw = self.chance.random()
        if draw < 0.25:
            word = self.chance.choice(("AND", "OR", "OR"))
            return f"({self.condition(around, below)} {word} {self.condition(around, min(below, 1))})"
        if draw < 0.35:
            return f"NOT ({self.condition(around, below)})"
        if below == 0 or draw < 0.45:
            return self.chance.choice(
                (
                    f"{self.number(around)} {self.chance.choice(COMPARISONS)} {self.chance.randrange(4)}",
                    f"{NAMES[around]}.k = 'a'",
                    f"{self.number(around)} IS NOT NULL",
                )
            )
        return self.question(around, below)

    def question(self, around: int, below: int) -> str:
        """A condition about a subquery."""
        rows, inner = self.rows(around + 1, below - 1), NAMES[around + 1]
        name, operator, no = NAMES[around], self.chance.choice(COMPARISONS), self.chance.choice(("", "NOT "))
        column = self.chance.choice("kv")
        first = self.first_rows(around + 1, column)
        match self.chance.randrange(8):
            case 0:
                return f"{no}EXISTS (SELECT * {rows})"
            case 1 | 2:
                return f"{name}.{column} {no}IN (SELECT {inner}.{column} {rows}{first})"
            case 3 | 4:
                return f"{name}.{column} {operator} ANY (SELECT {inner}.{column} {rows})"
            case 5:
                return f"{name}.{column} {operator} ALL (SELECT {inner}.{column} {rows}{first})"
            case _:
                return f"{self.number(around)} {operator} {self.value(around, below)}"

    def first_rows(self, around: int, column: str) -> str:
        """Sometimes a LIMIT; rows that are alike in the column are alike in all that is listed."""
        if self.chance.random() < 0.75:
            return ""
        order = self.chance.choice(("DESC NULLS LAST", "NULLS FIRST", "ASC NULLS LAST"))
        return f" ORDER BY {NAMES[around]}.{column} {order} LIMIT {self.chance.randrange(1, 3)}"

    def value(self, around: int, below: int) -> str:
        """A subquery that stands for its value."""
        rows, inner = self.rows(around + 1, below - 1), NAMES[around + 1]
        # DuckDB 2.0 forgets of a LIMIT that reads nothing around it that NULL is not in no rows.
        tied = any(f" {name}." in rows for name in NAMES[: around + 1])
        if tied and self.chance.random() < 0.25:
            return f"(SELECT {inner}.v {rows} ORDER BY {inner}.v DESC NULLS LAST LIMIT 1)"
        value = self.chance.choice(VALUES).format(v=f"{inner}.v", around=f"{self.number(around)}")
        having = " HAVING COUNT(*) > 1" if self.chance.random() < 0.15 else ""
        return f"(SELECT {value} {rows}{having})"

    def query(self) -> Query:
        """A query with two levels of others in it, mostly, at most with three."""
        below = self.chance.choice((1, 1, 1, 2, 2, 2, 2, 3))
        if self.chance.random() < 0.2:
            value = self.value(0, below)
            text = f"SELECT x.k, {value} AS v FROM {self.table().replace('{name}', 'x')}"
        else:
            text = (
                f"SELECT x.k, x.v FROM {self.table().replace('{name}', 'x')} WHERE {self.question(0, below)}"
            )
        return Query(text, tuple(self.windows))


@pytest.mark.runs
@pytest.mark.parametrize("seed", range(how_many(40, 300)))
def test_nested_queries_answer_as_duckdb(seed: int) -> None:
    compare(Making(random.Random(seed)).query(), seed, (3, 9, 18, 33))


@pytest.mark.parametrize("text", SHAPES.strip().split(";\n"))
def test_subqueries_anywhere_answer_as_duckdb(text: str) -> None:
    for seed in range(3):
        chance = random.Random(seed)
        windows = (Window(stream, chance.choice((3, 5, 8)), chance.choice((1, 4))) for stream in "abb")
        places = {name: f"({{{place}}}) {name}" for place, name in enumerate("xyz")}
        compare(Query(text.format(**places), tuple(windows)), seed, (3, 9, 18, 33))


@pytest.mark.parametrize("seed", range(how_many(30, 100)))
def test_nested_queries_are_printed_as_what_they_mean(seed: int) -> None:
    fields = (Field("k", STRING), Field("v", BIGINT), Field("ts", BIGINT))
    catalog = Catalog()
    for name in STREAMS:
        catalog = catalog.define(StreamInfo(name, Schema(fields), "ts", TimeDomain.INTEGER))
    plan = define(Making(random.Random(seed)).query().ours(), catalog)[1][0]
    assert define(to_sql(plan), catalog)[1][0] == plan
