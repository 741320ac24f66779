"""The three ways of PSoup (section 5, table 2) to answer a standing query when it is asked for.

A selection with interval predicates over a window of rows is asked for again and again. Nothing is kept but
the rows (NoMat), so that the question runs over all of them; its results are kept, and the window is applied
to them (PSoup-P); or the answer of the window is kept current (PSoup-C). Here these are a question over
`ROWS OF`, `snapshot(at, last=...)` of a query without a window, and `snapshot(at)` of one with a window.

    python benchmarks/papers/psoup.py [--window 32768]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import headrace as hr

COLUMNS = "abcd"
WAYS = ("NoMat", "PSoup-P", "PSoup-C")


def conditions(predicates: int) -> str:
    """A conjunction of intervals, each over a column of values from 0 to 255."""
    return " AND ".join(f"{name} >= 64 AND {name} < 192" for name in COLUMNS[:predicates])


def asked(window: int, predicates: int) -> tuple[dict[str, pa.Table], dict[str, float]]:
    """The answers of each way, and the seconds of a question in it."""
    draw = np.random.default_rng(1)
    count = window + window // 2
    rows = {name: draw.integers(0, 256, count) for name in COLUMNS} | {"ts": np.arange(count)}
    where, names = conditions(predicates), ", ".join(COLUMNS)
    with hr.connect(runner="inline") as db:
        columns = ", ".join(f"{name} BIGINT" for name in COLUMNS)
        db.execute(f"CREATE STREAM s ({columns}, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN {window + 1}")
        part = db.query(f"SELECT {names} FROM s WHERE {where}", name="part")
        current = db.query(f"SELECT {names} FROM s [RANGE {window}] WHERE {where}", name="current")
        db.start()
        for at in range(0, count, 4096):
            db.push("s", pa.table({name: column[at : at + 4096] for name, column in rows.items()}))
        now = count - 2
        question = f"SELECT {names} FROM ROWS OF s WHERE ts > {now - window} AND ts <= {now} AND {where}"
        ways: dict[str, Callable[[], pa.Table]] = {
            "NoMat": lambda: db.ask(question),
            "PSoup-P": lambda: part.snapshot(now, last=window),
            "PSoup-C": lambda: current.snapshot(now),
        }
        answers = {name: ways[name]() for name in WAYS}
        seconds = {name: min(_timed(ways[name]) for _ in range(5)) for name in WAYS}
    return answers, seconds


def _timed(ask: Callable[[], pa.Table]) -> float:
    begun = time.perf_counter()
    ask()
    return time.perf_counter() - begun


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--window", type=int, default=2**15)
    window = parser.parse_args().window
    print("predicates", *(f"{name:>10}" for name in WAYS), "  rows  (ms)")
    for predicates in (1, 2, 4):
        answers, seconds = asked(window, predicates)
        cells = (f"{1000 * seconds[name]:10.1f}" for name in WAYS)
        print(f"{predicates:10}", *cells, f"{answers['PSoup-C'].num_rows:7}", flush=True)


if __name__ == "__main__":
    main()
