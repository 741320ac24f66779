"""Many queries: what defining one takes, and how fast a hundred, a thousand and ten thousand of them run.

    python benchmarks/many_queries.py --folder /tmp/bids --numbers 100 1000 10000
    python benchmarks/many_queries.py --numbers --idle 0 60 200 500 --mix 100 300

Queries of one shape differ in a constant; those of many shapes in keys, aggregates, windows and filters. All
runs are in this process, without Spark, so that CPU seconds can be compared on a machine that is busy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bids import EVENTS, prepare
from headrace import Database, connect
from idle_queries import measure_idle, measure_mix

_ALIKE: Final = (
    "SELECT COUNT(*) AS n FROM bid WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS) WHERE MOD(auction, {}) = {}"
)


def alike(number: int) -> list[str]:
    """So many queries that differ in a constant."""
    return [_ALIKE.format(number, place) for place in range(number)]


def shapes(*, filtered: bool) -> list[str]:
    """A hundred queries of five keys, four aggregates and five windows, by turns with four filters."""
    keys = ("auction", "bidder", "MOD(auction, 100)", "MOD(bidder, 1000)", "MOD(auction + bidder, 50)")
    values = ("COUNT(*)", "SUM(price)", "MAX(price)", "AVG(price)")
    filters = ("price > 100", "price < 5000", "auction > 0", "bidder > 0")
    found = [
        (f"SELECT {key} AS k, {value} AS v FROM bid WINDOW(RANGE {size} SECONDS SLIDE {size} SECONDS)", key)
        for key in keys
        for value in values
        for size in (5, 10, 20, 30, 60)
    ]
    return [
        f"{text} WHERE {filters[place % 4]} GROUP BY {key}" if filtered else f"{text} GROUP BY {key}"
        for place, (text, key) in enumerate(found)
    ]


def measure(folder: Path, name: str, queries: Sequence[str], runs: int) -> float:
    """Print what defining some queries takes, and how fast they run; CPU seconds include the start.

    Returns:
        The CPU seconds of defining and running them, the median of the runs.
    """
    taken = []
    for run in range(runs + 1):
        with connect(runner="inline", keep_results=False) as db:
            defined = _define(db, folder, queries)
            begun = time.process_time()
            summary = db.run()
            used = time.process_time() - begun
        if run:
            rate = summary.rows / summary.seconds / 1e6
            print(
                f"{name:20} define {defined * 1e3:6.3f} ms each  {rate:6.3f} M/s  "
                f"cpu {used / summary.rows * 1e6:6.2f} s/M  emitted {sum(summary.emitted.values()):>10,}",
                flush=True,
            )
            taken.append(defined * len(queries) + used)
    return median(taken)


def _define(db: Database, folder: Path, queries: Sequence[str]) -> float:
    """Define queries; CPU seconds for each."""
    db.execute(f"CREATE STREAM bid FROM parquet OPTIONS (path='{folder / 'bid'}') TIMESTAMP BY ts")
    begun = time.process_time()
    for query in queries:
        db.query(query)
    return (time.process_time() - begun) / len(queries)


def main() -> None:
    """Measure queries of one shape in the numbers asked for, and those of a hundred shapes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the bids are, or are written to")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--numbers", nargs="*", type=int, default=[100, 1_000, 10_000])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--idle", nargs="*", type=int, default=[], help="a push beside so many idle joins")
    parser.add_argument("--mix", nargs="*", type=int, default=[], help="a push to all streams of so many")
    parser.add_argument("--epochs", type=int, default=20, help="of how many epochs a push is the median")
    options = parser.parse_args()
    for joins in options.idle:
        measure_idle(joins, options.epochs)
    for number in options.mix:
        measure_mix(number, options.epochs)
    if not options.numbers:
        return
    if options.folder is None:
        parser.error("--numbers needs --folder")
    prepare(options.folder, options.events)
    for number in options.numbers:
        measure(options.folder, f"{number:,} alike", alike(number), options.runs)
    for filtered, name in ((False, "shapes"), (True, "shapes, filtered")):
        found = shapes(filtered=filtered)
        # Of the ten each differs from the one before in its window, its aggregate and mostly its key.
        few = measure(options.folder, f"10 {name}", found[::11], options.runs)
        many = measure(options.folder, f"100 {name}", found, options.runs)
        print(f"100 {name}, and their definitions, take {many / few:.1f} times the CPU of 10", flush=True)


if __name__ == "__main__":
    main()
