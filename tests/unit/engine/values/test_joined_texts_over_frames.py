"""STRING_AGG and its like beside rows: texts, as in groups."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headrace as hr

ROWS = pa.table({"ts": [0, 1, 2, 3], "k": [1, 2, 1, 2], "s": ["a", "b", None, "c"]})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("STRING_AGG(s, ',') OVER (ORDER BY ts)", ["a", "a,b", "a,b", "a,b,c"]),
        ("GROUP_CONCAT(s) OVER (ORDER BY ts RANGE 2 PRECEDING)", ["a", "a,b", "a,b", "b,c"]),
        ("LISTAGG(s) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)", [None, "a", "ab", "b"]),
        (
            "LISTAGG(s, '-') WITHIN GROUP (ORDER BY s DESC) OVER (PARTITION BY k ORDER BY ts)",
            ["a", "b", "a", "c-b"],
        ),
        ("UPPER(STRING_AGG(s, ',') FILTER (WHERE k > 1) OVER (ORDER BY ts))", [None, "B", "B", "B,C"]),
    ],
)
def test_over_frames_of_a_stream(call: str, expected: list[str | None]) -> None:
    with hr.connect(runner="inline") as db:
        db.stream("g", ROWS, timestamp="ts")
        query = db.query(f"SELECT ts, {call} AS l FROM g")
        db.run()
        assert [row["l"] for row in query.history().to_pylist()] == expected
        assert str(query.schema) == "(ts BIGINT, l STRING)"


def test_over_partitions_and_over_aggregates() -> None:
    with hr.connect(runner="inline") as db:
        db.relation("r", ROWS)
        texts = db.query("SELECT k, STRING_AGG(s, ',') OVER (PARTITION BY k) AS l FROM r WHERE s IS NOT NULL")
        nested = db.query("SELECT k, STRING_AGG(STRING_AGG(s, '+'), '|') OVER () AS l FROM r GROUP BY k")
        db.run()
        assert sorted(row["l"] for row in texts.history().to_pylist()) == ["a", "b,c", "b,c"]
        assert [row["l"] for row in nested.history().to_pylist()] == ["a|b+c", "a|b+c"]
