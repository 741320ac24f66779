"""Times in files and messages that are written as a pattern says, in some time zone."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.runtime.intake.message_form import form_of
from headrace.runtime.sources.rows.written_times import WrittenTimes, times_of
from headrace.schema import BIGINT, DATE, STRING, TIMESTAMP, Field, Schema
from messages import messages

WANTED = Schema((Field("ts", TIMESTAMP), Field("day", DATE)))
GERMAN = {"timestamp_format": "dd.MM.yyyy HH:mm", "date_format": "d.M.yyyy", "time_zone": "Europe/Berlin"}
SQL = "timestampFormat 'dd.MM.yyyy HH:mm', dateFormat 'd.M.yyyy', timeZone 'Europe/Berlin'"


@given(st.lists(st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)) | st.none()), st.booleans())
def test_times_are_those_of_the_zone(moments: list[datetime | None], has_pattern: bool) -> None:
    zone = ZoneInfo("America/New_York")
    form = "%Y/%m/%d %H:%M:%S" if has_pattern else "%Y-%m-%dT%H:%M:%S"
    given = {"timestamp_format": "yyyy/MM/dd HH:mm:ss"} if has_pattern else {}
    times = times_of({**given, "time_zone": zone.key}, WANTED)
    texts = [moment and moment.strftime(form) for moment in moments]
    values, bad = times.parse(pa.array(texts, STRING), TIMESTAMP)
    # Of two times that clocks show twice the first is meant; those that they skip are later, as with fold 0.
    wanted = [moment and moment.replace(microsecond=0, tzinfo=zone).astimezone(UTC) for moment in moments]
    assert values.to_pylist() == wanted
    assert not bad.any()


def test_an_offset_in_the_text_counts_more_than_the_zone() -> None:
    texts = pa.array(["2026-01-02T03:04:05Z", "2026-01-02 03:04:05+02:00", "2026-01-02 03:04:05", "soon"])
    values, bad = WrittenTimes(zone="Asia/Tokyo").parse(texts, TIMESTAMP)
    hours = [value and (value.day, value.hour) for value in values.to_pylist()]
    assert hours == [(2, 3), (2, 1), (1, 18), None]
    assert bad.tolist() == [False, False, False, True]
    given = {"timestamp_format": "yyyy-MM-dd HH:mmXXX", "time_zone": "Asia/Tokyo"}
    values, _ = times_of(given, WANTED).parse(pa.array(["2026-01-02 03:04+02:00"]), TIMESTAMP)
    assert values.to_pylist() == [datetime(2026, 1, 2, 1, 4, tzinfo=UTC)]


EXPECTED = [
    {"ts": datetime(2026, 7, 1, 8, 30, tzinfo=UTC), "day": date(2026, 7, 1), "v": 1},
    {"ts": datetime(2026, 12, 1, 9, 30, tzinfo=UTC), "day": None, "v": 3},
]


ROWS: list[dict[str, Any]] = [
    {"ts": "01.07.2026 10:30", "day": "1.7.2026", "v": 1},
    {"ts": "2026-07-01T10:30", "day": "1.7.2026", "v": 2},
    {"ts": "01.12.2026 10:30", "day": None, "v": 3},
]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_files_with_times_in_another_form(form: str, tmp_path: Path) -> None:
    if form == "csv":
        lines = ["ts,day,v", *(",".join(str(one or "") for one in row.values()) for row in ROWS)]
    else:
        lines = [json.dumps(row) for row in ROWS]
    (tmp_path / "rows").write_text("\n".join(lines))
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (ts TIMESTAMP, day DATE, v BIGINT) FROM {form} "
            f"OPTIONS (path '{tmp_path}/rows', {SQL}) TIMESTAMP BY ts"
        )
        query = db.query("SELECT ts, day, v FROM s", name="q")
        db.run()
        found = query.stream().select(["ts", "day", "v"]).to_pylist()
        (letter,) = db.dead_letters().to_pylist()
    assert found == EXPECTED
    assert letter["reason"] == "ts is not a valid TIMESTAMP: '2026-07-01T10:30'"


MESSAGES = {
    "json": b'{"v": 1, "ts": "01.07.2026 10:30", "day": "1.7.2026"}',
    "csv": b"01.07.2026 10:30,1.7.2026,1",
}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_messages_with_times_in_another_form(form: str) -> None:
    schema = Schema((*WANTED, Field("v", BIGINT)))
    reader = form_of({**GERMAN, "format": form}, schema, None, Path(), None)
    read, _ = reader.read("t/0", messages([MESSAGES[form]]), schema)
    assert read.rows.to_pylist() == EXPECTED[:1]


@pytest.mark.parametrize(
    ("columns", "option", "message"),
    [
        ("(ts TIMESTAMP)", "timestampFormat 'QQ'", "the option timestamp_format is 'QQ', and has"),
        ("(ts TIMESTAMP)", "timeZone 'Mars/North'", "there is no time zone 'Mars/North'"),
        ("", "dateFormat 'dd'", "the option date_format is for columns that are declared"),
        ("(ts TIMESTAMP)", "timeFormat 'dd'", "has no option timeformat"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "json"])
def test_wrong_options_are_refused(
    form: str, columns: str, option: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "rows").write_text("ts\n1\n" if form == "csv" else '{"ts": 1}')
    options = f"path '{tmp_path}/rows', {option}"
    text = f"CREATE STREAM s {columns} FROM {form} OPTIONS ({options}) TIMESTAMP BY ts"
    with hr.connect(runner="inline") as db, pytest.raises(hr.UserError, match=message) as found:
        db.execute(text)
    assert found.value.hint
