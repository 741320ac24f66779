"""GAP_FILL: queries answer as they are defined, whatever the order of arrival, and as pandas does."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from auctions import define
from headrace.algebra.nodes import Plan
from headrace.language.catalog import Catalog
from headrace.schema import BIGINT, DOUBLE
from how_many import examples
from support import check_by_reference

READING = (
    "CREATE STREAM s (device STRING, value DOUBLE, ts BIGINT) FROM csv OPTIONS (path 's') TIMESTAMP BY ts;"
)
ODD = (None, math.nan, math.inf, -0.0, 1.7e308, -1.7e308, 5e-324, 0.1)


def plan_of(text: str) -> Plan:
    """The plan of a query over readings."""
    return define(READING + text, Catalog())[1][-1]


def random_rows(seed: int, *, odd: float = 0.0) -> list[dict[str, Any]]:
    """Readings of series that begin late, end, fall silent and come back; some of them at one instant."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for device in ("a", "b", "c", None):
        begin = draw.randint(-20, 10)
        for ts in range(begin, begin + draw.randint(1, 50)):
            for _ in range(draw.choice([0, 0, 0, 1, 1, 2])):
                value = draw.choice(ODD) if draw.random() < odd else draw.gauss(0, 1)
                rows.append({"device": device, "value": value, "ts": ts})
    return sorted(rows, key=lambda row: row["ts"])


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Readings as a table."""
    schema = pa.schema([("device", pa.string()), ("value", DOUBLE), ("ts", BIGINT)])
    return pa.Table.from_pylist(rows, schema)


FILLED = "GAP_FILL(TABLE s PARTITION BY device, DESCRIPTOR(ts), {step}, {longest}, '{filling}')"
QUERIES = (
    "SELECT * FROM {series}",
    "SELECT value FROM {series} WHERE value > 0",
    "SELECT device, COUNT(*) AS n, MAX(value) AS most FROM {series} [RANGE 7 SLIDE 3] GROUP BY device",
    "SELECT device, LAG(value) OVER (PARTITION BY device ORDER BY ts) AS before, ts FROM {series}",
    "SELECT a.device, b.value FROM {series} a JOIN {series} b ON a.ts = b.ts AND a.device < b.device",
)
FILLINGS = st.sampled_from(["LAST", "LINEAR", "NULL"])
LENGTHS = st.sampled_from([(1, 1), (1, 4), (2, 6), (3, 3), (5, 20)])


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from(QUERIES),
    FILLINGS,
    LENGTHS,
    st.integers(1, 3),
)
@examples(10, 80)
def test_queries_answer_as_they_are_defined(
    seed: int, odd: float, query: str, filling: str, lengths: tuple[int, int], buckets: int
) -> None:
    step, longest = lengths
    series = FILLED.format(step=step, longest=longest, filling=filling)
    plan = plan_of(query.format(series=series))
    check_by_reference({"q": plan}, table_of(random_rows(seed, odd=odd)[:60]), buckets)


@given(st.integers(0, 10**6), FILLINGS, st.sampled_from(["STRONG", "MIDDLE"]))
@examples(5, 30)
def test_disorder_cuts_and_restarts_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, seed: int, filling: str, level: str
) -> None:
    """Rows pushed in order and at once, or out of order in small portions by several processes one by one."""
    draw = random.Random(seed)
    rows = random_rows(seed)
    late = sorted(rows, key=lambda row: row["ts"] + draw.randint(0, 4))
    cuts = [0, *sorted(draw.sample(range(1, len(rows)), min(4, len(rows) - 1))), len(rows)]
    portions = [late[begin:end] for begin, end in pairwise(cuts)]
    whole = _history([rows], filling, "STRONG", tmp_path_factory)
    assert whole
    assert whole == _history(portions, filling, level, tmp_path_factory)


def _history(
    portions: list[list[dict[str, Any]]], filling: str, level: str, folders: pytest.TempPathFactory
) -> list[str]:
    """The history of the series, by a run for each portion over one store."""
    place = folders.mktemp("store")
    found: list[str] = []
    for number, rows in enumerate(portions):
        db = hr.connect(storage=place, runner="inline")
        if number == 0:
            series = FILLED.format(step=2, longest=8, filling=filling)
            db.execute(
                "CREATE STREAM s (device STRING, value DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts "
                f"DISORDER 4; CREATE QUERY q CONSISTENCY {level} AS SELECT * FROM {series}"
            )
        db.start()
        db.push("s", rows)
        if number == len(portions) - 1:
            db.push("s", [{"device": "z", "value": 0.0, "ts": 200}])
            found = sorted(map(repr, db["q"].history().to_pylist()))
        db.close()
    return found


def test_what_is_said_early_is_corrected() -> None:
    """With CONSISTENCY MIDDLE a value is held at once, and taken back when a later one comes."""
    series = FILLED.format(step=1, longest=4, filling="LAST")
    db = hr.connect(runner="inline")
    db.execute(
        "CREATE STREAM s (device STRING, value DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5;"
        f"CREATE QUERY q CONSISTENCY MIDDLE AS SELECT value, ts FROM {series}"
    )
    db.start()
    db.push("s", [{"device": "a", "value": 1.0, "ts": 0}, {"device": "b", "value": 9.0, "ts": 3}])
    assert db["q"].snapshot(2).to_pylist() == [{"value": 1.0, "ts": 2}]
    db.push("s", [{"device": "a", "value": 2.0, "ts": 1}])
    assert db["q"].snapshot(2).to_pylist() == [{"value": 2.0, "ts": 2}]
    db.close()


def answered(rows: pa.Table, filling: str, step: str, longest: str) -> pd.DataFrame:
    """The answer over a table of rows with TIMESTAMPs."""
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts")
        query = db.query(f"SELECT * FROM {FILLED.format(step=step, longest=longest, filling=filling)}")
        db.run()
        frame: pd.DataFrame = query.stream().to_pandas()[["device", "value", "ts"]]
    return frame.sort_values(["device", "ts"]).reset_index(drop=True)


MINUTE, FOREVER = "INTERVAL '1' MINUTE", "INTERVAL '1' DAY"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("filling", ["LAST", "LINEAR", "NULL"])
def test_series_are_those_of_pandas(seed: int, filling: str) -> None:
    """`resample` of each series, the last value of every minute, and `ffill`, `interpolate` or neither."""
    draw = random.Random(seed)
    begin = pd.Timestamp("2024-05-01T09:00Z")
    moments = sorted(draw.sample(range(7200), 60))
    table = pa.table(
        {
            "device": [draw.choice("ab") for _ in moments],
            "value": [draw.gauss(20, 3) for _ in moments],
            "ts": [begin + pd.Timedelta(seconds=moment) for moment in moments],
        }
    )
    ours = answered(table, filling, MINUTE, FOREVER)
    parts = []
    for device, rows in table.to_pandas().groupby("device"):
        values = rows.set_index("ts").value.resample("1min", closed="right", label="right").last()
        filled = {"LAST": values.ffill(), "LINEAR": values.interpolate(), "NULL": values}[filling]
        parts.append(filled.rename("value").reset_index().assign(device=device))
    theirs = pd.concat(parts)[["device", "value", "ts"]].reset_index(drop=True)
    # A series of ours goes on after its last row; pandas' ends with that.
    last = table.to_pandas().groupby("device").ts.max().dt.ceil("1min")
    ours = ours[ours.ts <= ours.device.map(last)].reset_index(drop=True)
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, rtol=1e-12)


def test_series_end_and_begin_anew() -> None:
    """Nothing is held for longer than is said, and no line leads over a longer gap."""
    rows = pa.table({"device": ["a"] * 3, "value": [1.0, 2.0, 3.0], "ts": [0, 10, 12]})
    for filling, expected in (
        ("LAST", {0: 1.0, 2: 1.0, 4: 1.0, 10: 2.0, 12: 3.0, 14: 3.0, 16: 3.0}),
        ("LINEAR", {0: 1.0, 10: 2.0, 12: 3.0}),
        ("NULL", {0: 1.0, 2: None, 4: None, 10: 2.0, 12: 3.0, 14: None, 16: None}),
    ):
        with hr.connect(runner="inline") as db:
            db.stream("s", rows, timestamp="ts")
            query = db.query(f"SELECT * FROM {FILLED.format(step=2, longest=4, filling=filling)}")
            db.run()
            assert {row["ts"]: row["value"] for row in query.stream().to_pylist()} == expected


def test_the_state_of_silent_series_goes() -> None:
    """A thousand series that came once are kept for as long as they are shown."""
    db = hr.connect(runner="inline")
    series = FILLED.format(step=1, longest=10, filling="LAST")
    db.execute(
        "CREATE STREAM s (device STRING, value DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts;"
        f"CREATE QUERY q AS SELECT COUNT(*) AS n FROM {series} [RANGE 1]"
    )
    db.start()
    db.push("s", [{"device": f"{number}", "value": 1.0, "ts": 0} for number in range(1000)])
    db.push("s", [{"device": "late", "value": 1.0, "ts": 9}])
    assert _kept(db) > 1000
    db.push("s", [{"device": "late", "value": 1.0, "ts": 12}])
    assert _kept(db) < 10
    db.close()


def _kept(db: hr.Database) -> int:
    """So many rows the run keeps."""
    return sum(operator.state_rows for operator in db.status.operators)
