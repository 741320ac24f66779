"""What CQL's defaults add to a query, told by the query of PIPES' defaults that means the same."""

from __future__ import annotations

import pytest

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
    ],
)
def test_cql(text: str, meaning: str) -> None:
    assert cql(text) == explain(plan_of(meaning))
