"""The peer of our benchmarks: plain PySpark Structured Streaming over NEXMark bids in Parquet files.

Structured Streaming cannot say `SELECT auction, COUNT(*), SUM(price) FROM bid WINDOW(RANGE 60 SECONDS)
GROUP BY auction`, whose answer changes at every bid and again when the bid leaves. Nearest to it:

- `sliding`: windows of 60 seconds, one every second (an answer per second, each bid counted in 60 windows);
- `tumbling`: windows of 10 seconds, one every 10 seconds; count, sum and maximum per auction.
- `project`: a filter and a projection.
- `join`: bids with the auctions of the minute before.
- `hundred`: a hundred filtered counts; as ten queries at once, since a hundred take minutes to start.

Both run in append mode with a watermark of zero, so that a window is written once, when it is final, which is
what our strong queries do. State is kept by Spark's default state store. A rate counts the input rows, and
the time that Spark itself reports for its micro-batches: the start of the query is left out.

    python benchmarks/structured_streaming.py --events 1000000
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from headrace.workloads.nexmark import TABLES, Nexmark, generate

QUERIES = ("project", "sliding", "join", "tumbling", "hundred")


@dataclass(frozen=True)
class Measured:
    """What runs of one query took.

    Attributes:
        query: one of `QUERIES`.
        rows: input rows of a run.
        batches: micro-batches of a run.
        seconds: of each run, the time of its micro-batches.
        state_rows: rows in Spark's state stores at their fullest.
    """

    query: str
    rows: int
    batches: int
    seconds: tuple[float, ...]
    state_rows: int

    @property
    def rate(self) -> float:
        """Input rows per second, in the median of the runs."""
        return self.rows / statistics.median(self.seconds)


def write_bids(
    folder: Path, events: int, files: int = 8, seed: int = 1, rate: int = 10_000, table: str = "bid"
) -> int:
    """Write the bids of so many NEXMark events to Parquet files, in order of time; how many bids they are.

    Spark takes the files in order of their modification times, so these are set a second apart.
    """
    spec = Nexmark(events, seed=seed, rate=rate)
    rows = 0
    for number in range(files):
        first, last = (events * place // files for place in (number, number + 1))
        bids = generate(spec, table, first, last, TABLES[table].names)
        path = folder / f"{table}-{number:04}.parquet"
        with pq.ParquetWriter(path, bids.schema) as writer:
            writer.write_batch(bids)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        rows += bids.num_rows
    return rows


def start_spark(master: str, others: Mapping[str, str] | None = None) -> SparkSession:
    """A session set up in favour of Structured Streaming on one machine: a shuffle partition per core.

    Args:
        master: where it runs.
        others: settings that do not touch it, for whoever shares the session.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
    }
    builder = SparkSession.builder.appName("structured streaming").master(master)
    for name, value in {**(others or {}), **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


WARM_UPS = 3
"""So many runs of a query are not counted; the JVM goes on compiling for longer than one."""


def measure(
    spark: SparkSession, query: str, folder: Path, *, runs: int = 3, files_per_batch: int = 1
) -> Measured:
    """Run a query over the bids of a folder, `WARM_UPS` times to warm up and then `runs` times."""
    expected = sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
    progress: list[list[dict[str, object]]] = []
    for _ in range(WARM_UPS + runs):
        with tempfile.TemporaryDirectory() as checkpoint:
            running = start(spark, query, folder, "noop", checkpoint, files_per_batch)
            progress.append(_batches(running))
        rows = sum(int(str(batch["numInputRows"])) for batch in progress[-1])
        # A join reads auctions besides, and some queries read the bids more than once.
        assert rows >= expected, f"Spark reports {rows} rows of {expected}"
    return Measured(
        query=query,
        rows=expected,
        batches=len(progress[-1]),
        seconds=tuple(sum(map(_seconds, batches)) for batches in progress[WARM_UPS:]),
        state_rows=max(map(_state_rows, progress[-1])),
    )


def start(
    spark: SparkSession, query: str, folder: Path, sink: str, checkpoint: str, files_per_batch: int
) -> StreamingQuery:
    """Start a query over the bids that are there; it ends by itself.

    Args:
        spark: the session.
        query: one of `QUERIES`.
        folder: with Parquet files of bids.
        sink: `noop`, or `memory` for a table named as the query.
        checkpoint: an empty folder.
        files_per_batch: how many files a micro-batch takes.
    """
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    answer = _answer(spark, query, folder, files_per_batch)
    writer = answer.writeStream.queryName(query).outputMode("append").format(sink)
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def _answer(spark: SparkSession, query: str, folder: Path, files_per_batch: int) -> DataFrame:
    bids = _read(spark, folder, files_per_batch)
    match query:
        case "project":
            return bids.where("price > 100").selectExpr("auction", "price * 0.908 AS euro", "bidder")
        case "sliding":
            return _sliding(bids)
        case "join":
            return _join(bids, _read(spark, auctions_of(folder), files_per_batch))
        case "tumbling":
            return _tumbling(bids)
        case "hundred":
            parts = (_read(spark, folder, files_per_batch).where(f"auction % 100 = {i}") for i in range(10))
            return reduce(DataFrame.unionAll, map(_count, parts))
        case _:
            raise ValueError(f"no query {query}")


def _read(spark: SparkSession, folder: Path, files_per_batch: int) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_batch)
    return stream.parquet(str(folder)).withWatermark("ts", "0 seconds")


def auctions_of(folder: Path) -> Path:
    """Where the auctions lie that belong to a folder of bids."""
    return folder.with_name(f"{folder.name}-auction")


def _join(bids: DataFrame, auctions: DataFrame) -> DataFrame:
    within = F.expr("auction = id AND ts >= opened AND ts < opened + INTERVAL 60 SECONDS")
    return bids.join(auctions.withColumnRenamed("ts", "opened"), within).select("auction", "price", "seller")


def _count(bids: DataFrame) -> DataFrame:
    return bids.groupBy(F.window("ts", "10 seconds")).agg(F.count("*").alias("n"))


def _sliding(bids: DataFrame) -> DataFrame:
    window = F.window("ts", "60 seconds", "1 second")
    return bids.groupBy(window, "auction").agg(F.count("*").alias("bids"), F.sum("price").alias("total"))


def _tumbling(bids: DataFrame) -> DataFrame:
    window = F.window("ts", "10 seconds")
    return bids.groupBy(window, "auction").agg(
        F.count("*").alias("bids"), F.sum("price").alias("total"), F.max("price").alias("highest")
    )


def _batches(running: StreamingQuery) -> list[dict[str, object]]:
    """What Spark reports of each micro-batch, once the query has ended."""
    running.awaitTermination()
    return [dict(batch) for batch in running.recentProgress]


def _seconds(batch: dict[str, object]) -> float:
    durations = batch["durationMs"]
    assert isinstance(durations, dict)
    return float(durations["triggerExecution"]) / 1_000


def _state_rows(batch: dict[str, object]) -> int:
    operators = batch["stateOperators"]
    assert isinstance(operators, list)
    return sum(int(operator["numRowsTotal"]) for operator in operators)


def main(arguments: Sequence[str] | None = None) -> list[Measured]:
    """Run from the command line; what was measured."""
    parser = argparse.ArgumentParser(description="Structured Streaming over NEXMark bids.")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--files-per-batch", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=QUERIES)
    chosen = parser.parse_args(arguments)
    spark = start_spark(chosen.master)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        bids = Path(folder, "bids")
        for path, table in ((bids, "bid"), (auctions_of(bids), "auction")):
            path.mkdir()
            write_bids(path, chosen.events, chosen.files, table=table)
        for query in chosen.queries:
            result = measure(spark, query, bids, runs=chosen.runs, files_per_batch=chosen.files_per_batch)
            times = ", ".join(f"{seconds:.2f} s" for seconds in result.seconds)
            print(
                f"{query}: {result.rate:,.0f} rows/s over {result.rows:,} bids in {result.batches} "
                f"micro-batches ({times}); at most {result.state_rows:,} rows of state"
            )
            results.append(result)
    spark.stop()
    return results


if __name__ == "__main__":
    main()
