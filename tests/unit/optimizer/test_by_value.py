"""Queries that leave out rows by their values: which they are, and where in the plan rows are left out."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.algebra.nodes import SemanticDrop, Source
from headrace.algebra.properties import walk
from headrace.errors import LanguageError
from headrace.optimizer import optimize
from inside import core_of

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, t STRING, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM r (k BIGINT, v DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM fix (k BIGINT, v BIGINT, w BIGINT, ts BIGINT) FROM push CHANGES BY w TIMESTAMP BY ts;
CREATE RELATION names (k BIGINT, v BIGINT) KEY (k) FROM csv OPTIONS (path 'names.csv')
"""
REFUSED = {
    "SELECT k AS v2 FROM s": ("the answer has no column v", "it has v2|did you mean"),
    "SELECT t AS v FROM s": ("v is of STRING", "name a column of BIGINT"),
    "SELECT v + 1 AS v FROM s [RANGE 9]": ("v, which is computed: rows are left out where", "as it is"),
    "SELECT CAST(v AS DOUBLE) AS v FROM s": ("v, which is computed", "as it is"),
    "SELECT 1 AS v FROM s": ("v, which is computed", "as it is"),
    "SELECT COUNT(*) AS v FROM s [RANGE 9]": ("aggregates: a row that is missing", "without BY"),
    "SELECT v, COUNT(*) AS n FROM s [RANGE 9] GROUP BY v": ("aggregates", "without BY"),
    "SELECT v FROM s [ROWS 9]": ("a window of rows: rows there depend", "leave out LOSS TOLERANT BY"),
    "SELECT v FROM s [RANGE 9] ORDER BY v LIMIT 3": ("ORDER BY, LIMIT", "leave out"),
    "SELECT v FROM fix": ("corrected|last", "leave out"),
    "SELECT b.v FROM s [RANGE 9] a LEFT JOIN r [RANGE 9] b ON a.k = b.k": ("an outer join", "leave out"),
    "SELECT v FROM s [RANGE 9] EXCEPT SELECT k FROM s [RANGE 9]": ("EXCEPT, INTERSECT", "leave out"),
    "SELECT n.v FROM s JOIN names n ON s.k = n.k": ("a column of names: rows of relations", "of a stream"),
}
TAKEN = {
    "SELECT v FROM s": ("s",),
    "SELECT V, k + 1 AS l FROM s [RANGE 9] WHERE t = 'a'": ("s",),
    "SELECT a.v FROM s [RANGE 9] a JOIN r [RANGE 9] b ON a.k = b.k WHERE b.v > 1": ("s",),
    "SELECT b.v FROM s [RANGE 9] a JOIN r [RANGE 9] b ON a.k = b.k": ("r",),
    "SELECT s.v, n.k FROM s JOIN names n ON s.k = n.k": ("s",),
    "SELECT k AS v FROM s UNION ALL SELECT k FROM r": ("r", "s"),
    "ISTREAM(SELECT DISTINCT v FROM s [RANGE 9 SLIDE 3])": ("s",),
    "SELECT v FROM s [RANGE 9] WHERE k NOT IN (SELECT k FROM r [RANGE 9])": ("s",),
    "SELECT v FROM s [RANGE 9] WHERE v > (SELECT AVG(v) FROM s [RANGE 9])": ("s",),
    "SELECT v, window_end FROM TUMBLE(s, DESCRIPTOR(ts), 9)": ("s",),
}


@pytest.fixture
def db(tmp_path: object) -> hr.Database:
    found = hr.connect(runner="inline")
    (tmp_path / "names.csv").write_text("k,v\n1,2\n")  # type: ignore[operator]
    found.execute(STREAMS.replace("names.csv", f"{tmp_path}/names.csv"))
    return found


@pytest.mark.parametrize("text", REFUSED)
def test_other_queries_are_refused(db: hr.Database, text: str) -> None:
    why, hint = REFUSED[text]
    with pytest.raises(LanguageError, match=why) as refused:
        db.execute(f"CREATE QUERY q LOSS TOLERANT BY v (0: 0, 9: 1) AS {text}")
    assert refused.value.position is not None
    with pytest.raises(AssertionError, match=hint):
        raise AssertionError(refused.value.hint)


@pytest.mark.parametrize("text", TAKEN)
def test_rows_are_left_out_where_they_are_read(db: hr.Database, text: str) -> None:
    db.execute(f"CREATE QUERY q LOSS TOLERANT BY v (0: 0, 9: 1) AS {text}")
    plan = core_of(db).definitions.queries[db["q"].id].plan
    dropping = [node for node in walk(plan) if isinstance(node, SemanticDrop)]
    assert all(isinstance(node.input, Source) for node in dropping)
    assert (
        tuple(sorted({node.input.name for node in dropping if isinstance(node.input, Source)})) == TAKEN[text]
    )
    assert {node.streams for node in dropping} == {TAKEN[text]}
    again = optimize(plan)
    assert sum(isinstance(node, SemanticDrop) for node in walk(again)) == len(dropping)
    assert again.schema == plan.schema
