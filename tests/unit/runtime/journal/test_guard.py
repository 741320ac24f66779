"""A store that is made unusable under a running job acknowledges nothing more, and says what is wrong."""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

import headrace as hr
from headrace.errors import StoreError, UserError

STATEFUL = "SELECT x, COUNT(*) AS n FROM s [RANGE 50] GROUP BY x"
STATELESS = "SELECT x FROM s"


def start(storage: Path, retain_epochs: int | None = None, query: str = STATEFUL) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage, buckets=1, retain_epochs=retain_epochs)
    db.execute("CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    db.query(query, name="q")
    db.start()
    return db


def push(db: hr.Database, at: int) -> bool:
    done = db.push("s", {"x": at % 3, "ts": at})
    assert isinstance(done, bool)
    return done


def rewrite(path: Path) -> None:
    """As `sed -i` does it: another file with the same content."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


def newest(folder: Path) -> Path:
    return max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "label deleted": (lambda store: (store / "store.json").unlink(), r"store\.json is gone"),
    "label changed": (
        lambda store: (store / "store.json").write_text("{}"),
        r"store\.json is not what it was",
    ),
    "commits deleted": (lambda store: shutil.rmtree(store / "commits"), "commits is gone"),
    "commits emptied": (
        lambda store: deque(map(os.unlink, (store / "commits").iterdir())),
        "lacks the commit of epoch 1",
    ),
    "a commit deleted": (
        lambda store: (store / "commits/000000000002.json").unlink(),
        "lacks the commit of epoch 2",
    ),
    "segments deleted": (lambda store: shutil.rmtree(store / "segments"), "segments is gone"),
    "results deleted": (lambda store: shutil.rmtree(store / "results"), "results is gone"),
    "folder moved": (lambda store: store.rename(store.with_name("moved")), "the folder itself is gone"),
    "folder deleted": (shutil.rmtree, "the folder itself is gone"),
    "lock deleted": (lambda store: (store / "lock").unlink(), "lock is gone"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_store_that_was_made_unusable_acknowledges_nothing_more(what: str, tmp_path: Path) -> None:
    """The query reads no state, so that nothing else would notice."""
    storage = tmp_path / "store"
    damage, message = DAMAGES[what]
    with start(storage, query=STATELESS) as db:
        for at in range(4):
            assert push(db, at) is True
        damage(storage)
        with pytest.raises(StoreError, match=message):
            push(db, 4)
        with pytest.raises(UserError, match="takes no rows"):
            push(db, 5)
        with pytest.raises(StoreError, match=message):
            db.stop()


@pytest.mark.parametrize("what", ["deleted", "cut"])
def test_state_that_is_gone_is_missed_even_where_it_is_not_read(what: str, tmp_path: Path) -> None:
    """What was read before is still in the memory of this process, and would be for long."""
    storage = tmp_path / "store"
    with start(storage) as db:
        db.execute("CREATE STREAM other (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT x FROM other", name="o")
        for at in range(3):
            push(db, at)
        segment = newest(storage / "segments")
        segment.unlink()
        if what == "cut":
            segment.write_bytes(b"")
        with pytest.raises(StoreError, match="segments/"):
            push(db, 3)
        with pytest.raises(StoreError, match="segments/"):
            db.stop()


def test_results_that_are_gone_are_missed_with_the_next_checkpoint(tmp_path: Path) -> None:
    """All of them are looked at then; between two of them there may be very many."""
    storage = tmp_path / "store"
    with start(storage) as db:
        for at in range(5):
            push(db, at)
        min((storage / "results").iterdir()).unlink()
        for at in range(5, 64):
            push(db, at)
        with pytest.raises(StoreError, match=r"results/.* is missing"):
            push(db, 64)
        with pytest.raises(StoreError, match="is missing"):
            db.stop()


@pytest.mark.slow("starts a run for each kind of change to a store")
def test_what_does_no_harm_is_no_damage(tmp_path: Path) -> None:
    """Copies, other files, the same bytes in another file, and what retention removes."""
    storage = tmp_path / "store"
    with start(storage, retain_epochs=3) as db:
        for at in range(4):
            push(db, at)
        rewrite(storage / "store.json")
        shutil.copytree(storage, tmp_path / "copy")
        (storage / "commits/notes.txt").write_text("mine")
        for at in range(4, 150):
            assert push(db, at) is True
        db.stop()
    assert len(list((storage / "commits").glob("*.json"))) < 90
    with start(storage) as db:
        assert push(db, 150) is True
        db.stop()


def test_a_store_without_its_label_is_not_begun_anew(tmp_path: Path) -> None:
    storage = tmp_path / "store"
    with start(storage) as db:
        push(db, 1)
        db.stop()
    (storage / "store.json").unlink()
    with pytest.raises(StoreError, match=r"a store has a file store\.json.*restore the store"):
        start(storage)
