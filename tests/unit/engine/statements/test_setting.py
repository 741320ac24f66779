"""SET, ALTER STREAM ... SET (...), ALTER QUERY ... SET (...): changes between two epochs that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import LanguageError

STREAM = "CREATE STREAM tick (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DEAD LETTERS KEEP ALL"
QUERY = "CREATE QUERY total AS SELECT SUM(10 / v) AS n FROM tick [RANGE 10]"


def opened(folder: Path, **options: Any) -> hr.Database:
    return hr.connect(runner="inline", storage=folder / "store", **options)


def shown(db: hr.Database) -> dict[str, tuple[str, str]]:
    lines = str(db.execute("SHOW SETTINGS")[0]).splitlines()
    starts = [lines[0].index(title) for title in ("setting", "value", "said_by")]
    cut = [[line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)] for line in lines]
    return {name: (value, said) for name, value, said in cut[2:-1]}


def push(db: hr.Database, first: int, count: int = 1) -> None:
    db.push("tick", [{"v": 1, "ts": first + more} for more in range(count)])


def test_an_epoch_takes_as_many_rows_as_was_said_last(tmp_path: Path) -> None:
    with opened(tmp_path, epoch_rows=1000) as db:
        db.execute(f"{STREAM}; {QUERY}")
        db.start()
        before = db.status.epoch
        for first in range(0, 100, 10):
            db.push("tick", [{"v": 1, "ts": first}], wait=False)
        push(db, 100)
        few = db.status.epoch - before
        db.execute("SET epoch_rows = 1")
        before = db.status.epoch
        for first in range(200, 300, 10):
            db.push("tick", [{"v": 1, "ts": first}], wait=False)
        push(db, 300)
        assert db.status.epoch - before >= 11 > few
        db.stop()


def test_what_was_set_lasts_over_a_restart_unless_connect_says_otherwise(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute(f"{STREAM}; {QUERY}")
        db.start()
        db.execute("SET retain_epochs = 3; SET max_dead_letters = 1; SET epoch_bytes = 1000")
        db.execute("SET epoch_bytes = DEFAULT")
        db.stop()
    with opened(tmp_path) as db:
        known = shown(db)
        assert known["retain_epochs"] == ("3", "SET")
        assert known["max_dead_letters"] == ("1", "SET")
        assert known["epoch_bytes"] == ("268435456", "default")
        db.start()
        for first in range(20):
            push(db, first)
        assert db["total"].epochs().num_rows < 8
        db.stop()
    with opened(tmp_path, retain_epochs=50) as db:
        assert shown(db)["retain_epochs"] == ("50", "connect")


def test_no_more_dead_letters_than_was_said_last(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute(f"{STREAM}; {QUERY}")
        db.start()
        db.push("tick", [{"v": 0, "ts": 1}, {"v": 0, "ts": 2}])
        with pytest.raises(LanguageError, match="there are 2 dead letters already, more than 1"):
            db.execute("SET max_dead_letters = 1")
        db.execute("SET max_dead_letters = 2")
        with pytest.raises(hr.errors.DeadLetterError, match="3 rows could not take part, where 2 may"):
            db.push("tick", [{"v": 0, "ts": 3}])
        with pytest.raises(hr.errors.DeadLetterError):
            db.stop()


def test_what_is_kept_of_a_stream_and_the_level_of_a_query_can_be_set(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute(f"{STREAM}; {QUERY}")
        db.start()
        db.execute("ALTER STREAM tick SET (RETAIN 5 ROWS, DEAD LETTERS KEEP 1 DAY, IDLE AFTER 1 HOUR)")
        db.execute("ALTER QUERY total SET (CONSISTENCY MIDDLE)")
        push(db, 0, 3)
        assert db.rows("tick").num_rows == 3
        db.stop()
    with opened(tmp_path) as db:
        made = str(db.execute("SHOW CREATE STREAM tick")[0])
        assert made.rstrip(";").endswith("IDLE AFTER 1 HOUR RETAIN 5 ROWS DEAD LETTERS KEEP 1 DAY"), made
        assert "CONSISTENCY MIDDLE" in str(db.execute("SHOW CREATE QUERY total")[0])
