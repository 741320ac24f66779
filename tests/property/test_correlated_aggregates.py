"""Correlated aggregates: of the rows that compare in some way with an aggregate of their own group."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from how_many import examples

ROWS = st.tuples(st.sampled_from("ab"), st.sampled_from([None, 0, 1, 3, 8, 40]), st.integers(0, 3))
TEXT = (
    "SELECT k, COUNT(*) FILTER (WHERE v >= AVG(v)) AS above, "
    "SUM(v) FILTER (WHERE v <= 2 * MIN(v) + 1) AS low, "
    "COUNT_IF(v = MAX(v) FILTER (WHERE v < 40)) AS top, MAX(v) AS most FROM s [RANGE 9] "
    "WHERE k IS NOT NULL GROUP BY k HAVING COUNT(*) FILTER (WHERE v >= AVG(v)) < 5"
)


def expected(rows: list[dict[str, Any]], instant: int) -> list[tuple[Any, ...]]:
    """The answer, word by word."""
    found = []
    for key in "ab":
        live = [row["v"] for row in rows if row["k"] == key and instant - 9 < row["ts"] <= instant]
        known = [value for value in live if value is not None]
        above = sum(value * len(known) >= sum(known) for value in known)
        low = [value for value in known if value <= 2 * min(known) + 1]
        few = [value for value in known if value < 40]
        top = sum(value == max(few) for value in known) if few else 0
        if live and above < 5:
            found.append((key, above, sum(low) if low else None, top, max(known, default=None)))
    return found


@examples(8, 60)
@given(rows=st.lists(ROWS, min_size=1, max_size=40), every=st.integers(1, 12))
def test_rows_are_compared_with_their_own_group(rows: list[tuple[str, int | None, int]], every: int) -> None:
    pushed: list[dict[str, Any]] = [
        {"k": k, "v": v, "ts": 2 * at + back} for at, (k, v, back) in enumerate(rows)
    ]
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3")
        query = db.query(TEXT, name="q")
        db.start()
        for at in range(0, len(pushed), every):
            db.push("s", pushed[at : at + every])
        for instant in range(max(row["ts"] for row in pushed) - 3):
            answer = [tuple(row.values()) for row in query.snapshot(instant).to_pylist()]
            assert sorted(answer, key=str) == sorted(expected(pushed, instant), key=str), instant
