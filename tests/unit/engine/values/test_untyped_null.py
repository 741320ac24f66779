"""An untyped NULL is taken wherever a value is, and means what a typed one means there."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headrace as hr
from headrace.expressions.aggregates.aggregates import APPROXIMATE, COMPOSED
from headrace.expressions.aggregates.functions import FUNCTIONS

STREAM = pa.table({"ts": [0, 1, 2, 3], "k": [1, 2, 1, 2], "s": ["a", None, "b", "c"]})
RELATION = pa.table({"k": [1, 2, 3], "y": pa.array([None, 4, 7], pa.int64())})

AGGREGATES = {
    **{name: f"{name}({{0}})" for name in (*FUNCTIONS, *COMPOSED)},
    **{name: f"{name}({{0}}, k)" for name in FUNCTIONS if name.startswith("REGR_")},
    "AUTOCORR": "AUTOCORR({0}, 1 ORDER BY ts)",
    "EWMA": "EWMA({0}, 0.5 ORDER BY ts)",
    "EWM_STDDEV": "EWM_STDDEV(k, 0.5 ORDER BY {0}, ts)",
    "CORRELATED_PAIRS": "CORRELATED_PAIRS(s, ts, {0}, 1, 0.5, -0.5, 1, 2)",
    "FIRST": "FIRST({0} ORDER BY ts)",
    "LAST": "LAST(k ORDER BY {0}, ts)",
    "CORR": "CORR({0}, k)",
    "COVAR_POP": "COVAR_POP(k, {0})",
    "COVAR_SAMP": "COVAR_SAMP({0}, {0})",
    "COUNT": "COUNT(DISTINCT {0}, k)",
    "MODE": "MODE() WITHIN GROUP (ORDER BY {0} DESC)",
    "PERCENTILE": "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {0})",
    "PERCENTILE_DISC": "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {0})",
    "APPROX_PERCENTILE": "APPROX_PERCENTILE({0}, 0.5)",
    "APPROX_TOP_K": "APPROX_TOP_K({0}, 2)",
    "TOP_K": "TOP_K({0}, 2)",
    "MAX_BY": "MAX_BY(k, {0})",
    "MIN_BY": "MIN_BY({0}, k)",
    "STRING_AGG": "STRING_AGG({0}, ',')",
    "THETA_UNION_AGG": "THETA_UNION_AGG(THETA_SKETCH(ARRAY(THETA_HASH({0}))))",
    "KLL_SKETCH_AGG_BIGINT": "KLL_SKETCH_AGG_BIGINT({0})",
    "KLL_SKETCH_AGG_DOUBLE": "KLL_SKETCH_AGG_DOUBLE({0}, 8)",
    "KLL_MERGE_AGG_BIGINT": "KLL_MERGE_AGG_BIGINT(KLL_SKETCH_BIGINT(ARRAY({0})))",
    "KLL_MERGE_AGG_DOUBLE": "KLL_MERGE_AGG_DOUBLE(KLL_SKETCH_DOUBLE(ARRAY({0})))",
    "GROUP_CONCAT": "GROUP_CONCAT(s ORDER BY {0}, ts)",
}
VALUES = (
    *(f"SELECT k, {call} AS m FROM g [RANGE 5] GROUP BY k" for call in AGGREGATES.values()),
    *(
        f"SELECT {call} OVER (PARTITION BY k ORDER BY ts) AS m FROM g"
        for name, call in AGGREGATES.items()
        if name not in APPROXIMATE
    ),
    "SELECT k, {0} AS n FROM g [RANGE 5]",
    "SELECT DISTINCT {0} AS n FROM g [RANGE 5]",
    "SELECT {0} AS n, COUNT(*) AS c FROM g [RANGE 5] GROUP BY {0}",
    "SELECT COUNT(*) AS c FROM r GROUP BY ROLLUP (k, {0})",
    "SELECT k, MAX(n) AS m FROM g [RANGE 5] LEFT JOIN (SELECT 1 AS kk, {0} AS n) AS t ON k = kk GROUP BY k",
    "SELECT MAX(u) AS m FROM g [RANGE 5], UNNEST(ARRAY({0})) AS t (u)",
    "SELECT MAX(COALESCE({0}, {0})) AS m, MIN(CASE WHEN FALSE THEN {0} END) AS n FROM g [RANGE 5]",
    "SELECT MAX(ARRAY({0}, {0})) AS a, MIN(STRUCT({0} AS x)) AS b FROM g [RANGE 5]",
    "SELECT ARRAY_AGG(MAP('a', {0}) ORDER BY {0}, ts) AS m FROM g [RANGE 5]",
    "SELECT k, LAG({0}) OVER (PARTITION BY k ORDER BY ts) AS m FROM g",
    "SELECT k, LAG(k, 1, {0}) OVER (PARTITION BY {0} ORDER BY ts) AS m FROM g",
    "SELECT k, LEAD({0}) OVER (PARTITION BY k ORDER BY y) AS m FROM r",
    "SELECT k, FIRST_VALUE({0}) OVER (PARTITION BY k ORDER BY ts) AS m FROM g",
    "SELECT k, LAST_VALUE(k) OVER (PARTITION BY {0} ORDER BY {0}, y) AS m FROM r",
    "SELECT k, SUM(k) OVER (PARTITION BY {0} ORDER BY k) AS m FROM r",
    "SELECT k, SUM(k) OVER (PARTITION BY {0}) AS m FROM r",
    "SELECT k, SUM(k) OVER (PARTITION BY {0}, y ORDER BY {0}) AS m FROM r",
    "SELECT k, RANK() OVER (PARTITION BY ARRAY({0}) ORDER BY {0}) AS m FROM r",
    "SELECT k FROM g [RANGE 5] GROUP BY k HAVING MAX({0}) IS NULL",
    "SELECT k FROM r ORDER BY {0}, k DESC LIMIT 2",
    "SELECT k, {0} AS n FROM r UNION SELECT k, y FROM r",
    "SELECT {0} AS n EXCEPT SELECT {0}",
    "SELECT {0} AS n FROM r INTERSECT SELECT {0}",
    "SELECT one.k FROM r AS one FULL JOIN (SELECT {0} AS k) AS two ON one.k = two.k",
    "SELECT k FROM r WHERE k NOT IN (SELECT {0} FROM r)",
    "SELECT k FROM r WHERE ({0}, k) IN (SELECT {0}, k FROM r)",
    "SELECT k, (SELECT MAX({0}) FROM r AS other WHERE other.k = r.k) AS z FROM r",
    "SELECT MAX(k) AS m FROM (VALUES ({0}), ({0})) AS t (k)",
    "SELECT COUNT(*) AS m FROM SESSION(TABLE g, DESCRIPTOR(ts), 2) GROUP BY window_start, window_end, {0}",
)
"""Queries with a NULL for a value."""

CONDITIONS = (
    "SELECT k FROM r WHERE {0}",
    "SELECT k FROM r WHERE {0} OR y > 4",
    "SELECT k FROM r WHERE {0} AND y > 4",
    "SELECT k FROM r WHERE NOT {0}",
    "SELECT k FROM r WHERE (SELECT {0})",
    "SELECT n FROM (SELECT k, {0} AS n FROM r) AS t WHERE n",
    "SELECT k FROM r GROUP BY k HAVING {0}",
    "SELECT COUNT(*) FILTER (WHERE {0}) AS c FROM g [RANGE 5]",
    "SELECT g.k FROM g [RANGE 5] JOIN r ON {0}",
    "SELECT g.k, y FROM g [RANGE 5] LEFT JOIN r ON g.k = r.k AND {0}",
    "SELECT k, SUM(k) OVER (ORDER BY ts) AS m FROM g QUALIFY {0}",
    "SELECT k FROM g WINDOW(RANGE 3 WHERE {0})",
    "SELECT CASE WHEN {0} THEN 1 ELSE k END AS x, IF({0}, 1, k) AS y FROM g",
)
"""Queries with a NULL for a condition."""


@pytest.mark.parametrize("texts", [VALUES[: len(VALUES) // 2], VALUES[len(VALUES) // 2 :], CONDITIONS])
@pytest.mark.parametrize("epoch_rows", [1, 100])
def test_it_answers_as_a_typed_one(texts: tuple[str, ...], epoch_rows: int) -> None:
    with hr.connect(runner="inline", epoch_rows=epoch_rows) as db:
        db.stream("g", STREAM, timestamp="ts")
        db.relation("r", RELATION)
        pairs = []
        for text in texts:
            is_condition = text in CONDITIONS or "BOOL_" in text or "COUNT_IF" in text
            typed = f"CAST(NULL AS {'BOOLEAN' if is_condition else 'BIGINT'})"
            pairs.append((text, db.query(text.format("NULL")), db.query(text.format(typed))))
        db.run()
        for text, untyped, expected in pairs:
            assert untyped.history().to_pylist() == expected.history().to_pylist(), text
