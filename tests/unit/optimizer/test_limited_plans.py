"""Plans WITHIN MEMORY: of which queries it is limited, and that rules leave limited joins as they are."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.algebra.nodes import Draw, LimitedJoin
from headrace.algebra.properties import walk
from headrace.errors import LanguageError
from headrace.optimizer import optimize
from inside import core_of

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM fix (k BIGINT, v BIGINT, w BIGINT, ts BIGINT) FROM push CHANGES BY w TIMESTAMP BY ts
"""
BOTH = "FROM s [RANGE 9] a JOIN r [RANGE 9] b ON a.k = b.k"
REFUSED = {
    "SELECT k FROM s [RANGE 9]": "a query without a join",
    f"SELECT COUNT(*) AS n {BOTH}": "aggregates",
    f"SELECT DISTINCT a.k {BOTH}": "DISTINCT",
    f"SELECT a.k {BOTH} ORDER BY a.k LIMIT 3": "ORDER BY, LIMIT or ROW_NUMBER",
    "SELECT a.k FROM s [RANGE 9] a LEFT JOIN r [RANGE 9] b ON a.k = b.k": "an outer join",
    "SELECT a.k FROM s [RANGE 9] a WHERE a.k IN (SELECT k FROM r [RANGE 9])": "EXISTS, IN, NOT",
    "SELECT a.k FROM s [ROWS 9] a JOIN r [RANGE 9] b ON a.k = b.k": "a window of rows",
    "SELECT a.k FROM s [RANGE 9] a JOIN fix b ON a.k = b.k": "a stream whose rows are corrected|last",
    "SELECT n FROM (SELECT k, SUM(v) AS n FROM s GROUP BY k) a, r [RANGE 9] b WHERE a.k = b.k": "aggregates",
    "SELECT a.k FROM (SELECT k, window_end FROM TUMBLE(s, ts, 5)) a JOIN r [RANGE 9] b ON a.k = b.k": (
        "a join with windows that are read at their ends"
    ),
    f"SELECT a.k {BOTH} EXCEPT SELECT k FROM s [RANGE 9]": "EXCEPT, INTERSECT or UNION",
}
TAKEN = (
    f"SELECT a.k, b.v {BOTH}",
    f"SELECT a.k + 1 AS l {BOTH} WHERE a.v + b.v > 3 AND a.v > 0",
    f"ISTREAM(SELECT a.v {BOTH})",
    f"SELECT a.k {BOTH} UNION ALL SELECT k FROM s [RANGE 3]",
    "SELECT a.v FROM s [RANGE 9] a, r [RANGE 4] b, s [RANGE 5] c WHERE a.k = b.k AND b.v = c.v",
    "SELECT a.v FROM s WINDOW(RANGE MIN 3, MAX 9) a JOIN r [RANGE 9 SLIDE 3] b ON a.k = b.k",
    "SELECT a.k FROM (SELECT k FROM s UNION ALL SELECT k FROM r) [RANGE 9] a JOIN r [NOW] b ON a.k = b.k",
)


@pytest.fixture
def db() -> hr.Database:
    found = hr.connect(runner="inline")
    found.execute(STREAMS)
    return found


@pytest.mark.parametrize("text", REFUSED)
def test_of_other_queries_it_is_not_limited(db: hr.Database, text: str) -> None:
    with pytest.raises(LanguageError, match=f"the memory of ({REFUSED[text]})") as refused:
        db.execute(f"CREATE QUERY q WITHIN MEMORY '1 MB' AS {text}")
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("leave out WITHIN MEMORY")


@pytest.mark.parametrize("text", TAKEN)
def test_every_join_is_limited_and_rules_leave_it_so(db: hr.Database, text: str) -> None:
    db.execute(f"CREATE QUERY q WITHIN MEMORY '1 MB' AS {text}")
    plan = optimize(core_of(db).definitions.queries[db["q"].id].plan)
    joins = [node for node in walk(plan) if isinstance(node, LimitedJoin)]
    drawn = {node.number for node in walk(plan) if isinstance(node, Draw)}
    assert joins
    assert {rows.number for join in joins for rows in join.remembered} == drawn
    assert plan.schema.names == db["q"].schema.names
    assert "draw" not in plan.schema.names
    assert optimize(plan) == plan
