"""Aggregates over the content at an instant beside DuckDB, an engine of other people."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import headrace

MONEY = pa.decimal128(10, 2)
QUERY = """
    k, COUNT(*), COUNT(DISTINCT v), SUM(DISTINCT v), AVG(DISTINCT v), COUNT(DISTINCT s), MEDIAN(v),
    CORR(v, x), COVAR_POP(v, x), COVAR_SAMP(x, v), STDDEV_POP(x), VAR_POP(v), STDDEV(x), BOOL_AND(b),
    BOOL_OR(b), COUNT(*) FILTER (WHERE v > 3), SUM(v) FILTER (WHERE b), MAX(s) FILTER (WHERE x < 0),
    COUNT_IF(v > x),
    PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x), PERCENTILE_CONT(0.2) WITHIN GROUP (ORDER BY v DESC),
    PERCENTILE_CONT(0.6) WITHIN GROUP (ORDER BY v) FILTER (WHERE v <> 4), SUM(m), SUM(DISTINCT m),
    PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY v), PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY s DESC),
    BIT_AND(v), BIT_OR(v) FILTER (WHERE b), BIT_XOR(v),
    FIRST(s ORDER BY ts), LAST(v ORDER BY x DESC NULLS LAST, ts),
    FIRST(x ORDER BY s NULLS FIRST, ts) FILTER (WHERE b),
    COUNT(DISTINCT v, b), COUNT(DISTINCT s, b, v) FILTER (WHERE v > 2),
    ARRAY_AGG(v ORDER BY ts DESC) FILTER (WHERE v IS NOT NULL), ARRAY_AGG(s ORDER BY ts) FILTER (WHERE s > '')
"""
# Of NULLs alone, COUNT_IF is NULL there and 0 in Spark.
DUCKDB = QUERY.replace("COUNT_IF(v > x)", "COUNT(*) FILTER (WHERE v > x)")
# Several columns are one row there, which is not NULL where one of them is.
DUCKDB = DUCKDB.replace(
    "COUNT(DISTINCT v, b)", "COUNT(DISTINCT (v, b)) FILTER (WHERE v IS NOT NULL AND b IS NOT NULL)"
).replace(
    "COUNT(DISTINCT s, b, v) FILTER (WHERE v > 2)",
    "COUNT(DISTINCT (s, b, v)) FILTER (WHERE v > 2 AND s IS NOT NULL AND b IS NOT NULL)",
)


def rows(count: int, seed: int) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)

    def one(ts: int) -> tuple[Any, ...]:
        values = (
            chance.choice(["a", "b", "c"]),
            chance.randrange(8),
            chance.uniform(-5, 5),
            Decimal(chance.randrange(-500, 500)) / 100,
            chance.choice(["", "x", "y", "zz"]),
            chance.random() < 0.6,
        )
        return (*(None if chance.random() < 0.15 else value for value in values), ts)

    # Every instant once, so that an order by it has no ties that engines may break as they like.
    return [one(ts) for ts in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_aggregates_of_a_window_are_those_of_duckdb(seed: int) -> None:
    names, size = ("k", "v", "x", "m", "s", "b", "ts"), 25
    types = (pa.string(), pa.int64(), pa.float64(), MONEY, pa.string(), pa.bool_(), pa.int64())
    columns = zip(*rows(120, seed), strict=True)
    arrays = [pa.array(column, dtype) for column, dtype in zip(columns, types, strict=True)]
    reading = pa.table(dict(zip(names, arrays, strict=True)))
    with headrace.connect(runner="inline") as db:
        db.stream("reading", reading, timestamp="ts")
        query = db.query(f"SELECT {QUERY} FROM reading WINDOW(RANGE {size}) GROUP BY k")
        db.run()
        for instant in (0, 1, 24, 60, 119, 130, 143):
            ours = query.snapshot(at=instant)
            found = [tuple(row.values()) for row in ours.to_pylist()]
            theirs = duckdb.execute(
                f"SELECT {DUCKDB} FROM reading WHERE ts <= {instant} AND ts > {instant - size} GROUP BY k"
            ).fetchall()
            assert len(found) == len(theirs)
            for one, other in zip(sorted(found, key=_first), sorted(theirs, key=_first), strict=True):
                pairs = zip(ours.column_names, one, other, strict=True)
                wrong = [pair for pair in pairs if not _same(*pair[1:])]
                assert not wrong, (instant, wrong)


def _first(row: tuple[Any, ...]) -> str:
    return str(row[0])


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, float) and math.isnan(theirs):
        # DuckDB's CORR of a column that does not vary is NaN; Spark's is NULL, and so is ours.
        return ours is None or math.isnan(ours)
    if isinstance(theirs, float) and ours is not None:
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    # An ARRAY of no values is NULL there, and empty in Spark.
    return bool(ours == ([] if theirs is None and isinstance(ours, list) else theirs))
