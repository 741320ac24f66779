"""What CQL's defaults add to a query, told by the query of PIPES' defaults that means the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headrace
from auctions import plan_of
from headrace.algebra.explain import explain


def cql(text: str) -> str:
    return explain(plan_of(f"SET dialect = 'cql'; {text}"))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Select * From tick", "ISTREAM(SELECT * FROM tick [UNBOUNDED])"),
        ("Select Istream(*) From tick", "ISTREAM(SELECT * FROM tick [UNBOUNDED])"),
        ("Select Rstream(id) From tick [Now]", "RSTREAM(SELECT id FROM tick)"),
        ("Select Dstream(Distinct id) From tick", "DSTREAM(SELECT DISTINCT id FROM tick [UNBOUNDED])"),
        ("SELECT id FROM tick [NOW]", "SELECT id FROM tick"),
        ("SELECT id FROM tick [RANGE 5]", "SELECT id FROM tick [RANGE 5]"),
        ("SELECT id FROM tick SAMPLE(5)", "ISTREAM(SELECT id FROM tick SAMPLE(5) [UNBOUNDED])"),
        ("SELECT COUNT(*) FROM tick", "SELECT COUNT(*) FROM tick [UNBOUNDED]"),
        ("SELECT DISTINCT id FROM tick", "ISTREAM(SELECT DISTINCT id FROM tick [UNBOUNDED])"),
        (
            "SELECT id FROM tick EXCEPT SELECT at FROM tick",
            "SELECT id FROM tick [UNBOUNDED] EXCEPT SELECT at FROM tick [UNBOUNDED]",
        ),
        (
            "SELECT id FROM tick UNION SELECT at FROM tick",
            "ISTREAM(SELECT id FROM tick [UNBOUNDED] UNION SELECT at FROM tick [UNBOUNDED])",
        ),
        (
            "SELECT id FROM tick a WHERE EXISTS (SELECT 1 FROM tick b WHERE a.id = b.at)",
            "ISTREAM(SELECT id FROM tick [UNBOUNDED] a "
            "WHERE EXISTS (SELECT 1 FROM tick [UNBOUNDED] b WHERE a.id = b.at))",
        ),
        (
            "SELECT id FROM tick a WHERE NOT EXISTS (SELECT 1 FROM tick b WHERE a.id = b.at)",
            "SELECT id FROM tick [UNBOUNDED] a "
            "WHERE NOT EXISTS (SELECT 1 FROM tick [UNBOUNDED] b WHERE a.id = b.at)",
        ),
        (
            "SELECT a.id FROM tick a LEFT JOIN tick b ON a.id = b.id",
            "SELECT a.id FROM tick [UNBOUNDED] a LEFT JOIN tick [UNBOUNDED] b ON a.id = b.id",
        ),
        # A subquery is a stream where a window or a sample asks for one, and a relation elsewhere.
        (
            "SELECT COUNT(*) FROM (SELECT id FROM tick) [RANGE 5]",
            "SELECT COUNT(*) FROM ISTREAM(SELECT id FROM tick [UNBOUNDED]) [RANGE 5]",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT id FROM tick [RANGE 5])",
            "SELECT COUNT(*) FROM (SELECT id FROM tick [RANGE 5])",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT * FROM tick [NOW])",
            "SELECT COUNT(*) FROM (SELECT * FROM tick)",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT ISTREAM(id) FROM tick [RANGE 5])",
            "SELECT COUNT(*) FROM ISTREAM(SELECT id FROM tick [RANGE 5]) [UNBOUNDED]",
        ),
        (
            "WITH x AS (SELECT id FROM tick), y AS (SELECT * FROM tick [NOW]) "
            "SELECT COUNT(*) FROM x [RANGE 5], y",
            "WITH x AS (ISTREAM(SELECT id FROM tick [UNBOUNDED])), y AS (SELECT * FROM tick) "
            "SELECT COUNT(*) FROM x [RANGE 5], y",
        ),
        # Windows of their own want the stream itself.
        ("SELECT * FROM TUMBLE(tick, 5)", "SELECT * FROM TUMBLE(tick, 5)"),
        (
            "SELECT COUNT(*) FROM TUMBLE((SELECT id FROM tick), 5)",
            "SELECT COUNT(*) FROM TUMBLE(ISTREAM(SELECT id FROM tick [UNBOUNDED]), 5)",
        ),
        (
            "SELECT id, COUNT(*) OVER (ORDER BY at) AS n FROM tick",
            "SELECT id, COUNT(*) OVER (ORDER BY at) AS n FROM tick",
        ),
        # OVER in another order than that of time, or in none, reads a relation.
        (
            "SELECT id, COUNT(*) OVER (PARTITION BY id) AS n FROM tick",
            "SELECT id, COUNT(*) OVER (PARTITION BY id) AS n FROM tick [UNBOUNDED]",
        ),
        (
            "SELECT id, RANK() OVER (ORDER BY at DESC) AS n FROM tick",
            "SELECT id, RANK() OVER (ORDER BY at DESC) AS n FROM tick [UNBOUNDED]",
        ),
        (
            "SELECT id, LAG(id) OVER (ORDER BY at) AS n FROM tick",
            "SELECT id, LAG(id) OVER (ORDER BY at) AS n FROM tick",
        ),
        (
            "SELECT id, ROW_NUMBER() OVER (ORDER BY price) AS n FROM tick [RANGE 5]",
            "SELECT id, ROW_NUMBER() OVER (ORDER BY price) AS n FROM tick [RANGE 5]",
        ),
        # Derived streams: of either dialect, streams and relations.
        (
            "CREATE STREAM d AS SELECT id FROM tick; SELECT id FROM d [RANGE 5]",
            "SELECT id FROM ISTREAM(SELECT id FROM tick [UNBOUNDED]) [RANGE 5]",
        ),
        (
            "CREATE STREAM d AS SELECT COUNT(*) n FROM tick; SELECT n FROM d",
            "SELECT n FROM (SELECT COUNT(*) n FROM tick [UNBOUNDED])",
        ),
        (
            "SET dialect = 'pipes'; CREATE STREAM d AS SELECT id FROM tick; SET dialect = CQL; "
            "SELECT id FROM d",
            "ISTREAM(SELECT id FROM (SELECT id FROM tick) [UNBOUNDED])",
        ),
        ("SET dialect = 'PIPES'; SELECT id FROM tick", "SELECT id FROM tick"),
        # The row of EMIT EMPTY begins as early in either dialect.
        (
            "SELECT COUNT(*) AS n, MAX(id) AS most FROM tick WHERE id > 1 EMIT EMPTY",
            "SELECT COUNT(*) AS n, MAX(id) AS most FROM tick [UNBOUNDED] WHERE id > 1 EMIT EMPTY",
        ),
    ],
)
def test_cql(text: str, meaning: str) -> None:
    assert cql(text) == explain(plan_of(meaning))


TIME = pa.timestamp("us", tz="UTC")
AUCTIONS = {"id": pa.int64(), "itemName": pa.string(), "dateTime": TIME, "expires": TIME}
BIDS = {
    "auction": pa.int64(),
    "bidder": pa.int64(),
    "price": pa.int64(),
    "channel": pa.string(),
    "dateTime": TIME,
}

Q9 = """
SELECT id, itemName, auction, bidder, price, bid_dateTime FROM (
   SELECT A.*, B.auction, B.bidder, B.price, B.dateTime AS bid_dateTime,
     ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) AS rownum
   FROM auction{window} A, bid{window} B
   WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
)
WHERE rownum <= 1
"""
Q18 = """
SELECT auction, bidder, price, channel, dateTime
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS rank_number
      FROM bid{window})
WHERE rank_number <= 1
"""
Q19 = """
SELECT * FROM
(SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid{window})
WHERE rank_number <= 10
"""


@pytest.mark.parametrize("query", [Q9, Q18, Q19])
def test_places_are_among_all_rows_so_far(query: str) -> None:
    """NEXMark's queries 9, 18 and 19, which mean streams as relations that grow."""

    def plan(dialect: str, window: str) -> str:
        with headrace.connect(runner="inline") as db:
            for name, columns in {"auction": AUCTIONS, "bid": BIDS}.items():
                db.stream(name, pa.schema(list(columns.items())).empty_table(), timestamp="dateTime")
            (text,) = db.execute(f"SET dialect = '{dialect}'; EXPLAIN LOGICAL {query.format(window=window)}")
        return str(text)

    assert plan("cql", "") == plan("pipes", " [RANGE UNBOUNDED]")
