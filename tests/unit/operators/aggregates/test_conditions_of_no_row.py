"""Aggregates whose condition is true of no row for a while: they cost little, and say the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import headrace as hr
from headrace.operators.state import sum_columns

Row = tuple[int, float | None, int]
SIZE = 30
QUERY = f"""
CREATE STREAM s (k BIGINT, v BIGINT, x DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT k, COUNT(*) AS n, COUNT(*) FILTER (WHERE v > 5) AS some,
    SUM(x) FILTER (WHERE v > 5) AS x,
    SUM(v) FILTER (WHERE v > 5) AS v, AVG(x) FILTER (WHERE v > 5) AS a, VAR_POP(v) FILTER (WHERE v > 5) AS p,
    CAST(SUM(x) FILTER (WHERE v > 7) AS BIGINT) AS w
    FROM s [RANGE {SIZE}] GROUP BY k
"""


def answered(rows: Sequence[Row]) -> dict[str, float | None]:
    """The answer of one group of rows `(v, x, ts)`."""
    passing = [(v, x) for v, x, _ in rows if v > 5]
    known = [x for _, x in passing if x is not None]
    values = [v for v, _ in passing]
    high = [x for v, x in passing if v > 7 and x is not None]
    mean = sum(values) / len(values) if values else 0.0
    return {
        "n": len(rows),
        "some": len(passing),
        "x": math.fsum(known) if known else None,
        "v": sum(values) if values else None,
        "a": math.fsum(known) / len(known) if known else None,
        "p": sum((v - mean) ** 2 for v in values) / len(values) if values else None,
        "w": math.trunc(math.fsum(high)) if high else None,
    }


@pytest.mark.parametrize("each", [1, 7, 100])
@pytest.mark.parametrize(
    "value",
    [lambda at: 0, lambda at: at % 100 // 50 * 9, lambda at: 6 if 40 <= at < 90 else 3, lambda at: at % 9],
)
def test_answers_are_those_of_the_rows_that_pass(each: int, value: Callable[[int], int]) -> None:
    rows = [(value(at), None if at % 11 == 0 else at * 0.1 + 1e16 * (at % 4 == 0), at) for at in range(200)]
    with hr.connect(runner="inline", buckets=2) as db:
        db.execute(QUERY)
        db.start()
        for first in range(0, len(rows), each):
            db.push("s", [{"k": at % 2, "v": v, "x": x, "ts": at} for v, x, at in rows[first : first + each]])
        for instant in range(0, len(rows) - 1, 13):
            held = [row for row in rows if instant - SIZE < row[2] <= instant]
            for said in db["q"].snapshot(instant).to_pylist():
                expected = answered([row for row in held if row[2] % 2 == said["k"]])
                assert {name: said[name] for name in expected} == pytest.approx(expected), (
                    instant,
                    said["k"],
                )


def test_idle_columns_are_seen() -> None:
    for values, idle in (
        ([0, 0, 0], True),
        ([], True),
        ([0, 1, 0], False),
        ([0, -1], False),
        ([3, 0], False),
    ):
        assert sum_columns.is_idle(np.array(values, dtype=np.int64)) is idle
