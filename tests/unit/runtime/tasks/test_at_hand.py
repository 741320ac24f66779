"""State that is at hand from the epoch before, and is not read again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.execution import Settings
from headrace.engine.policy import Policy
from headrace.operators.state.runs import Part, Run, RunRef, stored_run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.store.segments import SegmentReader
from headrace.runtime.tasks import inline
from headrace.runtime.tasks.at_hand import RunsAtHand
from headrace.runtime.tasks.inline import InlineRunner
from headrace.runtime.tasks.messages import Chunk, EpochWork

ROWS = pa.RecordBatch.from_pydict({"__hash": [1, 2], "__t": [0, 0]})
SIZE = 100 + 8 * 2 * 2
"""Of a run in memory."""


def stored(name: str) -> Run:
    """A run that has been written to a segment, and looked at."""
    run = Run(RunRef(Part(name, 0, 100, 0), 2, 0, 0, 0), lambda: ROWS, 2, (0, 0, 0))
    assert run.size == SIZE
    return run


def operator(*runs: Run) -> Any:
    return SimpleNamespace(areas={"area": SimpleNamespace(runs=list(runs))})


def read(name: str) -> Any:
    """An operator that would read a run."""
    ref = stored(name).ref
    assert ref is not None
    return operator(stored_run(ref, lambda _: pytest.fail("it was read")))


def lent(runs: RunsAtHand, bucket: int, name: str) -> Run:
    taken = read(name)
    runs.lend(("node", bucket), taken)
    (found,) = taken.areas["area"].runs
    assert isinstance(found, Run)
    return found


def test_runs_are_lent_by_where_they_are_stored() -> None:
    runs, run = RunsAtHand(), stored("e1")
    runs.keep(("node", 0), operator(run))
    assert lent(runs, 0, "e1") is run
    assert not lent(runs, 0, "e2").is_loaded
    assert not lent(runs, 1, "e1").is_loaded


def test_what_an_operator_no_longer_has_goes() -> None:
    runs, second = RunsAtHand(), stored("e2")
    runs.keep(("node", 0), operator(stored("e1")))
    runs.keep(("node", 0), operator(second))
    assert not lent(runs, 0, "e1").is_loaded
    assert lent(runs, 0, "e2") is second


def test_the_longest_unused_go_where_there_are_too_many_bytes() -> None:
    runs, kept = RunsAtHand(2 * SIZE), [stored(f"e{bucket}") for bucket in range(3)]
    for bucket in (0, 1, 0, 2, 2, 2):
        runs.keep(("node", bucket), operator(kept[bucket]))
    assert [lent(runs, bucket, f"e{bucket}").is_loaded for bucket in range(3)] == [True, False, True]
    runs.keep(("node", 1), operator(*map(stored, "abc")))
    assert [lent(runs, bucket, f"e{bucket}").is_loaded for bucket in range(3)] == [True, False, True]


def test_what_was_not_looked_at_or_not_stored_is_not_kept() -> None:
    runs, unread = RunsAtHand(), read("e1")
    runs.keep(("node", 0), unread)
    assert lent(runs, 0, "e1") is not unread.areas["area"].runs[0]
    new = operator(Run(None, lambda: ROWS, 2, (0, 0, 0)))
    runs.keep(("node", 0), new)
    runs.lend(("node", 0), new)
    assert new.areas["area"].runs[0].ref is None


@pytest.mark.parametrize(("tasks", "reads"), [(1, False), (2, True)])
def test_an_epoch_in_the_process_of_the_one_before_reads_no_state(
    tasks: int, reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    original = SegmentReader.read

    def counted(self: SegmentReader, part: Part) -> pa.Buffer:
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


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists a process's mappings")
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


def test_no_two_epochs_of_a_runner_have_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def noted(work: EpochWork, attempt: int, at_hand: RunsAtHand | None) -> list[Chunk]:
        attempts.append(attempt)
        return []

    monkeypatch.setattr(inline, "run_epoch", noted)
    runner = InlineRunner()
    for _ in range(3):
        runner.run_epoch(cast(EpochWork, None), {})
    assert len(set(attempts)) == 3
