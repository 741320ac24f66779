"""State that is at hand from the epoch before, and is not read again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace.elements import encode_rows
from headrace.engine.access.policy import Policy
from headrace.engine.run.execution import Settings
from headrace.lowering.graph import Graph
from headrace.operators.state.runs import RunPart, RunRef, SortedRun, stored_run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.store.segments import SegmentReader
from headrace.runtime.tasks import inline
from headrace.runtime.tasks.at_hand import RunsAtHand, StatePlace
from headrace.runtime.tasks.inline import InlineRunner
from headrace.runtime.tasks.messages import Chunk, EpochWork

on_linux = pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="only Linux lists a process's mappings"
)

ROWS = pa.RecordBatch.from_pydict({"__hash": [1, 2], "__t": [0, 0]})
CONTENT = encode_rows(ROWS)
SIZE = 100 + 16 * 2 * 2
"""Of a run in memory."""


def ref_of(name: str, rows: int = 2) -> RunRef:
    return RunRef(RunPart(name, 0, 100, 0), rows, 0, 0, 0)


def stored(name: str) -> SortedRun:
    """A run that has been written to a segment, and looked at."""
    run = SortedRun(ref_of(name), lambda: ROWS, 2, (0, 0, 0))
    assert run.size == SIZE
    return run


def operator(*runs: SortedRun) -> Any:
    return SimpleNamespace(areas={"area": SimpleNamespace(runs=list(runs))})


def read(ref: RunRef) -> Any:
    """An operator that would read a run."""
    return operator(stored_run(ref, lambda _: pytest.fail("it was read")))


def place(bucket: int, token: str = "run") -> StatePlace:
    return token, ("node", bucket)


def keep(runs: RunsAtHand, bucket: int, *kept: SortedRun, token: str = "run") -> None:
    runs.keep(place(bucket, token), operator(*kept), lambda _: CONTENT)


def lent(runs: RunsAtHand, bucket: int, name: str, rows: int = 2) -> SortedRun | None:
    """What an operator gets for a run of its state; None if it has to read it."""
    taken = read(ref_of(name, rows))
    (before,) = taken.areas["area"].runs
    runs.lend(place(bucket), taken)
    (found,) = taken.areas["area"].runs
    assert found.ref == before.ref
    return None if found is before else found


def test_runs_are_lent_by_where_they_are_stored() -> None:
    runs = RunsAtHand()
    keep(runs, 0, stored("e1"))
    found = lent(runs, 0, "e1")
    assert found is not None
    assert found.batch == ROWS
    assert lent(runs, 0, "e2") is None
    assert lent(runs, 1, "e1") is None


def test_what_an_operator_no_longer_has_goes() -> None:
    runs = RunsAtHand()
    keep(runs, 0, stored("e1"))
    keep(runs, 0, stored("e2"))
    assert lent(runs, 0, "e1") is None
    assert lent(runs, 0, "e2") is not None


def test_what_was_lent_is_kept_as_it_is() -> None:
    """With what has been worked out of it, also where fewer of its rows count."""
    runs = RunsAtHand()
    keep(runs, 0, stored("e1"))
    first = lent(runs, 0, "e1")
    assert first is not None
    runs.keep(place(0), operator(first), lambda _: pytest.fail("it was read"))
    assert lent(runs, 0, "e1") is first
    fewer = first.under(ref_of("e1", 1))
    assert fewer.batch == ROWS
    runs.keep(place(0), operator(fewer), lambda _: pytest.fail("it was read"))
    found = lent(runs, 0, "e1", 1)
    assert found is not None
    assert (found.rows, found.batch) == (1, ROWS)


def test_what_does_not_fit_is_not_kept() -> None:
    runs = RunsAtHand(2 * SIZE)
    for _ in range(2):
        for bucket in range(3):
            keep(runs, bucket, stored(f"e{bucket}"))
        assert [lent(runs, bucket, f"e{bucket}") is not None for bucket in range(3)] == [True, True, False]
    keep(runs, 0, *map(stored, "abc"))
    keep(runs, 2, stored("e2"))
    assert [lent(runs, bucket, f"e{bucket}") is not None for bucket in range(3)] == [False, True, True]


def test_operators_that_are_no_more_leave_room() -> None:
    runs = RunsAtHand(2 * SIZE)
    for bucket in range(2):
        keep(runs, bucket, stored(f"e{bucket}"))
    runs.forget_all_but("another", {}, Graph((), ()))
    assert [lent(runs, bucket, f"e{bucket}") is not None for bucket in range(2)] == [True, True]
    graph = Graph((), ())
    runs.forget_all_but("run", {("node", 1): {}}, graph)
    runs.forget_all_but("run", {}, graph)  # the same operators as before
    keep(runs, 2, stored("e2"))
    assert [lent(runs, bucket, f"e{bucket}") is not None for bucket in range(3)] == [False, True, True]


def test_what_another_run_left_makes_room() -> None:
    runs = RunsAtHand(2 * SIZE)
    for bucket in range(2):
        keep(runs, bucket, stored(f"e{bucket}"), token="before")
    for bucket in range(3):
        keep(runs, bucket, stored(f"e{bucket}"))
    assert [lent(runs, bucket, f"e{bucket}") is not None for bucket in range(3)] == [True, True, False]


def test_what_was_not_looked_at_or_not_stored_is_not_kept() -> None:
    runs = RunsAtHand()
    keep(runs, 0, *read(ref_of("e1")).areas["area"].runs)
    assert lent(runs, 0, "e1") is None
    new = SortedRun(None, lambda: ROWS, 2, (0, 0, 0))
    keep(runs, 0, new)
    taken = operator(new)
    runs.lend(place(0), taken)
    assert taken.areas["area"].runs == [new]


@pytest.mark.parametrize(("tasks", "reads"), [(1, False), (2, True)])
def test_an_epoch_in_the_process_of_the_one_before_reads_no_state(
    tasks: int, reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    original = SegmentReader.read

    def counted(self: SegmentReader, part: RunPart) -> pa.Buffer:
        read.append(part)
        return original(self, part)

    monkeypatch.setattr(SegmentReader, "read", counted)
    with hr.Database(lambda: InlineRunner(tasks), Settings(None, RunSettings(), None), Policy.open()) as db:
        db.execute("CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT k, COUNT(*) AS n, MAX(ts) AS last FROM s [RANGE 5] GROUP BY k", name="q")
        db.start()
        for ts in range(20):
            db.push("s", {"k": ts % 2, "ts": ts})
        assert query.snapshot(18).to_pydict() == {"k": [0, 1], "n": [3, 2], "last": [18, 17]}
        db.stop()
    assert bool([part for part in read if part.segment.startswith("segments/")]) == reads


@on_linux
def test_what_was_read_to_be_at_hand_holds_no_file(tmp_path: Path) -> None:
    create = "CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
    for begin in (0, 20):
        with hr.connect(runner="inline", storage=tmp_path) as db:
            if not begin:
                db.execute(create)
                db.query("SELECT k, COUNT(*) AS n FROM s [RANGE 50] GROUP BY k", name="q")
            db.start()
            for ts in range(begin, begin + 20):
                db.push("s", {"k": ts % 2, "ts": ts})
                maps = Path("/proc/self/maps").read_text().splitlines()
                assert not [line for line in maps if f"{tmp_path}/segments/" in line]
            assert db["q"].snapshot(begin + 18).num_rows == 2


WAITING = (
    "SELECT COUNT(*) AS n, SUM(v) AS v FROM s [ROWS 2]",
    "SELECT v, SUM(v) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS total FROM s",
    "SELECT v FROM s [ROWS 2]",
    "SELECT a.v FROM s [RANGE 3] a, s [RANGE 5] b WHERE a.v < b.v",
)
"""Queries for which rows wait that are not known to be in order."""


@pytest.mark.parametrize("text", WAITING)
def test_arrays_that_are_pushed_may_be_filled_again(text: str) -> None:
    histories = []
    for again in (False, True):
        with hr.connect(runner="inline") as db:
            db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 100")
            query = db.query(text)
            db.start()
            times, values = np.arange(4), np.arange(10, 14)
            db.push("s", pa.table({"ts": times, "v": values}))
            if again:
                times[:], values[:] = 77, 999
            db.push("s", {"ts": 5, "v": 7})
            db.heartbeat("s", 50)
            db.stop()
            histories.append(query.history())
    assert histories[0].num_rows
    assert histories[1].equals(histories[0])


@on_linux
@pytest.mark.parametrize("text", WAITING)
def test_rows_that_wait_hold_no_file_that_they_came_in(text: str) -> None:
    """Many rows that are pushed at once are written to a file, which is mapped, and deleted."""
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 1000000")
        db.query(text)
        db.start()
        db.push("s", pa.table({"ts": np.arange(100_000), "v": np.arange(100_000) % 17}))
        assert ".arrow" not in Path("/proc/self/maps").read_text()
        db.stop()


def test_no_two_epochs_of_a_runner_have_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def noted(work: EpochWork, attempt: int, *_: object) -> list[Chunk]:
        attempts.append(attempt)
        return []

    monkeypatch.setattr(inline, "run_epoch", noted)
    runner = InlineRunner()
    for _ in range(3):
        runner.run_epoch(cast(EpochWork, None), {})
    assert len(set(attempts)) == 3
