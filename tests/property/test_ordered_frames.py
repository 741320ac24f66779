"""OVER with any order over rows that hold for a time, beside DuckDB's window functions at every instant."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from how_many import examples

ROWS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([1, 2, 3, None]),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=12,
)
ALL = "ORDER BY v {0}, k {0}, w {0}, ts {0}"
FIRST = ALL.format("NULLS FIRST")
CALLS = {
    "SUM(w) OVER (PARTITION BY k ORDER BY v)": "SUM(w) OVER (PARTITION BY k ORDER BY v NULLS FIRST)",
    "COUNT(*) OVER (ORDER BY v DESC, w)": "COUNT(*) OVER (ORDER BY v DESC NULLS LAST, w)",
    f"SUM(w) OVER ({ALL.format('')} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)": (
        f"SUM(w) OVER ({FIRST} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)"
    ),
    f"COUNT(*) OVER (PARTITION BY k {ALL.format('')} ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING)": (
        f"COUNT(*) OVER (PARTITION BY k {FIRST} ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING)"
    ),
    f"MAX(v) FILTER (WHERE w > 1) OVER ({ALL.format('')} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)": (
        f"MAX(v) FILTER (WHERE w > 1) OVER ({FIRST} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)"
    ),
    f"LAG(w) OVER (PARTITION BY k {ALL.format('')})": f"LAG(w) OVER (PARTITION BY k {FIRST})",
    f"LEAD(w, 2, 0) OVER ({ALL.format('')})": f"LEAD(w, 2, 0) OVER ({FIRST})",
    f"LAST_VALUE(w) OVER ({ALL.format('')} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)": (
        f"LAST_VALUE(w) OVER ({FIRST} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
    ),
    "AVG(w) OVER (ORDER BY v RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)": "AVG(w) OVER ()",
    "SUM(w) OVER (ORDER BY v RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)": (
        "SUM(w) OVER (ORDER BY v NULLS FIRST RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
    ),
}
"""Calls as they are written here, and for DuckDB, which puts NULLs elsewhere."""


@examples(4, 12)
@given(rows=ROWS)
def test_frames_by_any_order(rows: list[tuple[Any, ...]]) -> None:
    names = ("ts", "k", "v", "w")
    table = pa.table(
        {name: pa.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)},
        schema=pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("w", pa.int64())]),
    )
    with hr.connect("inline") as db, duckdb.connect() as peer:
        db.stream("s", table.sort_by("ts"), timestamp="ts")
        queries = {
            theirs: db.query(f"SELECT ts, k, v, w, {ours} AS x FROM s WINDOW(RANGE 4)")
            for ours, theirs in CALLS.items()
        }
        db.run()
        for instant in range(14):
            valid = (pc.field("ts") <= instant) & (pc.field("ts") > instant - 4)
            peer.register("content", table.filter(valid))
            for theirs, query in queries.items():
                expected = peer.sql(f"SELECT ts, k, v, w, CAST({theirs} AS DOUBLE) FROM content").fetchall()
                found = [tuple(row.values()) for row in query.snapshot(instant).to_pylist()]
                assert sorted(map(_plain, found)) == sorted(map(_plain, expected)), (instant, theirs)


def _plain(row: tuple[Any, ...]) -> str:
    return repr(tuple(float(one) if isinstance(one, int) else one for one in row))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("SUM(w) OVER (ORDER BY v RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)", "has no lengths"),
        ("SUM(w) OVER (ORDER BY v ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING)", "ends before it starts"),
    ],
)
def test_frames_that_are_refused(call: str, message: str) -> None:
    with hr.connect("inline") as db:
        db.stream("s", pa.table({"ts": [1], "v": [1], "w": [1]}), timestamp="ts")
        with pytest.raises(hr.UserError, match=message):
            db.query(f"SELECT {call} FROM s WINDOW(RANGE 4)")
