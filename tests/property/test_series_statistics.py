"""Statistics of series beside pandas and DuckDB, engines of other people."""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import headrace as hr

REGRESSIONS = ("AVGX", "AVGY", "COUNT", "INTERCEPT", "R2", "SLOPE", "SXX", "SXY", "SYY")


def rows_of(seed: int, *, gaps: bool = True) -> pa.Table:
    """Values of two series, one of which follows the other, in order of time."""
    draw = random.Random(seed)
    ts = sorted(draw.sample(range(200), 80))
    x = [draw.gauss(100, 3) for _ in ts]
    y: list[float | None] = [
        None if gaps and draw.random() < 0.1 else 2 * value - draw.gauss(0, 2) for value in x
    ]
    k = [draw.choice("ab") for _ in ts]
    return pa.table({"ts": ts, "k": k, "x": x, "y": y})


def answer(query: str, rows: pa.Table) -> list[dict[str, Any]]:
    """The content at the last instant."""
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts")
        asked = db.query(query)
        db.run()
        return list(asked.snapshot(rows["ts"].to_pylist()[-1]).to_pylist())


@pytest.mark.parametrize("seed", range(3))
def test_lines_are_those_of_duckdb(seed: int) -> None:
    rows = rows_of(seed)
    listed = ", ".join(f"REGR_{what}(y, x) AS {what}" for what in REGRESSIONS)
    ours = answer(f"SELECT k, {listed} FROM s [RANGE UNBOUNDED] GROUP BY k", rows)
    found = duckdb.sql(f"SELECT k, {listed} FROM rows GROUP BY k")
    assert found is not None
    theirs = found.to_arrow_table().to_pylist()
    by_key = {row.pop("k"): row for row in theirs}
    assert len(ours) == 2
    for row in ours:
        expected = by_key[row.pop("k")]
        assert row == pytest.approx(expected, rel=1e-9)


def test_lines_without_a_slope() -> None:
    """One point, points above each other, and level ones: as SQL:2003 has them."""
    listed = ", ".join(
        f"REGR_{what}(y, x) AS {what}" for what in ("COUNT", "SLOPE", "INTERCEPT", "R2", "SXX")
    )
    for x, y, expected in (
        ([1.0], [5.0], [1, None, None, None, 0.0]),
        ([0.1, 0.1, 0.1], [1.0, 2.0, 4.0], [3, None, None, None, 0.0]),
        ([1.0, 2.0], [0.1, 0.1], [2, 0.0, 0.1, 1.0, 0.5]),
        ([None, 2.0], [0.1, None], [0, None, None, None, None]),
    ):
        columns = {"x": pa.array(x, pa.float64()), "y": pa.array(y, pa.float64())}
        rows = pa.table({"ts": list(range(len(x))), **columns})
        (found,) = answer(f"SELECT {listed} FROM s [RANGE UNBOUNDED]", rows)
        assert list(found.values()) == expected


@pytest.mark.parametrize("seed", range(3))
def test_sequences_are_those_of_pandas(seed: int) -> None:
    rows = rows_of(seed, gaps=False)
    found = answer(
        """
        SELECT k, AUTOCORR(y, 1 ORDER BY ts) AS one, AUTOCORR(y, 7 ORDER BY ts) AS week,
          EWMA(y, 0.2 ORDER BY ts) AS mean, EWM_STDDEV(y, 0.2 ORDER BY ts) AS deviation,
          EWMA(y, 1 ORDER BY ts DESC) AS first, AUTOCORR(y, 79 ORDER BY ts) AS never
        FROM s [RANGE UNBOUNDED] GROUP BY k
        """,
        rows,
    )
    assert len(found) == 2
    frame = rows.to_pandas()
    for row in found:
        y = frame[frame.k == row["k"]].y
        assert row["one"] == pytest.approx(y.autocorr(1), rel=1e-9)
        assert row["week"] == pytest.approx(y.autocorr(7), rel=1e-9)
        assert row["mean"] == pytest.approx(y.ewm(alpha=0.2).mean().iloc[-1], rel=1e-12)
        assert row["deviation"] == pytest.approx(y.ewm(alpha=0.2).std().iloc[-1], rel=1e-9)
        assert (row["first"], row["never"]) == (y.iloc[0], None)


def test_every_row_beside_those_before_it() -> None:
    """A running mean, a z-score and the change since a season before, with OVER, as in pandas."""
    rows = rows_of(5, gaps=False)
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts")
        query = db.query(
            """
            SELECT ts, EWMA(y, 0.3 ORDER BY ts) OVER (ORDER BY ts) AS mean,
              (y - AVG(y) OVER past) / STDDEV(y) OVER past AS score,
              y - LAG(y, 12) OVER (ORDER BY ts) AS season
            FROM s WINDOW past AS (ORDER BY ts ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING)
            """
        )
        db.run()
        found = query.stream().to_pandas().sort_values("ts")
    y = pd.Series(rows["y"].to_pylist())
    before = y.shift(1).rolling(20, min_periods=2)
    for ours, theirs in (
        (found["mean"], y.ewm(alpha=0.3).mean()),
        (found["score"], (y - before.mean()) / before.std()),
        (found["season"], y - y.shift(12)),
    ):
        assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-9, nan_ok=True)


def test_what_has_no_statistic() -> None:
    """A single value, values that are all the same, and those that are not finite."""
    query = """
        SELECT EWMA(x, 0.5 ORDER BY ts) AS mean, EWM_STDDEV(x, 0.5 ORDER BY ts) AS deviation,
          AUTOCORR(x, 1 ORDER BY ts) AS self FROM s [RANGE UNBOUNDED]
    """
    for values, expected in (
        ([3.0], (3.0, None, None)),
        ([0.1, 0.1, 0.1, 0.1], (0.1, 0.0, None)),
        ([1.0, math.inf, 2.0], (math.nan, math.nan, math.nan)),
        ([1.0, 2.0], (5 / 3, math.sqrt(0.5), None)),
    ):
        (found,) = answer(query, pa.table({"ts": list(range(len(values))), "x": values}))
        assert tuple(found.values()) == pytest.approx(expected, nan_ok=True)
