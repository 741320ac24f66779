"""`LIFETIME (start, duration)`: what it means, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import UserError

COUPONS = pa.table({"shop": ["a", "b", "c"], "days": [2, 1, None], "at": [3, 10, 11]})


def history(text: str, rows: pa.Table = COUPONS) -> list[tuple[Any, ...]]:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("coupon", rows, timestamp="at")
        query = db.query(text)
        db.run()
        return [tuple(row.values()) for row in query.history().to_pylist()]


@pytest.mark.parametrize(
    ("lifetime", "expected"),
    [
        # The window of 003, section 2, is the lifetime of a fixed duration: W_wl(S) = (Vs, wl).
        ("(at, 4)", [("a", 3, 7), ("b", 10, 14), ("c", 11, 15)]),
        # Inserts(S) = (Vs, infinity); Deletes(S) = (Ve, infinity), and Ve = Vs + 1 for a row of an instant.
        ("(VALID_FROM, UNBOUNDED)", [("a", 3, None), ("b", 10, None), ("c", 11, None)]),
        ("(VALID_FROM + 1, UNBOUNDED)", [("a", 4, None), ("b", 11, None), ("c", 12, None)]),
        # A hopping window by integer division.
        ("(FLOOR(at TO 5), 5)", [("a", 0, 5), ("b", 10, 15), ("c", 10, 15)]),
        ("(at - 2, days)", [("a", 1, 3), ("b", 8, 9)]),
        ("(c.at, 2 * days + 1)", [("a", 3, 8), ("b", 10, 13)]),
    ],
)
def test_lifetimes_of_the_paper(lifetime: str, expected: list[tuple[Any, ...]]) -> None:
    assert history(f"SELECT shop FROM coupon [LIFETIME {lifetime}] c") == expected
    assert history(f"SELECT shop FROM coupon WINDOW(LIFETIME {lifetime}) c") == expected


def test_units_of_time() -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    rows = pa.table(
        {"shop": ["a", "b"], "days": [2, 0], "at": pa.array([noon, noon], pa.timestamp("us", "UTC"))}
    )
    day, midnight = timedelta(days=1), noon.replace(hour=0)
    found = history("SELECT shop FROM coupon [LIFETIME (FLOOR(at TO 1 DAY), days DAYS)]", rows)
    assert found == [("a", midnight, midnight + 2 * day)]
    found = history(
        "SELECT shop FROM coupon [LIFETIME (at - 1 HOUR, INTERVAL '2' HOURS)] WHERE days = 0", rows
    )
    assert found == [("b", noon - timedelta(hours=1), noon + timedelta(hours=1))]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("FROM coupon [LIFETIME (days, 3)]", "begins at the instant of its row, and days is another column"),
        ("FROM coupon [LIFETIME (at, shop)]", "the duration of a LIFETIME is a STRING"),
        ("FROM coupon [LIFETIME (at, 0)]", "must be at least 1"),
        ("FROM coupon [LIFETIME (at, 3 DAYS)]", "has a unit, but the stream is timed by an integer"),
        ("FROM coupon [LIFETIME (at, days DAYS)]", "has a unit, but the stream is timed by an integer"),
        ("FROM coupon [LIFETIME (at, days FORTNIGHTS)]", "unknown unit of time FORTNIGHTS"),
        ("FROM coupon [LIFETIME (at)]", "between the start and the duration"),
        ("FROM coupon [LIFETIME (at, )]", "the duration of LIFETIME is missing"),
        ("FROM coupon [LIFETIME (FLOOR(at), 2)]", "after what FLOOR rounds"),
        (
            "FROM (SELECT shop, days, at FROM coupon [RANGE 5]) [LIFETIME (at, 3)]",
            "LIFETIME is over rows that are valid for longer than one instant",
        ),
    ],
)
def test_lifetimes_that_are_refused(query: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        history(f"SELECT shop {query}")
    assert getattr(refused.value, "position", None) is not None


def test_a_duration_that_fails_is_a_dead_letter() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("coupon", COUPONS, timestamp="at")
        query = db.query("SELECT shop FROM coupon [LIFETIME (at, 4 DIV (days - 1))]")
        summary = db.run()
        assert query.history().to_pydict()["shop"] == ["a"]
        assert summary.dead_letters == 1
        assert "division by zero" in str(db.dead_letters().to_pylist())
