"""Queries of which nothing is estimated: the table has every node and aggregate, and refuses them by name."""

from __future__ import annotations

from typing import get_args

import pytest

import headrace as hr
from headrace.algebra.nodes import Plan
from headrace.errors import LanguageError
from headrace.expressions.aggregates.aggregates import AGGREGATES as ALL
from headrace.optimizer.estimates.monotone import AGGREGATES, NODES

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM fix (k BIGINT, v BIGINT, w BIGINT, ts BIGINT) FROM push CHANGES BY w TIMESTAMP BY ts
"""
REFUSED = {
    "SELECT MAX(v) AS m FROM s [RANGE 9]": "MAX: the largest and the smallest value",
    "SELECT MIN(v) AS m FROM s [RANGE 9]": "MIN: the largest and the smallest value",
    "SELECT FIRST(v ORDER BY ts) AS m FROM s [RANGE 9]": "FIRST: which rows are first, or last",
    "SELECT LAST(v ORDER BY ts) AS m FROM s [RANGE 9]": "LAST: which rows are first, or last",
    "SELECT PERCENTILE(v, 0.5) AS m FROM s [RANGE 9]": "PERCENTILE: it is of single values",
    "SELECT STDDEV(v) AS m FROM s [RANGE 9]": "STDDEV: bounds of it would need higher moments",
    "SELECT COUNT(DISTINCT v) AS n FROM s [RANGE 9]": "DISTINCT, or groups without aggregates",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT k FROM s [RANGE 9])": "DISTINCT: how many different rows",
    "SELECT COUNT(*) WITHIN 10 PERCENT AS n FROM s [RANGE 9]": "aggregates WITHIN some percent",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 9] GROUP BY k HAVING COUNT(*) > 3": "HAVING or WHERE",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 9] GROUP BY k ORDER BY n LIMIT 3": "ORDER BY, LIMIT or ROW_NUMBER",
    "SELECT COUNT(*) AS n FROM s [ROWS 9]": "a window of rows: a window of rows has others",
    "SELECT COUNT(*) AS n FROM SESSION(s, ts, k, 5) GROUP BY window_start": "sessions: a session ends",
    "SELECT COUNT(*) AS n FROM (SELECT k FROM s [RANGE 9] EXCEPT SELECT k FROM r [RANGE 9])": "EXCEPT",
    "SELECT COUNT(*) AS n FROM s [RANGE 9] WHERE k NOT IN (SELECT k FROM r [RANGE 9])": "NOT IN: a row",
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a WHERE NOT EXISTS (SELECT k FROM r b WHERE a.k = b.k)": (
        "NOT EXISTS or NOT IN: a row that is missing"
    ),
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a LEFT JOIN r [RANGE 9] b ON a.k = b.k": "an outer join",
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a JOIN r [RANGE 9] b ON a.k < b.k": "nothing is equal in",
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a JOIN r [NOW] b ON a.k = b.k": "the rows of each instant alone",
    "SELECT COUNT(*) AS n FROM (SELECT k FROM s [RANGE 9] UNION ALL SELECT v FROM s [RANGE 9]) a"
    " JOIN r [RANGE 9] b ON a.k = b.k": "a join of two streams: a side of it is a UNION ALL",
    "SELECT COUNT(*) AS n FROM (SELECT k FROM s UNION ALL SELECT v FROM s) [RANGE 9] a"
    " JOIN r [RANGE 9] b ON a.k = b.k": "a join of two streams: a side of it is a UNION ALL",
    "SELECT COUNT(*) AS n FROM s WINDOW(LIFETIME (ts, v)) a JOIN r [RANGE 9] b ON a.k = b.k": (
        "a join of two streams: a side of it has a LIFETIME"
    ),
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a JOIN r [RANGE 9 SLIDE 3] b ON a.k = b.k": "slide differently",
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a JOIN r [RANGE 9] b ON a.k / b.k = 1": "nothing is equal in",
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a JOIN r [RANGE 9] b ON a.k = 9 / b.v": "what is equal may fail",
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a JOIN r WINDOW(RANGE MIN 3, MAX 9) b ON a.k = b.k": "has bounds",
    "SELECT COUNT(*) AS n FROM s [RANGE 9] a, r [RANGE 9] b, s [RANGE 9] c WHERE a.k = b.k AND b.v = c.v": (
        "a side of it is a join itself"
    ),
    "SELECT COUNT(*) AS n FROM s [RANGE 9] JOIN kinds ON s.k = kinds.k": "a join with this relation",
    "SELECT COUNT(*) AS n FROM fix [RANGE 9]": "corrected|last",
    "SELECT k FROM s [RANGE 9]": "a query without COUNT, SUM or AVG",
    "ISTREAM(SELECT COUNT(*) AS n FROM s [RANGE 9])": "ISTREAM: the changes of an estimate",
    "SELECT COUNT(*) AS n FROM s [NOW]": "a query without a window",
    "SELECT SQRT(SUM(v)) AS n FROM s [RANGE 9]": "what is computed of an estimate: bounds are known",
    "SELECT COUNT(*) AS n FROM kinds": "a query without streams",
    "SELECT COUNT(*) AS n FROM s WINDOW(RANGE MIN 5, MAX 9)": "a window within bounds: how many of its rows",
    "SELECT COUNT(*) AS n FROM s WINDOW(LIFETIME (ts, v))": "this LIFETIME: for how long rows may be missing",
    "SELECT COUNT(*) AS n FROM (SELECT k FROM s UNION ALL SELECT v FROM s) [RANGE 9]": "a row of s would be",
    "SELECT COUNT(*) AS n FROM (SELECT k FROM s [RANGE 9] UNION ALL SELECT v FROM s [RANGE 9])": "row of s",
}


def test_every_node_and_aggregate_has_an_entry() -> None:
    kinds = {"RefreshedRelation", "LimitedJoin"}
    assert NODES.keys() - kinds == {node.__name__ for node in get_args(Plan)}
    assert AGGREGATES.keys() == set(ALL)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_monotone_under_loss_is_refused_by_name(text: str) -> None:
    with hr.connect(runner="inline") as db:
        db.relation("kinds", [{"k": 1, "name": "a"}])
        db.execute(STREAMS)
        with pytest.raises(LanguageError, match=REFUSED[text]) as found:
            db.execute(f"CREATE QUERY q LOSS TOLERANT AS {text}")
        assert found.value.position is not None
        assert found.value.hint
        assert found.value.message.startswith("no row may be left out of ")
        db.execute(f"CREATE QUERY q AS {text}")


def test_what_the_hint_of_a_join_proposes_runs() -> None:
    with hr.connect(runner="inline") as db:
        db.relation("r", [{"k": 1, "name": "a"}])
        db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        joined = "(SELECT k, MAX(name) AS name FROM r GROUP BY k) x ON s.k = x.k"
        db.execute(
            f"CREATE QUERY q LOSS TOLERANT AS SELECT name, COUNT(*) AS n FROM s [RANGE 9] JOIN {joined} "
            "GROUP BY name"
        )
        assert db["q"].schema.names == ("name", "n", "n_low", "n_high")
