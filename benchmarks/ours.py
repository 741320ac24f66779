"""Headrace under the clock: rates, the price of durability, recovery, small epochs."""

from __future__ import annotations

import itertools
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from headrace import Database, Progress, Summary, connect

SLIDING = (
    "SELECT auction, COUNT(*) AS n, SUM(price) AS total FROM bid WINDOW(RANGE 60 SECONDS) GROUP BY auction"
)
TUMBLING = (
    "SELECT auction, COUNT(*) AS n, SUM(price) AS total, MAX(price) AS top "
    "FROM bid WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS) GROUP BY auction"
)


@dataclass(frozen=True)
class Measured:
    """What runs of one query took.

    Attributes:
        rows: input rows of a run.
        seconds: of each counted run, from the start of the first epoch to the end of the last.
        emitted: result elements of a run.
        state_rows, state_bytes: the most state held after any epoch.
    """

    rows: int
    seconds: tuple[float, ...]
    emitted: int
    state_rows: int
    state_bytes: int

    @property
    def rate(self) -> float:
        """Input rows per second, in the median of the runs."""
        return self.rows / statistics.median(self.seconds)


def measure(
    spark: SparkSession,
    bids: Path,
    query: str,
    runs: int,
    *,
    epoch_rows: int = 500_000,
    durable: bool = False,
) -> Measured:
    """Run a query over a folder of Parquet bids, once to warm up and then `runs` times.

    Results are computed and counted and written nowhere, as with `--format null`.
    """
    summaries = [_run(spark, bids, query, epoch_rows, durable) for _ in range(runs + 1)][1:]
    last = summaries[-1]
    seconds = tuple(summary.seconds for summary in summaries)
    return Measured(last.rows, seconds, last.emitted["q"], last.state_rows_peak, last.state_bytes_peak)


def small_epochs(spark: SparkSession, epochs: int, *, durable: bool) -> float:
    """The median seconds of an epoch of 1,000 rows of a query with one level; warm-up epochs are left out."""
    ends: list[float] = []
    rows = 1000 * epochs

    def note(progress: Progress) -> None:
        ends.append(time.perf_counter())

    with TemporaryDirectory() as folder, _database(spark, folder, 1000, durable) as db:
        db.execute(
            f"CREATE STREAM bid FROM nexmark OPTIONS (events={rows * 50 // 46}, seed=1) TIMESTAMP BY ts"
        )
        db.query(SLIDING, name="q")
        db.run(note)
    steps = [later - earlier for earlier, later in itertools.pairwise(ends)]
    return statistics.median(steps[len(steps) // 4 :])


def recovery(spark: SparkSession, live_rows: int) -> tuple[float, float, int]:
    """How long a durable run takes to go on: seconds from start() to the first new commit.

    The state is that of a sliding sum whose window holds `live_rows` bids.

    Returns:
        The seconds, the median seconds of an ordinary small epoch after it, and the rows of state.
    """
    events = live_rows * 11 // 10 * 50 // 46

    def stop_when_full(progress: Progress) -> None:
        if progress.rows >= live_rows:
            raise KeyboardInterrupt

    ends: list[float] = []
    with TemporaryDirectory() as folder:
        with _database(spark, folder, live_rows // 20, durable=True) as db, suppress(KeyboardInterrupt):
            _unbounded(db, events)
            db.run(stop_when_full)
        started = time.perf_counter()
        with _database(spark, folder, 2_000, durable=True) as db:
            _unbounded(db, events)
            rows = db.run(lambda progress: ends.append(time.perf_counter())).state_rows_peak
    steps = [later - earlier for earlier, later in itertools.pairwise(ends)]
    return ends[0] - started, statistics.median(steps), rows


def _unbounded(db: Database, events: int) -> None:
    db.execute(
        f"CREATE STREAM bid FROM nexmark OPTIONS (events={events}, seed=1, rate=1000000000) TIMESTAMP BY ts"
    )
    db.query(SLIDING, name="q")


def _run(spark: SparkSession, bids: Path, query: str, epoch_rows: int, durable: bool) -> Summary:
    with TemporaryDirectory() as folder, _database(spark, folder, epoch_rows, durable) as db:
        db.execute(f"CREATE STREAM bid FROM parquet OPTIONS (path='{bids}') TIMESTAMP BY ts")
        db.query(query, name="q")
        return db.run()


def _database(spark: SparkSession, folder: str, epoch_rows: int, durable: bool) -> Database:
    storage = Path(folder, "store") if durable else None
    return connect(spark=spark, storage=storage, epoch_rows=epoch_rows, keep_results=False)
