"""The queries of topics.py by Structured Streaming with its Kafka connector; a line for each, as JSON.

Called by topics.py, in a process of its own: a session has the connector from its start. The connector is the
one of Spark 4.2, since there is none of 4.3 in Maven Central, and works with 4.3.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
EPOCH: Final = 500_000
"""So many messages are in an epoch of ours, and in a batch here."""


def main() -> None:
    """Print each query's name, its seconds, and its messages per second after the first batch."""
    broker, topic, columns, count = *sys.argv[1:4], int(sys.argv[4])
    settings = {
        "spark.jars.packages": CONNECTOR,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    builder: Any = SparkSession.builder
    spark = builder.master("local[2]").config(map=settings).getOrCreate()
    read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
    read = read.option("subscribe", topic).option("startingOffsets", "earliest")
    messages = read.option("maxOffsetsPerTrigger", EPOCH).load()
    rows = messages.select(f.from_json(f.col("value").cast("string"), columns).alias("row")).select("row.*")
    timed = rows.withWatermark("ts", "1 day")
    queries = {
        "stateless": rows.where("price > 100").selectExpr("auction", "price * 2 AS price"),
        "counts": timed.groupBy(f.window("ts", "10 seconds"), "auction").count(),
    }
    for name, query in queries.items():
        for turn in range(2):
            begin = time.perf_counter()
            running = query.writeStream.format("noop").outputMode("update").trigger(availableNow=True).start()
            running.awaitTermination()
            taken = time.perf_counter() - begin
            later = [one for one in running.recentProgress if one["numInputRows"]][1:]
            spent = sum(one["batchDuration"] for one in later) / 1_000
            if turn:
                assert sum(one["numInputRows"] for one in running.recentProgress) == count
                rate = sum(one["numInputRows"] for one in later) / spent
                print(json.dumps([name, taken, rate]), flush=True)


if __name__ == "__main__":
    main()
