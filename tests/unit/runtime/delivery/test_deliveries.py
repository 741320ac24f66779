"""A sink gets every committed epoch in order, in endless and bounded runs, whatever fails or stops."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import warm_processes
from headrace import Database, FunctionSink, Query, Retry, UserError, connect
from headrace.errors import DeliveryError, StoreError
from headrace.runtime.store.sealed import seal, unseal
from headrace.time import INFINITY

PATIENCE = 30.0


class Recorder:
    """A function for a sink that keeps what it gets, and lets a test wait for it."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, list[dict[str, Any]]]] = []
        self._changed = threading.Condition()

    def __call__(self, epoch: int, heartbeat: int, table: pa.Table) -> None:
        with self._changed:
            self.calls.append((epoch, heartbeat, table.to_pylist()))
            self._changed.notify_all()

    @property
    def epochs(self) -> list[int]:
        return [epoch for epoch, _, _ in self.calls]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for _, _, rows in self.calls for row in rows]

    def wait_for_epoch(self, epoch: int) -> None:
        self.wait_for(lambda: self.epochs[-1:] == [epoch])

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE)


def pushed(db: Database, disorder: int = 0) -> Query:
    db.execute(f"CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER {disorder}")
    return db.query("SELECT x, COUNT(*) AS n FROM s [RANGE 3] GROUP BY x", name="counts")


def passed_on(db: Database, disorder: int) -> Query:
    """A query whose elements wait for the heartbeat outside of any operator."""
    db.execute(f"CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER {disorder}")
    return db.query("SELECT x FROM s", name="counts")


def push(db: Database, *instants: int) -> None:
    """One epoch for each."""
    for at in instants:
        db.push("s", [{"x": at % 2, "ts": at}])


def test_a_bounded_run_delivers_all_epochs_at_its_end() -> None:
    seen = Recorder()
    with connect(runner="inline", epoch_rows=2) as db:
        db.stream("s", pa.table({"x": [1, 2, 1, 2, 1], "ts": [1, 2, 3, 4, 5]}), timestamp="ts")
        query = db.query("SELECT x, COUNT(*) AS n FROM s [RANGE 3] GROUP BY x")
        query.deliver(seen)
        db.run()
        assert seen.rows == query.changes().to_pylist()
    assert seen.epochs == [1, 2, 3]
    assert seen.calls[-1][1] == INFINITY


def test_an_endless_run_delivers_after_every_commit() -> None:
    seen = Recorder()
    with connect(runner="inline") as db:
        query = pushed(db)
        query.deliver(seen)
        db.start()
        for at in range(1, 6):
            push(db, at)
            seen.wait_for_epoch(at)
        db.stop()
        assert seen.rows == query.changes().to_pylist()
    assert seen.epochs == [1, 2, 3, 4, 5]
    assert [heartbeat for _, heartbeat, _ in seen.calls] == [1, 2, 3, 4, 5]


def test_a_sink_may_be_attached_while_the_run_goes_on() -> None:
    seen = Recorder()
    with connect(runner="inline") as db:
        query = pushed(db)
        db.start()
        push(db, 1, 2)
        query.deliver(seen)
        seen.wait_for(lambda: seen.epochs == [1, 2])
        push(db, 3)
        db.stop()
    assert seen.epochs == [1, 2, 3]


def test_a_slow_sink_holds_no_epoch_back_and_gets_everything_before_the_end() -> None:
    seen, gate = Recorder(), threading.Event()

    def slow(epoch: int, heartbeat: int, table: pa.Table) -> None:
        assert gate.wait(PATIENCE)
        seen(epoch, heartbeat, table)

    with connect(runner="inline", retain_epochs=2) as db:
        query = pushed(db)
        query.deliver(slow)
        fast = Recorder()
        query.deliver(fast, name="fast")
        db.start()
        push(db, *range(1, 21))
        fast.wait_for(lambda: len(fast.calls) == 20)
        assert not seen.calls
        gate.set()
        db.stop()
    assert seen.epochs == list(range(1, 21)), "results are kept for a sink beyond those that are retained"
    assert seen.calls == fast.calls


def test_what_sinks_have_taken_is_swept(tmp_path: Path) -> None:
    seen = Recorder()
    with connect(runner="inline", retain_epochs=2, storage=tmp_path) as db:
        pushed(db).deliver(seen)
        db.start()
        for at in range(1, 41):
            push(db, at)
            seen.wait_for_epoch(at)
        assert len(list((tmp_path / "results").iterdir())) <= 2 * 3
        db.stop()


def test_a_failing_sink_is_reported_and_tried_again_while_epochs_go_on() -> None:
    seen, other = Recorder(), Recorder()
    broken = threading.Event()
    failed = threading.Semaphore(0)

    def failing(epoch: int, heartbeat: int, table: pa.Table) -> None:
        if epoch == 2 and broken.is_set():
            failed.release()
            raise ConnectionError("nobody answers")
        seen(epoch, heartbeat, table)

    broken.set()
    with connect(runner="inline") as db:
        query = pushed(db)
        query.deliver(failing, name="flaky", retry=Retry(pause=0.001, longest=0.001))
        query.deliver(other, name="other")
        db.start()
        push(db, 1, 2, 3, 4)
        other.wait_for(lambda: len(other.calls) == 4)
        assert all(failed.acquire(timeout=PATIENCE) for _ in range(5)), "it is tried again and again"
        problem = db.problems["counts to flaky"]
        assert "fails at epoch 2: ConnectionError: nobody answers" in problem
        assert seen.epochs == [1]
        broken.clear()
        seen.wait_for(lambda: len(seen.calls) == 4)
        db.stop()
        assert not db.problems
    assert seen.calls == other.calls


def test_a_sink_that_is_given_up_ends_alone_and_stop_tells() -> None:
    other = Recorder()

    def failing(epoch: int, heartbeat: int, table: pa.Table) -> None:
        raise ValueError("no")

    with connect(runner="inline") as db:
        query = pushed(db)
        query.deliver(failing, retry=Retry(attempts=2, pause=0))
        query.deliver(other, name="other")
        db.start()
        push(db, 1, 2)
        with pytest.raises(DeliveryError, match="sink failing of counts fails at epoch 1: ValueError: no"):
            db.stop()
        assert other.epochs == [1, 2]
        assert "given up after 2 attempts" in db.problems["counts to failing"]
        assert query.changes().num_rows, "what was committed stays readable"


def test_stop_does_not_wait_for_a_sink_that_keeps_failing() -> None:
    tried: list[int] = []

    def failing(epoch: int, heartbeat: int, table: pa.Table) -> None:
        tried.append(epoch)
        raise ValueError("no")

    with connect(runner="inline") as db:
        pushed(db).deliver(failing, retry=Retry(pause=3600, longest=3600))
        db.start()
        push(db, 1)
        with pytest.raises(DeliveryError):
            db.stop()
    assert tried == [1, 1, 1]


class Hanging(Recorder):
    """A function that hangs at an epoch until the test lets it go on."""

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.at = epoch
        self.entered, self.left = threading.Event(), threading.Event()

    def __call__(self, epoch: int, heartbeat: int, table: pa.Table) -> None:
        if epoch == self.at:
            self.entered.set()
            assert self.left.wait(PATIENCE)
        super().__call__(epoch, heartbeat, table)


def test_stop_leaves_a_hanging_sink_behind_and_the_next_start_delivers_the_rest(tmp_path: Path) -> None:
    hanging, other, again = Hanging(epoch=2), Recorder(), Recorder()
    with connect(runner="inline", storage=tmp_path) as db:
        query = pushed(db)
        query.deliver(hanging, name="slow")
        query.deliver(other, name="other")
        db.start()
        push(db, 1, 2, 3)
        assert hanging.entered.wait(PATIENCE)
        other.wait_for_epoch(3)
        with pytest.raises(DeliveryError, match=r"slow of counts has not taken the epochs 2 to 3 in time"):
            db.stop(timeout=0)
        assert "has not taken the epochs 2 to 3 in time" in db.problems["counts to slow"]
        assert query.changes().num_rows, "what was committed stays readable"
        with pytest.raises(
            DeliveryError, match="slow of counts is still busy with an epoch of the run before"
        ):
            db.start()
        (worker,) = [one for one in threading.enumerate() if one.name == "headrace counts to slow"]
        # The store is free, also for a driver that knows nothing of the thread that hangs.
        with connect(runner="inline", storage=tmp_path) as next_driver:
            query = pushed(next_driver)
            query.deliver(again, name="slow")
            query.deliver(other, name="other")
            next_driver.start()
            again.wait_for_epoch(3)
            push(next_driver, 4)
            again.wait_for_epoch(4)
            next_driver.stop()
        position = (tmp_path / "sinks/counts%231-slow.json").read_bytes()
        hanging.left.set()
        worker.join(PATIENCE)
        assert (tmp_path / "sinks/counts%231-slow.json").read_bytes() == position, "it is not ours any more"
    assert again.epochs == [2, 3, 4]
    assert other.epochs == [1, 2, 3, 4]
    assert hanging.epochs == [1, 2], "it is called no more once it was left behind"


def test_a_hanging_sink_of_a_stopped_run_is_used_again_once_it_returns(tmp_path: Path) -> None:
    hanging = Hanging(epoch=1)
    with connect(runner="inline", storage=tmp_path) as db:
        pushed(db).deliver(hanging, name="slow")
        db.start()
        push(db, 1)
        assert hanging.entered.wait(PATIENCE)
        with pytest.raises(DeliveryError, match="has not taken epoch 1 in time"):
            db.stop(timeout=0)
        (worker,) = [one for one in threading.enumerate() if one.name == "headrace counts to slow"]
        hanging.left.set()
        worker.join(PATIENCE)
        db.start()
        db.stop()
    assert hanging.epochs == [1, 1], "the epoch comes again, since nobody knows what became of it"


def test_a_bounded_run_raises_after_all_other_sinks_got_theirs() -> None:
    seen = Recorder()

    def failing(epoch: int, heartbeat: int, table: pa.Table) -> None:
        raise ValueError("no")

    with connect(runner="inline") as db:
        db.stream("s", pa.table({"x": [1], "ts": [1]}), timestamp="ts")
        query = db.query("SELECT x FROM s")
        query.deliver(failing, retry=Retry(pause=0))
        query.deliver(seen, name="good")
        with pytest.raises(DeliveryError, match="given up after 3 attempts"):
            db.run()
        assert query.history().num_rows == 1
    assert seen.epochs == [1]


@pytest.mark.parametrize("register", [pushed, passed_on])
def test_a_sink_continues_exactly_after_a_restart(
    tmp_path: Path, register: Callable[[Database, int], Query]
) -> None:
    """With disorder, elements wait over the restart, and belong to an epoch after it."""
    seen = Recorder()
    for first in (1, 4, 9):
        with connect(runner="inline", storage=tmp_path, retain_epochs=2) as db:
            register(db, 5).deliver(seen, name="seen")
            db.start()
            push(db, *range(first, first + 4))
            db.stop()
    whole = Recorder()
    with connect(runner="inline") as db:
        register(db, 5).deliver(whole)
        db.start()
        for first in (1, 4, 9):
            push(db, *range(first, first + 4))
        db.stop()
    assert seen.epochs == list(range(1, 13))
    assert seen.calls == whole.calls


KILLED = """
import json, os, signal, sys
import pyarrow as pa
from headrace import connect

folder, kill_at, moment = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def note(epoch, heartbeat, table):
    if epoch == kill_at and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    with open(f"{folder}/notes", "a") as file:
        file.write(json.dumps([epoch, table.to_pylist()]) + chr(10))
    if epoch == kill_at and moment == "after":
        os.kill(os.getpid(), signal.SIGKILL)

with connect(runner="inline", epoch_rows=1, storage=f"{folder}/store") as db:
    db.stream("s", pa.table({"x": [1, 2, 1, 2, 1], "ts": [1, 2, 3, 4, 5]}), timestamp="ts")
    query = db.query("SELECT x, COUNT(*) AS n FROM s [RANGE 3] GROUP BY x")
    query.deliver(note)
    db.run()
    print(json.dumps(query.changes().to_pylist()))
"""


@pytest.mark.slow("kills a process at each of its epochs")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_process_repeats_at_most_the_last_epoch(tmp_path: Path, moment: str) -> None:
    def attempt(kill_at: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(kill_at), moment]
        return warm_processes.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert attempt(3).returncode == -signal.SIGKILL
    done = attempt(0)
    assert done.returncode == 0, done.stderr
    calls = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    repeats = [3] if moment == "after" else []
    assert [epoch for epoch, _ in calls] == [1, 2, 3, *repeats, 4, 5]
    by_epoch: dict[int, list[dict[str, Any]]] = {}
    for epoch, rows in calls:
        assert by_epoch.setdefault(epoch, rows) == rows, "a repeat is equal"
    assert [row for epoch in sorted(by_epoch) for row in by_epoch[epoch]] == json.loads(done.stdout)


def test_a_query_that_fails_delivers_up_to_the_epoch_before() -> None:
    bad, good = Recorder(), Recorder()
    with connect(runner="inline", epoch_rows=1) as db:
        db.stream("s", pa.table({"x": [1, 2, 2**63 - 1, 1, 1], "ts": [1, 2, 3, 4, 5]}), timestamp="ts")
        db.query("SELECT SUM(x) AS s FROM s [RANGE 5]", name="bad").deliver(bad)
        db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]", name="good").deliver(good)
        assert [name for name, *_ in db.run().failed] == ["bad"]
    assert bad.epochs == [1, 2, 3], "the row that makes it fail is summed when its instant is past"
    assert bad.calls[-1][1] == 3
    assert [(row["s"], row["valid_from"]) for row in bad.rows] == [(1, 1), (3, 2)]
    assert good.epochs == [1, 2, 3, 4, 5]


def test_a_new_sink_begins_where_it_is_told(tmp_path: Path) -> None:
    first, late = Recorder(), Recorder()
    for turn in range(2):
        with connect(runner="inline", storage=tmp_path, retain_epochs=2) as db:
            query = pushed(db)
            query.deliver(first, name="first")
            if turn == 1:
                query.deliver(late, name="late", from_epoch=4)
            db.start()
            push(db, *range(1 + 4 * turn, 5 + 4 * turn))
            db.stop()
    assert first.epochs == list(range(1, 9))
    assert late.calls == first.calls[3:]


def test_epochs_that_are_no_longer_kept_are_missed_aloud(tmp_path: Path) -> None:
    for turn in range(3):
        with connect(runner="inline", storage=tmp_path, retain_epochs=1) as db:
            query = pushed(db)
            if turn == 0:
                query.deliver(Recorder(), name="sink")
            db.start()
            push(db, *range(1 + 4 * turn, 5 + 4 * turn))
            db.stop()
    with connect(runner="inline", storage=tmp_path, retain_epochs=1) as db:
        query = pushed(db)
        query.deliver(Recorder(), name="sink")
        with pytest.raises(DeliveryError, match="has missed the epochs 5 to 11, whose results are no longer"):
            db.start()
    with connect(runner="inline", storage=tmp_path, retain_epochs=1) as db:
        pushed(db).deliver(Recorder(), name="new")
        with pytest.raises(DeliveryError, match=r"results are kept from epoch 12 on.*from_epoch=12"):
            db.start()


def test_a_store_older_than_its_sink_is_refused(tmp_path: Path) -> None:
    position = tmp_path / "sinks/counts%231-sink.json"
    for damage in (None, {"epoch": 99, "since": 100}, "not JSON"):
        with connect(runner="inline", storage=tmp_path) as db:
            pushed(db).deliver(Recorder(), name="sink")
            if damage is None:
                db.start()
                push(db, 1)
                db.stop()
            elif isinstance(damage, dict):
                position.write_bytes(seal(unseal(position.read_bytes()) | damage))
                with pytest.raises(DeliveryError, match="taken epoch 99, and the store ends with epoch 1"):
                    db.start()
            else:
                position.write_text(damage)
                with pytest.raises(StoreError, match=r"of a sink .*counts%231-sink\.json is damaged"):
                    db.start()


def test_names_and_numbers_are_checked() -> None:
    with connect(runner="inline") as db:
        query = pushed(db)
        query.deliver(lambda *_: None)
        with pytest.raises(UserError, match="counts has a sink function already"):
            query.deliver(FunctionSink(lambda *_: None))
        with pytest.raises(UserError, match="'a/b' is not a valid sink name"):
            query.deliver(Recorder(), name="a/b")
        with pytest.raises(UserError, match="there is no epoch 0"):
            query.deliver(Recorder(), name="zero", from_epoch=0)
        with pytest.raises(UserError, match="makes no sense"):
            Retry(attempts=0)
    with connect(runner="inline", keep_results=False) as db, pytest.raises(UserError, match="nothing to del"):
        pushed(db).deliver(Recorder())
