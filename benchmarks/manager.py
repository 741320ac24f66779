"""A limit of memory that the manager keeps: an hour of application time, and what its decisions cost.

    python benchmarks/manager.py --queries 300 --decide 1000 5000

The hour: queries with windows within bounds arrive in the first twenty minutes, a burst of five times the
rows is from minute 30 to 40, and two thirds of the queries go at minute 50. Of every second minute it prints
the rows per second, the queries, the state that is measured, what was expected of it with full windows, the
limit, and f: how far from the smallest to the largest sizes windows can be. Beside them is the CPU time that
the manager takes after a commit, the median of the two minutes. Then the same for some thousand queries, each
with bounds of its own. In this process, without Spark.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa

from headrace import Database, connect
from headrace.runtime.driver.manager.manager import Manager

_STREAMS: Final = 10
_SECONDS: Final = 20
"""Between two pushes to all streams, in application time."""
_TIME: Final = pa.timestamp("us")
_COLUMNS: Final = "(ts TIMESTAMP, k BIGINT, v BIGINT) FROM push TIMESTAMP BY ts"
_RATE: Final = 2
"""Rows per second of a stream outside the burst."""


class Clocked:
    """Lets managers say what their decisions take."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        after = Manager.after

        def clocked(manager: Manager, *given: Any) -> Any:
            begun = time.thread_time()
            try:
                return after(manager, *given)
            finally:
                self.taken.append(time.thread_time() - begun)

        self.patched = patch.object(Manager, "after", clocked)

    def median(self) -> float:
        """Of what was taken since the last call (milliseconds of CPU)."""
        found, self.taken = self.taken, []
        return 1e3 * statistics.median(found) if found else 0.0


def _query(number: int, chance: random.Random) -> str:
    stream, other = chance.sample(range(_STREAMS), 2)
    smallest = chance.randrange(30, 90)
    window = f"WINDOW(RANGE MIN {smallest} SECONDS, MAX {smallest * chance.randrange(5, 10)} SECONDS)"
    match number % 10:
        case 0 | 1 | 2 | 3:
            return f"SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s{stream} {window} GROUP BY k"
        case 4 | 5 | 6:
            return f"SELECT DISTINCT k, v FROM s{stream} {window}"
        case _:
            return f"SELECT a.k, b.v FROM s{stream} {window} a JOIN s{other} [NOW] b ON a.v = b.v"


def _push(db: Database, second: int, rate: int, chance: random.Random) -> None:
    for stream in range(_STREAMS):
        rows = _SECONDS * rate
        table = pa.table(
            {
                "ts": pa.array(
                    [(second * 10**6 + row * 10**6 // rate) for row in range(rows)], pa.timestamp("us")
                ),
                "k": [chance.randrange(20) for _ in range(rows)],
                "v": [chance.randrange(5_000) for _ in range(rows)],
            }
        )
        db.push(f"s{stream}", table, wait=stream == _STREAMS - 1)


def _streams(db: Database) -> None:
    for stream in range(_STREAMS):
        db.execute(f"CREATE STREAM s{stream} {_COLUMNS}")
    union = " UNION ALL ".join(f"SELECT v FROM s{stream}" for stream in range(_STREAMS))
    db.execute(f"CREATE QUERY reading AS {union}")


def measure_hour(queries: int, limit: str) -> None:
    """Print an hour of application time."""
    chance, clocked, there = random.Random(7), Clocked(), list[int]()
    with clocked.patched, connect(runner="inline", memory_limit=limit, retain_epochs=20) as db:
        _streams(db)
        db.start()
        print(
            "minute  rows/s  queries    state  expected    limit     f  enlarged  shrunk  decision",
            flush=True,
        )
        steps: set[tuple[Any, ...]] = set()
        for second in range(0, 3600, _SECONDS):
            minute, rate = second // 60, _RATE * (5 if 1800 <= second < 2400 else 1)
            wanted = min(queries, queries * (second + _SECONDS) // 1200)
            if second == 3000:
                db.execute("; ".join(f"DROP QUERY q{number}" for number in there[: queries * 2 // 3]))
                there = there[queries * 2 // 3 :]
            elif second < 3000 and len(there) < wanted:
                new = range(len(there), wanted)
                db.execute("; ".join(f"CREATE QUERY q{one} AS {_query(one, chance)}" for one in new))
                there += new
            _push(db, second, rate, chance)
            if second % 120 == 100:
                known = {(one, step) for one, found in db.status.tunings.items() for step in found.steps}
                _tell(db, minute + 1, rate * _STREAMS, len(there), clocked, known - steps)
                steps |= known
        print(f"{len(db.status.tunings)} windows have changed, up to {_most(db)} times each")


def _most(db: Database) -> int:
    return max((len(found.steps) for found in db.status.tunings.values()), default=0)


def _tell(
    db: Database, minute: int, rows: int, queries: int, clocked: Clocked, changes: set[tuple[Any, ...]]
) -> None:
    found = db.status.managed
    assert found is not None
    assert found.limit is not None
    longer = sum(window.window.why.startswith("enlarged") for window in found.windows)
    shorter = sum(window.window.why.startswith("shrunk") for window in found.windows)
    print(
        f"{minute:>6}  {rows:>6}  {queries:>7}  {found.used / 1e6:>4.1f} MB  {found.expected / 1e6:>5.1f} MB"
        f"  {found.limit / 1e6:>4.1f} MB  {found.fraction:.2f}  {longer:>8}  {shorter:>6}"
        f"  {clocked.median():>5.1f} ms  {len(changes)} changes",
        flush=True,
    )


def measure_decision(queries: int) -> None:
    """Print what a decision takes beside some queries, each with bounds of its own."""
    chance, clocked = random.Random(7), Clocked()
    with clocked.patched, connect(runner="inline", memory_limit="8 GB", retain_epochs=3) as db:
        _streams(db)
        for number in range(queries):
            low = 60 + number
            stream = number % _STREAMS
            db.execute(
                f"CREATE QUERY q{number} AS SELECT k, COUNT(*) AS n FROM s{stream} "
                f"WINDOW(RANGE MIN {low} SECONDS, MAX {10 * low} SECONDS) GROUP BY k"
            )
        db.start()
        begun = time.process_time()
        epochs = 5
        for epoch in range(epochs):
            _push(db, epoch * _SECONDS, 1, chance)
        took = (time.process_time() - begun) / epochs
        decision = f"{clocked.median():6.1f} ms of CPU for a decision"
        print(f"{queries:>6,} queries: {decision}, {took:.1f} s for an epoch", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", type=int, default=300, help="so many in the hour; 0 for no hour")
    parser.add_argument("--limit", default="24 MB", help="the limit of memory in the hour")
    parser.add_argument("--decide", type=int, nargs="*", default=[], help="numbers of queries for decisions")
    given = parser.parse_args(arguments)
    if given.queries:
        measure_hour(given.queries, given.limit)
    for queries in given.decide:
        measure_decision(queries)


if __name__ == "__main__":
    main()
