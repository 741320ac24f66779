"""ARRAYs wherever a query may have them: each place agrees with the reference, or says why it refuses."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from auctions import define, error_of
from headrace.elements import from_rows, to_rows
from headrace.history import canonical, equivalent
from headrace.language.catalog import Catalog
from headrace.optimizer import optimize
from headrace.reference.contents import Element, Stream
from headrace.reference.operators import evaluate
from headrace.runtime.intake.streams import BoundedStream
from headrace.schema import BIGINT, DOUBLE, STRING, Field, Schema, sql_type
from support import TableSource, run_plans

VALUES: dict[pa.DataType, tuple[object, ...]] = {
    STRING: ("", "a", "ab", "é", None),
    DOUBLE: (1.5, -0.0, 0.0, math.nan, -math.inf, None),
    pa.decimal128(7, 2): (Decimal("1.50"), Decimal("-2.00"), Decimal("0.00"), None),
}
"""What the ARRAYs are made of; a NULL leaves some of them empty."""

STREAMS = """
CREATE STREAM s (k BIGINT, v {type}, at BIGINT) FROM csv OPTIONS (path 'x') TIMESTAMP BY at;
CREATE STREAM r AS SELECT k, CASE WHEN k > 1 THEN a END AS a
  FROM (SELECT k, ARRAY_AGG(v) AS a FROM s [RANGE 4] GROUP BY k);
CREATE STREAM i AS ISTREAM(SELECT k, a FROM r);
"""
"""A relation and a stream of ARRAYs, some of them NULL."""

ANSWERED = """
SELECT * FROM r SAMPLE(50)
SELECT * FROM i SAMPLE(70) [RANGE 3]
SELECT DISTINCT a FROM r
SELECT a, COUNT(*) AS n, ARRAY_AGG(k) AS ks FROM r GROUP BY a
SELECT COUNT(*) AS n FROM r GROUP BY COALESCE(a, a) HAVING MAX(a) IS NOT NULL
SELECT COUNT(a) AS n, COUNT(DISTINCT a) AS m, COUNT(DISTINCT a, k) AS o FROM r
SELECT MIN(a) AS l, MAX(a) AS h, MIN(DISTINCT a) AS d FROM r
SELECT FIRST(a ORDER BY k) AS f, LAST(k ORDER BY a, k) FILTER (WHERE a IS NOT NULL) AS l FROM r
SELECT ARRAY_AGG(a) AS u, ARRAY_AGG(DISTINCT a) AS d, ARRAY_AGG(a ORDER BY k DESC, a) AS o FROM r
SELECT ARRAY_AGG(b) AS c FROM (SELECT k, ARRAY_AGG(a) AS b FROM r GROUP BY k)
SELECT ARRAY_AGG(k ORDER BY a, k) AS u, ARRAY_AGG(k ORDER BY a DESC NULLS FIRST) AS d FROM r
SELECT a, k FROM r ORDER BY a LIMIT 2
SELECT a, k FROM r ORDER BY a DESC NULLS LAST, k LIMIT 2 OFFSET 1
SELECT a, k FROM r ORDER BY k % 2 LIMIT 2
SELECT DISTINCT a, k FROM r LIMIT 2
SELECT a, k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY k) AS n FROM r
SELECT a, k, RANK() OVER (ORDER BY a) AS n, DENSE_RANK() OVER (ORDER BY a DESC) AS d FROM r
SELECT k, FIRST_VALUE(a) OVER (ORDER BY k) AS f, FIRST_VALUE(k) OVER (ORDER BY a) AS g FROM r
SELECT k, MAX(a) OVER (PARTITION BY k) AS m FROM r
SELECT x.k, x.a, y.a AS b FROM r x FULL JOIN r y ON x.k = y.k + 1
SELECT x.k, x.a FROM r x SEMI JOIN r y ON x.k = y.k + 1 AND y.a IS NOT NULL
SELECT k, a, (SELECT COUNT(*) FROM r y WHERE y.k < x.k) AS n, (SELECT MAX(a) FROM r) AS m FROM r x
SELECT k, a FROM r x WHERE EXISTS (SELECT * FROM r y WHERE y.k = x.k + 1 AND y.a IS NOT NULL)
SELECT a FROM r UNION SELECT IF(k > 2, a, NULL) FROM r
SELECT a FROM r UNION ALL SELECT NULL FROM r
SELECT a FROM r EXCEPT ALL SELECT IF(k > 2, a, NULL) FROM r
SELECT a FROM r INTERSECT SELECT ARRAY_AGG(v) FROM s [RANGE 4] GROUP BY k
SELECT * FROM i [PARTITION BY a ROWS 1]
SELECT * FROM i [ROWS 2 SLIDE 2]
SELECT * FROM HOP(i, 2, 4)
SELECT window_end, a, COUNT(*) AS n FROM TUMBLE(i, 3) GROUP BY window_end, a
SELECT k, MAX(a) OVER (PARTITION BY k ROWS 2 PRECEDING) AS n, LAG(a) OVER (PARTITION BY k) AS b FROM i
SELECT k, COUNT(DISTINCT a) OVER (ROWS 3 PRECEDING) AS n, ROW_NUMBER() OVER (PARTITION BY a) AS m FROM i
SELECT MAX(a) OVER (PARTITION BY a RANGE 3 PRECEDING), SUM(k) OVER (PARTITION BY a RANGE 2 PRECEDING) FROM i
ISTREAM(SELECT a FROM r)
DSTREAM(SELECT a FROM r)
"""

COMPARED = """
SELECT NULLIF(a, LAG(a) OVER (PARTITION BY k)) AS b, k FROM i
SELECT x.k, GREATEST(x.a, y.a) AS a, LEAST(x.a, y.a) AS b FROM r x, r y
SELECT x.k, x.a IS NOT DISTINCT FROM y.a AS same FROM r x, r y
SELECT x.k, CASE x.a WHEN y.a THEN 1 END AS same FROM r x, r y
SELECT x.k, x.a IN (y.a, x.a) AS here, x.a BETWEEN y.a AND x.a AS above FROM r x, r y
SELECT x.k FROM r x JOIN r y ON x.a = y.a
SELECT x.k FROM r x JOIN r y USING (a)
SELECT k FROM r x NATURAL JOIN r y
SELECT k FROM r x SEMI JOIN r y ON x.a < y.a
SELECT x.k, y.k AS j FROM r x FULL JOIN r y ON (x.a, 1) = (y.a, y.k)
SELECT k FROM r WHERE a NOT IN (SELECT a FROM r WHERE k > 2 AND a IS NOT NULL)
SELECT k FROM r WHERE a = ANY (SELECT a FROM r)
SELECT k FROM r x WHERE EXISTS (SELECT * FROM r y WHERE y.a = x.a)
SELECT k, (SELECT MAX(COALESCE(x.a, y.a)) FROM r y) FROM r x
SELECT k, SUM(k) OVER (PARTITION BY a) FROM r
SELECT k, FIRST_VALUE(k) OVER (PARTITION BY a ORDER BY k) FROM r
"""

MAPS = """
SELECT m = m FROM (SELECT MAP(k, 1) AS m FROM s)
SELECT m IN (m, m) FROM (SELECT MAP(k, 1) AS m FROM s)
SELECT GREATEST(m, m) FROM (SELECT ARRAY(MAP(k, 1)) AS m FROM s)
SELECT (m, 1) < (m, 2) FROM (SELECT MAP(k, 1) AS m FROM s)
"""

REFUSED = """
SELECT SUM(a) FROM r: SUM takes numbers, not ARRAY<BIGINT>
SELECT BOOL_AND(a) FROM r: BOOL_AND takes a condition, not ARRAY<BIGINT>
SELECT a + 1 FROM r: + takes numbers, not ARRAY<BIGINT>
SELECT LENGTH(a) FROM r: LENGTH takes a STRING, not ARRAY<BIGINT>
SELECT a || 'x' FROM r: an ARRAY<BIGINT> cannot be cast to STRING
SELECT a FROM r UNION ALL SELECT k FROM r: ARRAY<BIGINT> and BIGINT have no common type
SELECT a FROM r WHERE a: a filter's predicate must be BOOLEAN, not ARRAY<BIGINT>
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def elements_of(dtype: pa.DataType) -> list[Element]:
    """The stream s, in order of time."""
    chance = random.Random(5)
    times = sorted(chance.randrange(12) for _ in range(14))
    rows = [(chance.choice((1, 2, 3, 4, None)), chance.choice(VALUES[dtype]), at) for at in times]
    return [(row, row[2], row[2] + 1, 1) for row in rows]


@pytest.mark.slow("compares every aggregate of arrays")
@pytest.mark.parametrize("dtype", VALUES, ids=sql_type)
def test_arrays_are_answered_as_the_reference_does(dtype: pa.DataType) -> None:
    catalog, _ = define(STREAMS.format(type=sql_type(dtype)), Catalog())
    plans = {text: define(text, catalog)[1][0] for text in lines(ANSWERED + COMPARED.lstrip())}
    schema = Schema((Field("k", BIGINT), Field("v", dtype), Field("at", BIGINT)))
    elements = elements_of(dtype)
    stream = Stream(schema.names, elements)
    answers = {
        text: from_rows(plan.schema, [(*row, 1) for row in evaluate(plan, {"s": stream})])
        for text, plan in plans.items()
    }
    assert all(map(len, answers.values())), "answers that show something"
    source = TableSource(pa.Table.from_batches([from_rows(schema, elements).payload]))
    optimized = {text: optimize(plan) for text, plan in plans.items()}
    for written, epoch_rows, buckets in ((plans, 1000, 1), (optimized, 3, 2)):
        readers = run_plans(
            written, {"s": BoundedStream(source, "at")}, epoch_rows=epoch_rows, buckets=buckets
        )
        for text, expected in answers.items():
            found = readers[text].elements()
            assert equivalent(found, expected), (text, to_rows(canonical(found)), to_rows(expected))


@pytest.mark.parametrize("text", lines(MAPS))
def test_maps_are_not_compared(text: str) -> None:
    message, *_, hint = error_of(STREAMS.format(type="BIGINT") + text)
    assert (message, hint) == ("MAPs are not compared", "compare MAP_KEYS(x) and MAP_VALUES(x)")


@pytest.mark.parametrize("line", lines(REFUSED))
def test_what_takes_no_array_says_so(line: str) -> None:
    text, message = line.split(": ")
    said, *_, hint = error_of(STREAMS.format(type="BIGINT") + text)
    assert said == message
    assert hint is not None
    assert "CAST the argument" not in hint, "an ARRAY cannot be cast"
