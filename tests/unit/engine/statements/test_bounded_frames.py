"""Frames of OVER within bounds are windows of the stream: they are changed, told and explained as these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headrace as hr
from headrace.errors import LanguageError

FRAMED = "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE MIN 3, MAX 8) AS x FROM s"


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=2) as made:
        made.execute(f"""
            CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
            CREATE QUERY q AS {FRAMED};
            CREATE QUERY counted AS SELECT COUNT(*) AS n FROM s WINDOW(RANGE MIN 3, MAX 8)
        """)
        made.start()
        yield made


def push(db: hr.Database, begin: int, end: int) -> None:
    assert db.push("s", [{"k": None if at % 2 else 0, "v": at, "ts": at} for at in range(begin, end)])


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def test_a_row_has_the_aggregate_of_the_window_at_its_instant(db: hr.Database) -> None:
    push(db, 0, 20)
    assert told(db, "ALTER QUERY q SET (WINDOW 3)") == (
        "the window of s is 3 for rows from 20 on; so it is in counted, with the same bounds"
    )
    push(db, 20, 40)
    rows = {row["valid_from"]: row for row in db["q"].history(tunings=True).to_pylist()}
    for at, row in rows.items():
        # Before 20 rows stay for 8 instants, then for 3; every other row is of the same partition.
        in_window = [u for u in range(at + 1) if at < u + (3 if u >= 20 else 8) and (at - u) % 2 == 0]
        assert (row["v"], row["x"], row["valid_to"]) == (at, sum(in_window), at + 1)
    assert [len(rows[at]["tunings"]) for at in (19, 20, 26, 27)] == [1, 2, 2, 1]


def test_it_is_told_and_explained_as_windows_are(db: hr.Database) -> None:
    push(db, 0, 20)
    assert told(db, "SHOW TUNINGS").splitlines()[2] == "s           3    8    8            q, counted"
    db.execute("ALTER QUERY counted SET (WINDOW 5)")
    assert "its window of s is 5 for rows from 20 on, from MIN 3 to MAX 8" in told(db, "DESCRIBE QUERY q")
    assert "window of s: MIN 3, MAX 8, now 5 for rows from 20 on" in told(db, f"EXPLAIN COST {FRAMED}")
    assert told(db, "SHOW TUNINGS FOR q") == told(db, "SHOW TUNINGS FOR counted")
    assert [window.size for window in db.status.query("q").windows] == [5]


def test_several_frames_and_functions(db: hr.Database) -> None:
    db.execute("""
        CREATE QUERY several AS
            SELECT v, COUNT(*) OVER w AS n, MAX(v) OVER (ORDER BY ts RANGE MIN 2, MAX 4) AS m,
                FIRST_VALUE(v) OVER w AS first, SUM(v / (v + 1)) OVER (PARTITION BY k + 1 ORDER BY ts
                    RANGE MIN 2, MAX 4) AS ratio,
                COUNT(*) OVER (ORDER BY ts ROWS 2 PRECEDING) AS before
            FROM s WINDOW w AS (PARTITION BY k ORDER BY ts RANGE MIN 3, MAX 8)
            QUALIFY COUNT(*) OVER w > 1
    """)
    push(db, 0, 13)
    found = db["several"].stream().to_pylist()
    assert [row["v"] for row in found] == [*range(2, 12)]
    last = found[-1]
    assert (last["n"], last["m"], last["first"], last["before"]) == (4, 11, 5, 3)
    assert last["ratio"] == pytest.approx(11 / 12 + 9 / 10)


@pytest.mark.parametrize(
    ("order", "window"), [("v", ""), ("ts DESC", ""), ("ts, v", ""), ("v", "[RANGE 9]"), ("ts", "[RANGE 9]")]
)
def test_rows_in_another_order_than_that_of_their_time_have_no_bounds(
    db: hr.Database, order: str, window: str
) -> None:
    """Of a stream without a window all rows so far are put in such an order, of which nobody spoke."""
    over = f"OVER (PARTITION BY k ORDER BY {order} RANGE MIN 3, MAX 8)"
    with pytest.raises(LanguageError, match="over the rows of a stream as they come") as found:
        db.execute(f"CREATE QUERY other AS SELECT v, SUM(v) {over} AS x FROM s {window}")
    assert "ORDER BY ts RANGE MIN" in (found.value.hint or "")
    assert found.value.position is not None
