"""Epochs whose rows come in frames of Spark's: a job on RDDs of Arrow batches, as that of all others."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import GatewayClient

import headrace as hr
from headrace.runtime.spark.runner import SparkRunner
from inside import run_of
from waiting import wait_for

pytestmark = pytest.mark.spark


def files(folder: Path, count: int, rows: int) -> Path:
    """A folder of Parquet files: the numbers from 0 as `ts`, and as `k` what is left of each by 3."""
    folder.mkdir()
    for number in range(count):
        times = list(range(number * rows, (number + 1) * rows))
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"ts": times, "k": [at % 3 for at in times]}), path)
        # Spark takes them in the order in which they were written.
        os.utime(path, (number, number))
    return folder


def streamed(spark: Any, folder: Path) -> Any:
    """A file of it at a time, through the JVM: a condition that always holds is Spark's work."""
    reader = spark.readStream.schema("ts BIGINT, k BIGINT").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder)).where("ts >= 0")


def wait(db: hr.Database, done: Callable[[], bool]) -> None:
    """Let a run go on until a condition holds."""
    wait_for(lambda: done() or not db.running or db.problems)
    assert done(), db.problems or "the run has ended"


def rows_of(db: hr.Database, stream: str) -> int:
    """The number of rows of a stream that have come."""
    arrivals = run_of(db).totals.arrivals
    return arrivals[stream].rows if stream in arrivals else 0


@contextmanager
def setting(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Let a session have other settings for a while."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_later_epochs_over_frames_plan_and_look_up_nothing_in_the_jvm(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs: list[list[str]] = []
    done: list[list[str]] = []
    send, run = GatewayClient.send_command, SparkRunner.run_epoch

    def noted(client: Any, command: str, *rest: Any, **named: Any) -> Any:
        # Spark hands over the next batch meanwhile, in a thread of its own.
        if epochs and threading.current_thread().name == "headrace epochs":
            epochs[-1].append(command)
        return send(client, command, *rest, **named)

    def run_noted(runner: SparkRunner, *work: Any) -> Any:
        epochs.append([])
        try:
            return run(runner, *work)
        finally:
            done.append(epochs[-1][:])

    with hr.connect(spark=spark) as db:
        db.stream("s", streamed(spark, files(tmp_path / "in", 6, 10)), timestamp="ts")
        counts = db.query("SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k")
        monkeypatch.setattr(SparkRunner, "run_epoch", run_noted)
        monkeypatch.setattr(GatewayClient, "send_command", noted)
        db.start()
        wait(db, lambda: rows_of(db, "s") == 60)
        db.stop()
        monkeypatch.undo()
        assert counts.changes().num_rows > 0
    called = [[command.split("\n")[2] for command in one if command.startswith("c\n")] for one in done]
    looked_up = [[command for command in one if command.startswith(("r\nu\n", "r\nm\n"))] for one in done]
    assert [calls.count("toArrowBatchRdd") for calls in called] == [1] * 6
    assert all({"mapInArrow", "select", "toDF", "range"}.isdisjoint(calls) for calls in called)
    assert looked_up[2:] == [[]] * 4


def test_rows_of_frames_come_as_they_are_whatever_the_session_is_set_to(spark: Any, tmp_path: Path) -> None:
    """Two frames of several partitions and a pushed stream in one run, with names that have dots."""
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"number": pa.array(range(10))}), tmp_path / "in/0.parquet")
    settings = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
        "spark.sql.adaptive.enabled": "true",
    }
    with setting(spark, settings):
        read = spark.readStream.schema("number BIGINT").parquet(str(tmp_path / "in"))
        values = read.selectExpr(
            "timestamp_seconds(number) AS `a.ts`",
            "CAST(timestamp_seconds(number) AS TIMESTAMP_NTZ) AS wall",
            "IF(number = 3, NULL, concat('é', number)) AS name",
            "CAST(number AS DECIMAL(20, 2)) AS price",
            "CAST('x' AS BINARY) AS raw",
            "date_add(DATE '2020-01-01', CAST(number AS INT)) AS day",
            "array(number, NULL) AS list",
            "named_struct('x', CAST(number AS FLOAT), 'y', array('z')) AS part",
            "number % 2 = 0 AS even",
        ).repartition(3)
        numbers = read.selectExpr("number + 100 AS ts", "number AS v").repartition(2)
        with hr.connect(spark=spark) as db:
            db.stream("s", values, timestamp="a.ts")
            db.stream("n", numbers, timestamp="ts")
            db.stream("bare", read.select("number"), timestamp=hr.ByArrival())
            db.execute("CREATE STREAM pushed (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
            found = db.query("SELECT * FROM s", name="found")
            second = db.query("SELECT v FROM n", name="second")
            third = db.query("SELECT v FROM pushed", name="third")
            db.query("SELECT COUNT(*) AS c FROM bare [RANGE UNBOUNDED]", name="fourth")
            db.start()
            db.push("pushed", [{"ts": at, "v": -at} for at in range(5)])
            wait(db, lambda: rows_of(db, "s") == rows_of(db, "n") == rows_of(db, "bare") == 10)
            db.stop()
            rows = sorted(found.changes().to_pylist(), key=lambda row: row["day"])
            assert sorted(second.changes()["v"].to_pylist()) == list(range(9))
            assert third.changes()["v"].to_pylist() == [0, -1, -2, -3]
    assert len(rows) == 9, "the last one waits for a heartbeat"
    for number, row in enumerate(rows):
        at = datetime(1970, 1, 1, 0, 0, number, tzinfo=UTC)
        assert (row["valid_from"], row["a.ts"]) == (at, at)
        # The wall's clock of New York.
        assert row["wall"] == datetime(1969, 12, 31, 19, 0, number, tzinfo=UTC)
        assert row["name"] == (None if number == 3 else f"é{number}")
        assert (row["price"], row["raw"]) == (Decimal(number).quantize(Decimal("0.01")), b"x")
        assert row["day"] == date(2020, 1, 1 + number)
        assert (row["list"], row["part"]) == ([number, None], {"x": float(number), "y": ["z"]})
        assert row["even"] is (number % 2 == 0)


def test_shuffles_of_epochs_are_cleaned_and_those_that_a_frame_reads_are_not(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of the user's that a streaming frame is joined with may be in use elsewhere."""
    pairs = spark.sparkContext.parallelize([(key, f"n{key}") for key in range(3)]).partitionBy(2)
    names = spark.createDataFrame(pairs, "k BIGINT, name STRING")
    cleaned: list[str] = []
    send = GatewayClient.send_command

    def noted(client: Any, command: str, *rest: Any, **named: Any) -> Any:
        words = command.split("\n")
        if words[2:3] == ["doCleanupShuffle"]:
            cleaned.append(words[3])
        assert "cleanShuffleDependencies" not in words, "it goes on to what a frame reads"
        return send(client, command, *rest, **named)

    with hr.connect(spark=spark) as db:
        with setting(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
            frame = streamed(spark, files(tmp_path / "in", 3, 10)).join(names.hint("shuffle_hash"), "k")
            db.stream("s", frame, timestamp="ts")
            counts = db.query("SELECT name, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY name")
            monkeypatch.setattr(GatewayClient, "send_command", noted)
            db.start()
        wait(db, lambda: rows_of(db, "s") == 30)
        db.stop()
        monkeypatch.undo()
        assert {*counts.changes()["name"].to_pylist()} == {"n0", "n1", "n2"}
    assert len({*cleaned}) == 3, "an epoch has one level"
