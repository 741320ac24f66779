"""Structured Streaming among the peers: plain PySpark over NEXMark bids in Parquet files.

It cannot say OVER, and `COUNT(DISTINCT ...)` is spelled as a count of what is left without duplicates. Many
counts are one query, a union of them, since each query of its own takes long to start. All run in append mode
with a watermark of zero, so that a window is written once, when it is final, which is what Headrace does;
windows that end after the last bid are not written. State is kept by Spark's default state store.

The own clock is what Spark reports for its micro-batches; the start of the query is left out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

import peer
from bids import auctions_of
from peer import CORES, Peer, serve

QUERIES: Final = tuple(query for query in peer.QUERIES if query != "over")

_ROWS_PER_BATCH: Final = 1_000_000
"""About so many rows a micro-batch takes; with fewer it is slower, as Headrace's epochs are."""


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


def start(
    spark: SparkSession, query: str, bids: Path, checkpoint: str, sink: Mapping[str, str]
) -> StreamingQuery:
    """Start a query over the bids that are there; it ends by itself.

    Args:
        spark: the session.
        query: one of `QUERIES`.
        bids: a folder with Parquet files of bids.
        checkpoint: an empty folder.
        sink: its `format`, and its options.
    """
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    writer = _answer(spark, query, bids).writeStream.options(**sink, checkpointLocation=checkpoint)
    return writer.outputMode("append").format(sink["format"]).trigger(availableNow=True).start()


def _answer(spark: SparkSession, query: str, bids: Path) -> DataFrame:
    rows = _read(spark, bids, bids)
    match query:
        case "q0":
            return rows
        case "project":
            return rows.where("price > 100").selectExpr("auction", "price * 0.908 AS euro", "bidder")
        case "join":
            return _join(rows, _read(spark, auctions_of(bids), bids))
        case "tumbling":
            groups = rows.groupBy("auction", F.window("ts", "10 seconds"))
            return _flat(groups.agg(*_sums(), F.max("price").alias("top")), "auction")
        case "distinct":
            window = F.window("ts", "10 seconds")
            apart = rows.select(window, "bidder").dropDuplicates(["window", "bidder"])
            return _flat(apart.groupBy("window").agg(F.count("*").alias("bidders")))
        case "hop":
            groups = rows.groupBy("auction", F.window("ts", "60 seconds", "1 second"))
            return _flat(groups.agg(*_sums()), "auction")
        case "1 count":
            return _counts(spark, bids, 2, [1])
        case "10 counts" | "100 counts":
            number = int(query.partition(" ")[0])
            return _counts(spark, bids, number, range(number))
        case _:
            raise ValueError(f"no query {query}")


def _read(spark: SparkSession, folder: Path, bids: Path) -> DataFrame:
    """The rows of a folder, as many files at a time as of bids."""
    files = max(1, _ROWS_PER_BATCH // pq.read_metadata(min(bids.glob("*.parquet"))).num_rows)
    schema = spark.read.parquet(str(folder)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
    return stream.parquet(str(folder)).withWatermark("ts", "0 seconds")


def _sums() -> tuple[Column, Column]:
    return F.count("*").alias("n"), F.sum("price").alias("total")


def _flat(windows: DataFrame, *keys: str) -> DataFrame:
    """The start and the end of a window as columns of their own, behind the keys."""
    values = [name for name in windows.columns if name not in ("window", *keys)]
    return windows.selectExpr(*keys, "window.start AS window_start", "window.end AS window_end", *values)


def _join(bids: DataFrame, auctions: DataFrame) -> DataFrame:
    within = F.expr("auction = id AND ts >= opened AND ts < opened + INTERVAL 60 SECONDS")
    return bids.join(auctions.withColumnRenamed("ts", "opened"), within).select("auction", "price", "seller")


def _counts(spark: SparkSession, bids: Path, number: int, places: Sequence[int]) -> DataFrame:
    parts = (_read(spark, bids, bids).where(f"auction % {number} = {place}") for place in places)
    counts = (part.groupBy(F.window("ts", "10 seconds")).agg(F.count("*").alias("n")) for part in parts)
    return _flat(reduce(DataFrame.unionAll, counts))


def seconds_of(ended: StreamingQuery) -> float:
    """The seconds of a query's micro-batches, as Spark reports them."""
    return sum(float(batch["durationMs"]["triggerExecution"]) for batch in ended.recentProgress) / 1e3


class _StructuredStreaming:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, query: str, data: Path) -> float:
        return self._run(query, data, {"format": "noop"})

    def save(self, query: str, data: Path, answer: Path) -> None:
        self._run(query, data, {"format": "parquet", "path": str(answer)})

    def _run(self, query: str, data: Path, sink: Mapping[str, str]) -> float:
        with tempfile.TemporaryDirectory() as checkpoint:
            running = start(self._spark, query, data / "bid", checkpoint, sink)
            running.awaitTermination()
        return seconds_of(running)


@contextmanager
def _start() -> Iterator[Peer]:
    spark = start_spark(f"local[{CORES}]")
    yield _StructuredStreaming(spark)
    spark.stop()


if __name__ == "__main__":
    serve(_start)
