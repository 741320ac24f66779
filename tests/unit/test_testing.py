"""The helper for tests of queries: it passes what is right, and finds what is not."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.testing import check_query

SUM = "SELECT SUM(v) AS total FROM reading [RANGE 10]"
ROWS = {"reading": [{"ts": 1, "v": 10}, {"ts": 2, "v": 20}]}
HISTORY = [(10, 1, 2), (30, 2, 11), (20, 11, 12)]


def test_a_right_history_passes_in_any_order() -> None:
    check_query(SUM, ROWS, history=HISTORY[::-1])
    dictionaries = [dict(zip(("total", "valid_from", "valid_to"), row, strict=True)) for row in HISTORY]
    check_query(SUM, ROWS, history=dictionaries)
    check_query(SUM, ROWS, history=pa.Table.from_pylist(dictionaries))


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (HISTORY[:2], "unexpected  {'total': 20, 'valid_from': 11, 'valid_to': 12}"),
        ([*HISTORY, (1, 1, 2)], "missing     {'total': 1, 'valid_from': 1, 'valid_to': 2}"),
        ([*HISTORY, HISTORY[0]], "missing     {'total': 10, 'valid_from': 1, 'valid_to': 2}"),
        ([(10, 1)], r"the columns total, valid_from, valid_to, unlike \(10, 1\)"),
        ([(10, 1, 2, 3)], "unlike"),
        ([{"sum": 10, "valid_from": 1, "valid_to": 2}], "unlike"),
        ([("ten", 1, 2)], "the history has the columns"),
        ([], "unexpected"),
    ],
)
def test_a_wrong_history_is_found(history: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_query(SUM, ROWS, history=history)


def test_snapshots_and_streams_are_compared() -> None:
    check_query(SUM, ROWS, snapshots={1: [(10,)], 5: [{"total": 30}], 12: []})
    with pytest.raises(AssertionError, match="the snapshot at 5 differs in the given order, with all rows"):
        check_query(SUM, ROWS, snapshots={5: [(31,)]})
    check_query("SELECT ISTREAM(v) FROM reading [RANGE 5]", ROWS, stream=[(10, 1), (20, 2)])
    with pytest.raises(AssertionError, match="the stream differs"):
        check_query("SELECT ISTREAM(v) FROM reading [RANGE 5]", ROWS, stream=[(10, 1), (20, 3)])


def test_times_are_texts_or_datetimes() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    query = "SELECT v FROM reading [RANGE 1 HOUR]"
    for time in (noon, noon.replace(tzinfo=None), "2024-01-01T12:00", "2024-01-01T13:00+01:00"):
        rows = {"reading": [{"ts": time, "v": 1}]}
        check_query(query, rows, history=[(1, "2024-01-01T12:00Z", noon + timedelta(hours=1))], orders=1)
    with pytest.raises(hr.UserError, match="'noon' is not a valid timestamp"):
        check_query(query, {"reading": [{"ts": "noon", "v": 1}]}, history=[])


def test_open_ends_and_values_without_equality() -> None:
    rows = {"reading": [{"ts": 1, "v": float("nan")}]}
    check_query(
        "SELECT ARRAY_AGG(v) AS vs FROM reading [RANGE UNBOUNDED]", rows, history=[([float("nan")], 1, None)]
    )


def test_late_rows_are_expected_or_an_error() -> None:
    rows = {"reading": [{"ts": 9, "v": 1}, {"ts": 1, "v": 2}]}
    query = "SELECT v FROM reading"
    with pytest.raises(AssertionError, match="1 row came too late, not 0; reading needs the disorder 8"):
        check_query(query, rows, history=[(1, 9, 10)])
    check_query(query, rows, history=[(1, 9, 10)], late=1)
    check_query(query, rows, history=[(1, 9, 10), (2, 1, 2)], disorder=8)
    with pytest.raises(AssertionError, match="0 rows came too late, not 1"):
        check_query(query, rows, history=[(1, 9, 10), (2, 1, 2)], disorder=8, late=1)


@pytest.mark.parametrize("disorder", [None, 8])
def test_what_depends_on_the_order_of_arrival_is_found(disorder: int | None) -> None:
    """Rows of one instant change places also where there is no disorder."""
    times = [3, 3] if disorder is None else [1, 3]
    rows = {"reading": [{"ts": time, "v": letter} for time, letter in zip(times, "ab", strict=True)]}

    def prepare(db: hr.Database) -> None:
        calls = itertools.count(1)
        db.function(
            "place", lambda v: pa.array([next(calls) for _ in v]), arguments=["STRING"], returns="BIGINT"
        )

    with pytest.raises(AssertionError, match=r"differs in the order \{'reading': \[1, 0\]\}"):
        check_query(
            "SELECT v, place(v) AS n FROM reading [RANGE UNBOUNDED]",
            rows,
            snapshots={3: [("a", 1), ("b", 2)]},
            disorder=disorder,
            prepare=prepare,
            orders=20,
        )


def test_what_depends_on_the_cut_into_epochs_is_found() -> None:
    def prepare(db: hr.Database) -> None:
        db.function("width", lambda v: pa.array([len(v)] * len(v)), arguments=["BIGINT"], returns="BIGINT")

    with pytest.raises(AssertionError, match="differs in the given order, with epoch_rows=1"):
        check_query("SELECT width(v) AS n FROM reading", ROWS, history=[(2, 1, 3)], prepare=prepare)


def test_orders_keep_within_the_disorder() -> None:
    chance = random.Random(4)
    times = sorted(chance.randrange(100) for _ in range(30))
    rows = {"reading": [{"ts": time, "v": 1} for time in times]}
    check_query(
        "SELECT COUNT(*) AS n FROM reading [RANGE UNBOUNDED]",
        rows,
        snapshots={100: [(30,)]},
        disorder=20,
        orders=20,
    )


def test_several_statements_and_streams() -> None:
    text = "CREATE STREAM big AS SELECT * FROM reading WHERE v > 10;"
    text += "SELECT v, w FROM big [RANGE 5] B, other [RANGE 5] O"
    rows = {**ROWS, "other": [{"ts": 4, "w": "x"}]}
    check_query(text, rows, history=[(20, "x", 4, 7)])


def test_mistakes_are_the_testers() -> None:
    with pytest.raises(hr.UserError, match="nothing is expected"):
        check_query(SUM, ROWS)
    with pytest.raises(hr.UserError, match="there is no query in the text"):
        check_query("CREATE STREAM big AS SELECT * FROM reading", ROWS, history=[])
    with pytest.raises(hr.UserError, match="not dictionaries"):
        check_query(SUM, {"reading": []}, history=[])
    with pytest.raises(hr.UserError, match="there is no stream"):
        check_query("SELECT v FROM readings", ROWS, history=[])
