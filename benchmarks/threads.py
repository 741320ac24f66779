"""Queries in one process, by one thread and by all cores, in turn.

    python benchmarks/threads.py --rows 3000000 --runs 3

Prints the medians of seconds, the processor's seconds, and how many times as fast all cores are.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import headrace as hr
from headrace.engine.run.machine import machine_cores
from headrace.runtime.tasks.heap import keep_freed_memory

FILES: Final = 12
QUERIES: Final = {
    "all columns": "SELECT auction, bidder, price, ts FROM bid",
    "filter": "SELECT auction, price * 2 AS p FROM bid WHERE auction % 7 = 0",
    "sliding": "SELECT auction, COUNT(*) AS n, SUM(price) AS s FROM bid [RANGE 5 SECONDS] GROUP BY auction",
    "tumbling": "SELECT auction, COUNT(*) AS n, SUM(price) AS s, MAX(price) AS m "
    "FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY auction",
    "distinct": "SELECT auction, COUNT(DISTINCT bidder) AS n "
    "FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY auction",
    "join": "SELECT a.auction, b.price FROM bid [RANGE 1 SECOND] a JOIN bid [RANGE 1 SECOND] b "
    "ON a.auction = b.auction AND a.bidder = b.bidder",
    "over": "SELECT auction, SUM(price) OVER "
    "(PARTITION BY auction ORDER BY ts RANGE INTERVAL '10' SECOND PRECEDING) AS s FROM bid",
}


def prepare(folder: Path, rows: int) -> None:
    """Write bids of 50,000 auctions and 100,000 bidders, one every 20 microseconds."""
    rng = np.random.default_rng(1)
    for number in range(FILES):
        first, last = rows * number // FILES, rows * (number + 1) // FILES
        count = last - first
        table = pa.table(
            {
                "auction": rng.integers(0, 50_000, count),
                "bidder": rng.integers(0, 100_000, count),
                "price": rng.integers(1, 10_000, count),
                "ts": pa.array(np.arange(first, last) * 20, pa.timestamp("us")),
            }
        )
        pq.write_table(table, folder / f"{number:02}.parquet")


def run(text: str, folder: Path, threads: int) -> tuple[float, float]:
    """The seconds of a run, and those of the processor."""
    with hr.connect(runner="inline", threads=threads, keep_results=False, epoch_rows=1_000_000) as db:
        db.execute(f"CREATE STREAM bid FROM parquet OPTIONS (path '{folder}') TIMESTAMP BY ts")
        db.execute(f"CREATE QUERY q AS {text}")
        begun, worked = time.perf_counter(), time.process_time()
        db.run()
        return time.perf_counter() - begun, time.process_time() - worked


def main() -> None:
    """Measure the queries one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=list(QUERIES))
    options = parser.parse_args()
    keep_freed_memory()
    counts = (1, machine_cores())
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options.rows)
        for name in options.only:
            for threads in counts:
                run(QUERIES[name], Path(folder), threads)
            text = QUERIES[name]
            turns = [[run(text, Path(folder), threads) for threads in counts] for _ in range(options.runs)]
            alone, together = zip(*turns, strict=True)
            seconds = [median(one for one, _ in part) for part in (alone, together)]
            worked = [median(one for _, one in part) for part in (alone, together)]
            figures = "  ".join(
                f"{threads} threads {took:6.2f} s, cpu {cpu:6.2f}"
                for threads, took, cpu in zip(counts, seconds, worked, strict=True)
            )
            print(f"{name:12} {figures}  {seconds[0] / seconds[1]:.2f} times as fast", flush=True)


if __name__ == "__main__":
    main()
