"""Queries beside DuckDB: at every instant the answer's content is DuckDB's answer over the windows' contents.

`{l}` and `{r}` in a query are windows for Headrace and, for DuckDB, tables with the rows that are in the
window at the instant.
"""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from headrace.elements import to_rows
from headrace.history import canonical
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.parsing.parser import parse
from headrace.language.statements.statements import Select
from headrace.optimizer import optimize
from headrace.reference.contents import Content, Stream, content_at
from headrace.reference.operators import evaluate
from headrace.runtime.intake.streams import BoundedStream
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import TimeDomain
from support import TableSource, run_plans

SCHEMA = Schema((Field("k", BIGINT), Field("v", BIGINT), Field("s", STRING), Field("ts", BIGINT)))
SIZE = 6
LAST = 20

JOINS = """
SELECT a.k, b.v FROM {l} a LEFT JOIN {r} b ON a.k = b.k
SELECT a.k, b.v FROM {l} a LEFT JOIN {r} b ON a.k = b.k AND a.v > 2
SELECT a.k, b.v FROM {l} a LEFT JOIN {r} b ON a.k = b.k AND b.v > 2 AND a.v < b.v
SELECT a.k, b.v FROM {l} a RIGHT JOIN {r} b ON a.k = b.k AND a.v > 2
SELECT a.k, b.v FROM {l} a FULL JOIN {r} b ON a.v < b.v
SELECT a.s, b.s FROM {l} a FULL OUTER JOIN {r} b ON a.k = b.k AND a.s = b.s
SELECT k, a.v, b.v AS w FROM {l} a FULL JOIN {r} b USING (k)
SELECT k, a.v FROM {l} a RIGHT JOIN {r} b USING (k)
SELECT a.k, b.v FROM {l} a LEFT JOIN {r} b USING (k, s)
SELECT k, b.v, c.s FROM {l} a FULL JOIN {r} b USING (k) LEFT JOIN {l} c USING (k)
SELECT k, v, a.s FROM (SELECT k, v, s FROM {l}) a NATURAL JOIN (SELECT k, v, s AS w FROM {r}) b
SELECT k, v, b.w FROM (SELECT k, v, s FROM {l}) a NATURAL LEFT JOIN (SELECT k, s AS w FROM {r}) b
SELECT k, v, b.w FROM (SELECT k, v, s FROM {l}) a NATURAL RIGHT JOIN (SELECT k, s AS w FROM {r}) b
SELECT k, v, s, b.w FROM (SELECT k, v, s FROM {l}) a NATURAL FULL OUTER JOIN (SELECT k, v AS w, s FROM {r}) b
SELECT * FROM (SELECT k, v FROM {l}) a NATURAL JOIN (SELECT k, s FROM {r}) b NATURAL LEFT JOIN {l} c
SELECT * FROM (SELECT k, v FROM {l}) a NATURAL FULL JOIN (SELECT s, k FROM {r}) b
SELECT a.k, b.v FROM {l} a LEFT JOIN {r} b ON a.k = b.k WHERE b.v IS NULL
SELECT a.k, b.v FROM {l} a LEFT JOIN {r} b ON a.k = b.k WHERE b.v > 1 AND a.v > 1
SELECT a.k, b.v, c.v AS w FROM {l} a LEFT JOIN {r} b ON a.k = b.k LEFT JOIN {l} c ON b.v = c.v
SELECT a.k, COUNT(b.v) AS n FROM {l} a LEFT JOIN {r} b ON a.k = b.k GROUP BY a.k
SELECT k, v FROM {l} a SEMI JOIN {r} b ON a.k = b.k
SELECT k, v FROM {l} a ANTI JOIN {r} b ON a.k = b.k
SELECT a.k, a.v FROM {l} a SEMI JOIN {r} b ON a.v < b.v
SELECT a.k, a.v FROM {l} a ANTI JOIN {r} b ON a.v < b.v AND a.k > 1
SELECT k, v FROM {l} a ANTI JOIN {r} b USING (k, v)
SELECT a.k FROM {l} a, {r} b WHERE a.k < b.k AND a.v + b.v > 3
SELECT k FROM {l} EXCEPT ALL SELECT k FROM {r}
SELECT k, s FROM {l} INTERSECT ALL SELECT k, s FROM {r}
SELECT k FROM {l} UNION SELECT v FROM {r} EXCEPT SELECT v FROM {l} INTERSECT SELECT k FROM {r}
"""


def rows(seed: int) -> list[tuple[object, ...]]:
    """Rows in order of time, with ties and NULLs."""
    chance = random.Random(seed)
    times = sorted(chance.randrange(LAST) for _ in range(14))

    def value() -> int | None:
        return None if chance.random() < 0.15 else chance.randrange(4)

    return [(value(), value(), chance.choice(("a", "b", None)), ts) for ts in times]


STREAMS = {"l": rows(1), "r": rows(2)}


def table(name: str, instant: int | None = None) -> pa.Table:
    """A stream's rows, or those in the window at an instant."""
    chosen = [row for row in STREAMS[name] if instant is None or instant - SIZE < int(str(row[3])) <= instant]
    columns = list(zip(*chosen, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA.arrow())


def answers_of_duckdb(query: str) -> dict[int, Content]:
    """DuckDB's answer at each instant."""
    found = {}
    with duckdb.connect() as db:
        db.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for instant in range(LAST + SIZE + 1):
            for name in STREAMS:
                db.register(name, table(name, instant))
            found[instant] = Counter(db.execute(query.format(l="l", r="r")).fetchall())
    return found


def check(query: str, theirs: str = "") -> None:
    catalog = Catalog()
    for name in STREAMS:
        catalog = catalog.define(StreamInfo(name, SCHEMA, "ts", TimeDomain.INTEGER))
    (statement,) = parse(query.format(l=f"l [RANGE {SIZE}]", r=f"r [RANGE {SIZE}]"))
    assert isinstance(statement, Select)
    plan = bind(statement.query, catalog)
    expected = answers_of_duckdb(theirs or query)
    streams = {}
    for name, content in STREAMS.items():
        elements = [(row, int(str(row[3])), int(str(row[3])) + 1, 1) for row in content]
        streams[name] = Stream(SCHEMA.names, elements)
    history = [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)]
    assert {instant: content_at(history, instant) for instant in expected} == expected
    sources = {name: BoundedStream(TableSource(table(name)), "ts") for name in STREAMS}
    reader = run_plans({"q": optimize(plan)}, sources, epoch_rows=5, buckets=2)["q"]
    found = to_rows(canonical(reader.elements()))
    assert {instant: content_at(found, instant) for instant in expected} == expected


@pytest.mark.parametrize("query", JOINS.strip().split("\n"))
def test_joins_and_set_operations(query: str) -> None:
    check(query)


NESTED = """
SELECT k, v FROM {l} WHERE v = (SELECT MAX(v) FROM {l})
SELECT k, v FROM {l} WHERE v IN (SELECT v FROM {r})
SELECT k, v FROM {l} WHERE v NOT IN (SELECT v FROM {r})
SELECT k, v FROM {l} WHERE v NOT IN (SELECT v FROM {r} WHERE v IS NOT NULL)
SELECT k, v FROM {l} a WHERE v NOT IN (SELECT v FROM {r} b WHERE b.k = a.k)
SELECT k, v FROM {l} a WHERE NOT (v NOT IN (SELECT v FROM {r} b WHERE b.s = a.s))
SELECT k, v FROM {l} a WHERE (k, v) IN (SELECT k, v FROM {r})
SELECT k, v FROM {l} a WHERE (k, v) NOT IN (SELECT k, v FROM {r})
SELECT k, v FROM {l} a WHERE EXISTS (SELECT * FROM {r} b WHERE a.k = b.k)
SELECT k, v FROM {l} a WHERE NOT EXISTS (SELECT 1 FROM {r} b WHERE a.k = b.k AND b.v > a.v)
SELECT k, v FROM {l} a WHERE EXISTS (SELECT 1 FROM {r} WHERE v > 2)
SELECT k, v FROM {l} a WHERE NOT EXISTS (SELECT 1 FROM {r} WHERE v > 2)
SELECT k, v FROM {l} WHERE v > ANY (SELECT v FROM {r})
SELECT k, v FROM {l} WHERE v <> ANY (SELECT v FROM {r} WHERE k > 0)
SELECT k, v FROM {l} WHERE v >= ALL (SELECT v FROM {r} WHERE v < 3)
SELECT k, v FROM {l} WHERE v >= ALL (SELECT v FROM {l} WHERE v IS NOT NULL)
SELECT k, v FROM {l} WHERE v <> ALL (SELECT v FROM {r})
SELECT k, v FROM {l} WHERE NOT v < ALL (SELECT v FROM {r})
SELECT k, v FROM {l} a WHERE v >= ALL (SELECT v FROM {r} b WHERE b.k = a.k)
SELECT k, v FROM {l} a WHERE v < ANY (SELECT v FROM {r} b WHERE b.k <> a.k)
SELECT k, v FROM {l} WHERE v IN (SELECT v FROM {r}) OR k = 1
SELECT k, v FROM {l} WHERE v NOT IN (SELECT v FROM {r}) OR k = 1
SELECT k, v FROM {l} WHERE (v IN (SELECT v FROM {r})) IS NULL
SELECT k, v FROM {l} a WHERE EXISTS (SELECT 1 FROM {r} b WHERE a.k = b.k) <> (a.v = 1)
SELECT k, v IN (SELECT v FROM {r}) AS m FROM {l}
SELECT k, v >= ALL (SELECT v FROM {r}) AS m, EXISTS (SELECT 1 FROM {r} WHERE k = 1) AS n FROM {l}
SELECT k, CASE WHEN v < ANY (SELECT v FROM {r}) THEN 'less' ELSE s END AS c FROM {l}
SELECT k, (SELECT MAX(v) FROM {r}) AS m FROM {l}
SELECT k, (SELECT COUNT(*) FROM {r}) AS m FROM {l}
SELECT k, (SELECT COUNT(*) FROM {r} b WHERE b.k = a.k) AS n FROM {l} a
SELECT k, (SELECT COUNT(*) + 10 FROM {r} b WHERE b.k = a.k AND b.v > 1) AS n FROM {l} a
SELECT k, (SELECT MAX(b.v) - a.v FROM {r} b WHERE b.k = a.k) AS n FROM {l} a
SELECT k, (SELECT 7 FROM {r} b WHERE b.k = a.k GROUP BY b.k) AS n FROM {l} a
SELECT k, (SELECT MIN(v) FROM {r} b WHERE a.k = b.k HAVING COUNT(*) > 1) AS n FROM {l} a
SELECT k, (SELECT m + 1 FROM (SELECT MAX(v) AS m FROM {r}) WHERE m > 1) AS n FROM {l} a
SELECT k, v FROM {l} a WHERE v > (SELECT AVG(v) FROM {r} b WHERE b.k = a.k)
SELECT k, v FROM {l} a WHERE (SELECT COUNT(*) FROM {r} b WHERE b.v = a.v) = 0
SELECT k, COUNT(*) AS n FROM {l} GROUP BY k HAVING COUNT(*) >= ALL (SELECT COUNT(*) FROM {l} GROUP BY k)
SELECT k, COUNT(*) AS n FROM {l} a GROUP BY k HAVING k IN (SELECT v FROM {r})
SELECT k, COUNT(*) + (SELECT COUNT(*) FROM {r} b WHERE b.k = a.k) AS n FROM {l} a GROUP BY k
SELECT k FROM {l} WHERE v = (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM {l} GROUP BY k))
WITH c AS (SELECT k, COUNT(*) AS n FROM {l} GROUP BY k) SELECT k FROM c WHERE n = (SELECT MAX(n) FROM c)
SELECT k, v FROM {l} WHERE v IN (SELECT v FROM {r} WHERE k IN (SELECT k FROM {l} WHERE v > 1))
SELECT k, v FROM {l} a WHERE v IN (SELECT v FROM {r} UNION SELECT k FROM {r})
SELECT k, v FROM {l} a WHERE v IN (WITH c AS (SELECT v FROM {r}) SELECT v + 1 FROM c)
SELECT k, v FROM {l} a WHERE a.v + 1 IN (SELECT b.v + a.k FROM {r} b WHERE b.s = a.s)
SELECT DISTINCT k FROM {l} a WHERE EXISTS (SELECT DISTINCT v FROM {r} b WHERE b.v = a.v)
SELECT k, v FROM {l} a WHERE v IN (SELECT MAX(v) FROM {r} b WHERE b.k = a.k GROUP BY s)
SELECT a.k, b.v FROM {l} a, {r} b WHERE a.k = b.k AND EXISTS (SELECT 1 FROM {l} c WHERE c.v = b.v + a.k)
SELECT k FROM {l} WHERE v IN (SELECT v FROM {r}) AND k NOT IN (SELECT v FROM {r} WHERE v > 1) AND v > 0
SELECT k FROM {l} a WHERE k IN (SELECT k FROM {r}) EXCEPT SELECT k FROM {r} WHERE v IN (SELECT k FROM {l})
SELECT k, v FROM {l} a WHERE (SELECT MAX(v) FROM {r}) IN (SELECT v FROM {r} b WHERE b.k = a.k)
SELECT k, v FROM {l} a WHERE EXISTS (SELECT 1 FROM {r} b WHERE b.k = a.k AND b.v IN (SELECT v FROM {l}))
"""


@pytest.mark.parametrize("query", NESTED.strip().split("\n"))
def test_nested_queries(query: str) -> None:
    check(query)


EVERYDAY = """
SELECT s, v FROM {l} QUALIFY ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, k, ts) <= 2
SELECT s, RANK() OVER (ORDER BY v, k) AS n FROM {l} WHERE v > 0 QUALIFY n < 3 AND k + n > 1
SELECT DISTINCT s FROM {l} QUALIFY RANK() OVER (ORDER BY v, k) <= 2 AND MAX(v) OVER (PARTITION BY s) > 2
SELECT s, SUM(v) AS t FROM {l} GROUP BY s QUALIFY RANK() OVER (ORDER BY SUM(v) DESC) = 1
SELECT * FROM (SELECT k, v FROM {l} a) QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) = 1
SELECT DISTINCT ON (s) s, k, v FROM {l} ORDER BY s, v DESC, k, ts
SELECT DISTINCT ON (k + 1, s) v FROM {l} ORDER BY s, k + 1, v, ts
SELECT DISTINCT ON (s) s, v, k, ts FROM {l} ORDER BY s DESC, v, k, ts LIMIT 2
SELECT s, SUM(v) AS t, SUM(SUM(v)) OVER () AS u, RANK() OVER (ORDER BY COUNT(*), s) AS r FROM {l} GROUP BY s
SELECT LOWER(s) AS k, MAX(COUNT(*)) OVER (PARTITION BY LOWER(s) = 'a') AS m FROM {l} GROUP BY LOWER(s)
SELECT k, v, COUNT(*) AS n, SUM(k) AS t FROM {l} GROUP BY ROLLUP (k, v) HAVING COUNT(*) > 0
SELECT k, s, GROUPING(s, k) AS g FROM {l} GROUP BY CUBE (k, s) HAVING COUNT(*) > 1 OR GROUPING(k) = 0
SELECT k, s, COUNT(*) AS n FROM {l} GROUP BY GROUPING SETS ((k, s), s, ()) HAVING COUNT(*) > 0
SELECT v, k + 1, s, COUNT(*) AS n FROM {l} GROUP BY v, ROLLUP ((k + 1, s))
SELECT s FROM {l} GROUP BY GROUPING SETS (s, ()) HAVING MAX(k) >= 0
SELECT COALESCE(s, 'all') AS x, k FROM {l} GROUP BY GROUPING SETS ((s, k), k) ORDER BY k, x LIMIT 3
SELECT DISTINCT k FROM {l} GROUP BY GROUPING SETS ((k, v), (k), (v))
SELECT * EXCLUDE (s, ts) FROM {l}
SELECT a.* EXCLUDE (ts) REPLACE (a.v * 2 AS v), b.k AS w FROM {l} a JOIN {r} b USING (k)
SELECT x, y FROM (SELECT k, v FROM {l}) t(x, y) WHERE x < y
WITH t(x, y) AS (SELECT k, v FROM {l}) SELECT y, MAX(x) AS x FROM t GROUP BY y
"""


@pytest.mark.parametrize("query", EVERYDAY.strip().split("\n"))
def test_what_is_rewritten(query: str) -> None:
    check(query)


TOP_K = """
SELECT k, v, s, ts FROM {l} ORDER BY k, v, s, ts LIMIT 3
SELECT k, v FROM {l} ORDER BY v DESC, k LIMIT 2
SELECT k, v FROM {l} ORDER BY 2 DESC NULLS LAST, 1 NULLS LAST LIMIT 2 OFFSET 1
SELECT s FROM {l} ORDER BY k + v NULLS LAST, k, s LIMIT 4
SELECT k, COUNT(*) AS n FROM {l} GROUP BY k ORDER BY n DESC, k LIMIT 2
SELECT k FROM {l} GROUP BY k ORDER BY SUM(v) DESC, k LIMIT 1
SELECT DISTINCT v FROM {l} ORDER BY v DESC LIMIT 2
SELECT k FROM {l} UNION ALL SELECT v FROM {r} ORDER BY k LIMIT 3
(SELECT k FROM {l} ORDER BY k LIMIT 2) UNION ALL (SELECT v FROM {r} ORDER BY v DESC LIMIT 1)
SELECT k FROM {l} WHERE v IN (SELECT v FROM {r} ORDER BY v DESC LIMIT 2)
SELECT k, (SELECT v FROM {r} ORDER BY v DESC LIMIT 1) AS m FROM {l}
SELECT k, v, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, k, ts) AS n FROM {l}
SELECT * FROM (SELECT s, v, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, k) n FROM {l}) t WHERE n < 3
SELECT s, v FROM (SELECT s, v, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v, k, ts) n FROM {l}) WHERE n = 2
SELECT n FROM (SELECT v, ROW_NUMBER() OVER (ORDER BY v, k, ts) n FROM {r}) t WHERE n > 1 AND 4 > n AND v > 0
SELECT k, RANK() OVER (PARTITION BY s ORDER BY v DESC) r, DENSE_RANK() OVER (ORDER BY v DESC) d FROM {l}
SELECT * FROM (SELECT s, v, RANK() OVER (PARTITION BY s ORDER BY v DESC) r FROM {l}) t WHERE r <= 2
SELECT * FROM (SELECT s, v, DENSE_RANK() OVER w r FROM {l} WINDOW w AS (ORDER BY v DESC)) t WHERE r = 2
SELECT k, FIRST_VALUE(v) OVER (PARTITION BY s ORDER BY k DESC, v DESC) AS f FROM {l}
"""


@pytest.mark.parametrize("query", TOP_K.strip().split("\n"))
def test_first_rows(query: str) -> None:
    check(query)


TIES = [
    (
        "SELECT k, v FROM {l} ORDER BY v DESC FETCH FIRST 2 ROWS WITH TIES",
        "SELECT k, v FROM {l} QUALIFY RANK() OVER (ORDER BY v DESC) <= 2",
    ),
    (
        "SELECT s FROM {l} ORDER BY k, v LIMIT 1 WITH TIES",
        "SELECT s FROM {l} QUALIFY RANK() OVER (ORDER BY k, v) <= 1",
    ),
    (
        "SELECT k, v FROM {l} a WHERE v IN (SELECT v FROM {r} b WHERE b.s = a.s "
        "ORDER BY k FETCH NEXT ROW WITH TIES)",
        "SELECT k, v FROM {l} a WHERE (s, v) IN (SELECT s, v FROM {r} "
        "QUALIFY RANK() OVER (PARTITION BY s ORDER BY k) = 1)",
    ),
    (
        "SELECT k, v, s FROM {l} ORDER BY v, k, s OFFSET 1 ROW FETCH NEXT 2 ROWS ONLY",
        "SELECT k, v, s FROM {l} ORDER BY v, k, s LIMIT 2 OFFSET 1",
    ),
]


@pytest.mark.parametrize(("query", "theirs"), TIES)
def test_ties_with_the_last_row(query: str, theirs: str) -> None:
    check(query, theirs)
