"""Copies of a store, made while epochs commit, are stores as of an epoch; sinks know what they may take."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.engine import copies
from headrace.errors import StoreError
from headrace.runtime.delivery.positions import sink_positions
from headrace.runtime.journal.inspect import contents, verify
from headrace.runtime.store.segments import FolderStore

DEFINED = """
CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY windows AS SELECT x % 3 AS k, COUNT(*) AS n, MAX(x) AS most FROM s [RANGE 20] GROUP BY x % 3;
CREATE QUERY ever AS SELECT COUNT(*) AS n, SUM(x) AS total FROM s [RANGE UNBOUNDED];
CREATE QUERY pairs AS SELECT a.x, b.x AS y FROM s [RANGE 3] a JOIN s [ROWS 2] b ON a.x % 5 = b.x % 5;
"""
LAST = 100


def connect(storage: Path, retain_epochs: int | None = 5) -> hr.Database:
    return hr.connect(runner="inline", storage=storage, buckets=2, retain_epochs=retain_epochs)


def push(db: hr.Database, number: int) -> None:
    db.push("s", {"x": number, "ts": number}, producer="p", sequence=number)


def answers(db: hr.Database) -> dict[str, Any]:
    return {query.name: query.latest().to_pylist() for query in db.queries}


@pytest.fixture(params=["links", "bytes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the copy is on the same file system."""
    if request.param == "bytes":
        link = os.link

        def refuse(source: Any, target: Any, **options: Any) -> None:
            if options:
                raise OSError(errno.EXDEV, "another file system")
            link(source, target)

        monkeypatch.setattr(os, "link", refuse)
    return str(request.param)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answers after all rows, of a run that was never copied."""
    with connect(tmp_path_factory.mktemp("whole") / "store") as db:
        db.execute(DEFINED)
        db.start()
        for number in range(1, LAST + 1):
            push(db, number)
        db.stop()
        return answers(db)


@pytest.mark.slow("epochs are committed while copies are made, and again from copies on")
def test_copies_made_while_epochs_commit_go_on_to_the_same_answers(
    tmp_path: Path, way: str, whole: dict[str, Any]
) -> None:
    made: list[hr.StoreCopy] = []
    with connect(tmp_path / "store") as db:
        db.execute(DEFINED)
        db.start()
        push(db, 1)
        done = threading.Event()

        def work() -> None:
            for number in range(2, LAST + 1):
                push(db, number)
            done.set()

        pushing = threading.Thread(target=work)
        pushing.start()
        while not done.is_set() or not made:
            made.append(hr.copy_store(tmp_path / "store", tmp_path / f"copy{len(made)}"))
            done.wait(0.2)
        pushing.join()
        db.stop()
        assert answers(db) == whole
    assert len({one.epoch for one in made}) > 3
    assert all(bool(one.linked) == (way == "links") for one in made)
    for number in {len(made) // 3, len(made) - 1}:
        check_goes_on(tmp_path / f"copy{number}", made[number], whole)
    assert all(verify(tmp_path / f"copy{number}").problems == () for number in range(len(made)))


def check_goes_on(copy: Path, made: hr.StoreCopy, whole: dict[str, Any]) -> None:
    """See that a copy has its epoch, whole, and comes to the same answers with the rows that came later."""
    assert contents(copy).epochs == made.epoch
    reached = contents(copy).streams["s"].producers["p"]
    # The instant of the last row is not final yet.
    final = [{"n": reached - 1, "total": reached * (reached - 1) // 2}] if reached > 1 else []
    assert hr.open(copy)["ever"].latest().to_pylist() == final
    with connect(copy) as db:
        db.start()
        for number in range(max(1, reached - 3), LAST + 1):
            push(db, number)
        db.stop()
        assert answers(db) == whole
        assert verify(copy).problems == ()


class Targets:
    """A query with three sinks: files, a table, and what a function was given."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.taken: list[int] = []

    def open(self, storage: Path) -> hr.Database:
        db = connect(storage, None)
        if not (storage / "store.json").exists():
            db.execute("CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
            db.query("SELECT COUNT(*) AS n, SUM(x) AS total FROM s [RANGE UNBOUNDED]", name="q")
        db["q"].deliver(hr.FileSink(self.place / "files"), name="files")
        db["q"].deliver(hr.TableSink(lambda: sqlite3.connect(self.place / "db"), "t"), name="table")
        db["q"].deliver(lambda epoch, heartbeat, rows: self.taken.append(epoch), name="function")
        db.start()
        return db

    def table(self) -> list[tuple[int, int]]:
        with sqlite3.connect(self.place / "db") as connection:
            return connection.execute("SELECT n, total FROM t").fetchall()

    def epochs(self) -> list[int]:
        found = sorted((self.place / "files").glob("epoch-*"))
        return [int(path.stem.removeprefix("epoch-")) for path in found]


def pushed(db: hr.Database, numbers: range) -> None:
    for number in numbers:
        push(db, number)


@pytest.fixture
def targets(tmp_path: Path) -> Targets:
    return Targets(tmp_path)


def test_sinks_of_a_copy_go_on_where_their_targets_are_no_further(tmp_path: Path, targets: Targets) -> None:
    with targets.open(tmp_path / "store") as db:
        pushed(db, range(1, 6))
        db.stop()
    made = hr.copy_store(tmp_path / "store", tmp_path / "copy")
    for numbers in (range(6, 9), range(9, 12)):
        with targets.open(tmp_path / "copy") as db:
            pushed(db, numbers)
            db.stop()
            assert not db.problems
    assert targets.table() == [(10, 55)]
    last = contents(tmp_path / "copy").epochs
    assert last > made.epoch
    # The first changes nothing yet.
    assert (targets.taken, targets.epochs()) == ([*range(1, last + 1)], [*range(2, last + 1)])


def test_sinks_of_a_copy_are_refused_where_targets_are_further(tmp_path: Path, targets: Targets) -> None:
    with targets.open(tmp_path / "store") as db:
        pushed(db, range(1, 6))
        db.stop()
    hr.copy_store(tmp_path / "store", tmp_path / "copy")
    with targets.open(tmp_path / "store") as db:
        pushed(db, range(6, 9))
        db.stop()
    before = targets.table(), targets.epochs()
    for numbers in (range(10, 15), range(15, 20)):
        # However far the copy is by now.
        with targets.open(tmp_path / "copy") as db:
            pushed(db, numbers)
            found = dict(db.problems)
            with pytest.raises(hr.HeadraceError, match="is a copy as of epoch"):
                db.stop(timeout=0.1)
        assert {"q to files", "q to table"} <= found.keys(), found
        assert "the store is a copy as of epoch" in found["q to files"]
        assert (targets.table(), targets.epochs()) == before


def test_a_receiver_never_takes_what_comes_after_a_copy_for_a_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def post(_: hr.WebhookSink, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        sent.append(headers["Idempotency-Key"])
        return 200, ""

    monkeypatch.setattr(hr.WebhookSink, "_post", post)

    def run(storage: Path, numbers: range) -> list[str]:
        before = len(sent)
        with connect(storage, None) as db:
            if numbers.start == 1:
                db.execute("CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
                db.query("SELECT x FROM s", name="q")
            db["q"].deliver(hr.WebhookSink("http://localhost/"), name="w")
            db.start()
            pushed(db, numbers)
            db.stop()
        return sent[before:]

    run(tmp_path / "store", range(1, 5))
    for copy in ("one", "other"):
        hr.copy_store(tmp_path / "store", tmp_path / copy)
    keys = [run(tmp_path / name, range(5, 9)) for name in ("store", "one", "other")]
    keys += [run(tmp_path / name, range(9, 12)) for name in ("store", "one", "other")]
    assert len({key for found in keys for key in found}) == sum(map(len, keys))
    # A store and each of its copies go on under the keys with which they have begun.
    assert all(keys[at][0].split("-")[:-1] == keys[at + 3][0].split("-")[:-1] for at in range(3))


def test_positions_in_a_copy_are_not_beyond_it(tmp_path: Path, targets: Targets) -> None:
    with targets.open(tmp_path / "store") as db:
        pushed(db, range(1, 9))
        db.stop()
        last = contents(tmp_path / "store").epochs
    for at in range(1, last + 1):
        copy = tmp_path / f"copy{at}"
        with suppress(hr.UserError):
            assert hr.copy_store(tmp_path / "store", copy, at).epoch == at
            found = sink_positions(FolderStore(str(copy), durable=True))
            assert {position.epoch for position in found.values()} == {at}
    assert copy.exists()
    assert not (tmp_path / "copy1").exists()


def test_an_epoch_without_state_can_be_copied_later(tmp_path: Path) -> None:
    with connect(tmp_path / "store", None) as db:
        db.execute("CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT x FROM s", name="q")
        db.start()
        pushed(db, range(1, 90))
        db.stop()
        last = contents(tmp_path / "store").epochs
    at = last - 70
    assert hr.copy_store(tmp_path / "store", tmp_path / "copy", at).epoch == at
    reached = contents(tmp_path / "copy").streams["s"].producers["p"]
    with connect(tmp_path / "copy", None) as db:
        db.start()
        pushed(db, range(reached, reached + 3))
        db.stop()
        assert db["q"].stream().column("x").to_pylist() == list(range(1, reached + 2))
    with pytest.raises(StoreError, match=f"lacks the commit of epoch {last + 1}"):
        hr.copy_store(tmp_path / "store", tmp_path / "other", last + 1)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of a few epochs."""
    with connect(tmp_path / "store") as db:
        db.execute(DEFINED)
        db.start()
        pushed(db, range(1, 9))
        db.stop()
    return tmp_path / "store"


def test_a_copy_goes_to_an_empty_folder_outside_of_the_store(store: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("kept")
    for target, says in (
        (full, "is not empty"),
        (store / "copy", "is in the store"),
        (store, "is in the store"),
    ):
        with pytest.raises(hr.UserError, match=says):
            hr.copy_store(store, target)
    assert (full / "mine").read_text() == "kept"
    with pytest.raises(StoreError, match="there is no folder"):
        hr.copy_store(tmp_path / "nowhere", tmp_path / "copy")
    (tmp_path / "empty").mkdir()
    assert hr.copy_store(store, tmp_path / "empty").epoch == contents(store).epochs


def test_what_is_missing_is_named_and_nothing_is_left(store: Path, tmp_path: Path) -> None:
    gone = next(iter((store / "segments").iterdir()))
    gone.unlink()
    with pytest.raises(StoreError, match=f"segments/{gone.name} of .* is missing"):
        hr.copy_store(store, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_copy_that_is_cut_short_is_no_store(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FolderStore.put

    def full(self: FolderStore, name: str, content: bytes) -> None:
        if name == "store.json":
            raise KeyboardInterrupt
        put(self, name, content)

    monkeypatch.setattr(FolderStore, "put", full)
    monkeypatch.setattr(copies, "_clear", lambda *_, **__: None)
    with pytest.raises(KeyboardInterrupt):
        hr.copy_store(store, tmp_path / "copy")
    with pytest.raises(StoreError, match=r"lacks store\.json"):
        contents(tmp_path / "copy")


def test_named_readers_and_keys_are_in_the_copy(store: Path, tmp_path: Path) -> None:
    (store / "keys.json").write_text("{}")
    with connect(store) as db:
        db.start()
        reading = db["ever"].subscribe(client="ann")
        seen = next(reading).epoch
        next(reading)  # acknowledges the first
        hr.copy_store(store, tmp_path / "copy")
        db.stop()
    assert (tmp_path / "copy" / "keys.json").read_text() == "{}"
    with connect(tmp_path / "copy") as db:
        db.start()
        assert next(db["ever"].subscribe(client="ann")).epoch == seen + 1
        db.stop()
