"""Programs are told what they would not ask for: late rows, a closed database, what to write for a text."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable

import pandas as pd
import pytest

import headrace as hr
from headrace.errors import DeadLetterWarning, UserError

DAYS = ["2024-01-05", "2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]


def test_rows_that_could_not_take_part_are_a_warning() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("r", pd.DataFrame({"ts": pd.to_datetime(DAYS), "v": range(5)}), timestamp="ts")
        db.query("SELECT v FROM r")
        with pytest.warns(
            DeadLetterWarning, match=r"^r: 4 late rows, .* with DISORDER 4 DAYS none would"
        ) as told:
            db.run()
        assert told[0].filename == __file__


def test_rows_that_take_part_are_none() -> None:
    with hr.connect(runner="inline") as db, warnings.catch_warnings():
        warnings.simplefilter("error", DeadLetterWarning)
        db.stream("r", pd.DataFrame({"ts": pd.to_datetime(sorted(DAYS))}), timestamp="ts")
        db.query("SELECT ts FROM r")
        db.run()


@pytest.mark.parametrize(
    "call",
    [
        lambda db, _: db.query("SELECT v FROM s"),
        lambda db, _: db.execute("SHOW STREAMS"),
        lambda db, _: db.stream("t", pd.DataFrame({"ts": [1]}), timestamp="ts"),
        lambda db, _: db.push("s", {"ts": 1, "v": 2}),
        lambda db, _: db.start(),
        lambda db, _: db.run(),
        lambda _, query: query.history(),
        lambda _, query: query.latest(),
    ],
)
def test_a_closed_database_says_so(call: Callable[[hr.Database, hr.Query], object]) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT v FROM s")
        db.start()
        db.push("s", {"ts": 1, "v": 2})
    with pytest.raises(UserError, match="the database is closed"):
        call(db, query)
    db.close()


def test_the_latest_answer_before_there_is_one_has_no_rows() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT v, COUNT(*) AS n FROM s GROUP BY v")
        db.start()
        empty = query.latest()
        assert (empty.num_rows, empty.column_names) == (0, ["v", "n"])
        db.push("s", [{"ts": 1, "v": 2}, {"ts": 2, "v": 3}])
        assert query.latest().schema == empty.schema


@pytest.mark.parametrize("value", ["2024-01-01 00:00:00", datetime.date(2024, 1, 1)])
def test_a_frame_that_is_timed_by_a_text_or_a_date_is_told_what_to_write(value: object) -> None:
    frame = pd.DataFrame({"ts": [value], "v": [1]})
    with hr.connect(runner="inline") as db:
        with pytest.raises(UserError, match=r"df\['ts'\] = pd.to_datetime\(df\['ts'\]\)"):
            db.stream("r", frame, timestamp="ts")
        frame["ts"] = pd.to_datetime(frame["ts"])
        db.stream("r", frame, timestamp="ts")


def test_code_without_a_name_is_warned_too() -> None:
    frame = pd.DataFrame({"ts": pd.to_datetime(DAYS)})
    code = "with connect(runner='inline') as db:\n db.stream('r', frame, timestamp='ts')\n"
    with pytest.warns(DeadLetterWarning, match="4 late rows"):
        exec(code + " db.query('SELECT ts FROM r')\n db.run()", {"connect": hr.connect, "frame": frame})
