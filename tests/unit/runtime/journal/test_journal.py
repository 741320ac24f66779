"""Commits and the store around them: who may use it, what is refused, what is swept, how a run goes on."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
import warm_processes
from headrace.errors import LanguageError, StoreError
from headrace.runtime.journal.inspect import contents, named_files, verify
from headrace.runtime.store.segments import FolderStore

QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 30] GROUP BY k"
PLAIN = "SELECT k, v FROM s"
ROWS = pa.table({"k": ["a", "b", "c"] * 100, "v": range(300), "ts": [number // 2 for number in range(300)]})


class Interruption(BaseException):
    """What ends a run on purpose."""


def database(storage: Path | None, query: str = QUERY, **options: Any) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage, **({"epoch_rows": 10} | options))
    db.stream("s", ROWS, timestamp="ts")
    db.query(query, name="q")
    db.query(PLAIN, name="plain")
    return db


def complete(storage: Path | None, stop_after: int | None = None, **options: Any) -> dict[str, pa.Table]:
    """Run to the end, or for some epochs; the histories."""

    def progress(seen: Any) -> None:
        if seen.epoch == stop_after:
            raise Interruption

    with database(storage, **options) as db:
        db.run(progress)
        return {query.name: query.history() for query in db.queries}


def interrupted(storage: Path, after: int, **options: Any) -> None:
    with pytest.raises(Interruption):
        complete(storage, after, **options)


def files(storage: Path) -> set[str]:
    return {
        str(path.relative_to(storage))
        for folder in ("segments", "results", "commits")
        for path in (storage / folder).iterdir()
    }


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(scope="module")
def expected() -> dict[str, pa.Table]:
    return complete(None)


def test_a_run_that_is_interrupted_goes_on_and_answers_the_same(
    storage: Path, expected: dict[str, pa.Table]
) -> None:
    for after in (1, 2, 7, 20):
        interrupted(storage, after)
        assert contents(storage).epochs == after
    assert complete(storage) == expected
    assert contents(storage).epochs == 30
    assert verify(storage).problems == ()


def test_a_run_that_is_done_stays_done(storage: Path, expected: dict[str, pa.Table]) -> None:
    complete(storage)
    before = files(storage)
    assert complete(storage) == expected
    assert files(storage) == before


def test_the_store_keeps_its_number_of_buckets(storage: Path, expected: dict[str, pa.Table]) -> None:
    interrupted(storage, 5, buckets=4)
    assert complete(storage, buckets=2) == expected
    assert contents(storage).description.buckets == 4


@pytest.mark.parametrize("folder", ["segments", "results"])
def test_a_damaged_file_is_named_and_refused(storage: Path, folder: str) -> None:
    interrupted(storage, 5)
    damaged = sorted((storage / folder).iterdir())[-1]
    flip(damaged, 100)
    with pytest.raises(StoreError, match=f"{folder}/{damaged.name} is damaged"):
        complete(storage)
    assert [problem.file for problem in verify(storage).problems] == [f"{folder}/{damaged.name}"]


@pytest.mark.parametrize("folder", ["segments", "results"])
@pytest.mark.parametrize("what", ["truncated", "missing"])
def test_a_short_or_missing_file_is_refused_before_anything_is_swept(
    storage: Path, folder: str, what: str
) -> None:
    interrupted(storage, 5)
    bad = sorted(name for name in named_files(storage) if name.startswith(folder))[-1]
    (storage / "segments/e6-l1-t0-a0-stray").write_bytes(b"x")
    os.truncate(storage / bad, 20) if what == "truncated" else (storage / bad).unlink()
    before = files(storage)
    with pytest.raises(StoreError, match=f"{bad} of .* is {what}"):
        complete(storage)
    assert files(storage) == before
    (problem,) = verify(storage).problems
    assert str(problem).startswith(f"{bad}: is {what}")


@pytest.mark.parametrize("epoch", [1, 3, 5])
def test_a_damaged_commit_is_named_and_refused(storage: Path, epoch: int) -> None:
    interrupted(storage, 5)
    name = f"commits/{epoch:012d}.json"
    flip(storage / name, 60)
    with pytest.raises(StoreError, match=f"the commit record .*{name} is damaged"):
        complete(storage)
    assert str(verify(storage).problems[0]) == f"{name}: is damaged"


def test_a_missing_commit_is_refused(storage: Path) -> None:
    interrupted(storage, 5)
    (storage / "commits/000000000003.json").unlink()
    with pytest.raises(StoreError, match="lacks the commit of epoch 3"):
        complete(storage)
    assert "commits/000000000003.json: is missing" in map(str, verify(storage).problems)


@pytest.mark.slow("needs more epochs than two checkpoints")
def test_a_lost_last_commit_is_refused(tmp_path: Path, expected: dict[str, pa.Table]) -> None:
    """Whoever says that it is to go on without it can: where files that it has removed are not needed."""
    refused = []
    for after in range(2, 10):
        storage = tmp_path / str(after)
        interrupted(storage, after)
        (storage / f"commits/{after:012d}.json").unlink()
        with pytest.raises(StoreError, match=f"lacks the commit of epoch {after}: its records end"):
            complete(storage)
        (storage / "newest").unlink()
        try:
            assert complete(storage) == expected
        except StoreError as error:
            refused.append(error.message)
    assert 0 < len(refused) < 8
    assert all("is missing" in message for message in refused)


def test_a_store_without_its_commits_is_refused(storage: Path) -> None:
    interrupted(storage, 3)
    for record in (storage / "commits").iterdir():
        record.unlink()
    with pytest.raises(StoreError, match="lacks the commit of epoch 3: it has no record at all"):
        hr.connect(runner="inline", storage=storage)
    (storage / "newest").write_text("damaged")
    with hr.connect(runner="inline", storage=storage) as db:
        assert not db.queries


def test_another_driver_is_refused(storage: Path, expected: dict[str, pa.Table]) -> None:
    interrupted(storage, 2)
    code = (
        "import fcntl, os, sys\n"
        "lock = open(sys.argv[1], 'a+'); fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "lock.truncate(0); lock.write(str(os.getpid())); lock.flush()\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(storage / "lock")]
    with warm_processes.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"is in use by process {other.pid}"):
            complete(storage)
        assert contents(storage).epochs == 2, "it can be looked at all the same"
        assert verify(storage).problems == ()
        other.stdin.close()
        other.wait()
    assert complete(storage) == expected


def test_a_database_holds_its_store_only_while_it_runs(storage: Path) -> None:
    with database(storage) as first, database(storage) as second:
        first.run()
        second.run()


def test_a_foreign_folder_is_refused_and_left_alone(storage: Path) -> None:
    storage.mkdir()
    (storage / "letter.txt").write_text("dear reader")
    with pytest.raises(StoreError, match=r"is not empty and is not a Headrace store: it holds letter\.txt"):
        complete(storage)
    assert {path.name for path in storage.iterdir()} <= {"letter.txt", "lock"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # What versions before layout 6 wrote, without a checksum.
        (
            '{"product": "headrace", "layout": 5, "state_format": 6}',
            "has layout 5, and this Headrace reads 9",
        ),
        ('{"product": "another"}', "is not a Headrace store"),
    ],
)
def test_a_store_of_another_kind_is_refused(storage: Path, content: str, message: str) -> None:
    interrupted(storage, 2)
    (storage / "store.json").write_text(content)
    for use in (complete, contents, verify):
        with pytest.raises(StoreError, match=message):
            use(storage)


def test_another_query_is_refused(storage: Path) -> None:
    interrupted(storage, 2)
    with hr.connect(runner="inline", storage=storage) as db:
        db.stream("s", ROWS, timestamp="ts")
        with pytest.raises(LanguageError, match="the store has another query q: "):
            db.query(QUERY.replace("30", "31"), name="q")


def test_a_query_more_is_refused_and_one_less_goes_on(storage: Path, expected: dict[str, pa.Table]) -> None:
    interrupted(storage, 2)
    with database(storage) as db:
        db.query(PLAIN, name="further")
        with pytest.raises(StoreError, match="has no query further, and what was read is not read again"):
            db.run()
    with hr.connect(runner="inline", storage=storage) as db:
        db.stream("s", ROWS, timestamp="ts")
        db.query(QUERY, name="q")
        assert [query.name for query in db.queries] == ["q", "plain"], "the store knows them"
    assert complete(storage) == expected


@pytest.mark.parametrize(
    ("first", "message"), [(True, "keeps results, and this run would not"), (False, "keeps no results")]
)
def test_results_are_kept_of_all_epochs_or_of_none(storage: Path, first: bool, message: str) -> None:
    """Answers that lack some epochs would look like whole ones."""
    with database(storage, keep_results=first) as db:
        db.run()
    with database(storage, keep_results=not first) as db, pytest.raises(StoreError, match=message):
        db.run()
    with database(storage, keep_results=first) as db:
        assert db.run().rows == len(ROWS)


def test_another_stream_is_refused(storage: Path) -> None:
    interrupted(storage, 2)
    with hr.connect(runner="inline", storage=storage) as db:
        db.stream("s", ROWS, timestamp="ts", disorder=5)
        db.query(QUERY, name="q")
        db.query(PLAIN, name="plain")
        with pytest.raises(StoreError, match="is for another stream s than the one given now"):
            db.run()


def test_a_folder_that_is_a_file_is_refused(storage: Path) -> None:
    storage.write_text("x")
    with pytest.raises(StoreError, match=r"cannot use .* as a store"):
        complete(storage)


def test_files_of_epochs_that_did_not_commit_are_swept(storage: Path, expected: dict[str, pa.Table]) -> None:
    interrupted(storage, 5)
    for name in (
        "segments/e6-l1-t0-a0-dead",
        "results/e6-l0-t0-a0-dead",
        "segments/.e6.12",
        "commits/.6.json.12",
    ):
        (storage / name).write_bytes(b"half an epoch")
    assert complete(storage) == expected
    assert files(storage) == named_files(storage)


@pytest.mark.slow("needs more epochs than two checkpoints")
def test_without_retention_all_results_stay_and_state_is_swept(storage: Path) -> None:
    complete(storage, epoch_rows=2)
    found = files(storage)
    assert sum(name.startswith("commits") for name in found) == 150
    assert sum(name.startswith("segments") for name in found) <= 3
    assert found == named_files(storage)


def counts_of_files(storage: Path, retain: int) -> list[int]:
    seen = []
    with database(storage, epoch_rows=1, retain_epochs=retain) as db:
        db.run(lambda _: seen.append(len(files(storage))))
    return seen


@pytest.mark.slow("needs more epochs than two checkpoints")
def test_with_retention_the_number_of_files_stays_flat(storage: Path) -> None:
    seen = counts_of_files(storage, retain=3)
    assert len(seen) == 300
    # Three epochs of results, the state, and commits back to a checkpoint: 64 epochs apart.
    assert max(seen) <= 3 * 2 + 10 + 64 + 3
    assert max(seen[150:]) <= max(seen[:150])
    assert files(storage) == named_files(storage)
    assert contents(storage).retained == 297, "the changes of 3 epochs, and what the first of them releases"
    assert verify(storage).problems == ()


@pytest.mark.slow("needs more epochs than two checkpoints")
def test_a_sweep_of_old_commits_that_was_cut_short_is_finished(storage: Path, tmp_path: Path) -> None:
    """Any of the records that are going may be gone already when the process dies."""
    interrupted(storage, 128, epoch_rows=1, retain_epochs=5)
    copies = {path.name: path.read_bytes() for path in (storage / "commits").iterdir()}
    interrupted(storage, 135, epoch_rows=1, retain_epochs=5)
    for name in sorted(copies)[3:60:7]:
        (storage / "commits" / name).write_bytes(copies[name])
    assert contents(storage).epochs == 135
    assert verify(storage).problems == ()
    with database(storage, epoch_rows=1, retain_epochs=5) as db:
        db.run()
    assert files(storage) == named_files(storage)


def test_results_that_retention_removed_are_not_looked_for(storage: Path) -> None:
    interrupted(storage, 40, retain_epochs=2, epoch_rows=5)
    with database(storage, epoch_rows=5) as db:
        db.run()
        epochs = db.queries[1].changes()["epoch"].to_pylist()
    assert min(epochs) >= 39
    assert max(epochs) == 60


@pytest.mark.parametrize("call", ["replace", "link"])
def test_a_run_goes_on_after_space_was_freed(
    storage: Path, expected: dict[str, pa.Table], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(storage, 5)
    real, left = getattr(os, call), [9]

    def full(*arguments: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(*arguments)

    monkeypatch.setattr(os, call, full)
    with pytest.raises(StoreError, match="No space left on device") as caught:
        complete(storage)
    assert "the run goes on where it was" in (caught.value.hint or "")
    monkeypatch.undo()
    assert 5 < contents(storage).epochs < 30
    assert complete(storage) == expected
    assert files(storage) == named_files(storage)


def test_a_record_is_text_with_a_checksum(storage: Path) -> None:
    interrupted(storage, 1)
    record = json.loads((storage / "commits/000000000001.json").read_text())
    assert record.keys() == {"crc", "body"}
    assert record["body"]["epoch"] == 1


def test_an_epoch_that_somebody_else_has_committed_is_refused(storage: Path) -> None:
    with database(storage) as db:

        def meddle(seen: Any) -> None:
            if seen.epoch == 3:
                FolderStore(str(storage), durable=True).put_if_absent(f"commits/{4:012d}.json", b"theirs")

        with pytest.raises(StoreError, match=r"epoch 4 of .* has been committed by someone else"):
            db.run(meddle)
