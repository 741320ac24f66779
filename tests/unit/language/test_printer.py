from __future__ import annotations

import pytest

from auctions import plan_of
from headrace.algebra.nodes import Plan, Sample
from headrace.algebra.properties import walk
from headrace.language.printer import to_sql
from headrace.optimizer import optimize
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate

QUERIES = [
    "SELECT * FROM Bid",
    "SELECT * FROM Bid [RANGE UNBOUNDED]",
    "SELECT itemID, bid_price * 0.908e0, bidderID FROM Bid",
    "SELECT Bid.* FROM Bid WHERE itemID = 1007 OR itemID = 1020 AND NOT bidderID IN (1, 2)",
    "SELECT O.* FROM OpenAuction O WINDOW(RANGE 5 HOURS), ClosedAuction C WHERE O.itemID = C.itemID",
    """SELECT itemID, sellerID, MAX(P.price) AS price FROM (
        SELECT P.itemID, P.price, O.sellerID AS sellerID
        FROM ((SELECT itemID, bid_price AS price FROM Bid WINDOW(RANGE 2 DAYS))
              UNION ALL (SELECT itemID, start_price AS price FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
          ClosedAuction C, OpenAuction O WINDOW(RANGE 2 DAYS)
        WHERE P.itemID = C.itemID AND C.itemID = O.itemID) P GROUP BY P.itemID, P.sellerID""",
    "ISTREAM(SELECT kind, COUNT(*) FROM tick [RANGE 10 SLIDE 5] GROUP BY kind HAVING COUNT(*) > 1)",
    "SELECT id FROM tick WHERE kind RLIKE 'a+' AND NOT kind RLIKE '[0-9]'",
    "SELECT DISTINCT kind FROM DSTREAM(tick [RANGE 10]) [RANGE 5] WHERE kind LIKE 'a\\\\_%'",
    "SELECT * FROM tick a JOIN (tick b JOIN tick c ON b.id = c.id) ON a.id = b.id AND a.price < c.price",
    "SELECT * FROM tick a CROSS JOIN tick b",
    "SELECT * FROM tick JOIN tick b USING (id, kind)",
    "SELECT * FROM tick [RANGE 10] t SAMPLE(12.5) WHERE t.id > 1",
    "SELECT COUNT(*) FROM tick WINDOW(RANGE 10 SLIDE 5) GRANULARITY(15) AS t",
    "SELECT * FROM tick SAMPLE(100) GRANULARITY(3) a, (SELECT * FROM tick SAMPLE(1)) SAMPLE(5) b",
    """SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM tick [RANGE 10 SLIDE 5] GROUP BY kind) [RANGE 100] t
        JOIN (SELECT id FROM tick [RANGE 5]) [ROWS 3] u ON t.n = u.id""",
    "SELECT * FROM (SELECT * FROM tick [RANGE 10] GRANULARITY(4)) GRANULARITY(8)",
    "SELECT kind, COUNT(*) FROM tick [PARTITION BY kind, `at` ROWS 10 SLIDE 2] GROUP BY kind",
    "SELECT * FROM tick a [ROWS 5 PRECEDING WHERE a.id > 1], ISTREAM(tick [ROWS 3]) b WHERE a.id = b.id",
    "SELECT a.price = b.id, a.id FROM tick a JOIN tick b ON a.id = b.price",
    "SELECT UPPER(kind) u, COUNT(*), SUM(price), AVG(id) / 2 FROM tick GROUP BY u, price",
    "SELECT COUNT(*), MIN(at), 'it''s \\\\ \\'x\\'' FROM tick",
    "SELECT kind, kind AS k2 FROM tick GROUP BY 1",
    "SELECT DISTINCT COUNT(*) FROM tick [RANGE 5] EMIT EMPTY",
    "SELECT n + 1 FROM (SELECT COUNT(*) AS n FROM tick HAVING COUNT(*) = 0 EMIT EMPTY) e, tick",
    "SELECT COUNT(*) FROM (SELECT ARRAY_AGG(price) AS p FROM tick GROUP BY kind) EMIT EMPTY",
    "SELECT CAST(NULL AS ARRAY<DECIMAL(20, 3)>), CAST(NULL AS array<STRING>) FROM tick",
    "SELECT COUNT(*) FROM tick EMIT EMPTY UNION ALL SELECT COUNT(*) FROM tick emit",
    """SELECT kind, COUNT(DISTINCT id), AVG(DISTINCT price) FILTER (WHERE id > 1 OR kind = 'a'), EVERY(TRUE),
        MEDIAN(price), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY id DESC), COUNT_IF(id = 1),
        CORR(id, price), FIRST(id ORDER BY at, price DESC NULLS FIRST),
        LAST(kind ORDER BY id NULLS LAST) FILTER (WHERE id > 0)
        FROM tick GROUP BY kind""",
    """SELECT id FROM tick UNION ALL (SELECT price FROM tick UNION ALL SELECT 1.5 FROM tick)
        UNION ALL SELECT at FROM tick""",
    """RSTREAM(SELECT DISTINCT * FROM (SELECT id AS `select`, at AS `a b`, kind AS `x``y` FROM tick)
        WHERE `select` > 1)""",
    "SELECT CASE WHEN id IS NULL THEN 5BD ELSE price END, -price, - - 5, NOT id = 1 FROM tick",
    "SELECT CAST(NULL AS DOUBLE), CAST(5 AS DECIMAL(20, 3)), CAST(kind AS BIGINT), NULL FROM tick",
    "SELECT DATE '2024-01-01', TIMESTAMP '2024-01-01 01:02:03.5', kind || 'a' FROM tick",
    "SELECT -9223372036854775808, 1e300, -0e0, 1.5e-7, CAST('NaN' AS DOUBLE) FROM tick",
    "SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))",
    "SELECT window_end, SUM(id) FROM HOP(tick, DESCRIPTOR(at), 5, 10, 2) AS h GROUP BY 1",
    "SELECT * FROM HOP(TABLE tick, SLIDE => 1, SIZE => 3) [RANGE 5] WHERE window_start > 2",
    """SELECT * FROM TABLE(HOP(DATA => TABLE Bid, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' HOUR,
        SLIDE => INTERVAL '5' MINUTES)) AS a
        JOIN TUMBLE((SELECT itemID FROM Bid), 5 MINUTES) b ON a.itemID = b.itemID""",
    "SELECT * FROM TABLE(SESSION(TABLE Bid PARTITION BY itemID, bidderID, DESCRIPTOR(ts), 5 MINUTES))",
    "SELECT COUNT(*) FROM SESSION(tick, DESCRIPTOR(at), DESCRIPTOR(kind, id), 5) GROUP BY window_start, kind",
    """SELECT ROW_NUMBER() OVER (PARTITION BY kind ORDER BY at), LAG(price, 2, 0) OVER (ORDER BY at),
        SUM(id + 1) OVER (PARTITION BY kind ORDER BY at ROWS 5 PRECEDING) FROM tick WHERE id > 1""",
    """SELECT itemID, SUM(bid_price) OVER (PARTITION BY itemID, bidderID ORDER BY ts
        RANGE BETWEEN INTERVAL '10' MINUTES PRECEDING AND CURRENT ROW) AS s FROM Bid""",
    "SELECT itemID, COUNT(*) OVER (PARTITION BY itemID) n FROM Bid [RANGE 10 MINUTES]",
    "SELECT * FROM SESSION(DATA => TABLE tick PARTITION BY (kind), GAP => 7)",
    "SELECT * FROM SESSION(TABLE tick PARTITION BY kind, DESCRIPTOR(at), 7, 30)",
    "SELECT * FROM SESSION(DATA => TABLE tick, MAX => 30, GAP => 7)",
    "SELECT id, kind FROM tick [RANGE 10] ORDER BY price DESC, 1 NULLS LAST LIMIT 3",
    "SELECT kind, COUNT(*) n FROM tick GROUP BY kind ORDER BY n DESC NULLS FIRST, SUM(id) LIMIT 3 OFFSET 2",
    "SELECT a.id, b.id FROM tick a, tick b ORDER BY b.id + a.price LIMIT ALL OFFSET 1",
    "(SELECT id FROM tick LIMIT 2) UNION ALL (SELECT id FROM tick OFFSET 1) ORDER BY id LIMIT 1",
    "SELECT * FROM (SELECT id, price FROM tick ORDER BY price LIMIT 5) ORDER BY id LIMIT 2",
    "SELECT DISTINCT kind FROM (SELECT kind, id FROM tick LIMIT 9) [ROWS 5] ORDER BY kind LIMIT 0",
    """SELECT kind, id FROM (SELECT kind, id, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY price DESC, id)
        AS rn FROM tick [RANGE 10]) t WHERE 2 >= rn""",
    """SELECT rn, id FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY -id NULLS LAST) AS rn, price FROM tick) t
        WHERE rn > 1 AND rn < 5 AND id > 3""",
    "SELECT ROW_NUMBER() OVER (PARTITION BY kind ORDER BY at DESC) FROM tick WHERE id > 1",
    "WITH a AS (SELECT id FROM tick WHERE id > 1) SELECT x.id FROM a x, a y WHERE x.id <=> y.id",
]


@pytest.mark.parametrize("text", QUERIES)
def test_text_to_plan_to_text_is_the_identity(text: str) -> None:
    plan = plan_of(text)
    printed = to_sql(plan)
    assert plan_of(printed) == plan
    assert plan_of(printed).schema == plan.schema
    assert to_sql(plan_of(printed)) == printed


@pytest.mark.parametrize("text", QUERIES)
def test_the_text_of_an_optimized_plan_optimizes_to_it(text: str) -> None:
    plan = optimize(plan_of(text))
    assert optimize(plan_of(to_sql(plan))) == plan


def test_what_it_looks_like() -> None:
    text = "SELECT a.kind, b.id FROM tick [RANGE 10] a, tick b WHERE a.id = b.id"
    assert to_sql(plan_of(text)) == (
        "SELECT t1.kind AS kind, t2.id AS id FROM tick WINDOW(RANGE 10) AS t1 CROSS JOIN tick AS t2 "
        "WHERE t1.id = t2.id"
    )
    assert to_sql(optimize(plan_of(text))) == (
        "SELECT t1.kind AS kind, t2.id AS id FROM tick WINDOW(RANGE 10) AS t1 JOIN tick AS t2 "
        "ON t1.id = t2.id"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM (SELECT id FROM tick) [RANGE 5] SAMPLE(50)",
        "SELECT id, kind FROM SESSION((SELECT id, kind FROM tick), 5) SAMPLE(50)",
        "SELECT id, kind FROM (SELECT id, kind FROM tick) [PARTITION BY kind ROWS 2]",
        "SELECT id, kind, LAG(id) OVER (PARTITION BY kind) AS l FROM (SELECT id, kind FROM tick)",
    ],
)
def test_what_reads_whole_rows_stands_over_the_columns_of_an_optimized_plan(text: str) -> None:
    plan = optimize(plan_of(text))
    assert optimize(plan_of(to_sql(plan))) == plan


def test_rows_that_last_are_sampled_alike_where_the_optimizer_finds_them_of_one_instant() -> None:
    both = "(SELECT a.id, b.kind AS k FROM tick [RANGE 5] a LEFT JOIN tick b ON a.id = b.id)"
    plan = optimize(plan_of(f"SELECT id FROM {both} SAMPLE(50) WHERE k = 'a'"))
    again = plan_of(to_sql(plan))
    assert (sampled(plan).timed, sampled(plan).input.is_chronon) == (False, True)
    assert not sampled(again).timed
    assert plan_of(to_sql(again)) == again
    rows = [((number % 2, "a", None, number // 3), number // 3, number // 3 + 1, 1) for number in range(40)]
    streams = {"tick": Stream(("id", "kind", "price", "at"), rows)}
    assert evaluate(again, streams) == evaluate(plan, streams)


def sampled(plan: Plan) -> Sample:
    """The sample in a plan that has one."""
    (found,) = (node for node in walk(plan) if isinstance(node, Sample))
    return found


def test_the_operator_of_a_select_list_stands_around_the_first_rows() -> None:
    expected = plan_of("ISTREAM(SELECT id FROM tick [RANGE 5] ORDER BY price LIMIT 1)")
    assert plan_of("SELECT ISTREAM(id) FROM tick [RANGE 5] ORDER BY price LIMIT 1") == expected
