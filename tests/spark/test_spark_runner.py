"""What holds only on Spark: one job per epoch, the user's session, errors out of tasks, equal answers."""

from __future__ import annotations

import json
import math
import platform
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import GatewayClient

from headrace import Database, HeadraceWarning, connect
from headrace.elements import Batch
from headrace.errors import SourceError, UserError
from headrace.history import equivalent
from headrace.reference.lateness import late_rows, needed_disorder
from headrace.runtime.spark.runner import SparkRunner, _known_in_java
from headrace.runtime.spark.startup.resident import ResidentTask
from headrace.time import INFINITY
from inside import leave_undivided, reader_of, run_of

pytestmark = pytest.mark.spark

STREAMS = """
CREATE STREAM bid FROM nexmark OPTIONS (events=30000, seed=7, disorder='2 seconds')
  TIMESTAMP BY ts DISORDER 2 SECONDS;
CREATE STREAM auction FROM nexmark OPTIONS (events=30000, seed=7, disorder='2 seconds')
  TIMESTAMP BY ts DISORDER 2 SECONDS;
"""
QUERIES = """
CREATE QUERY currency AS SELECT auction, price * 0.908 AS euro, channel FROM bid WHERE price > 5000;
CREATE QUERY sliding AS
  SELECT auction, COUNT(*) AS n, SUM(price) AS total, MAX(price) AS top FROM bid [RANGE 1 SECOND]
  GROUP BY auction;
CREATE QUERY busiest AS
  SELECT n, COUNT(*) AS auctions FROM
    (SELECT auction, COUNT(*) AS n FROM bid [RANGE 1 SECOND SLIDE 1 SECOND] GROUP BY auction) t GROUP BY n;
CREATE QUERY busiest_early CONSISTENCY MIDDLE AS
  SELECT n, COUNT(*) AS auctions FROM
    (SELECT auction, COUNT(*) AS n FROM bid [RANGE 1 SECOND SLIDE 1 SECOND] GROUP BY auction) t GROUP BY n;
CREATE QUERY seller AS
  SELECT a.seller, MAX(b.price) AS best FROM bid [RANGE 500 MILLISECONDS] b, auction [RANGE 2 SECONDS] a
  WHERE b.auction = a.id GROUP BY a.seller;
CREATE QUERY pairs AS
  SELECT DISTINCT a.category, c.category AS other FROM auction [RANGE 20 MILLISECONDS] a,
    auction [RANGE 20 MILLISECONDS] c WHERE a.initial_bid < c.initial_bid;
CREATE QUERY arrivals AS ISTREAM(SELECT DISTINCT seller FROM auction [RANGE 1 SECOND]);
"""
FORGETTING = """
CREATE QUERY busiest_brief CONSISTENCY (BLOCK 0, REMEMBER 1 SECOND) AS
  SELECT n, COUNT(*) AS auctions FROM
    (SELECT auction, COUNT(*) AS n FROM bid [RANGE 1 SECOND SLIDE 1 SECOND] GROUP BY auction) t GROUP BY n;
"""
"""A query that leaves rows out, which are judged by another job where an epoch has several splits."""


def answers(db: Database) -> dict[str, Batch]:
    db.execute(STREAMS + QUERIES + FORGETTING)
    summary = db.run()
    assert summary.late == summary.dead_letters == 0
    return {query.name: reader_of(db, query).elements() for query in db.queries}


@pytest.fixture(scope="module")
def inline() -> dict[str, Batch]:
    with connect(runner="inline", epoch_rows=1_000_000) as db:
        return answers(db)


@pytest.mark.parametrize(
    ("buckets", "epoch_rows", "stays"), [(1, 1_000_000, True), (2, 9_000, False), (8, 4_000, True)]
)
def test_answers_do_not_depend_on_buckets_or_epochs_or_where_they_run(
    spark: Any,
    inline: dict[str, Batch],
    monkeypatch: pytest.MonkeyPatch,
    buckets: int,
    epoch_rows: int,
    stays: bool,
) -> None:
    leave_undivided(monkeypatch, 0.0)
    if not stays:
        monkeypatch.setattr(ResidentTask, "begun", lambda *_: None)
    with connect(spark=spark, buckets=buckets, epoch_rows=epoch_rows) as db:
        found = answers(db)
    assert found.keys() == inline.keys()
    for name, expected in inline.items():
        assert len(expected), f"{name} has an answer to compare"
        assert equivalent(found[name], expected), name


def test_one_job_per_epoch(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_undivided(monkeypatch, 0.0)
    monkeypatch.setattr(ResidentTask, "begun", lambda *_: None)
    tracker = spark.sparkContext.statusTracker()
    with connect(spark=spark, epoch_rows=10_000) as db:
        db.execute(STREAMS + QUERIES)
        before = len(tracker.getJobIdsForGroup())
        epochs = db.run().epochs
        assert epochs > 2
        assert len(tracker.getJobIdsForGroup()) - before == epochs


@pytest.mark.parametrize("stays", [False, True])
def test_small_epochs_are_a_single_task(stays: bool, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if not stays:
        monkeypatch.setattr(ResidentTask, "begun", lambda *_: None)
    leave_undivided(monkeypatch, math.inf)
    tracker = spark.sparkContext.statusTracker()
    with connect(spark=spark, epoch_rows=10_000, buckets=3) as db:
        db.execute(STREAMS + QUERIES)
        before = set(tracker.getJobIdsForGroup())
        epochs = db.run().epochs
        jobs = [tracker.getJobInfo(job) for job in sorted(set(tracker.getJobIdsForGroup()) - before)]
        levels = run_of(db).reading.queries.graph.levels
    stages = [[tracker.getStageInfo(stage).numTasks for stage in job.stageIds] for job in jobs]
    assert epochs > 2
    if stays:
        assert stages == [[1]]
    else:
        assert len(stages[0]) == 1 + levels > 2
        assert stages[1:] == [[1]] * (epochs - 1)


def test_the_same_rows_are_late_as_inline_with_a_second_job_where_splits_must_know_each_other(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However little work it is, every epoch has several splits, and is a job.
    monkeypatch.setattr(ResidentTask, "begun", lambda *_: None)
    leave_undivided(monkeypatch, 0.0)
    times = [(7 * number * number) % 60 + number for number in range(40)]
    table = pa.table({"n": list(range(40)), "ts": times})
    pq.write_table(table, tmp_path / "rows.parquet")
    tracker = spark.sparkContext.statusTracker()
    late = late_rows(times, 5)
    with connect(runner="inline") as db:
        db.stream("s", table.take([n for n in range(40) if n not in late]), timestamp="ts", disorder=5)
        expected = db.query("SELECT COUNT(*) AS c FROM s [RANGE 3]")
        assert db.run().late == 0
        counted = expected.history()
    for epoch_rows in (500_000, 9):
        with connect(spark=spark, epoch_rows=epoch_rows) as db:
            db.execute(f"CREATE STREAM s FROM parquet OPTIONS (path='{tmp_path}') TIMESTAMP BY ts DISORDER 5")
            taken = db.query("SELECT n FROM s")
            counts = db.query("SELECT COUNT(*) AS c FROM s [RANGE 3]")
            before = len(tracker.getJobIdsForGroup())
            summary = db.run()
            jobs = len(tracker.getJobIdsForGroup()) - before
            assert summary.epochs < jobs <= 2 * summary.epochs
            letters = [json.loads(letter["row"])["n"] for letter in db.dead_letters().to_pylist()]
            assert sorted(letters) == late
            assert summary.streams[0].needed_disorder == str(needed_disorder(times))
            assert sorted(taken.stream()["n"].to_pylist()) == [n for n in range(40) if n not in late]
            assert counts.history().equals(counted)


def test_operators_are_counted_as_inline(spark: Any) -> None:
    def counts(db: Database) -> dict[str, tuple[int, int]]:
        db.execute(STREAMS + QUERIES)
        db.run()
        return {one.text: (one.rows_in, one.rows_out) for one in db.status.operators}

    with connect(spark=spark, buckets=1, epoch_rows=9_000) as db:
        found = counts(db)
        (shown,) = db.execute("EXPLAIN ANALYZE currency")
        assert f"{found['Filter price > 5000'][0]:,} rows in" in str(shown)
        assert all(part.heartbeat == INFINITY for part in db.status.queries)
    with connect(runner="inline", buckets=1, epoch_rows=9_000) as db:
        expected = counts(db)
    assert all(found[text][1] == expected[text][1] for text in expected)
    # What is added up before it travels comes from several tasks on Spark, and so in more rows.
    added_up = {text for text in found if found[text][0] != expected[text][0]}
    assert found.keys() == expected.keys()
    assert all(text.startswith("Aggregate") for text in added_up)


@pytest.mark.parametrize(("undivided", "stays"), [(0, False), (math.inf, False), (math.inf, True)])
def test_later_epochs_look_up_nothing_in_the_jvm(
    undivided: float, stays: bool, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not stays:
        monkeypatch.setattr(ResidentTask, "begun", lambda *_: None)
    before: list[str] = []
    epochs = [before]
    send, run = GatewayClient.send_command, SparkRunner.run_epoch

    def noted(client: Any, command: str, *rest: Any, **named: Any) -> Any:
        # A job that stays asks in a thread of its own; what is no longer used is let go of at any time.
        if threading.current_thread().name != "headrace epochs" and not command.startswith("m\nd\n"):
            epochs[-1].append(command)
        return send(client, command, *rest, **named)

    def run_noted(runner: SparkRunner, *work: Any) -> Any:
        epochs.append([])
        return run(runner, *work)

    leave_undivided(monkeypatch, undivided)
    monkeypatch.setattr("headrace.runtime.spark.startup.resident.IDLE", 60.0)
    with connect(spark=spark, epoch_rows=10_000, buckets=3) as db:
        db.execute(STREAMS + QUERIES)
        monkeypatch.setattr(SparkRunner, "run_epoch", run_noted)
        monkeypatch.setattr(GatewayClient, "send_command", noted)
        db.run()
        monkeypatch.undo()
    looked_up = [[command for command in one if command.startswith(("r\nu\n", "r\nm\n"))] for one in epochs]
    copied = [sum("java.util.HashMap" in command for command in one) for one in epochs]
    assert len(epochs) > 3
    # The second epoch has fewer tasks than the first; their numbers are handed to the JVM once.
    assert looked_up[3:] == [[]] * (len(epochs) - 3)
    assert copied[3:] == [0] * (len(epochs) - 3)
    # In a task that stays, an epoch asks the JVM for nothing at all.
    assert [bool(one) for one in epochs[3:]] == [not stays] * (len(epochs) - 3)


def test_two_runs_of_one_spark_leave_its_environment_as_it_was(spark: Any) -> None:
    context = spark.sparkContext
    environment = context.environment
    first, second = _known_in_java(context), _known_in_java(context)
    first.__enter__()
    second.__enter__()
    assert context.environment is not environment
    assert dict(context.environment) == environment
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert context.environment is environment


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are glibc's")
def test_workers_keep_the_memory_of_arrays(spark: Any) -> None:
    """Also those of a session of the user's."""

    def allocator(values: pa.Array) -> pa.Array:
        return pa.array([pa.default_memory_pool().backend_name] * len(values))

    with connect(spark=spark) as db:
        db.stream("s", pa.table({"ts": [1], "v": [1]}), timestamp="ts")
        db.function("allocator", allocator, arguments=["BIGINT"], returns="VARCHAR")
        query = db.query("SELECT allocator(v) AS name FROM s")
        db.run()
        assert query.history()["name"].to_pylist() == ["system"]


def test_the_users_session_is_left_as_it_was(spark: Any) -> None:
    before = spark.conf.get("spark.sql.adaptive.enabled")
    environment = spark.sparkContext.environment
    with connect(spark=spark) as db:
        db.stream("s", pa.table({"x": [1, 2, 2], "ts": [1, 2, 3]}), timestamp="ts")
        query = db.query("SELECT DISTINCT x FROM s [RANGE 5]")
        db.run()
        assert query.history().num_rows == 2
    assert spark.conf.get("spark.sql.adaptive.enabled") == before
    assert spark.sparkContext.environment is environment
    assert type(environment) is dict
    assert spark.range(3).count() == 3, "closing the database does not stop a session of the user's"


def test_intervals_of_a_bounded_spark_frame_are_left_out(spark: Any) -> None:
    frame = spark.sql(
        "SELECT 1 AS ts, INTERVAL '1-2' YEAR TO MONTH AS `a.b`, INTERVAL '1' DAY AS d, "
        "ARRAY(INTERVAL '3' YEAR) AS y, make_interval(1, 2) AS m, "
        "CAST(INTERVAL '1-2' YEAR TO MONTH AS STRING) AS kept"
    )
    with connect(runner="inline") as db:
        with pytest.warns(HeadraceWarning, match="left out") as warned:
            db.stream("s", frame, timestamp="ts")
        assert db.query("SELECT * FROM s", "q").schema.names == ("ts", "kept")
    told = " ".join(str(one.message) for one in warned)
    assert all(f"{name} (" in told for name in ("a.b", "d", "y", "m"))


def test_a_bounded_spark_frame_is_read_in_order_of_time(spark: Any) -> None:
    frame = spark.createDataFrame([(3, "c"), (1, "a"), (2, "b")], "ts BIGINT, x STRING")
    with connect(spark=spark, epoch_rows=1) as db:
        db.stream("s", frame, timestamp="ts")
        query = db.query("SELECT x FROM s")
        assert db.run().late == 0
        assert query.history().column("x").to_pylist() == ["a", "b", "c"]


def test_a_bounded_spark_frame_with_timestamps_is_read_and_pushed(spark: Any) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (TIMESTAMP '2024-05-01 09:00:02', 2, INTERVAL '1' DAY), "
        "(TIMESTAMP '2024-05-01 09:00:01', 1, INTERVAL '2' DAY) AS t(ts, `a.b`, odd)"
    )
    second = datetime(2024, 5, 1, 9, 0, 1, tzinfo=UTC)
    with connect(runner="inline") as db:
        with pytest.warns(HeadraceWarning, match=r"left out, .*: odd \(duration") as warned:
            db.stream("s", frame, timestamp="ts")
        assert [warning.filename for warning in warned] == [__file__]
        query = db.query("SELECT `a.b` AS x FROM s")
        db.run()
        rows = query.history().select(["x", "valid_from"]).to_pylist()
    assert rows == [
        {"x": 1, "valid_from": second},
        {"x": 2, "valid_from": second + timedelta(seconds=1)},
    ]
    with connect(runner="inline") as db:
        db.execute("CREATE STREAM p (ts TIMESTAMP, `a.b` BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT `a.b` AS x FROM p")
        db.start()
        assert db.push("p", frame.orderBy("ts"))
        db.stop()
        changes = query.changes().select(["x", "valid_from"]).to_pylist()
    assert changes == [{"x": 1, "valid_from": second}]


def test_an_error_in_a_task_reaches_the_user_as_it_is(spark: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"x": [1] * 1000, "ts": list(range(1000))}), tmp_path / f"{name}.parquet")
    with connect(spark=spark, epoch_rows=1000) as db:
        db.execute(f"CREATE STREAM s FROM parquet OPTIONS (path='{tmp_path}') TIMESTAMP BY ts DISORDER 1000")
        db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]")
        (tmp_path / "b.parquet").write_bytes(b"no longer Parquet")
        with pytest.raises(SourceError, match=r"b\.parquet"):
            db.run()


def test_a_query_that_overflows_ends_alone(spark: Any) -> None:
    with connect(spark=spark, epoch_rows=2) as db:
        db.stream("s", pa.table({"x": [1, 2, 2**63 - 1, 1], "ts": [1, 2, 3, 4]}), timestamp="ts")
        bad = db.query("SELECT SUM(x) AS s FROM s [RANGE 5]", name="bad")
        good = db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]", name="good")
        assert [name for name, *_ in db.run().failed] == ["bad"]
        assert good.history().column("n").to_pylist() == [1, 2, 3, 4, 3, 2, 1]
        with pytest.raises(UserError, match="SUM overflows BIGINT"):
            bad.history()
