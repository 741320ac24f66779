"""Columns that are computed of those that pushed and pulled rows come with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headrace as hr
from waiting import wait_until

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
COLUMNS = "at STRING, n BIGINT, ts AS TO_TIMESTAMP(at, 'dd/MM/yyyy HH:mm'), twice AS 2 * n"


def test_pushed_rows_come_without_them() -> None:
    with hr.connect("inline") as db:
        db.execute(f"CREATE STREAM s ({COLUMNS}) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT ts, twice FROM s")
        letters = db.query("SELECT reason, at FROM DEAD LETTERS OF s")
        db.start()
        db.push("s", [{"at": "31/01/2026 12:00", "n": 2}, {"at": "tomorrow", "n": 3}])
        db.push("s", {"at": "31/01/2026 13:00", "n": 4})
        wait_until(lambda: query.history().to_pylist()[0]["twice"], 4)
        assert query.history()["ts"].to_pylist() == [AT]
        wait_until(lambda: letters.changes().num_rows, 1)
        (letter,) = letters.changes().to_pylist()
        assert letter["reason"].startswith("ts cannot be computed: ")
        with pytest.raises(hr.UserError, match="s has no column att"):
            db.push("s", [{"att": "31/01/2026 14:00", "n": 4}])


def test_what_queries_do_not_read_is_not_computed() -> None:
    with hr.connect("inline") as db:
        db.execute(
            "CREATE STREAM s (n BIGINT, part AS 10 / n, ts AS TIMESTAMP_SECONDS(n)) FROM push TIMESTAMP BY ts"
        )
        query = db.query("SELECT n FROM s")
        db.start()
        db.push("s", [{"n": 0}, {"n": 1}])
        wait_until(lambda: query.history()["n"].to_pylist(), [0])


def test_pulled_rows_come_without_them() -> None:
    with hr.connect("inline") as db:
        rows = iter([[{"at": "31/01/2026 12:00", "n": 2}], [{"at": "31/01/2026 12:01", "n": 5}]])
        db.stream("s", rows, columns=COLUMNS, timestamp="ts")
        query = db.query("SELECT SUM(twice) AS total FROM s WINDOW(RANGE UNBOUNDED)")
        db.start()
        wait_until(lambda: query.history()["total"].to_pylist(), [4, 14])
        with pytest.raises(hr.UserError, match="no column m"):
            db.stream("t", rows, columns="n BIGINT, ts AS TIMESTAMP_SECONDS(m)", timestamp="ts")


@pytest.mark.parametrize(
    ("columns", "timed_by", "of", "timestamp"),
    [
        (
            "at STRING",
            "TO_TIMESTAMP(at, 'dd/MM/yyyy HH:mm')",
            lambda at: at.strftime("%d/%m/%Y %H:%M"),
            "event_time",
        ),
        ("at DOUBLE", "TIMESTAMP_SECONDS(at) AS ts", datetime.timestamp, "ts"),
        ("at BIGINT, n AS 2 * at", "TIMESTAMP_MILLIS(at)", lambda at: at.timestamp() * 1000, "event_time"),
        ("at STRING", "at::TIMESTAMP DISORDER 5 SECONDS", datetime.isoformat, "event_time"),
        ("at STRING, WATERMARK FOR t AS t", "(at::TIMESTAMP)", datetime.isoformat, "t"),
        (
            "at DATE",
            "CASE WHEN at IS NOT NULL THEN CAST(at AS TIMESTAMP) + INTERVAL '12' HOUR END",
            datetime.date,
            "event_time",
        ),
    ],
)
def test_streams_are_timed_by_an_expression(
    columns: str, timed_by: str, of: Callable[[datetime], object], timestamp: str
) -> None:
    with hr.connect("inline") as db:
        db.execute(f"CREATE STREAM s ({columns}) FROM push TIMESTAMP BY {timed_by}")
        query = db.query(f"SELECT {timestamp} FROM s")
        db.start()
        db.push("s", [{"at": of(AT)}, {"at": of(AT + timedelta(days=1))}])
        wait_until(lambda: query.history().column(timestamp).to_pylist(), [AT])


def test_a_file_is_timed_by_an_expression_over_its_columns(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("event_time,n\n31/01/2026 12:00,1\nnever,2\n")
    written = f"CREATE STREAM s FROM csv OPTIONS (path '{tmp_path / 'sales.csv'}') TIMESTAMP BY"
    expression = "TO_TIMESTAMP(event_time, 'dd/MM/yyyy HH:mm')"
    with hr.connect("inline") as db:
        with pytest.raises(hr.UserError, match="the input has a column event_time already"):
            db.execute(f"{written} {expression}")
        db.execute(f"{written} {expression} AS ts")
        query = db.query("SELECT ts, n FROM s")
        db.run()
        assert query.history().select(["ts", "n"]).to_pylist() == [{"ts": AT, "n": 1}]
        assert [stream.rejected for stream in db.status.streams] == [1]
