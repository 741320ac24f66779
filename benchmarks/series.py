"""All pairs of many series: the time of one slide, beside numpy's matrix of correlations of the same window.

Every series has a value at each instant, and the window holds 60 of them. Once it is full, the epochs that
each bring one instant more are timed; so is numpy, which is given the values of the window as one matrix.

    python benchmarks/series.py [--series 1000 4000 10000] [--walks] [--gaps 0.02] [--slides 3] [--lag 0]

Statistics of each series over five windows at once, beside pandas' groups of the same rows, and gaps that
are filled:

    python benchmarks/series.py --of statistics filled [--series 1000 10000 100000]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import numpy as np
import pyarrow as pa

import headrace as hr

WINDOW = 60
THRESHOLD = 0.9


def values_of(series: int, instants: int, walks: bool, seed: int = 7) -> np.ndarray:
    """Noise, or random walks, of which a hundredth follow a common one; float64[instants, series]."""
    draw = np.random.default_rng(seed)
    steps = draw.normal(size=(instants, series))
    common = draw.normal(size=instants)
    followers = max(2, series // 100)
    steps[:, :followers] = common[:, None] + 0.2 * steps[:, :followers]
    return np.cumsum(steps, axis=0) if walks else steps


def rows_of(values: np.ndarray, instant: int, gaps: float, draw: np.random.Generator) -> pa.Table:
    """The rows of one instant, without the share of them that is missing."""
    kept = np.flatnonzero(draw.random(values.shape[1]) >= gaps)
    names = pa.array([f"sensor {number}" for number in kept.tolist()])
    return pa.table(
        {"device": names, "value": values[instant, kept], "ts": np.full(len(kept), instant, dtype=np.int64)}
    )


def by_numpy(values: np.ndarray) -> int:
    """How many pairs numpy finds; it needs the whole matrix at once."""
    found = np.corrcoef(values.T)
    return int((np.triu(found, 1) > THRESHOLD).sum())


def measure(series: int, walks: bool, gaps: float, slides: int, lag: int) -> None:
    """Print what a slide takes."""
    draw, values = np.random.default_rng(1), values_of(series, WINDOW + slides + 1, walks)
    db = hr.connect(runner="inline")
    db.execute("CREATE STREAM reading (device VARCHAR, value DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts")
    lags = f" LAG UP TO {lag}" if lag else ""
    fewest = WINDOW - lag - int(WINDOW * gaps * 5)
    query = db.query(
        f"SELECT * FROM CORRELATED PAIRS OF (SELECT device, value FROM reading) "
        f"OVER (RANGE {WINDOW} SLIDE 1) ABOVE {THRESHOLD}{lags} AT LEAST {fewest} VALUES"
    )
    db.start()
    tables = [rows_of(values, instant, gaps, draw) for instant in range(len(values))]
    db.push("reading", pa.concat_tables(tables[:WINDOW]))
    seconds, clock = [], []
    for table in tables[WINDOW : WINDOW + slides]:
        cpu, begun = time.process_time(), time.perf_counter()
        db.push("reading", table)
        seconds.append(time.process_time() - cpu)
        clock.append(time.perf_counter() - begun)
    pairs = len(query.snapshot(WINDOW + slides - 2))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    cpu = time.process_time()
    expected = by_numpy(values[slides - 1 : WINDOW + slides - 1]) if not gaps and not lag else None
    peer = time.process_time() - cpu
    ratio = statistics.median(seconds) / peer
    beside = f"; numpy {peer:.2f} s and {expected} pairs, ratio {ratio:.2f}" if expected is not None else ""
    print(
        f"{series:>6} series, {pairs} pairs: a slide takes {statistics.median(seconds):.2f} s CPU, "
        f"{statistics.median(clock):.2f} s by the clock, with {most:.2f} GB{beside}",
        flush=True,
    )
    db.close()


WINDOWS = (2, 3, 5, 8, 10)
"""Of statistics, in slides, in each of which every series has a row."""
STATISTICS = {
    "means": "AVG(value) AS mean",
    "means and deviations": "AVG(value) AS mean, STDDEV(value) AS deviation",
    "means, deviations and slopes": "AVG(value) AS mean, STDDEV(value) AS deviation, "
    "REGR_SLOPE(value, ts) AS slope",
}


def statistics_of(series: int, slides: int) -> None:
    """Print what 100,000 rows take, in epochs with a row of each series, once all windows are full."""
    for what, listed in STATISTICS.items():
        windows = "; ".join(
            f"CREATE QUERY w{size} AS SELECT device, {listed} FROM reading [RANGE {size} SLIDE 1] "
            "GROUP BY device"
            for size in WINDOWS
        )
        seconds, tables = _pushed(series, slides, windows)
        cpu = time.process_time()
        for size in WINDOWS:
            grouped = pa.concat_tables(tables[-size:]).to_pandas().groupby("device").value
            grouped.agg(["mean", "std"] if "deviations" in what else ["mean"])
        peer = time.process_time() - cpu
        ours = statistics.median(seconds)
        beside = "" if "slopes" in what else f"; pandas {peer:.2f} s, ratio {ours / peer:.2f}"
        print(
            f"{series:>6} series, {what} over {len(WINDOWS)} windows: a slide takes {ours:.2f} s CPU, "
            f"{ours / series * 1e5:.2f} s for 100,000 rows{beside}",
            flush=True,
        )


def filled_of(series: int, slides: int) -> None:
    """Print what a step takes of which every series but a tenth has a row, by what fills the gaps."""
    for filling in ("LAST", "LINEAR", "NULL"):
        query = (
            "CREATE QUERY filled AS SELECT COUNT(*) AS n FROM GAP_FILL(TABLE reading PARTITION BY device, "
            f"DESCRIPTOR(ts), 1, 5, '{filling}') [RANGE 1 SLIDE 1]"
        )
        seconds, _ = _pushed(series, slides, query, gaps=0.1)
        ours = statistics.median(seconds)
        print(
            f"{series:>6} series, gaps filled with {filling}: a step takes {ours:.2f} s CPU, "
            f"{ours / series * 1e5:.2f} s for 100,000 series",
            flush=True,
        )


def _pushed(series: int, slides: int, queries: str, gaps: float = 0.0) -> tuple[list[float], list[pa.Table]]:
    """The seconds of processor time of each slide once windows are full, and the rows of all."""
    count = max(WINDOWS) + slides + 1
    draw, values = np.random.default_rng(1), values_of(series, count, walks=False)
    tables = [rows_of(values, instant, gaps, draw) for instant in range(count)]
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM reading (device VARCHAR, value DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts"
        )
        db.execute(queries)
        db.start()
        for table in tables[:-slides]:
            db.push("reading", table)
        seconds = []
        for table in tables[-slides:]:
            cpu = time.process_time()
            db.push("reading", table)
            seconds.append(time.process_time() - cpu)
    return seconds, tables


def main() -> None:
    """Measure each number of series that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, nargs="*", default=[1000, 4000, 10000])
    parser.add_argument(
        "--walks", action="store_true", help="random walks, of which many pairs are correlated"
    )
    parser.add_argument("--gaps", type=float, default=0.0)
    parser.add_argument("--slides", type=int, default=3)
    parser.add_argument("--lag", type=int, default=0)
    kinds = ("pairs", "statistics", "filled")
    parser.add_argument("--of", nargs="*", choices=kinds, default=["pairs"], help="what is measured")
    asked = parser.parse_args()
    for series in asked.series:
        if "pairs" in asked.of:
            measure(series, asked.walks, asked.gaps, asked.slides, asked.lag)
        if "statistics" in asked.of:
            statistics_of(series, asked.slides)
        if "filled" in asked.of:
            filled_of(series, asked.slides)


if __name__ == "__main__":
    main()
