"""What goes wrong in one query ends it alone, also where its work is done by Spark's workers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr

GOOD = "SELECT k, COUNT(*) AS n FROM p [RANGE 10] GROUP BY k"
FAILING = {
    "time": (
        "SELECT k, LEVENSHTEIN(REPEAT(s, 50000), REPEAT('ab', 25000)) AS d FROM p",
        "took more than 1 s in one epoch",
    ),
    "memory": (
        "SELECT k, REPLACE(REPEAT(s, 1000000), s, REPEAT('ab', 500000)) AS d FROM p",
        "needs more memory than there is",
    ),
    "values": ("SELECT SUM(v) AS d FROM p [RANGE UNBOUNDED]", "SUM overflows BIGINT"),
}
"""Queries that end, with the reason."""


@pytest.mark.spark
@pytest.mark.parametrize("kind", FAILING)
def test_a_query_that_fails_in_a_worker_ends_alone(kind: str, tmp_path: Path) -> None:
    text, reason = FAILING[kind]
    with hr.connect(storage=tmp_path, epoch_timeout=1) as db:
        db.execute("CREATE STREAM p (ts BIGINT, k BIGINT, v BIGINT, s STRING) FROM push TIMESTAMP BY ts")
        db.execute(f"CREATE QUERY good AS {GOOD}; CREATE QUERY bad AS {text}")
        db.start()
        for at in (1, 2, 3):
            rows = {"ts": [at] * 9, "k": [1] * 9, "v": [2**62] * 9, "s": list("abcdefghi")}
            db.push("p", pa.table(rows))
        assert reason in str(db.status.query("bad").failed)
        assert db["good"].history()["n"].to_pylist() == [9, 18]
    with hr.connect(storage=tmp_path) as db:
        db.start()
        assert reason in str(db.status.query("bad").failed)
