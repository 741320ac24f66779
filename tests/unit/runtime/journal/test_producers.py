"""Records hold the producers that pushed in their epoch; all that were ever seen are in the checkpoints."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import headrace as hr
from headrace.runtime.journal.inspect import contents
from headrace.runtime.journal.records import CHECKPOINT_EVERY

PRODUCERS = 400


def start(storage: Path, retain: int | None = None) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage, buckets=1, retain_epochs=retain)
    for name in ("s", "other"):
        db.execute(f"CREATE STREAM {name} (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query(f"SELECT x FROM {name}", name=f"of_{name}")
    db.start()
    return db


def push_all(db: hr.Database, sequence: int) -> list[bool]:
    """A push of every producer, in as few epochs as it takes; whether each was new."""
    flying = [
        db.push("s", {"x": 1, "ts": sequence}, f"producer {number}", sequence, wait=False)
        for number in range(PRODUCERS)
    ]
    return [done.result(30) for done in flying if isinstance(done, Future)]


def sizes(storage: Path) -> list[int]:
    return [path.stat().st_size for path in sorted((storage / "commits").glob("*.json"))]


def test_a_record_does_not_grow_with_the_producers_that_were_seen_before(tmp_path: Path) -> None:
    storage = tmp_path / "store"
    with start(storage) as db:
        for at in range(3):
            db.push("s", {"x": 1, "ts": at}, "me", at)
        before = sizes(storage)[-1]
        assert all(push_all(db, 5))
        for at in range(6, 9):
            db.push("s", {"x": 1, "ts": at}, "me", at)
            db.push("other", {"x": 1, "ts": at})
        assert max(sizes(storage)[-6:]) < before + 300
        assert sum(sizes(storage)) > 15 * PRODUCERS, "each of them is in one record"
        db.stop()


def test_every_producer_is_known_after_a_restart(tmp_path: Path) -> None:
    """Whether its last push is in the last checkpoint, in a record after it, or in both."""
    storage = tmp_path / "store"
    with start(storage, retain=3) as db:
        assert all(push_all(db, 5))
        for at in range(CHECKPOINT_EVERY):
            db.push("other", {"x": 1, "ts": at})
        assert db.push("s", {"x": 1, "ts": 50}, "producer 7", 6) is True
        assert db.push("s", {"x": 1, "ts": 60}, "late", 1) is True
        for at in range(3):
            db.push("other", {"x": 1, "ts": 100 + at})
        db.stop()
    assert not (storage / "commits/000000000001.json").exists(), "those before the checkpoint are gone"
    with start(storage, retain=3) as db:
        assert not any(push_all(db, 5))
        assert db.push("s", {"x": 1, "ts": 50}, "producer 7", 6) is False
        assert db.push("s", {"x": 1, "ts": 60}, "late", 1) is False
        assert db.push("s", {"x": 1, "ts": 70}, "late", 2) is True
        db.stop()
    known = contents(storage).streams["s"].producers
    assert (len(known), known["late"], known["producer 7"], known["producer 8"]) == (PRODUCERS + 1, 2, 6, 5)


def test_a_stream_that_was_dropped_forgets_its_producers(tmp_path: Path) -> None:
    storage = tmp_path / "store"
    with start(storage) as db:
        db.push("s", {"x": 1, "ts": 1}, "me", 7)
        db.drop("of_s")
        db.drop("s")
        db.execute("CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT x FROM s", name="of_s")
        assert db.push("s", {"x": 1, "ts": 1}, "me", 1) is True
        db.stop()
    assert contents(storage).streams["s"].producers == {"me": 1}
