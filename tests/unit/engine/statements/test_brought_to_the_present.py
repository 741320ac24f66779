"""Queries brought to the present over kept rows: limits, streams that wait by the clock, and gaps."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import DeadLetterError

COLUMNS = "(k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
FAILING = "SELECT SUM(CAST(CASE WHEN v = 0 THEN 'x' ELSE '1' END AS BIGINT)) AS x FROM s [RANGE {0}]"
TIMED = "(v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts"


def opened(streams: str, storage: Path | None = None, limit: int | None = None) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage, max_dead_letters=limit)
    db.execute(streams)
    db.start()
    return db


def test_more_dead_letters_than_are_allowed_refuse_the_query_and_leave_the_run() -> None:
    with opened(f"CREATE STREAM s {COLUMNS} RETAIN ALL; CREATE QUERY a AS SELECT v FROM s", limit=3) as db:
        rows = [{"k": 0, "v": int(ts >= 50), "ts": ts} for ts in range(100)]
        db.push("s", rows)
        with pytest.raises(DeadLetterError, match="50 rows"):
            db.execute(f"CREATE QUERY q FROM BEGINNING AS {FAILING.format(5)}")
        assert [query.name for query in db.queries] == ["a"]
        db.push("s", {"k": 0, "v": 1, "ts": 100})
        assert db.dead_letters().num_rows == 0


def test_rows_that_no_answer_needs_are_not_read() -> None:
    with opened(f"CREATE STREAM s {COLUMNS} RETAIN ALL; CREATE QUERY a AS SELECT v FROM s", limit=3) as db:
        db.push("s", [{"k": 0, "v": int(ts >= 50), "ts": ts} for ts in range(100)])
        (query,) = db.execute(f"CREATE QUERY q AS {FAILING.format(5)}")
        db.push("s", {"k": 0, "v": 1, "ts": 120})
        assert query.snapshot(99).to_pylist() == [{"x": 5}]
        assert db.dead_letters().num_rows == 0


@pytest.mark.parametrize("clause", ["LATENCY 1 HOUR", "DISORDER 2 ROWS", "DISORDER FOR 95 PERCENT"])
@pytest.mark.parametrize("level", ["MIDDLE", "(BLOCK 1 SECONDS)"])
def test_streams_that_wait_by_the_clock_or_by_rows(clause: str, level: str) -> None:
    streams = f"CREATE STREAM s {TIMED} {clause} RETAIN ALL"
    text = f"CONSISTENCY {level} AS SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS]"
    with opened(f"{streams}; CREATE QUERY first {text}") as db:
        for second in (1, 2, 3, 5):
            db.push("s", {"v": second, "ts": f"2024-01-01T00:00:0{second}Z"})
        (query,) = db.execute(f"CREATE QUERY later {text}")
        db.push("s", {"v": 4, "ts": "2024-01-01T00:00:06Z"})
        assert query.horizon == db["first"].horizon
        for moment in ("2024-01-01T00:00:04Z", "2024-01-01T00:00:05Z"):
            assert query.snapshot(moment).to_pylist() == db["first"].snapshot(moment).to_pylist()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER QUERY q PAUSE; ALTER QUERY q RESUME",
        "CREATE OR REPLACE QUERY q CONSISTENCY MIDDLE AS {0}",
        "CREATE OR REPLACE QUERY q AS SELECT v, w, w AS z FROM ({0})",
    ],
)
def test_rows_of_one_that_has_no_heartbeat_yet_are_not_lost(change: str) -> None:
    other = "CREATE STREAM t (k BIGINT, w BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL"
    joined = "SELECT v, w FROM s [RANGE 100] JOIN t [RANGE 100] ON s.k = t.k"
    with opened(f"CREATE STREAM s {COLUMNS} RETAIN ALL; {other}; CREATE QUERY q AS {joined}") as db:
        db.push("s", {"k": 1, "v": 1, "ts": 1})
        db.execute(change.format(joined))
        db.push("t", {"k": 1, "w": 9, "ts": 2})
        db.push("s", {"k": 2, "v": 1, "ts": 3})
        db.push("t", {"k": 2, "w": 1, "ts": 3})
        assert [row["w"] for row in db["q"].snapshot(2).to_pylist()] == [9]
        assert db["q"].gaps().num_rows == 0


def test_one_with_other_columns_that_begins_anew_says_what_it_lacks() -> None:
    with opened(f"CREATE STREAM s {COLUMNS}; CREATE QUERY q AS SELECT v FROM s") as db:
        for ts in range(20):
            db.push("s", {"k": 0, "v": 1, "ts": ts})
        replaced = "CREATE OR REPLACE QUERY q AS SELECT SUM(v) AS x FROM s [RANGE 10]"
        told = str(db.execute(f"EXPLAIN {replaced}")[0])
        (query,) = db.execute(replaced)
        (gap,) = query.gaps().to_pylist()
        assert f"it is exact from {gap['exact_from']} on" in told


def test_one_that_is_filled_lacks_nothing_any_more() -> None:
    with opened(f"CREATE STREAM s {COLUMNS} RETAIN ALL; CREATE QUERY a AS SELECT v FROM s") as db:
        for ts in range(20):
            db.push("s", {"k": 0, "v": 1, "ts": ts})
        (query,) = db.execute("CREATE QUERY q STARTING NOW AS SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]")
        assert query.gaps().to_pylist() == [{"lacks_from": 19, "lacks_to": 19, "exact_from": None}]
        for ts in range(20, 30):
            db.push("s", {"k": 0, "v": 1, "ts": ts})
        db.execute("ALTER QUERY q PAUSE; ALTER QUERY q RESUME")
        assert query.gaps().to_pylist() == [{"lacks_from": 19, "lacks_to": 19, "exact_from": 29}]
        db.push("s", {"k": 0, "v": 1, "ts": 30})
        assert query.snapshot(29).to_pylist() == [{"n": 30}]


def test_late_rows_belong_to_those_who_asked_for_them() -> None:
    streams = f"CREATE STREAM s {COLUMNS} DEAD LETTERS KEEP ALL RETAIN ALL; CREATE QUERY a AS SELECT v FROM s"
    with opened(streams) as db:
        db.push("s", [{"k": 0, "v": 1, "ts": ts} for ts in (1, 5, 9)])
        db.push("s", {"k": 0, "v": 7, "ts": 2})
        made = "FROM BEGINNING WITH DEAD LETTERS AS SELECT v FROM s [RANGE 3]"
        told = str(db.execute(f"EXPLAIN CREATE QUERY w {made}")[0])
        assert told.splitlines() == [
            "it is first brought to the present over 4 rows that are kept",
            "it answers at once",
        ]
        (one,) = db.execute(f"CREATE QUERY w {made}")
        (two,) = db.execute(f"CREATE QUERY w2 {made}")
        assert one.snapshot(3).to_pylist() == two.snapshot(3).to_pylist() == [{"v": 1}, {"v": 7}]


def test_what_has_no_streams_is_explained() -> None:
    with opened(f"CREATE STREAM s {COLUMNS}; CREATE QUERY a AS SELECT v FROM s") as db:
        db.push("s", {"k": 0, "v": 1, "ts": 1})
        told = db.execute("EXPLAIN CREATE QUERY one AS SELECT 1 AS one")
        assert told == ["it answers at once, and all of its answer is final"]


def test_all_rows_of_an_epoch_are_taken_together() -> None:
    """Their heartbeat is that after the last of them, and tasks have kept them in several files."""
    count = 700_000
    with hr.connect(runner="inline", threads=2, buckets=2) as db:
        db.execute(f"CREATE STREAM s {COLUMNS} RETAIN ALL; CREATE QUERY a AS SELECT v FROM s [RANGE 1]")
        db.execute("SET epoch_rows = 1000000")
        db.start()
        numbers = pa.array(range(count))
        db.push("s", pa.table({"k": numbers, "v": numbers, "ts": numbers}))
        counted = "SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]"
        (query,) = db.execute(f"CREATE QUERY q FROM BEGINNING AS {counted}")
        assert query.latest().to_pylist() == [{"n": count - 1}]
