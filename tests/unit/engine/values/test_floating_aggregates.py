"""Aggregates of doubles over windows: values that left leave nothing behind, and history has no noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import pyarrow as pa
import pytest

import headrace

Rows = list[tuple[int, float]]

SENTINELS = [(1, 1e30), (2, 20.75), (3, 3.0)]
NEAR = float(((Fraction(0.3) - Fraction(0.21)) / 2) ** 2)
SPREAD = ((20.75 - 3.0) / 2) ** 2


def answers(select: str, rows: Rows, epoch_rows: int = 500_000) -> list[tuple[object, ...]]:
    """The history of a query over a stream of ts and v."""
    columns = {"ts": pa.array([ts for ts, _ in rows]), "v": pa.array([v for _, v in rows])}
    with headrace.connect(runner="inline", epoch_rows=epoch_rows) as db:
        db.stream("s", pa.table(columns), timestamp="ts")
        query = db.query(select)
        db.run()
        return [tuple(row.values()) for row in query.history().to_pylist()]


def value_at(history: list[tuple[object, ...]], instant: int) -> tuple[object, ...]:
    """The values of the one row at an instant; valid_from and valid_to come last."""
    (found,) = [row[:-2] for row in history if row[-2] <= instant < (row[-1] or math.inf)]  # type: ignore[operator]
    return found


@pytest.mark.parametrize("epoch_rows", [1, 500_000])
@pytest.mark.parametrize(
    ("select", "rows", "expected"),
    [
        (
            "SELECT SUM(v), AVG(v) FROM s [RANGE 3]",
            [(1, 1.7e308), (2, 1.7e308), (4, 4.0)],
            {1: (1.7e308, 1.7e308), 2: (math.inf, math.inf), 4: (1.7e308, 8.5e307), 5: (4.0, 4.0)},
        ),
        (
            "SELECT SUM(v) FROM s [RANGE 10 SLIDE 10]",
            [(1, 1.7e308), (2, 1.7e308), (12, 4.0), (13, 5.0)],
            {9: (math.inf,), 19: (9.0,)},
        ),
        (
            "SELECT SUM(v), AVG(v) FROM s [RANGE 3]",
            [(1, 1e40), (2, 1e20), (3, 1.0), (5, 4.0)],
            {1: (1e40, 1e40), 5: (5.0, 2.5), 6: (4.0, 4.0), 7: (4.0, 4.0)},
        ),
        (
            "SELECT SUM(v) FROM s [RANGE 4]",
            [(1, 1e90), (2, 1e60), (3, 1e30), (4, 1.0)],
            {4: (1e90,), 5: (1e60,), 6: (1e30,), 7: (1.0,)},
        ),
        (
            "SELECT SUM(v) FROM s [RANGE 4]",
            [(1, value) for value in (1e60, 1e30, 1.0, -1e60, -1e30)],
            {1: (1.0,), 4: (1.0,)},
        ),
        (
            "SELECT VAR_POP(v) FROM s [RANGE 2]",
            [(1, 1e15), (2, 0.21), (3, 0.3)],
            {1: (0.0,), 3: (NEAR,), 4: (0.0,)},
        ),
        ("SELECT VAR_POP(v), STDDEV_POP(v) FROM s [RANGE 2]", SENTINELS, {3: (SPREAD, 8.875)}),
        ("SELECT VAR_POP(v), STDDEV_POP(v) FROM s [ROWS 2]", SENTINELS, {3: (SPREAD, 8.875)}),
        (
            "SELECT VAR_POP(v) OVER (ORDER BY ts ROWS 1 PRECEDING) FROM s",
            SENTINELS,
            {3: (SPREAD,)},
        ),
        (
            "SELECT VAR_POP(v) FROM s [RANGE 10 SLIDE 10]",
            [(1, 1e30), (12, 20.75), (13, 3.0)],
            {9: (0.0,), 19: (SPREAD,)},
        ),
        (
            "SELECT COVAR_POP(w, w) FROM (SELECT ts, CAST(v AS BIGINT) AS w FROM s) [RANGE 1]",
            [(1, 1e17), (2, 1.0)],
            {1: (0.0,), 2: (0.0,)},
        ),
        (
            "SELECT CORR(v, v - 1e15), CORR(v, 1e15 - v), CORR(v, v - v) FROM s [RANGE 5]",
            [(1, 1e15 + 1), (1, 1e15 + 2), (1, 1e15 + 3)],
            {1: (1.0, -1.0, None)},
        ),
        (
            "SELECT VAR_POP(v), STDDEV_POP(v) FROM s [RANGE 1]",
            [(1, 1e200), (1, -1e200), (2, 7.0)],
            {1: (math.inf, 1e200), 2: (0.0, 0.0)},
        ),
        (
            "SELECT SUM(v), VARIANCE(v) FROM s [RANGE 2]",
            [(1, math.inf), (2, -math.inf), (3, 1.0), (4, 3.0)],
            {1: (math.inf, None), 2: (math.nan, math.nan), 3: (-math.inf, math.nan), 4: (4.0, 2.0)},
        ),
    ],
)  # fmt: skip
def test_each_answer_is_that_of_the_rows_that_are_valid(
    select: str, rows: Rows, expected: Mapping[int, tuple[float | None, ...]], epoch_rows: int
) -> None:
    history = answers(select, rows, epoch_rows)
    for instant, values in expected.items():
        found = value_at(history, instant)
        assert repr(found) == repr(values), instant


@pytest.mark.parametrize(
    ("function", "values"),
    [
        ("SUM", [1e30, -1e30, 0.1, 0.7, 1 / 3]),
        ("AVG", [1e30, 0.7, -1e30, 0.1, 1 / 3]),
        ("VAR_POP", [1e10 + 1 / 3, 1e10 + 0.7, 1e10 - 0.625, 1e10 + 7, 1e10]),
    ],
)
def test_histories_do_not_split_where_the_exact_value_stays(function: str, values: list[float]) -> None:
    # From 5 on, each value leaves when an equal one comes.
    rows = [(instant, values[instant % 5]) for instant in range(10)]
    history = answers(f"SELECT {function}(v) FROM s [RANGE 5]", rows)
    ((_, start, end),) = [row for row in history if row[1] <= 7 < row[2]]  # type: ignore[operator]
    assert start <= 4  # type: ignore[operator]
    assert end >= 10  # type: ignore[operator]
