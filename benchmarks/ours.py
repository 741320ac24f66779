"""Headrace under the clock: rates, the price of durability, recovery, small epochs."""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bids import auctions_of
from headrace import Database, Progress, Summary, connect
from headrace.runtime.spark.startup.ahead import session_settings
from processes import Usage, forget_peaks

PROJECT = "SELECT auction, price * 0.908 AS euro, bidder FROM bid WHERE price > 100"
JOIN = "SELECT auction, price, seller FROM bid [NOW], auction WINDOW(RANGE 60 SECONDS) a WHERE auction = a.id"
ONE_OF = (
    "SELECT COUNT(*) AS n FROM bid WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS) WHERE MOD(auction, {0}) = {1}"
)
SLIDING = (
    "SELECT auction, COUNT(*) AS n, SUM(price) AS total FROM bid WINDOW(RANGE 60 SECONDS) GROUP BY auction"
)
SLIDING_DOUBLES = SLIDING.replace("SUM(price)", "SUM(price * 0.908E0)")
DEVIATIONS = (
    "SELECT auction, STDDEV(price * 0.908E0) AS spread FROM bid WINDOW(RANGE 60 SECONDS) GROUP BY auction"
)
TUMBLING = (
    "SELECT auction, COUNT(*) AS n, SUM(price) AS total, MAX(price) AS top "
    "FROM bid WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS) GROUP BY auction"
)


EXTREMES = (
    "SELECT auction, MIN(price) AS low, MAX(price) AS top FROM bid WINDOW(RANGE 60 SECONDS) GROUP BY auction"
)
LAST_TEN = (
    "SELECT auction, COUNT(*) AS n, SUM(price) AS total "
    "FROM bid WINDOW(PARTITION BY auction ROWS 10) GROUP BY auction"
)
HIGHEST = "SELECT auction, price FROM bid WINDOW(RANGE 60 SECONDS) ORDER BY price DESC LIMIT 10"
HIGHEST_OF_EACH = (
    "SELECT auction, price, place FROM (SELECT auction, price, "
    "ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place "
    "FROM bid WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS)) WHERE place <= 3"
)
ASKED_FOR = (
    "SELECT b.auction, b.price FROM bid WINDOW(RANGE 1 SECOND) b JOIN (SELECT auction "
    "FROM bid WINDOW(RANGE 10 SECONDS) GROUP BY auction HAVING COUNT(*) > 3) a ON b.auction = a.auction"
)
BIDDERS = "SELECT COUNT(DISTINCT bidder) AS bidders FROM bid WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS)"

FIVE: Mapping[str, tuple[str, ...]] = {
    "project": (PROJECT,),
    "sliding": (SLIDING,),
    "join": (JOIN,),
    "tumbling": (TUMBLING,),
    "hundred": tuple(ONE_OF.format(100, number) for number in range(100)),
}
"""The queries that are run from files and from a stream, by name."""

WARM_UPS = 3
"""So many runs of a query are not counted; the JVM goes on compiling for longer than one."""


def start_spark(master: str) -> SparkSession:
    """A session as Headrace starts one, with more memory for the driver, since it plans very long texts."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("benchmarks").master(master)
    for name, value in {**session_settings(master), "spark.driver.memory": "4g"}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@dataclass(frozen=True)
class Measured:
    """What runs of one query took.

    Attributes:
        rows: input rows of a run.
        seconds: of each counted run, from the start of the first epoch to the end of the last.
        emitted: result elements of a run.
        state_rows, state_bytes: the most state held after any epoch.
        moved: bytes sent between tasks in a run.
        processor: seconds of processor time of a run, in all processes.
        worker_bytes: the most memory that one Python worker had in the counted runs.
    """

    rows: int
    seconds: tuple[float, ...]
    emitted: int
    state_rows: int
    state_bytes: int
    moved: int
    processor: float
    worker_bytes: int

    @property
    def rate(self) -> float:
        """Input rows per second, in the median of the runs."""
        return self.rows / statistics.median(self.seconds)


def measure(
    spark: SparkSession,
    bids: Path,
    queries: Sequence[str],
    runs: int,
    *,
    epoch_rows: int | None = None,
    durable: bool = False,
    streamed: bool = False,
) -> Measured:
    """Run queries over a folder of Parquet bids, `WARM_UPS` times to warm up and then `runs` times.

    Results are computed and counted and written nowhere, as with `--format null`. `streamed` lets the bids
    come through a streaming data frame of Spark's, `FILES_PER_BATCH` at a time.
    """
    execute = _run_streamed if streamed else _run
    for _ in range(WARM_UPS):
        execute(spark, bids, queries, epoch_rows, durable)
    forget_peaks()
    before = Usage.now()
    summaries = [execute(spark, bids, queries, epoch_rows, durable) for _ in range(runs)]
    after = Usage.now()
    last = summaries[-1]
    return Measured(
        last.rows,
        tuple(summary.seconds for summary in summaries),
        sum(last.emitted.values()),
        last.state_rows_peak,
        last.state_bytes_peak,
        last.profile.moved,
        (after.seconds - before.seconds) / runs,
        after.worker_bytes,
    )


FILES_PER_BATCH = 10
"""So many of the 50 files Spark hands over at a time: about a million rows."""

LEVELS = (
    "SELECT * FROM bid WHERE price > 100",
    SLIDING,
    f"SELECT n, COUNT(*) AS auctions FROM ({SLIDING}) GROUP BY n",
)
"""Queries with no level, one and two behind the one that reads the sources."""


def small_epochs(spark: SparkSession, epochs: int, *, durable: bool, query: str = SLIDING) -> float:
    """The median seconds of an epoch of 1,000 rows of a query; warm-up epochs are left out."""
    ends: list[float] = []
    rows = 1000 * epochs

    def note(progress: Progress) -> None:
        ends.append(time.perf_counter())

    with TemporaryDirectory() as folder, _database(spark, folder, 1000, durable) as db:
        db.execute(
            f"CREATE STREAM bid FROM nexmark OPTIONS (events={rows * 50 // 46}, seed=1) TIMESTAMP BY ts"
        )
        db.query(query, name="q")
        db.run(note)
    steps = [later - earlier for earlier, later in itertools.pairwise(ends)]
    return statistics.median(steps[len(steps) // 4 :])


def startup(runs: int) -> dict[str, float]:
    """The median seconds that commands take from their start to their end, over a file of 1,000 events.

    Each has been run before, so that kernels are compiled, but for the one that finds none compiled.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder, "small.sql")
        file.write_text(
            f"CREATE STREAM bid FROM nexmark OPTIONS (events=1000, seed=1) TIMESTAMP BY ts;\n{SLIDING};\n"
        )
        none = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder, "none"))}
        return {
            "headrace explain": _command(runs, "explain", file),
            "headrace run": _command(runs, "run", file),
            "headrace run, nothing compiled": _command(1, "run", file, environment=none),
            "headrace run --runner inline": _command(runs, "run", "--runner", "inline", file),
        }


def _command(runs: int, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> float:
    seconds = []
    for _ in range(runs + (environment is None)):
        started = time.perf_counter()
        command = [Path(sys.executable).with_name("headrace"), *arguments]
        subprocess.run(command, check=True, capture_output=True, env=environment)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[-runs:])


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


def _run(
    spark: SparkSession, bids: Path, queries: Sequence[str], epoch_rows: int | None, durable: bool
) -> Summary:
    with TemporaryDirectory() as folder, _database(spark, folder, epoch_rows, durable) as db:
        for name, path in (("bid", bids), ("auction", auctions_of(bids))):
            db.execute(f"CREATE STREAM {name} FROM parquet OPTIONS (path='{path}') TIMESTAMP BY ts")
        for query in queries:
            db.query(query)
        return db.run()


def _run_streamed(
    spark: SparkSession, bids: Path, queries: Sequence[str], epoch_rows: int | None, durable: bool
) -> Summary:
    """The same with the bids as a streaming data frame.

    The clock runs from when Spark begins to plan its first batch to the last commit.
    """
    last = pc.max(pq.read_table(bids, columns=["ts"])["ts"]).cast("int64").as_py()
    schema = spark.read.parquet(str(bids)).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES_PER_BATCH).parquet(str(bids))
    with TemporaryDirectory() as folder, _database(spark, folder, epoch_rows, durable) as db:
        db.stream("bid", frame, timestamp="ts")
        db.execute(f"CREATE STREAM auction FROM parquet OPTIONS (path='{auctions_of(bids)}') TIMESTAMP BY ts")
        for query in queries:
            db.query(query)
        everything, ends = threading.Event(), [0.0]

        def note(progress: Progress) -> None:
            ends.append(time.time())
            if progress.heartbeat >= last:
                everything.set()

        db.start(note)
        (running,) = spark.streams.active
        if not everything.wait(timeout=600):
            raise TimeoutError(f"only {len(ends)} epochs in ten minutes: {db.problems}")
        begun = datetime.fromisoformat(running.recentProgress[0]["timestamp"])
        return replace(db.stop(), seconds=ends[-1] - begun.timestamp())


def _database(spark: SparkSession, folder: str, epoch_rows: int | None, durable: bool) -> Database:
    storage = Path(folder, "store") if durable else None
    return connect(spark=spark, storage=storage, epoch_rows=epoch_rows, keep_results=False)
