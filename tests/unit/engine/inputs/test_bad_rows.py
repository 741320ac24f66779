"""No row ends a run, whatever its instants and whatever users' code does with it: it is a dead letter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import headrace
from headrace.schema import DATE, TIMESTAMP

BEYOND = 300_000_000_000_000_000
"""An instant after the year 9999, in microseconds."""


@pytest.fixture
def db() -> Iterator[headrace.Database]:
    with headrace.connect(runner="inline", dialect="pipes", epoch_rows=1) as database:
        yield database


def instants(*values: int) -> pa.Array:
    return pa.array(values, pa.int64()).cast(TIMESTAMP)


def days(*values: int) -> pa.Array:
    return pa.array(values, pa.int32()).cast(DATE)


def letters(db: headrace.Database) -> list[tuple[str, dict[str, object]]]:
    return [(letter["reason"], json.loads(letter["row"])) for letter in db.dead_letters().to_pylist()]


def test_late_rows_and_rows_out_of_range_whatever_their_year(db: headrace.Database) -> None:
    table = pa.table({"ts": instants(10, BEYOND + 1, BEYOND, 2**62), "v": [1, 2, 3, 4]})
    db.stream("s", table, timestamp="ts")
    query = db.query("SELECT v FROM s")
    db.run()
    assert query.history()["v"].to_pylist() == [1, 2]
    assert letters(db) == [
        (f"late: older than the heartbeat {BEYOND + 1}", {"ts": str(BEYOND), "v": 3}),
        ("the timestamp ts is out of range", {"ts": str(2**62), "v": 4}),
    ]


def test_a_failing_row_with_dates_that_python_has_not(db: headrace.Database) -> None:
    table = pa.table({"ts": [1, 2, 3, 4], "d": days(2**31 - 1, 0, -(2**31), 2_932_897), "z": [0, 1, 0, 0]})
    db.stream("s", table, timestamp="ts")
    query = db.query("SELECT 1 / z AS one, d FROM s")
    db.run()
    assert len(query.history()) == 1
    assert [row["d"] for _, row in letters(db)] == ["2147483647", "-2147483648", "10000-01-01"]


def test_values_that_json_has_no_number_for_and_long_ones(db: headrace.Database) -> None:
    table = pa.table({"ts": [1], "x": [float("nan")], "t": ['"\0é' + "a" * 100_000], "z": [0]})
    db.stream("s", table, timestamp="ts")
    db.query("SELECT 1 / z AS one, x, t FROM s")
    db.run()
    ((_, row),) = letters(db)
    assert row["x"] == "NaN"
    assert row["t"] == '"\0é' + "a" * 9_997 + "... (100003 characters in all)"


def test_an_array_in_a_failing_row() -> None:
    table = pa.table({"ts": [0] * 3 + [1] * 10_001, "d": days(*[2**31 - 1] * 10_004)})
    with headrace.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", table, timestamp="ts")
        db.query("SELECT 1 / (n - n) AS x, d FROM (SELECT ARRAY_AGG(d) AS d, COUNT(*) AS n FROM s) AS a")
        db.run()
        found = [row["d"] for _, row in letters(db)]
    assert found == [["2147483647"] * 3, "an array of 10001 values"]


class _MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class _LeavingError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (_MuteError, "f raised _MuteError: its text cannot be had"),
        (_LeavingError, "f raised _LeavingError: its text cannot be had"),
        (lambda: SystemExit(3), "f raised SystemExit: 3"),
        (lambda: GeneratorExit("why"), "f raised GeneratorExit: why"),
        (lambda: ValueError("\ud800" + "y" * 1_000_000), f"f raised ValueError: ?{'y' * 499}... (1000001"),
    ],
)
def test_functions_that_raise_whatever_exceptions(
    db: headrace.Database, error: Callable[[], BaseException], reason: str
) -> None:
    def body(values: pa.Array) -> pa.Array:
        raise error()

    db.function("f", body, arguments=["BIGINT"], returns="BIGINT", version="1")
    db.stream("s", pa.table({"ts": [1]}), timestamp="ts")
    db.query("SELECT f(ts) AS x FROM s")
    db.run()
    ((found, row),) = letters(db)
    assert found.startswith(reason)
    assert len(found) < 1_000
    assert row == {"ts": 1}


class Span:
    """How many microseconds lie between the first and the last value."""

    def initialize(self) -> list[object]:
        return []

    def accumulate(self, state: list[object], value: object) -> list[object]:
        return [*state, value]

    def evaluate(self, state: list[object]) -> int:
        return len(state)


@pytest.mark.parametrize("column", ["ts", "d"])
def test_an_aggregate_gets_no_date_that_python_has_not(db: headrace.Database, column: str) -> None:
    dtype = "TIMESTAMP" if column == "ts" else "DATE"
    db.aggregate("span", Span, arguments=[dtype], returns="BIGINT", version="1")
    first, last = -719_162, 2_932_896
    ts = instants(*(day * 86_400_000_000 for day in (first - 1, first, last, last + 1)))
    db.stream("s", pa.table({"ts": ts, "d": days(first - 1, first, last, last + 1)}), timestamp="ts")
    query = db.query(f"SELECT span({column}) AS n FROM s [RANGE UNBOUNDED]")
    db.run()
    assert query.history()["n"].to_pylist() == [1, 2]
    assert [reason for reason, _ in letters(db)] == [
        "a user's aggregate can take only the years 1 to 9999"
    ] * 2


def test_years_without_a_text(db: headrace.Database) -> None:
    first, last = -719_162, 2_932_896
    ts = instants(*(day * 86_400_000_000 for day in (first - 1, first, last, last + 1)))
    db.stream("s", pa.table({"ts": ts}), timestamp="ts")
    query = db.query("SELECT DATE_FORMAT(ts, 'yyyy-MM-dd') AS day FROM s")
    db.run()
    assert query.history()["day"].to_pylist() == ["0001-01-01", "9999-12-31"]
    assert [reason for reason, _ in letters(db)] == ["DATE_FORMAT takes the years 1 to 9999"] * 2


@pytest.mark.parametrize(
    "text",
    [
        "TIMESTAMP_MICROS(9223372036854775807)",
        "TIMESTAMP_MICROS(ts + 4611686018427387904)",
        "TIMESTAMP_MICROS(ts) IN (TIMESTAMP_MICROS(9223372036854775807), TIMESTAMP_MICROS(1))",
        "CAST(TIMESTAMP_MICROS(9223372036854775807) AS DATE)",
        "DATE_TRUNC('YEAR', TIMESTAMP_MICROS(-62200000000000000))",
        "TIMESTAMP_MILLIS(9223372036854775807)",
        "TIMESTAMP_SECONDS(1E12)",
    ],
)
def test_years_without_a_timestamp(db: headrace.Database, text: str) -> None:
    db.stream("s", pa.table({"ts": [1]}), timestamp="ts")
    query = db.query(f"SELECT {text} AS x FROM s")
    db.run()
    assert len(query.history()) == 0
    assert [reason for reason, _ in letters(db)] == ["a point in time outside the years 1 to 9999"]


@pytest.mark.parametrize("together", [False, True])
def test_a_pushed_row_may_leave_out_a_column_whatever_comes_with_it(together: bool) -> None:
    rows: list[dict[str, object]] = [{"ts": 1, "k": "a", "n": 1}, {"ts": 2, "n": 2}, {"ts": 3, "k": "b"}]
    with headrace.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, k STRING, n BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT k, n FROM s", name="q")
        db.start()
        for some in [rows] if together else [[row] for row in rows]:
            assert db.push("s", some)
        for wrong in ({"k": "a"}, {"ts": 4, "kk": "a"}, {"a": 1}):
            with pytest.raises(headrace.UserError, match="no column"):
                db.push("s", wrong)
        db.push("s", {"ts": 9, "k": "end"})
        found = query.changes().to_pylist()
    assert [(row["k"], row["n"]) for row in found][:3] == [("a", 1), (None, 2), ("b", None)]
