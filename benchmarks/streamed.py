"""File streams of Spark's: read by our own tasks, through the JVM, and by Structured Streaming.

    python benchmarks/streamed.py --folder /data/bids --only q0 tumbling --runs 5

The folder is one that `spelled.py` has made; with `--written-by-spark` Spark writes its bids again first,
which then have INT96 for times, and checksums beside their files. All ways run in turn, in one session, over
the same batches; ratios are of runs that follow each other. A run is timed from when Spark begins to plan its
first batch to the last commit; Structured Streaming by the time that it reports for its batches.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from headrace import Progress, connect
from headrace.runtime.spark.startup.ahead import session_settings
from ours import FILES_PER_BATCH
from processes import Usage
from spellings import SPELLED
from structured_streaming import seconds_of, start, start_spark

QUERIES: Final = ("q0", "project", "over", "sliding", "join", "tumbling", "distinct")
CANNOT_SAY: Final = ("over",)
"""Queries that Structured Streaming has nothing like."""


class Streamed:
    """One folder of bids and auctions, streamed a million bids at a time."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        bids = pq.read_table(folder / "bid", columns=["ts"], coerce_int96_timestamp_unit="us")
        self.rows = bids.num_rows
        self._last = pc.max(bids["ts"]).cast("int64").as_py()

    def read_by_tasks(self, name: str) -> float:
        """Seconds that a query takes whose files our own tasks read."""
        return self._ours(name, self._read("bid"))

    def read_by_spark(self, name: str) -> float:
        """The same with every row through the JVM: a condition that is always true is Spark's work."""
        return self._ours(name, self._read("bid").where("price IS NOT NULL"))

    def structured_streaming(self, name: str) -> float:
        """Seconds that Structured Streaming takes for the query, or for what is nearest to it."""
        with tempfile.TemporaryDirectory() as checkpoint:
            query = {"sliding": "hop"}.get(name, name)
            ended = start(self._spark, query, self._folder / "bid", checkpoint, {"format": "noop"})
            ended.awaitTermination()
        return seconds_of(ended)

    def _read(self, table: str) -> DataFrame:
        path = str(self._folder / table)
        reader = self._spark.readStream.schema(self._spark.read.parquet(path).schema)
        return reader.option("maxFilesPerTrigger", FILES_PER_BATCH).parquet(path)

    def _ours(self, name: str, bids: DataFrame) -> float:
        auctions = self._folder / "auction"
        everything, ends = threading.Event(), [0.0]

        def note(progress: Progress) -> None:
            ends.append(time.time())
            if progress.heartbeat >= self._last:
                everything.set()

        with connect(spark=self._spark, keep_results=False) as db:
            db.stream("bid", bids, timestamp="ts")
            db.execute(f"CREATE STREAM auction FROM parquet OPTIONS (path='{auctions}') TIMESTAMP BY ts")
            for query in SPELLED[name]:
                db.query(query)
            db.start(note)
            (running,) = self._spark.streams.active
            if not everything.wait(timeout=600):
                raise TimeoutError(f"only {len(ends)} epochs in ten minutes: {db.problems}")
            begun = datetime.fromisoformat(running.recentProgress[0]["timestamp"])
            db.stop()
        return ends[-1] - begun.timestamp()


def written_again(spark: SparkSession, folder: Path, into: Path) -> Path:
    """Bids and auctions as Spark writes them by itself: their folder.

    Args:
        spark: the session.
        folder: where they are.
        into: an empty folder.
    """
    for table in ("bid", "auction"):
        for path in sorted((folder / table).glob("*.parquet"), key=lambda found: found.stat().st_mtime):
            spark.read.parquet(str(path)).coalesce(1).write.mode("append").parquet(str(into / table))
    return into


def report(name: str, ways: Mapping[str, Callable[[str], float]], rows: int, warm_ups: int, runs: int) -> str:
    """Run a query in every way, in turn; a line with rates, processor time, and ratios with the first way."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    used: dict[str, list[float]] = {way: [] for way in ways}
    for run in range(warm_ups + runs):
        for way, execute in ways.items():
            before = Usage.now().seconds
            taken = execute(name)
            if run >= warm_ups:
                seconds[way].append(taken)
                used[way].append(Usage.now().seconds - before)
    parts = [f"{name:10}"]
    first = next(iter(ways))
    for way, times in seconds.items():
        rate, cpu = rows / statistics.median(times) / 1e6, statistics.median(used[way]) / rows * 1e6
        ratio = statistics.median(other / ours for ours, other in zip(seconds[first], times, strict=True))
        told = "" if way == first else f" ({first} {ratio:.2f} times as fast)"
        parts.append(f"{way} {rate:.3f} M/s, cpu {cpu:.2f} s/M{told}")
    return "  ".join(parts)


def _settings() -> dict[str, str]:
    """What Headrace starts a session of its own with, without what would change queries of others."""
    found = session_settings("local[2]")
    return {name: value for name, value in found.items() if not name.startswith("spark.sql.")}


def main() -> None:
    """Run the queries that are asked for, in every way, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the bids and auctions are")
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=QUERIES)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--without", nargs="+", default=[], choices=("jvm", "peer"), help="ways to leave out")
    parser.add_argument(
        "--written-by-spark", action="store_true", help="let Spark write the bids again first"
    )
    options = parser.parse_args()
    spark = start_spark("local[2]", _settings())
    with tempfile.TemporaryDirectory() as into:
        again = options.written_by_spark
        folder = written_again(spark, options.folder, Path(into)) if again else options.folder
        _compare(Streamed(spark, folder), options)
    spark.stop()


def _compare(streamed: Streamed, options: argparse.Namespace) -> None:
    for name in options.only:
        ways = {"tasks": streamed.read_by_tasks, "jvm": streamed.read_by_spark}
        if name not in CANNOT_SAY:
            ways["peer"] = streamed.structured_streaming
        ways = {way: execute for way, execute in ways.items() if way not in options.without}
        print(report(name, ways, streamed.rows, options.warm_ups, options.runs), flush=True)


if __name__ == "__main__":
    main()
