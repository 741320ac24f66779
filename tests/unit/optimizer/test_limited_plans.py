"""Plans WITHIN MEMORY: of which queries it is limited, and that rules leave what is limited as it is."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.algebra.bounds import has_unbounded_state
from headrace.algebra.exactness import looks_back
from headrace.algebra.explain import describe
from headrace.algebra.nodes import BloomFilter, Distinct, Draw, LimitedJoin, SetOperation
from headrace.algebra.properties import walk
from headrace.algebra.tunings.bloom import blocks_within
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
    f"SELECT DISTINCT a.k {BOTH}": "DISTINCT of a join",
    "SELECT DISTINCT k FROM s [ROWS 9]": "DISTINCT of other rows",
    "SELECT DISTINCT k FROM s [NOW]": "DISTINCT of the rows of each instant",
    "SELECT DISTINCT k FROM s [RANGE 9 SLIDE 3]": "DISTINCT of other rows",
    "SELECT DISTINCT k FROM fix": "DISTINCT of other rows|a stream whose rows are corrected",
    "SELECT DISTINCT ARRAY(k) AS k FROM s [RANGE 9]": "DISTINCT of such values",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT k FROM s [RANGE 9])": "aggregates",
    "ISTREAM(SELECT k + 1 AS k FROM (SELECT DISTINCT k FROM s [RANGE 9]))": "ISTREAM",
    f"SELECT DISTINCT k FROM s [RANGE 9] UNION ALL SELECT a.k {BOTH}": "DISTINCT beside a join",
    "SELECT k FROM s EXCEPT SELECT k FROM r [RANGE 9]": "EXCEPT, INTERSECT or UNION",
    "SELECT k FROM s [NOW] EXCEPT SELECT k FROM fix [RANGE 9]": "a stream whose rows are corrected|EXC",
    "SELECT k FROM s [NOW] EXCEPT ALL SELECT k FROM r [RANGE 9]": "EXCEPT, INTERSECT or UNION",
    "SELECT k FROM s [NOW] INTERSECT SELECT k FROM r [RANGE 9]": "EXCEPT, INTERSECT or UNION",
    "SELECT k FROM s [NOW] WHERE k NOT IN (SELECT k FROM r [RANGE 9])": "EXISTS, IN, NOT",
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


FILTERED = {
    "SELECT DISTINCT k FROM s [RANGE 9]": ["DISTINCT of 9"],
    "SELECT d.k + 1 AS l FROM (SELECT DISTINCT k, v FROM s [RANGE UNBOUNDED] WHERE v > 2) d WHERE d.k > 3": [
        "DISTINCT of UNBOUNDED"
    ],
    "SELECT DISTINCT k FROM s": ["ISTREAM of DISTINCT of UNBOUNDED"],
    "ISTREAM(SELECT DISTINCT k FROM (SELECT k FROM s UNION ALL SELECT k FROM r) [RANGE 9])": [
        "ISTREAM of DISTINCT of 9"
    ],
    "SELECT k FROM s [NOW] WHERE v > 1 EXCEPT SELECT k + 1 FROM r [RANGE 9]": ["EXCEPT of 9"],
    "SELECT DISTINCT k FROM s [RANGE 9] UNION ALL (SELECT k FROM s [NOW] EXCEPT SELECT k FROM r [RANGE 4])": [
        "DISTINCT of 9",
        "EXCEPT of 4",
    ],
}


@pytest.mark.parametrize("text", FILTERED)
def test_duplicates_and_differences_are_known_by_filters(db: hr.Database, text: str) -> None:
    db.execute(f"CREATE QUERY q WITHIN MEMORY '1 MB' AS {text}")
    plan = core_of(db).definitions.queries[db["q"].id].plan
    filters = [node for node in walk(plan) if isinstance(node, BloomFilter)]
    assert [describe(node).split(" WITHIN")[0] for node in filters] == [
        f"BloomFilter {one}" for one in FILTERED[text]
    ]
    # Filters share the memory.
    assert {one.blocks for one in filters} == {blocks_within(1_000_000 // len(filters))}
    assert not any(isinstance(node, Distinct | SetOperation) for node in walk(plan))
    assert plan.schema.names == db["q"].schema.names
    assert optimize(plan) == plan
    assert not has_unbounded_state(plan)


@pytest.mark.parametrize(
    ("text", "back"),
    [
        # A row of r counts for 100 instants and up to one granule, 1; what it hides is of an instant.
        ("SELECT k FROM s [NOW] EXCEPT SELECT k FROM r [RANGE 100]", 101),
        # A value is there for 100 instants, and looked up in those of 100 instants before.
        ("SELECT DISTINCT k FROM s [RANGE 100]", 200),
    ],
)
def test_a_filter_looks_back_as_far_as_rows_count(db: hr.Database, text: str, back: int) -> None:
    db.execute(f"CREATE QUERY q WITHIN MEMORY '1 MB' AS {text}")
    plan = core_of(db).definitions.queries[db["q"].id].plan
    assert max(looks_back(node) for node in walk(plan) if isinstance(node, BloomFilter)) == back
