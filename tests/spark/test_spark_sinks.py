"""Committed results for Spark's batch writers."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace import Retry, connect
from headrace.errors import DeliveryError, UserError
from headrace.time import INFINITY

pytestmark = pytest.mark.spark

ROWS = pa.table({"ts": [1, 2, 3, 4, 5, 6], "k": ["a", "b", None, "a", "b", "a"], "v": [1, 2, 3, 4, 5, 6]})
QUERY = "SELECT k, SUM(v) AS total FROM reading [RANGE UNBOUNDED] GROUP BY k"


@pytest.fixture(scope="module")
def sinks() -> Any:
    """The module, which only those can import who have Spark."""
    pytest.importorskip("pyspark", reason="Spark is not installed")
    return importlib.import_module("headrace.runtime.spark.sinks")


def as_counter(rows: list[dict[str, Any]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row[name] for name in sorted(row)) for row in rows)


def test_every_epoch_is_appended_and_handed_to_a_function(spark: Any, sinks: Any, tmp_path: Path) -> None:
    path = tmp_path / "changes"
    seen: list[tuple[int, int]] = []
    with connect(spark=spark, epoch_rows=2, storage=tmp_path / "store") as db:
        db.stream("reading", ROWS, timestamp="ts")
        query = db.query(QUERY, name="totals")
        query.deliver(sinks.SparkTableSink(format="parquet", options={"path": str(path)}, spark=spark))
        query.deliver(
            sinks.SparkFunctionSink(lambda frame, epoch: seen.append((epoch, frame.count())), spark)
        )
        db.run()
        expected = query.changes().to_pylist()
    epochs = Counter(row["epoch"] for row in expected)
    assert len(epochs) == 3
    assert seen == sorted(epochs.items())
    found = [row.asDict() for row in spark.read.parquet(str(path)).collect()]
    assert as_counter(found) == as_counter(expected)


def test_an_append_that_fails_is_repeated_and_deduplicated_by_epoch(
    spark: Any, sinks: Any, tmp_path: Path
) -> None:
    path, failures = str(tmp_path / "changes"), iter([True])

    def append_then_fail(frame: Any, epoch: int) -> None:
        frame.write.mode("append").parquet(path)
        if epoch == 2 and next(failures, False):
            raise ConnectionError("no answer")

    with connect(runner="inline", epoch_rows=2) as db:
        db.stream("reading", ROWS, timestamp="ts")
        query = db.query(QUERY)
        query.deliver(sinks.SparkFunctionSink(append_then_fail, spark), retry=Retry(pause=0))
        db.run()
        expected = as_counter(query.changes().to_pylist())
    written = spark.read.parquet(path)
    assert written.count() > sum(expected.values()), "the second epoch was written twice"
    assert as_counter([row.asDict() for row in written.distinct().collect()]) == expected


def test_kafka_records_are_whole_rows_as_json(spark: Any, sinks: Any) -> None:
    with connect(runner="inline", epoch_rows=2) as db:
        db.stream("reading", ROWS, timestamp="ts")
        query = db.query(QUERY)
        db.run()
        changes = query.changes()
    records = sinks.kafka_records(spark.createDataFrame(changes), ["k"]).collect()
    assert [json.loads(record["value"]) for record in records] == changes.to_pylist()
    assert [json.loads(record["key"]) for record in records] == [{"k": k} for k in changes["k"].to_pylist()]
    assert sinks.kafka_records(spark.createDataFrame(changes), []).columns == ["value"]


def test_a_format_without_its_package_is_named(spark: Any, sinks: Any) -> None:
    with connect(runner="inline") as db:
        db.stream("reading", ROWS, timestamp="ts")
        query = db.query(QUERY, name="totals")
        query.deliver(sinks.KafkaSink("topic", "localhost:1", spark=spark), retry=Retry(attempts=1))
        with pytest.raises(DeliveryError, match=r"sink kafka of totals fails at epoch 1.*kafka"):
            db.run()
        assert query.snapshot(INFINITY - 1).num_rows == 3, "what was computed is there all the same"


def test_a_format_that_spark_does_not_have_is_named(spark: Any, sinks: Any, tmp_path: Path) -> None:
    sink = sinks.SparkTableSink(format="nowhere", options={"path": str(tmp_path / "out")}, spark=spark)
    with connect(runner="inline") as db:
        db.stream("reading", ROWS, timestamp="ts")
        db.query(QUERY, name="totals").deliver(sink, retry=Retry(attempts=1))
        with pytest.raises(DeliveryError, match=r"fails at epoch 1: Spark cannot write: .*nowhere") as caught:
            db.run()
    assert "\n" not in caught.value.message


def test_a_table_sink_needs_a_place(sinks: Any) -> None:
    with pytest.raises(UserError, match="no place to write to"):
        sinks.SparkTableSink()
