"""TUMBLE and HOP by other columns than the timestamp, over rows that hold for a time."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from how_many import examples

TABLE = "TABLE (SELECT * FROM s WINDOW(RANGE 3))"


def snapshot(query: str, rows: dict[str, Any], instant: int) -> list[dict[str, Any]]:
    """The rows of a query at an instant."""
    with hr.connect("inline") as db:
        db.stream("s", pa.table(rows), timestamp="ts")
        found = db.query(query)
        db.run()
        listed: list[dict[str, Any]] = found.snapshot(instant).to_pylist()
        return listed


@examples(9, 25)
@given(
    values=st.lists(st.integers(-20, 20) | st.none(), min_size=1, max_size=6).filter(any),
    size=st.integers(1, 9),
    slide=st.integers(1, 9),
    offset=st.integers(0, 9),
)
def test_each_row_is_in_the_windows_that_hold_its_value(
    values: list[int | None], size: int, slide: int, offset: int
) -> None:
    rows = {"ts": [1] * len(values), "v": values}
    found = snapshot(f"SELECT * FROM HOP({TABLE}, DESCRIPTOR(v), {slide}, {size}, {offset})", rows, 2)
    expected = [
        (value, start, start + size)
        for value in values
        if value is not None
        for start in range(-60, 60)
        if (start - offset) % slide == 0 and start <= value < start + size
    ]
    assert sorted((row["v"], row["window_start"], row["window_end"]) for row in found) == sorted(expected)


def test_windows_of_dates_follow_the_rows() -> None:
    rows = {"ts": [1, 2, 5], "due": [dt.date(2026, 1, 31), dt.date(2026, 2, 1), dt.date(2026, 2, 1)]}
    query = f"""SELECT window_start, COUNT(*) AS n FROM TUMBLE({TABLE}, DESCRIPTOR(due), INTERVAL '2' DAYS)
        GROUP BY window_start, window_end"""
    first = dt.datetime(2026, 1, 31, tzinfo=dt.UTC)
    assert snapshot(query, rows, 3) == [{"window_start": first, "n": 2}]
    assert snapshot(query, rows, 6) == [{"window_start": first, "n": 1}]


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        ("TABLE s", "DESCRIPTOR(v), 3", "v is not the column by which these rows are timed"),
        (TABLE, "DESCRIPTOR(k), 3", "k is STRING"),
        (TABLE, "DESCRIPTOR(v), 0", "at least 1"),
        (TABLE, "DESCRIPTOR(v), INTERVAL '1' DAY", "INTERVAL"),
    ],
)
def test_what_is_refused(table: str, arguments: str, message: str) -> None:
    with pytest.raises(hr.UserError, match=message):
        snapshot(f"SELECT * FROM TUMBLE({table}, {arguments})", {"ts": [1], "v": [1], "k": ["a"]}, 1)
