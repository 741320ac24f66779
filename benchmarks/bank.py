"""Where money goes missing: transfers between accounts, here and in Structured Streaming.

A transfer takes from one account what it gives to another, so the balances add up to 0. Transfers arrive
out of order, as one stream or as two, of debits and of credits. The balances are added up after every batch
of Structured Streaming, whose tables are those of all rows so far, and after every epoch here, at the last
final instant.

    python benchmarks/bank.py [--transfers 400] [--files 10]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import headrace as hr

START = datetime(2024, 5, 1, 9, tzinfo=UTC)
LATE = 30
"""By so many seconds rows are late at most."""
SIDES = {"debit": ("source", -1), "credit": ("target", 1)}
COLUMNS = "ts TIMESTAMP, source STRING, target STRING, amount BIGINT"

Row = dict[str, Any]


def transfers(count: int, seed: int = 7) -> list[Row]:
    """Transfers in the order in which they arrive."""
    draw = random.Random(seed)
    rows = [
        (second + draw.uniform(0, LATE), second, source, target, draw.randint(1, 99))
        for second in range(count)
        for source, target in [draw.sample("abcdefgh", 2)]
    ]
    return [
        {"ts": START + timedelta(seconds=ts), "source": source, "target": target, "amount": amount}
        for _, ts, source, target, amount in sorted(rows)
    ]


def portions(rows: list[Row], files: int) -> Iterator[list[Row]]:
    """The rows in so many parts of equal length."""
    size = -(-len(rows) // files)
    return (rows[place : place + size] for place in range(0, len(rows), size))


def written(folder: Path, rows: list[Row], files: int) -> str:
    """A folder with a file per portion, in the order of their names."""
    folder.mkdir()
    for number, part in enumerate(portions(rows, files)):
        lines = (json.dumps({**row, "ts": row["ts"].isoformat()}) for row in part)
        (folder / f"{number:04}.json").write_text("\n".join(lines))
    return str(folder)


def side_of(rows: DataFrame, side: str) -> DataFrame:
    """What transfers do to the accounts of one side."""
    account, sign = SIDES[side]
    return rows.select("ts", sql.col(account).alias("account"), (sql.col("amount") * sign).alias("amount"))


def sums_in_spark(bookings: DataFrame, work: Path) -> list[int]:
    """What the balances add up to after each batch."""
    found: list[int] = []

    def add(batch: DataFrame, _: int) -> None:
        found.append(batch.agg(sql.sum("balance")).first()[0] or 0)

    balances = bookings.groupBy("account").agg(sql.sum("amount").alias("balance"))
    query = balances.writeStream.outputMode("complete").foreachBatch(add).trigger(availableNow=True)
    query.option("checkpointLocation", str(work)).start().awaitTermination()
    return found


def total_in_spark(bookings: DataFrame, work: Path) -> str:
    """What Structured Streaming says when it is asked for the sum itself."""
    balances = bookings.groupBy("account").agg(sql.sum("amount").alias("balance"))
    total = balances.agg(sql.sum("balance"))
    try:
        query = total.writeStream.outputMode("complete").format("noop").trigger(availableNow=True)
        query.option("checkpointLocation", str(work)).start().awaitTermination()
    except AnalysisException as error:
        return str(error).splitlines()[0]
    return "answered"


def in_spark(rows: list[Row], files: int, work: Path) -> None:
    """Both forms in Structured Streaming."""
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def read(name: str, part: list[Row]) -> DataFrame:
        reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        return reader.json(written(work / name, part, files))

    whole = read("transfer", rows)
    one = side_of(whole, "debit").unionAll(side_of(whole, "credit"))
    report("Structured Streaming, one stream", sums_in_spark(one, work / "one"))
    behind = sorted(rows, key=lambda row: row["ts"])
    two = side_of(read("debit", rows), "debit").unionAll(side_of(read("credit", behind), "credit"))
    report("Structured Streaming, two streams", sums_in_spark(two, work / "two"))
    print(f"Structured Streaming, the sum of the balances: {total_in_spark(one, work / 'total')}")
    spark.stop()


def said(query: hr.Query) -> int:
    """What the amounts of a query add up to at the last instant that it speaks of."""
    return sum(row["balance"] for row in query.latest().to_pylist())


def in_headrace(rows: list[Row], files: int) -> None:
    """Both forms here; the answer in force is looked at after every epoch."""
    for streams in (("transfer",), tuple(SIDES)):
        with hr.connect(runner="inline") as db:
            for name in streams:
                db.execute(
                    f"CREATE STREAM {name} ({COLUMNS}) FROM push TIMESTAMP BY ts DISORDER {LATE} SECONDS"
                )
            sources = streams * 2 if len(streams) == 1 else streams
            debit, credit = (
                f"SELECT {account} AS account, {sign} * amount AS amount FROM {name}"
                for name, (account, sign) in zip(sources, SIDES.values(), strict=True)
            )
            db.execute(f"CREATE STREAM booking AS {debit} UNION ALL {credit}")
            text = "SELECT account, SUM(amount) AS balance FROM booking [RANGE UNBOUNDED] GROUP BY account"
            query = db.query(text)
            db.start()
            found = []
            parts = list(portions(rows, files))
            late = list(portions(sorted(rows, key=lambda row: row["ts"]), files))
            for number, part in enumerate(parts):
                for name in streams:
                    db.push(name, late[number] if name == "credit" else part)
                    if query.epochs().num_rows:
                        found.append(said(query))
            db.stop()
            found.append(said(query))
            report(f"Headrace, {'one stream' if len(streams) == 1 else 'two streams'}", found)


def report(what: str, sums: list[int]) -> None:
    """How often the balances did not add up to 0."""
    wrong = [total for total in sums if total]
    worst = f", by up to {max(map(abs, wrong))}" if wrong else ""
    print(f"{what}: wrong in {len(wrong)} of {len(sums)}{worst}")


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--transfers", type=int, default=400)
    parser.add_argument("--files", type=int, default=10)
    options = parser.parse_args()
    rows = transfers(options.transfers)
    in_headrace(rows, options.files)
    with tempfile.TemporaryDirectory() as work:
        in_spark(rows, options.files, Path(work))


if __name__ == "__main__":
    main()
