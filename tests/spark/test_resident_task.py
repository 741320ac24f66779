"""Epochs in one Spark task that stays: what it gives, when it ends, and what happens when it dies."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.errors import PythonException

import headrace as hr
from headrace.errors import ExecutionError
from headrace.runtime.spark.runner import SparkRunner
from headrace.runtime.spark.stages import PackedWork
from headrace.runtime.spark.startup import resident
from headrace.runtime.spark.startup.resident import LIFE, ResidentStage, ResidentTask
from headrace.runtime.tasks.inline import UNDIVIDED
from inside import leave_undivided, run_of
from waiting import wait_for

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM p (ts BIGINT, k BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;"
QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM p [RANGE 5] GROUP BY k"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[ResidentTask]:
    """The tasks that were begun; every epoch after the first one of a run is small."""
    leave_undivided(monkeypatch, 1e9)
    found: list[ResidentTask] = []
    begin = ResidentTask.begun

    def noted(*args: Any) -> ResidentTask | None:
        task = begin(*args)
        found.extend([task] if task is not None else [])
        return task

    monkeypatch.setattr(ResidentTask, "begun", noted)
    return found


def rows(start: int, count: int = 4) -> pa.Table:
    places = range(start, start + count)
    return pa.table({"ts": [*places], "k": [place % 3 for place in places], "v": [*places]})


def push(db: hr.Database, start: int) -> None:
    assert db.push("p", rows(start))


def history(db: hr.Database, query: hr.Query, end: int) -> pa.Table:
    """What was said of the time before an instant, and is not taken back."""
    db.heartbeat("p", end)
    db.stop()
    return before(query.history(), end)


def expected(end: int) -> pa.Table:
    with hr.connect(runner="inline") as db:
        db.stream("p", rows(0, end), timestamp="ts")
        found = db.query(QUERY)
        db.run()
        return before(found.history(), end)


def before(table: pa.Table, end: int) -> pa.Table:
    clipped = pc.min_element_wise(table["valid_to"], end)
    return table.set_column(table.column_names.index("valid_to"), "valid_to", clipped).filter(
        pc.less(table["valid_from"], end)
    )


def test_small_epochs_are_one_job_until_it_has_nothing_to_do(
    spark: Any, begun: list[ResidentTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "IDLE", 0.5)
    tracker = spark.sparkContext.statusTracker()
    with hr.connect(spark=spark) as db:
        db.execute(STREAM)
        query = db.query(QUERY, name="q")
        db.start()
        before = len(tracker.getJobIdsForGroup())
        for start in range(0, 40, 4):
            push(db, start)
        first = begun[0]
        assert len(tracker.getJobIdsForGroup()) - before == len(begun)
        wait_for(lambda: not first._thread.is_alive())
        assert first._error is None
        push(db, 40)
        assert begun[-1] is not first
        found = history(db, query, 44)
    assert found.equals(expected(44))
    assert not begun[-1]._thread.is_alive()


def test_one_that_was_cancelled_while_it_had_nothing_to_do_is_followed_by_another(
    spark: Any, begun: list[ResidentTask]
) -> None:
    with hr.connect(spark=spark) as db:
        db.execute(STREAM)
        query = db.query(QUERY)
        db.start()
        push(db, 0)
        spark.sparkContext.cancelAllJobs()
        wait_for(lambda: not begun[0]._thread.is_alive())
        assert begun[0]._error is not None
        push(db, 4)
        assert len(begun) == 2
        found = history(db, query, 8)
    assert found.equals(expected(8))


def test_it_lives_no_longer_than_it_may(
    spark: Any, begun: list[ResidentTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many epochs there are: each task has one here."""
    monkeypatch.setattr(resident, "LIFE", 1e-9)
    tracker = spark.sparkContext.statusTracker()
    with hr.connect(spark=spark) as db:
        db.execute(STREAM)
        query = db.query(QUERY)
        db.start()
        before = len(tracker.getJobIdsForGroup())
        for start in range(0, 20, 4):
            push(db, start)
        assert len(tracker.getJobIdsForGroup()) - before == len(begun) == 5
        found = history(db, query, 20)
    assert all(task._error is None for task in begun)
    assert found.equals(expected(20))


def test_it_ends_before_spark_kills_a_silent_worker(spark: Any) -> None:
    conf = spark.sparkContext._jsc.sc().conf()
    kills, after = "spark.python.worker.killOnIdleTimeout", "spark.python.worker.idleTimeoutSeconds"
    lives = []
    for seconds, killed in (("0", "true"), ("1m", "false"), ("1m", "true"), ("1h", "true")):
        conf.set(after, seconds)
        conf.set(kills, killed)
        lives.append(resident._life(spark.sparkContext))
        conf.remove(after)
        conf.remove(kills)
    assert [*lives, resident._life(spark.sparkContext)] == [LIFE, LIFE, 30.0, LIFE, LIFE]


def test_garbage_of_its_epochs_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are left out of collection, and so stay, after the first epoch and ever less often."""
    left_out: list[int] = []
    ran: list[bytes] = []

    def run(packed: PackedWork, *_: object) -> bytes:
        ran.append(packed.rest)
        return b""

    monkeypatch.setattr(resident, "attempt_of", lambda: 0)
    monkeypatch.setattr(resident, "keep_collections_short", lambda: left_out.append(len(ran)))
    monkeypatch.setattr(resident, "_run", run)
    with Listener(str(tmp_path / "door"), "AF_UNIX") as listener:
        stage = ResidentStage(str(tmp_path / "door"), 10.0, 10.0, 1)
        worker = threading.Thread(target=lambda: list(stage.chunks([0])))
        worker.start()
        with listener.accept() as driver:
            for number in range(100):
                driver.send_bytes(pickle.dumps((None, b"%d" % number)))
                driver.recv_bytes()
        worker.join()
    assert len(ran) == 100
    assert left_out == [1, 2, 4, 8, 16, 32, 64]


def test_a_graph_that_changes_reaches_it(spark: Any, begun: list[ResidentTask]) -> None:
    with hr.connect(spark=spark) as db:
        db.execute(STREAM)
        db.query(QUERY, name="q")
        db.start()
        push(db, 0)
        push(db, 4)
        late = db.query("SELECT k, MAX(v) AS top FROM p [RANGE 5] GROUP BY k")
        push(db, 8)
        db.heartbeat("p", 12)
        db.stop()
        tops = late.history()["top"].to_pylist()
    assert max(tops) == 11


def test_no_two_epochs_in_it_have_one_attempt(spark: Any, tmp_path: Path, begun: list[ResidentTask]) -> None:
    """Or an epoch that is tried again could write over a file that is being read."""
    with hr.connect(spark=spark, storage=tmp_path) as db:
        db.execute(STREAM)
        db.query(QUERY)
        db.start()
        for start in range(0, 16, 4):
            push(db, start)
        names = [path.name for path in tmp_path.rglob("e*-l*-t*-a*")]
    assert len(begun) == 1
    found = {(name.split("-")[0], name.split("-")[3]) for name in names}
    assert len(found) == len({attempt for _, attempt in found}) > 2


@pytest.mark.parametrize("parallelism", [2, 7])
def test_epochs_of_several_tasks_run_in_it_too(
    parallelism: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session may cut epochs into more tasks than it has slots."""
    monkeypatch.setattr(SparkContext, "defaultParallelism", parallelism)
    pq.write_table(rows(0, 5_000), tmp_path / "rows.parquet")
    tracker = spark.sparkContext.statusTracker()
    with hr.connect(spark=spark, epoch_rows=1_000) as db:
        db.execute(f"CREATE STREAM p FROM parquet OPTIONS (path='{tmp_path}') TIMESTAMP BY ts")
        query = db.query(QUERY)
        before = len(tracker.getJobIdsForGroup())
        assert db.run().epochs == 5
        assert len(tracker.getJobIdsForGroup()) - before == 1
        found = query.history()
    assert found.equals(whole(5_000))


def whole(end: int) -> pa.Table:
    with hr.connect(runner="inline") as db:
        db.stream("p", rows(0, end), timestamp="ts")
        found = db.query(QUERY)
        db.run()
        return found.history()


def test_it_leaves_its_slot_to_an_epoch_of_several_tasks_with_code_of_users(
    spark: Any, begun: list[ResidentTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[bool] = []
    in_job = SparkRunner._in_job

    def noted(runner: SparkRunner, *args: Any) -> Any:
        alive.append(any(task._thread.is_alive() for task in begun))
        return in_job(runner, *args)

    monkeypatch.setattr(SparkRunner, "_in_job", noted)
    with hr.connect(spark=spark) as db:
        db.execute(STREAM)
        db.function("same", lambda v: v, arguments=["BIGINT"], returns="BIGINT")
        query = db.query(QUERY.replace("SUM(v)", "SUM(same(v))"))
        db.start()
        push(db, 0)
        push(db, 4)
        assert len(begun) == 1
        monkeypatch.setattr("headrace.runtime.driver.epoch.effort.Effort.tasks", lambda *_: 2)
        push(db, 8)
        monkeypatch.undo()
        assert alive == [False, False]
        found = history(db, query, 12)
    assert found.equals(expected(12))


@pytest.mark.parametrize(("calls", "stays"), [(False, True), (True, True), (False, False)])
def test_tasks_that_are_threads_of_it_are_worth_less_work(
    calls: bool, stays: bool, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of users has jobs where it has several tasks, wherever the epoch before was."""
    if not stays:
        monkeypatch.setattr(ResidentTask, "begun", lambda *_: None)
    with hr.connect(spark=spark) as db:
        db.execute(STREAM)
        db.function("same", lambda v: v, arguments=["BIGINT"], returns="BIGINT")
        db.query(QUERY.replace("SUM(v)", "SUM(same(v))") if calls else QUERY)
        db.start()
        for start in (0, 4, 8):
            push(db, start)
            worth = run_of(db)._runner.undivided
            assert worth == (UNDIVIDED if stays and not calls else 0.2)


def test_one_slot_is_left_for_other_jobs(spark: Any, begun: list[ResidentTask]) -> None:
    """The session has two; a second run has jobs, and so have users."""
    with hr.connect(spark=spark) as one, hr.connect(spark=spark) as other:
        for db in (one, other):
            db.execute(STREAM)
            db.query(QUERY)
            db.start()
        for start in range(0, 12, 4):
            push(one, start)
            push(other, start)
        assert sum(task._thread.is_alive() for task in begun) == 1
        assert spark.range(10).count() == 10


def test_a_worker_that_dies_fails_the_epoch_once(
    spark: Any, tmp_path: Path, begun: list[ResidentTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[str] = []
    monkeypatch.setattr(
        "headrace.runtime.driver.endless.live.LiveRun._notice_failure",
        lambda _, error: errors.append(str(error)),
    )

    def dies_once(values: pa.Array) -> pa.Array:
        if pc.max(values).as_py() >= 8 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return pc.add(values, 0)

    with hr.connect(spark=spark) as db:
        db.execute(STREAM)
        db.function("dies_once", dies_once, arguments=["BIGINT"], returns="BIGINT")
        query = db.query("SELECT dies_once(v) AS v FROM p")
        db.start()
        for start in (0, 4, 8):
            push(db, start)
        db.heartbeat("p", 12)
        db.stop()
        assert query.history()["v"].to_pylist() == list(range(12))
    assert len(begun) == 2
    assert ["a Python worker of Spark's died during epoch 3" in error for error in errors] == [True]


def test_an_epoch_that_hangs_is_given_up(spark: Any, tmp_path: Path, begun: list[ResidentTask]) -> None:
    def hangs(values: pa.Array) -> pa.Array:
        if pc.max(values).as_py() >= 8:
            (tmp_path / "hangs").touch()
            time.sleep(600)
        return pc.add(values, 0)

    with hr.connect(spark=spark) as db:
        db.execute(STREAM)
        db.function("hangs", hangs, arguments=["BIGINT"], returns="BIGINT")
        db.query("SELECT hangs(v) AS v FROM p")
        db.start()
        push(db, 0)
        push(db, 4)
        db.push("p", rows(8), wait=False)
        wait_for((tmp_path / "hangs").exists)
        with pytest.raises(ExecutionError, match="was given up"):
            db.stop(timeout=0.1)
    wait_for(lambda: not begun[-1]._thread.is_alive())


def test_it_fails_as_a_job_of_the_epoch_alone_would(spark: Any) -> None:
    context = spark.sparkContext
    task = ResidentTask.begun(context, context.parallelize(range(1), 1))
    assert task is not None
    with pytest.raises(PythonException, match="UnpicklingError"):
        task.chunks(PackedWork(b"no graph", b"no work"))
    assert not task._thread.is_alive()


def test_half_an_answer_is_none(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies while it sends its answer has died like any other."""
    context = spark.sparkContext
    task = ResidentTask.begun(context, context.parallelize(range(1), 1))
    assert task is not None

    def broken() -> bytes:
        raise OSError("got end of file during message")

    monkeypatch.setattr(task._task, "recv_bytes", broken)
    with pytest.raises(PythonException, match="UnpicklingError"):
        task.chunks(PackedWork(b"no graph", b"no work"))


def _begins_and_ends(context: Any) -> bool:
    task = ResidentTask.begun(context, context.parallelize(range(1), 1))
    if task is not None:
        task.end()
    return task is not None


class Deaf(Listener):
    """Has no descriptor left for those who call."""

    def accept(self) -> Connection:
        raise OSError("Too many open files")


def refused(*_: Any, **__: Any) -> Any:
    raise OSError("Operation not supported")


@pytest.mark.parametrize("listener", [refused, Deaf])
def test_without_sockets_there_is_none(spark: Any, monkeypatch: pytest.MonkeyPatch, listener: Any) -> None:
    """And its slot is free again."""
    context = spark.sparkContext
    with monkeypatch.context() as patch:
        patch.setattr(resident, "Listener", listener)
        for _ in range(3):
            assert ResidentTask.begun(context, context.parallelize(range(1), 1)) is None
    wait_for(lambda: _begins_and_ends(context))


def test_a_task_that_cannot_begin_takes_no_slot(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context = spark.sparkContext

    def none_left(*_: Any, **__: Any) -> Any:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(resident, "InheritableThread", none_left)
        with pytest.raises(RuntimeError, match="can't start"):
            ResidentTask.begun(context, context.parallelize(range(1), 1))
    task = ResidentTask.begun(context, context.parallelize(range(1), 1))
    assert task is not None
    task.end()


def test_a_task_that_is_gone_is_not_waited_for(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process holds its end of the socket, which so never ends."""
    monkeypatch.setattr(resident, "_PATIENCE", 0.1)
    context = spark.sparkContext
    task = ResidentTask.begun(context, context.parallelize(range(1), 1))
    assert task is not None
    ours, theirs = Pipe()
    real, task._task = task._task, ours
    real.close()
    assert task.chunks(PackedWork(b"no graph", b"no work")) is None
    theirs.close()


def test_ctrl_c_ends_it_before_its_answer_comes(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context = spark.sparkContext
    task = ResidentTask.begun(context, context.parallelize(range(1), 1))
    assert task is not None

    def interrupted() -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(task._task, "recv_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        task.chunks(PackedWork(b"no graph", b"no work"))
    assert task._task.closed
    wait_for(lambda: not task._thread.is_alive())


@pytest.mark.parametrize("master", ["local[2,3]", "local-cluster[1,1,1024]", "spark://somewhere:7077"])
def test_there_is_none_where_tasks_are_elsewhere_or_tried_again(master: str) -> None:
    assert ResidentTask.begun(cast(Any, SimpleNamespace(master=master)), cast(Any, None)) is None
