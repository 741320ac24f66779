"""A text in a declared TIMESTAMP is what CAST makes of it in a query, whichever source it comes in."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

import headrace as hr
from headrace.expressions.evaluation.parsing import parse_timestamp
from headrace.runtime.sources.rows.values import parse_texts
from headrace.schema import TIMESTAMP
from how_many import examples

YEARS = st.sampled_from(["2024", "2024", "2024", "0001", "0000", "9999", "1677", "2262", "12024", "24"])
DAYS = st.sampled_from(["-1-5", "-01-01", "-02-29", "-02-30", "-12-31", "-13-01", "-06", "0601", ""])
TIMES = st.sampled_from(
    ["T10:05:07", " 10:05:07", " 23:59:59", " 24:00:00", "T10:60:00", " 9:5:7", "T10:05", " 7", ""]
)
DIGITS = st.just("") | st.text("0123456789", max_size=10).map(lambda digits: f".{digits}")
ZONES = st.sampled_from(
    [
        *("", "", "Z", " UTC"),
        "+05:30",
        "-0800",
        "+02",
        "+18:00",
        "-18:00",
        *("+18:01", "-19:00"),
        "+23:59",
        "-5",
        "GMT",
        " +01:00",
    ]
)
BLANKS = st.sampled_from(["", "", "", " "])
TEXTS = st.builds("".join, st.tuples(BLANKS, YEARS, DAYS, TIMES, DIGITS, ZONES, BLANKS))


@given(texts=st.lists(st.none() | TEXTS, max_size=12), trim=st.booleans())
@example(texts=["2024-01-01 10:05:07.1234567", "2024-01-01 10:05:07.123456999Z"], trim=False)
@example(texts=["0000-12-31 23:59:59"], trim=True)
@example(texts=["2024-01-28T10:00:00-19:00"], trim=True)
@examples(200, 1_000, deadline=None)
def test_sources_read_what_cast_reads(texts: list[str | None], trim: bool) -> None:
    import pyarrow as pa

    column = pa.array(texts, pa.string())
    values, bad = parse_texts(column, TIMESTAMP, trim=trim)
    wanted, lost = parse_timestamp(column, TIMESTAMP)
    assert bad.tolist() == np.asarray(lost).tolist()
    good = pa.array(~bad)
    # As numbers: Python has no year 10000.
    assert values.filter(good).view(pa.int64()).equals(wanted.filter(good).view(pa.int64()))


@pytest.mark.parametrize("form", ["csv", "json", "push"])
@given(texts=st.lists(TEXTS.map(str.strip), min_size=1, max_size=8))
@examples(5, 20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_way_in(form: str, texts: list[str], tmp_path: Path) -> None:
    rows = [{"k": place, "t": text} for place, text in enumerate(texts)]
    if form == "csv":
        (tmp_path / "s.csv").write_text("k,t\n" + "".join(f"{row['k']},{row['t']}\n" for row in rows))
    elif form == "json":
        (tmp_path / "s.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = "push" if form == "push" else f"{form} OPTIONS (path '{tmp_path}/s.{form}')"
    with hr.connect(runner="inline") as db:
        for name, dtype in (("declared", "TIMESTAMP"), ("texts", "STRING")):
            db.execute(f"CREATE STREAM {name} (k BIGINT, t {dtype}) FROM {source} TIMESTAMP BY k")
        middle = "CONSISTENCY MIDDLE AS SELECT k"
        db.execute(f"CREATE QUERY q {middle}, t FROM declared")
        db.execute(f"CREATE QUERY c {middle}, TRY_CAST(t AS TIMESTAMP) AS t FROM texts")
        if form != "push":
            db.run()
        else:
            db.start()
            for row in rows:
                db.push("texts", row)
                with suppress(hr.UserError):
                    db.push("declared", row)
        read, cast = (db.queries[name].changes() for name in "qc")
    found, wanted = (
        list(zip(table["k"].to_pylist(), table["t"].cast("int64").to_pylist(), strict=True))
        for table in (read, cast)
    )
    # Dictionaries have times of Python's.
    last = 253_402_300_800_000_000 if form == "push" else 2**63
    assert found == [(k, t) for k, t in wanted if t is not None and t < last]
