"""A run may allow so many dead letters: the epoch with more of them does not count."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import DeadLetterError
from headrace.runtime.journal.inspect import contents, named_files

ROWS = "ts,v\n1,10\n2,20\n3,30\n4,40\n5,x\n6,60\n"
STREAM = "CREATE STREAM s (ts BIGINT, v BIGINT) FROM csv OPTIONS (path '{}') TIMESTAMP BY ts"


def database(folder: Path, allowed: int | None) -> hr.Database:
    db = hr.connect(
        runner="inline", storage=folder / "store", epoch_rows=2, max_dead_letters=allowed, retain_epochs=None
    )
    db.execute(STREAM.format(folder / "rows.csv"))
    db.query("SELECT SUM(v) AS total FROM s [RANGE 10]", name="totals")
    return db


def files(folder: Path) -> set[str]:
    parts = ("commits", "segments", "results")
    return {f"{part}/{file.name}" for part in parts for file in (folder / "store" / part).iterdir()}


def test_the_epoch_with_too_many_dead_letters_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    with database(tmp_path, 0) as db:
        with pytest.raises(DeadLetterError, match="1 row could not take part, where 0 may"):
            db.run()
        (place,) = db.dead_letters()["place"].to_pylist()
        assert place.endswith("rows.csv:6")
    found = contents(tmp_path / "store")
    assert (found.epochs, found.dead_letters) == (2, 0)
    assert files(tmp_path) == named_files(tmp_path / "store")


def test_a_run_that_allows_them_then_goes_on_where_the_refused_one_was(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    with database(tmp_path, 0) as db, pytest.raises(DeadLetterError):
        db.run()
    with database(tmp_path, 1) as db:
        assert db.run().dead_letters == 1
        found = db.queries["totals"].history()
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "rows.csv").write_text(ROWS)
    with database(tmp_path / "whole", None) as db:
        db.run()
        assert db.queries["totals"].history() == found


def test_a_store_with_more_of_them_than_are_allowed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    with database(tmp_path, None) as db:
        db.run()
    with database(tmp_path, 0) as db, pytest.raises(DeadLetterError):
        db.run()


def test_a_push_that_is_too_late_is_not_acknowledged(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "store", max_dead_letters=0) as db:
        db.execute(
            "CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts; CREATE QUERY q AS SELECT ts FROM s"
        )
        db.start()
        assert db.push("s", pa.table({"ts": [5]}))
        with pytest.raises(DeadLetterError, match="late"):
            db.push("s", pa.table({"ts": [3]}))
        with pytest.raises(DeadLetterError):
            db.stop()
    assert contents(tmp_path / "store").epochs == 1
