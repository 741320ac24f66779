"""Instants that are given in seconds or milliseconds, where microseconds count."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import headrace as hr

AT = 1_714_564_802
"""2024-05-01T12:00:02Z in seconds."""


@pytest.fixture
def query() -> hr.Query:
    db = hr.connect(runner="inline")
    db.execute("CREATE STREAM s (v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts")
    query = db.query("SELECT v FROM s [RANGE 1 MINUTE]", "q")
    db.start()
    db.push(
        "s",
        [
            {"v": 1, "ts": datetime.fromtimestamp(AT, UTC)},
            {"v": 2, "ts": datetime.fromtimestamp(AT + 9, UTC)},
        ],
    )
    return query


@pytest.mark.parametrize("factor", [1, 1_000])
def test_a_number_of_seconds_says_what_it_is_as_a_timestamp(query: hr.Query, factor: int) -> None:
    with pytest.raises(hr.UserError) as caught:
        query.snapshot(AT * factor)
    assert caught.value.message.startswith(f"nothing holds at {AT * factor}, which is 1970-01-")
    assert caught.value.hint is not None
    number, text = caught.value.hint.split(": write ")[1].split(" or ")
    assert query.snapshot(int(number)).num_rows == query.snapshot(text.strip("'")).num_rows == 1
    with pytest.raises(hr.UserError, match="nothing holds at"):
        query.difference(1, at=AT * factor)


@pytest.mark.parametrize("at", [AT * 1_000_000 - 1, 0, 7_000, "1970-01-01T00:28:34Z", datetime(1971, 1, 1)])
def test_other_instants_without_rows_are_empty(query: hr.Query, at: object) -> None:
    assert query.snapshot(at).num_rows == 0


def test_rows_of_1970_are_asked_for_by_numbers() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT v FROM s [RANGE 1 SECOND]", "q")
        db.start()
        db.push("s", [{"v": 1, "ts": datetime(1970, 2, 1)}, {"v": 2, "ts": datetime(1970, 3, 1)}])
        assert query.snapshot(AT).num_rows == 0
